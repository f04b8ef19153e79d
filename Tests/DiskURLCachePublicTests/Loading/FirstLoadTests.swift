#if canImport(FoundationNetworking)
    import DiskURLCache
    import Foundation
    import Testing
    import FoundationNetworking

    /// First loads of tasks with a completion handler.
    @Suite(.fewAtATime, .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions without the mirror"))
    struct FirstLoadTests {
        private static let fresh: OriginFields = ["Cache-Control": "max-age=60"]

        /// A task without a completion handler and without a delegate.
        @Test func aTaskThatNobodyHearsOfIsStoredWhole() async throws {
            let origin = try OriginServer { _ in .ok("body", Self.fresh) }
            let harness = try LoadingHarness()
            let url = origin.url("/a")
            harness.session.dataTask(with: url).resume()
            await eventually("the stored response") { harness.cache.contains(URLRequest(url)) }
            #expect(harness.cache.cachedResponse(for: URLRequest(url))?.data == Data("body".utf8))
        }

        /// The fields that the session adds go to the target too.
        @Test func theTargetOfARedirectIsOfTheRequestThatWasSent() async throws {
            let origin = try OriginServer { request in
                request.path == "/a"
                    ? .status(302, "", ["Location": "/b"])
                    : .ok(
                        request.fields["Accept-Language"] ?? "none",
                        ["Cache-Control": "max-age=60", "Vary": "Accept-Language"])
            }
            let harness = try LoadingHarness(session: { $0.httpAdditionalHeaders = ["Accept-Language": "de"] })
            #expect(try await harness.load(origin.url("/a")).text == "de")
            #expect(try await harness.load(origin.url("/b")).text == "de")
            #expect(origin.requests.map(\.path) == ["/a", "/b"])
            let other = LoadingHarness.session(of: harness.cache)
            defer { other.invalidateAndCancel() }
            #expect(try await LoadingHarness.load(URLRequest(origin.url("/b")), in: other).text != "de")
        }

        /// The answer to a URL that redirects to itself once, with a cookie, is that of a request with the cookie.
        @Test func aRedirectToItselfWithACookie() async throws {
            let origin = try OriginServer { request in
                request.fields["Cookie"] == nil
                    ? .status(302, "", ["Location": request.path, "Set-Cookie": "a=1; Path=/"])
                    : .ok("with cookie", ["Cache-Control": "max-age=60", "Vary": "Cookie"])
            }
            let harness = try LoadingHarness()
            #expect(try await harness.load(origin.url("/a")).text == "with cookie")
            #expect(harness.cache.cachedResponse(for: URLRequest(origin.url("/a"))) == nil)
        }

        /// Loads that wait for one that turns out to redirect follow the stored redirect.
        @Test func thoseThatWaitForARedirectGetItsTarget() async throws {
            let gate = Gate()
            let origin = try OriginServer { request in
                var response =
                    request.path == "/a"
                    ? OriginResponse.status(301, "", ["Location": "/b", "Cache-Control": "max-age=60"])
                    : .ok("b", Self.fresh)
                if request.number == 1 { response.beforeHead = { gate.wait() } }
                return response
            }
            let harness = try LoadingHarness()
            let url = origin.url("/a")
            async let first = harness.load(url)
            await gate.arrival()
            let others = (0..<4).map { _ in Task { try await harness.load(url).text } }
            await harness.cache.untilLoadsWait(4)
            gate.open()
            #expect(try await first.text == "b")
            for other in others { #expect(try await other.value == "b") }
            #expect(origin.requests.map(\.path) == ["/a", "/b"])
        }

    }
#endif

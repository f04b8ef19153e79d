import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Who has a say in what is stored, what outlives a restart, and what is told of each load.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderStoringTests {
    // MARK: The delegate

    private final class Editor: RecordingDelegate, @unchecked Sendable {
        let edit: @Sendable (CachedURLResponse) -> CachedURLResponse?
        init(_ edit: @escaping @Sendable (CachedURLResponse) -> CachedURLResponse?) { self.edit = edit }

        override func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
            completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            completionHandler(edit(proposedResponse))
        }
    }

    @Test func delegateRefusesToStore() async throws {
        let origin = try OriginServer.counting()
        let delegate = Editor { _ in nil }
        let harness = try LoadingHarness(delegate: delegate)
        let events = harness.cache.events()
        #expect(await delegate.run(harness.session.dataTask(with: origin.url("/a"))).data == Data("1".utf8))
        let report = await events.report()
        #expect(report?.isStored == false && report?.notStoredReason == .refused)
        #expect(report?.notStoredReason?.description.contains("delegate") == true)
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
    }

    @Test func delegateEditsWhatIsStoredAndNotWhatIsDelivered() async throws {
        let origin = try OriginServer.counting()
        let delegate = Editor { proposed in
            CachedURLResponse(
                response: Responses.http(
                    proposed.response.url ?? Responses.url(), status: 203,
                    fields: ["Cache-Control": "max-age=60", "X-Edited": "yes"]),
                data: Data("edited".utf8), userInfo: ["mark": 7, "object": NSObject()],
                storagePolicy: .allowedInMemoryOnly)
        }
        let harness = try LoadingHarness(delegate: delegate)
        let task = harness.session.dataTask(with: origin.url("/a"))
        #expect(await delegate.run(task).data == Data("1".utf8))
        let loaded = try await harness.load(origin.url("/a"))
        #expect(loaded.text == "edited" && loaded.status == 203 && loaded["X-Edited"] == "yes")
        let stored = harness.cache.cachedResponse(for: URLRequest(origin.url("/a")))
        #expect(stored?.userInfo?["mark"] as? Int == 7 && stored?.userInfo?["object"] != nil)
        harness.cache.removeAllCachedResponses(from: .memory)
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
    }

    // MARK: `Configuration.willCacheResponse`

    @Test func admissionRefusesAndEdits() async throws {
        let origin = try OriginServer { request in
            request.path == "/redirect"
                ? .status(301, "", ["Location": "/a", "Cache-Control": "max-age=60"])
                : .ok("{\"returnCode\": 1}", ["Cache-Control": "max-age=60"])
        }
        let asked = Mutex<[String]>([])
        let harness = try LoadingHarness(configure: { settings in
            settings.willCacheResponse = { response, request in
                let path = request.url?.path ?? ""
                asked.withLock { $0.append(path) }
                switch path {
                case "/edit": return CachedURLResponse(response: response.response, data: Data("edited".utf8))
                case "/forbid": return response.copy(policy: .notAllowed)
                case "/memory": return response.copy(policy: .allowedInMemoryOnly)
                case "/keep": return response
                default: return nil
                }
            }
        })
        let events = harness.cache.events()
        for path in ["/refuse", "/edit", "/forbid", "/memory", "/keep"] { try await harness.load(origin.url(path)) }
        let first = await events.report()
        #expect(first?.notStoredReason?.description.contains("willCacheResponse") == true)
        #expect(!harness.cache.contains(URLRequest(origin.url("/forbid"))))
        #expect(!harness.cache.contains(URLRequest(origin.url("/refuse"))))
        #expect(try await harness.load(origin.url("/edit")).text == "edited")
        #expect(harness.cache.contains(URLRequest(origin.url("/keep"))))
        // A redirect is a response as any other.
        try await harness.load(origin.url("/redirect"))
        #expect(!harness.cache.contains(URLRequest(origin.url("/redirect"))))
        #expect(asked.withLock { $0 } == ["/refuse", "/edit", "/forbid", "/memory", "/keep", "/redirect", "/a"])
        harness.cache.flush()
        harness.cache.removeAllCachedResponses(from: .memory)
        #expect(harness.cache.contains(URLRequest(origin.url("/keep"))))
        #expect(!harness.cache.contains(URLRequest(origin.url("/memory"))))
    }

    // MARK: Cache-Status and events

    @Test func cacheStatusIsAddedBehindThatOfOtherCaches() async throws {
        let origin = try OriginServer { _ in
            .ok("x", ["Cache-Control": "max-age=60", "Cache-Status": "Far; hit"])
        }
        let harness = try LoadingHarness(configure: { $0.cacheStatusName = "App" })
        #expect(
            try await harness.load(origin.url("/a"))["Cache-Status"]
                == "Far; hit, App; fwd=uri-miss; fwd-status=200; stored")
        harness.clock.advance(by: 5)
        #expect(try await harness.load(origin.url("/a"))["Cache-Status"] == "Far; hit, App; hit; ttl=55")
    }

    @Test func oneEventForEachTaskWithItsOutcome() async throws {
        let gate = Gate()
        let origin = try OriginServer { request in
            switch request.path {
            case "/no-store": return .ok("x", ["Cache-Control": "no-store"])
            case "/tag":
                return request.fields["If-None-Match"] == nil
                    ? .ok("x", ["Cache-Control": "max-age=1", "ETag": "\"e\""])
                    : .status(304, "", ["ETag": "\"e\""])
            case "/swr": return .ok("x", ["Cache-Control": "max-age=1, stale-while-revalidate=60"])
            case "/fail": return OriginResponse(ending: .noResponse)
            case "/slow":
                var response = OriginResponse.ok("x")
                response.beforeHead = { gate.wait() }
                return response
            case "/cut":
                return OriginResponse(
                    fields: ["Cache-Control": "max-age=60"], body: Data("onetwo".utf8), ending: .cutBody(after: 3))
            default: return .ok("x", ["Cache-Control": "max-age=60"])
            }
        }
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)

        func outcome(
            _ path: String, method: String = "GET", policy: URLRequest.CachePolicy = .useProtocolCachePolicy
        ) async throws -> DiskURLCache.Report.Outcome {
            let report = try await harness.report {
                _ = try? await harness.load(origin.url(path), method: method, policy: policy)
            }
            #expect(report.method == method && report.url == origin.url(path))
            return report.outcome
        }
        #expect(try await outcome("/a") == .miss(.notInCache))
        #expect(try await outcome("/a") == .hit(.memory))
        #expect(try await outcome("/a", policy: .reloadIgnoringLocalCacheData) == .miss(.cachePolicy))
        harness.cache.flush()
        harness.cache.removeAllCachedResponses(from: .memory)
        #expect(try await outcome("/a") == .hit(.disk))
        #expect(try await outcome("/no-store") == .miss(.notInCache))
        #expect(try await outcome("/tag") == .miss(.notInCache))
        #expect(try await outcome("/swr") == .miss(.notInCache))
        harness.clock.advance(by: 10)
        #expect(try await outcome("/tag") == .revalidated(.memory))
        #expect(try await outcome("/swr") == .staleHit(.memory, because: .staleWhileRevalidate))
        #expect(try await outcome("/fail") == .failed)
        #expect(try await outcome("/a", method: "POST") == .bypass(.methodNotCached))
        #expect(try await outcome("/b", policy: .returnCacheDataDontLoad) == .notAllowed(.notInCache))

        let cut = try await harness.report {
            _ = await delegate.run(harness.session.dataTask(with: origin.url("/cut")))
        }
        #expect(cut.outcome == .failed && cut.isStored == nil && cut.error is URLError)
        let cancelled = try await harness.report {
            let task = harness.session.dataTask(with: origin.url("/slow"))
            task.resume()
            await gate.arrival()
            task.cancel()
            _ = await delegate.end(of: task)
        }
        #expect(cancelled.outcome == .failed && (cancelled.error as? URLError)?.code == .cancelled)
        gate.open()
    }

    // MARK: Life
}

extension CachedURLResponse {
    fileprivate func copy(policy: URLCache.StoragePolicy) -> CachedURLResponse {
        CachedURLResponse(response: response, data: data, userInfo: userInfo, storagePolicy: policy)
    }
}

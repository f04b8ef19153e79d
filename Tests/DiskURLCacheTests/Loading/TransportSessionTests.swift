import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking

    /// A session whose requests a transport sends: `cache.makeSession(…, through:)`.
    @Suite(.fewAtATime, .enabled(if: LoadingHarness.storesForSessions))
    struct TransportSessionTests {
        let cache: DiskURLCache
        private let scratch: ScratchDirectory
        private let url = Responses.request("/a").url!

        init() throws {
            scratch = try ScratchDirectory("transport-session")
            cache = DiskURLCache(in: scratch, clock: ManualClock(), memory: 64 << 20, disk: 64 << 20)
        }

        private func session(
            through transport: ClosureTransport, delegate: (any URLSessionDelegate)? = nil,
            _ configure: (URLSessionConfiguration) -> Void = { _ in }
        ) throws -> URLSession {
            let configuration = URLSessionConfiguration.ephemeral.patient
            configure(configuration)
            return try cache.makeSession(configuration: configuration, delegate: delegate, through: transport)
        }

        // MARK: An answer

        @Test(arguments: [true, false]) func whatATransportBringsIsDeliveredAndStored(isByDelegate: Bool) async throws {
            let transport = ClosureTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                await exchange.piece("one")
                await exchange.piece("two")
            }
            let delegate = RecordingDelegate()
            let session = try self.session(through: transport, delegate: isByDelegate ? delegate : nil)
            defer { session.invalidateAndCancel() }
            for _ in 0..<2 {
                if isByDelegate {
                    let record = await delegate.run(session.dataTask(with: url))
                    #expect(record.data == Data("onetwo".utf8) && record.http?.statusCode == 200)
                } else {
                    let (data, response) = try await session.data(from: url)
                    #expect(data == Data("onetwo".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
                }
            }
            #expect(transport.requests.count == 1)
            // The usual way to load finds the same response.
            #expect(try await cache.data(for: URLRequest(url: url)).data == Data("onetwo".utf8))
            #expect(transport.requests.count == 1)
        }

        /// Of a buffer, say, which has the head, too.
        @Test(arguments: [64 << 10, 512 << 10], [true, false])
        func aPieceMayBeASlice(length: Int, hasLength: Bool) async throws {
            let body = testBody(1, length: length) + testBody(2, length: 2 << 20)
            let transport = ClosureTransport { _, exchange in
                var fields = ["Cache-Control": "max-age=60"]
                if hasLength { fields["Content-Length"] = "\(body.count)" }
                exchange.head(200, fields)
                await exchange.piece((Data([0]) + body.prefix(length)).dropFirst())
                await exchange.piece(body.dropFirst(length))
            }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            for _ in 0..<2 { #expect(try await session.data(from: url).0 == body) }
            #expect(try await cache.data(for: URLRequest(url: url)).data == body)
            #expect(transport.requests.count == 1)
        }

        /// Its task has failed, so nobody takes what still comes.
        @Test func aLoadWhosePieceCannotBeReadEnds() async throws {
            let writes = Guarded(0)
            let files = FaultyFileSystem { call in
                guard call.name.hasPrefix("incoming") else { return nil }
                if call.operation == .write { writes.withLock { $0 += 1 } }
                return call.operation == .read ? .error(EIO) : nil
            }
            let cache = DiskURLCache(in: scratch, clock: ManualClock(), memory: 1 << 20, disk: 64 << 20) {
                $0.directory = scratch.appending("faulty")
                $0.fileSystem = files
            }
            let transport = ClosureTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                // The client takes the first piece, and is held up. Each piece is a write of its own, and once the last
                // one is written, the file has the one before it.
                for (number, length) in [2 << 20, 512 << 10, 512 << 10].enumerated() {
                    await exchange.piece(Data(count: length))
                    await eventually("piece \(number) in the file") { writes.withLock { $0 } > number }
                }
                await exchange.untilCancelled()
            }
            let delegate = WaitingDelegate()
            let session = try cache.makeSession(
                configuration: .ephemeral.patient, delegate: delegate, through: transport)
            defer { session.invalidateAndCancel() }
            let task = session.dataTask(with: url)
            task.resume()
            // Its queue is held up, so it takes the second piece from the file, or the first one if that came late.
            await eventually("a file with what it has not taken") { writes.withLock { $0 } > 2 || files.faults > 0 }
            delegate.gate.open()
            let record = await delegate.record(of: task) { !$0.ends.isEmpty }
            #expect(record.error != nil && files.faults > 0)
            await eventually("the end of the transfer") { transport.cancelled == 1 }
        }

        @Test func aDirectLoadWithTheSessionGoesThroughItsTransport() async throws {
            let transport = ClosureTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                await exchange.piece("one")
            }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            #expect(try await cache.data(for: URLRequest(url: url), session: session).data == Data("one".utf8))
            #expect(transport.requests.count == 1)
        }

        @Test func aVariantIsPartOfTheKey() async throws {
            let transport = ClosureTransport { _, exchange in exchange.head(200, ["Cache-Control": "max-age=60"]) }
            for variant in ["one", "two", nil] {
                let session = try cache.makeSession(
                    configuration: .ephemeral.patient, through: transport, variant: variant)
                _ = try await session.data(from: url)
                _ = try await session.data(from: url)
                session.invalidateAndCancel()
            }
            #expect(transport.requests.count == 3)
        }

        /// A request that is not cached is sent by the transport, too, and makes stored responses invalid.
        @Test func aPostGoesThroughTheTransport() async throws {
            let transport = ClosureTransport { request, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                await exchange.piece(request.httpMethod ?? "")
            }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            _ = try await session.data(from: url)
            let (data, _) = try await session.data(
                for: URLRequest(url, method: "POST", body: Data("a=1".utf8)))
            #expect(data == Data("POST".utf8))
            #expect(transport.requests.last?.httpBody == Data("a=1".utf8))
            let type = transport.requests.last?.value(forHTTPHeaderField: "Content-Type")
            #expect(type == "application/x-www-form-urlencoded")
            #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil)
        }

        @Test func anUploadIsSentByFoundation() async throws {
            let server = try OriginServer { _ in .ok("server") }
            let transport = ClosureTransport { _, exchange in exchange.head(200) }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let (data, _) = try await session.upload(
                for: URLRequest(server.url(), method: "POST"), from: Data("body".utf8))
            #expect(data == Data("server".utf8) && transport.requests.isEmpty)
        }

        @Test func aDownloadIsSentByFoundation() async throws {
            let server = try OriginServer { _ in .ok("server") }
            let transport = ClosureTransport { _, exchange in exchange.head(200) }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let (file, _) = try await session.download(from: server.url())
            #expect(Data(taking: file) == Data("server".utf8) && transport.requests.isEmpty)
        }

        @Test func aBodyThatIsAStreamIsSentByFoundation() async throws {
            let server = try OriginServer { .ok(String(decoding: $0.body, as: UTF8.self)) }
            let transport = ClosureTransport { _, exchange in exchange.head(200) }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            var request = URLRequest(server.url(), method: "POST")
            request.httpBodyStream = InputStream(data: Data("body".utf8))
            request.setValue("4", forHTTPHeaderField: "Content-Length")
            let (data, _) = try await session.data(for: request)
            #expect(data == Data("body".utf8) && transport.requests.isEmpty)
        }

        /// Foundation on Linux has no `bytes(for:)` of its own.
        @Test func theCachesStreamOfBytesGoesThroughTheTransport() async throws {
            let (isRead, note) = AsyncStream.makeStream(of: Void.self)
            let transport = ClosureTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                await exchange.piece("one")
                for await _ in isRead { break }
                await exchange.piece("two")
            }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let stream = try await cache.bytes(for: URLRequest(url: url), session: session)
            #expect(try await stream.next() == Data("one".utf8))
            note.yield()
            #expect(try await stream.next() == Data("two".utf8))
            #expect(try await stream.next() == nil)
            #expect(transport.requests.count == 1)
        }

        /// What URLSession sends with every request, below what the app or the configuration says.
        @Test func fieldsOfTheSessionAreAdded() async throws {
            let transport = ClosureTransport { _, exchange in exchange.head(200, ["Cache-Control": "no-store"]) }
            let session = try self.session(through: transport) {
                $0.httpAdditionalHeaders = ["X-Of-Session": "1", "Accept": "text/html"]
            }
            defer { session.invalidateAndCancel() }
            _ = try await session.data(for: URLRequest(url, ["User-Agent": "mine"]))
            let sent = try #require(transport.requests.first)
            #expect(sent.value(forHTTPHeaderField: "X-Of-Session") == "1")
            #expect(sent.value(forHTTPHeaderField: "Accept") == "text/html")
            #expect(sent.value(forHTTPHeaderField: "User-Agent") == "mine")
            _ = try await session.data(from: url)
            let agent = try #require(transport.requests.last?.value(forHTTPHeaderField: "User-Agent"))
            #expect(agent.hasPrefix(ProcessInfo.processInfo.processName))
        }

        /// As Foundation on Linux: without waiting for a challenge, and decoded. A field of the app comes first.
        @Test(
            arguments: [
                ("user:pass@", nil, "Basic dXNlcjpwYXNz"), ("us%C3%A9r:p%40:s@", nil, "Basic dXPDqXI6cEA6cw=="),
                ("user@", nil, "Basic dXNlcjo="), ("", nil, nil), ("user:pass@", "Bearer mine", "Bearer mine"),
            ] as [(String, String?, String?)])
        func userAndPasswordOfTheURLAreSent(authority: String, given: String?, expected: String?) async throws {
            let transport = ClosureTransport { _, exchange in exchange.head(200, ["Cache-Control": "max-age=60"]) }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let url = try #require(URL(string: "http://\(authority)host.example/a"))
            _ = try await session.data(for: URLRequest(url, given.map { ["Authorization": $0] } ?? [:]))
            #expect(transport.requests.map { $0.value(forHTTPHeaderField: "Authorization") } == [expected])
            // Nobody else gets what one user got.
            let other = try #require(URL(string: "http://user:wrong@host.example/a"))
            _ = try await session.data(for: URLRequest(url: other))
            #expect(transport.requests.count == 2)
        }

        // MARK: Cookies

        @Test func everyCookieReachesTheStorageAndIsSentAtTheNextHop() async throws {
            let transport = HeadTransport { request in
                guard request.url.hasSuffix("/a") else { return DiskURLCache.Head(status: 200) }
                return DiskURLCache.Head(
                    status: 302,
                    fields: [
                        ("Set-Cookie", "one=1; Expires=Wed, 01 Jan 2070 00:00:00 GMT"), ("Set-Cookie", "two=2; Path=/"),
                        ("Location", "/b"),
                    ])
            }
            let configuration = URLSessionConfiguration.ephemeral.patient
            let session = try cache.makeSession(configuration: configuration, through: transport)
            defer { session.invalidateAndCancel() }
            _ = try await session.data(from: url)
            let names = session.configuration.httpCookieStorage?.cookies?.map(\.name).sorted()
            #expect(names == ["one", "two"])
            let sent = try #require(transport.requests.last?["Cookie"])
            #expect(sent.contains("one=1") && sent.contains("two=2"))
            #expect(transport.requests.count == 2 && transport.requests[0]["Cookie"] == nil)
        }

        @Test(arguments: [true, false]) func noCookieIsKeptWhereNoneIsWanted(bySession: Bool) async throws {
            let transport = ClosureTransport { _, exchange in exchange.head(200, ["Set-Cookie": "one=1"]) }
            let session = try self.session(through: transport) { if bySession { $0.httpCookieAcceptPolicy = .never } }
            defer { session.invalidateAndCancel() }
            var request = URLRequest(url: url)
            request.httpShouldHandleCookies = bySession
            _ = try await session.data(for: request)
            #expect(session.configuration.httpCookieStorage?.cookies?.isEmpty != false)
        }

        // MARK: Redirects

        @Test func theDelegateDecidesAboutARedirect() async throws {
            final class Refusing: RecordingDelegate, @unchecked Sendable {
                override func urlSession(
                    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
                ) {
                    change(task) { $0.redirects.append(request) }
                    completionHandler(nil)
                }
            }
            let transport = ClosureTransport { _, exchange in
                exchange.head(302, ["Location": "/b"])
                await exchange.piece("moved")
            }
            let delegate = Refusing()
            let session = try self.session(through: transport, delegate: delegate)
            defer { session.invalidateAndCancel() }
            let record = await delegate.run(session.dataTask(with: url))
            #expect(record.redirects.map(\.url?.path) == ["/b"])
            #expect(record.http?.statusCode == 302 && record.data == Data("moved".utf8) && record.error == nil)
            #expect(transport.requests.count == 1)
        }

        // MARK: Errors

        private struct Broken: Swift.Error {}

        @Test func everyErrorIsAURLError() async throws {
            let transport = ClosureTransport { request, _ in
                throw request.url?.path == "/a" ? Broken() : URLError(.cannotConnectToHost)
            }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let unknown = await #expect(throws: URLError.self) { try await session.data(from: url) }
            #expect(unknown?.code == .unknown && unknown?.errorUserInfo[NSUnderlyingErrorKey] is Broken)
            #expect(unknown?.failingURL == url)
            let other = try #require(URL(string: "/b", relativeTo: url)?.absoluteURL)
            let known = await #expect(throws: URLError.self) { try await session.data(from: other) }
            #expect(known?.code == .cannotConnectToHost && known?.failingURL == other)
        }

        /// A method with a line feed would be a second request on the wire of a client that does not look.
        @Test(arguments: ["GET / HTTP/1.1\r\n\r\nGET", "A B", "Ä"]) func aMethodIsAToken(method: String) async throws {
            let transport = ClosureTransport { _, exchange in exchange.head(200) }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let error = await #expect(throws: URLError.self) {
                try await session.data(for: URLRequest(url, method: method))
            }
            #expect(error?.code == .badURL && transport.requests.isEmpty)
            #expect(error?.failingURL == url && error?.localizedDescription.contains("method") == true)
        }

        @Test func aGetWithABodyFails() async throws {
            let transport = ClosureTransport { _, exchange in exchange.head(200) }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let error = await #expect(throws: URLError.self) {
                try await session.data(for: URLRequest(url, body: Data("body".utf8)))
            }
            #expect(error?.code == .dataLengthExceedsMaximum && transport.requests.isEmpty)
            #expect(error?.failingURL == url && error?.localizedDescription.contains("QUERY or POST") == true)
        }

        /// Clients end the process at such a port.
        @Test func aRedirectToNoPortFails() async throws {
            let transport = ClosureTransport { _, exchange in
                exchange.head(302, ["Location": "http://example.com:99999/"])
            }
            let session = try self.session(through: transport)
            defer { session.invalidateAndCancel() }
            let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
            #expect(error?.code == .badURL && transport.requests.count == 1)
            #expect(error?.failingURL?.port == 99_999 && error?.localizedDescription.contains("port") == true)
        }

        // MARK: Time

        /// - Parameter part: how much of an answer comes before the server is silent.
        @Test(arguments: ["nothing", "head", "piece"]) func silenceEndsARequest(after part: String) async throws {
            let transport = ClosureTransport { _, exchange in
                if part != "nothing" { exchange.head(200, ["Cache-Control": "max-age=60"]) }
                if part == "piece" { await exchange.piece("one") }
                await exchange.untilCancelled()
            }
            let session = try self.session(through: transport) { $0.timeoutIntervalForRequest = 0.2 }
            defer { session.invalidateAndCancel() }
            let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
            #expect(error?.code == .timedOut)
            await eventually("the transport's end") { transport.cancelled == 1 }
            #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil)
        }

        /// A server that says something now and then is not silent; the whole load has a limit of its own.
        @Test func theWholeLoadHasALimit() async throws {
            let transport = ClosureTransport { _, exchange in
                exchange.head(200)
                while !Task.isCancelled {
                    await exchange.piece("again")
                    try? await Task.sleep(for: .milliseconds(5))
                }
                exchange.noteCancellation()
            }
            let session = try self.session(through: transport) { $0.timeoutIntervalForResource = 0.3 }
            defer { session.invalidateAndCancel() }
            let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
            #expect(error?.code == .timedOut)
            await eventually("the transport's end") { transport.cancelled == 1 }
        }

        // MARK: Cancellation, backpressure

        /// A task that is suspended takes nothing, so that the transport waits.
        @Test func aSuspendedTaskHoldsTheTransportUp() async throws {
            let piece = String(repeating: "a", count: 256 << 10)
            let pieces = Mutex<[String: Int]>([:])
            let isSuspended = Flag()
            let transport = ClosureTransport { request, exchange in
                let path = request.url?.path ?? ""
                exchange.head(200, ["Cache-Control": "no-store"])
                if path == "/a" { await isSuspended.isSet() }
                for _ in 0..<32 {
                    await exchange.piece(piece)
                    pieces.withLock { $0[path, default: 0] += 1 }
                }
            }
            let delegate = RecordingDelegate()
            let session = try self.session(through: transport, delegate: delegate)
            defer { session.invalidateAndCancel() }
            let task = session.dataTask(with: url)
            task.resume()
            _ = await delegate.record(of: task) { !$0.responses.isEmpty }
            task.suspend()
            isSuspended.set()
            // Two whole loads begin and end meanwhile: long enough for all pieces, if nothing held them up.
            for path in ["/b", "/c"] {
                let other = await delegate.run(session.dataTask(with: Responses.url(path)))
                #expect(other.error == nil && other.data.count == 32 * 256 << 10)
            }
            #expect(pieces.withLock { $0 }["/a"] ?? 0 < 32)
            task.resume()
            let record = await delegate.end(of: task)
            #expect(record.error == nil && record.data.count == 32 * 256 << 10)
        }

        @Test func aRequestIsGivenUpAfterSilenceButNotWhileItsTransferIsPaused() {
            func time(_ seconds: Double) -> DispatchTime { DispatchTime(uptimeNanoseconds: 1_000_000_000) + seconds }
            let limits = ExchangeLimits(silence: 2, deadline: time(60))
            func end(sign: Double, isPaused: Bool = false, resumed: Double = 0, now: Double) -> DispatchTime {
                limits.end(lastSign: time(sign), isPaused: isPaused, resumedAt: time(resumed), now: time(now))
            }
            #expect(end(sign: 5, now: 6) == time(7))
            #expect(end(sign: 5, isPaused: true, now: 30) == time(32))
            // The server has the whole time again.
            #expect(end(sign: 5, resumed: 30, now: 31) == time(32))
            // The time of the whole load goes on in a pause.
            #expect(end(sign: 5, isPaused: true, now: 59) == time(60))
        }

        /// A transport may load by a session of Foundation: its task must not be cancelled on the queue that all
        /// sessions share.
        @Test func aTransportOverASessionOfFoundationCanBeCancelled() async throws {
            let gate = Gate()
            let server = try OriginServer.held(by: gate, "late")
            let inner = URLSession(configuration: .ephemeral.patient)
            let hasEnded = Flag()
            let transport = ClosureTransport { request, exchange in
                defer { hasEnded.set() }
                var request = request
                request.url = server.url()
                let (data, response) = try await inner.data(for: request)
                if let head = response as? HTTPURLResponse { exchange.receiver.receive(head) }
                await exchange.receiver.receive(data)
            }
            let delegate = RecordingDelegate()
            let session = try session(through: transport, delegate: delegate)
            defer { session.invalidateAndCancel() }
            let task = session.dataTask(with: url)
            task.resume()
            await eventually("a request") { server.requests.count == 1 }
            task.cancel()
            #expect((await delegate.end(of: task).error as? URLError)?.code == .cancelled)
            // Foundation on Linux stands still, and each of its sessions with it, if an awaited load ends just as its
            // task is cancelled ("Limits"). So the answer comes after the cancellation.
            await hasEnded.isSet()
            gate.open()
            inner.invalidateAndCancel()
        }

        /// The time may be up while the transport is inside a call: the receiver gets one call at a time.
        @Test func theTimeIsNotUpWithinACall() async throws {
            final class SlowReceiver: FetchReceiver {
                let state = Mutex((isInside: false, wasTwice: false, hasEnded: false))

                func fetchReceived(_ head: DeliveredHead, of token: FetchToken) {
                    state.withLock { $0.isInside = true }
                    // Nothing tells that the time is up, so the call takes six times as long.
                    Thread.sleep(forTimeInterval: 0.3)
                    state.withLock { $0.isInside = false }
                }
                func fetchReceived(_ data: Data, of token: FetchToken) {}
                func fetchEnded(_ error: (any Error)?, of token: FetchToken) {
                    state.withLock {
                        $0.wasTwice = $0.isInside
                        $0.hasEnded = true
                    }
                }
            }
            // A transport keeps its receiver until the end.
            let exchanges = Exchanges()
            let network = exchanges.network()
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = 0.05
            let (receiver, token) = (SlowReceiver(), FetchToken())
            SessionTransport(network, configuration).send(
                DiskURLCache.Request(URLRequest(url: url)), by: .now() + 0.1, inPieces: true, token: token,
                receiver: receiver)
            let exchange = await exchanges.next(1)
            DispatchQueue.global().async { exchange.head(200) }
            await eventually("the end") { receiver.state.withLock { $0.hasEnded } }
            #expect(!receiver.state.withLock { $0.wasTwice })
            #expect(network.cancelled == 1)
        }

        // MARK: Variants

        /// What belongs to a different variant says nothing about the answers of a session.
        @Test func storedAnswersAreThoseOfTheSessionsVariant() async throws {
            let transport = ClosureTransport { request, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                await exchange.piece("of the session")
            }
            let plain = ClosureTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                await exchange.piece("of all")
            }
            let session = try cache.makeSession(configuration: .ephemeral.patient, through: transport, variant: "one")
            defer { session.invalidateAndCancel() }
            _ = try await session.data(from: url)
            for _ in 0..<2 {
                var texts: [String] = []
                for try await answer in cache.answers(for: URLRequest(url: url), session: session) {
                    texts.append(String(decoding: answer.data, as: UTF8.self))
                }
                #expect(texts == ["of the session"])
                _ = try await cache.load(URLRequest(url: url), through: plain).pieces()
            }
            #expect(transport.requests.count == 1 && plain.requests.count == 1)
            let task = session.dataTask(with: url)
            let found = await withCheckedContinuation { continuation in
                cache.getCachedResponse(for: task) { continuation.resume(returning: $0 != nil) }
            }
            #expect(!found)
            cache.removeCachedResponse(for: task)
            task.cancel()
            _ = try await session.data(from: url)
            #expect(transport.requests.count == 2 && cache.cachedResponse(for: URLRequest(url: url)) != nil)
        }

        // MARK: Settings

        @Test func aSettingThatATransportCannotFollowIsAnError() throws {
            final class Own: URLProtocol {}
            let transport = ClosureTransport { _, _ in }
            let settings: [(String, (URLSessionConfiguration) -> Void)] = [
                ("connectionProxyDictionary", { $0.connectionProxyDictionary = ["HTTPEnable": 1] }),
                ("httpMaximumConnectionsPerHost", { $0.httpMaximumConnectionsPerHost = 1 }),
                ("allowsCellularAccess", { $0.allowsCellularAccess = false }),
                ("networkServiceType", { $0.networkServiceType = .video }),
                ("isDiscretionary", { $0.isDiscretionary = true }),
                ("protocolClasses", { $0.protocolClasses = [Own.self] }),
            ]
            for (name, change) in settings {
                let error = #expect(throws: DiskURLCache.Error.self) { try self.session(through: transport, change) }
                #expect(error?.code == .settingsWithoutEffect)
                #expect(error?.description.contains(name) == true)
            }
            // What was prepared for a cache before is no setting of the app.
            let session = try self.session(through: transport) { cache.attach(to: $0) }
            session.invalidateAndCancel()
        }

        @Test func aTransportIsReleasedAfterItsSession() async throws {
            var transport: ClosureTransport? = ClosureTransport { _, exchange in exchange.head(200) }
            weak let released = transport
            var kept: URLSession? = try session(through: #require(transport))
            transport = nil
            _ = try await kept?.data(from: url)
            kept?.finishTasksAndInvalidate()
            kept = nil
            await eventually("the release of the transport") {
                let next = try? self.session(through: ClosureTransport { _, _ in })
                next?.invalidateAndCancel()
                return released == nil
            }
        }
    }

    /// Answers with heads, whose fields may have one name several times.
    private final class HeadTransport: DiskURLCache.Transport {
        private let state = Mutex<[DiskURLCache.Request]>([])
        private let answer: @Sendable (DiskURLCache.Request) -> DiskURLCache.Head

        init(_ answer: @escaping @Sendable (DiskURLCache.Request) -> DiskURLCache.Head) {
            self.answer = answer
        }

        var requests: [DiskURLCache.Request] { state.withLock { $0 } }

        func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
            state.withLock { $0.append(request) }
            receiver.receive(answer(request))
        }
    }

    /// Holds up its queue at the first piece.
    private final class WaitingDelegate: RecordingDelegate, @unchecked Sendable {
        let gate = Gate()

        override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            gate.wait()
            super.urlSession(session, dataTask: dataTask, didReceive: data)
        }
    }
#endif

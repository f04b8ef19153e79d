#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking
    import Glibc
    import Testing

    @testable import DiskURLCache
    @testable import DiskURLCacheAdapters

    /// Nobody waits for a disk on the queues that sessions share: neither on the one on which Foundation calls
    /// protocols, nor where the answers of a session arrive.
    @Suite(.loadsOnLinux, .fewAtATime) struct FilesOffTheQueuesTests {
        /// The label of the queue on which it is called. Dispatch gives it in C only.
        private static let currentLabel: @Sendable () -> String = {
            typealias Function = @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>?
            guard let symbol = dlsym(nil, "dispatch_queue_get_label") else { return { "unknown" } }
            let label = unsafeBitCast(symbol, to: Function.self)
            return { label(nil).map { String(cString: $0) } ?? "" }
        }()

        private struct Call: Hashable {
            var queue: String
            var operation: FaultyFileSystem.Operation
            var name: String
        }

        /// The queues on which nobody waits but for what is done there.
        private static let ownQueues = ["lookup", "maintenance", "body", "answer"].map { "DiskURLCache.\($0)" }

        private static func answer(_ request: OriginRequest) -> OriginResponse {
            switch request.target {
            case "/clear": .ok("c", ["Clear-Site-Data": "\"cache\""])
            case "/large": OriginResponse(fields: ["Cache-Control": "max-age=60"], body: testBody(1, length: 3 << 20))
            case "/redirect":
                OriginResponse(status: 302, fields: ["Location": "/target", "Cache-Control": "max-age=60"])
            case "/stale": .ok("s", ["Cache-Control": "max-age=0", "ETag": "\"1\""])
            default: .ok("d", ["Cache-Control": "max-age=60"])
            }
        }

        /// Every way that a load takes: alone on the directory, and beside another cache.
        @Test(arguments: [false, true]) func filesAreUsedOnOwnQueuesOnly(hasOthers: Bool) async throws {
            let calls = Mutex<Set<Call>>([])
            let files = FaultyFileSystem { call in
                let seen = Call(queue: Self.currentLabel(), operation: call.operation, name: call.name)
                calls.withLock { _ = $0.insert(seen) }
                return nil
            }
            let origin = try OriginServer { Self.answer($0) }
            let harness = try LoadingHarness { $0.fileSystem = files }
            let disk = try #require(harness.cache.core.store.diskStore)
            func load(_ path: String, _ change: (inout URLRequest) -> Void = { _ in }) async throws {
                var request = URLRequest(url: origin.url(path), timeoutInterval: Patience.ofLoads)
                change(&request)
                _ = try await harness.session.data(for: request)
                // The next lookup looks for other caches.
                disk.nextCheck.set(0)
            }
            let directory = harness.cache.configuration.directory
            let other = hasOthers ? DiskURLCache(configuration: .init(directory: directory)) : nil
            try await load("/a") { $0.setValue("Basic abc", forHTTPHeaderField: "Authorization") }
            for path in ["/a", "/a", "/large", "/large", "/redirect", "/redirect", "/stale", "/stale", "/clear", "/a"] {
                try await load(path)
                other?.flush()
            }
            try await load("/a") { $0.cacheOptions = .init(tags: ["tag"]) }
            try await load("/b") { $0.cacheOptions = .init(storage: .memoryOnly) }
            for method in ["POST", "DELETE"] { try await load("/a") { $0.httpMethod = method } }
            let used = calls.withLock { $0 }
            #expect(used.contains { $0.queue == "DiskURLCache.lookup" && $0.operation == .write })
            #expect(used.filter { !Self.ownQueues.contains($0.queue) } == [])
            withExtendedLifetime(other) {}
        }

        /// Memory knows the response, but is too small for its body.
        @Test func aDirectCallReadsNoFileOnItsThread() async throws {
            let reads = Mutex<[String]>([])
            let files = FaultyFileSystem { call in
                if call.operation == .read { reads.withLock { $0.append(Self.currentLabel()) } }
                return nil
            }
            let scratch = try ScratchDirectory()
            var configuration = DiskURLCache.Configuration(
                memoryCapacity: 1 << 20, diskCapacity: 64 << 20, directory: scratch.appending("cache"))
            configuration.fileSystem = files
            let cache = DiskURLCache(configuration: configuration)
            let request = Responses.request("/large")
            let body = testBody(1, length: 2 << 20)
            cache.store(body, for: request, lifetime: 60)
            cache.flush()
            reads.withLock { $0 = [] }
            for _ in 0..<3 {
                #expect(try await cache.data(for: request).data == body)
                // Verifies the body. Its pieces are read by whoever asks for them.
                _ = try await cache.bytes(for: request)
            }
            let queues = reads.withLock { $0 }
            #expect(!queues.isEmpty)
            #expect(queues.filter { $0 != "DiskURLCache.lookup" } == [])
        }

        /// All deadlines have one queue: a stored response that stands in for an answer which came too late is not read
        /// there.
        @Test(arguments: [false, true]) func noFileIsReadOnTheQueueOfDeadlines(inSession: Bool) async throws {
            let reads = Mutex<[String]>([])
            let files = FaultyFileSystem { call in
                if call.operation == .read, call.isRecord { reads.withLock { $0.append(Self.currentLabel()) } }
                return nil
            }
            let scratch = try ScratchDirectory()
            let clock = ManualClock()
            let cache = DiskURLCache(in: scratch, clock: clock, memory: 1 << 20, disk: 64 << 20) {
                $0.fileSystem = files
            }
            var request = Responses.request("/large")
            let body = testBody(1, length: 2 << 20)
            let fields = ["Cache-Control": "max-age=60, stale-if-error=600"]
            cache.storeCachedResponse(
                CachedURLResponse(response: Responses.http(request.url!, fields: fields), data: body), for: request)
            cache.flush()
            clock.advance(by: 100)
            let transport = ClosureTransport { _, exchange in await exchange.untilCancelled() }
            let session = try cache.makeSession(configuration: .ephemeral, through: transport)
            defer { session.invalidateAndCancel() }
            func load(_ request: URLRequest) async throws -> Data {
                var data = Data()
                for try await piece in try await cache.load(request, through: transport) { data += piece }
                return data
            }
            // A busy machine has not read the body in the first times.
            var isAnswered = false
            for timeout in [0.1, 1, 10, 100] {
                reads.withLock { $0 = [] }
                request.timeoutInterval = timeout
                let data = inSession ? try? await session.data(for: request).0 : try? await load(request)
                isAnswered = data == body
                if isAnswered { break }
            }
            #expect(isAnswered)
            let queues = reads.withLock { $0 }
            #expect(!queues.isEmpty)
            #expect(queues.filter { $0 == "DiskURLCache.timeouts" } == [])
        }

        /// A client on an event loop.
        private final class LoopTransport: LoadTransport {
            static let label = "event loop"
            let fields: HeaderFields
            let pauses = Mutex<[Bool]>([])
            var sharesItsQueue: Bool { true }

            init(fields: HeaderFields) { self.fields = fields }

            func send(
                _ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver
            ) {
                _ = token.didStart(
                    cancel: {}, setPaused: { isPaused in self.pauses.withLock { $0.append(isPaused) } })
                DispatchQueue(label: Self.label).async { [fields] in
                    receiver.fetchReceived(DeliveredHead(to: request, status: 200, fields: fields), of: token)
                    for text in ["one", "two"] { receiver.fetchReceived(Data(text.utf8), of: token) }
                    receiver.fetchEnded(nil, of: token)
                }
            }
        }

        /// Writes down where it is called.
        private final class LoopReceiver: FetchReceiver {
            let calls = Mutex<[String]>([])
            let queues = Mutex<Set<String>>([])
            let cookies = Mutex<[String]>([])
            let storage: HTTPCookieStorage?
            let hasEnded = DispatchSemaphore(value: 0)

            init(_ storage: HTTPCookieStorage?) { self.storage = storage }

            private func note(_ call: String) {
                calls.withLock { $0.append(call) }
                queues.withLock { _ = $0.insert(FilesOffTheQueuesTests.currentLabel()) }
            }

            func fetchReceived(_ head: DeliveredHead, of token: FetchToken) {
                note("\(head.status)")
                let names = storage?.cookies?.map(\.name).sorted() ?? []
                cookies.withLock { $0 = names }
            }
            func fetchReceived(_ data: Data, of token: FetchToken) { note(String(decoding: data, as: UTF8.self)) }
            func fetchEnded(_ error: (any Error)?, of token: FetchToken) {
                note(error.map { "\($0)" } ?? "end")
                hasEnded.signal()
            }
        }

        /// The storage writes a file for each cookie. They are kept when the load hears of the head, and the transfer
        /// waits meanwhile.
        @Test(arguments: [false, true]) func cookiesAreNotKeptWhereAnswersArrive(setsCookies: Bool) {
            let names = setsCookies ? ["one", "two"] : []
            let fields = names.map { HeaderFields.Field(name: "Set-Cookie", value: "\($0)=1") }
            let configuration = URLSessionConfiguration.ephemeral
            let loop = LoopTransport(fields: HeaderFields(fields))
            let transport = SessionTransport(loop, configuration)
            let receiver = LoopReceiver(configuration.httpCookieStorage)
            transport.send(
                DiskURLCache.Request(Responses.request("/a")), by: .distantFuture, inPieces: true, token: FetchToken(),
                receiver: receiver)
            receiver.hasEnded.isSignalled("the end")
            #expect(receiver.calls.withLock { $0 } == ["200", "one", "two", "end"])
            #expect(receiver.cookies.withLock { $0 } == names)
            #expect(loop.pauses.withLock { $0 } == (setsCookies ? [true, false] : []))
            #expect(receiver.queues.withLock { $0 } == [setsCookies ? "DiskURLCache.answer" : LoopTransport.label])
        }

        /// Its pieces do not pile up behind a removal that waits for the disk.
        @Test func theTransferWaitsForARemoval() async throws {
            let harness = try LoadingHarness()
            let loop = LoopTransport(fields: ["Clear-Site-Data": "\"cache\""])
            let reader = LoadReader(Responses.request("/a"), from: harness.cache, over: loop, acceptsPieces: true)
            var text = ""
            while let piece = try await reader.next() { text += String(decoding: piece, as: UTF8.self) }
            #expect(text == "onetwo")
            #expect(loop.pauses.withLock { $0 } == [true, false])
        }

        /// An answer that removes, and that has a body with a file, is stored by the queue that writes the body.
        @Test func anAnswerThatRemovesIsStoredToo() async throws {
            let origin = try OriginServer { request in
                OriginResponse(
                    fields: ["Cache-Control": "max-age=60", "Cache-Group-Invalidation": "\"group\""],
                    body: testBody(Int(request.target.dropFirst()) ?? 0, length: (2 << 20) + 300_000))
            }
            let harness = try LoadingHarness { $0.keyPolicy = .standard.includingBody(ofMethods: "POST") }
            for number in 0..<8 {
                var request = URLRequest(url: origin.url("/\(number)"), timeoutInterval: Patience.ofLoads)
                request.httpMethod = "POST"
                request.httpBody = Data("a".utf8)
                for _ in 0..<2 {
                    let data = try await harness.session.data(for: request).0
                    #expect(data == testBody(number, length: (2 << 20) + 300_000))
                }
            }
            #expect(origin.requests.count == 8)
        }
    }
#endif

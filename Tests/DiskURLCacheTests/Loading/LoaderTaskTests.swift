import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What tasks get in pieces, late or not at all. That each kind of task gets the same answers is in `MatrixTests`.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderTaskTests {
    @Test func delegateTaskHearsChunksAsTheyArrive() async throws {
        let gate = Gate()
        let origin = try OriginServer.inTwoPieces(gate)
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        let task = harness.session.dataTask(with: origin.url("/a"))
        task.resume()
        // The origin holds the second part back: the first one is here before the body is complete.
        let early = await delegate.record(of: task) { !$0.chunks.isEmpty }
        #expect(early.data == Data("one".utf8) && early.responses.count == 1)
        gate.open()
        #expect(await delegate.end(of: task).data == Data("onetwo".utf8))
        #expect(try await harness.load(origin.url("/a")).text == "onetwo")
        #expect(origin.requests.count == 1)
    }

    @Test func suspendedTaskHearsNothingUntilItIsResumed() async throws {
        let gate = Gate()
        let origin = try OriginServer.inTwoPieces(gate, [:])
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        let task = harness.session.dataTask(with: origin.url("/a"))
        task.resume()
        _ = await delegate.record(of: task) { !$0.chunks.isEmpty }
        task.suspend()
        gate.open()
        // Another load through the same queues: what the first one had to say would be there by now.
        _ = await delegate.run(harness.session.dataTask(with: origin.url("/b")))
        let held = await delegate.record(of: task) { _ in true }
        #expect(held.ends.isEmpty)
        task.resume()
        #expect(await delegate.end(of: task).data == Data("onetwo".utf8))
    }

    /// Foundation calls start, stop, start, all after the last resume, while it still waits for the lookup. The origin
    /// takes its time: a task resumed in the very moment it ends runs into a trap of Foundation's own (Limits).
    @Test(arguments: ["GET", "POST"]) func taskResumedSuspendedAndResumedAtOnceEnds(method: String) async throws {
        let gates = (0..<50).map { _ in Gate() }
        let origin = try OriginServer { request in
            Int(request.path.dropFirst()).map { gates[$0].wait() }
            return .ok("a", ["Cache-Control": "no-store"])
        }
        let harness = try LoadingHarness()
        for (number, gate) in gates.enumerated() {
            let request = URLRequest(origin.url("/\(number)"), method: method)
            let data = await withCheckedContinuation { continuation in
                let task = harness.session.dataTask(with: request) { data, _, _ in
                    continuation.resume(returning: data)
                }
                task.resume()
                task.suspend()
                task.resume()
                gate.open()
            }
            #expect(data?.isEmpty == false)
        }
    }

    #if canImport(FoundationNetworking)
        /// What Foundation does now and then to a task that is resumed, suspended and resumed in one breath.
        @Test func aStopThatComesAfterTheNextStartDoesNotHaltTheLoad() async throws {
            let load = try LoadByHand(memoryCapacity: 0)
            load.task.resume()
            load.queue.sync {
                load.urlProtocol.startLoading()
                load.urlProtocol.startLoading()
                load.urlProtocol.stopLoading()
            }
            // A load that rests would hang: the test does not wait for ever.
            #expect(load.waitForEnd())
            #expect(load.body == Data("a".utf8))
        }

        /// The other way round: a load that starts late waits for its task to go on.
        @Test func aStartOfASuspendedTaskWaits() async throws {
            let load = try LoadByHand(memoryCapacity: 1 << 20)
            load.queue.sync { load.urlProtocol.startLoading() }
            // The load decides on another thread, which has its turn meanwhile.
            for _ in 0..<100 {
                await Task.yield()
                #expect(load.body == nil)
            }
            load.task.resume()
            load.queue.sync { load.urlProtocol.startLoading() }
            #expect(load.waitForEnd())
            #expect(load.body == Data("a".utf8))
        }

        /// Its delegate is asked about the store when it is resumed, and equal loads would wait as long.
        @Test func aLoadThatIsSuspendedAsItStartsHoldsUpNobodyElse() async throws {
            let gate = Gate()
            let origin = try OriginServer { request in
                var response = OriginResponse.ok("a", ["Cache-Control": "max-age=60"])
                if request.number == 1 { response.beforeHead = { gate.wait() } }
                return response
            }
            let harness = try LoadingHarness()
            let url = origin.url("/a")
            let task = harness.session.dataTask(with: url)
            let queue = try #require(SessionLink(task)?.workQueue)
            let urlProtocol = CachingURLProtocol(task: task, cachedResponse: nil, client: RecordingClient())
            queue.sync { urlProtocol.startLoading() }
            await gate.arrival()
            let isAnswered = Flag()
            let load = Task {
                defer { isAnswered.set() }
                return try await harness.load(url).text
            }
            await eventually("the answer of the other load") { isAnswered.value }
            gate.open()
            #expect(try await load.value == "a" && origin.requests.count == 2)
        }

        /// Now and then Foundation starts a load that it has cancelled: it waited for the lookup, and the cancellation
        /// did not.
        @Test func aStartThatComesAfterTheCancellationTellsNothing() async throws {
            let load = try LoadByHand(memoryCapacity: 1 << 20)
            await load.cancelByFoundation()
            load.queue.sync {
                load.urlProtocol.stopLoading()
                load.urlProtocol.startLoading()
            }
            #expect(!load.hasStarted)
            let passing = try LoadByHand(memoryCapacity: 0, method: "POST")
            await passing.cancelByFoundation()
            passing.queue.sync {
                passing.urlProtocol.stopLoading()
                passing.urlProtocol.startLoading()
            }
            #expect(SilentProtocol.starts(of: passing.task) == 0)
        }

        /// The same for what passes through to Foundation's own class.
        @Test func aPassingLoadThatIsSuspendedDoesNotStart() async throws {
            let load = try LoadByHand(memoryCapacity: 0, method: "POST")
            load.queue.sync { load.urlProtocol.startLoading() }
            #expect(SilentProtocol.starts(of: load.task) == 0)
            load.task.resume()
            load.queue.sync { load.urlProtocol.startLoading() }
            // Foundation started one of its own, too.
            #expect(SilentProtocol.starts(of: load.task) == 1)
        }
    #endif
}

#if canImport(FoundationNetworking)
    /// A loader whose calls the test makes; the task's own protocol does nothing. The answer "a" is stored.
    private final class LoadByHand {
        let task: URLSessionDataTask
        let queue: DispatchQueue
        let urlProtocol: CachingURLProtocol
        private let client = RecordingClient()
        private let harness: LoadingHarness
        private let session: URLSession

        init(memoryCapacity: Int, method: String = "GET") throws {
            harness = try LoadingHarness(memoryCapacity: memoryCapacity)
            var request = Responses.request("/a")
            harness.cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "a"), for: request)
            harness.cache.flush()
            let configuration = URLSessionConfiguration.ephemeral.patient
            configuration.urlCache = harness.cache
            configuration.protocolClasses = [SilentProtocol.self]
            session = URLSession(configuration: configuration)
            request.httpMethod = method
            task = session.dataTask(with: request)
            queue = try #require(SessionLink(task)?.workQueue)
            urlProtocol = CachingURLProtocol(task: task, cachedResponse: nil, client: client)
        }

        deinit {
            session.invalidateAndCancel()
        }

        /// Until the task's client has heard of it.
        func cancelByFoundation() async {
            task.cancel()
            await eventually("the end of the cancelled task") { task.error != nil }
            queue.sync {}
        }

        /// A load has begun, and will tell its client.
        var hasStarted: Bool {
            queue.sync {
                Mirror(reflecting: urlProtocol).children.contains { $0.label == "port" && "\($0.value)" != "nil" }
            }
        }

        /// False when no end was told.
        func waitForEnd() -> Bool { client.end.isSignalled("the end of the load") }

        /// Nil until the end was told.
        var body: Data? { queue.sync { client.hasEnded ? client.data : nil } }
    }

    private final class SilentProtocol: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { true }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
        override func stopLoading() {}

        /// Tasks whose loads the loader passed on to this class.
        private static let passed = Mutex<[ObjectIdentifier]>([])

        static func starts(of task: URLSessionTask) -> Int {
            passed.withLock { $0.count { $0 == ObjectIdentifier(task) } }
        }

        override func startLoading() {
            guard client is PassThrough, let task else { return }
            Self.passed.withLock { $0.append(ObjectIdentifier(task)) }
        }
    }

    /// `@unchecked Sendable`: used on the protocol's queue only.
    private final class RecordingClient: NSObject, URLProtocolClient, @unchecked Sendable {
        var data = Data()
        var hasEnded = false {
            didSet { end.signal() }
        }
        let end = DispatchSemaphore(value: 0)

        func urlProtocol(
            _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
        ) {}
        func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}
        func urlProtocol(
            _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
        ) {}
        func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) { self.data += data }
        func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { hasEnded = true }
        func urlProtocol(_ protocol: URLProtocol, didFailWithError error: Error) { hasEnded = true }
        func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {}
        func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
    }
#endif

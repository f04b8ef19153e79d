import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client that calls back instead of being awaited: `DiskURLCache.CallbackTransport`.
@Suite(.fewAtATime) struct CallbackTransportTests {
    /// Hands out the receivers, for a test to call them as it likes.
    private final class ManualTransport: DiskURLCache.CallbackTransport {
        private let state = Mutex((receivers: [DiskURLCache.Receiver](), cancelled: 0))
        private let answer: @Sendable (DiskURLCache.Receiver) -> Void

        /// - Parameter answer: called inside `start`.
        init(_ answer: @escaping @Sendable (DiskURLCache.Receiver) -> Void = { _ in }) { self.answer = answer }

        var count: Int { state.withLock { $0.receivers.count } }
        var cancelled: Int { state.withLock { $0.cancelled } }

        func start(
            _ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver
        ) -> @Sendable () -> Void {
            state.withLock { $0.receivers.append(receiver) }
            answer(receiver)
            return { self.state.withLock { $0.cancelled += 1 } }
        }

        /// The receiver of the first request.
        func receiver() async throws -> DiskURLCache.Receiver {
            await eventually("a request") { count > 0 }
            return try #require(state.withLock { $0.receivers.first })
        }
    }

    let cache: DiskURLCache
    private let scratch: ScratchDirectory
    private let request = Responses.request("/a")
    private let head = DiskURLCache.Head(status: 200, fields: [("Cache-Control", "max-age=60")])

    init() throws {
        scratch = try ScratchDirectory("callback-transport")
        cache = DiskURLCache(in: scratch, clock: ManualClock(), memory: 64 << 20, disk: 64 << 20)
    }

    @Test(arguments: [true, false]) func whatIsCalledBackIsDeliveredAndStored(insideStart: Bool) async throws {
        @Sendable func answer(_ receiver: DiskURLCache.Receiver) {
            receiver.receive(DiskURLCache.Head(status: 103, fields: []))
            receiver.receive(head)
            for piece in ["one", "", "two"] {
                let proceeds = Flag()
                receiver.receive(Data(piece.utf8)) { proceeds.set() }
                #expect(proceeds.value, "nothing is slow here")
            }
            receiver.finish()
            receiver.finish(throwing: URLError(.unknown))
            receiver.receive(Data("late".utf8)) {}
        }
        let transport = ManualTransport { if insideStart { answer($0) } }
        async let text = cache.load(request, through: transport).pieces().joined()
        if !insideStart { answer(try await transport.receiver()) }
        #expect(try await text == "onetwo")
        #expect(try await cache.load(request, through: transport).pieces() == ["onetwo"])
        #expect(transport.count == 1 && transport.cancelled == 0)
    }

    @Test func anErrorIsTheLoadsError() async throws {
        struct Trouble: Error {}
        let transport = ManualTransport { $0.finish(throwing: Trouble()) }
        await #expect(throws: Trouble.self) { try await cache.load(request, through: transport) }
        #expect(!cache.contains(request) && transport.cancelled == 0)
    }

    @Test func aReaderThatGoesCancelsTheRequestOnce() async throws {
        let transport = ManualTransport { [head] in $0.receive(head) }
        var stream: DiskURLCache.ResponseStream? = try await cache.load(request, through: transport)
        #expect(stream?.response.statusCode == 200 && transport.cancelled == 0)
        stream = nil
        await eventually("the cancellation") { transport.cancelled == 1 }
        // What still comes is ignored.
        let receiver = try await transport.receiver()
        receiver.receive(Data("late".utf8)) {}
        receiver.finish()
        #expect(!cache.contains(request) && transport.cancelled == 1)
    }

    /// The client may call the receiver again inside the call that lets it proceed.
    @Test func aSlowReaderHoldsTheClientUp() async throws {
        let piece = Data(repeating: 97, count: 1 << 20)
        let left = Mutex(16)
        @Sendable func next(_ receiver: DiskURLCache.Receiver) {
            let isOver = left.withLock { left in
                left -= 1
                return left < 0
            }
            if isOver { return receiver.finish() }
            receiver.receive(piece) { next(receiver) }
        }
        let transport = ManualTransport { receiver in
            receiver.receive(DiskURLCache.Head(status: 200, fields: [("Cache-Control", "no-store")]))
            next(receiver)
        }
        let stream = try await cache.load(request, through: transport)
        #expect(left.withLock { $0 } > 0, "nobody has read yet")
        var bytes = 0
        for try await piece in stream { bytes += piece.count }
        #expect(bytes == 16 << 20)
    }

    /// An event loop calls for all requests: what one answer writes holds up no other.
    @Test func noFileIsWrittenInsideACall() async throws {
        let caller = DispatchQueue(label: "event loop")
        let key = DispatchSpecificKey<Bool>()
        caller.setSpecific(key: key, value: true)
        let writes = Mutex((count: 0, inCall: 0))
        let files = FaultyFileSystem { call in
            let isInCall = DispatchQueue.getSpecific(key: key) == true
            if call.operation == .write {
                writes.withLock {
                    $0.count += 1
                    if isInCall { $0.inCall += 1 }
                }
            }
            return nil
        }
        let own = try ScratchDirectory("callback-files")
        let cache = DiskURLCache(in: own, clock: ManualClock(), memory: 64 << 20, disk: 64 << 20) {
            $0.fileSystem = files
        }
        for (path, bytes) in [("/small", 100), ("/large", 3 << 20)] {
            let transport = ManualTransport { [head] receiver in
                caller.async {
                    receiver.receive(head)
                    receiver.receive(Data(count: bytes)) { caller.async { receiver.finish() } }
                }
            }
            let request = Responses.request(path)
            for try await _ in try await cache.load(request, through: transport) {}
            #expect(cache.contains(request))
        }
        #expect(writes.withLock { $0.count > 1 && $0.inCall == 0 })
    }

    #if canImport(FoundationNetworking)
        @Test(.enabled(if: LoadingHarness.storesForSessions)) func aSessionLoadsThroughIt() async throws {
            let transport = ManualTransport { [head] receiver in
                receiver.receive(head)
                receiver.receive(Data("body".utf8)) { receiver.finish() }
            }
            let session = try cache.makeSession(configuration: .ephemeral.patient, through: transport)
            defer { session.invalidateAndCancel() }
            for _ in 0..<2 {
                #expect(try await session.data(for: request).0 == Data("body".utf8))
            }
            #expect(transport.count == 1)
        }
    #endif
}

import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client that calls back instead of being awaited: `DiskURLCache.CallbackTransport`.
@Suite(.fewAtATime) struct CallbackTransportTests {
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
        let left = Guarded(16)
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

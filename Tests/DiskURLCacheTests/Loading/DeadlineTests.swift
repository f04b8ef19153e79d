import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the end of the time for a head does, and what it leaves alone.
@Suite(.fewAtATime) struct DeadlineTests {
    private let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let files = FaultyFileSystem()
    private let cache: DiskURLCache
    private let exchanges = Exchanges()
    private let request = Responses.request("/a")

    init() throws {
        scratch = try ScratchDirectory("deadline")
        cache = DiskURLCache(in: scratch, clock: clock, memory: 8 << 20, disk: 64 << 20) { [files] in
            $0.fileSystem = files
        }
    }

    private func fill(_ status: Int, _ fields: [String: String]) throws {
        let response = Responses.http(try #require(request.url), status: status, fields: fields)
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("old".utf8)), for: request)
        cache.flush()
        clock.advance(by: 100)
    }

    /// A 304 has come, and the disk stands still while its head is written: nobody who waits is woken before that.
    @Test func whoWaitsIsNotWokenBeforeTheChange() async throws {
        try fill(200, ["Cache-Control": "max-age=60", "ETag": "\"1\""])
        let gate = Gate()
        defer { gate.open() }
        let network = exchanges.network()
        let first = LoadReader(request, from: cache, over: network, acceptsPieces: true)
        let exchange = await exchanges.next(1)
        let second = LoadReader(request, from: cache, over: network, acceptsPieces: true)
        await cache.untilLoadsWait(1)
        let isHeld = Flag()
        files.rule = { call in
            guard call.isRecord, call.operation == .open || call.operation == .write else { return nil }
            isHeld.set()
            gate.wait()
            return nil
        }
        // The change may be made where the answer arrives.
        Thread.detachNewThread {
            exchange.head(304, ["Cache-Control": "max-age=60", "ETag": "\"1\""])
            exchange.end()
        }
        await isHeld.isSet()
        first.driver?.endTimeForHead(of: 0.05)
        let leads = first.driver?.state.withLock { if case .leads = $0.sharing { true } else { false } }
        #expect(leads == true)
        gate.open()
        #expect(try await first.next() == Data("old".utf8))
        #expect(try await second.next() == Data("old".utf8))
        #expect(network.requests.count == 1)
    }

    /// It is given where the time ends, however many lookups wait for a slow disk. The app is not asked there whether a
    /// redirect is followed.
    @Test(arguments: [200, 302]) func aStandInFromMemoryWaitsForNothing(status: Int) async throws {
        try fill(status, ["Cache-Control": "max-age=60, stale-if-error=600", "Location": "/b"])
        let thread = Mutex<Thread?>(nil)
        let network = exchanges.network()
        let reader = LoadReader(
            cache.core.resolve(DiskURLCache.Request(request), variant: network.keyVariant), from: cache.core,
            over: network, acceptsPieces: true,
            redirect: { _, _, _ in
                thread.withLock { $0 = Thread.current }
                return nil
            })
        _ = await exchanges.next(1)
        let driver = try #require(reader.driver)
        let (hasEnded, own) = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                driver.endTimeForHead(of: Patience.ofLoads)
                let hasEnded = driver.state.withLock { $0.machine.hasEnded }
                continuation.resume(returning: (hasEnded, Thread.current))
            }
        }
        if status == 200 { #expect(hasEnded) }
        let head = try await reader.head()
        #expect(head.status == status)
        #expect(reader.report.outcome == .staleHit(.memory, because: .staleIfError))
        #expect(thread.withLock { $0 } !== own && (thread.withLock { $0 } != nil) == (status == 302))
    }
}

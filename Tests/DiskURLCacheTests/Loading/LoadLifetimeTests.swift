import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

/// A load that has ended is kept by nobody: not its transport, not its body.
@Suite(.fewAtATime) struct LoadLifetimeTests {
    enum Way: CaseIterable, Sendable {
        case stored, notStored, inFile, hit, revalidated, refreshed, redirected, shared
        case failed, cutShort, headless, timedOut, cancelled, notRead
    }

    let cache: DiskURLCache
    let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let request = Responses.request("/a")

    init() throws {
        scratch = try ScratchDirectory("lifetime")
        cache = DiskURLCache(in: scratch, clock: clock, memory: 64 << 20, disk: 64 << 20)
    }

    @Test(arguments: Way.allCases) func nothingIsLeftOfALoad(_ way: Way) async throws {
        weak var transport: ClosureTransport?
        do {
            let made = self.transport(for: way)
            transport = made
            try await load(way, through: made)
        }
        // Whatever sent the request may be about to end, and a refresh goes on by itself.
        await eventually("the release of the transport") { transport == nil }
    }

    /// The app may look at the head only.
    @Test(arguments: [0, 1_000]) func aStreamThatIsDroppedAfterTheEndIsReleased(bytes: Int) async throws {
        weak var core: CacheCore?
        do {
            let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
            core = cache.core
            let events = cache.events()
            let transport = ClosureTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "no-store"])
                await exchange.receiver.receive(Data(count: bytes))
            }
            let stream = try await cache.load(request, through: transport)
            _ = await events.report()
            #expect(stream.response.statusCode == 200)
        }
        await eventually("the release of the cache") { core == nil }
    }

    private func transport(for way: Way) -> ClosureTransport {
        ClosureTransport { request, exchange in
            let isKnown = request.value(forHTTPHeaderField: "If-None-Match") != nil
            switch way {
            case .failed: throw URLError(.networkConnectionLost)
            case .headless: return
            case .timedOut, .cancelled: return await exchange.untilCancelled()
            case .redirected where request.url?.path == "/a": return exchange.head(302, ["Location": "/b"])
            case .notStored: exchange.head(200, ["Cache-Control": "no-store"])
            default:
                exchange.head(
                    isKnown ? 304 : 200, ["ETag": "\"1\"", "Cache-Control": "max-age=60, stale-while-revalidate=60"])
            }
            if isKnown { return }
            if way == .shared {
                await cache.untilLoadsWait(1)
            }
            await exchange.receiver.receive(Data(count: way == .inFile ? 4 << 20 : 1_000))
            if way == .cutShort { throw URLError(.networkConnectionLost) }
            if way == .notRead { await exchange.untilCancelled() }
        }
    }

    private func load(_ way: Way, through transport: ClosureTransport) async throws {
        let request = way == .timedOut ? request.impatient : request
        switch way {
        case .stored, .notStored, .inFile, .redirected:
            _ = try await cache.load(request, through: transport).pieces()
        case .hit, .revalidated, .refreshed:
            _ = try await cache.load(request, through: transport).pieces()
            let ages: [Way: TimeInterval] = [.hit: 1, .refreshed: 90, .revalidated: 1_000]
            clock.advance(by: ages[way] ?? 0)
            let stream = try await cache.load(request, through: transport)
            _ = try await stream.pieces()
            let outcomes: [Way: DiskURLCache.Report.Outcome] = [
                .hit: .hit(.memory), .revalidated: .revalidated(.memory),
                .refreshed: .staleHit(.memory, because: .staleWhileRevalidate),
            ]
            #expect(stream.report.outcome == outcomes[way])
        case .shared:
            async let first = cache.load(request, through: transport).pieces()
            async let second = cache.load(request, through: transport).pieces()
            #expect(try await first == second && transport.requests.count == 1)
        case .notRead: _ = try await cache.load(request, through: transport)
        case .cancelled:
            let load = Task { [cache, request] in try await cache.load(request, through: transport).pieces() }
            await eventually("a request") { !transport.requests.isEmpty }
            load.cancel()
            await #expect(throws: CancellationError.self) { try await load.value }
        case .failed, .cutShort, .headless, .timedOut:
            await #expect(throws: URLError.self) { try await cache.load(request, through: transport).pieces() }
        }
    }
}

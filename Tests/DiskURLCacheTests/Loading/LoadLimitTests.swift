import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a load may take: memory, and time.
@Suite(.fewAtATime) struct LoadLimitTests {
    let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let request = Responses.request("/a")

    init() throws {
        scratch = try ScratchDirectory("hunt")
    }

    private final class Body: DiskURLCache.Transport {
        let status: Int
        let fields: [(name: String, value: String)]
        let pieces: Int
        let waits: @Sendable () async -> Void
        let hasEnded = Flag()

        init(
            status: Int, fields: [(name: String, value: String)], pieces: Int,
            waits: @escaping @Sendable () async -> Void = {}
        ) {
            self.status = status
            self.fields = fields
            self.pieces = pieces
            self.waits = waits
        }

        func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
            await waits()
            if request.foundationURL?.path == "/b" {
                receiver.receive(DiskURLCache.Head(status: 200, fields: []))
                return
            }
            receiver.receive(DiskURLCache.Head(status: status, fields: fields))
            defer { hasEnded.set() }
            for _ in 0..<pieces {
                await receiver.receive(Data(count: 1 << 20))
                try Task.checkCancellation()
            }
        }
    }

    /// The leader's reader stops reading, and the body is more than may be stored: the load that waits asks for itself.
    @Test(arguments: [true, false]) func aReaderThatStopsHoldsUpNobodyElse(saysLength: Bool) async throws {
        let cache = DiskURLCache(in: scratch, clock: clock, memory: 2 << 20, disk: 8 << 20)
        let isFirst = Mutex(true)
        let transport = Body(
            status: 200,
            fields: [("Cache-Control", "max-age=60")] + (saysLength ? [("Content-Length", "\(16 << 20)")] : []),
            pieces: 16
        ) {
            if isFirst.disarm() { await cache.untilLoadsWait(1) }
        }
        let leader = Task { try await cache.load(request, through: transport) }
        await cache.untilRefreshed()
        let follower = Task {
            var count = 0
            for try await piece in try await cache.load(request, through: transport) { count += piece.count }
            return count
        }
        let first = try await leader.value
        #expect(try await follower.value == 16 << 20)
        withExtendedLifetime(first) {}
    }

    /// The body of a redirect that is followed: more than may be stored is of no use.
    @Test func aRedirectsBodyIsNotGatheredWithoutEnd() async throws {
        let cache = DiskURLCache(in: scratch, clock: clock, memory: 2 << 20, disk: 8 << 20)
        let transport = Body(status: 302, fields: [("Location", "/b")], pieces: .max)
        let error = await #expect(throws: URLError.self) { try await cache.load(request, through: transport) }
        #expect(error?.code == .dataLengthExceedsMaximum)
        await eventually("the end of the sending") { transport.hasEnded.value }
    }

    /// No reader would end a refresh in the background, and no other refresh of its key begins before it ends.
    @Test(arguments: ["no-store", "too long", "longer and longer", "a trickle", "silence"])
    func aRefreshWhoseBodyNeverEndsIsEnded(kind: String) async throws {
        let cache = DiskURLCache(in: scratch, clock: clock, memory: 2 << 20, disk: 8 << 20)
        let exchanges = Exchanges()
        let network = exchanges.network()
        var request = request
        let isUnknown = kind == "a trickle" || kind == "silence"
        request.timeoutInterval = isUnknown ? 0.05 : Patience.ofLoads
        let fields: HeaderFields = ["Cache-Control": "max-age=60, stale-while-revalidate=600"]
        let first = LoadReader(self.request, from: cache, over: network)
        let answer = await exchanges.next(1)
        answer.head(200, fields)
        answer.piece("old")
        answer.end()
        _ = try await first.answer()
        clock.advance(by: 100)
        #expect(try await LoadReader(request, from: cache, over: network).answer().isStale)
        let refresh = await exchanges.next(2)
        switch kind {
        case "silence": break
        case "no-store": refresh.head(200, ["Cache-Control": "no-store"])
        case "too long":
            refresh.head(
                200, ["Cache-Control": "max-age=60", "Content-Length": "\(cache.store.largestStorableBody + 1)"])
        case "longer and longer":
            refresh.head(200, fields)
            while cache.isRefreshing { refresh.piece(Data(count: 1 << 20)) }
        default:
            refresh.head(200, fields)
            while cache.isRefreshing {
                refresh.piece("drop")
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        await eventually("the cancellation and the end of the refresh") {
            network.cancelled == 1 && !cache.isRefreshing
        }
        // An answer that is not stored replaces the older one; of one that was given up nothing is known.
        #expect((cache.cachedResponse(for: request) != nil) == isUnknown)
    }

    /// The time for a head is over while the disk stands still: in the lookup, or in the reading of the stored response
    /// that would be the answer.
    @Test(arguments: ["fresh", "stale", "instead of the network"])
    func aLoadEndsInTimeAlthoughTheDiskStandsStill(stored: String) async throws {
        let gate = Gate()
        let isHeld = Flag()
        let files = FaultyFileSystem { call in
            guard isHeld.value, call.isRecord else { return nil }
            gate.wait()
            return nil
        }
        defer { gate.open() }
        let cache = DiskURLCache(in: scratch, clock: clock, memory: 1 << 20, disk: 64 << 20) { $0.fileSystem = files }
        let isStandIn = stored == "instead of the network"
        cache.storeCachedResponse(
            CachedURLResponse(
                response: Responses.http(
                    Responses.url("/a"),
                    fields: ["Cache-Control": "max-age=60, " + (isStandIn ? "stale-if-error=600" : "must-revalidate")]),
                data: Data(count: 2 << 20)),
            for: request)
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        if stored != "fresh" { clock.advance(by: 100) }
        if !isStandIn { isHeld.set() }
        let exchanges = Exchanges()
        let reader = LoadReader(
            request, from: cache, over: exchanges.network(), acceptsPieces: true, timeout: isStandIn ? nil : 0.05)
        let head = Task { try await reader.head().status }
        let begin = ContinuousClock.now
        if isStandIn {
            // The test says when the time is over.
            _ = await exchanges.next(1)
            isHeld.set()
            reader.driver?.endTimeForHead(of: 0.05)
        }
        let error = await #expect(throws: URLError.self) { try await head.value }
        #expect(error?.code == .timedOut)
        // A time that is short for the network is not that of the disk.
        if isStandIn { #expect(ContinuousClock.now - begin >= .seconds(1)) }
        #expect(exchanges.all.withLock { $0.count } == (isStandIn ? 1 : 0))
        #expect(reader.report.outcome.description.contains("failed"))
    }

    /// However many lookups wait for a slow disk, or for a storage on another machine.
    @Test func aDeadlineDoesNotWaitForLookups() async throws {
        final class Held: DiskURLCache.EntryStorage {
            let gate = Gate()
            func entries(named name: String) -> [DiskURLCache.Entry]? {
                gate.wait()
                return []
            }
            func store(_ entry: DiskURLCache.Entry, named name: String) {}
            func removeEntries(matching criteria: DiskURLCache.Criteria) {}
            func flush() {}
        }
        let storage = Held()
        defer { storage.gate.open() }
        var configuration = DiskURLCache.Configuration()
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        let network = Exchanges().network()
        let readers = (0..<100).map { number in
            LoadReader(Responses.request("/\(number)"), from: cache, over: network, acceptsPieces: true)
        }
        let late = LoadReader(request, from: cache, over: network, acceptsPieces: true, timeout: 0.05)
        let isOver = Flag()
        let head = Task {
            defer { isOver.set() }
            return try await late.head().status
        }
        await eventually("the end of the time") { isOver.value }
        storage.gate.open()
        let error = await #expect(throws: URLError.self) { try await head.value }
        #expect(error?.code == .timedOut)
        withExtendedLifetime(readers) {}
    }
}

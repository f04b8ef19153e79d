import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("A simulation tells what a cache with another capacity would have answered", .fewAtATime) struct SimulationTests
{
    private typealias Simulation = DiskURLCache.Simulation

    private func load(
        _ path: String?, _ outcome: DiskURLCache.Report.Outcome, bytes: Int = 1_000, isStored: Bool? = nil,
        refusal: DiskURLCache.Reason? = nil
    ) -> (date: Date, event: DiskURLCache.Event) {
        let report = DiskURLCache.Report(
            url: path.map { URL(string: "https://example.com/\($0)")! }, method: "GET", outcome: outcome, status: 200,
            bytes: bytes, age: nil, duration: 0, startedAt: Date(), requestedAt: nil, respondedAt: nil,
            isStored: isStored, notStoredReason: refusal, isCollapsed: false, error: nil, cacheStatus: "")
        return (Date(), .load(report))
    }

    @Test func aLargerCacheAnswersWhatTheRealOneHadEvicted() {
        let miss = DiskURLCache.Report.Outcome.miss(.notInCache)
        let log = ["a", "b", "c", "a", "b", "c"].map { load($0, miss, isStored: true) }
        let simulation = Simulation(log)
        #expect(simulation.requests == 6 && simulation.responses == 3 && simulation.bytes == 6_000)
        #expect(simulation.run(capacity: 0).hits == 0)
        // Two of them, as in a loop: least recently used is the one that is next.
        #expect(simulation.run(capacity: 10_000).hits == 0)
        #expect(simulation.run(capacity: simulation.bytesOnDisk).hits == 3)
        #expect(simulation.run(capacity: .max).bytesFromCache == 3_000)
    }

    @Test func aSmallerCacheLoadsWhatTheRealOneHad() {
        let log = [load("a", .miss(.notInCache), isStored: true)] + ["a", "a"].map { load($0, .hit(.memory)) }
        #expect(Simulation(log).run(capacity: .max).hits == 2)
        #expect(Simulation(log).run(capacity: 0).hits == 0)
    }

    /// A response that had expired, or is never stored, needs a new answer whatever the capacity is.
    @Test func whatNoCapacityAnswersIsNoHit() {
        let log = [
            load("a", .miss(.notInCache), isStored: true), load("a", .expired(.stale), isStored: true),
            load("a", .revalidated(.disk)), load("a", .miss(.cachePolicy), isStored: true),
            load("b", .miss(.notInCache), isStored: false, refusal: .noStore),
            load("b", .miss(.notInCache), isStored: false, refusal: .noStore),
            load("a", .bypass(.never)), load("a", .failed), load(nil, .hit(.disk)),
        ]
        let simulation = Simulation(log)
        #expect(simulation.requests == 6 && simulation.responses == 1)
        #expect(simulation.run(capacity: .max).hits == 1)
    }

    /// What was too large for the real cache is stored in one that is large enough.
    @Test func theLargestEntryGrowsWithTheCapacity() {
        let log = (0..<3).map { _ in
            load("a", .miss(.notInCache), bytes: 1 << 20, isStored: false, refusal: .tooLarge)
        }
        #expect(
            Simulation(log).run(capacity: 2 << 20).hits == 0 && Simulation(log).run(capacity: 2 << 20).tooLarge == 1)
        #expect(Simulation(log).run(capacity: Simulation(log).bytesOnDisk).hits == 2)
        #expect(Simulation(log).run(capacity: Simulation(log).bytesOnDisk).tooLarge == 0)
    }

    @Test func absurdSizesOverflowNothing() {
        let log = (0..<100).map { load("\($0 % 3)", .hit(.disk), bytes: .max - $0) }
        let simulation = Simulation(log)
        for capacity in [Int.min, -1, 0, 1, .max] { #expect(simulation.run(capacity: capacity).hits <= 97) }
    }

    /// Requests by Zipf's law for responses of very different sizes, played through a real cache with a log: the
    /// simulation with the cache's own capacity finds as many hits, and with the other policy as many as a cache that
    /// has it.
    @Test func theSimulationComesToTheHitsOfARealCache() async throws {
        let scratch = try ScratchDirectory()
        let capacity = 3 << 20
        var hits: [Bool: Int] = [:]
        var simulations: [Simulation] = []
        for weighs in [false, true] {
            var settings = DiskURLCache.Configuration(
                memoryCapacity: 0, diskCapacity: capacity, directory: scratch.appending("\(weighs)"))
            settings.evictionWeighsSize = weighs
            let cache = DiskURLCache(configuration: settings)
            let file = scratch.appending("log \(weighs)")
            let log = DiskURLCache.EventLog(cache, file: file, limit: 1 << 30)
            var random = TestRandom(7)
            for number in 0..<Self.requests {
                let item = Int(pow(600, Double.random(in: 0..<1, using: &random)))
                var request = Responses.request("/\(item)")
                request.timeoutInterval = Patience.ofLoads
                let stream = try await cache.load(
                    DiskURLCache.Request(request), through: Sized(length: Self.length(of: item)))
                for try await _ in stream {}
                if number % 10 == 0 { cache.flush() }
            }
            log.flush()
            let statistics = cache.statistics
            hits[weighs] = statistics.diskHits + statistics.memoryHits
            simulations.append(Simulation(DiskURLCache.EventLog.entries(in: file)))
        }
        for simulation in simulations {
            #expect(simulation.requests == Self.requests)
            for weighs in [false, true] {
                let expected = try #require(hits[weighs])
                let found = simulation.run(capacity: capacity, evictionWeighsSize: weighs).hits
                #expect(abs(found - expected) * 50 <= simulation.requests, "\(found) instead of \(expected)")
            }
        }
        #expect(try #require(hits[true]) > #require(hits[false]))
    }

    private static let requests = TestLength.pick(plain: 600, long: 1_500)

    /// From 100 bytes to 200 KB, the same for each item.
    private static func length(of item: Int) -> Int {
        var random = TestRandom(item)
        return Int(100 * pow(2_000, Double.random(in: 0..<1, using: &random)))
    }

    private struct Sized: DiskURLCache.Transport {
        let length: Int

        func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
            receiver.receive(DiskURLCache.Head(status: 200, fields: [("Cache-Control", "max-age=100000")]))
            await receiver.receive(Data(repeating: 1, count: length))
        }
    }
}

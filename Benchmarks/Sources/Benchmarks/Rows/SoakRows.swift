import DiskURLCache
import Foundation
import Histogram

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Many clients for a minute, with hits, misses, 304s and cancellations at once. No load may be lost, and memory must
/// not grow.
///
/// Runs in its own process: first a round that fills the cache and Foundation's own stores, then the round that counts.
enum SoakRows {
    static let groups = [Group("256 clients", run: run)]

    private static let clients = 256
    private static let bytes = 4 << 10

    private enum Kind: String, CaseIterable, Codable {
        case hit, miss
        case revalidation = "304"
        case notStored = "no-store"
        case cancelled
    }

    /// The result of a round.
    private struct Outcome: Codable {
        /// The microseconds of the loads that ended with an answer, including those that were cancelled too late.
        var times: [Kind: Histogram<UInt64>]
        var cancelled = 0
        var failed = 0
        /// Loads that began and did not end.
        var lost = 0
        var heapGrowth = 0
        var descriptorGrowth = 0

        /// All memory for counting is allocated here, so that counting does not add to the growth.
        init() {
            times = Dictionary(
                uniqueKeysWithValues: Kind.allCases.map { ($0, Histogram(highestTrackableValue: 600_000_000)) })
        }

        var loads: Double { Double(times.values.reduce(0) { $0 + $1.totalCount }) }
    }

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let origin = try OriginProcess()
        let seconds = options.isQuick ? 5 : 60
        let (ours, stock) = (
            try Child.value(Outcome.self, of: ["soak", origin.base, "\(seconds)", scratch.folder("soak").path]),
            try Child.value(Outcome.self, of: ["soak", origin.base, "\(seconds)", "stock"])
        )
        let rates = [ours, stock].map { Samples(name: "stock", [$0.loads / Double(seconds)]) }
        var rate = Row("soak: loads", value: rates[0].median, unit: "/s")
        rate.compare(with: rates[1], target: nil)
        rate.note = "\(clients) clients for \(seconds) s; \(ours.cancelled) loads were cancelled before they ended."
        report.add(rate)
        for kind in Kind.allCases where kind != .cancelled { report.add(latency(kind, ours, stock)) }
        for (name, value, target) in [
            ("loads that failed", \.failed, 0), ("loads that never ended", \.lost, 0),
            // A session keeps up to six connections, more or fewer of them from one moment to the next.
            ("growth of open descriptors", \.descriptorGrowth, 6),
        ] as [(String, KeyPath<Outcome, Int>, Double)] {
            report.add(
                Row(
                    "soak: \(name)", value: Double(ours[keyPath: value]), unit: "", target: target,
                    note: "Stock: \(stock[keyPath: value])."))
        }
        let growth = [ours, stock].map { Samples(name: "stock", [Double($0.heapGrowth) / $0.loads]) }
        var heap = Row("soak: growth of the heap for each load", value: growth[0].median, unit: "B")
        heap.compare(with: growth[1], target: 1.1)
        heap.note = "Foundation keeps memory of each load for good, so stock's growth is the bound."
        report.add(heap)
    }

    private static func latency(_ kind: Kind, _ ours: Outcome, _ stock: Outcome) -> Row {
        func value(_ outcome: Outcome, _ percentile: Double) -> Double {
            Double(outcome.times[kind]!.valueAtPercentile(percentile))
        }
        var row = Row("soak: \(kind.rawValue)", value: value(ours, 50), unit: "µs")
        row.p99 = value(ours, 99)
        row.n = Int(ours.times[kind]!.totalCount)
        row.compare(with: Samples(name: "stock", [value(stock, 50)]), target: nil)
        let percentiles = [ours, stock].map { outcome in
            [90, 99, 99.9, 100].map { value(outcome, $0).short }.joined(separator: ", ")
        }
        row.note = "p90, p99, p99.9, longest: \(percentiles[0]) µs; stock \(percentiles[1]) µs"
        return row
    }

    static func child(_ arguments: [String]) throws {
        let (base, seconds, directory) = (arguments[0], Double(arguments[1])!, arguments[2])
        // Small enough to be full after the first round, so that neither the layers nor the index grow afterwards.
        let client =
            directory == "stock"
            ? Client.stock()
            : Client.cached(URL(fileURLWithPath: directory), memoryCapacity: 4 << 20, diskCapacity: 16 << 20)
        let (first, second) = (Tally(firstMiss: 0), Tally(firstMiss: 1 << 30))
        soak(client, base, seconds: min(15, seconds), first)
        let (heap, descriptors) = (Memory.heapBytes(), try Memory.openDescriptors())
        soak(client, base, seconds: seconds, second)
        let growth = (Memory.heapBytes() - heap, try Memory.openDescriptors() - descriptors)
        var outcome = second.outcome
        outcome.lost += first.outcome.lost
        (outcome.heapGrowth, outcome.descriptorGrowth) = growth
        try Child.print(outcome)
    }

    private static func soak(_ client: Client, _ base: String, seconds: Double, _ tally: Tally) {
        let end = Date(timeIntervalSinceNow: seconds)
        for number in 0..<clients {
            Task {
                var generator = SeededGenerator(seed: UInt64(number))
                while Date() < end { await load(client, base, tally, &generator) }
            }
        }
        Thread.sleep(until: end)
        // A load that has not ended half a minute later will never end.
        for _ in 0..<300 where !tally.isIdle { usleep(100_000) }
        client.cache?.flush()
        // Time for Foundation's own queues to become idle.
        sleep(1)
    }

    private static func load(
        _ client: Client, _ base: String, _ tally: Tally, _ generator: inout SeededGenerator
    ) async {
        let kinds: [Kind] = [.hit, .hit, .hit, .hit, .miss, .miss, .revalidation, .notStored, .cancelled]
        let kind = kinds.randomElement(using: &generator)!
        let request =
            switch kind {
            case .hit: OriginProcess.request(base, .stored, bytes: bytes, .random(in: 0..<200, using: &generator))
            case .revalidation:
                OriginProcess.request(base, .revalidated, bytes: bytes, .random(in: 0..<100, using: &generator))
            case .notStored: OriginProcess.request(base, .noStore, bytes: bytes, tally.nextMiss())
            case .miss, .cancelled:
                OriginProcess.request(base, .stored, bytes: bytes, tally.nextMiss(), for: kind.rawValue)
            }
        let patience = DispatchTimeInterval.microseconds(.random(in: 0..<5_000, using: &generator))
        tally.begin()
        let start = Measure.nanoseconds()
        let isWhole = await withCheckedContinuation { continuation in
            let task = client.session.dataTask(with: request) { data, _, error in
                continuation.resume(returning: error == nil && data?.count == bytes)
            }
            task.resume()
            // The URLSession task is cancelled, not a Swift task that awaits `data(for:)`: Foundation's own
            // `data(for:)` deadlocks now and then when it is cancelled, since it waits for its queue under a lock that
            // this queue needs to resume the task.
            if kind == .cancelled { DispatchQueue.global().asyncAfter(deadline: .now() + patience) { task.cancel() } }
        }
        tally.end(kind, (Measure.nanoseconds() - start) / 1_000, isWhole: isWhole)
    }

    private final class Tally: @unchecked Sendable {
        // @unchecked: all is reached only under the lock.
        private let lock = NSLock()
        private var counted = Outcome()
        private var miss: Int

        init(firstMiss: Int) {
            miss = firstMiss
        }

        func nextMiss() -> Int {
            lock.withLock {
                miss += 1
                return miss
            }
        }

        func begin() { lock.withLock { counted.lost += 1 } }

        func end(_ kind: Kind, _ microseconds: UInt64, isWhole: Bool) {
            lock.withLock {
                counted.lost -= 1
                if isWhole {
                    counted.times[kind]!.record(microseconds)
                } else if kind == .cancelled {
                    counted.cancelled += 1
                } else {
                    counted.failed += 1
                }
            }
        }

        var isIdle: Bool { lock.withLock { counted.lost == 0 } }
        var outcome: Outcome { lock.withLock { counted } }
    }
}

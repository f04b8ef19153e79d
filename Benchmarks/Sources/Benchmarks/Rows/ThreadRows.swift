import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Memory hits on two threads at once against one: what the locks cost each other.
enum ThreadRows {
    static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = 1_000
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: 64 << 20, directory: scratch.folder("threads"))
        let requests = (0..<count).map(Content.request)
        let body = Content.body(1 << 10)
        for request in requests {
            cache.storeCachedResponse(Content.cached(request.url!, body), for: request)
        }
        cache.flush()
        let loops = 50
        // Each thread has requests of its own, as callers do: a shared one is a contended reference count.
        // In an order of its own: two threads that walk in step would meet at every entry.
        let own = (0..<2).map { Content.sample(of: count, seed: UInt64($0)) }
        let work: @Sendable (Int) -> Void = { thread in
            for _ in 0..<loops {
                for request in own[thread] { consume(cache.cachedResponse(for: request)) }
            }
        }
        let samples = try Measure.alternately(
            rounds: options.rounds(60),
            [
                Side("two threads") { _ in DispatchQueue.concurrentPerform(iterations: 2, execute: work) },
                Side("one thread") { _ in work(0) },
            ])
        let hits2 = Double(2 * count * loops) / samples[0].median
        let hits1 = Double(count * loops) / samples[1].median
        var row = Row("memory hits on two threads", value: hits2, unit: "hits/µs")
        row.n = samples[0].sorted.count
        row.comparisons = [
            Row.Comparison(
                peer: "one thread", median: hits1, p99: hits1, n: samples[1].sorted.count, ratio: hits2 / hits1,
                target: 1.7, isFloor: true)
        ]
        report.add(row)
    }
}

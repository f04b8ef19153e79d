import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Memory hits on two threads compared with one: what the locks cost.
enum ThreadRows {
    static let groups = [Group("two threads", run: run)]

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = 1_000
        let requests = (0..<count).map(Content.request)
        let body = Content.body(1 << 10)
        let caches = (0..<2).map { number in
            let cache = DiskURLCache(
                memoryCapacity: 64 << 20, diskCapacity: 64 << 20, directory: scratch.folder("threads-\(number)"))
            for request in requests {
                cache.storeCachedResponse(Content.cached(request.url!, body), for: request)
            }
            cache.flush()
            return cache
        }
        let loops = 50
        // Each thread has its own requests, as callers have: sharing one would mean a contended reference count. And
        // each has its own order: two threads in step would meet at every entry.
        let own = (0..<2).map { Content.sample(of: count, seed: UInt64($0)) }
        @Sendable func work(_ thread: Int, on cache: DiskURLCache) {
            for _ in 0..<loops {
                for request in own[thread] { consume(cache.cachedResponse(for: request)) }
            }
        }
        let samples = try Measure.alternately(
            rounds: options.rounds(60),
            [
                Side("two threads") { _ in
                    DispatchQueue.concurrentPerform(iterations: 2) { work($0, on: caches[0]) }
                },
                Side("one thread") { _ in work(0, on: caches[0]) },
                // What two processors can do without a common lock: on a virtual machine they may be one core.
                Side("two threads, a cache each") { _ in
                    DispatchQueue.concurrentPerform(iterations: 2) { work($0, on: caches[$0]) }
                },
            ])
        report.add(
            Row(
                throughput: "memory hits on two threads", samples, operations: [2, 1, 2].map { $0 * count * loops },
                perSecond: false, targets: [1.7]))
    }
}

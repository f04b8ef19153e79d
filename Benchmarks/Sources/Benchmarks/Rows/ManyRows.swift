import DiskURLCache
import Foundation
import Synchronization

/// What each operation costs in a cache with very many entries, and how long a lookup waits for the others.
enum ManyRows {
    static let groups = [Group("each operation", run: run)]

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = options.entries ?? options.manyEntries
        let directory = scratch.folder("many")
        let body = Content.body(1 << 10)
        func add(_ name: String, _ side: Side, rounds: Int) throws {
            report.add(
                Row("\(name), \(count.grouped) entries", try Measure.alternately(rounds: rounds, [side])[0]))
        }
        func storeOthers(in cache: DiskURLCache) {
            for number in 0..<10 {
                cache.storeCachedResponse(Content.cached(other(number), body), for: Content.request(other(number)))
            }
        }
        var filled = Optional(DiskURLCache.filled(at: directory, count: count, bodySize: body.count))
        filled.map(storeOthers)
        withExtendedLifetime(filled) { filled = nil }

        let requests = Content.sample(of: count)
        var opened: DiskURLCache?
        let close = { withExtendedLifetime(opened) { opened = nil } }
        let open = { opened = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 30, directory: directory) }
        try add(
            "open to first hit",
            Side("first hit", prepare: close) {
                open()
                guard opened?.cachedResponse(for: requests[$0]) != nil else { throw DiskSet.MissingEntry() }
            }, rounds: options.rounds(25))
        try add(
            "open to usage known",
            Side("usage", prepare: close) { _ in
                open()
                consume(opened?.currentDiskUsage)
            }, rounds: options.rounds(10))
        close()
        let before = Memory.heapBytes()
        open()
        let cache = opened!
        consume(cache.currentDiskUsage)
        report.add(
            Row(
                "memory of the open cache, \(count.grouped) entries",
                value: Double(max(0, Memory.heapBytes() - before)) / 1_000_000, unit: "MB"))

        try add(
            "hit", Side("hit", batch: 100) { consume(cache.cachedResponse(for: requests[$0 % requests.count])?.data) },
            rounds: options.rounds(50))
        try add(
            "miss",
            Side(
                "miss", batch: 100, input: { Content.request(count + $0) },
                operation: { consume(cache.cachedResponse(for: $0)) }), rounds: options.rounds(50))
        let stored = (0..<200).map { Content.request(2 * count + $0) }
        try add(
            "store",
            Side(
                "store", input: { (stored[$0 % 200], Content.cached(stored[$0 % 200].url!, body)) },
                operation: { cache.storeCachedResponse($0.1, for: $0.0) }), rounds: 150)
        try add("removal of one key", Side("removal") { cache.removeCachedResponse(for: stored[$0]) }, rounds: 150)
        @Sendable func storeOne(_ number: Int) {
            cache.storeCachedResponse(Content.cached(stored[number].url!, body), for: stored[number])
        }
        try add(
            "flush after one store", Side("flush", prepare: { storeOne(0) }, operation: { _ in cache.flush() }),
            rounds: options.rounds(20))
        try add(
            "removal by a tag that nobody has", Side("tag") { _ in cache.removeCachedResponses(tag: "nobody") },
            rounds: options.rounds(20))
        try add(
            "removal by prefix, ten of them match",
            Side(
                "prefix",
                prepare: { storeOthers(in: cache) },
                operation: { _ in cache.removeCachedResponses(urlPrefix: "https://cdn.example.com/assets/v3/others/") }),
            rounds: options.rounds(20))

        for (name, work) in [
            ("nothing else", { @Sendable in _ = usleep(100_000) }),
            (
                "flushes",
                { @Sendable in
                    storeOne(1)
                    cache.flush()
                }
            ),
            ("removals by tag", { @Sendable in cache.removeCachedResponses(tag: "nobody") }),
        ] {
            let (samples, waited) = misses(of: cache, beside: work)
            report.add(
                Row(
                    "a miss beside \(name), \(count.grouped) entries", samples,
                    note:
                        "The longest took \(samples.longest.short) µs, the longest that may have waited for a lock \(waited.short)."
                ))
        }
    }

    private static func other(_ number: Int) -> URL {
        URL(string: "https://cdn.example.com/assets/v3/others/\(number)")!
    }

    /// The times of misses on a thread of their own while another one does something again and again, for three
    /// seconds, and the longest of those, above 50 µs, before which the thread has waited for something since the last
    /// long one. All other long ones are of a thread that the system holds up.
    private static func misses(
        of cache: DiskURLCache, beside work: @escaping @Sendable () -> Void
    ) -> (Samples, waited: Double) {
        let isDone = Atomic(false)
        let requests = (0..<1_000).map { Content.request(-1 - $0) }
        let ended = DispatchSemaphore(value: 0)
        let measured = Mutex<(times: [Double], waited: Double)>(([], 0))
        Thread.detachNewThread {
            var times: [Double] = []
            times.reserveCapacity(8_000_000)
            var waited = 0.0
            var known = waits()
            while !isDone.load(ordering: .relaxed) {
                for request in requests {
                    let time = Measure.once { consume(cache.cachedResponse(for: request)) }
                    times.append(time)
                    guard time > 50 else { continue }
                    let now = waits()
                    if now > known { waited = max(waited, time) }
                    known = now
                }
            }
            measured.withLock { $0 = (times, waited) }
            ended.signal()
        }
        let end = Measure.nanoseconds() + 3_000_000_000
        while Measure.nanoseconds() < end { work() }
        isDone.store(true, ordering: .relaxed)
        ended.wait()
        return measured.withLock { (Samples(name: "miss", $0.times), $0.waited) }
    }

    /// How often this thread has given up the processor to wait for something.
    private static func waits() -> Int {
        let status = (try? String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
        return line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0
    }
}

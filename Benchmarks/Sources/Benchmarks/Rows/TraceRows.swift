import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Hit ratios of the cache's LRU against the optimum that knows the future (Belady), by trace.
///
/// The same trace is run through the real memory layer, whose policy is that of the disk without its low-water mark,
/// and through a model of Belady's rule: evict the entry whose next use is the furthest away.
enum TraceRows {
    struct Access {
        var item: Int
        var bytes: Int
    }

    static let groups = [Group("hit ratio by trace", run: run)]

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let overhead = overhead(scratch)
        let length = options.isQuick ? 20_000 : 100_000
        for (name, trace) in [
            ("Zipf", zipf(length: length)), ("Zipf with scans", zipfWithScans(length: length)),
        ] {
            let distinct = Dictionary(trace.map { ($0.item, $0.bytes) }) { first, _ in first }
            let total = distinct.values.reduce(0, +)
            for share in [0.01, 0.05, 0.2] {
                let capacity = Int(Double(total) * share)
                let lru = throughCache(trace, capacity: capacity, scratch)
                let best = belady(trace, capacity: capacity, overhead: overhead)
                let label = "\(name), capacity \((share * 100).short) % of \((Double(total) / 1_048_576).short) MB"
                var hits = Row("hit ratio, \(label)", value: lru.hits, unit: "")
                hits.compare(with: Samples(name: "optimum (Belady)", [best.hits]), target: nil)
                report.add(hits)
                var bytes = Row("byte hit ratio, \(label)", value: lru.bytes, unit: "")
                bytes.compare(with: Samples(name: "optimum (Belady)", [best.bytes]), target: nil)
                report.add(bytes)
            }
        }
    }

    // MARK: Traces

    static let items = 10_000

    /// Sizes between 1 KB and 64 KB, fixed for each item.
    private static func size(of item: Int) -> Int {
        var generator = SeededGenerator(seed: UInt64(item) &+ 99)
        return 1 << Int.random(in: 10...16, using: &generator)
    }

    static func zipf(length: Int) -> [Access] {
        var generator = SeededGenerator(seed: 3)
        var sums: [Double] = []
        var sum = 0.0
        for rank in 1...items {
            sum += 1 / pow(Double(rank), 0.9)
            sums.append(sum)
        }
        return (0..<length).map { _ in
            let drawn = Double.random(in: 0..<sum, using: &generator)
            var (low, high) = (0, sums.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] < drawn { low = middle + 1 } else { high = middle }
            }
            return Access(item: low, bytes: size(of: low))
        }
    }

    /// Every 2,000 accesses, a walk over 500 items that are never asked for again.
    static func zipfWithScans(length: Int) -> [Access] {
        var result: [Access] = []
        var scanned = items
        for (index, access) in zipf(length: length).enumerated() {
            result.append(access)
            if index % 2_000 == 1_999 {
                for _ in 0..<500 {
                    result.append(Access(item: scanned, bytes: size(of: scanned)))
                    scanned += 1
                }
            }
        }
        return result
    }

    /// As news are read: a new item appears every 50 accesses; the newest is the most popular, then the one before it.
    static func feed(length: Int) -> [Access] {
        zipf(length: length).enumerated().map { index, access in
            let item = items + index / 50 - access.item
            return Access(item: item, bytes: size(of: item))
        }
    }

    // MARK: Policies

    private static func throughCache(
        _ trace: [Access], capacity: Int, _ scratch: Scratch
    ) -> (hits: Double, bytes: Double) {
        let cache = DiskURLCache(
            memoryCapacity: capacity, diskCapacity: 0, directory: scratch.folder("trace-\(UUID().uuidString)"))
        let bodies = Dictionary(Set(trace.map(\.bytes)).map { ($0, Content.body($0)) }) { first, _ in first }
        var hits = 0
        var hitBytes = 0
        var allBytes = 0
        for access in trace {
            allBytes += access.bytes
            let request = Content.request(access.item)
            if cache.cachedResponse(for: request) != nil {
                hits += 1
                hitBytes += access.bytes
            } else if let body = bodies[access.bytes], let url = request.url {
                cache.storeCachedResponse(Content.cached(url, body), for: request)
            }
        }
        return (Double(hits) / Double(trace.count), Double(hitBytes) / Double(allBytes))
    }

    /// For items of different sizes the true optimum is hard to compute. The usual approximation is to evict the item
    /// that is needed last, and to refuse a new item that is needed later than all those that it would replace.
    private static func belady(
        _ trace: [Access], capacity: Int, overhead: Int
    ) -> (hits: Double, bytes: Double) {
        var nextUse = [Int](repeating: Int.max, count: trace.count)
        var upcoming: [Int: Int] = [:]
        for index in trace.indices.reversed() {
            nextUse[index] = upcoming[trace[index].item] ?? Int.max
            upcoming[trace[index].item] = index
        }
        var kept: [Int: (next: Int, bytes: Int)] = [:]
        var byNext = NextUseHeap()
        var used = 0
        var hits = 0
        var hitBytes = 0
        var allBytes = 0
        for index in trace.indices {
            let access = trace[index]
            allBytes += access.bytes
            if kept[access.item] != nil {
                hits += 1
                hitBytes += access.bytes
            } else {
                // With the overhead of a record, as the cache counts it.
                used += access.bytes + overhead
            }
            kept[access.item] = (nextUse[index], access.bytes)
            byNext.push((nextUse[index], access.item))
            while used > capacity, let (next, item) = byNext.pop() {
                // Skips entries of the heap that a later use has made obsolete.
                guard let entry = kept[item], entry.next == next else { continue }
                kept[item] = nil
                used -= entry.bytes + overhead
            }
        }
        return (Double(hits) / Double(trace.count), Double(hitBytes) / Double(allBytes))
    }

    /// What `DiskURLCache` charges an entry in memory beside its body: objects and header fields.
    private static func overhead(_ scratch: Scratch) -> Int {
        let cache = DiskURLCache(
            memoryCapacity: 1 << 20, diskCapacity: 0, directory: scratch.folder("trace-overhead"))
        let request = Content.request(0)
        cache.storeCachedResponse(Content.cached(request.url!, Content.body(1_000)), for: request)
        return cache.currentMemoryUsage - 1_000
    }
}

/// A heap that gives the use furthest in the future first.
private struct NextUseHeap {
    private var items: [(next: Int, item: Int)] = []

    mutating func push(_ item: (Int, Int)) {
        items.append(item)
        var child = items.count - 1
        while child > 0, items[(child - 1) / 2].next < items[child].next {
            items.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func pop() -> (next: Int, item: Int)? {
        guard let first = items.first else { return nil }
        let last = items.removeLast()
        guard !items.isEmpty else { return first }
        items[0] = last
        var parent = 0
        while true {
            var largest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count {
                if items[child].next > items[largest].next { largest = child }
            }
            guard largest != parent else { return first }
            items.swapAt(parent, largest)
            parent = largest
        }
    }
}

import Foundation

/// Hit ratios of exact LRU beside three other eviction policies, in a simulation in which nothing else differs. The
/// capacity is in bytes, and an entry larger than half of it is not kept.
enum PolicyRows {
    static let groups = [Group("eviction policies", run: run)]

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let length = options.isQuick ? 50_000 : 200_000
        for (name, trace) in [
            ("Zipf", TraceRows.zipf(length: length)), ("Zipf with scans", TraceRows.zipfWithScans(length: length)),
            ("feed", TraceRows.feed(length: length)),
        ] {
            let total = Dictionary(trace.map { ($0.item, $0.bytes) }) { first, _ in first }.values.reduce(0, +)
            for share in [0.01, 0.05, 0.1, 0.2, 0.4] {
                let capacity = Int(Double(total) * share)
                var policies: [(String, any Policy)] = [
                    ("exact LRU", LRU(capacity)), ("S3-FIFO", S3FIFO(capacity)), ("SIEVE", Sieve(capacity)),
                    ("GDSF", GDSF(capacity)),
                ]
                let ratios = policies.indices.map { index in
                    (policies[index].0, hitRatios(of: &policies[index].1, trace, capacity))
                }
                let label = "\(name), capacity \((share * 100).short) % of \((Double(total) / 1_048_576).short) MB"
                var objects = Row("policy, objects: \(label)", value: ratios[0].1.objects, unit: "")
                var bytes = Row("policy, bytes: \(label)", value: ratios[0].1.bytes, unit: "")
                for (policy, ratio) in ratios.dropFirst() {
                    objects.compare(with: Samples(name: policy, [ratio.objects]), target: nil)
                    bytes.compare(with: Samples(name: policy, [ratio.bytes]), target: nil)
                }
                report.add(objects)
                report.add(bytes)
            }
        }
    }

    private static func hitRatios(
        of policy: inout any Policy, _ trace: [TraceRows.Access], _ capacity: Int
    ) -> (objects: Double, bytes: Double) {
        var (hits, hitBytes, allBytes) = (0, 0, 0)
        for access in trace {
            allBytes += access.bytes
            if policy.use(access.item) {
                hits += 1
                hitBytes += access.bytes
            } else if access.bytes <= capacity / 2 {
                policy.insert(access.item, access.bytes)
            }
        }
        return (Double(hits) / Double(trace.count), Double(hitBytes) / Double(allBytes))
    }

    private protocol Policy {
        /// True if the item is kept.
        mutating func use(_ item: Int) -> Bool
        /// Keeps a new item, and evicts others if need be.
        mutating func insert(_ item: Int, _ bytes: Int)
    }

    /// Items in order, new ones at the front.
    private struct Queue {
        private var links: [Int: (newer: Int, older: Int, bytes: Int)] = [:]
        private(set) var newest = -1
        private(set) var oldest = -1
        private(set) var bytes = 0

        func contains(_ item: Int) -> Bool { links[item] != nil }
        func newer(than item: Int) -> Int { links[item]?.newer ?? -1 }

        mutating func insert(_ item: Int, _ size: Int) {
            links[item] = (-1, newest, size)
            if newest >= 0 { links[newest]?.newer = item } else { oldest = item }
            newest = item
            bytes += size
        }

        /// Removes an item; returns its size in bytes.
        @discardableResult
        mutating func remove(_ item: Int) -> Int {
            guard let link = links.removeValue(forKey: item) else { return 0 }
            if link.newer >= 0 { links[link.newer]?.older = link.older } else { newest = link.older }
            if link.older >= 0 { links[link.older]?.newer = link.newer } else { oldest = link.newer }
            bytes -= link.bytes
            return link.bytes
        }
    }

    private struct LRU: Policy {
        let capacity: Int
        var queue = Queue()

        init(_ capacity: Int) { self.capacity = capacity }

        mutating func use(_ item: Int) -> Bool {
            guard queue.contains(item) else { return false }
            queue.insert(item, queue.remove(item))
            return true
        }

        mutating func insert(_ item: Int, _ bytes: Int) {
            queue.insert(item, bytes)
            while queue.bytes > capacity { queue.remove(queue.oldest) }
        }
    }

    /// A small queue with a tenth of the capacity, a main queue, and a list of the items that left the small one (Yang
    /// and others, SOSP 2023).
    private struct S3FIFO: Policy {
        let capacity: Int
        var small = Queue()
        var main = Queue()
        var ghost = Queue()
        var uses: [Int: Int] = [:]

        init(_ capacity: Int) { self.capacity = capacity }

        mutating func use(_ item: Int) -> Bool {
            guard let count = uses[item] else { return false }
            uses[item] = min(3, count + 1)
            return true
        }

        mutating func insert(_ item: Int, _ bytes: Int) {
            if ghost.contains(item) {
                ghost.remove(item)
                main.insert(item, bytes)
            } else {
                small.insert(item, bytes)
            }
            uses[item] = 0
            while small.bytes + main.bytes > capacity {
                if small.bytes > capacity / 10 || main.oldest < 0 { evictSmall() } else { evictMain() }
            }
        }

        private mutating func evictSmall() {
            let item = small.oldest
            let bytes = small.remove(item)
            if uses[item] ?? 0 > 1 {
                uses[item] = 0
                main.insert(item, bytes)
            } else {
                uses[item] = nil
                ghost.insert(item, bytes)
                while ghost.bytes > capacity * 9 / 10 { ghost.remove(ghost.oldest) }
            }
        }

        private mutating func evictMain() {
            let item = main.oldest
            let bytes = main.remove(item)
            if let count = uses[item], count > 0 {
                uses[item] = count - 1
                main.insert(item, bytes)
            } else {
                uses[item] = nil
            }
        }
    }

    /// One queue, and a hand that skips the items that were used since it last passed them (Zhang and others, NSDI
    /// 2024).
    private struct Sieve: Policy {
        let capacity: Int
        var queue = Queue()
        var isUsed: Set<Int> = []
        var hand = -1

        init(_ capacity: Int) { self.capacity = capacity }

        mutating func use(_ item: Int) -> Bool {
            guard queue.contains(item) else { return false }
            isUsed.insert(item)
            return true
        }

        mutating func insert(_ item: Int, _ bytes: Int) {
            while queue.bytes + bytes > capacity {
                var place = hand >= 0 ? hand : queue.oldest
                while isUsed.remove(place) != nil {
                    place = queue.newer(than: place)
                    if place < 0 { place = queue.oldest }
                }
                hand = queue.newer(than: place)
                queue.remove(place)
            }
            queue.insert(item, bytes)
        }
    }

    /// Keeps items that are small and often used. A value that grows with each eviction makes old counts worth less
    /// (Cherkasova 1998).
    private struct GDSF: Policy {
        let capacity: Int
        var kept: [Int: (uses: Int, bytes: Int, worth: Double)] = [:]
        var heap: [(worth: Double, item: Int)] = []
        var inflation = 0.0
        var bytes = 0

        init(_ capacity: Int) { self.capacity = capacity }

        mutating func use(_ item: Int) -> Bool {
            guard let entry = kept[item] else { return false }
            put(item, uses: entry.uses + 1, entry.bytes)
            return true
        }

        mutating func insert(_ item: Int, _ size: Int) {
            bytes += size
            put(item, uses: 1, size)
            while bytes > capacity, let (worth, victim) = pop() {
                // Skips positions in the heap that a later use has made obsolete.
                guard let entry = kept[victim], entry.worth == worth else { continue }
                inflation = worth
                bytes -= entry.bytes
                kept[victim] = nil
            }
        }

        private mutating func put(_ item: Int, uses: Int, _ size: Int) {
            let worth = inflation + Double(uses) / Double(size)
            kept[item] = (uses, size, worth)
            heap.append((worth, item))
            var child = heap.count - 1
            while child > 0, heap[(child - 1) / 2].worth > heap[child].worth {
                heap.swapAt(child, (child - 1) / 2)
                child = (child - 1) / 2
            }
        }

        private mutating func pop() -> (Double, Int)? {
            guard let first = heap.first else { return nil }
            let last = heap.removeLast()
            guard !heap.isEmpty else { return first }
            heap[0] = last
            var parent = 0
            while true {
                var least = parent
                for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                    if heap[child].worth < heap[least].worth { least = child }
                }
                guard least != parent else { return first }
                heap.swapAt(parent, least)
                parent = least
            }
        }
    }
}

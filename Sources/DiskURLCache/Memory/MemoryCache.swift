/// The memory layer: a cache bounded by bytes and by count that evicts the least recently used values.
///
/// Every operation is O(1), not counting its evictions. Keys are spread over shards, each with its lock,
/// so that lookups on several threads do not wait for each other; the bounds hold for all shards together. A shard's lock may be
/// held while the totals' lock is taken, never the other way round.
///
/// Recency is a time stamp of the monotonic clock, so the least recent of all shards can be found.
final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Reached only under its shard's lock. A class, so that a lookup copies no node.
    private final class Node {
        let key: Key
        let hash: Int
        var value: Value
        var cost: Int
        var lastUse: UInt64

        init(_ key: Key, _ value: Value, cost: Int, now: UInt64) {
            self.key = key
            hash = key.hashValue
            self.value = value
            self.cost = cost
            lastUse = now
        }
    }

    /// Guarded by the lock around it.
    private struct Shard {
        var table = HashTable()
        var nodes: [Node?] = []
        var free: [Int] = []
        var order = LRUList()
        /// Keys being read from the layer below, see `beginRead`.
        var reads: [Key: UInt64] = [:]

        @inline(__always)
        func slot(of key: Key, _ hash: Int) -> Int? {
            table.position(hash: hash) { slot in
                guard let node = nodes[slot] else { return false }
                return node.hash == hash && node.key == key
            }
        }

        func value(of key: Key, _ hash: Int) -> Value? {
            slot(of: key, hash).flatMap { nodes[$0]?.value }
        }

        mutating func insert(_ node: Node) {
            let slot = free.popLast() ?? nodes.count
            if slot == nodes.count { nodes.append(node) } else { nodes[slot] = node }
            table.insert(slot, hash: node.hash) { nodes[$0]?.hash ?? 0 }
            order.insert(slot)
        }

        mutating func remove(slot: Int) -> Node? {
            guard let node = nodes[slot] else { return nil }
            table.remove(slot, hash: node.hash) { nodes[$0]?.hash ?? 0 }
            order.remove(slot)
            nodes[slot] = nil
            free.append(slot)
            return node
        }
    }

    /// Guarded by the lock around it.
    private struct Totals {
        var cost = 0
        var count = 0
        var costLimit: Int
        var countLimit: Int
        /// Bytes of the limit that the write buffer takes.
        var reserved = 0
        var nextRead: UInt64 = 0

        var isOver: Bool { count > 0 && (cost + reserved > costLimit || count > countLimit) }
    }

    // A thread that meets another one in a shard waits ten times as long as a hit takes: with 32 shards two threads seldom
    // do. More would lengthen the search for a victim.
    private static var shardBits: Int { 5 }
    private let shards: [Mutex<Shard>]
    private let totals: Mutex<Totals>
    /// Called for each value that was evicted, outside the locks.
    private let didEvict: @Sendable (Key) -> Void

    init(costLimit: Int, countLimit: Int, didEvict: @escaping @Sendable (Key) -> Void = { _ in }) {
        shards = (0..<1 << Self.shardBits).map { _ in Mutex(Shard(), isContended: true) }
        totals = Mutex(Totals(costLimit: max(0, costLimit), countLimit: max(0, countLimit)), isContended: true)
        self.didEvict = didEvict
    }

    var totalCost: Int { totals.withLock { $0.cost } }
    var count: Int { totals.withLock { $0.count } }

    /// Lowering a limit trims at once.
    var costLimit: Int {
        get { totals.withLock { $0.costLimit } }
        set {
            totals.withLock { $0.costLimit = max(0, newValue) }
            trim()
        }
    }

    /// Bytes of the cost limit that the write buffer takes.
    var reserved: Int {
        get { totals.withLock { $0.reserved } }
        set {
            totals.withLock { $0.reserved = max(0, newValue) }
            trim()
        }
    }

    func value(for key: Key) -> Value? {
        use(key) { $0 }
    }

    /// Gives the result of `body` for a value, in place and under the shard's lock; counts as a use. Nil when there is no value,
    /// or `body` gives nil.
    /// - Parameter now: of the monotonic clock, in nanoseconds.
    @inline(__always)
    func use<Result>(
        _ key: Key, at now: UInt64 = MonotonicTime.nanoseconds, _ body: (Value) -> Result?
    ) -> Result? {
        let hash = key.hashValue
        return shard(of: hash).withLock { shard in
            guard let slot = shard.slot(of: key, hash), let node = shard.nodes[slot] else { return nil }
            shard.order.touch(slot)
            node.lastUse = now
            return body(node.value)
        }
    }

    func contains(_ key: Key) -> Bool {
        let hash = key.hashValue
        return shard(of: hash).withLock { $0.slot(of: key, hash) != nil }
    }

    /// The keys used after a time of the monotonic clock, in nanoseconds, and when.
    func uses(since time: UInt64) -> [(key: Key, time: UInt64)] {
        var uses: [(key: Key, time: UInt64)] = []
        for lock in shards {
            lock.withLock { shard in
                var next = shard.order.mostRecent
                while let slot = next, let node = shard.nodes[slot], node.lastUse > time {
                    uses.append((node.key, node.lastUse))
                    next = shard.order.older(than: slot)
                }
            }
        }
        return uses
    }

    /// A value that alone exceeds the limit is not kept, and an older value of its key is removed.
    func insert(_ value: Value, for key: Key, cost: Int) {
        update(key) { _ in (value, cost) }
    }

    /// Changes the value of a key under its shard's lock; returning nil removes it.
    func update(_ key: Key, _ change: (Value?) -> (value: Value, cost: Int)?) {
        let hash = key.hashValue
        shard(of: hash).withLock { shard in
            shard.reads[key] = nil
            let current = shard.value(of: key, hash)
            if let (value, cost) = change(current) {
                place(value, for: key, cost: cost, in: &shard)
            } else {
                discard(key, in: &shard)
            }
        }
        trim()
    }

    @discardableResult
    func removeValue(for key: Key) -> Bool {
        shard(of: key.hashValue).withLock { shard in
            shard.reads[key] = nil
            return discard(key, in: &shard)
        }
    }

    func removeAll() {
        updateAll { _, _ in nil }
    }

    /// Changes every value under its shard's lock; returning nil removes it.
    func updateAll(_ change: (Key, Value) -> (value: Value, cost: Int)?) {
        for lock in shards {
            lock.withLock { shard in
                shard.reads.removeAll()
                for slot in shard.nodes.indices {
                    guard let node = shard.nodes[slot] else { continue }
                    if let (value, cost) = change(node.key, node.value) {
                        totals.withLock { $0.cost += cost - node.cost }
                        node.value = value
                        node.cost = cost
                    } else {
                        discard(node.key, in: &shard)
                    }
                }
            }
        }
    }

    /// Every value, shard by shard; the body is called outside the locks.
    func forEachValue(_ body: (Key, Value) -> Void) {
        for lock in shards {
            let values = lock.withLock { shard in shard.nodes.compactMap { node in node.map { ($0.key, $0.value) } } }
            for (key, value) in values { body(key, value) }
        }
    }

    // MARK: Promotion

    /// Announces that a key is being read from the layer below. The value that is read is kept only if the key was neither stored
    /// nor removed meanwhile: the ticket is then still valid.
    func beginRead(_ key: Key) -> UInt64 {
        let ticket = totals.withLock { totals in
            totals.nextRead += 1
            return totals.nextRead
        }
        shard(of: key.hashValue).withLock { $0.reads[key] = ticket }
        return ticket
    }

    /// Keeps a value that was read, unless the key changed since `beginRead` or another read of the key began later. Nil changes
    /// nothing.
    func endRead(_ key: Key, ticket: UInt64, promoting value: (value: Value, cost: Int)?) {
        shard(of: key.hashValue).withLock { shard in
            guard shard.reads[key] == ticket else { return }
            shard.reads[key] = nil
            if let value { place(value.value, for: key, cost: value.cost, in: &shard) }
        }
        if value != nil { trim() }
    }

    // MARK: Bounds

    /// By the hash's high bits, since the shard's table uses the low ones.
    @inline(__always)
    private func shard(of hash: Int) -> Mutex<Shard> {
        shards[Int(UInt(bitPattern: hash) >> (UInt.bitWidth - Self.shardBits))]
    }

    private func place(_ value: Value, for key: Key, cost: Int, in shard: inout Shard) {
        discard(key, in: &shard)
        let fits = totals.withLock { totals in
            guard cost <= totals.costLimit, totals.countLimit > 0 else { return false }
            totals.cost += cost
            totals.count += 1
            return true
        }
        guard fits else { return }
        shard.insert(Node(key, value, cost: cost, now: MonotonicTime.nanoseconds))
    }

    @discardableResult
    private func discard(_ key: Key, in shard: inout Shard) -> Bool {
        guard let slot = shard.slot(of: key, key.hashValue), let node = shard.remove(slot: slot) else { return false }
        release(node)
        return true
    }

    private func release(_ node: Node) {
        totals.withLock { totals in
            totals.cost -= node.cost
            totals.count -= 1
        }
    }

    private func trim() {
        while totals.withLock({ $0.isOver }) {
            var victim: (shard: Mutex<Shard>, lastUse: UInt64)?
            for lock in shards {
                let oldest = lock.withLock { shard in shard.order.leastRecent.flatMap { shard.nodes[$0]?.lastUse } }
                if let oldest, oldest < victim?.lastUse ?? .max {
                    victim = (lock, oldest)
                }
            }
            guard let victim else { return }
            let evicted: Key? = victim.shard.withLock { shard in
                guard let slot = shard.order.leastRecent, let node = shard.remove(slot: slot) else { return nil }
                release(node)
                return node.key
            }
            if let evicted { didEvict(evicted) }
        }
    }
}

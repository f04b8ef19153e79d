/// A key of memory.
protocol MemoryKey: Hashable, Sendable {
    /// The values of all keys of one resource are found together. Two resources may have one number.
    var resource: UInt64 { get }
}

/// A value in memory.
protocol MemoryValue: Sendable {
    /// In bytes.
    var cost: Int { get }
    /// An empty value is none: it is removed.
    var isEmpty: Bool { get }
}

/// The memory layer: a cache bounded by bytes that evicts the least recently used values.
///
/// Every operation on a key is O(1), not counting its evictions. Keys are spread over shards, each with its lock, so
/// that lookups on several threads do not wait for each other; the bound holds for all shards together. A shard's lock
/// may be held while the totals' lock is taken, never the other way round.
///
/// Recency is a time stamp of the monotonic clock, so the least recent of all shards can be found.
final class MemoryCache<Key: MemoryKey, Value: MemoryValue>: Sendable {
    /// Reached only under its shard's lock. A class, so that a lookup copies no node.
    private final class Node {
        let key: Key
        let hash: Int
        let resource: UInt64
        var value: Value
        var lastUse: UInt64

        init(_ key: Key, _ value: Value) {
            self.key = key
            hash = key.hashValue
            resource = key.resource
            self.value = value
            lastUse = MonotonicTime.nanoseconds
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
        var lastRead: UInt64 = 0

        /// The time of the last use. Threads that race for the lock come with times in another order.
        var latest: UInt64 = 0

        /// The time of a use, by which the order of use never falls.
        @inline(__always)
        mutating func time(of now: UInt64) -> UInt64 {
            latest = max(latest, now)
            return latest
        }

        @inline(__always)
        func slot(of key: Key, _ hash: Int) -> Int? {
            table.position(hash: hash) { slot in
                guard let node = nodes[slot] else { return false }
                return node.hash == hash && node.key == key
            }
        }

        func node(of key: Key, _ hash: Int) -> Node? { slot(of: key, hash).flatMap { nodes[$0] } }

        mutating func insert(_ node: Node) {
            let slot = free.popLast() ?? nodes.count
            if slot == nodes.count { nodes.append(node) } else { nodes[slot] = node }
            table.insert(slot, hash: node.hash) { nodes[$0]?.hash ?? 0 }
            order.insert(slot)
        }

        mutating func remove(_ node: Node) {
            guard let slot = slot(of: node.key, node.hash) else { return }
            table.remove(slot, hash: node.hash) { nodes[$0]?.hash ?? 0 }
            order.remove(slot)
            nodes[slot] = nil
            free.append(slot)
        }
    }

    /// Guarded by the lock around it.
    private struct Totals {
        var cost = 0
        var costLimit: Int
        /// All keys, by their resources.
        var keys: [UInt64: Set<Key>] = [:]

        /// False for a value that alone exceeds the limit.
        mutating func add(_ node: Node) -> Bool {
            guard node.value.cost <= costLimit else { return false }
            cost += node.value.cost
            keys[node.resource, default: []].insert(node.key)
            return true
        }

        mutating func remove(_ node: Node) {
            cost -= node.value.cost
            keys[node.resource]?.remove(node.key)
            if keys[node.resource]?.isEmpty == true { keys[node.resource] = nil }
        }
    }

    // A thread that meets another one in a shard waits ten times as long as a hit takes: with 32 shards two threads
    // seldom do. More would lengthen the search for a victim.
    private static var shardBits: Int { 5 }
    private let shards: [Mutex<Shard>]
    private let totals: Mutex<Totals>

    init(costLimit: Int) {
        shards = (0..<1 << Self.shardBits).map { _ in Mutex(Shard(), isContended: true) }
        totals = Mutex(Totals(costLimit: max(0, costLimit)), isContended: true)
    }

    var totalCost: Int { totals.withLock { $0.cost } }

    /// Lowering it trims at once.
    var costLimit: Int {
        get { totals.withLock { $0.costLimit } }
        set {
            totals.withLock { $0.costLimit = max(0, newValue) }
            trim()
        }
    }

    func value(for key: Key) -> Value? {
        use(key) { $0 }
    }

    /// Gives the result of `body` for a value, in place and under the shard's lock; counts as a use. Nil when there is
    /// no value, or `body` gives nil.
    /// - Parameter now: of the monotonic clock, in nanoseconds.
    @inline(__always)
    func use<Result>(
        _ key: Key, at now: UInt64 = MonotonicTime.nanoseconds, _ body: (Value) -> Result?
    ) -> Result? {
        let hash = key.hashValue
        return shard(of: hash).withLock { shard in
            guard let slot = shard.slot(of: key, hash), let node = shard.nodes[slot] else { return nil }
            shard.order.touch(slot)
            node.lastUse = shard.time(of: now)
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

    /// Changes the value of a key under its shard's lock; counts as a use. A value that alone exceeds the limit is not
    /// kept.
    func update(_ key: Key, _ change: (inout Value?) -> Void) {
        let hash = key.hashValue
        shard(of: hash).withLock { shard in
            shard.reads[key] = nil
            var value = shard.node(of: key, hash)?.value
            change(&value)
            set(value, for: key, in: &shard)
        }
        trim()
    }

    func removeValue(for key: Key) {
        update(key) { $0 = nil }
    }

    /// Changes the values of a resource, each under its shard's lock, and visits no others. Not a use.
    func update(resource: UInt64, _ change: (Key, inout Value?) -> Void) {
        for lock in shards { lock.withLock { $0.reads = $0.reads.filter { $0.key.resource != resource } } }
        for key in totals.withLock({ $0.keys[resource] ?? [] }) {
            let hash = key.hashValue
            shard(of: hash).withLock { shard in
                if let node = shard.node(of: key, hash) { update(node, in: &shard, change) }
            }
        }
    }

    /// Changes every value under its shard's lock. Not a use.
    func updateAll(_ change: (Key, inout Value?) -> Void) {
        for lock in shards {
            lock.withLock { shard in
                shard.reads.removeAll()
                for slot in shard.nodes.indices {
                    if let node = shard.nodes[slot] { update(node, in: &shard, change) }
                }
            }
        }
    }

    private func update(_ node: Node, in shard: inout Shard, _ change: (Key, inout Value?) -> Void) {
        var value: Value? = node.value
        change(node.key, &value)
        guard let value, !value.isEmpty else { return discard(node, in: &shard) }
        totals.withLock { $0.cost += value.cost - node.value.cost }
        node.value = value
    }

    func removeAll() {
        updateAll { $1 = nil }
    }

    // MARK: Promotion

    /// Announces that a key is being read from the layer below. The value that is read is kept only if the key was
    /// neither stored nor removed meanwhile: the ticket is then still valid.
    func beginRead(_ key: Key) -> UInt64 {
        shard(of: key.hashValue).withLock { shard in
            shard.lastRead += 1
            shard.reads[key] = shard.lastRead
            return shard.lastRead
        }
    }

    /// Keeps a value that was read, unless the key changed since `beginRead` or another read of the key began later.
    func endRead(_ key: Key, ticket: UInt64, promoting value: Value?) {
        shard(of: key.hashValue).withLock { shard in
            guard shard.reads[key] == ticket else { return }
            shard.reads[key] = nil
            if let value { set(value, for: key, in: &shard) }
        }
        trim()
    }

    // MARK: Bounds

    /// By the hash's high bits, since the shard's table uses the low ones.
    @inline(__always)
    private func shard(of hash: Int) -> Mutex<Shard> {
        shards[Int(UInt(bitPattern: hash) >> (UInt.bitWidth - Self.shardBits))]
    }

    private func set(_ value: Value?, for key: Key, in shard: inout Shard) {
        if let old = shard.node(of: key, key.hashValue) { discard(old, in: &shard) }
        guard let value, !value.isEmpty else { return }
        let node = Node(key, value)
        node.lastUse = shard.time(of: node.lastUse)
        if totals.withLock({ $0.add(node) }) { shard.insert(node) }
    }

    private func discard(_ node: Node, in shard: inout Shard) {
        shard.remove(node)
        totals.withLock { $0.remove(node) }
    }

    private func trim() {
        while totals.withLock({ $0.cost > $0.costLimit }) {
            var victim: (shard: Mutex<Shard>, lastUse: UInt64)?
            for lock in shards {
                let oldest = lock.withLock { shard in shard.order.leastRecent.flatMap { shard.nodes[$0]?.lastUse } }
                if let oldest, oldest < victim?.lastUse ?? .max {
                    victim = (lock, oldest)
                }
            }
            guard let victim else { return }
            victim.shard.withLock { shard in
                if let slot = shard.order.leastRecent, let node = shard.nodes[slot] { discard(node, in: &shard) }
            }
        }
    }
}

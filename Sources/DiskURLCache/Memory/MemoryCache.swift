/// A value in memory.
protocol MemoryValue: Sendable {
    /// In bytes.
    var cost: Int { get }
    /// Whether there is nothing in the value, so that it is removed.
    var isEmpty: Bool { get }
}

/// The memory layer: a cache with a limit in bytes, and perhaps one in keys, which evicts the least recently used
/// values.
///
/// Every operation on a key takes constant time, apart from evictions. Keys are spread over shards with a lock each, so
/// that lookups on several threads seldom wait for each other. The limit is for all shards together. The lock of the
/// totals may be taken while a shard's lock is held, but not the other way round.
///
/// Each use has a time of the monotonic clock, so that the least recently used value of all shards can be found.
final class MemoryCache<Value: MemoryValue>: Sendable {
    /// Used only under its shard's lock. A class, so that a lookup does not copy it.
    private final class Node {
        let key: RequestKey
        let hash: Int
        /// The hash of the resource, by which the values of all its keys are found. Two resources may have the same
        /// hash.
        let resource: UInt64
        var value: Value
        var lastUse: UInt64

        init(_ key: RequestKey, _ value: Value) {
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
        var resources = ResourceRows()
        /// Counts the changes: see `generation(of:)`.
        var generation: UInt64 = 0
        /// The time of the last use. Threads may get the lock in a different order than their times.
        var latest: UInt64 = 0

        /// The time of a use, but not before that of the last use, so that times never decrease along the list.
        @inline(__always)
        mutating func time(of now: UInt64) -> UInt64 {
            latest = max(latest, now)
            return latest
        }

        @inline(__always)
        func slot(of key: RequestKey, _ hash: Int) -> Int? {
            table.position(hash: hash) { slot in
                guard let node = nodes[slot] else { return false }
                return node.hash == hash && node.key == key
            }
        }

        func node(of key: RequestKey, _ hash: Int) -> Node? { slot(of: key, hash).flatMap { nodes[$0] } }

        mutating func insert(_ node: Node) {
            let slot = free.popLast() ?? nodes.count
            if slot == nodes.count { nodes.append(node) } else { nodes[slot] = node }
            table.insert(slot, hash: node.hash) { nodes[$0]?.hash ?? 0 }
            order.insert(slot)
            resources.insert(slot, of: node.resource) { nodes[$0]?.resource }
        }

        mutating func remove(_ node: Node) {
            guard let slot = slot(of: node.key, node.hash) else { return }
            table.remove(slot, hash: node.hash) { nodes[$0]?.hash ?? 0 }
            order.remove(slot)
            resources.remove(slot, of: node.resource) { nodes[$0]?.resource }
            nodes[slot] = nil
            free.append(slot)
        }

        func nodes(of resource: UInt64) -> [Node] {
            var found: [Node] = []
            resources.forEach(
                of: resource, resourceOf: { nodes[$0]?.resource },
                { slot in if let node = nodes[slot] { found.append(node) } })
            return found
        }
    }

    /// Guarded by the lock around it.
    private struct Totals {
        var cost = 0
        var costLimit: Int
        var count = 0
        let countLimit: Int
        /// A time for each shard: nothing in it was last used before. It may be too early, since only evictions look at
        /// the shards, but it is not too late, since uses and new values only bring later times.
        var earliest = [UInt64](repeating: 0, count: 1 << MemoryCache.shardBits)

        /// False if the cost alone exceeds the limit.
        mutating func add(_ cost: Int) -> Bool {
            guard cost <= costLimit else { return false }
            self.cost += cost
            count += 1
            return true
        }

        /// The shard to trim next, with the time up to which a value in it is the least recently used one of all; nil
        /// if the values are within the limit.
        /// - Parameter seen: the time of the least recent use in a shard; the present time for an empty one.
        @inline(__always)
        mutating func nextToTrim(_ seen: (place: Int, time: UInt64)?) -> (place: Int, latest: UInt64)? {
            if let seen { earliest[seen.place] = max(earliest[seen.place], seen.time) }
            return cost > costLimit || count > countLimit ? shardOfLeastRecent : nil
        }

        @inline(never)
        private var shardOfLeastRecent: (place: Int, latest: UInt64) {
            var next = (place: 0, latest: UInt64.max)
            for place in 1..<earliest.count {
                if earliest[place] < earliest[next.place] {
                    next = (place, earliest[next.place])
                } else {
                    next.latest = min(next.latest, earliest[place])
                }
            }
            return next
        }
    }

    // If two threads meet in a shard, one waits ten times as long as a hit takes. With 32 shards that is rare. More
    // shards would make the search for a victim slower.
    private static var shardBits: Int { 5 }
    private let shards: [Mutex<Shard>]
    private let totals: Mutex<Totals>

    /// - Parameter countLimit: how many keys may have a value.
    init(costLimit: Int, countLimit: Int = .max) {
        shards = (0..<1 << Self.shardBits).map { _ in Mutex(Shard(), isContended: true) }
        totals = Mutex(Totals(costLimit: max(0, costLimit), countLimit: max(0, countLimit)), isContended: true)
    }

    var totalCost: Int { totals.withLock { $0.cost } }

    /// The limit in bytes. Lowering it evicts at once.
    var costLimit: Int {
        get { totals.withLock { $0.costLimit } }
        set {
            totals.withLock { $0.costLimit = max(0, newValue) }
            trim()
        }
    }

    func value(for key: RequestKey) -> Value? {
        use(key) { $0 }
    }

    /// Calls `body` with a value, in place and under the shard's lock, and returns its result; nil if there is no
    /// value. Counts as a use.
    /// - Parameter now: the time of the monotonic clock, in nanoseconds.
    @inline(__always)
    func use<Result>(
        _ key: RequestKey, at now: UInt64 = MonotonicTime.nanoseconds, _ body: (Value) -> Result?
    ) -> Result? {
        let hash = key.hashValue
        return shard(of: hash).withLock { shard in
            guard let slot = shard.slot(of: key, hash), let node = shard.nodes[slot] else { return nil }
            shard.order.touch(slot)
            node.lastUse = shard.time(of: now)
            return body(node.value)
        }
    }

    func contains(_ key: RequestKey) -> Bool { contains(key) { _ in true } }

    /// Does not count as a use.
    func contains(_ key: RequestKey, where condition: (Value) -> Bool) -> Bool {
        let hash = key.hashValue
        return shard(of: hash).withLock { shard in shard.node(of: key, hash).map { condition($0.value) } == true }
    }

    /// The keys that were used after a time, with the times of use, in nanoseconds of the monotonic clock.
    func uses(since time: UInt64) -> [(key: RequestKey, time: UInt64)] {
        var uses: [(key: RequestKey, time: UInt64)] = []
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

    /// Changes the value of a key under its shard's lock. Counts as a use. A value that alone exceeds the limit is not
    /// kept.
    func update(_ key: RequestKey, _ change: (inout Value?) -> Void) {
        let hash = key.hashValue
        shard(of: hash).withLock { shard in
            shard.generation &+= 1
            var value = shard.node(of: key, hash)?.value
            change(&value)
            set(value, for: key, in: &shard)
        }
        trim()
    }

    func removeValue(for key: RequestKey) {
        let hash = key.hashValue
        // Returned, so that it is freed outside of the lock.
        _ = shard(of: hash).withLock { shard -> Node? in
            shard.generation &+= 1
            guard let node = shard.node(of: key, hash) else { return nil }
            discard(node, in: &shard)
            return node
        }
    }

    /// Changes the values of a resource, each under its shard's lock, and visits no others. Does not count as a use.
    func update(resource: UInt64, _ change: (RequestKey, inout Value?) -> Void) {
        update(of: resource, where: { _, _ in true }, change)
    }

    /// Changes every value under its shard's lock. Does not count as a use.
    func updateAll(_ change: (RequestKey, inout Value?) -> Void) { update(of: nil, where: { _, _ in true }, change) }

    /// Changes the values of a resource, or of all if it is nil, each under its shard's lock. Does not count as a use.
    /// - Parameter isConcerned: asked first, since a value is copied to be changed.
    func update(
        of resource: UInt64?, where isConcerned: (RequestKey, Value) -> Bool,
        _ change: (RequestKey, inout Value?) -> Void
    ) {
        for lock in shards {
            lock.withLock { shard in
                shard.generation &+= 1
                if let resource {
                    for node in shard.nodes(of: resource) where isConcerned(node.key, node.value) {
                        update(node, in: &shard, change)
                    }
                } else {
                    for slot in shard.nodes.indices {
                        guard let node = shard.nodes[slot], isConcerned(node.key, node.value) else { continue }
                        update(node, in: &shard, change)
                    }
                }
            }
        }
    }

    private func update(_ node: Node, in shard: inout Shard, _ change: (RequestKey, inout Value?) -> Void) {
        var value: Value? = node.value
        change(node.key, &value)
        guard let value, !value.isEmpty else { return discard(node, in: &shard) }
        let more = value.cost - node.value.cost
        totals.withLock { $0.cost += more }
        node.value = value
    }

    func removeAll() {
        updateAll { $1 = nil }
    }

    // MARK: Promotion

    /// Taken before a key is read from the layer below. It is another one after each change of a key that shares the
    /// shard, and after each removal of a resource: then `promote` keeps nothing, and the next lookup reads again.
    func generation(of key: RequestKey) -> UInt64 { shard(of: key.hashValue).withLock { $0.generation } }

    /// Keeps a value that was read, unless the key may have been stored or removed since.
    /// - Parameter generation: see `generation(of:)`.
    func promote(_ value: Value, for key: RequestKey, readAt generation: UInt64) {
        shard(of: key.hashValue).withLock { shard in
            if shard.generation == generation { set(value, for: key, in: &shard) }
        }
        trim()
    }

    // MARK: Bounds

    /// Chosen by the high bits of the hash, since the shard's table uses the low ones.
    @inline(__always)
    private func shard(of hash: Int) -> Mutex<Shard> {
        shards[Int(UInt(bitPattern: hash) >> (UInt.bitWidth - Self.shardBits))]
    }

    private func set(_ value: Value?, for key: RequestKey, in shard: inout Shard) {
        if let old = shard.node(of: key, key.hashValue) { discard(old, in: &shard) }
        guard let value, !value.isEmpty else { return }
        let node = Node(key, value)
        node.lastUse = shard.time(of: node.lastUse)
        let cost = value.cost
        if totals.withLock({ $0.add(cost) }) { shard.insert(node) }
    }

    private func discard(_ node: Node, in shard: inout Shard) {
        shard.remove(node)
        let cost = node.value.cost
        totals.withLock { totals in
            totals.cost -= cost
            totals.count -= 1
        }
    }

    /// Evicts the least recently used values of all shards, until the rest is within the limit.
    private func trim() {
        var seen: (place: Int, time: UInt64)?
        while let next = totals.withLock({ $0.nextToTrim(seen) }) {
            // What is evicted is returned, so that it is freed outside of the lock.
            let (evicted, lastUse) = shards[next.place].withLock { shard -> (Node?, UInt64?) in
                guard let slot = shard.order.leastRecent, let node = shard.nodes[slot] else { return (nil, nil) }
                let lastUse = node.lastUse
                guard lastUse <= next.latest else { return (nil, lastUse) }
                discard(node, in: &shard)
                return (node, lastUse)
            }
            withExtendedLifetime(evicted) {}
            seen = (next.place, lastUse ?? MonotonicTime.nanoseconds)
        }
    }
}

import Dispatch

/// The memory layer: a cache bounded by bytes and by count that forgets what was used least recently.
///
/// Every operation is O(1) but for the evictions it causes. Keys are spread over shards, each behind a lock of its own,
/// so that lookups on several threads do not wait for each other; the bounds hold for all shards together. A shard's
/// lock may be held while the totals' lock is taken, never the other way round, and neither across I/O.
///
/// Recency is a time stamp of the monotonic clock, so the least recent of all shards can be found.
final class MemoryCache<Value: Sendable>: Sendable {
    private struct Node {
        var key: String
        var value: Value
        var cost: Int
        var lastUse: UInt64
        var lastReport: UInt64
    }

    /// Guarded by the lock around it.
    private struct Shard {
        var slots: [String: Int] = [:]
        var nodes: [Node?] = []
        var free: [Int] = []
        var order = LRUList()
        /// Keys being read from the layer below, see `beginRead`.
        var reads: [String: UInt64] = [:]

        mutating func remove(slot: Int) -> Node? {
            guard let node = nodes[slot] else { return nil }
            slots[node.key] = nil
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
        var nextRead: UInt64 = 0

        var isOver: Bool { cost > costLimit || count > countLimit }
    }

    // Eight shards keep two to eight busy threads apart; more would only lengthen the search for a victim.
    private static var shardCount: Int { 8 }
    private let shards: [Mutex<Shard>]
    private let totals: Mutex<Totals>

    init(costLimit: Int, countLimit: Int) {
        shards = (0..<Self.shardCount).map { _ in Mutex(Shard()) }
        totals = Mutex(Totals(costLimit: max(0, costLimit), countLimit: max(0, countLimit)))
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

    struct Hit {
        var value: Value
        /// True at most once a minute for each key: time to tell the layer below that the value is in use.
        var isDueForReport: Bool
    }

    func value(for key: String) -> Hit? {
        let now = DispatchTime.now().uptimeNanoseconds
        return shard(of: key).withLock { shard in
            guard let slot = shard.slots[key], var node = shard.nodes[slot] else { return nil }
            let isDue = now &- node.lastReport > 60_000_000_000
            node.lastUse = now
            if isDue { node.lastReport = now }
            shard.nodes[slot] = node
            shard.order.touch(slot)
            return Hit(value: node.value, isDueForReport: isDue)
        }
    }

    func contains(_ key: String) -> Bool {
        shard(of: key).withLock { $0.slots[key] != nil }
    }

    /// A value that alone exceeds the limit is not kept, and an older value of its key goes.
    func insert(_ value: Value, for key: String, cost: Int) {
        shard(of: key).withLock { shard in
            shard.reads[key] = nil
            place(value, for: key, cost: cost, in: &shard)
        }
        trim()
    }

    /// Changes the value of a key under its shard's lock; returning nil removes it.
    func update(_ key: String, _ change: (Value?) -> (value: Value, cost: Int)?) {
        shard(of: key).withLock { shard in
            shard.reads[key] = nil
            let current = shard.slots[key].flatMap { shard.nodes[$0]?.value }
            if let (value, cost) = change(current) {
                place(value, for: key, cost: cost, in: &shard)
            } else {
                discard(key, in: &shard)
            }
        }
        trim()
    }

    @discardableResult
    func removeValue(for key: String) -> Bool {
        shard(of: key).withLock { shard in
            shard.reads[key] = nil
            return discard(key, in: &shard)
        }
    }

    func removeAll() {
        updateAll { _ in nil }
    }

    /// Changes every value under its shard's lock; returning nil removes it.
    func updateAll(_ change: (Value) -> (value: Value, cost: Int)?) {
        for lock in shards {
            lock.withLock { shard in
                shard.reads.removeAll()
                for (key, slot) in shard.slots {
                    guard let node = shard.nodes[slot] else { continue }
                    if let (value, cost) = change(node.value) {
                        totals.withLock { $0.cost += cost - node.cost }
                        shard.nodes[slot]?.value = value
                        shard.nodes[slot]?.cost = cost
                    } else {
                        discard(key, in: &shard)
                    }
                }
            }
        }
    }

    // MARK: Promotion

    /// Announces that a key is being read from the layer below. What that read finds may be kept only if the key was
    /// neither stored nor removed meanwhile; the ticket tells.
    func beginRead(_ key: String) -> UInt64 {
        let ticket = totals.withLock { totals in
            totals.nextRead += 1
            return totals.nextRead
        }
        shard(of: key).withLock { $0.reads[key] = ticket }
        return ticket
    }

    /// Keeps what was read, unless the key changed since `beginRead` or another read of it began later.
    func endRead(_ key: String, ticket: UInt64, promoting value: (value: Value, cost: Int)?) {
        shard(of: key).withLock { shard in
            guard shard.reads[key] == ticket else { return }
            shard.reads[key] = nil
            if let value {
                place(value.value, for: key, cost: value.cost, in: &shard)
            }
        }
        if value != nil { trim() }
    }

    // MARK: Bounds

    private func shard(of key: String) -> Mutex<Shard> {
        shards[Int(truncatingIfNeeded: key.hashValue.magnitude % UInt(Self.shardCount))]
    }

    private func place(_ value: Value, for key: String, cost: Int, in shard: inout Shard) {
        discard(key, in: &shard)
        let fits = totals.withLock { totals in
            guard cost <= totals.costLimit, totals.countLimit > 0 else { return false }
            totals.cost += cost
            totals.count += 1
            return true
        }
        guard fits else { return }
        let slot = shard.free.popLast() ?? shard.nodes.count
        if slot == shard.nodes.count { shard.nodes.append(nil) }
        let now = DispatchTime.now().uptimeNanoseconds
        shard.nodes[slot] = Node(key: key, value: value, cost: cost, lastUse: now, lastReport: now)
        shard.slots[key] = slot
        shard.order.insert(slot)
    }

    @discardableResult
    private func discard(_ key: String, in shard: inout Shard) -> Bool {
        guard let slot = shard.slots[key], let node = shard.remove(slot: slot) else { return false }
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
            let node = victim.shard.withLock { shard in shard.order.leastRecent.flatMap { shard.remove(slot: $0) } }
            if let node { release(node) }
        }
    }
}

/// The entries that are stored but not written yet, in the order in which they will be.
///
/// Invariants: an entry is here once for its key and variant; `bytes` is what they weigh; each has its place in the queue,
/// while a place whose entry was replaced or removed is passed over.
struct StagedWrites: Sendable {
    struct Write: Sendable {
        var key: DiskKey
        var entry: StoredEntry
        var varyHash: UInt64
        /// Unique: tells the write apart from one that replaced it.
        var order: UInt64
    }

    private(set) var bytes = 0
    private var writes: [DiskKey: [Write]] = [:]
    private var queue: [(key: DiskKey, order: UInt64)] = []
    private var queueStart = 0
    private var lastOrder: UInt64 = 0

    var isEmpty: Bool { writes.isEmpty }
    var count: Int { writes.values.reduce(0) { $0 + $1.count } }

    subscript(key: DiskKey) -> [Write] { writes[key] ?? [] }

    /// What an entry weighs: its body, and a guess at its metadata.
    static func weight(of entry: StoredEntry) -> Int { entry.body.count + 1024 }

    mutating func insert(_ entry: StoredEntry, for key: DiskKey, varyHash: UInt64) {
        remove(key, varyHash: varyHash)
        lastOrder += 1
        let write = Write(key: key, entry: entry, varyHash: varyHash, order: lastOrder)
        writes[key, default: []].append(write)
        queue.append((key, lastOrder))
        bytes += Self.weight(of: entry)
    }

    /// The write whose turn it is. It stays here until `finish`, so that lookups see it.
    mutating func next() -> Write? {
        while queueStart < queue.count {
            let (key, order) = queue[queueStart]
            queueStart += 1
            // What was taken is dropped now and then, so that a queue that never runs empty does not grow.
            if queueStart > 1024, queueStart * 2 > queue.count {
                queue.removeFirst(queueStart)
                queueStart = 0
            }
            if let write = writes[key]?.first(where: { $0.order == order }) { return write }
        }
        queue.removeAll(keepingCapacity: queue.capacity < 4096)
        queueStart = 0
        return nil
    }

    /// Whether the write still is to be done: false when it was removed or replaced.
    func isPlanned(_ write: Write) -> Bool {
        writes[write.key]?.contains { $0.order == write.order } ?? false
    }

    /// The write is in its file, or given up.
    mutating func finish(_ write: Write) {
        remove(write.key) { $0.order == write.order }
    }

    mutating func remove(_ key: DiskKey, varyHash: UInt64) {
        remove(key) { $0.varyHash == varyHash }
    }

    mutating func remove(_ key: DiskKey, where isRemoved: (Write) -> Bool) {
        guard let index = writes.index(forKey: key) else { return }
        var isLeft = false
        for write in writes.values[index] {
            if isRemoved(write) { bytes -= Self.weight(of: write.entry) } else { isLeft = true }
        }
        // Most keys have one.
        if isLeft { writes.values[index].removeAll(where: isRemoved) } else { writes.remove(at: index) }
    }

    func all(where isWanted: (Write) -> Bool) -> [Write] {
        writes.values.flatMap { $0.filter(isWanted) }
    }

    mutating func removeAll() {
        self = StagedWrites(lastOrder: lastOrder)
    }

    init() {}

    private init(lastOrder: UInt64) {
        self.lastOrder = lastOrder
    }
}

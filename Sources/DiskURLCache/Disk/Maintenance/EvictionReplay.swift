/// Which responses a disk layer of some capacity keeps: the index and the eviction of the real one, without files. For
/// simulations.
///
/// It evicts as soon as the capacity is exceeded; a real cache does that some milliseconds later.
package struct EvictionReplay: Sendable {
    private let capacity: Int
    package let largestEntry: Int
    private let target: Int
    private let policy: EvictionPolicy
    private var index = DiskIndex()
    /// One step for each use.
    private var time: UInt64 = 0

    package init(capacity: Int, weighsSize: Bool) {
        let settings = DiskConfiguration(directory: "/", capacity: capacity)
        self.capacity = capacity
        largestEntry = capacity.share(settings.maximumEntryFraction)
        target = capacity.share(settings.lowWaterFraction)
        policy = EvictionPolicy(pinnedLimit: 0, weighsSize: weighsSize)
    }

    /// The bytes of the records, in whole blocks, and of the index.
    package var bytesOnDisk: Int { index.bytes + index.count * IndexFileLayout.rowLength }

    /// Whether the response is there. If so, this counts as a use.
    package mutating func use(_ name: String) -> Bool {
        let key = Self.key(name)
        guard index.contains(key) else { return false }
        time += 1
        index.note([IndexUse(key: key, time: time, seconds: 0)])
        return true
    }

    /// Stores a response, or replaces it, and evicts what exceeds the capacity. A response that is too large is
    /// removed.
    /// - Parameter bytesOnDisk: the space that its record takes.
    package mutating func store(_ name: String, bytesOnDisk bytes: Int) {
        let key = Self.key(name)
        let record = RecordName(key: key, slot: 0)
        guard bytes <= largestEntry else {
            index.remove(record)
            return
        }
        time += 1
        let blocks = UInt32(clamping: (bytes + IndexRow.blockSize - 1) / IndexRow.blockSize)
        let row = IndexRow(key: key, blocks: blocks, accessedAt: 0, slot: record.slot, flags: [])
        index.put(row, usedAt: time)
        guard bytesOnDisk > capacity else { return }
        while true {
            let victims = policy.victims(in: index, freeing: bytesOnDisk - target)
            if victims.isEmpty { return }
            for victim in victims { index.remove(victim.name) }
        }
    }

    private static func key(_ name: String) -> KeyName { KeyName(name, resource: KeyName.resource(of: name)) }
}

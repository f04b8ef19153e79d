/// Which records go: the least recently used, pinned ones last as long as they keep to their share.
struct EvictionPolicy {
    /// Bytes that pinned records may take and still be spared.
    var pinnedLimit: Int
    /// Records that could not be removed just now.
    var passedOver: Set<RecordName> = []
    /// How many are chosen at a time, so that no lock is held for long.
    var batch = 64

    /// The next records to go so that `excess` bytes become free; none when nothing is to be freed, or can be.
    func victims(in index: DiskIndex, freeing excess: Int) -> [IndexRow] {
        if excess <= 0 { return [] }
        var spared = choose(index, excess, pinned: false)
        if spared.isEmpty { spared = choose(index, excess, pinned: true) }
        return spared
    }

    private func choose(_ index: DiskIndex, _ excess: Int, pinned takesPinned: Bool) -> [IndexRow] {
        var victims: [IndexRow] = []
        var freed = 0
        var pinnedBytes = index.pinnedBytes
        index.forEachLeastRecentFirst { row in
            let isSpared = row.isPinned && !takesPinned && pinnedBytes <= pinnedLimit
            if !isSpared, passedOver.isEmpty || !passedOver.contains(row.name) {
                victims.append(row)
                freed += row.bytes
                if row.isPinned { pinnedBytes -= row.bytes }
            }
            return freed < excess && victims.count < batch
        }
        return victims
    }
}

/// What eviction remembers between passes. Confined to `DiskStore.io`.
struct Eviction {
    /// Single records that could not be unlinked. They are not tried again.
    private(set) var stuck: Set<RecordName> = []
    /// Until then eviction rests: hardly anything could be unlinked the last time.
    private var nextTime = 0.0

    var isRested: Bool { MonotonicTime.seconds >= nextTime }

    /// - Parameter passedOver: records that could not be unlinked.
    mutating func ended(passedOver: Set<RecordName>, isHopeless: Bool) {
        if isHopeless {
            nextTime = MonotonicTime.seconds + 1
        } else if passedOver.count < 1024 {
            stuck = passedOver
        }
    }
}

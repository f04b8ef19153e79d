/// Chooses the records to evict: the least recently used ones, and pinned ones last as long as they take no more than
/// their share.
struct EvictionPolicy {
    /// The bytes that pinned records may take and still be evicted last.
    var pinnedLimit: Int
    /// The number of records that are chosen at a time, so that no lock is held for long.
    var batch = 64

    /// The next records to evict so that `excess` bytes become free; none if nothing has to be freed, or nothing can
    /// be.
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
            if !isSpared {
                victims.append(row)
                freed += row.bytes
                if row.isPinned { pinnedBytes -= row.bytes }
            }
            return freed < excess && victims.count < batch
        }
        return victims
    }
}

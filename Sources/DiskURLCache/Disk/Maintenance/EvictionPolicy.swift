/// Chooses the records to evict: the least recently used ones, or those with the greatest weight; pinned ones last as
/// long as they take no more than their share.
struct EvictionPolicy {
    /// The bytes that pinned records may take and still be evicted last.
    var pinnedLimit: Int
    /// Whether records are chosen by `weight(age:blocks:)`, not by their age alone.
    var weighsSize = false
    /// The number of records that are chosen at a time in the order of use, so that no lock is held for long.
    var batch = 64

    /// How soon a record is evicted when size counts: the one with the greatest weight first.
    ///
    /// By the logarithm a record of 1 MB weighs almost four times as much as one of 4 KB with the same age. By the size
    /// itself it would weigh 256 times as much, and hardly any large record would stay.
    /// - Parameters:
    ///   - age: the position in the order of use: 1 for the record that was used last, 2 for the one before it. So
    ///     neither an idle night nor a clock that is set changes a weight.
    ///   - blocks: the space that the record takes, in blocks of 512 bytes.
    static func weight(age: Int, blocks: UInt32) -> Int {
        age * (UInt32.bitWidth - 1 - max(2, blocks).leadingZeroBitCount)
    }

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
        /// False when there are enough.
        func consider(_ row: IndexRow) -> Bool {
            let isSpared = row.isPinned && !takesPinned && pinnedBytes <= pinnedLimit
            if !isSpared {
                victims.append(row)
                freed += row.bytes
                if row.isPinned { pinnedBytes -= row.bytes }
            }
            // By weight each choice has to visit all rows, so all victims are chosen at once.
            return freed < excess && (weighsSize || victims.count < batch)
        }
        if weighsSize {
            let rows = Array(index.inOrder)
            for position in Self.heaviestFirst(rows) {
                guard consider(rows[position]) else { break }
            }
        } else {
            for row in index.inOrder { guard consider(row) else { break } }
        }
        return victims
    }

    /// The positions of rows by their weight; of equal weights the least recently used row is first.
    private static func heaviestFirst(_ leastRecentFirst: [IndexRow]) -> [Int] {
        let weights = leastRecentFirst.enumerated().map { position, row in
            weight(age: leastRecentFirst.count - position, blocks: row.blocks)
        }
        return weights.indices.sorted { left, right in
            weights[left] == weights[right] ? left < right : weights[left] > weights[right]
        }
    }
}

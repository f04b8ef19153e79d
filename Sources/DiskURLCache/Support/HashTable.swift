/// A table from hashes to positions in the owner's array: open addressing with linear probing, at most half full. It
/// stores no keys: the owner compares them, and supplies the hash of a position when the table has to move it.
///
/// A dictionary would hash the keys once more.
struct HashTable: Sendable {
    /// Positions plus one; 0 marks a free slot.
    private var slots = [Int32](repeating: 0, count: 16)
    private var mask = 15
    private var count = 0

    /// The position under this hash that satisfies the predicate.
    @inline(__always)
    func position(hash: Int, where isMatch: (Int) -> Bool) -> Int? {
        var slot = hash & mask
        while slots[slot] != 0 {
            let position = Int(slots[slot]) - 1
            if isMatch(position) { return position }
            slot = (slot + 1) & mask
        }
        return nil
    }

    /// Adds a position that is not in the table yet.
    mutating func insert(_ position: Int, hash: Int, hashOf: (Int) -> Int) {
        if (count + 1) * 2 > slots.count { resize(to: slots.count * 2, hashOf: hashOf) }
        count += 1
        enter(position, hash: hash)
    }

    /// Removes a position, and closes the gap, since a search ends at the first free slot.
    mutating func remove(_ position: Int, hash: Int, hashOf: (Int) -> Int) {
        var gap = hash & mask
        while slots[gap] != Int32(position + 1) {
            if slots[gap] == 0 { return }
            gap = (gap + 1) & mask
        }
        count -= 1
        var slot = (gap + 1) & mask
        while slots[slot] != 0 {
            let home = hashOf(Int(slots[slot]) - 1) & mask
            // The position may move into the gap unless its home lies between the two, also across the end of the
            // table.
            if (slot - home) & mask >= (slot - gap) & mask {
                slots[gap] = slots[slot]
                gap = slot
            }
            slot = (slot + 1) & mask
        }
        slots[gap] = 0
    }

    /// Puts a position in the place of another one with the same hash.
    mutating func replace(_ position: Int, by new: Int, hash: Int) {
        var slot = hash & mask
        while slots[slot] != Int32(position + 1) {
            if slots[slot] == 0 { return }
            slot = (slot + 1) & mask
        }
        slots[slot] = Int32(new + 1)
    }

    /// Makes room for `capacity` positions.
    mutating func reserve(_ capacity: Int, hashOf: (Int) -> Int) {
        var size = slots.count
        while size < capacity * 2 { size *= 2 }
        if size > slots.count { resize(to: size, hashOf: hashOf) }
    }

    private mutating func resize(to size: Int, hashOf: (Int) -> Int) {
        let old = slots
        slots = [Int32](repeating: 0, count: size)
        mask = size - 1
        for entry in old where entry != 0 {
            let position = Int(entry) - 1
            enter(position, hash: hashOf(position))
        }
    }

    private mutating func enter(_ position: Int, hash: Int) {
        var slot = hash & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = Int32(position + 1)
    }
}

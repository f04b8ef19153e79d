/// How many rows belong to each URL, by a 32-bit hash of it, and where a lone one is: answers most lookups without the
/// digest of their key, whose SHA-256 costs more than all else in a miss.
///
/// Open addressing with linear probing, at most half full. Two URLs with the same hash count as one.
struct URITable: Sendable {
    private struct Entry {
        var hash: UInt32
        /// The position of the only row; of several, or one whose position was lost, their number as a negative one; `free`.
        var content: Int32

        static let free = Int32.min
    }

    private var entries = [Entry](repeating: Entry(hash: 0, content: Entry.free), count: 16)
    private var count = 0
    private var warmth: UInt32 = 0

    /// How many URLs it takes without growing.
    var capacity: Int { entries.count / 2 }

    func contains(_ hash: UInt32) -> Bool {
        entries[place(of: hash)].content != Entry.free
    }

    /// The position of the row, where it is the only one.
    func lonePosition(of hash: UInt32) -> Int? {
        let content = entries[place(of: hash)].content
        return content >= 0 ? Int(content) : nil
    }

    mutating func insert(_ hash: UInt32, at position: Int) {
        if (count + 1) * 2 > entries.count { reserve(entries.count) }
        let place = place(of: hash)
        let content = entries[place].content
        if content == Entry.free {
            entries[place] = Entry(hash: hash, content: Int32(position))
            count += 1
        } else {
            entries[place].content = content >= 0 ? -2 : content - 1
        }
    }

    /// - Parameter rest: the position of a row that stays, if it is known; it counts only where it is the last one.
    mutating func remove(_ hash: UInt32, rest: Int?) {
        let place = place(of: hash)
        let content = entries[place].content
        guard content != Entry.free else { return }
        if content >= -1 {
            close(place)
            count -= 1
        } else {
            entries[place].content = content == -2 ? rest.map { Int32($0) } ?? -1 : content + 1
        }
    }

    /// Makes room for that many URLs at once.
    mutating func reserve(_ capacity: Int) {
        var size = entries.count
        while size < capacity * 2 { size *= 2 }
        guard size > entries.count else { return }
        let old = entries
        entries = [Entry](repeating: Entry(hash: 0, content: Entry.free), count: size)
        for entry in old where entry.content != Entry.free { entries[place(of: entry.hash)] = entry }
    }

    /// See `DiskIndex.warm`.
    mutating func warm(_ hashes: some Collection<UInt32>) {
        warmth = hashes.reduce(0) { $0 &+ entries[Int($1) & (entries.count - 1)].hash }
    }

    /// Where the hash is, or else the free place that ends the search for it.
    private func place(of hash: UInt32) -> Int {
        var place = Int(hash) & (entries.count - 1)
        while entries[place].content != Entry.free, entries[place].hash != hash {
            place = (place + 1) & (entries.count - 1)
        }
        return place
    }

    /// Frees a place so that no search ends early.
    private mutating func close(_ place: Int) {
        let mask = entries.count - 1
        var gap = place
        var next = (gap + 1) & mask
        while entries[next].content != Entry.free {
            let home = Int(entries[next].hash) & mask
            // It may move into the gap unless its home lies between the two, round the end or not.
            if (next - home) & mask >= (next - gap) & mask {
                entries[gap] = entries[next]
                gap = next
            }
            next = (next + 1) & mask
        }
        entries[gap].content = Entry.free
    }
}

/// Which records there are, what they take, and in which order they were used.
///
/// Invariants: each row that is in use is in the table once and in the list of use once; `count`, `bytes` and
/// `pinnedBytes` are those of the rows in use, changed together with them; digest and slot name a row uniquely. The order
/// of the list is the truth about recency: times are kept for age limits and for other processes, and a clock set back
/// changes nothing here.
///
/// A value without locks or files: its owner has those.
struct DiskIndex: Sendable {
    private struct Link {
        var previous: Int32
        var next: Int32
    }

    private(set) var count = 0
    private(set) var bytes = 0
    private(set) var pinnedBytes = 0

    private var rows: [IndexRow] = []
    private var links: [Link] = []
    /// Open addressing by the digest's first word: a row's position plus one, or 0. At most half full.
    private var table: [Int32] = [Int32](repeating: 0, count: 16)
    private var mask = 15
    /// The URLs of all rows in use but the partial ones, which have none.
    private var uris = URITable()
    private var partialCount = 0
    /// Of no meaning: without it the compiler would leave out what `warm` looks at.
    private var warmth: UInt64 = 0
    private var firstFree: Int32 = -1
    private var mostRecent: Int32 = -1
    private var leastRecent: Int32 = -1

    // MARK: Looking up

    @inline(__always)
    func forEachRow(of digest: KeyDigest, _ body: (IndexRow) -> Void) {
        var place = Int(truncatingIfNeeded: digest.words[0]) & mask
        while table[place] != 0 {
            let position = Int(table[place] - 1)
            if rows[position].hasDigest(digest) { body(rows[position]) }
            place = (place + 1) & mask
        }
    }

    func rows(of digest: KeyDigest) -> [IndexRow] {
        var found: [IndexRow] = []
        forEachRow(of: digest) { found.append($0) }
        return found
    }

    func contains(_ digest: KeyDigest) -> Bool {
        var isFound = false
        forEachRow(of: digest) { _ in isFound = true }
        return isFound
    }

    /// False only when no row belongs to a URL with this hash.
    func mayContain(uriHash: UInt32) -> Bool {
        partialCount > 0 || uris.contains(uriHash)
    }

    /// The only row of a URL with this hash; nil where there are none or several, or that cannot be told.
    func loneRow(uriHash: UInt32) -> IndexRow? {
        // A row without its URL may be another one of it.
        guard partialCount == 0, let position = uris.lonePosition(of: uriHash) else { return nil }
        return rows[position]
    }

    func row(_ digest: KeyDigest, _ slot: UInt8) -> IndexRow? {
        position(digest, slot).map { rows[$0] }
    }

    private func position(_ digest: KeyDigest, _ slot: UInt8) -> Int? {
        position(of: digest) { $0.slot == slot }
    }

    /// Of the first row of the digest that is wanted.
    @inline(__always)
    private func position(of digest: KeyDigest, where isWanted: (IndexRow) -> Bool) -> Int? {
        var place = Int(truncatingIfNeeded: digest.words[0]) & mask
        while table[place] != 0 {
            let position = Int(table[place] - 1)
            if isWanted(rows[position]) && rows[position].hasDigest(digest) { return position }
            place = (place + 1) & mask
        }
        return nil
    }

    // MARK: Changing

    /// Adds a row as the most recent one, or, with `asOldest`, as the one used longest ago; replaces that of the same
    /// digest and slot.
    mutating func insert(_ row: IndexRow, asOldest: Bool = false) {
        if let position = position(row.digest, row.slot) {
            account(rows[position], at: position, -1)
            rows[position] = row
            account(row, at: position, 1)
            unlink(position)
            link(position, asOldest: asOldest)
            return
        }
        if (count + 1) * 2 > table.count { grow() }
        let position: Int
        if firstFree >= 0 {
            position = Int(firstFree)
            firstFree = links[position].next
            rows[position] = row
        } else {
            position = rows.count
            // By a quarter, not doubling: keeps what a large index takes in memory near what it holds.
            if rows.count == rows.capacity { reserve(rows.count + max(64, rows.count / 4)) }
            rows.append(row)
            links.append(Link(previous: -1, next: -1))
        }
        link(position, asOldest: asOldest)
        enter(position)
        count += 1
        account(row, at: position, 1)
    }

    @discardableResult
    mutating func remove(_ digest: KeyDigest, _ slot: UInt8) -> IndexRow? {
        guard let position = position(digest, slot) else { return nil }
        let row = rows[position]
        leave(position)
        unlink(position)
        links[position].next = firstFree
        firstFree = Int32(position)
        count -= 1
        account(row, at: position, -1)
        return row
    }

    /// Makes every row of the digest the most recent; gives how many of them were not marked as touched before.
    @discardableResult
    mutating func touch(_ digest: KeyDigest, now: UInt32) -> Int {
        var marked = 0
        var place = Int(truncatingIfNeeded: digest.words[0]) & mask
        while table[place] != 0 {
            let position = Int(table[place] - 1)
            if rows[position].hasDigest(digest) {
                rows[position].accessedAt = now
                if !rows[position].flags.contains(.touched) {
                    rows[position].flags.insert(.touched)
                    marked += 1
                }
                if mostRecent != Int32(position) {
                    unlink(position)
                    link(position, asOldest: false)
                }
            }
            place = (place + 1) & mask
        }
        return marked
    }

    /// Takes the marks off the rows touched since the last time, and gives them, the least recent first. `limit` is how
    /// many there are: they lie near the recent end, so the whole list need not be walked.
    mutating func takeTouched(_ limit: Int) -> [IndexRow] {
        var found: [IndexRow] = []
        var position = mostRecent
        while position >= 0, found.count < limit {
            if rows[Int(position)].flags.contains(.touched) {
                rows[Int(position)].flags.remove(.touched)
                found.append(rows[Int(position)])
            }
            position = links[Int(position)].next
        }
        return found.reversed()
    }

    /// Marks the rows of a batch of records; gives the records that have none.
    mutating func setSeen(_ names: ArraySlice<RecordName>) -> [RecordName] {
        warm(names.lazy.map { $0.digest.words[0] })
        return names.filter { name in
            guard let position = position(name.digest, name.slot) else { return true }
            rows[position].flags.insert(.seen)
            return false
        }
    }

    /// Inserts a batch of rows, in their order.
    mutating func insert(_ batch: [IndexRow]) {
        warm(batch.lazy.map(\.hash))
        uris.warm(batch.lazy.map(\.uriHash))
        for row in batch { insert(row) }
    }

    /// Inserts those of a batch that are not known, or by name and size alone.
    mutating func insertMissing(_ batch: [IndexRow]) {
        warm(batch.lazy.map(\.hash))
        for row in batch {
            if let known = position(row.digest, row.slot), !rows[known].isPartial { continue }
            insert(row)
        }
    }

    /// Rows that are looked up or inserted together: few enough that what `warm` fetched for the first is still there for the
    /// last.
    static let batchSize = 256

    /// Looks at the places where rows with these hashes are. In a large index each lies in memory that the processor has to
    /// fetch, and a search waits for one after the other; these loads wait for nothing and overlap.
    private mutating func warm(_ hashes: some Collection<UInt64>) {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: hashes.count) { places in
            var count = 0
            for hash in hashes {
                places.initializeElement(at: count, to: table[Int(truncatingIfNeeded: hash) & mask])
                count += 1
            }
            var sum: UInt64 = 0
            // Both ends: a row lies across two lines of the cache.
            for place in places[..<count] where place != 0 {
                sum &+= rows[Int(place - 1)].hash &+ UInt64(rows[Int(place - 1)].slot)
            }
            warmth = sum
        }
    }

    /// Takes the marks of `setSeen` off; gives the rows that had none.
    mutating func takeUnseen() -> [IndexRow] {
        var unseen: [IndexRow] = []
        var position = mostRecent
        while position >= 0 {
            if rows[Int(position)].flags.contains(.seen) {
                rows[Int(position)].flags.remove(.seen)
            } else {
                unseen.append(rows[Int(position)])
            }
            position = links[Int(position)].next
        }
        return unseen
    }

    // MARK: In order of use

    /// Calls with each row, the least recently used first, until `body` gives false.
    func forEachLeastRecentFirst(_ body: (IndexRow) -> Bool) {
        var position = leastRecent
        while position >= 0 {
            guard body(rows[Int(position)]) else { return }
            position = links[Int(position)].previous
        }
    }

    mutating func reserve(_ capacity: Int) {
        rows.reserveCapacity(capacity)
        links.reserveCapacity(capacity)
    }

    /// Makes room for that many rows at once, as loading does.
    mutating func prepare(for rowCount: Int) {
        reserve(rowCount)
        while table.count < rowCount * 2 { grow() }
        uris.reserve(rowCount)
    }

    // MARK: Private

    /// - Parameter position: of the row, which a removed one has left already.
    private mutating func account(_ row: IndexRow, at position: Int, _ sign: Int) {
        bytes += sign * row.bytes
        if row.isPinned { pinnedBytes += sign * row.bytes }
        if row.isPartial {
            partialCount += sign
        } else if sign > 0 {
            uris.insert(row.uriHash, at: position)
        } else {
            // A record that was replaced leaves its successor.
            let rest = self.position(of: row.digest) { !$0.isPartial && $0.uriHash == row.uriHash }
            uris.remove(row.uriHash, rest: rest)
        }
    }

    private mutating func link(_ position: Int, asOldest: Bool) {
        if asOldest {
            links[position] = Link(previous: leastRecent, next: -1)
            if leastRecent >= 0 { links[Int(leastRecent)].next = Int32(position) } else { mostRecent = Int32(position) }
            leastRecent = Int32(position)
        } else {
            links[position] = Link(previous: -1, next: mostRecent)
            if mostRecent >= 0 {
                links[Int(mostRecent)].previous = Int32(position)
            } else {
                leastRecent = Int32(position)
            }
            mostRecent = Int32(position)
        }
    }

    private mutating func unlink(_ position: Int) {
        let link = links[position]
        if link.previous >= 0 { links[Int(link.previous)].next = link.next } else { mostRecent = link.next }
        if link.next >= 0 { links[Int(link.next)].previous = link.previous } else { leastRecent = link.previous }
    }

    private mutating func enter(_ position: Int) {
        var place = Int(truncatingIfNeeded: rows[position].hash) & mask
        while table[place] != 0 { place = (place + 1) & mask }
        table[place] = Int32(position + 1)
    }

    /// Takes a row off the table, and closes the gap so that no search ends early.
    private mutating func leave(_ position: Int) {
        var gap = Int(truncatingIfNeeded: rows[position].hash) & mask
        while table[gap] != Int32(position + 1) { gap = (gap + 1) & mask }
        var place = (gap + 1) & mask
        while table[place] != 0 {
            let home = Int(truncatingIfNeeded: rows[Int(table[place] - 1)].hash) & mask
            // The row may move into the gap unless its home lies between the two, round the end or not.
            if (place - home) & mask >= (place - gap) & mask {
                table[gap] = table[place]
                gap = place
            }
            place = (place + 1) & mask
        }
        table[gap] = 0
    }

    private mutating func grow() {
        let old = table
        table = [Int32](repeating: 0, count: old.count * 2)
        mask = table.count - 1
        for entry in old where entry != 0 { enter(Int(entry - 1)) }
    }
}

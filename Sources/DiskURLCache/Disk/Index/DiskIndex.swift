/// The index: which records there are, how much space they take, and in which order they were used.
///
/// Invariants: each row is once in the table of names, once among the rows of its resource, and once in the order of
/// use; `count`, `bytes` and `pinnedBytes` are those of the rows, changed together with them; key and slot name a row
/// uniquely; along the order of use `lastUse` never falls. Recency is this order: a wall clock that is set back changes
/// nothing here.
///
/// A value that knows neither locks nor files; its owner has those. Its rows in their order share its memory, so they
/// are taken under a lock in no time, and read without the lock.
struct DiskIndex: Sendable {
    private(set) var count = 0
    private(set) var bytes = 0
    private(set) var pinnedBytes = 0
    /// Whether a row was changed or used since `noteSaved`.
    private(set) var isChanged = false

    private var rows = PagedArray<IndexRow>()
    private var free: [Int32] = []
    private var table = HashTable()
    private var resources = ResourceRows()
    private var order = LRUList()
    private let seed = TableSeed.ofProcess

    init() {}

    // MARK: Lookup

    @inline(__always)
    private func hash(of key: KeyName) -> Int { seed.hash(key.low) }

    @inline(__always)
    func forEachRow(of key: KeyName, _ body: (IndexRow) -> Void) {
        _ = table.position(hash: hash(of: key)) { position in
            if rows[position].key == key { body(rows[position]) }
            return false
        }
    }

    func rows(of key: KeyName) -> [IndexRow] {
        var found: [IndexRow] = []
        forEachRow(of: key) { found.append($0) }
        return found
    }

    /// The rows of all keys of a resource.
    func rows(ofResource resource: UInt64) -> [IndexRow] {
        var found: [IndexRow] = []
        resources.forEach(of: resource, resourceOf: { rows[$0].key.resource }, { found.append(rows[$0]) })
        return found
    }

    func contains(_ key: KeyName) -> Bool {
        table.position(hash: hash(of: key)) { rows[$0].key == key } != nil
    }

    func row(_ name: RecordName) -> IndexRow? {
        position(name).map { rows[$0] }
    }

    private func position(_ name: RecordName) -> Int? {
        table.position(hash: hash(of: name.key)) { position in
            let row = rows[position]
            return row.slot == name.slot && row.key == name.key
        }
    }

    // MARK: Changing

    /// Adds a row, or replaces the row with the same name, as used at that time of the monotonic clock.
    mutating func put(_ row: IndexRow, usedAt time: UInt64) {
        var row = row
        row.lastUse = time
        if let known = position(row.name) {
            row.lastUse = max(time, rows[known].lastUse)
            replace(known, with: row)
            order.remove(known)
            order.insert(known, newerThan: position(usedBy: row.lastUse, from: order.mostRecent))
        } else {
            let older = position(usedBy: time, from: order.mostRecent)
            order.insert(add(row), newerThan: older)
        }
    }

    /// Replaces the row with the same name, which keeps its position. If there is none, adds the row at the position
    /// for its time of access.
    mutating func put(_ row: IndexRow) {
        if let known = position(row.name) {
            var row = row
            row.lastUse = rows[known].lastUse
            replace(known, with: row)
        } else {
            putUnknown([row])
        }
    }

    /// Adds rows whose names are not in the index yet, in one pass over the list. They must be sorted by their time of
    /// access, the oldest first.
    mutating func putUnknown(_ batch: [IndexRow]) {
        var older = order.mostRecent
        for row in batch.reversed() where position(row.name) == nil {
            while let position = older, rows[position].accessedAt > row.accessedAt {
                older = order.older(than: position)
            }
            var row = row
            row.lastUse = older.map { rows[$0].lastUse } ?? 0
            order.insert(add(row), newerThan: older)
        }
    }

    @discardableResult
    mutating func remove(_ name: RecordName) -> IndexRow? {
        guard let position = position(name) else { return nil }
        let row = rows[position]
        table.remove(position, hash: hash(of: row.key)) { seed.hash(rows[$0].key.low) }
        resources.remove(position, of: row.key.resource) { rows[$0].key.resource }
        order.remove(position)
        free.append(Int32(position))
        count -= 1
        account(row, -1)
        return row
    }

    private mutating func add(_ row: IndexRow) -> Int {
        let position: Int
        if let last = free.popLast() {
            position = Int(last)
            rows[position] = row
        } else {
            position = rows.count
            rows.append(row)
        }
        table.insert(position, hash: hash(of: row.key)) { seed.hash(rows[$0].key.low) }
        resources.insert(position, of: row.key.resource) { rows[$0].key.resource }
        count += 1
        account(row, 1)
        return position
    }

    private mutating func replace(_ position: Int, with row: IndexRow) {
        account(rows[position], -1)
        rows[position] = row
        account(row, 1)
    }

    private mutating func account(_ row: IndexRow, _ sign: Int) {
        bytes += sign * row.bytes
        if row.isPinned { pinnedBytes += sign * row.bytes }
        isChanged = true
    }

    /// The rows are in the file.
    mutating func noteSaved() { isChanged = false }

    /// The file could not be written.
    mutating func noteUnsaved() { isChanged = true }

    // MARK: Making

    /// Makes an empty index agree with the folder: every file gets a row, and rows without a file are dropped. A saved
    /// row counts only if the file has the size and the time of writing in the row, and was written before the rows
    /// were saved. All other rows are partial: a changed file keeps the position of its row, an unknown one gets a
    /// position by its time of writing.
    ///
    /// - Parameters:
    ///   - saved: in the order of use, the least recent first.
    ///   - savedAt: when they were saved, in nanoseconds since 1970.
    /// - Returns: the keys of the rows that are partial now: of files that no saved row describes, and of those that a
    ///   partial row describes.
    mutating func fill(
        with saved: [IndexRow], savedAt: Int64, listing: FolderListing
    ) -> (new: [KeyName], unread: [KeyName]) {
        prepare(for: max(saved.count, listing.records.count))
        for row in saved { put(row, usedAt: row.lastUse) }
        var isFound = [Bool](repeating: false, count: rows.count)
        var new: [KeyName] = []
        var unread: [KeyName] = []
        var unknown: [IndexRow] = []
        for (name, status) in listing.records {
            guard let position = position(name) else {
                unknown.append(IndexRow(name, status))
                continue
            }
            isFound[position] = true
            let row = rows[position]
            if row.isAbout(status), status.modified < savedAt {
                if row.isPartial { unread.append(name.key) }
                continue
            }
            var changed = IndexRow(name, status)
            changed.accessedAt = row.accessedAt
            changed.lastUse = row.lastUse
            replace(position, with: changed)
            new.append(name.key)
        }
        for position in isFound.indices where !isFound[position] { remove(rows[position].name) }
        unknown.sort { $0.modified < $1.modified }
        putUnknown(unknown)
        return (new + unknown.map(\.key), unread)
    }

    // MARK: Use

    /// Beginning at a position, the most recent row that was not used after that time.
    private func position(usedBy time: UInt64, from start: Int?) -> Int? {
        var position = start
        while let current = position, rows[current].lastUse > time { position = order.older(than: current) }
        return position
    }

    /// Notes uses of keys: each row moves to the position of its use, unless it was used later already. All uses are
    /// handled in one pass over the list.
    /// - Parameter age: the seconds after which a row is as good as removed: a use of another one of its key does not
    ///   change it. Nil for no limit.
    /// - Returns: whether this was the first change since `noteSaved`.
    @discardableResult
    mutating func note(_ uses: [IndexUse], within age: Double? = nil) -> Bool {
        let wasChanged = isChanged
        var older = order.mostRecent
        for use in uses.sorted(by: { $0.time > $1.time }) { note(use, within: age, after: &older) }
        return isChanged && !wasChanged
    }

    /// The same for a single use.
    mutating func note(_ use: IndexUse, within age: Double? = nil) -> Bool {
        let wasChanged = isChanged
        var older = order.mostRecent
        note(use, within: age, after: &older)
        return isChanged && !wasChanged
    }

    /// - Parameter older: the most recently used row whose last use is not later than the uses handled so far, which
    ///   come from the latest to the earliest: the place where the search for the next use begins.
    private mutating func note(_ use: IndexUse, within age: Double?, after older: inout Int?) {
        // Most keys have one row, and a search for each slot would take most of a use.
        var slots: Slots = []
        forEachRow(of: use.key) { slots.insert(Slots($0.slot)) }
        for slot in 0..<RecordName.slots where slots.contains(slot) {
            guard let current = position(RecordName(key: use.key, slot: slot)), rows[current].lastUse < use.time
            else { continue }
            // A use of another variant does not make it young again.
            if let age, Double(use.seconds) - Double(rows[current].accessedAt) > age { continue }
            rows[current].lastUse = use.time
            rows[current].accessedAt = use.seconds
            isChanged = true
            // The row leaves its old place, so `older` must not stay on it.
            if older == current { older = order.older(than: current) }
            order.remove(current)
            older = position(usedBy: use.time, from: older)
            order.insert(current, newerThan: older)
        }
    }

    /// The rows in the order of use.
    var inOrder: RowsInOrder { RowsInOrder(rows: rows, order: order, count: count) }

    private mutating func reserve(_ capacity: Int) {
        order.reserve(capacity)
        resources.reserve(capacity)
    }

    /// Makes room for this many rows.
    mutating func prepare(for rowCount: Int) {
        reserve(rowCount)
        table.reserve(rowCount) { seed.hash(rows[$0].key.low) }
        resources.reserveTable(rowCount) { rows[$0].key.resource }
    }
}

/// The rows of an index in the order of use, the least recently used first.
///
/// While such a value exists, a change of the index copies the page of rows that it changes, and the first one copies
/// the order. The tables by which rows are found are not part of it, and never copied.
struct RowsInOrder: Sequence, Sendable {
    fileprivate let rows: PagedArray<IndexRow>
    fileprivate let order: LRUList
    let count: Int

    var underestimatedCount: Int { count }

    struct Iterator: IteratorProtocol {
        fileprivate let all: RowsInOrder
        fileprivate var position: Int?

        mutating func next() -> IndexRow? {
            guard let position else { return nil }
            self.position = all.order.newer(than: position)
            return all.rows[position]
        }
    }

    func makeIterator() -> Iterator { Iterator(all: self, position: order.leastRecent) }
}

/// One use of the records of a key.
struct IndexUse: Sendable {
    var key: KeyName
    /// Of the monotonic clock, in nanoseconds.
    var time: UInt64
    /// Seconds since 1970.
    var seconds: UInt32
}

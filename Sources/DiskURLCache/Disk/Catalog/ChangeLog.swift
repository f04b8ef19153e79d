import Foundation

/// The changes since the index was saved; saves them. Confined to `DiskStore.io`.
struct ChangeLog {
    private var storage: IndexStorage
    private let secondary: SecondaryFile
    /// Rows that were removed.
    private var removed: [IndexRow] = []
    /// Everything was removed before that: still to be told to the maintainer, which is another process.
    private var isCleared = false
    /// Rows for the maintainer that could not be handed over yet.
    private var unsent: [JournalRow] = []
    /// Slots whose removal is not saved yet. They are not used again before it is: after a crash, the index on disk would take the
    /// new file for the old one.
    private var freed: [KeyName: UInt8] = [:]
    private var nextSave = 0.0

    init(_ files: any FileSystem, _ paths: DiskPaths) {
        storage = IndexStorage(files, paths)
        secondary = SecondaryFile(files: files, paths: paths)
    }

    // MARK: Noting

    /// A row left the index. Its file is gone, or belongs to nobody.
    mutating func noteRemoved(_ row: IndexRow) {
        removed.append(row)
    }

    /// The file of this name is gone, while the index on disk may still list it.
    mutating func noteFreed(_ name: RecordName) {
        freed[name.key, default: 0] |= 1 << name.slot
    }

    mutating func noteCleared() {
        removed = []
        unsent = []
        freed = [:]
        isCleared = true
        storage.invalidate()
    }

    /// The journal is no longer complete: the next save writes the whole index.
    mutating func invalidate() {
        storage.invalidate()
    }

    /// Slots of a key that must not be used before a save.
    func freedSlots(of key: KeyName) -> UInt8 { freed[key] ?? 0 }

    /// Makes the slots of a key usable, although their removal is not saved.
    mutating func giveOut(slotsOf key: KeyName) {
        freed[key] = nil
    }

    var isEmpty: Bool { removed.isEmpty && !isCleared && unsent.isEmpty }

    /// There is an index on disk to which the journal belongs.
    var hasSnapshot: Bool { storage.snapshot != nil }

    // MARK: Loading

    /// Begins anew with a loaded index; the changes noted before are dropped.
    mutating func begin(with storage: IndexStorage) {
        self.storage = storage
        removed = []
        unsent = []
        isCleared = false
        freed = [:]
    }

    // MARK: Saving

    /// The largest journal, in bytes. A journal longer than half of the index takes longer to load than a new index takes to write.
    /// It also counts towards the capacity, so it gets a small share of that. One block is always allowed: it costs nothing.
    static func journalLimit(rows: Int, capacity: Int) -> Int {
        max(4096, min(max(4096, rows / 2) * JournalRow.length, capacity / 64))
    }

    /// Bytes that saving the whole index would free, where that is more than half of the largest journal; else 0.
    func reclaimable(from catalog: Catalog) -> Int {
        let limit = Self.journalLimit(rows: catalog.read { $0.count }, capacity: catalog.capacity)
        return storage.journalLength > max(4096, limit / 2) ? storage.journalLength - 4096 : 0
    }

    /// For the maintainer: appends to the journal, or writes the whole index where the journal has become too long.
    mutating func save(_ catalog: Catalog, isWhole: Bool = false) {
        do throws(Errno) {
            let count = catalog.read { $0.count }
            let room = Self.journalLimit(rows: count, capacity: catalog.capacity) - storage.journalLength
            let limit = room / JournalRow.length - removed.count
            if !isWhole, storage.snapshot != nil, !isCleared, limit >= 0,
                let dirty = catalog.change({ $0.takeDirty(limit: limit) })
            {
                try storage.append(rows(dirty))
            } else {
                try saveWhole(catalog)
            }
            freed = [:]
        } catch {
            // The old files still hold; listing the records finds what they lack. The next saving is of the whole.
            storage.invalidate()
            catalog.change { $0.clearDirty() }
        }
        (removed, unsent, isCleared) = ([], [], false)
    }

    private mutating func saveWhole(_ catalog: Catalog) throws(Errno) {
        let time = MonotonicTime.seconds
        // A full disk stays full for a while: not tried again at once.
        guard time >= nextSave else { throw Errno(EAGAIN) }
        // A copy, which costs nothing until somebody changes the index meanwhile.
        let index = catalog.change { index in
            index.clearDirty()
            return index
        }
        do throws(Errno) {
            try storage.save(index)
        } catch {
            nextSave = time + 1
            throw error
        }
    }

    /// For a secondary cache: hands the changes to the maintainer.
    mutating func send(_ catalog: Catalog) {
        let dirty = catalog.change { $0.takeDirty(limit: .max) } ?? []
        unsent += rows(dirty)
        (removed, isCleared) = ([], false)
        if unsent.isEmpty { return }
        if secondary.append(unsent) {
            unsent = []
            freed = [:]
        } else if unsent.count > 100_000 {
            // No maintainer has read them for long. The next one lists the records.
            unsent = [.clear]
        }
    }

    /// Removals first: a slot that was emptied is not used again before they are saved.
    private func rows(_ dirty: [IndexRow]) -> [JournalRow] {
        (isCleared ? [.clear] : []) + removed.map { JournalRow(kind: .remove, row: $0) }
            + dirty.map { JournalRow(kind: .put, row: $0) }
    }
}

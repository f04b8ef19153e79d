import Foundation

/// Removals are done on the caller's thread. When a removal returns, the files are gone, even if the process dies next.
extension DiskStore {
    /// Removes all variants of a key.
    func remove(_ key: RequestKey) {
        if !mayRemove { return }
        let key = key.diskKey
        telling(.key(key.name)) {
            withIO { io in
                // Another process may have written one that has no row here yet.
                if io.directory.folder != nil { examine(key.name, &io) }
                removeRecords(key, &io, isExamined: true) { _ in true }
            }
        }
        maintenance.schedule(after: configuration.accessTimeDelay)
    }

    /// Not in a directory of another user. One that is not there yet is made: another process may have entries for it in memory,
    /// and is told of the removal there.
    private var mayRemove: Bool {
        guard !configuration.isReadOnly, isOwnProcess, paths.canBeUsed else { return false }
        return withIO { io in
            _ = isUsable(&io)
            return io.directory.error?.isForeign != true
        }
    }

    /// Tells the other caches before and after: what they read or write meanwhile is removed there, too.
    private func telling(_ removal: SharedRemoval, _ remove: () -> Void) {
        removals.tell(removal, capacity: catalog.capacity)
        remove()
        removals.tell(removal, capacity: catalog.capacity)
    }

    /// Tells them that a variant of a key is gone.
    func tellVariant(of name: KeyName) {
        removals.tell(.variant(name), capacity: catalog.capacity)
    }

    /// Tells them that the folder of records is another one. A cache that found out by itself, up to a second later, would
    /// drop what it stored meanwhile.
    func tellOfNewFolder() {
        removals.tell(.everything, capacity: catalog.capacity)
    }

    /// Removes one variant.
    func remove(_ key: RequestKey, variant: VaryKey) {
        let hash = UInt32(truncatingIfNeeded: variant.recordHash)
        remove(key.diskKey) { $0.varyHash == hash }
    }

    /// Removes the entry with that sequence number.
    func remove(_ key: RequestKey, sequence: UInt64) {
        let key = key.diskKey
        remove(key) { row in
            guard case .record(let record) = reader.read(row.name, .head, limit: .max >> 1) else { return false }
            return record.header.sequence == sequence && record.header.digest == key.digest
        }
    }

    private func remove(_ key: DiskKey, where isRemoved: (IndexRow) -> Bool) {
        if !mayRemove { return }
        if withIO({ removeRecords(key, &$0, where: isRemoved) }) { tellVariant(of: key.name) }
        maintenance.schedule(after: configuration.accessTimeDelay)
    }

    /// Removes those records of a key that `isRemoved` names; false where there was none.
    @discardableResult
    func removeRecords(
        _ key: DiskKey, _ io: inout Section, isExamined: Bool = false, where isRemoved: (IndexRow) -> Bool
    ) -> Bool {
        io.removalCount += 1
        guard let folder = io.directory.folder else { return false }
        // What another process stored a moment ago goes, too: lookups learn of that later, a removal must not. It may not have
        // told of it yet.
        let isCertain =
            removals.isAlone && catalog.isCertain(key.name) && folder == catalog.folder
            && SecondaryFile(files: files, paths: paths).isEmpty
        if !isCertain, !isExamined { examine(key.name, &io) }
        let check = IndexRow.check(of: key.digest)
        var isAny = false
        // A row that still is partial belongs to a file that could not be read: it may be this key's.
        for row in catalog.read({ $0.rows(of: key.name) })
        where (row.keyCheck == check || row.isPartial) && isRemoved(row) {
            removeForGood(row, &io)
            isAny = true
        }
        return isAny
    }

    /// Removes a record. Where its file cannot be unlinked, it is emptied.
    func removeForGood(_ row: IndexRow, _ io: inout Section) {
        // An empty file is a miss, too.
        if !remove(row.name, &io) { empty(row.name) }
        forget(row, &io)
    }

    private func empty(_ name: RecordName) {
        guard recordStatus(name) != nil else { return }
        paths.withRecord(name) { path in
            guard let file = try? files.openFile(path, O_WRONLY) else { return }
            try? files.truncate(file, 0)
            files.closeQuietly(file)
        }
    }

    // MARK: By criteria

    /// Removes every entry for which all conditions hold.
    func remove(matching criteria: DiskCriteria) {
        if !mayRemove { return }
        telling(.matching(SharedCriteria(criteria))) { removeNow(matching: criteria) }
        maintenance.schedule(after: configuration.accessTimeDelay)
    }

    private func removeNow(matching criteria: DiskCriteria) {
        // Another process may have written records that have no row here yet, and given those that have one another head.
        let isAlone = removals.isAlone
        refreshIfNeeded()
        // Where the role is taken for passes only, the refresh had it, and listed nothing.
        if !isAlone, isMaintainer || passLock != nil { maintenance.perform { reconcile() } }
        let rows = withIO { io -> [(row: IndexRow, isCertain: Bool)] in
            io.removalCount += 1
            guard io.directory.folder != nil else { return [] }
            return catalog.read { index in
                var rows: [(row: IndexRow, isCertain: Bool)] = []
                index.forEachLeastRecentFirst { row in
                    switch criteria.judge(row, isCurrent: isAlone) {
                    case .matches: rows.append((row, true))
                    case .mayMatch: rows.append((row, false))
                    case .doesNotMatch: break
                    }
                    return true
                }
                return rows
            }
        }
        for (row, isCertain) in rows {
            withIO { io in
                // A row that changed meanwhile may be that of an entry which another process stored before this call began.
                guard let now = catalog.read({ $0.row(row.name) }),
                    isCertain && now.isSameRecord(as: row) || matches(criteria, now)
                else { return }
                removeForGood(now, &io)
            }
        }
    }

    private func matches(_ criteria: DiskCriteria, _ row: IndexRow) -> Bool {
        guard case .record(let record) = reader.read(row.name, .head, limit: .max >> 1) else { return false }
        let full = IndexRow(record.header, allocated: record.status.allocated, accessedAt: row.accessedAt)
        return criteria.judge(full) != .doesNotMatch && criteria.matches(record.metadata)
    }

    // MARK: Everything

    /// Removes everything, in the same time at any number of entries. The files are deleted later.
    func removeAll() {
        if !mayRemove { return }
        telling(.everything) {
            withIO { io in
                io.removalCount += 1
                clear(&io)
                unlinkIncoming()
                io.discarded.append(catalog.exchange(DiskIndex()))
                catalog.forgetExaminations()
                io.log.noteCleared()
            }
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Moves the records' folder away. While that cannot be done, nothing is read from it.
    func clear(_ io: inout Section) {
        let clearing = removals.withFolder { known in
            let clearing = io.directory.clear()
            if case .done(let new?) = clearing { known = new }
            return clearing
        }
        switch clearing {
        case .done(let folder):
            io.log.invalidate()
            guard let folder else { return }
            catalog.isBlocked = false
            if io.directory.identity != nil { catalog.folder = folder }
        case .failed(let error):
            if let error { io.events.append(.cannotDelete(errno: error.code)) }
            catalog.isBlocked = true
        }
    }
}

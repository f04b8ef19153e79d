import Foundation

/// Removals are done on the caller's thread: when they return the files are gone, whatever happens to the process next.
extension DiskStore {
    /// Removes all variants of a key.
    func remove(_ key: DiskKey) {
        if configuration.isReadOnly { return }
        withIO { io in
            // Staged entries last: they hide the records that they are to replace.
            removeRecords(key, &io) { _ in true }
            state.withLock { $0.staged.remove(key) { _ in true } }
        }
        afterRemoval()
    }

    /// Removes one variant.
    func remove(_ key: DiskKey, sequence: UInt64) {
        if configuration.isReadOnly { return }
        withIO { io in
            removeStaged(&io) { $0.key == key && $0.entry.metadata.sequence == sequence }
            removeRecords(key, &io) { row in
                guard case .record(let record) = reader.read(row.digest, slot: row.slot, .head, limit: .max >> 1)
                else { return false }
                return record.header.sequence == sequence
            }
        }
        afterRemoval()
    }

    func removeVariant(_ key: DiskKey, _ varyHash: UInt64) {
        withIO { io in
            removeRecords(key, &io) { $0.varyHash == UInt32(truncatingIfNeeded: varyHash) }
            state.withLock { $0.staged.remove(key, varyHash: varyHash) }
        }
        afterRemoval()
    }

    /// Removes those records of a key that `isRemoved` names.
    func removeRecords(_ key: DiskKey, _ io: inout IOState, where isRemoved: (IndexRow) -> Bool) {
        let digest = key.digest
        io.removalCount += 1
        guard isFolderOurs() else { return }
        let (isAuthoritative, known) = state.withLock { ($0.isAuthoritative, $0.index.rows(of: digest)) }
        if !isAuthoritative || known.contains(where: \.isPartial) { examine(digest, &io) }
        for row in state.withLock({ $0.index.rows(of: digest) }) where isRemoved(row) {
            removeForGood(row, &io)
        }
    }

    /// Removes staged entries, each with the record that it was to replace: that one is never served again.
    private func removeStaged(_ io: inout IOState, where isRemoved: (StagedWrites.Write) -> Bool) {
        for write in state.withLock({ $0.staged.all(where: isRemoved) }) {
            removeRecords(write.key, &io) { $0.varyHash == UInt32(truncatingIfNeeded: write.varyHash) }
            state.withLock { $0.staged.finish(write) }
        }
    }

    /// Removes a record, or at least what it says.
    private func removeForGood(_ row: IndexRow, _ io: inout IOState) {
        let isGone = remove(RecordName(digest: row.digest, slot: row.slot), &io)
        // A file that cannot be unlinked can often be emptied: then it is a miss, too.
        if !isGone { empty(RecordName(digest: row.digest, slot: row.slot)) }
        state.withLock { _ = $0.index.remove(row.digest, row.slot) }
        io.pending.append(JournalRow(kind: .remove, row: row))
    }

    /// A link in the folder's place leads to files that are not ours to remove.
    private func isFolderOurs() -> Bool {
        (try? files.status(at: paths.records))?.kind == .directory
    }

    private func empty(_ name: RecordName) {
        guard recordStatus(name) != nil else { return }
        paths.withRecord(name.digest, name.slot) { path in
            guard let file = try? files.openFile(path, O_WRONLY) else { return }
            try? files.truncate(file, 0)
            files.closeQuietly(file)
        }
    }

    private func afterRemoval() {
        if state.withLock({ $0.waiters }) > 0 { signalRoom() }
        maintenance.schedule(after: configuration.accessTimeDelay)
    }

    // MARK: By criteria

    /// Removes every entry for which all conditions hold.
    func remove(matching criteria: DiskCriteria) {
        if configuration.isReadOnly { return }
        refreshIfNeeded()
        let rows = withIO { io in
            io.removalCount += 1
            let isOurs = isFolderOurs()
            removeStaged(&io) { criteria.matches($0.key, $0.entry.metadata) }
            return state.withLock { state in
                var rows: [(row: IndexRow, isCertain: Bool)] = []
                guard isOurs else { return rows }
                state.index.forEachLeastRecentFirst { row in
                    switch criteria.judge(row) {
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
                // A row that changed meanwhile is that of an entry stored after this call began.
                guard let now = state.withLock({ $0.index.row(row.digest, row.slot) }), now.isSameRecord(as: row),
                    isCertain || matches(criteria, row)
                else { return }
                removeForGood(row, &io)
            }
        }
        afterRemoval()
    }

    private func matches(_ criteria: DiskCriteria, _ row: IndexRow) -> Bool {
        guard case .record(let record) = reader.read(row.digest, slot: row.slot, .head, limit: .max >> 1)
        else { return false }
        let full = IndexRow(record.header, allocated: record.allocated, accessedAt: row.accessedAt)
        return criteria.judge(full) != .doesNotMatch && criteria.matches(record.metadata)
    }

    // MARK: Everything

    /// Removes everything. The records' folder is moved away, which takes the same time at any number of entries, and is
    /// deleted later; once moved, no lookup of any process finds it.
    func removeAll() {
        if configuration.isReadOnly { return }
        withIO { io in
            io.removalCount += 1
            // First, since staged entries hide the records that they are to replace.
            clear(&io)
            state.withLock { state in
                state.staged.removeAll()
                io.discarded.append(state.index)
                state.index = DiskIndex()
                state.touchedCount = 0
                state.suspects = [:]
            }
            io.pending = [.clear]
            io.freed = [:]
            io.storage.invalidate()
        }
        signalRoom()
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Moves the records' folder away. While that cannot be done, nothing is read from it.
    func clear(_ io: inout IOState) {
        do throws(Errno) {
            let status = try files.status(at: paths.records)
            guard status.kind == .directory else { throw Errno(ELOOP) }
            try files.rename(paths.records, to: paths.newTrash())
            io.hasTrash = true
        } catch {
            // Nothing there, or nothing of ours: nothing to clear.
            if !error.isMissing, error.code != ELOOP, error.code != ENOTDIR {
                if !io.mustClear { io.events.append(.cannotDelete(errno: error.code)) }
                io.mustClear = true
                state.withLock { $0.isBlocked = true }
                return
            }
        }
        io.mustClear = false
        // Its rows name slots that new records will take: after a crash they would pass for those of the new records.
        try? files.unlink(paths.index)
        io.storage.invalidate()
        guard (try? files.status(at: paths.directory + "/.")) != nil else { return }
        try? files.makeDirectory(paths.records)
        let status = try? files.status(at: paths.records)
        state.withLock { state in
            guard let status, status.kind == .directory else { return }
            state.isBlocked = false
            if state.directoryIdentity != nil { state.recordsIdentity = status.identity }
        }
    }
}

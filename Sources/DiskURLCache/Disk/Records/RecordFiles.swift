import Foundation

/// The records' files, and their rows in the index: both change together. All is called while `DiskStore.io` is held.
struct RecordFiles: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    let reader: RecordReader
    let writer: RecordWriter
    let catalog: Catalog
    let clock: WallClock
    let keepsURLs: Bool

    /// The rows of a key as its files are.
    func rows(of key: KeyName, _ events: inout [DiskEvent]) -> [IndexRow] {
        catalog.exactRows(of: key) ?? examine(key, &events)
    }

    /// A file is a different one, or is gone: its row follows if there is an index. While the folder is being listed,
    /// the key is examined afterwards.
    private func note(_ name: RecordName, _ row: IndexRow?, usedAt time: UInt64 = 0) {
        guard catalog.state.isCurrent else {
            if let row { catalog.noteEarly(IndexUse(key: name.key, time: time, seconds: row.accessedAt)) }
            if catalog.state.isOwner { catalog.requestExamination(of: name.key) }
            return
        }
        catalog.change { index in
            if let row { index.put(row, usedAt: time) } else { index.remove(name) }
        }
    }

    // MARK: Writing

    /// Writes the record into a free slot of its name, and removes the record that it replaces. `ENOENT` if the folder
    /// is gone.
    /// - Parameter body: the file that has the body already, if there is one.
    /// - Returns: false if another process stored a later one of its variant meanwhile, which stays.
    func put(
        _ record: inout PreparedRecord, of body: IncomingBody? = nil, usedAt: UInt64, _ events: inout [DiskEvent]
    ) throws(Errno) -> Bool {
        let key = record.footer.name.key
        let variant = UInt32(truncatingIfNeeded: record.footer.varyHash)
        var rows = rows(of: key, &events)
        /// Slots that a file had taken.
        var taken: UInt8 = 0
        var status: FileStatus?
        while status == nil {
            record.footer.name.slot = try freeSlot(beside: rows, not: taken, for: variant, &events)
            do throws(Errno) {
                status = try writer.create(&record, of: body)
            } catch {
                // A different process was here.
                guard error.code == EEXIST, taken.nonzeroBitCount < Int(RecordName.slots) else { throw error }
                taken |= 1 << record.footer.name.slot
                rows = examine(key, &events)
            }
        }
        guard let status else { return false }
        body?.becameRecord()
        let row = IndexRow(record.footer, status, accessedAt: clock.now().recordSeconds)
        note(row.name, row, usedAt: usedAt)
        guard rows.contains(where: { $0.varyHash == variant && $0.slot != row.slot }) else { return true }
        // Only now: the older record is the one to serve until the new one is whole. The files decide: another process
        // may have written a later response of the variant, or another variant, into that slot, and the row does not
        // say so yet.
        let slots = rows.reduce(UInt8(1) << row.slot) { $0 | 1 << $1.slot }
        return examine(key, &events, slots: slots, written: row.slot).contains { $0.slot == row.slot }
    }

    private func freeSlot(
        beside rows: [IndexRow], not taken: UInt8, for variant: UInt32, _ events: inout [DiskEvent]
    ) throws(Errno) -> UInt8 {
        let used = rows.reduce(taken) { $0 | 1 << $1.slot }
        if used != .max { return UInt8((~used).trailingZeroBitCount) }
        // All slots hold variants: the one used longest ago makes room, unless it is the one to be replaced, which must
        // outlive a failure of the new one.
        let others = rows.filter { $0.varyHash != variant && taken & 1 << $0.slot == 0 }
        let oldest = others.min { ($0.lastUse, $0.accessedAt) < ($1.lastUse, $1.accessedAt) }
        guard let oldest, unlink(oldest.name, &events) else { throw Errno(EEXIST) }
        events.append(.evicted(key: oldest.key, bytes: oldest.bytes))
        return oldest.slot
    }

    // MARK: Updating

    /// Gives the record with this sequence number a new tail; its body stays. False if that very record is not there
    /// any more.
    func update(
        _ metadata: EntryMetadata, of key: DiskKey, replacing sequence: UInt64, usedAt: UInt64,
        _ events: inout [DiskEvent]
    ) -> Bool {
        for row in rows(of: key.name, &events) where !row.isPartial {
            do throws(Errno) {
                let update = try writer.append(
                    metadata, to: row.name, of: key.digest, replacing: sequence, keepsURL: keepsURLs,
                    limit: catalog.capacity)
                switch update {
                case .appended(let footer, let status):
                    note(row.name, IndexRow(footer, status, accessedAt: clock.now().recordSeconds), usedAt: usedAt)
                    return true
                case .notFound: break
                case .mustRewrite:
                    if try rewrite(row.name, metadata, key, sequence, usedAt, &events) { return true }
                case .notRepresentable:
                    // The old tail is out of date, and the new one cannot be written.
                    removeForGood(row.name, &events)
                    events.append(.notUpdated(key: row.key, .malformed))
                    return true
                }
            } catch {
                events.append(.notUpdated(key: row.key, .diskFailed(errno: error.code)))
            }
        }
        return false
    }

    /// Writes the record again in a different slot.
    private func rewrite(
        _ name: RecordName, _ metadata: EntryMetadata, _ key: DiskKey, _ sequence: UInt64, _ usedAt: UInt64,
        _ events: inout [DiskEvent]
    ) throws(Errno) -> Bool {
        guard case .record(let old) = reader.read(name, .whole, limit: catalog.capacity),
            old.footer.digest == key.digest, old.footer.sequence == sequence, let body = old.body,
            var record = PreparedRecord(
                StoredEntry(metadata: metadata, body: body), for: DiskKey(old.footer), keepsURL: keepsURLs)
        else { return false }
        _ = try put(&record, usedAt: usedAt, &events)
        // By its new tail the record is a different variant: it was not replaced.
        if name != record.footer.name, status(of: name) != nil { unlink(name, &events) }
        return true
    }

    // MARK: Removing

    /// Removes those records of a key, and of keys that share its name, that `isRemoved` names.
    func remove(_ key: DiskKey, _ events: inout [DiskEvent], where isRemoved: (IndexRow) -> Bool = { _ in true }) {
        for row in rows(of: key.name, &events) where isRemoved(row) { removeForGood(row.name, &events) }
    }

    /// Removes the records of all keys of a resource. Without an index the folder is listed for it.
    func remove(resource: UInt64, _ events: inout [DiskEvent]) {
        for key in catalog.uncertainKeys(ofResource: resource) { examine(key, &events) }
        var names: [RecordName] = []
        if catalog.state.isCurrent {
            names = catalog.read { $0.rows(ofResource: resource).map(\.name) }
        } else {
            try? files.list(paths.records) { text in
                if let name = RecordName(text), name.key.resource == resource { names.append(name) }
                return true
            }
            names.removeAll { status(of: $0) == nil }
        }
        for name in names { removeForGood(name, &events) }
    }

    /// Removes a record. Where its file cannot be unlinked, it is emptied: an empty file is a miss, too.
    func removeForGood(_ name: RecordName, _ events: inout [DiskEvent]) {
        guard !unlink(name, &events) else { return }
        if status(of: name) != nil {
            paths.withRecord(name) { path in
                guard let file = try? files.openFile(path, O_WRONLY) else { return }
                try? files.truncate(file, 0)
                files.closeQuietly(file)
            }
        }
        note(name, nil)
    }

    /// Removes a record's file, and its row; true when it is gone.
    @discardableResult
    func unlink(_ name: RecordName, _ events: inout [DiskEvent]) -> Bool {
        do throws(Errno) {
            try paths.withRecord(name) { path throws(Errno) in try files.unlink(path) }
        } catch {
            guard error.isMissing || error.code == ENOTDIR else {
                events.append(.cannotDelete(errno: error.code))
                return false
            }
        }
        note(name, nil)
        return true
    }

    /// Makes room. False when the record cannot be unlinked: then it is not tried again before all others.
    func evict(_ victim: IndexRow, _ events: inout [DiskEvent]) -> Bool {
        // Removed or replaced meanwhile.
        guard catalog.read({ $0.row(victim.name) })?.isSameRecord(as: victim) == true else { return true }
        guard unlink(victim.name, &events) else {
            catalog.change { $0.put(victim, usedAt: MonotonicTime.nanoseconds) }
            return false
        }
        events.append(.evicted(key: victim.key, bytes: victim.bytes))
        return true
    }

    /// Removes a record that is too old by its row.
    func expire(_ row: IndexRow, _ events: inout [DiskEvent]) {
        // A different cache may have given the record a new tail since: then the row is not about it, and the record
        // stays.
        if let status = status(of: row.name), !row.isAbout(status) { examine(row.key, &events) }
        _ = evict(row, &events)
    }

    // MARK: Examining

    /// The one repair: makes rows and files of a key agree, whatever went wrong between them. Torn and damaged records
    /// go, of two records of one variant the older one goes, and the rows become what the files say.
    ///
    /// - Parameters:
    ///   - verifyingBodies: whether each body is read, too.
    ///   - slots: one bit for each slot to be examined. The rows of the other slots hold.
    ///   - written: the slot of a record that replaces those of its variant that are not newer.
    /// - Returns: the rows, also if there is no index.
    @discardableResult
    func examine(
        _ key: KeyName, _ events: inout [DiskEvent], verifyingBodies: Bool = false, slots: UInt8 = .max,
        written: UInt8? = nil
    ) -> [IndexRow] {
        let isCurrent = catalog.state.isCurrent
        // Before the files are read: what changes from now on is examined again.
        if isCurrent, slots == .max { catalog.examinationEnded(of: key) }
        let known = catalog.read { $0.rows(of: key) }
        var rows = known.filter { slots & 1 << $0.slot == 0 }
        var records: [RecordFooter] = []
        for slot in 0..<RecordName.slots where slots & 1 << slot != 0 {
            let name = RecordName(key: key, slot: slot)
            let old = known.first { $0.slot == slot }
            var reading = reader.read(name, verifyingBodies ? .whole : .tail, limit: catalog.capacity)
            if case .damaged = reading { reading = removeIfDamaged(name, &events) }
            switch reading {
            case .record(let record):
                records.append(record.footer)
                rows.append(
                    IndexRow(
                        record.footer, record.status, accessedAt: old?.accessedAt ?? record.status.modifiedSeconds))
            case .foreign:
                // A record moved here or of another version is counted, and leaves by eviction; anything else is not
                // ours.
                if let status = status(of: name) { rows.append(IndexRow(name, status)) }
            case .unreadable, .damaged:
                // There, but not to be read now: a row makes lookups try again.
                if let row = old ?? status(of: name).map({ IndexRow(name, $0) }) { rows.append(row) }
            case .missing: break
            }
        }
        let latest = EntrySequence.number(at: clock.now() + 60)
        for record in records {
            // A record from the future is the older one: the clock was set back since.
            // A pin gives a record a larger number, and makes the response no newer.
            func rank(_ record: RecordFooter) -> (Int, UInt32, UInt64, Int) {
                let isWritten = record.name.slot == written
                let isFromFuture = record.sequence > latest && !isWritten
                return (isFromFuture ? 0 : 1, record.storedAt, record.sequence, isWritten ? 1 : 0)
            }
            let isOld = records.contains {
                $0.varyHash == record.varyHash && $0.digest == record.digest && rank($0) > rank(record)
            }
            if isOld, unlink(record.name, &events) { rows.removeAll { $0.slot == record.name.slot } }
        }
        guard isCurrent else { return rows }
        return catalog.replaceRows(of: key, by: rows)
    }

    /// Removes a record that proves damaged when read again with no writer at work; gives what it then is. A record
    /// that another process has not finished looks the same, but its writer holds the file's lock.
    private func removeIfDamaged(_ name: RecordName, _ events: inout [DiskEvent]) -> RecordReading {
        paths.withRecord(name) { path in
            do throws(Errno) {
                let file = try files.openFile(path, O_RDONLY)
                defer { files.closeQuietly(file) }
                guard writer.mayLock(), try files.lockFile(file) else { return .damaged }
                // While the lock is ours no other cache removes it as damaged, and no writer is at work.
                let again = reader.read(name, .whole, limit: catalog.capacity)
                guard case .damaged = again else { return again }
                // It was removed, and this is another record, which is being written.
                guard files.isStill(file, at: path) else { return .damaged }
                try files.unlink(path)
                events.append(.removedCorruptRecord(key: name.key))
                return .missing
            } catch {
                return error.isMissing ? .missing : .unreadable(error)
            }
        }
    }

    /// The status of a record's file; nil when there is none, or what has the name is not a file of ours.
    func status(of name: RecordName) -> FileStatus? {
        let status = paths.withRecord(name) { try? files.status(at: $0) }
        return status.flatMap { reader.owner.isTrustedFile($0) ? $0 : nil }
    }
}

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

    /// A file is another one, or is gone: its row follows where there is an index. While the folder is being listed, the key is
    /// examined afterwards.
    private func note(_ name: RecordName, _ row: IndexRow?, usedAt time: UInt64 = 0) {
        switch catalog.state {
        case .owner(_, folder: .some):
            catalog.change { index in
                if let row { index.put(row, usedAt: time) } else { index.remove(name) }
            }
        case .owner(_, folder: nil):
            catalog.requestExamination(of: name.key)
            if row != nil { catalog.noteEarly(name.key, at: time, now: clock.now()) }
        case .guest: if row != nil { catalog.noteEarly(name.key, at: time, now: clock.now()) }
        case .closed, .unusable, .suspended: break
        }
    }

    // MARK: Writing

    /// Writes the record into a free slot of its name, and removes the record that it replaces. `ENOENT` where the folder is gone.
    /// - Parameter body: where it is in a file already.
    /// - Returns: what the record takes on disk; nil where another process stored a later one of its variant meanwhile, which stays.
    func place(
        _ record: inout PreparedRecord, of body: IncomingBody? = nil, usedAt: UInt64, _ events: inout [DiskEvent]
    ) throws(Errno) -> Int? {
        let key = record.header.name.key
        let variant = IndexRow(variantOf: record.header)
        var rows = rows(of: key, &events)
        /// Slots where a file was in the way.
        var taken: UInt8 = 0
        var status: FileStatus?
        while status == nil {
            record.header.name.slot = try freeSlot(beside: rows, not: taken, for: variant, &events)
            do throws(Errno) {
                status = if let body { try writer.adopt(body, &record) } else { try writer.create(&record) }
            } catch {
                // Another process was here.
                guard error.code == EEXIST, taken.nonzeroBitCount < Int(RecordName.slots) else { throw error }
                taken |= 1 << record.header.name.slot
                rows = examine(key, &events)
            }
        }
        guard let status else { return nil }
        body?.becameRecord()
        let row = IndexRow(record.header, status, accessedAt: clock.now().recordSeconds)
        note(row.name, row, usedAt: usedAt)
        let others = rows.filter { $0.isSameVariant(as: row) && $0.slot != row.slot }.map(\.name)
        let relations = others.map { relation(of: $0, to: record.header) }
        if relations.contains(.later) {
            unlink(row.name, &events)
            return nil
        }
        // Only now: the older record is the one to serve until the new one is whole.
        for (other, relation) in zip(others, relations) where relation == .replaced { unlink(other, &events) }
        if relations.contains(.otherVariant) { examine(key, &events) }
        return row.bytes
    }

    private enum Relation {
        case replaced, later, otherVariant
    }

    /// What a record of one variant by its row is to the record that was just written. The file decides: another process may have
    /// written a later response of the variant, or another variant, into that slot, and the row does not say so yet.
    private func relation(of name: RecordName, to header: RecordHeader) -> Relation {
        guard case .record(let other) = reader.read(name, .head, limit: catalog.readLimit) else { return .replaced }
        guard other.header.digest == header.digest, other.header.varyHash == header.varyHash else {
            return .otherVariant
        }
        // A record from the future is not a later one: the clock was set back since.
        if other.header.sequence > EntrySequence.number(at: clock.now()) { return .replaced }
        // A pin gives a record a larger number, and makes the response no newer.
        let isLater = (other.header.storedAt, other.header.sequence) > (header.storedAt, header.sequence)
        return isLater ? .later : .replaced
    }

    private func freeSlot(
        beside rows: [IndexRow], not taken: UInt8, for variant: IndexRow, _ events: inout [DiskEvent]
    ) throws(Errno) -> UInt8 {
        let used = rows.reduce(taken) { $0 | 1 << $1.slot }
        if used != .max { return UInt8((~used).trailingZeroBitCount) }
        // All slots hold variants: the one used longest ago makes room, unless it is the one to be replaced, which must
        // outlive a failure of the new one.
        let others = rows.filter { !$0.isSameVariant(as: variant) && taken & 1 << $0.slot == 0 }
        let oldest = others.min { ($0.lastUse, $0.accessedAt) < ($1.lastUse, $1.accessedAt) }
        guard let oldest, unlink(oldest.name, &events) else { throw Errno(EEXIST) }
        events.append(.evicted(key: oldest.key, bytes: oldest.bytes))
        return oldest.slot
    }

    // MARK: Updating

    /// Gives the record with this sequence number another head; its body stays. False where that very record is not there any more.
    func update(
        _ metadata: EntryMetadata, of key: DiskKey, replacing sequence: UInt64, usedAt: UInt64,
        _ events: inout [DiskEvent]
    ) -> Bool {
        let check = IndexRow.check(of: key.digest)
        for row in rows(of: key.name, &events) where row.keyCheck == check && !row.isPartial {
            do throws(Errno) {
                let update = try writer.append(
                    metadata, to: row.name, of: key.digest, replacing: sequence, keepsURL: keepsURLs,
                    limit: catalog.readLimit)
                switch update {
                case .appended(let header, let status):
                    note(row.name, IndexRow(header, status, accessedAt: clock.now().recordSeconds), usedAt: usedAt)
                    return true
                case .notFound: break
                case .mustRewrite:
                    if try rewrite(row.name, metadata, key, sequence, usedAt, &events) { return true }
                case .notRepresentable:
                    // The old head is out of date, and the new one cannot be written.
                    removeForGood(row.name, &events)
                    events.append(.notUpdated(key: row.key, .notRepresentable))
                    return true
                }
            } catch {
                events.append(.notUpdated(key: row.key, .failed(errno: error.code)))
            }
        }
        return false
    }

    /// Writes the record anew in another slot.
    private func rewrite(
        _ name: RecordName, _ metadata: EntryMetadata, _ key: DiskKey, _ sequence: UInt64, _ usedAt: UInt64,
        _ events: inout [DiskEvent]
    ) throws(Errno) -> Bool {
        guard case .record(let old) = reader.read(name, .whole, limit: catalog.readLimit),
            old.header.digest == key.digest, old.header.sequence == sequence, let body = old.body,
            var record = PreparedRecord(
                StoredEntry(metadata: metadata, body: body), for: DiskKey(old.header), keepsURL: keepsURLs)
        else { return false }
        _ = try place(&record, usedAt: usedAt, &events)
        // Another variant by its new head: it was not replaced by that.
        if name != record.header.name, status(of: name) != nil { unlink(name, &events) }
        return true
    }

    // MARK: Removing

    /// Removes those records of a key that `isRemoved` names; false where there was none.
    @discardableResult
    func remove(_ key: DiskKey, _ events: inout [DiskEvent], where isRemoved: (IndexRow) -> Bool = { _ in true })
        -> Bool
    {
        let check = IndexRow.check(of: key.digest)
        // A row that is partial belongs to a file that could not be read: it may be this key's.
        let removed = rows(of: key.name, &events).filter { ($0.keyCheck == check || $0.isPartial) && isRemoved($0) }
        for row in removed { removeForGood(row.name, &events) }
        return !removed.isEmpty
    }

    /// Removes the records of all keys of a resource. Without an index the folder is listed for it.
    func remove(resource: UInt64, _ events: inout [DiskEvent]) {
        for key in catalog.uncertainKeys(ofResource: resource) { examine(key, &events) }
        var names: [RecordName] = []
        if catalog.state.isCurrent, !catalog.isUncertain {
            names = catalog.read { $0.rows(ofResource: resource).map(\.name) }
        } else {
            try? files.list(paths.records) { text in
                if let name = RecordName(text), name.key.resource == resource { names.append(name) }
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
            try paths.withRecord(name) { path in Result { () throws(Errno) in try files.unlink(path) } }.get()
        } catch {
            guard error.isMissing || error.code == ENOTDIR else {
                events.append(.cannotDelete(errno: error.code))
                return false
            }
        }
        note(name, nil)
        return true
    }

    /// Makes room. False when the record cannot be unlinked.
    func evict(_ victim: IndexRow, _ events: inout [DiskEvent]) -> Bool {
        // Removed or replaced meanwhile.
        guard catalog.read({ $0.row(victim.name) })?.isSameRecord(as: victim) == true else { return true }
        guard unlink(victim.name, &events) else { return false }
        events.append(.evicted(key: victim.key, bytes: victim.bytes))
        return true
    }

    /// Removes a record that is too old by its row.
    func expire(_ row: IndexRow, _ events: inout [DiskEvent]) {
        // Another cache has given the record another head since: the row is not about it.
        if let status = status(of: row.name), !row.isAbout(status) { return catalog.requestExamination(of: row.key) }
        _ = evict(row, &events)
    }

    // MARK: Examining

    /// The one repair: makes rows and files of a key agree, whatever went wrong between them. Torn and damaged records go, of two
    /// records of one variant the older one goes, and the rows become what the files say.
    ///
    /// - Parameter verifyingBodies: whether each body is read, too.
    /// - Returns: the rows, also where there is no index.
    @discardableResult
    func examine(
        _ key: KeyName, _ events: inout [DiskEvent], verifyingBodies: Bool = false
    ) -> [IndexRow] {
        let isCurrent = catalog.state.isCurrent
        // Before the files are read: what changes from now on is examined again.
        if isCurrent { catalog.examinationEnded(of: key) }
        let known = catalog.read { $0.rows(of: key) }
        var rows: [IndexRow] = []
        var records: [RecordHeader] = []
        for slot in 0..<RecordName.slots {
            let name = RecordName(key: key, slot: slot)
            let old = known.first { $0.slot == slot }
            var reading = reader.read(name, verifyingBodies ? .whole : .head, limit: catalog.readLimit)
            if case .damaged = reading { reading = removeIfDamaged(name, &events) }
            switch reading {
            case .record(let record):
                records.append(record.header)
                rows.append(
                    IndexRow(
                        record.header, record.status, accessedAt: old?.accessedAt ?? record.status.modifiedSeconds))
            case .foreign:
                // A record moved here or of another version is counted, and leaves by eviction; anything else is not ours.
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
            func rank(_ header: RecordHeader) -> (Int, UInt64) { (header.sequence > latest ? 0 : 1, header.sequence) }
            let isOld = records.contains {
                $0.varyHash == record.varyHash && $0.digest == record.digest && rank($0) > rank(record)
            }
            if isOld, unlink(record.name, &events) { rows.removeAll { $0.slot == record.name.slot } }
        }
        guard isCurrent else { return rows }
        return catalog.replaceRows(of: key, by: rows)
    }

    /// Removes a record that proves damaged when read again with no writer at work; gives what it then is. A record that
    /// another process has not finished looks the same, but its writer holds the file's lock.
    private func removeIfDamaged(_ name: RecordName, _ events: inout [DiskEvent]) -> RecordReading {
        paths.withRecord(name) { path in
            do throws(Errno) {
                let file = try files.openFile(path, O_RDONLY)
                defer { files.closeQuietly(file) }
                guard writer.mayLock, try files.lockFile(file, exclusively: true) else { return .damaged }
                // While the lock is ours nobody else removes it as damaged, and no writer is at work.
                let again = reader.read(name, .whole, limit: catalog.readLimit)
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
        return status.flatMap { reader.owner.isOwnFile($0) ? $0 : nil }
    }
}

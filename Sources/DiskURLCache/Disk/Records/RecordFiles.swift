import Foundation

/// The files of records and their rows in the index, which change together. All methods are called while `DiskStore.io`
/// is held, but for those that say otherwise.
struct RecordFiles: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    let reader: RecordReader
    let writer: RecordWriter
    let catalog: Catalog
    let clock: WallClock
    let keepsURLs: Bool

    /// The rows that describe the present files of a key.
    func rows(of key: KeyName, _ events: inout [DiskEvent]) -> [IndexRow] {
        catalog.exactRows(of: key) ?? examine(key, &events)
    }

    /// Updates the index after a record's file was replaced (`row`) or removed (nil). If the folder is just being
    /// listed, the key is examined afterwards instead.
    func note(_ name: RecordName, _ row: IndexRow?, usedAt time: UInt64 = 0) {
        guard catalog.state.isCurrent else {
            if row != nil { catalog.addName(name.key) }
            if let row { catalog.noteEarly(IndexUse(key: name.key, time: time, seconds: row.accessedAt)) }
            if catalog.state.isOwner { catalog.requestExamination(of: name.key) }
            return
        }
        catalog.change { index in
            if let row { index.put(row, usedAt: time) } else { index.remove(name) }
        }
    }

    // MARK: Updating

    enum Update {
        case appended
        case mustRewrite(Rewriting)
        /// The record is gone, or was replaced.
        case notFound
    }

    /// A record that has to be written again as a whole, with other metadata, since it gets no further tail.
    struct Rewriting {
        let old: RecordFooter
        let metadata: EntryMetadata
    }

    /// Appends a new tail to the record that has the metadata `old`. Its body stays unchanged.
    func update(
        _ metadata: EntryMetadata, of key: DiskKey, replacing old: EntryMetadata, usedAt: UInt64,
        _ events: inout [DiskEvent]
    ) -> Update {
        for row in rows(of: key.name, &events) where !row.isPartial {
            do throws(Errno) {
                let update = try writer.append(
                    metadata, to: row.name, of: key.digest, replacing: old, keepsURL: keepsURLs,
                    limit: catalog.capacity)
                switch update {
                case .appended(let footer, let status):
                    note(row.name, IndexRow(footer, status, accessedAt: clock.now().recordSeconds), usedAt: usedAt)
                    return .appended
                case .notFound: break
                case .mustRewrite:
                    // Another process may hold the record's lock, so it was not read yet.
                    if let record = tail(of: row.name), record.footer.digest == key.digest,
                        record.metadata.isSameEntry(as: old)
                    {
                        return .mustRewrite(Rewriting(old: record.footer, metadata: metadata))
                    }
                case .notRepresentable:
                    // The old tail is out of date, and the new one cannot be written, so the record is removed.
                    removeForGood(row.name, &events)
                    events.append(.notUpdated(key: row.key, .malformed))
                    return .appended
                }
            } catch {
                events.append(.notUpdated(key: row.key, .diskFailed(errno: error.code)))
            }
        }
        return .notFound
    }

    // MARK: Removing

    /// Removes those records with a key's name for which `isRemoved` returns true.
    func remove(_ key: KeyName, _ events: inout [DiskEvent], where isRemoved: (IndexRow) -> Bool = { _ in true }) {
        for row in rows(of: key, &events) where isRemoved(row) { removeForGood(row.name, &events) }
    }

    /// Removes what guests wrote of keys that they have announced. The index does not know of it.
    func removeAnnounced(_ keys: Set<KeyName>, _ events: inout [DiskEvent]) {
        for row in keys.flatMap({ examine($0, &events) }) { removeForGood(row.name, &events) }
    }

    /// The rows of the records of all keys of a resource. Without an index, the folder is listed once for that.
    /// - Throws: if it cannot be listed.
    func rows(ofResource resource: UInt64, _ events: inout [DiskEvent]) throws(Errno) -> [IndexRow] {
        guard catalog.state.isCurrent else {
            var rows: [IndexRow] = []
            for key in try names(ofResource: resource) {
                let names = (0..<RecordName.slots).map { RecordName(key: key, slot: $0) }
                for name in names { if let status = status(of: name) { rows.append(IndexRow(name, status)) } }
            }
            return rows
        }
        for key in catalog.uncertainKeys(ofResource: resource) { examine(key, &events) }
        return catalog.read { $0.rows(ofResource: resource) }
    }

    private func names(ofResource resource: UInt64) throws(Errno) -> Set<KeyName> {
        if let known = catalog.names(ofResource: resource) { return known }
        catalog.beginNames()
        var all: Set<KeyName> = []
        do throws(Errno) {
            try files.list(paths.records) { text in
                if let name = RecordName(text) { all.insert(name.key) }
                return true
            }
            catalog.fillNames(Array(all))
        } catch {
            catalog.dropNames()
            if !error.isMissing { throw error }
        }
        return all.filter { $0.resource == resource }
    }

    /// Removes a record. If its file cannot be unlinked, it is truncated, since an empty file is a miss, too.
    func removeForGood(_ name: RecordName, _ events: inout [DiskEvent]) {
        guard !unlink(name, &events) else { return }
        if !empty(name), files.restoreModes(paths, owner: reader.owner) { unlink(name, &events) }
        note(name, nil)
    }

    /// False if the file cannot be truncated, or does not belong to the cache.
    private func empty(_ name: RecordName) -> Bool {
        guard status(of: name) != nil else { return false }
        return paths.withRecord(name) { path in
            guard let file = try? files.openFile(path, O_WRONLY) else { return false }
            defer { files.closeQuietly(file) }
            return (try? files.truncate(file, 0)) != nil
        }
    }

    /// Removes a record's file and its row. True if the file is gone.
    @discardableResult
    func unlink(_ name: RecordName, _ events: inout [DiskEvent]) -> Bool {
        if let error = unlinkFile(name) {
            events.append(.cannotDelete(errno: error.code))
            return false
        }
        note(name, nil)
        return true
    }

    /// Removes a record's file. Nil if it is gone. Needs no lock.
    func unlinkFile(_ name: RecordName) -> Errno? {
        do throws(Errno) {
            try paths.withRecord(name) { path throws(Errno) in try files.unlink(path) }
            return nil
        } catch {
            return error.isMissing || error.code == ENOTDIR ? nil : error
        }
    }

    // MARK: Examining

    /// The records of some slots of a key as their files are, and the rows that follow.
    private struct Found {
        var rows: [IndexRow] = []
        var records: [LoadedRecord] = []
    }

    /// The one repair: makes rows and files of a key agree, whatever went wrong between them. Torn and damaged records
    /// are removed, of two records of one variant the older one is removed, and the rows become what the files say.
    ///
    /// - Parameter suspects: slots whose records are read whole, since they looked damaged.
    /// - Returns: the rows, also if there is no index.
    @discardableResult
    func examine(_ key: KeyName, _ events: inout [DiskEvent], suspects: Slots = []) -> [IndexRow] {
        let isCurrent = catalog.state.isCurrent
        // Until the new rows are there, the old ones may lack a record.
        if isCurrent { catalog.beginReading(key) }
        var found = read(key, .all, &events, suspects: suspects)
        removeReplaced(in: &found, writtenNow: nil, &events)
        return isCurrent ? catalog.replaceRows(of: key, by: found.rows) : found.rows
    }

    /// The slots of a key whose records look damaged, bodies included. Reads them whole, in pieces, and needs no lock.
    func damaged(of key: KeyName) -> Slots {
        (0..<RecordName.slots).reduce(into: []) { damaged, slot in
            let name = RecordName(key: key, slot: slot)
            if case .damaged = reader.read(name, .opened, limit: catalog.capacity) { damaged.insert(Slots(slot)) }
        }
    }

    /// Removes the records that a record replaces which was just written. Among others the files decide, not the rows:
    /// another process may have written into the slot of a row. A cache that is alone knows what it has written.
    /// - Parameter slots: those in which such a record may be.
    /// - Returns: false if another process has stored a later response of the variant, which stays.
    /// - Throws: `EEXIST` if another process has removed the record. Then the older ones stay for now.
    func settle(
        _ written: LoadedRecord, _ row: IndexRow, among slots: Slots, _ events: inout [DiskEvent]
    ) throws(Errno) -> Bool {
        let own = Slots(row.slot)
        let others = catalog.read { $0.rows(of: row.key) }.filter { !slots.union(own).contains($0.slot) }
        let isKnown = writer.isAlone()
        var found = read(row.key, isKnown ? slots.subtracting(own) : slots.union(own), &events, suspects: [])
        if isKnown {
            found.records.append(written)
            found.rows.append(row)
        }
        guard found.rows.contains(where: { $0.slot == row.slot }) else { throw Errno(EEXIST) }
        removeReplaced(in: &found, writtenNow: row.slot, &events)
        if found.rows.contains(where: \.isReplaced) { examineLater(row.key) }
        if catalog.state.isCurrent { _ = catalog.replaceRows(of: row.key, by: others + found.rows) }
        return found.rows.contains { $0.slot == row.slot }
    }

    /// Reads the heads of the records in some slots. Removes damaged ones.
    private func read(_ key: KeyName, _ slots: Slots, _ events: inout [DiskEvent], suspects: Slots) -> Found {
        var found = Found()
        let known = catalog.read { $0.rows(of: key) }
        // What this cache is writing is no record yet.
        let slots = slots.subtracting(catalog.slotsBeingWritten(of: key))
        // Asked for once: it takes a lock.
        let extent = self.extent
        for slot in 0..<RecordName.slots where slots.contains(slot) {
            let name = RecordName(key: key, slot: slot)
            let old = known.first { $0.slot == slot }
            var reading = suspects.contains(slot) ? .damaged : reader.read(name, extent, limit: catalog.capacity)
            if case .damaged = reading { reading = removeIfDamaged(name, &events) }
            switch reading {
            case .record(let record):
                found.records.append(record)
                let accessedAt = old?.accessedAt ?? record.status.modifiedSeconds
                found.rows.append(IndexRow(record.footer, record.status, accessedAt: accessedAt))
            case .foreign:
                // A record that was moved here, or is of a different version, is counted and will be evicted. Anything
                // else does not belong to the cache.
                guard let status = status(of: name) else { continue }
                if status.size > catalog.capacity, catalog.state.isOwner, unlink(name, &events) {
                    // It is no record of this cache, and would cost all others their place.
                    events.append(.evicted(key: key, bytes: status.spaceTaken))
                } else {
                    found.rows.append(IndexRow(name, status))
                }
            case .unreadable, .damaged:
                // The file exists but cannot be read now. It keeps its row, so that lookups try again.
                if let old {
                    found.rows.append(old)
                } else if let status = status(of: name) {
                    found.rows.append(IndexRow(name, status))
                }
            case .missing: break
            }
        }
        return found
    }

    /// Of several records of one variant the newest one stays. The row of an older one that cannot be removed now says
    /// that its record is to be read again (`IndexRow.isReplaced`).
    private func removeReplaced(in found: inout Found, writtenNow slot: UInt8?, _ events: inout [DiskEvent]) {
        // A record from the future was stored before the clock was set back, and counts as the older one. The clock of
        // another process may be ahead by so much. A cache that is alone has one clock, but numbers what it stores in
        // one moment.
        let latest = EntrySequence.number(at: clock.now() + (catalog.isAlone ? 1 : 60))
        func rank(_ footer: RecordFooter) -> (Int, UInt64, Int) {
            let isWrittenNow = footer.name.slot == slot
            return (footer.sequence > latest && !isWrittenNow ? 0 : 1, footer.sequence, isWrittenNow ? 1 : 0)
        }
        for record in found.records {
            let isReplaced = found.records.contains {
                $0.isOfSameVariant(as: record) && rank(record.footer) < rank($0.footer)
            }
            guard isReplaced else { continue }
            let name = record.footer.name
            // The record that was just written is no answer any more, also while another cache is removing it.
            if removeReplaced(record, &events) || name.slot == slot {
                found.rows.removeAll { $0.slot == name.slot }
            } else if let place = found.rows.firstIndex(where: { $0.slot == name.slot }) {
                // The cache that has locked it may be its writer, which does not know that it is replaced.
                found.rows[place].flags.insert(.partial)
            }
        }
    }

    /// Removes the record with this footer, if it is still there.
    func removeReplaced(_ footer: RecordFooter, _ events: inout [DiskEvent]) {
        guard case .record(let record) = reader.read(footer.name, extent, limit: catalog.capacity),
            record.footer == footer
        else { return }
        _ = removeReplaced(record, &events)
    }

    /// How a record is read that may have to be removed: among others its file stays open.
    private var extent: RecordReader.Extent { writer.isAlone() ? .tail : .held }

    /// Removes a record that another one replaces. Other caches may see that, too, and have given its name to a new
    /// record by now. So among others it is removed only while its name is still its own, under its lock: no other
    /// cache removes it for this reason meanwhile.
    /// - Returns: whether it is gone. A record that another cache has locked stays for now.
    private func removeReplaced(_ record: LoadedRecord, _ events: inout [DiskEvent]) -> Bool {
        let name = record.footer.name
        guard let file = record.file else { return unlink(name, &events) }
        if writer.mayLock(), (try? files.lockFile(file.file)) == false { return false }
        guard isGone(name, record.status.identity) else { return unlink(name, &events) }
        examineLater(name.key)
        return true
    }

    /// Reads a record again that looked damaged, and removes it if it is; returns the result. A record that another
    /// process is still writing looks the same, but its writer holds the file's lock.
    private func removeIfDamaged(_ name: RecordName, _ events: inout [DiskEvent]) -> RecordReading {
        paths.withRecord(name) { path in
            do throws(Errno) {
                let file = try files.openFile(path, O_RDONLY)
                defer { files.closeQuietly(file) }
                guard writer.mayLock(), try files.lockFile(file) else { return .damaged }
                // While this cache holds the lock, no other one removes the record as damaged, and none is writing it.
                let again = reader.read(name, .opened, limit: catalog.capacity)
                guard case .damaged = again else { return reader.read(name, extent, limit: catalog.capacity) }
                // The record was removed, and a new one is being written in its place.
                guard files.isStill(file, at: path) else { return .damaged }
                try files.unlink(path)
                events.append(.removedCorruptRecord(key: name.key))
                return .missing
            } catch {
                return error.isMissing ? .missing : .unreadable(error)
            }
        }
    }

    /// The status of a record's file; nil if there is none, or if it does not belong to the cache.
    func status(of name: RecordName) -> FileStatus? {
        let status = paths.withRecord(name) { try? files.status(at: $0) }
        return status.flatMap { reader.owner.isTrustedFile($0) ? $0 : nil }
    }
}

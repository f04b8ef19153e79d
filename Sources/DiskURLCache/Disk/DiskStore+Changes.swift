import Foundation

/// The result of a write.
package enum DiskWriteResult: Sendable, Hashable {
    case written(bytes: Int)
    /// A different process stored a later response of the same variant meanwhile: that response stays.
    case superseded
    case dropped(DiskEvent.DropReason)
}

/// Changes are made on the caller's thread. When a write returns, its file is complete; when a removal returns, the files are gone,
/// even if the process dies next.
extension DiskStore {
    // MARK: Writing

    /// Writes an entry, which replaces the one of the same key and variant.
    ///
    /// When an entry is refused, the older one of its key and variant is removed: a replaced response is never served. When writing
    /// fails, on a full disk for example, the older one stays.
    ///
    /// - Parameter usedAt: when it was stored (`MonotonicTime.nanoseconds`): its place in the order of use.
    @discardableResult
    package func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        write(entry, for: key.diskKey, usedAt: usedAt)
    }

    @discardableResult
    func write(_ entry: StoredEntry, for key: DiskKey, usedAt: UInt64) -> DiskWriteResult {
        if configuration.isReadOnly { return .dropped(.unavailable) }
        let largest = largestEntry
        let tooLarge = DiskEvent.DropReason.tooLarge(bytes: entry.body.count, limit: largest)
        if entry.body.count > largest || largest == 0 { return refuse(entry.metadata, key, tooLarge) }
        // Prepared before the lock is taken: summing a large body takes a while.
        guard var record = PreparedRecord(entry, for: key, keepsURL: configuration.keepsURLs)
        else { return refuse(entry.metadata, key, .notRepresentable) }
        if record.footer.recordLength > largest { return refuse(entry.metadata, key, tooLarge) }
        return write(&record, usedAt: usedAt)
    }

    /// - Parameter body: the file that has the body already, if there is one. Then the caller tells of a failure.
    private func write(
        _ record: inout PreparedRecord, of body: IncomingBody? = nil, usedAt: UInt64
    ) -> DiskWriteResult {
        let key = record.footer.name.key
        let result: DiskWriteResult = withIO { io in
            guard isUsable(&io) else {
                if body == nil { io.events.append(.dropped(key: key, .unavailable)) }
                return .dropped(.unavailable)
            }
            announceStored(key)
            do throws(Errno) {
                guard let bytes = try put(&record, of: body, usedAt: usedAt, &io) else { return .superseded }
                io.events.append(.stored(key: key, bytes: bytes))
                return .written(bytes: bytes)
            } catch {
                if body == nil { io.events.append(.dropped(key: key, .failed(errno: error.code))) }
                return .dropped(.failed(errno: error.code))
            }
        }
        if case .written = result { announceStored(key) }
        maintenance.schedule(after: configuration.maintenanceDelay)
        return result
    }

    private func put(
        _ record: inout PreparedRecord, of body: IncomingBody?, usedAt: UInt64, _ io: inout Section
    ) throws(Errno) -> Int? {
        do throws(Errno) {
            return try records.put(&record, of: body, usedAt: usedAt, &io.events)
        } catch {
            // The folder was removed meanwhile, and is made again.
            guard error.isMissing, prepareDirectory(&io, mayMake: true) else { throw error }
            return try records.put(&record, of: body, usedAt: usedAt, &io.events)
        }
    }

    /// A guest tells the owner before it writes a record, so that a removal finds the record of a guest that is killed, and after it: other
    /// caches drop what they have in memory. The owner's own records are found by every guest.
    private func announceStored(_ key: KeyName) {
        if !catalog.state.isOwner { changes.append(.stored(key)) }
    }

    /// Looks at no changes: the caller may hold a lock that applying them takes, and looks afterwards.
    /// - Parameter tells: whether an event says so; false if the caller does.
    private func refuse(
        _ metadata: EntryMetadata, _ key: DiskKey, _ reason: DiskEvent.DropReason, tells: Bool = true
    ) -> DiskWriteResult {
        if tells { withIO { $0.events.append(.dropped(key: key.name, reason)) } }
        remove(key, looks: false) { $0.varyHash == UInt32(truncatingIfNeeded: metadata.varyHash) }
        return .dropped(reason)
    }

    /// Whether records may be written: the folder is there, made if need be, and it is ours.
    private func isUsable(_ io: inout Section) -> Bool {
        isOpeningProcess && !catalog.state.isClosed && prepareDirectory(&io, mayMake: true)
    }

    /// Gives the stored entry with this sequence number another tail: a 304, or a pin. The body stays, and is not written again.
    /// False if that very record is not there any more: then nothing is changed.
    ///
    /// - Parameter usedAt: as in `write`.
    package func update(
        _ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64
    ) -> Bool {
        if configuration.isReadOnly { return false }
        let key = key.diskKey
        let isDone = withIO { io in
            guard isUsable(&io) else { return false }
            announceStored(key.name)
            return records.update(metadata, of: key, replacing: sequence, usedAt: usedAt, &io.events)
        }
        guard isDone else { return false }
        announceStored(key.name)
        maintenance.schedule(after: configuration.maintenanceDelay)
        return true
    }

    // MARK: Large bodies

    /// A file for a body that begins to arrive. Nothing finds it before `adopt`.
    func beginIncoming() throws(Errno) -> IncomingBody {
        guard !configuration.isReadOnly, withIO({ isUsable(&$0) }) else { throw Errno(0) }
        return try IncomingBody(files, paths, space: incoming, locks: passTime == nil)
    }

    /// Makes a record of a body that has arrived whole, which replaces the one of the same key and variant. As `write` does, it removes
    /// the older one if it refuses this one, and leaves it if writing fails. The caller discards a body that is not adopted.
    func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, usedAt: UInt64
    ) -> DiskWriteResult {
        if configuration.isReadOnly { return .dropped(.unavailable) }
        let key = key.diskKey
        let sum = body.sum
        let largest = largestEntry
        let tooLarge = DiskEvent.DropReason.tooLarge(bytes: sum.length, limit: largest)
        if sum.length > largest { return refuse(metadata, key, tooLarge, tells: false) }
        guard var record = PreparedRecord(metadata, bodyOf: sum, for: key, keepsURL: configuration.keepsURLs)
        else { return refuse(metadata, key, .notRepresentable, tells: false) }
        if record.footer.recordLength > largest { return refuse(metadata, key, tooLarge, tells: false) }
        return write(&record, of: body, usedAt: usedAt)
    }

    // MARK: Uses

    /// Uses that memory answered: the rows take their place in the exact order of use. Times are those of
    /// `MonotonicTime.nanoseconds`.
    func noteUses(_ uses: [(name: KeyName, time: UInt64)]) {
        if uses.isEmpty { return }
        let (now, time) = (clock.now(), MonotonicTime.nanoseconds)
        let noted = uses.map { use in
            let ago = Double(time > use.time ? time - use.time : 0) * 1e-9
            return IndexUse(key: use.name, time: min(use.time, time), seconds: (now - ago).recordSeconds)
        }
        let isFirst = catalog.change { index in
            let wasChanged = index.isChanged
            index.note(noted)
            return !wasChanged && index.isChanged
        }
        if isFirst, !configuration.isReadOnly { maintenance.schedule(after: configuration.savingInterval) }
    }

    // MARK: Removing

    /// Removes all variants of a key.
    package func remove(_ key: RequestKey) {
        let key = key.diskKey
        announcing(.removed(key.name)) { io in records.remove(key, &io.events) }
    }

    /// Removes all that is stored of a resource, whatever else the keys hold (RFC 9111 §4.4). Costs what it removes.
    func remove(resource: UInt64) {
        announcing(.removedResource(resource)) { io in records.remove(resource: resource, &io.events) }
    }

    /// Removes everything, in the same time at any number of entries. The files are deleted later.
    package func removeAll() {
        announcing(.removedAll) { io in
            forgetIndex()
            if clear(&io) { incoming.unlinkAll(files, paths) }
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Removes every entry for which all conditions hold. Other caches take everything for removed.
    package func remove(matching criteria: EntryCriteria) {
        if let resource = criteria.resource, criteria == EntryCriteria(resource: resource) {
            return remove(resource: resource)
        }
        guard mayRemove else { return }
        changes.append(.removedAll)
        checkNow()
        let rows: [IndexRow]
        if refresh() {
            for key in catalog.sharedKeys { withIO { _ = records.examine(key, &$0.events) } }
            rows = catalog.read { $0.leastRecentFirst }
        } else {
            let listing = try? FolderListing(files, paths, owner: configuration.owner)
            rows = listing?.records.map { IndexRow($0.name, $0.status) } ?? []
        }
        for row in rows where criteria.mayMatch(row) {
            withIO { io in if matches(criteria, row) { records.removeForGood(row.name, &io.events) } }
        }
        changes.append(.removedAll)
        scheduleAfterRemoval()
    }

    /// A record that cannot be read is removed, too: it may match.
    private func matches(_ criteria: EntryCriteria, _ row: IndexRow) -> Bool {
        switch reader.read(row.name, .tail, limit: .max >> 1) {
        case .record(let record):
            let accessedAt = catalog.read { $0.row(row.name) }?.accessedAt ?? row.accessedAt
            let full = IndexRow(record.footer, record.status, accessedAt: accessedAt)
            return criteria.mayMatch(full) && criteria.matches(record.metadata)
        case .unreadable, .damaged: return true
        case .missing, .foreign: return false
        }
    }

    /// Removes one variant.
    package func remove(_ key: RequestKey, variant: VaryKey) {
        let hash = UInt32(truncatingIfNeeded: variant.recordHash)
        remove(key.diskKey) { $0.varyHash == hash }
    }

    private func remove(_ key: DiskKey, looks: Bool = true, where isRemoved: (IndexRow) -> Bool) {
        guard mayRemove else { return }
        if looks { checkNow() }
        withIO { _ = records.remove(key, &$0.events, where: isRemoved) }
        // Also if there was no record: other caches may have the response in memory.
        changes.append(.stored(key.name))
        scheduleAfterRemoval()
    }

    /// Removes the record of that name if it still has that sequence, or, with nil, if it still is damaged. False when nothing
    /// was removed.
    package func removeRecord(_ name: RecordName, sequence: UInt64?) -> Bool {
        let isRemoved = withIO { io in
            // Damage may lie in the body: that a record is damaged still is seen with it only.
            let reading = reader.read(name, sequence == nil ? .whole : .tail, limit: .max >> 1)
            switch (reading, sequence) {
            case (.record(let record), let sequence?): guard record.footer.sequence == sequence else { return false }
            case (.damaged, nil): break
            default: return false
            }
            return records.unlink(name, &io.events)
        }
        if isRemoved { changes.append(.stored(name.key)) }
        return isRemoved
    }

    /// Tells the other caches before and after. The first row: a writer that reads none after its write has a record that is found here;
    /// so the rows of guests, which say where their records are, are read after it. The second one: a reader that read a record before
    /// it was gone drops it.
    private func announcing(_ change: DirectoryChange, _ remove: (inout Section) -> Void) {
        guard mayRemove else { return }
        changes.append(change)
        checkNow()
        withIO { remove(&$0) }
        changes.append(change)
        scheduleAfterRemoval()
    }

    private func scheduleAfterRemoval() {
        maintenance.schedule(after: catalog.state.isCurrent ? configuration.savingInterval : 1)
    }

    /// Not in a directory of another user. One that is not there yet is made: another process may have entries for it in memory,
    /// and is told of the removal there.
    private var mayRemove: Bool {
        guard !configuration.isReadOnly, isOpeningProcess, paths.canBeUsed else { return false }
        return withIO { io in
            _ = prepareDirectory(&io, mayMake: true)
            return io.directory.error?.isForeign != true
        }
    }

    /// Moves the records' folder away; false if that cannot be done: then nothing is read from it until it is.
    func clear(_ io: inout Section) -> Bool {
        let wasToClear = io.directory.mustClear
        do throws(Errno) {
            try io.directory.clear()
        } catch {
            if !wasToClear { io.events.append(.cannotDelete(errno: error.code)) }
            become(.unusable(isReadable: false))
            return false
        }
        if case .unusable = catalog.state { become(.guest) }
        followFolder(io)
        return true
    }
}

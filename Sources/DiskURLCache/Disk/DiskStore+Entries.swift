import Foundation

/// The result of a write.
package enum DiskWriteResult: Sendable, Hashable {
    case written
    /// A different process stored a later response of the same variant meanwhile: that response stays.
    case superseded
    case dropped(DiskURLCache.Reason)
}

/// Lookups, stores and removals, on the caller's thread. A lookup reads the slots that the plan of the catalog names,
/// without a lock as long as the plan holds. When a write returns, its file is complete; when a removal returns, the
/// files are gone, even if the process dies next.
extension DiskStore {
    // MARK: Lookups

    /// All live variants of a key, the most recent first. A single small record is read whole at once, its body
    /// verified. Counts as a use of the key.
    package func variants(of key: RequestKey) -> [StoredVariant] {
        variants(named: key.name) { key.digest }
    }

    /// - Parameter digest: the key's, the proof that a record of this name is the key's; asked for only when there is
    ///   one.
    func variants(named name: KeyName, provedBy digest: () -> KeyDigest) -> [StoredVariant] {
        checkIfDue(at: MonotonicTime.nanoseconds)
        let now = clock.now()
        let plan = catalog.plan(name, now: now, isUse: true)
        if plan.isFirstChange { maintenance.schedule(after: configuration.savingInterval) }
        return read(plan, name, digest).compactMap { isTooOld($0.metadata.storedAt, now) ? nil : variant($0) }
    }

    /// Whether a lookup would find something. Not a use.
    package func contains(_ key: RequestKey) -> Bool {
        checkIfDue(at: MonotonicTime.nanoseconds)
        let name = key.name
        return !read(catalog.plan(name, now: clock.now(), isUse: false), name) { key.digest }.isEmpty
    }

    /// False only when a lookup would surely find nothing: the index is complete and has no row of that name.
    package func mayContain(_ key: RequestKey) -> Bool {
        checkIfDue(at: MonotonicTime.nanoseconds)
        return catalog.mayContain(key.name)
    }

    private func variant(_ record: LoadedRecord) -> StoredVariant {
        if let entry = record.entry { return StoredVariant(entry, from: .disk) }
        let footer = record.footer
        return StoredVariant(
            record.metadata, bodyLength: footer.bodyLength, from: .disk,
            open: { self.read(again: footer, .opened)?.opening }, load: { self.read(again: footer, .whole)?.entry })
    }

    private func isTooOld(_ storedAt: Date, _ now: Date) -> Bool {
        guard let age = configuration.maximumStorageAge else { return false }
        return now.timeIntervalSince(storedAt) > age
    }

    // MARK: Reading

    /// The records of the key that the plan finds, one for each variant, the most recent first.
    private func read(_ plan: Catalog.LookupPlan, _ name: KeyName, _ digest: () -> KeyDigest) -> [LoadedRecord] {
        if plan.slots == 0 { return [] }
        var records = plan.isExact ? read(plan.slots, areAll: true, plan, name, digest) : nil
        if records == nil {
            // A record that replaces another one takes another slot: under the lock, none of this process moves past
            // the reader.
            let proof = digest()
            records = withIO { _ in read(plan.isExact ? .max : plan.slots, areAll: false, plan, name) { proof } }
        }
        guard let records, records.count > 1 else { return records ?? [] }
        return oneForEachVariant(records, name)
    }

    /// - Parameter areAll: each of the slots has a record. Nil if one has none, whatever it has: its record was
    ///   replaced meanwhile and is in another slot. The reader may have opened a file that has no name any more, or one
    ///   that is still being written.
    private func read(
        _ slots: UInt8, areAll: Bool, _ plan: Catalog.LookupPlan, _ name: KeyName, _ digest: () -> KeyDigest
    ) -> [LoadedRecord]? {
        var records: [LoadedRecord] = []
        var proof: KeyDigest?
        // Small bodies are read with their metadata, also of several variants: a body that is read later may have been
        // replaced by then.
        for slot in 0..<RecordName.slots where slots & 1 << slot != 0 {
            switch reader.read(RecordName(key: name, slot: slot), .lookup, limit: plan.limit) {
            case .record(let record):
                let expected = proof ?? digest()
                proof = expected
                // A different key may have this name.
                if record.footer.digest == expected { records.append(record) }
            case _ where areAll: return nil
            case .unreadable: break
            case .damaged: requestExamination(of: name, verifyingBodies: true)
            case .missing, .foreign: if plan.known & 1 << slot != 0 { requestExamination(of: name) }
            }
        }
        return records
    }

    /// Of two records of one variant, which a crash may leave, the more recent counts.
    private func oneForEachVariant(_ records: [LoadedRecord], _ name: KeyName) -> [LoadedRecord] {
        var best: [LoadedRecord] = []
        for record in records.sorted(by: { $0.footer.sequence > $1.footer.sequence }) {
            if best.contains(where: { $0.footer.varyHash == record.footer.varyHash }) {
                requestExamination(of: name)
            } else {
                best.append(record)
            }
        }
        return best
    }

    /// A record that was found before, with its body; nil if another record has its slot by now.
    private func read(again footer: RecordFooter, _ extent: RecordReader.Extent) -> LoadedRecord? {
        switch reader.read(footer.name, extent, limit: catalog.capacity) {
        case .record(let record):
            let isSame = record.footer.digest == footer.digest && record.footer.sequence == footer.sequence
            return isSame ? record : nil
        case .damaged: requestExamination(of: footer.name.key, verifyingBodies: true)
        case .missing, .unreadable, .foreign: break
        }
        return nil
    }

    /// Notes that a key's files and rows do not agree; the maintenance queue looks into it.
    private func requestExamination(of key: KeyName, verifyingBodies: Bool = false) {
        if configuration.isReadOnly { return }
        catalog.requestExamination(of: key, verifyingBodies: verifyingBodies)
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    // MARK: Writing

    /// Writes an entry, which replaces the one of the same key and variant.
    ///
    /// When an entry is refused, the older one of its key and variant is removed: a replaced response is never served.
    /// When writing fails, on a full disk for example, the older one stays.
    ///
    /// - Parameter usedAt: when it was stored (`MonotonicTime.nanoseconds`): its place in the order of use.
    @discardableResult
    package func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        // Prepared before a lock is taken: summing a large body takes a while.
        let key = key.diskKey
        let record = PreparedRecord(entry, for: key, keepsURL: configuration.keepsURLs)
        return write(record, entry.metadata, for: key, usedAt: usedAt)
    }

    /// Makes a record of a body that has arrived whole, as `write` does. The caller discards a body that is not
    /// adopted.
    func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, usedAt: UInt64
    ) -> DiskWriteResult {
        let key = key.diskKey
        let record = PreparedRecord(metadata, bodyOf: body.sum, for: key, keepsURL: configuration.keepsURLs)
        return write(record, of: body, metadata, for: key, usedAt: usedAt)
    }

    /// - Parameters:
    ///   - record: nil if the metadata cannot be kept as they are.
    ///   - body: the file that has the body already, if there is one.
    func write(
        _ record: PreparedRecord?, of body: IncomingBody? = nil, _ metadata: EntryMetadata, for key: DiskKey,
        usedAt: UInt64
    ) -> DiskWriteResult {
        let largest = largestEntry
        guard var record, record.footer.recordLength <= largest else {
            remove(key, variant: metadata.varyHash)
            let length = record?.footer.bodyLength
            return .dropped(length.map { .tooLarge(bytes: $0, limit: largest) } ?? .malformed)
        }
        let result: DiskWriteResult = withIO { io in
            guard isUsable(&io) else { return .dropped(.diskFailed(errno: 0)) }
            announceStored(key.name)
            do throws(Errno) {
                return try put(&record, of: body, usedAt: usedAt, &io) ? .written : .superseded
            } catch {
                return .dropped(.diskFailed(errno: error.code))
            }
        }
        if result == .written { announceStored(key.name) }
        maintenance.schedule(after: configuration.maintenanceDelay)
        return result
    }

    private func put(
        _ record: inout PreparedRecord, of body: IncomingBody?, usedAt: UInt64, _ io: inout Section
    ) throws(Errno) -> Bool {
        do throws(Errno) {
            return try records.put(&record, of: body, usedAt: usedAt, &io.events)
        } catch {
            // The folder was removed meanwhile, and is made again.
            guard error.isMissing, prepareDirectory(&io, mayMake: true) else { throw error }
            return try records.put(&record, of: body, usedAt: usedAt, &io.events)
        }
    }

    /// A guest tells the owner before it writes a record, so that a removal finds the record of a guest that is killed,
    /// and after it: other caches drop what they have in memory. The owner's own records are found by every guest.
    private func announceStored(_ key: KeyName) {
        if !catalog.state.isOwner { changes.append(.stored(key)) }
    }

    /// Whether records may be written: the folder is there, made if need be, and it is ours.
    private func isUsable(_ io: inout Section) -> Bool {
        isOpeningProcess && !configuration.isReadOnly && !catalog.state.isClosed
            && prepareDirectory(&io, mayMake: true)
    }

    /// Gives the stored entry with this sequence number another tail: a 304, or a pin. The body stays, and is not
    /// written again. False if that very record is not there any more: then nothing is changed.
    ///
    /// - Parameter usedAt: as in `write`.
    package func update(
        _ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64
    ) -> Bool {
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
        guard withIO({ isUsable(&$0) }) else { throw Errno(0) }
        return try IncomingBody(files, paths, space: incoming, locks: passTime == nil)
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
        if catalog.change({ $0.note(noted) }) { maintenance.schedule(after: configuration.savingInterval) }
    }

    // MARK: Removing

    /// Removes all variants of a key.
    package func remove(_ key: RequestKey) {
        let key = key.diskKey
        announcing(.removed(key.name)) { withIO { records.remove(key, &$0.events) } }
    }

    /// Removes one variant.
    package func remove(_ key: RequestKey, variant: VaryKey) { remove(key.diskKey, variant: variant.recordHash) }

    private func remove(_ key: DiskKey, variant: UInt64) {
        let hash = UInt32(truncatingIfNeeded: variant)
        // Also told if there is no record: other caches may have the response in memory.
        announcing(.stored(key.name)) { withIO { records.remove(key, &$0.events) { $0.varyHash == hash } } }
    }

    /// Removes everything, in the same time at any number of entries. The files are deleted later.
    package func removeAll() {
        announcing(.removedAll) {
            withIO { io in
                catalog.forget()
                if clear(&io) { incoming.unlinkAll(files, paths) }
            }
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Removes every entry for which all conditions hold. Costs what it removes if a resource is the one condition (RFC
    /// 9111 §4.4). Otherwise other caches take everything for removed.
    package func remove(matching criteria: EntryCriteria) {
        if let resource = criteria.resource, criteria == EntryCriteria(resource: resource) {
            return announcing(.removedResource(resource)) { withIO { records.remove(resource: resource, &$0.events) } }
        }
        announcing(.removedAll) {
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
        }
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

    /// Removes the record of that name if it still has that sequence, or, with nil, if it still is damaged. False when
    /// nothing was removed.
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

    /// Tells the other caches before and after a removal. The first row: a writer that reads none after its write has a
    /// record that is found here; so the rows of guests, which say where their records are, are read after it. The
    /// second one: a reader that read a record before it was gone drops it.
    private func announcing(_ change: DirectoryChange, _ remove: () -> Void) {
        guard mayRemove else { return }
        if change.isRemoval { changes.append(change) }
        checkNow()
        remove()
        changes.append(change)
        maintenance.schedule(after: catalog.state.isCurrent ? configuration.savingInterval : 1)
    }

    /// Not in a directory of another user. One that is not there yet is made: another process may have entries for it
    /// in memory, and is told of the removal there.
    private var mayRemove: Bool {
        guard !configuration.isReadOnly, isOpeningProcess, paths.canBeUsed else { return false }
        return withIO { io in
            _ = prepareDirectory(&io, mayMake: true)
            return io.directory.error?.isForeign != true
        }
    }
}

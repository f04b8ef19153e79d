import Foundation

/// Lookups, stores and removals, on the caller's thread. A lookup reads the slots that the plan of the catalog names,
/// without a lock as long as the plan holds. When a write returns, its file is complete; when a removal returns, the
/// files are gone, even if the process dies next.
extension DiskStore {
    // MARK: Lookups

    /// All live variants of a key, the most recent first. A single small record is read whole at once, its body
    /// verified. Counts as a use of the key.
    package func variants(of key: RequestKey) -> [StoredVariant] {
        variants(named: key.name, RecordProof(of: key))
    }

    func variants(named name: KeyName, _ proof: RecordProof) -> [StoredVariant] {
        checkIfDue(at: MonotonicTime.nanoseconds)
        let now = clock.now()
        let plan = catalog.plan(name, now: now, isUse: true)
        if plan.isFirstChange { maintenance.schedule(after: configuration.savingInterval) }
        return read(plan, name, proof).compactMap { isTooOld($0.metadata.storedAt, now) ? nil : variant($0) }
    }

    /// Whether a lookup would find something. Not a use.
    package func contains(_ key: RequestKey) -> Bool {
        checkIfDue(at: MonotonicTime.nanoseconds)
        let name = key.name
        return !read(catalog.plan(name, now: clock.now(), isUse: false), name, RecordProof(of: key)).isEmpty
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

    /// The records of the key that the plan finds, one for each variant, the most recent first. Small bodies are read
    /// with their metadata, also of several variants: a body that is read later may have been replaced by then.
    private func read(_ plan: Catalog.LookupPlan, _ name: KeyName, _ proof: RecordProof) -> [LoadedRecord] {
        if plan.slots == 0 { return [] }
        var records = plan.isExact ? readRows(plan, name, proof) : nil
        if records == nil {
            // A record that replaces another one takes another slot: under the lock, none of this process moves past
            // the reader.
            records = withIO { _ in probe(plan.isExact ? .max : plan.slots, plan, name, proof) }
        }
        guard let records, records.count > 1 else { return records ?? [] }
        return oneForEachVariant(records, name)
    }

    /// Reads the slots of the rows: each has an intact record. Nil if one has none: its record was replaced meanwhile
    /// and is in another slot. The reader may have opened a file that has no name any more, or one that is still being
    /// written.
    private func readRows(_ plan: Catalog.LookupPlan, _ name: KeyName, _ proof: RecordProof) -> [LoadedRecord]? {
        var records: [LoadedRecord] = []
        for slot in 0..<RecordName.slots where plan.slots & 1 << slot != 0 {
            guard
                case .record(let record) = reader.read(
                    RecordName(key: name, slot: slot), .lookup, limit: plan.limit)
            else { return nil }
            // A different key may have this name.
            if proof.holds(for: record) { records.append(record) }
        }
        return records
    }

    /// Looks for records in slots that may have none.
    private func probe(
        _ slots: UInt8, _ plan: Catalog.LookupPlan, _ name: KeyName, _ proof: RecordProof
    ) -> [LoadedRecord] {
        var records: [LoadedRecord] = []
        for slot in 0..<RecordName.slots where slots & 1 << slot != 0 {
            switch reader.read(RecordName(key: name, slot: slot), .lookup, limit: plan.limit) {
            case .record(let record): if proof.holds(for: record) { records.append(record) }
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
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? entry.metadata.url : nil)
        let record = PreparedRecord(entry, for: key, keepsURL: configuration.keepsURLs)
        return write(record, entry.metadata, for: key, usedAt: usedAt)
    }

    /// Makes a record of a body that has arrived whole, as `write` does. The caller discards a body that is not
    /// adopted.
    func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, usedAt: UInt64
    ) -> DiskWriteResult {
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? metadata.url : nil)
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
            remove(key.name, variant: metadata.varyHash)
            let length = record?.footer.bodyLength
            return .dropped(length.map { .tooLarge(bytes: $0, limit: largest) } ?? .malformed)
        }
        if let failure = beginStore(of: key.name) { return .dropped(.diskFailed(errno: failure.code)) }
        defer { endStore(of: key.name) }
        let result: DiskWriteResult = withIO { io in
            guard isUsable(&io) else { return .dropped(.diskFailed(errno: 0)) }
            do throws(Errno) {
                return try put(&record, of: body, usedAt: usedAt, &io) ? .written : .superseded
            } catch {
                return .dropped(.diskFailed(errno: error.code))
            }
        }
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

    /// A guest tells the owner before it writes a record, so that a removal finds the record of a guest that is killed.
    /// Gives the error if it cannot: then nothing is to be written.
    private func beginStore(of key: KeyName) -> Errno? {
        guard isOpeningProcess, !configuration.isReadOnly else { return Errno(0) }
        let (failure, events) = membership.beginStore(of: key, for: self)
        tell(events)
        return failure
    }

    /// And after it: other caches drop what they have in memory, and this one hears what was removed meanwhile.
    private func endStore(of key: KeyName) { tell(membership.endStore(of: key, for: self)) }

    /// Whether records may be written: the folder is there, made if need be, and it is ours. An owner that is alone
    /// knows that for a second; and a file cannot be made in a folder that is gone.
    private func isUsable(_ io: inout Section) -> Bool {
        guard isOpeningProcess, !configuration.isReadOnly, !catalog.state.isClosed else { return false }
        return catalog.isAloneAndCurrent || prepareDirectory(&io, mayMake: true)
    }

    /// Gives the stored entry with this sequence number another tail: a 304, or a pin. The body stays, and is not
    /// written again. False if that very record is not there any more: then nothing is changed.
    ///
    /// - Parameter usedAt: as in `write`.
    package func update(
        _ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64
    ) -> Bool {
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? metadata.url : nil)
        guard beginStore(of: key.name) == nil else { return false }
        // To bring nothing back needs no look: a cache that comes meanwhile removes the record, and then this fails.
        defer { if !catalog.isAlone { endStore(of: key.name) } }
        let update = withIO { io in
            isUsable(&io)
                ? records.update(metadata, of: key, replacing: sequence, usedAt: usedAt, &io.events) : .notFound
        }
        switch update {
        case .notFound: return false
        case .appended: break
        // A cache that came meanwhile, and removed the old record, does not know of the new one.
        case .rewritten: endStore(of: key.name)
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
        return true
    }

    // MARK: Large bodies

    /// A file for a body that begins to arrive. Nothing finds it before `adopt`.
    func beginIncoming() throws(Errno) -> IncomingBody {
        guard withIO({ isUsable(&$0) }) else { throw Errno(0) }
        return try IncomingBody(files, paths, space: incoming, locks: passTime == nil)
    }

    // MARK: Removing

    /// Removes all variants of a key.
    package func remove(_ key: RequestKey) {
        let name = key.name
        announcing(.removed(name)) { withIO { records.remove(name, &$0.events) } }
    }

    /// Removes one variant.
    package func remove(_ key: RequestKey, variant: VaryKey) { remove(key.name, variant: variant.recordHash) }

    private func remove(_ name: KeyName, variant: UInt64) {
        let hash = UInt32(truncatingIfNeeded: variant)
        // Of a record that is not there nothing is told: the names of responses that are in memory only reach no disk.
        guard catalog.exactRows(of: name)?.contains(where: { $0.varyHash == hash }) != false else { return }
        announcing(.stored(name)) { withIO { records.remove(name, &$0.events) { $0.varyHash == hash } } }
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
            // The heads are read without a lock.
            for row in rows where criteria.mayMatch(row) && matches(criteria, row) {
                withIO { io in
                    let isSame = catalog.exactRows(of: row.key)?.contains { $0.isSameRecord(as: row) } == true
                    if isSame || matches(criteria, row) { records.removeForGood(row.name, &io.events) }
                }
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
        if isRemoved {
            for change in [DirectoryChange.storing(name.key), .stored(name.key)] {
                tell(membership.tell(change, for: self))
            }
        }
        return isRemoved
    }

    /// Tells the other caches before and after a removal, if there are any.
    private func announcing(_ change: DirectoryChange, _ remove: () -> Void) {
        guard mayRemove else { return }
        // A guest's change of one variant counts as a store: from here on the owner looks at the files of the key.
        if case .stored(let key) = change, !isOwner { tell(membership.tell(.storing(key), for: self)) }
        tell(membership.beginRemoval(change, for: self))
        remove()
        let (isUntold, events) = membership.endRemoval(change, for: self)
        tell(events)
        maintenance.schedule(after: isUntold || !catalog.state.isCurrent ? 1 : configuration.savingInterval)
    }

    /// Not in a directory of another user. One that is not there yet is made: another process may have entries for it
    /// in memory, and is told of the removal there.
    private var mayRemove: Bool {
        guard !configuration.isReadOnly, isOpeningProcess, paths.canBeUsed else { return false }
        if catalog.isAloneAndCurrent { return true }
        return withIO { io in
            _ = prepareDirectory(&io, mayMake: true)
            return io.directory.error?.isForeign != true
        }
    }
}

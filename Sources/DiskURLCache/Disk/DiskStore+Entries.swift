import Foundation

/// Lookups, stores and removals, on the caller's thread. A lookup reads the slots that the catalog's plan names; it
/// takes a lock only if it does not find what the plan said. When a write returns, its file is complete; when a removal
/// returns, the files are removed, even if the process dies the next moment.
extension DiskStore {
    // MARK: Lookups

    /// All variants of a key that have not expired, the most recent first. Small records are read and verified as a
    /// whole at once. This counts as a use of the key.
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

    /// Whether a lookup would find a record. This does not count as a use.
    package func contains(_ key: RequestKey) -> Bool {
        checkIfDue(at: MonotonicTime.nanoseconds)
        let name = key.name
        return !read(catalog.plan(name, now: clock.now(), isUse: false), name, RecordProof(of: key)).isEmpty
    }

    /// False if a lookup would certainly find nothing: the index is complete and has no row with that name.
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

    /// The records of the key in the slots of the plan, one for each variant, the most recent first. Small bodies are
    /// read together with the metadata, also if there are several variants, since a record may be replaced before its
    /// body is read later.
    private func read(_ plan: Catalog.LookupPlan, _ name: KeyName, _ proof: RecordProof) -> [LoadedRecord] {
        if plan.slots == 0 { return [] }
        var records = plan.isExact ? readRows(plan, name, proof) : nil
        if records == nil {
            // A replaced record's successor is in a different slot. Under the lock no store of this process can move a
            // record while the slots are read.
            records = withIO { _ in probe(plan.isExact ? .max : plan.slots, plan, name, proof) }
        }
        guard let records, records.count > 1 else { return records ?? [] }
        let newest = records.newestOfEachVariant()
        if newest.count < records.count { requestExamination(of: name) }
        return newest
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
            // A record of a different key may have the same name.
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

    /// Reads a record that was found before once more, with its body; nil if its slot has a different record by now.
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

    /// Writes an entry in place of the one with the same key and variant.
    ///
    /// If the entry is refused, the older one is removed all the same, since a replaced response must not be served. If
    /// writing fails, for example on a full disk, the older one is kept.
    ///
    /// - Parameter usedAt: the time of storing (`MonotonicTime.nanoseconds`), which decides its position in the order
    ///   of use.
    @discardableResult
    package func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        // Prepared before a lock is taken, since the checksum of a large body takes a while.
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? entry.metadata.url : nil)
        let record = PreparedRecord(entry, for: key, keepsURL: configuration.keepsURLs)
        return write(record, entry.metadata, for: key, usedAt: usedAt)
    }

    /// Like `write`, for a body that is complete in its own file, which becomes the record. If it does not, the caller
    /// discards the body.
    func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, usedAt: UInt64
    ) -> DiskWriteResult {
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? metadata.url : nil)
        let record = PreparedRecord(metadata, bodyOf: body.sum, for: key, keepsURL: configuration.keepsURLs)
        return write(record, of: body, metadata, for: key, usedAt: usedAt)
    }

    /// - Parameters:
    ///   - record: nil if the metadata cannot be written.
    ///   - body: the file that contains the body already, if there is one.
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
        defer { maintenance.schedule(after: configuration.maintenanceDelay) }
        do throws(Errno) {
            return try records.store(&record, of: body, usedAt: usedAt, in: self) ? .written : .superseded
        } catch {
            return .dropped(.diskFailed(errno: error.code))
        }
    }

    /// A guest tells the owner before it writes a record, so that a later removal finds the record even if the guest is
    /// killed. Returns the error if that fails; then nothing may be written.
    private func beginStore(of key: KeyName) -> Errno? {
        guard isOpeningProcess, !configuration.isReadOnly else { return Errno(0) }
        let (failure, events) = membership.beginStore(of: key, for: self)
        tell(events)
        return failure
    }

    /// Tells the other caches after a record was written: they drop the key from their memory, and this cache learns
    /// what was removed meanwhile.
    private func endStore(of key: KeyName) { tell(membership.endStore(of: key, for: self)) }

    /// Whether records may be written: the folder exists, or was made now, and belongs to this user. An owner that is
    /// alone checks once a second; if the folder is gone meanwhile, creating a file in it fails anyway.
    func isUsable(_ io: inout Section) -> Bool {
        guard isOpeningProcess, !configuration.isReadOnly, !catalog.state.isClosed else { return false }
        return catalog.isAloneAndCurrent || prepareDirectory(&io, mayMake: true)
    }

    /// Appends a new tail to the entry with this sequence number, after a 304 or for a pin. The body is not written
    /// again. False if that record is gone or was replaced; then nothing is changed.
    ///
    /// - Parameter usedAt: as in `write`.
    package func update(
        _ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64
    ) -> Bool {
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? metadata.url : nil)
        guard beginStore(of: key.name) == nil else { return false }
        // An update cannot bring back a removed record, so an owner that is alone need not look for others: if a cache
        // comes meanwhile and removes the record, the update fails.
        defer { if !catalog.isAlone { endStore(of: key.name) } }
        let update = withIO { io in
            isUsable(&io)
                ? records.update(metadata, of: key, replacing: sequence, usedAt: usedAt, &io.events) : .notFound
        }
        switch update {
        case .notFound: return false
        case .appended: break
        case .mustRewrite(let rewriting):
            let isRewritten = records.rewrite(rewriting, usedAt: usedAt, in: self)
            // A cache that came meanwhile and removed the old record does not know about the new one.
            endStore(of: key.name)
            if !isRewritten { return false }
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
        return true
    }

    // MARK: Large bodies

    /// Makes a file for a body that begins to arrive. No lookup finds it before `adopt`.
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
        // Nothing is told about a record that does not exist, so that the hash of a response that is only in memory is
        // never written to disk.
        // An index that knows every record is asked without the lock of the files.
        let rows = catalog.exactRows(of: name) ?? withIO { records.examine(name, &$0.events) }
        guard rows.contains(where: { $0.varyHash == hash }) else { return }
        announcing(.stored(name)) { withIO { records.remove(name, &$0.events) { $0.varyHash == hash } } }
    }

    /// Removes the record with this sequence number, if it is still there.
    func remove(_ key: RequestKey, sequence: UInt64) {
        let name = key.name
        announcing(.stored(name)) {
            withIO { io in
                records.remove(name, &io.events) { records.footer(of: $0.name)?.sequence == sequence }
            }
        }
    }

    /// Removes everything, in the same time however many entries there are. The files are deleted later.
    package func removeAll() {
        announcing(.removedAll) {
            withIO { io in
                catalog.forget()
                if clear(&io) { incoming.unlinkAll(files, paths) }
            }
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Removes every entry that meets all conditions. If the only condition is a resource (RFC 9111 §4.4), it visits
    /// only the entries that it removes. Otherwise other caches are told that everything may have been removed.
    package func remove(matching criteria: EntryCriteria) {
        if let resource = criteria.resource, criteria == EntryCriteria(resource: resource) {
            return announcing(.removedResource(resource)) { withIO { records.remove(resource: resource, &$0.events) } }
        }
        announcing(.removedAll) {
            // Heads are read without a lock.
            for row in allRows() where criteria.mayMatch(row) && records.matches(criteria, row) {
                withIO { io in
                    let isSame = catalog.exactRows(of: row.key)?.contains { $0.isSameRecord(as: row) } == true
                    if isSame || records.matches(criteria, row) { records.removeForGood(row.name, &io.events) }
                }
            }
        }
    }

    /// Marks every entry that meets all conditions as stale, by a new tail of its record. Other caches are told that
    /// everything may have been removed, so that they forget what they have in memory. A record that gets no tail, for
    /// example on a full disk, is removed.
    package func markStale(matching criteria: EntryCriteria, at time: Date, sequence: (Date) -> UInt64) {
        announcing(.removedAll) {
            for row in allRows() where criteria.mayMatch(row) && records.matches(criteria, row) {
                withIO { records.markStale(row, matching: criteria, at: time, sequence: sequence, &$0.events) }
            }
        }
    }

    /// The names of all records, the least recently used first.
    func recordNames() -> [RecordName] { allRows().map(\.name) }

    /// Of every record that is known, or that is in the folder.
    private func allRows() -> [IndexRow] {
        if refresh() {
            for key in catalog.sharedKeys { withIO { _ = records.examine(key, &$0.events) } }
            return catalog.read { $0.leastRecentFirst }
        }
        let listing = try? FolderListing(files, paths, owner: configuration.owner)
        return listing?.records.map { IndexRow($0.name, $0.status) } ?? []
    }

    /// Removes the record with that name if it still has that sequence number; with nil, if it is still damaged. False
    /// if nothing was removed.
    package func removeRecord(_ name: RecordName, sequence: UInt64?) -> Bool {
        let isRemoved = withIO { io in
            // The damage may be in the body, so the body has to be read to see that the record is still damaged.
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
    func announcing(_ change: DirectoryChange, _ remove: () -> Void) {
        guard mayRemove else { return }
        // If a guest removes one variant, the owner is told about a store, so that it looks at the files of the key
        // from now on.
        if case .stored(let key) = change, !isOwner { tell(membership.tell(.storing(key), for: self)) }
        tell(membership.beginRemoval(change, for: self))
        remove()
        let (isUntold, events) = membership.endRemoval(change, for: self)
        tell(events)
        maintenance.schedule(after: isUntold || !catalog.state.isCurrent ? 1 : configuration.savingInterval)
    }

    /// Whether removals may be made: not in a directory of another user. A directory that does not exist is made, since
    /// another process may have entries in memory and has to be told about the removal there.
    private var mayRemove: Bool {
        guard !configuration.isReadOnly, isOpeningProcess, paths.canBeUsed else { return false }
        if catalog.isAloneAndCurrent { return true }
        return withIO { io in
            _ = prepareDirectory(&io, mayMake: true)
            return io.directory.error?.isForeign != true
        }
    }
}

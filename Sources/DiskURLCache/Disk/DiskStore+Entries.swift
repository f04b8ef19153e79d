import Foundation

/// Lookups and stores, on the caller's thread. A lookup reads the slots that the catalog's plan names; it takes a lock
/// only if it does not find what the plan said. When a write returns, its file is complete.
extension DiskStore {
    // MARK: Lookups

    /// All variants of a key that have not expired, the most recent first. Small records are read and verified as a
    /// whole at once. This counts as a use of the key. Nil if not all can be read at this moment.
    package func allVariants(of key: RequestKey) -> [StoredVariant]? {
        checkIfDue(at: MonotonicTime.nanoseconds)
        let now = clock.now()
        let plan = catalog.plan(key.name, now: now, isUse: true)
        if plan.isFirstChange { maintenance.schedule(after: configuration.savingInterval) }
        guard let records = read(plan, key) else { return nil }
        guard configuration.maximumStorageAge != nil else { return records.map(variant) }
        return records.filter { !isTooOld($0.metadata.storedAt, now) }.map(variant)
    }

    /// Whether a lookup would find a record. This does not count as a use.
    package func contains(_ key: RequestKey) -> Bool {
        checkIfDue(at: MonotonicTime.nanoseconds)
        let now = clock.now()
        let records = read(catalog.plan(key.name, now: now, isUse: false), key) ?? []
        return records.contains { !isTooOld($0.metadata.storedAt, now) }
    }

    /// False if a lookup would certainly find nothing: the index is complete and has no row with that name.
    package func mayContain(_ key: RequestKey) -> Bool { catalog.mayContain(key.name) }

    private func variant(_ record: LoadedRecord) -> StoredVariant {
        if let entry = record.entry { return StoredVariant(entry, from: .disk) }
        return StoredVariant(
            record.metadata, bodyLength: record.footer.bodyLength, from: .disk,
            open: { self.read(again: record, .opened)?.opening },
            load: { self.read(again: record, .whole)?.entry })
    }

    private func isTooOld(_ storedAt: Date, _ now: Date) -> Bool {
        guard let age = configuration.maximumStorageAge else { return false }
        return now.timeIntervalSince(storedAt) > age
    }

    // MARK: Uses

    /// Uses that memory answered: the rows take their place in the exact order of use. Times are those of
    /// `MonotonicTime.nanoseconds`.
    func noteUses(_ uses: [(name: KeyName, time: UInt64)]) {
        if uses.isEmpty { return }
        let now = clock.now()
        let time = MonotonicTime.nanoseconds
        let noted = uses.map { use in
            let ago = Double(time > use.time ? time - use.time : 0) * 1e-9
            return IndexUse(key: use.name, time: min(use.time, time), seconds: (now - ago).recordSeconds)
        }
        if catalog.note(noted) { maintenance.schedule(after: configuration.savingInterval) }
    }

    // MARK: Reading

    /// The records of the key in the slots of the plan, one for each variant, the most recent first. Small bodies are
    /// read together with the metadata, also if there are several variants, since a record may be replaced before its
    /// body is read later. Nil if not all can be read at this moment.
    private func read(_ plan: Catalog.LookupPlan, _ key: RequestKey) -> [LoadedRecord]? {
        if plan.slots.isEmpty { return [] }
        guard let records = plan.isExact ? readRows(plan, key) ?? probe(plan, key) : probe(plan, key) else {
            return nil
        }
        guard records.count > 1 else { return records }
        let newest = records.newestOfEachVariant()
        if newest.count < records.count { requestExamination(of: plan.name) }
        return newest
    }

    /// Reads the slots of the rows: each has an intact record. Nil if one has none: its record was replaced meanwhile
    /// and is in another slot. The reader may have opened a file that has no name any more, or one that is still being
    /// written.
    private func readRows(_ plan: Catalog.LookupPlan, _ key: RequestKey) -> [LoadedRecord]? {
        var records: [LoadedRecord] = []
        for slot in 0..<RecordName.slots where plan.slots.contains(slot) {
            guard
                case .record(let record) = reader.read(
                    RecordName(key: plan.name, slot: slot), .lookup, limit: plan.limit)
            else { return nil }
            // A record of a different key may have the same name.
            if record.isOf(key) { records.append(record) }
        }
        return records
    }

    /// Looks into all slots that may have a record. A replaced record's successor is in a different slot: under the
    /// lock no store of this process can move a record while the slots are read. Otherwise a lookup could find none of
    /// the two, and take an older variant beside them for the answer.
    private func probe(_ plan: Catalog.LookupPlan, _ key: RequestKey) -> [LoadedRecord]? {
        withIO { _ in probe(Slots.all.subtracting(plan.expired), plan, key) }
    }

    /// Nil if the system does not allow to read a record at this moment: the others could be older, and are no answer.
    /// A record that the disk cannot read (`EIO`), or that somebody has protected, is lost like a damaged one.
    private func probe(_ slots: Slots, _ plan: Catalog.LookupPlan, _ key: RequestKey) -> [LoadedRecord]? {
        var records: [LoadedRecord] = []
        for slot in 0..<RecordName.slots where slots.contains(slot) {
            switch reader.read(RecordName(key: plan.name, slot: slot), .lookup, limit: plan.limit) {
            case .record(let record): if record.isOf(key) { records.append(record) }
            case .unreadable(let error): if mayBeReadLater(error) { return nil }
            case .damaged: requestExamination(of: plan.name, verifyingBodies: true)
            case .missing, .foreign: if plan.known.contains(slot) { requestExamination(of: plan.name) }
            }
        }
        return records
    }

    /// Whether an error says nothing about the record: no descriptor or memory is free, or the device is locked.
    private func mayBeReadLater(_ error: Errno) -> Bool {
        switch error.code {
        case EMFILE, ENFILE, ENOMEM: true
        case EPERM, EACCES: configuration.hasFileProtection
        default: false
        }
    }

    /// Reads a record that was found before once more, with its body; nil if its slot has a different record by now.
    private func read(again found: LoadedRecord, _ extent: RecordReader.Extent) -> LoadedRecord? {
        let name = found.footer.name
        switch reader.read(name, extent, limit: catalog.capacity) {
        case .record(let record):
            let isSame = record.isOfSameVariant(as: found) && record.metadata.isSameResponse(as: found.metadata)
            return isSame ? record : nil
        case .damaged: requestExamination(of: name.key, verifyingBodies: true)
        case .missing, .unreadable, .foreign: break
        }
        return nil
    }

    /// Notes that the files and rows of a key may not agree; the maintenance queue examines them.
    func requestExamination(of key: KeyName, verifyingBodies: Bool = false) {
        if configuration.isReadOnly { return }
        catalog.requestExamination(of: key, verifyingBodies: verifyingBodies)
        maintenance.schedule(after: configuration.maintenanceDelay)
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
        write(entry, in: nil, for: key, usedAt: usedAt)
    }

    /// - Parameter file: has the body already, and becomes the record. If it does not, the caller discards it.
    func write(_ entry: StoredEntry, in file: IncomingBody?, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        // Prepared before a lock is taken, since the checksum of a large body takes a while.
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? entry.metadata.url : nil)
        let record = PreparedRecord(
            entry, checksum: file?.sum.checksum, for: key, keepsURL: configuration.keepsURLs)
        return write(record, file.map { .file($0) } ?? .memory, entry.metadata, for: key, usedAt: usedAt)
    }

    /// Like `write`, for a body that only its own file has. If that does not become the record, the caller discards it.
    func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, usedAt: UInt64
    ) -> DiskWriteResult {
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? metadata.url : nil)
        let record = PreparedRecord(metadata, bodyOf: body.sum, for: key, keepsURL: configuration.keepsURLs)
        return write(record, .file(body), metadata, for: key, usedAt: usedAt)
    }

    /// - Parameters:
    ///   - record: nil if the metadata cannot be written.
    ///   - place: where the body is.
    func write(
        _ record: consuming PreparedRecord?, _ place: BodyPlace, _ metadata: EntryMetadata, for key: DiskKey,
        usedAt: UInt64
    ) -> DiskWriteResult {
        let largest = largestEntry
        let footer = record?.footer
        // Moved: its tail is changed in place.
        guard let footer, footer.recordLength <= largest, var record = consume record else {
            remove(key.name, variant: metadata.varyHash)
            return .dropped(footer.map { .tooLarge(bytes: $0.bodyLength, limit: largest) } ?? .malformed)
        }
        if let failure = beginStore(of: key.name) { return .dropped(.diskFailed(errno: failure.code)) }
        defer { endStore(of: key.name) }
        defer { scheduleAfterWriting() }
        do throws(Errno) {
            return try records.store(&record, place: place, usedAt: usedAt, in: self) ? .written : .superseded
        } catch {
            return .dropped(.diskFailed(errno: error.code))
        }
    }

    /// A guest tells the owner before it writes a record, so that a later removal finds the record even if the guest is
    /// killed. Returns the error if that fails; then nothing may be written.
    private func beginStore(of key: KeyName) -> Errno? {
        guard isOpeningProcess, !configuration.isReadOnly else { return Errno(0) }
        return membership.beginStore(of: key, for: self)
    }

    /// Tells the other caches after a record was written: they drop the key from their memory, and this cache learns
    /// what was removed meanwhile.
    private func endStore(of key: KeyName) { membership.endStore(of: key, for: self) }

    /// Appends a new tail to the record of an entry, after a 304 or for a pin. The body is not written again. False if
    /// that record is gone or was replaced; then nothing is changed.
    ///
    /// - Parameters:
    ///   - old: the metadata that the record has.
    ///   - usedAt: as in `write`.
    package func update(
        _ metadata: EntryMetadata, of key: RequestKey, replacing old: EntryMetadata, usedAt: UInt64
    ) -> Bool {
        let key = key.diskKey(ofRecordWith: configuration.keepsURLs ? metadata.url : nil)
        guard beginStore(of: key.name) == nil else { return false }
        let update = withIO { io in
            isUsable(&io)
                ? records.update(metadata, of: key, replacing: old, usedAt: usedAt, &io.events) : .notFound
        }
        let isUpdated: Bool
        // It is told once, as it was announced once: the owner counts who is writing a key.
        if case .mustRewrite(let rewriting) = update {
            isUpdated = records.rewrite(rewriting, usedAt: usedAt, in: self)
            // A cache that came meanwhile and removed the old record does not know about the new one.
            endStore(of: key.name)
        } else {
            if case .appended = update { isUpdated = true } else { isUpdated = false }
            // A tail cannot bring back a removed record, so an owner that is alone need not look for others: if a cache
            // comes meanwhile and removes the record, the update fails.
            if !catalog.isAlone { endStore(of: key.name) }
        }
        if isUpdated { scheduleAfterWriting() }
        return isUpdated
    }

    /// A pass soon if it may have to evict or examine. Otherwise it would find nothing to do, fifty times a second
    /// while responses are stored.
    private func scheduleAfterWriting() {
        let isSettled = withIO { catalog.isSettled(besides: bytesBesidesRecords($0)) }
        maintenance.schedule(
            after: configuration.maintenanceDelay, sinceLastPass: isSettled ? configuration.idleInterval : 0)
    }

    // MARK: Large bodies

    /// Makes a file for a body that begins to arrive. No lookup finds it before `adopt`.
    func beginIncoming() throws(Errno) -> IncomingBody {
        guard withIO({ isUsable(&$0) }) else { throw Errno(0) }
        func make() throws(Errno) -> IncomingBody {
            try IncomingBody(files, paths, space: incoming, locks: passTime == nil)
        }
        do throws(Errno) {
            return try make()
        } catch {
            // A removal of everything, or another process's sweep, has deleted the file before it was locked.
            guard error.code == EAGAIN else { throw error }
            return try make()
        }
    }

    // MARK: Whether the directory can be used

    /// Checks whether a read-only directory can be read, and reports it once if not: then every lookup is a miss.
    func checkReadOnly() {
        guard isOpeningProcess else { return }
        withIO { io in
            let error = io.directory.readingError(reader)
            note(error, &io)
            if error == nil { move(.accept) }
        }
    }

    /// Why the directory cannot be used; nil if it can. Waits for the first look at it.
    var openingError: DiskURLCache.Error? {
        maintenance.perform {
            if configuration.isReadOnly { checkReadOnly() }
            return withIO { io in
                if !io.directory.wasOpened && isOpeningProcess { _ = prepareDirectory(&io, mayMake: true) }
                return io.directory.error
            }
        }
    }

    /// Whether records may be written: the folder exists, or was made now, and belongs to this user. An owner that is
    /// alone checks once a second; if the folder is gone meanwhile, creating a file in it fails anyway.
    func isUsable(_ io: inout Section) -> Bool {
        guard isOpeningProcess, !configuration.isReadOnly, !catalog.state.isClosed else { return false }
        return catalog.isAloneAndCurrent || prepareDirectory(&io, mayMake: true)
    }
}

import Foundation

extension DiskStore {
    /// All live variants of a key, the most recent first. Staged entries are among them; a lone small record is read whole
    /// at once, its body verified. Counts as a use of the key.
    func candidates(for key: DiskKey) -> [DiskCandidate] {
        let now = clock.now()
        let plan = plan(for: key, now: now)
        var found = plan.staged.map { DiskCandidate($0.entry) }
        if plan.slots != 0 {
            for record in read(plan, key) {
                if plan.staged.contains(where: { $0.varyHash == record.header.varyHash }) { continue }
                if isTooOld(record.metadata.storedAt, now) { continue }
                found.append(DiskCandidate(record, in: self, for: key))
            }
        }
        if found.count > 1 { found.sort { $0.metadata.sequence > $1.metadata.sequence } }
        return found
    }

    /// The entry whose key is a URL, where its record is the only one of the URL: found by a hash of the URL, and told to be
    /// the right one by the URL in the record, so no digest is computed. Counts as a use of the key.
    ///
    /// Nil says nothing: what is found in no such simple way, and all that may be wrong with it, is for `candidates`.
    func loneEntry(ofURL url: String, uriHash: UInt32) -> (entry: StoredEntry, key: DiskKey)? {
        let now = clock.now()
        let monotonic = MonotonicTime.seconds
        var isFirstTouch = false
        let found: (row: IndexRow, limit: Int)? = state.withLock { state in
            guard state.isAuthoritative, state.staged.isEmpty, !state.isBlocked, monotonic < state.nextCheck,
                let row = state.index.loneRow(uriHash: uriHash), row.flags.contains(.keyedByURL), !isUnused(row, now)
            else { return nil }
            isFirstTouch = state.touch(row.digest, at: now)
            return (row, readLimit(state))
        }
        guard let found else { return nil }
        if isFirstTouch { maintenance.schedule(after: configuration.accessTimeDelay) }
        guard
            case .record(let record) = reader.read(found.row.digest, slot: found.row.slot, .whole, limit: found.limit),
            let body = record.body, record.header.isKeyedByURL, record.metadata.url == url,
            !isTooOld(record.metadata.storedAt, now)
        else { return nil }
        return (StoredEntry(metadata: record.metadata, body: body), DiskKey(record.header))
    }

    /// False only when a lookup would find nothing, told from the URL alone: see `URITable`.
    func mayContain(uriHash: UInt32) -> Bool {
        state.withLock { state in
            // What others may have done is looked for by `candidates`, once a second.
            guard state.isAuthoritative, state.staged.isEmpty, MonotonicTime.seconds < state.nextCheck else {
                return true
            }
            return state.index.mayContain(uriHash: uriHash)
        }
    }

    /// Whether a lookup would find something.
    func contains(_ key: DiskKey) -> Bool {
        let plan = plan(for: key, now: clock.now(), isUse: false)
        if !plan.staged.isEmpty { return true }
        if plan.slots == 0 { return false }
        return !read(plan, key).isEmpty
    }

    /// Counts as a use of the key, for hits that memory answered.
    func touch(_ key: DiskKey) {
        let now = clock.now()
        let isFirst = state.withLock { $0.touch(key.digest, at: now) }
        if isFirst { maintenance.schedule(after: configuration.accessTimeDelay) }
    }

    // MARK: Planning

    /// Where to look for a key's records, decided under the lock; the reading follows without it.
    struct LookupPlan {
        var staged: [StagedWrites.Write] = []
        /// One bit for each slot to be looked at.
        var slots: UInt8 = 0
        var isAuthoritative = false
        /// Slots whose rows the index believes to be good records.
        var known: UInt8 = 0
        /// The largest record that would be read.
        var limit = 0
        fileprivate var isFirstTouch = false
        fileprivate var needsCheck = false
    }

    private func plan(for key: DiskKey, now: Date, isUse: Bool = true) -> LookupPlan {
        let monotonic = MonotonicTime.seconds
        var plan = makePlan(for: key, now: now, monotonic, isUse)
        if plan.needsCheck {
            checkOutside()
            plan = makePlan(for: key, now: now, monotonic, isUse)
        }
        if plan.isFirstTouch { maintenance.schedule(after: configuration.accessTimeDelay) }
        return plan
    }

    private func makePlan(for key: DiskKey, now: Date, _ monotonic: Double, _ isUse: Bool) -> LookupPlan {
        state.withLock { state in
            var plan = LookupPlan()
            if monotonic >= state.nextCheck {
                // At most once a second: what other processes do is seen a little later, and costs nothing.
                state.nextCheck = monotonic + 1
                plan.needsCheck = true
                return plan
            }
            if !state.staged.isEmpty { plan.staged = state.staged[key] }
            if state.isBlocked { return plan }
            plan.limit = readLimit(state)
            plan.isAuthoritative = state.isAuthoritative
            var expired: UInt8 = 0
            state.index.forEachRow(of: key.digest) { row in
                let bit = UInt8(1) << row.slot
                if !row.isPartial { plan.known |= bit }
                if isUnused(row, now) { expired |= bit } else { plan.slots |= bit }
            }
            if isUse, plan.slots != 0 { plan.isFirstTouch = state.touch(key.digest, at: now) }
            if !state.isAuthoritative { plan.slots = 0xFF & ~expired }
            return plan
        }
    }

    /// The largest record that is read, in bytes.
    private func readLimit(_ state: State) -> Int { configuration.isReadOnly ? 2 << 30 : state.capacity }

    private func isUnused(_ row: IndexRow, _ now: Date) -> Bool {
        guard let age = configuration.maximumAccessAge else { return false }
        return now.timeIntervalSince1970 - Double(row.accessedAt) > age
    }

    func isTooOld(_ storedAt: Date, _ now: Date) -> Bool {
        guard let age = configuration.maximumStorageAge else { return false }
        return now.timeIntervalSince(storedAt) > age
    }

    // MARK: Reading

    /// The records that the plan finds, one for each variant.
    private func read(_ plan: LookupPlan, _ key: DiskKey) -> [LoadedRecord] {
        var records: [LoadedRecord] = []
        var slots = plan.slots
        let isLone = plan.isAuthoritative && slots.nonzeroBitCount == 1 && plan.staged.isEmpty
        // Not knowing the slots, most keys have one record only: the first that is found is read as if it were alone.
        var extent: RecordReader.Extent = isLone || !plan.isAuthoritative ? .lookup : .head
        var isProbingAll = !plan.isAuthoritative
        var slot: UInt8 = 0
        while slots != 0 {
            slot = UInt8(slots.trailingZeroBitCount)
            slots &= slots - 1
            switch reader.read(key.digest, slot: slot, extent, limit: plan.limit) {
            case .record(let record):
                extent = .head
                if record.header.keyCheck == key.check { records.append(record) }
            case .missing:
                if !isProbingAll {
                    // It was replaced meanwhile, by us or by another process: somewhere among the other slots.
                    isProbingAll = true
                    slots = 0xFF
                    records = []
                    extent = .lookup
                    suspect(key.digest)
                }
            case .damaged: suspect(key.digest, verifyingBodies: true)
            case .foreign:
                if plan.known & 1 << slot != 0 { suspect(key.digest) }
            case .unreadable: break
            }
        }
        return records.count < 2 ? records : oneForEachVariant(records, key)
    }

    /// Of two records of one variant, which a crash may leave, the more recent counts.
    private func oneForEachVariant(_ records: [LoadedRecord], _ key: DiskKey) -> [LoadedRecord] {
        var best: [LoadedRecord] = []
        for record in records.sorted(by: { $0.header.sequence > $1.header.sequence }) {
            if best.contains(where: { $0.header.varyHash == record.header.varyHash }) {
                suspect(key.digest)
            } else {
                best.append(record)
            }
        }
        return best
    }

    /// Reads a candidate's record whole.
    func load(_ key: DiskKey, slot: UInt8, sequence: UInt64) -> StoredEntry? {
        let limit = state.withLock { readLimit($0) }
        switch reader.read(key.digest, slot: slot, .whole, limit: limit) {
        case .record(let record):
            guard record.header.keyCheck == key.check, record.header.sequence == sequence, let body = record.body
            else { return nil }
            return StoredEntry(metadata: record.metadata, body: body)
        case .damaged:
            suspect(key.digest, verifyingBodies: true)
            return nil
        case .missing, .unreadable, .foreign: return nil
        }
    }

    // MARK: What others did

    /// Notes that a key's files and rows do not agree; the maintenance queue looks into it.
    func suspect(_ digest: KeyDigest, verifyingBodies: Bool = false) {
        if configuration.isReadOnly { return }
        state.withLock { state in
            // A bound on what damage can cost: the rest is found again when it is looked up again.
            guard state.suspects.count < 4096 else { return }
            state.suspects[digest] = verifyingBodies || state.suspects[digest] == true
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Looks whether the directory still is what it was, and whether guests left rows to be read.
    private func checkOutside() {
        let (known, isAuthoritative) = state.withLock { ($0.recordsIdentity, $0.isAuthoritative) }
        let records = try? files.status(at: paths.records)
        let isFolder = records?.kind == .directory
        let isChanged = known != nil && records?.identity != known
        let hasNews = isAuthoritative && !GuestFile(files: files, paths: paths).isEmpty
        state.withLock { state in
            // A link or a file in the folder's place: nothing behind it is ours. Maintenance takes the block off again,
            // where there is maintenance.
            let isForeign = records != nil && !isFolder
            if isForeign || configuration.isReadOnly { state.isBlocked = isForeign }
            if isChanged || hasNews { state.isAuthoritative = false }
        }
        if (isChanged || hasNews || (records != nil && !isFolder)) && !configuration.isReadOnly {
            maintenance.schedule(after: 0)
        }
    }
}

import Foundation

/// What lookups have to know about the directory: its state, and the index.
///
/// Its lock is taken last and never held across a file operation. Rows enter or leave only while `DiskStore.io` is held
/// as well, so that rows and files agree.
final class Catalog: Sendable {
    /// Guarded by the lock around it.
    private struct Contents {
        var state = DiskState.guest
        var index = DiskIndex()
        var capacity: Int
        /// Uses that were noted before there is an index, which gets them when it is built.
        var earlyUses: [IndexUse] = []
        /// Keys whose files and rows may not agree; true if the bodies have to be verified too.
        var examinations: [KeyName: Bool] = [:]
        /// The key whose files are being read for its rows. One at most, since that is done under `DiskStore.io`.
        var examining: KeyName?
        /// Keys whose records guests are writing, with the number of unfinished writes. Their slots are probed. If a
        /// guest dies while it writes, the end is never reported, and the key stays here until there are no other
        /// caches.
        var shared: [KeyName: Int] = [:]
        /// Slots into which this cache is writing, without `DiskStore.io`. One for each thread that stores: too few to
        /// be hashed.
        var writing: [RecordName] = []
        /// Slots whose records are being evicted, without `DiskStore.io`.
        var evicting: Set<RecordName> = []
        /// The names of records, for a cache without an index; nil if the folder has to be listed first.
        var names: NameTable?
        /// Whether a listing of the folder that is in progress may lack records.
        var isListingOutdated = false

        func isExact(_ key: KeyName) -> Bool {
            state.isCurrent && (examinations.isEmpty || examinations[key] == nil)
                && (shared.isEmpty || shared[key] == nil) && examining != key
        }

        /// Bodies that have to be verified stay requested.
        mutating func dropRequest(of key: KeyName) {
            if examinations[key] == false { examinations[key] = nil }
        }

        mutating func noteEarly(_ use: IndexUse) {
            // The number is limited, in case the index is never loaded. Of too many, the older half is dropped.
            if earlyUses.count == 2 * Catalog.earlyUsesLimit { earlyUses.removeFirst(Catalog.earlyUsesLimit) }
            earlyUses.append(use)
        }

        mutating func distrust() {
            isListingOutdated = true
            names = nil
            state = state.after(.distrust)
        }
    }

    /// The largest number of keys that are kept in each of the tables above.
    private static let keyLimit = 65_536
    private static let earlyUsesLimit = 1_024
    private let contents: Mutex<Contents>
    /// The seconds after which an unused entry is a miss.
    private let maximumAccessAge: TimeInterval?

    init(_ configuration: DiskConfiguration) {
        contents = Mutex(Contents(capacity: max(0, configuration.capacity)), isContended: true)
        maximumAccessAge = configuration.maximumAccessAge
    }

    // MARK: State

    var state: DiskState { contents.withLock { $0.state } }

    /// Returns the old state, so that a directory's lock in it is released outside of this lock.
    func move(_ step: DiskState.Step) -> DiskState {
        contents.withLock { contents in
            defer { contents.state = contents.state.after(step) }
            return contents.state
        }
    }

    var isAlone: Bool { contents.withLock { $0.state.isAlone } }

    /// Whether no other cache changes the records, and the index knows all of them.
    var isAloneAndCurrent: Bool { contents.withLock { $0.state.isAlone && $0.state.isCurrent } }

    /// Whether no other cache changes the records, the index is right for every key, and nothing has to be evicted.
    /// - Parameter bytes: what the directory takes on disk in addition to the records.
    func isSettled(besides bytes: Int) -> Bool {
        contents.withLock { contents in
            contents.state.isAlone && contents.state.isCurrent && contents.examinations.isEmpty
                && contents.index.bytes + bytes <= contents.capacity
        }
    }

    /// Notes that the index may lack records, or describe a different folder. The owner lists the folder again; until
    /// then slots are probed.
    func distrust() { contents.withLock { $0.distrust() } }

    /// A listing begins now, which will know all present records.
    func beginListing() { contents.withLock { $0.isListingOutdated = false } }

    /// From now on the index knows every record, except those of keys that have to be examined. False if something
    /// happened meanwhile, so that it does not.
    func becomeCurrent(_ index: DiskIndex, _ lock: OwnerLock, _ folder: FileIdentity) -> Bool {
        contents.withLock { contents in
            contents.index = index
            if contents.isListingOutdated { return false }
            contents.state = contents.state.after(.list(lock, folder))
            guard contents.state.isCurrent else { return false }
            // Another cache may have used a record since, and saved that.
            contents.earlyUses.removeAll { use in
                contents.index.rows(of: use.key).contains { !$0.isPartial && $0.accessedAt > use.seconds }
            }
            // Without an age: a row that was used again and again meanwhile knows of none of these uses.
            contents.index.note(contents.earlyUses)
            // A record that was written during the listing gets its row, and its position in the order of use, when its
            // key is examined.
            contents.earlyUses.removeAll { contents.examinations[$0.key] == nil }
            return true
        }
    }

    var capacity: Int {
        get { contents.withLock { $0.capacity } }
        set { contents.withLock { $0.capacity = newValue } }
    }

    // MARK: Lookups

    func plan(_ key: KeyName, now: Date, isUse: Bool) -> LookupPlan {
        let time = MonotonicTime.nanoseconds
        return contents.withLock { contents in
            var plan = LookupPlan(name: key)
            if !contents.state.isReadable { return plan }
            plan.limit = contents.capacity
            plan.isExact = contents.isExact(key)
            contents.index.forEachRow(of: key) { row in
                let slot = Slots(row.slot)
                // If the index is only a hint, its rows may be out of date.
                if contents.state.isCurrent, !row.isPartial { plan.known.insert(slot) }
                let isExpired = contents.state.isCurrent && isUnused(row, now)
                if isExpired { plan.expired.insert(slot) } else { plan.slots.insert(slot) }
            }
            let use = IndexUse(key: key, time: time, seconds: now.recordSeconds)
            if isUse, contents.state.isCurrent, !plan.slots.isEmpty {
                plan.isFirstChange = contents.index.note(use, within: maximumAccessAge)
            } else if isUse, !contents.state.isCurrent {
                contents.noteEarly(use)
            }
            if !plan.isExact { plan.slots = Slots.all.subtracting(plan.expired) }
            return plan
        }
    }

    /// False only when a lookup would find nothing.
    func mayContain(_ key: KeyName) -> Bool {
        contents.withLock { $0.state.isReadable && (!$0.isExact(key) || $0.index.contains(key)) }
    }

    private func isUnused(_ row: IndexRow, _ now: Date) -> Bool {
        guard let age = maximumAccessAge else { return false }
        return now.timeIntervalSince1970 - Double(row.accessedAt) > age
    }

    // MARK: Slots in use

    func beginWriting(_ name: RecordName) { contents.withLock { $0.writing.append(name) } }
    func endWriting(_ name: RecordName) {
        contents.withLock { contents in
            if let place = contents.writing.firstIndex(of: name) { contents.writing.remove(at: place) }
        }
    }

    /// The slots of the key into which this cache is writing.
    func slotsBeingWritten(of key: KeyName) -> Slots { contents.withLock { Self.slots(of: key, in: $0.writing) } }

    private static func slots(of key: KeyName, in names: some Sequence<RecordName>) -> Slots {
        names.reduce(into: []) { if $1.key == key { $0.insert(Slots($1.slot)) } }
    }

    /// Begins to evict the records of these rows. Their slots are not free before `endEvicting`, also if the rows go:
    /// whoever evicts unlinks by name, and would unlink the next record of the slot.
    /// - Returns: the rows that still are as they were; the records of all others were removed or replaced.
    func beginEvicting(_ rows: some Sequence<IndexRow>) -> [IndexRow] {
        contents.withLock { contents in
            let present = rows.filter { contents.index.row($0.name)?.isSameRecord(as: $0) == true }
            contents.evicting.formUnion(present.lazy.map(\.name))
            return present
        }
    }

    func endEvicting() { contents.withLock { $0.evicting = [] } }

    /// The slots of the key into which this cache must not write now, whatever its rows say.
    func slotsInUse(of key: KeyName) -> Slots {
        contents.withLock { Self.slots(of: key, in: $0.writing).union(Self.slots(of: key, in: $0.evicting)) }
    }

    func noteEarly(_ use: IndexUse) { contents.withLock { $0.noteEarly(use) } }

    /// Notes uses that memory answered.
    /// - Returns: whether the index has to be saved, and had not before.
    func note(_ uses: [IndexUse]) -> Bool {
        contents.withLock { contents in
            if contents.state.isCurrent { return contents.index.note(uses, within: maximumAccessAge) }
            for use in uses { contents.noteEarly(use) }
            return false
        }
    }

    /// Replaces the rows of a key with those that describe its files. An examination of the key ends with it.
    /// - Returns: the rows with their positions in the order of use.
    func replaceRows(of key: KeyName, by rows: [IndexRow]) -> [IndexRow] {
        contents.withLock { contents in
            contents.examining = nil
            for slot in 0..<RecordName.slots {
                let name = RecordName(key: key, slot: slot)
                guard let row = rows.first(where: { $0.slot == slot }) else {
                    contents.index.remove(name)
                    continue
                }
                let known = contents.index.row(name)
                if known == nil, let use = contents.earlyUses.last(where: { $0.key == key }) {
                    var row = row
                    row.accessedAt = use.seconds
                    contents.index.put(row, usedAt: use.time)
                } else if known?.isSameRecord(as: row) != true {
                    contents.index.put(row)
                }
            }
            contents.earlyUses.removeAll { $0.key == key }
            return contents.index.rows(of: key)
        }
    }

    // MARK: The index

    func read<Result>(_ body: (DiskIndex) -> Result) -> Result {
        contents.withLock { body($0.index) }
    }

    /// The next records to evict.
    func victims(by policy: EvictionPolicy, freeing excess: Int) -> [IndexRow] {
        // Choosing by weight sorts all rows. That is done with a copy, so that lookups need not wait for it.
        if policy.weighsSize { return policy.victims(in: read { $0 }, freeing: excess) }
        return read { policy.victims(in: $0, freeing: excess) }
    }

    /// If rows enter or leave, `DiskStore.io` must be held.
    @discardableResult
    func change<Result>(_ body: (inout DiskIndex) -> Result) -> Result {
        contents.withLock { body(&$0.index) }
    }

    /// The rows of a key; nil if the rows and the files may not agree, or if a row does not say which variant its
    /// record has, since the record was not read yet.
    func exactRows(of key: KeyName) -> [IndexRow]? {
        contents.withLock { contents in
            guard contents.isExact(key) else { return nil }
            let rows = contents.index.rows(of: key)
            return rows.contains(where: \.isPartial) ? nil : rows
        }
    }

    // MARK: Examinations

    /// Notes that the files and rows of a key may not agree. Until the key is examined, its slots are probed.
    func requestExamination(of key: KeyName, verifyingBodies: Bool = false) {
        contents.withLock { contents in
            guard contents.examinations.count < Self.keyLimit else {
                contents.examinations = [:]
                return contents.distrust()
            }
            contents.examinations[key] = verifyingBodies || contents.examinations[key] == true
        }
    }

    /// The next key to be examined. Its slots are probed until `replaceRows`.
    /// - Returns: also whether its bodies are to be verified. Whoever asks for that from now on asks for another time.
    func beginExamination() -> (key: KeyName, verifiesBodies: Bool)? {
        contents.withLock { contents in
            guard let next = contents.examinations.first else { return nil }
            contents.examinations[next.key] = false
            return (next.key, next.value)
        }
    }

    /// The files of a key are read from now on, under `DiskStore.io`, until `replaceRows`. Whatever is requested of the
    /// key meanwhile is done afterwards. Its bodies may have to be verified all the same.
    func beginReading(_ key: KeyName) {
        contents.withLock { contents in
            contents.dropRequest(of: key)
            contents.examining = key
        }
    }

    /// Nothing has to be examined: without an index there are no rows that could disagree later.
    func dropRequest(of key: KeyName) { contents.withLock { $0.dropRequest(of: key) } }

    /// Whether there is an index, and no examination is requested. One may be under way, and keys that guests are
    /// writing are not counted.
    var hasNothingToExamine: Bool { contents.withLock { $0.state.isCurrent && $0.examinations.isEmpty } }

    /// The keys of a resource whose rows may be wrong.
    func uncertainKeys(ofResource resource: UInt64) -> Set<KeyName> {
        contents.withLock { contents in
            Set(contents.examinations.keys).union(contents.shared.keys).filter { $0.resource == resource }
        }
    }

    /// A guest begins to write a record of a key.
    func beginSharing(_ key: KeyName) {
        contents.withLock { contents in
            if contents.shared.count >= Self.keyLimit {
                contents.shared = [:]
                contents.distrust()
            }
            contents.shared[key, default: 0] += 1
        }
    }

    /// A guest has written the record. Its files are examined, and the index knows them again.
    func endSharing(_ key: KeyName) {
        contents.withLock { contents in
            guard let count = contents.shared[key] else { return }
            contents.shared[key] = count > 1 ? count - 1 : nil
        }
    }

    /// There are no guests any more. Records that a guest was writing when it died are examined.
    func endSharing() {
        for key in sharedKeys { requestExamination(of: key) }
        contents.withLock { $0.shared = [:] }
    }

    // MARK: Without an index

    func names(ofResource resource: UInt64) -> Set<KeyName>? {
        contents.withLock { $0.names?.keys(ofResource: resource) }
    }

    /// Called before the folder is listed; names that others report meanwhile are added.
    func beginNames() { contents.withLock { $0.names = NameTable() } }

    func fillNames(_ keys: [KeyName]) { contents.withLock { $0.names?.fill(keys) } }

    func dropNames() { contents.withLock { $0.names = nil } }

    func addName(_ key: KeyName) {
        contents.withLock { contents in
            if contents.names?.add(key) == false { contents.names = nil }
        }
    }

    var sharedKeys: Set<KeyName> { contents.withLock { Set($0.shared.keys) } }

    /// Forgets everything about the records.
    func forget() {
        contents.withLock { contents in
            contents.index = DiskIndex()
            contents.isListingOutdated = true
            contents.names = nil
            contents.examinations = [:]
        }
    }
}

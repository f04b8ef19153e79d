import Foundation

/// What lookups need to know of the directory: the index, and how far it can be trusted.
///
/// Its one lock is taken last, and never held across a file operation; lookups take no other lock of the disk layer. Rows come
/// in or leave only while `DiskStore.io` is held as well, so that rows and files agree.
final class Catalog: Sendable {
    /// Guarded by the lock around it.
    fileprivate struct State {
        var index = DiskIndex()
        var capacity: Int
        /// The index knows every record: what it lacks is a miss without a look at the disk.
        var isAuthoritative = false
        /// The records' folder is not ours to read, or was cleared but could not be moved away.
        var isBlocked = false
        /// The folder of records that the index is about; nil before it was opened, and when it is gone.
        var folder: FileIdentity?
        /// When lookups are to look again at what others did to the directory (`MonotonicTime.nanoseconds`).
        var nextCheck: UInt64 = 0
        /// Uses of keys that had no row yet, as before the index is loaded.
        var earlyUses: [IndexUse] = []
        /// Keys whose files and rows do not agree; true where the bodies are to be verified too.
        var examinations: [KeyName: Bool] = [:]
    }

    private let state: Mutex<State>
    /// The largest record that is read; nil for the capacity.
    private let fixedLimit: Int?
    /// Seconds after which an entry that was not used is a miss.
    private let maximumAccessAge: TimeInterval?

    init(_ configuration: DiskStore.Configuration) {
        state = Mutex(State(capacity: configuration.capacity), isContended: true)
        fixedLimit = configuration.isReadOnly ? 2 << 30 : nil
        maximumAccessAge = configuration.maximumAccessAge
    }

    // MARK: Lookups

    /// Where to look for a key's records, decided under the lock; the reading follows without it.
    struct LookupPlan {
        /// One bit for each slot to be looked at.
        var slots: UInt8 = 0
        /// Slots whose rows the index believes to be good records.
        var known: UInt8 = 0
        var isAuthoritative = false
        /// The largest record that would be read.
        var limit = 0
        /// The lookup was the first change since the index was saved.
        var isFirstChange = false
        /// When it was, where it counts as a use that no row could take note of: `noteEarly` if something is found.
        var unnotedUse: UInt64?
    }

    /// Nil when it is time to look outside first; see `DiskStore.lookOutside`.
    func plan(_ key: KeyName, now: Date, isUse: Bool) -> LookupPlan? {
        let time = MonotonicTime.nanoseconds
        return state.withLock { state in
            guard state.isCurrent(time) else { return nil }
            var plan = LookupPlan()
            if state.isBlocked { return plan }
            plan.limit = fixedLimit ?? state.capacity
            plan.isAuthoritative = state.isAuthoritative
            var expired: UInt8 = 0
            state.index.forEachRow(of: key) { row in
                let bit = UInt8(1) << row.slot
                if !row.isPartial { plan.known |= bit }
                if isUnused(row, now) { expired |= bit } else { plan.slots |= bit }
            }
            if isUse, plan.slots != 0 {
                plan.isFirstChange = state.index.dirtyCount == 0
                state.index.touch(key, at: time, seconds: now.recordSeconds)
            } else if isUse {
                plan.unnotedUse = time
            }
            if !state.isAuthoritative { plan.slots = 0xFF & ~expired }
            return plan
        }
    }

    /// False only when a lookup would find nothing; nil when it is time to look outside first.
    func mayContain(_ key: KeyName) -> Bool? {
        let time = MonotonicTime.nanoseconds
        return state.withLock { state in
            guard state.isCurrent(time) else { return nil }
            return !state.isBlocked && (!state.isAuthoritative || state.index.contains(key))
        }
    }

    private func isUnused(_ row: IndexRow, _ now: Date) -> Bool {
        guard let age = maximumAccessAge else { return false }
        return now.timeIntervalSince1970 - Double(row.accessedAt) > age
    }

    /// True for one caller at most once a second: it is to look at what other processes did.
    func takeCheck() -> Bool {
        let now = MonotonicTime.nanoseconds
        return state.withLock { state in
            guard now >= state.nextCheck else { return false }
            state.nextCheck = now + 1_000_000_000
            return true
        }
    }

    /// For tests: at once, or never again.
    func setNextCheck(_ time: UInt64) {
        state.withLock { $0.nextCheck = time }
    }

    var readLimit: Int { state.withLock { fixedLimit ?? $0.capacity } }

    /// A lookup found a record that has no row yet.
    func noteEarly(_ key: KeyName, at time: UInt64, now: Date) {
        state.withLock { state in
            // Bounded, should the index never be loaded.
            guard state.earlyUses.count < 4096 else { return }
            state.earlyUses.append(IndexUse(key: key, time: time, seconds: now.recordSeconds))
        }
    }

    /// To be called when the index knows every record.
    func takeEarlyUses() {
        state.withLock { state in
            if state.earlyUses.isEmpty { return }
            state.index.note(state.earlyUses)
            state.earlyUses = []
        }
    }

    // MARK: The index

    func read<Result>(_ body: (DiskIndex) -> Result) -> Result {
        state.withLock { body($0.index) }
    }

    /// To be called while `DiskStore.io` is held, where rows come or go.
    @discardableResult
    func change<Result>(_ body: (inout DiskIndex) -> Result) -> Result {
        state.withLock { body(&$0.index) }
    }

    /// Takes another index in place of this one, which is returned: freeing it takes a while.
    func exchange(_ index: DiskIndex) -> DiskIndex {
        state.withLock { state in
            defer { state.index = index }
            return state.index
        }
    }

    var capacity: Int {
        get { state.withLock { $0.capacity } }
        set { state.withLock { $0.capacity = newValue } }
    }

    // MARK: Trust

    var isAuthoritative: Bool {
        get { state.withLock { $0.isAuthoritative } }
        set { state.withLock { $0.isAuthoritative = newValue } }
    }

    var isBlocked: Bool {
        get { state.withLock { $0.isBlocked } }
        set { state.withLock { $0.isBlocked = newValue } }
    }

    var folder: FileIdentity? {
        get { state.withLock { $0.folder } }
        set { state.withLock { $0.folder = newValue } }
    }

    /// Whether each row of a key is known to be about the file that it names.
    func isCertain(_ key: KeyName) -> Bool {
        state.withLock { state in
            var isCertain = state.isAuthoritative
            state.index.forEachRow(of: key) { if $0.isPartial { isCertain = false } }
            return isCertain
        }
    }

    // MARK: Examinations

    func requestExamination(of key: KeyName, verifyingBodies: Bool) {
        state.withLock { state in
            // Bounded. A key that is left out is noted again when it is looked up again.
            guard state.examinations.count < 4096 else { return }
            state.examinations[key] = verifyingBodies || state.examinations[key] == true
        }
    }

    func nextExamination() -> (key: KeyName, verifiesBodies: Bool)? {
        state.withLock { $0.examinations.popFirst() }.map { ($0.key, $0.value) }
    }

    func forgetExaminations() {
        state.withLock { $0.examinations = [:] }
    }
}

extension Catalog.State {
    /// True until it is time to look at what other processes did.
    @inline(__always)
    fileprivate func isCurrent(_ nanoseconds: UInt64) -> Bool {
        nanoseconds < nextCheck
    }
}

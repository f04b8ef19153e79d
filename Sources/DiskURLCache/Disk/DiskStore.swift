import Foundation

/// Face of the disk layer: one record file per entry in one directory, an index of them in memory, and a maintenance queue
/// that writes and evicts.
///
/// Lookups read on the caller's thread. A store returns when its entry is staged: lookups see it at once, the maintenance
/// queue writes it soon after. Removals return when the files are gone.
///
/// Two locks. `io` is taken first and held across file operations: files change, and rows come into the index or leave it,
/// only while it is held, so the two agree. `state` is taken last and never held across I/O; lookups take no other.
final class DiskStore: Sendable {
    // Constant after construction.
    let configuration: Configuration
    let files: any FileSystem
    let paths: DiskPaths
    let reader: RecordReader
    let writer: RecordWriter
    let clock: WallClock
    let maintenance: MaintenanceQueue
    /// Signalled when staged entries were written and callers wait to store.
    let room = DispatchSemaphore(value: 0)
    private let report: @Sendable (DiskEvent) -> Void
    /// A forked child has our memory but not our threads, and is not to touch the directory.
    private let processID = getpid()

    /// Brings in what is to be staged and waits elsewhere, at the beginning of each pass; false where some of it waits still.
    /// Set once, after construction.
    let settle = Mutex<(@Sendable () -> Bool)?>(nil)

    // Guarded by themselves.
    private let io: Mutex<IOState>
    let state: Mutex<State>

    /// Takes no time and no file: the directory is opened on the maintenance queue. Never fails: a directory that cannot be
    /// used leaves a store that holds nothing, and says so by an event and by `openingError`.
    init(
        configuration: Configuration, fileSystem: any FileSystem = SystemFiles(), clock: WallClock = .system,
        report: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        let configuration = configuration.sanitized
        self.configuration = configuration
        files = fileSystem
        paths = DiskPaths(directory: configuration.directory)
        reader = RecordReader(files: fileSystem, paths: paths)
        writer = RecordWriter(files: fileSystem, paths: paths)
        self.clock = clock
        self.report = report
        io = Mutex(IOState(storage: IndexStorage(fileSystem, paths)))
        state = Mutex(State(capacity: configuration.capacity), isContended: true)
        let reference = WeakReference()
        maintenance = MaintenanceQueue { reference.store?.backgroundPass() }
        reference.store = self
        if !configuration.isReadOnly { maintenance.schedule(after: 0) }
    }

    deinit {
        // Entries that are staged still were paused to the end: they are lost together, as a whole.
        close(landing: false)
    }

    var isOwnProcess: Bool { getpid() == processID }

    /// Runs file operations one at a time, and tells the events when the lock is free again.
    @discardableResult
    func withIO<Result>(_ body: (inout IOState) -> Result) -> Result {
        let (result, events) = io.withLock { io in
            let result = body(&io)
            defer { io.events = [] }
            return (result, io.events)
        }
        for event in events { report(event) }
        return result
    }

    func tell(_ event: DiskEvent) {
        report(event)
    }
}

// MARK: - Guarded state

extension DiskStore {
    /// What lookups need; guarded by `state`.
    struct State {
        var index = DiskIndex()
        var staged = StagedWrites()
        var capacity: Int
        /// The index knows every record: what it lacks is a miss without a look at the disk.
        var isAuthoritative = false
        /// The records' folder is not ours to read, or was cleared but could not be moved away.
        var isBlocked = false
        var isClosed = false
        var isPassScheduled = false
        /// Rows marked as touched whose times are not saved yet.
        var touchedCount = 0
        /// Callers that wait to store.
        var waiters = 0
        /// When lookups are to look again at what others did to the directory.
        var nextCheck = 0.0
        /// The directory and the folder of records as they were opened; nil before, and when they are gone.
        var directoryIdentity: FileIdentity?
        var recordsIdentity: FileIdentity?
        /// Keys whose files and rows do not agree; true where the bodies are to be verified too.
        var suspects: [KeyDigest: Bool] = [:]

        init(capacity: Int) {
            self.capacity = capacity
        }

        /// Counts as a use of the key; true when it is the first one that is to be saved.
        mutating func touch(_ digest: KeyDigest, at now: Date) -> Bool {
            let before = touchedCount
            touchedCount += index.touch(digest, now: now.recordSeconds)
            return before == 0 && touchedCount > 0
        }
    }

    /// What file operations need; guarded by `io`.
    struct IOState {
        enum Role {
            case undecided
            case maintainer(MaintainerLock)
            case guest
        }

        var storage: IndexStorage
        var role = Role.undecided
        var isRoleGivenUp = false
        var openingError: DiskStoreError?
        var wasOpened = false
        /// The records were listed and the index agrees with them.
        var isReconciled = false
        /// Changes that are in no file yet, in their order.
        var pending: [JournalRow] = []
        /// Slots that were emptied by changes still pending: not to be used before these are in the journal, or after a
        /// crash the journal would vouch for a file that it does not know.
        var freed: [KeyDigest: UInt8] = [:]

        /// The file of this name is gone, while the index on disk may still vouch for it.
        mutating func noteFreed(_ name: RecordName) {
            freed[name.digest, default: 0] |= 1 << name.slot
        }

        /// Counts removals by callers, so that work in several steps sees that one came between.
        var removalCount = 0
        var hasTrash = false
        var mustClear = false
        /// What directories and index files take, in bytes.
        var overhead = 0
        var nextElection = 0.0
        /// Until then eviction rests: hardly anything could be unlinked the last time.
        var nextEviction = 0.0
        /// Single records that could not be unlinked. They are not tried again.
        var stuck: Set<RecordName> = []
        var nextSave = 0.0
        var events: [DiskEvent] = []
        /// Indexes that were replaced: freed on the maintenance queue, since that takes a while.
        var discarded: [DiskIndex] = []

        init(storage: IndexStorage) {
            self.storage = storage
        }

        var isMaintainer: Bool {
            if case .maintainer = role { true } else { false }
        }
    }
}

/// Lets the maintenance queue's closure exist before the store does.
final class WeakReference: Sendable {
    private struct Box {
        weak var store: DiskStore?
    }

    private let box = Mutex(Box())

    var store: DiskStore? {
        get { box.withLock { $0.store } }
        set { box.withLock { $0.store = newValue } }
    }
}

extension DiskStore.Configuration {
    /// Numbers that make sense, whatever came in.
    fileprivate var sanitized: Self {
        func fraction(_ value: Double, _ fallback: Double) -> Double {
            value.isNaN ? fallback : min(max(value, 0), 1)
        }
        var result = self
        result.capacity = max(0, capacity)
        result.lowWaterFraction = fraction(lowWaterFraction, 0.9)
        result.maximumEntryShare = fraction(maximumEntryShare, 0.5)
        result.pinnedShare = fraction(pinnedShare, 0.25)
        result.pendingByteLimit = max(0, pendingByteLimit)
        result.backlogTimeout = backlogTimeout.isNaN ? 2 : min(max(backlogTimeout, 0), 3600)
        result.maintenanceDelay = maintenanceDelay.isNaN ? 0.02 : min(max(maintenanceDelay, 0), 3600)
        result.accessTimeDelay = accessTimeDelay.isNaN ? 5 : min(max(accessTimeDelay, 0), 3600)
        return result
    }
}

extension Int {
    /// A part of a number of bytes, without overflow.
    func share(_ fraction: Double) -> Int {
        let product = Double(self) * fraction
        return product >= Double(Int.max) ? self : Swift.min(self, Int(product))
    }
}

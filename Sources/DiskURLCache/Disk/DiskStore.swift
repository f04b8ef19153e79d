import Foundation

/// Face of the disk layer: one record file per entry in one directory, an index of them in memory, and a maintenance queue
/// that evicts and saves the index.
///
/// Lookups, writes and removals use files on the caller's thread. When a write or a removal returns, it is done.
///
/// Two locks. `io` is taken first and held across file operations: files change, and rows come into the index or leave it,
/// only while it is held, so the two agree. That of the `catalog` is taken last and never held across file operations;
/// lookups take no other.
final class DiskStore: Sendable {
    // Constant after construction.
    let configuration: Configuration
    let files: any FileSystem
    let paths: DiskPaths
    let reader: RecordReader
    let writer: RecordWriter
    let clock: WallClock
    let maintenance: MaintenanceQueue
    /// What caches on the directory tell each other of removals.
    let removals: RemovalNews
    /// Where locks are held during passes only.
    let passLock: PassLock?
    /// Bodies that are arriving.
    let incoming = IncomingSpace()
    private let report: @Sendable (DiskEvent) -> Void
    /// A forked child has our memory but not our threads, and is not to touch the directory.
    private let processID = getpid()

    /// Folders of records that this cache replaced when they were empty, the last few.
    let emptyFolders = Mutex<[FileIdentity]>([])

    /// Guarded by its own lock.
    let catalog: Catalog
    private let io: Mutex<Section>

    /// What file operations need; guarded by `io`. Each part owns its state.
    struct Section {
        var directory: CacheDirectory
        var role = Role()
        var log: ChangeLog
        var eviction = Eviction()
        /// The records were listed and the index agrees with them.
        var isReconciled = false
        /// The index is there and cannot be read now, as on a device that is locked: nothing is written over it.
        var isIndexUnreadable = false
        /// The directory whose folders were prepared.
        var preparedDirectory: FileIdentity?
        /// The index files as the last pass left them, where others may maintain the directory between passes.
        var leftIndex: [FileStatus?] = []
        /// When the folder was last found by a write of the pass that is under way, in nanoseconds of the monotonic clock; nil
        /// outside of passes.
        var lastLook: UInt64?
        /// When leftovers of bodies were last looked for, in nanoseconds of the monotonic clock.
        var lastSweep: UInt64 = 0
        /// Writes are refused.
        var isClosed = false
        /// Counts removals by callers, so that work in several steps sees that one came between.
        var removalCount = 0
        /// To be told when the lock is free again.
        var events: [DiskEvent] = []
        /// Indexes that were replaced: freed on the maintenance queue, since that takes a while.
        var discarded: [DiskIndex] = []
    }

    /// Opens no file: the directory is opened on the maintenance queue. Never fails: with a directory that cannot be used, the
    /// store holds nothing, and an event and `openingError` say so.
    ///
    /// - Parameter maintenance: the queue of an owner, who sets its work. Nil for one of its own, whose work is
    ///   `runPass(isFlush: false)`.
    init(
        configuration: Configuration, fileSystem: any FileSystem = SystemFiles(), clock: WallClock = .system,
        maintenance: MaintenanceQueue? = nil, report: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        let configuration = configuration.sanitized
        self.configuration = configuration
        files = fileSystem
        paths = DiskPaths(directory: configuration.directory)
        reader = RecordReader(files: fileSystem, paths: paths, owner: configuration.owner)
        self.clock = clock
        self.report = report
        let passLock = configuration.passActivity.map { PassLock(activity: $0) }
        self.passLock = passLock
        removals = RemovalNews(fileSystem, paths, sharesMemory: configuration.sharesMemory) {
            passLock?.isGranted ?? true
        }
        writer = RecordWriter(files: fileSystem, paths: paths) { passLock?.isGranted ?? true }
        catalog = Catalog(configuration)
        io = Mutex(
            Section(
                directory: CacheDirectory(fileSystem, paths, owner: configuration.owner),
                log: ChangeLog(fileSystem, paths)))
        self.maintenance = maintenance ?? MaintenanceQueue()
        if maintenance == nil {
            self.maintenance.setWork { [weak self] in self?.runPass(isFlush: false) }
        }
        self.maintenance.schedule(after: 0)
    }

    deinit {
        close(withPass: false)
    }

    var isOwnProcess: Bool { getpid() == processID }

    /// Runs file operations one at a time, and tells the events when the lock is free again.
    @discardableResult
    func withIO<Result>(_ body: (inout Section) -> Result) -> Result {
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

    // MARK: Numbers

    /// Bytes that the directory may take. When lowered, eviction follows soon; `flush` waits for it.
    var capacity: Int {
        get { catalog.capacity }
        set {
            catalog.capacity = max(0, newValue)
            if !configuration.isReadOnly { maintenance.schedule(after: configuration.maintenanceDelay) }
        }
    }

    /// Bytes that the largest record may take.
    var largestEntry: Int { capacity.share(configuration.maximumEntryShare) }

    /// Bytes on disk that the records take, in allocated blocks.
    var usage: Int {
        refreshIfNeeded()
        return catalog.read { $0.bytes }
    }

    var entryCount: Int {
        refreshIfNeeded()
        return catalog.read { $0.count }
    }

    var isMaintainer: Bool { withIO { $0.role.isMaintainer } }

    /// Why the directory cannot be used; nil while it can. Waits for the first look at it.
    var openingError: DiskStoreError? {
        maintenance.perform {
            if configuration.isReadOnly {
                checkReadOnly()
                return withIO { $0.directory.error }
            }
            return withIO { io in
                if !io.directory.wasOpened && isOwnProcess { _ = prepareDirectory(&io, mayMake: true) }
                return io.directory.error
            }
        }
    }

    /// Whether this cache replaced the folder when it was empty: what was stored for it is still to be written.
    func wasReplacedWhenEmpty(_ folder: FileIdentity) -> Bool {
        emptyFolders.withLock { $0.contains(folder) }
    }

    /// Identity of the records' folder now, by one system call; nil when it is not there. The write buffer notes it with each
    /// entry: another identity later means that another process cleared the directory.
    func folderIdentity() -> FileIdentity? {
        // Without the lock: a store does not wait for a file that is being written.
        guard let status = try? files.status(at: paths.records), status.kind == .directory else { return nil }
        return status.identity
    }
}

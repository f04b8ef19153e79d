import Foundation

/// The disk layer: a directory with one record file for each entry, an index if this cache owns the directory, and a
/// maintenance queue that evicts and saves the index.
///
/// Lookups, writes and removals do their file operations on the caller's thread. When a write or a removal returns, it
/// is complete.
///
/// There are two locks. `io` is taken first and held across file operations: only while it is held do files change and
/// rows enter or leave the index, so that both agree. Two kinds of files change without it, in slots that the catalog
/// keeps from other use: a record that is being written and has no row yet, and one that is evicted and still has its
/// row. The lock of the `catalog` is taken last and never held across file operations. A lookup takes `io` only if the
/// rows and the files of its key may not agree.
package final class DiskStore: StorageLayer {
    // Constant after construction.
    let configuration: DiskConfiguration
    let files: any FileSystem
    let paths: DiskPaths
    let reader: RecordReader
    let clock: WallClock
    let maintenance: MaintenanceQueue
    /// Nil on systems that do not suspend processes.
    let passTime: PassTime?
    /// The salt of the directory.
    let salt: CredentialSalt
    /// Knows whether other caches use the directory, and what they report.
    let membership: Membership
    /// Called with the changes by other caches. Set once, before the first lookup.
    private let observer = Mutex<@Sendable ([DirectoryChange]) -> Void>({ _ in })
    /// What this and other processes are fetching; nil on systems that suspend processes, which must hold no lock then.
    let fetchLocks: FetchLocks?
    /// The time when the next lookup looks for changes by other processes.
    let nextCheck = CheckTime()
    /// The time for the next check that the paths still lead to the same folder of records, and to the same lock.
    let nextFolderCheck = CheckTime()
    /// Bodies that are arriving.
    let incoming = IncomingSpace()
    private let report: @Sendable (DiskEvent) -> Void
    /// A forked child process has this memory but not the threads, and must not touch the directory.
    private let process = ProcessGeneration.current

    /// Guarded by its own lock.
    let catalog: Catalog
    /// Used while `io` is held, but for the methods that say otherwise.
    let records: RecordFiles
    private let io: Mutex<Section>

    /// The state that `io` guards.
    struct Section {
        var directory: CacheDirectory
        /// On systems where each pass asks for the directory's lock: the next time to ask, in seconds of the monotonic
        /// clock.
        var nextElection = 0.0
        /// The directory whose folders were prepared.
        var preparedDirectory: FileIdentity?
        /// When the index was last saved, in seconds of the monotonic clock. It begins with the present time, so that
        /// the index is not saved soon after the first store: if an app deletes the folder then, no new file appears in
        /// it.
        var lastSave = MonotonicTime.seconds
        var upkeep = Upkeep()
        /// Events to send when the lock is released.
        var events: [DiskEvent] = []
    }

    /// Opens no file; the maintenance queue opens the directory. Never fails: if the directory cannot be used, the
    /// store is empty, and an event and `openingError` say so.
    ///
    /// - Parameter maintenance: the queue of the layer above, which sets its work. Nil makes a queue whose work is
    ///   `runPass(isFlush: false)`.
    package init(
        configuration: DiskConfiguration, fileSystem: any FileSystem = SystemFiles(), clock: WallClock = .system,
        maintenance: MaintenanceQueue? = nil, report: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        self.configuration = configuration
        files = fileSystem
        paths = DiskPaths(directory: configuration.directory)
        reader = RecordReader(files: fileSystem, paths: paths, owner: configuration.owner)
        self.clock = clock
        self.report = report
        membership = Membership(
            fileSystem, paths, capacity: configuration.capacity, isHeld: configuration.passActivity == nil)
        fetchLocks = configuration.passActivity == nil ? FetchLocks(fileSystem, paths) : nil
        let reference = WeakReference<DiskStore>()
        salt = CredentialSalt { reference.object?.directorySalt($0) }
        let catalog = Catalog(configuration)
        self.catalog = catalog
        let passTime = configuration.passActivity.map { PassTime(activity: $0) }
        self.passTime = passTime
        let writer = RecordWriter(
            files: fileSystem, paths: paths, mayLock: { passTime?.isGranted != false },
            isAlone: { catalog.isAloneAndCurrent })
        records = RecordFiles(
            files: fileSystem, paths: paths, reader: reader, writer: writer, catalog: catalog, clock: clock,
            keepsURLs: configuration.keepsURLs)
        io = Mutex(
            Section(
                directory: CacheDirectory(
                    fileSystem, paths, owner: configuration.owner, enclosure: configuration.enclosure)))
        self.maintenance = maintenance ?? MaintenanceQueue()
        if maintenance == nil {
            self.maintenance.setWork { [weak self] in self?.runPass(isFlush: false) }
        }
        reference.object = self
        self.maintenance.schedule(after: 0)
    }

    deinit {
        close(withPass: false)
    }

    var isOpeningProcess: Bool { process == ProcessGeneration.current }

    // Both are inlined: a type of error that stays generic would cost each call some hundreds of instructions.

    /// Runs file operations under the lock, and sends the events after it is released.
    @discardableResult
    @inline(__always)
    func withIO<Value, Failure>(_ body: (inout Section) throws(Failure) -> Value) throws(Failure) -> Value {
        var events: [DiskEvent] = []
        defer { tell(events) }
        return try withIO(&events, body)
    }

    /// The same for a caller that holds another lock and sends the events later.
    @inline(__always)
    func withIO<Value, Failure>(
        _ events: inout [DiskEvent], _ body: (inout Section) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try io.withLock { io in
            let result = Result { () throws(Failure) in try body(&io) }
            if !io.events.isEmpty {
                events += io.events
                io.events = []
            }
            return result
        }.get()
    }

    func tell(_ events: [DiskEvent]) {
        for event in events { report(event) }
    }

    // MARK: State

    /// The only function that changes the state of this cache.
    func move(_ step: DiskState.Step) {
        // The old state is released outside of the catalog's lock, since it may hold the last reference to the
        // directory's lock.
        withExtendedLifetime(catalog.move(step)) {}
    }

    /// Gives up the ownership of the directory. The index in memory is kept as a hint.
    func giveUpLock() {
        guard case .owner(let lock, _, _) = catalog.state else { return }
        move(.leave)
        // The lock is released at once, although a pass may still have a reference to it.
        lock.release()
    }

    /// Makes sure that the directory and its folder of records exist and can be used. Two system calls if all is well.
    /// False if they cannot be used, or do not exist and `mayMake` is false.
    func prepareDirectory(_ io: inout Section, mayMake: Bool) -> Bool {
        let opening: CacheDirectory.Opening?
        do throws(DiskURLCache.Error) {
            opening = try io.directory.open(mayMake: mayMake)
        } catch {
            catalog.forget()
            note(error, &io)
            return false
        }
        if opening != nil { note(nil, &io) }
        switch opening {
        case nil where io.directory.identity == nil, .otherDirectory: leave(&io)
        case nil, .otherFolder:
            catalog.forget()
            catalog.distrust()
        case .same: break
        }
        // Nothing may be read from a folder that still has to be cleared, which a pass does.
        let isUsable = !io.directory.mustClear
        move(isUsable ? .accept : .refuse(isReadable: false))
        return isUsable && opening != nil
    }

    /// For a pass, which prepares a new folder as the app wants it.
    func prepareFolders() {
        guard let prepare = configuration.prepareFolders else { return }
        let isNew = withIO { io in
            defer { io.preparedDirectory = io.directory.identity?.directory }
            return io.preparedDirectory != io.directory.identity?.directory
        }
        if isNew { prepare([paths.directory, paths.records]) }
    }

    /// - Parameter error: why the directory cannot be used, which is reported once; nil if it can.
    func note(_ error: DiskURLCache.Error?, _ io: inout Section) {
        let isNew = io.directory.note(error)
        guard let error else { return }
        move(.refuse(isReadable: !error.isForeign))
        if isNew { io.events.append(.unavailable(error)) }
    }

    /// The path now leads to another directory: forgets the index, the salt and the lock of the old one.
    private func leave(_ io: inout Section) {
        catalog.forget()
        salt.directoryChanged()
        move(.leave)
    }

    /// This cache has replaced the folder itself, so that its index is right for the new one.
    func followFolder(_ io: Section) { move(.replaceFolder(io.directory.identity?.folder)) }

    /// The directory's salt. If it has none, the given bytes are stored.
    private func directorySalt(_ new: [UInt8]) -> [UInt8]? {
        guard isOpeningProcess, !configuration.isReadOnly else { return nil }
        return withIO { io in
            guard prepareDirectory(&io, mayMake: true) else { return nil }
            return try? CredentialSalt.bytes(files, paths, adding: new)
        }
    }

    // MARK: Other processes

    /// - Parameter observer: called with the changes by other caches, before the lookup, store or pass that read them
    ///   continues. It may remove records.
    package func observeChanges(_ observer: @escaping @Sendable ([DirectoryChange]) -> Void) {
        self.observer.withLock { $0 = observer }
    }

    /// Whether a second has passed since the last look for changes by other processes.
    package func isCheckDue(at now: UInt64) -> Bool { nextCheck.isReached(at: now) }

    /// Once a second, one lookup looks for changes by other processes; all others return at once.
    package func checkIfDue(at now: UInt64) {
        guard nextCheck.isDue(at: now) else { return }
        nextFolderCheck.set(0)
        look(at: now, mayMake: false)
    }

    /// Reads what other processes changed: whatever they removed before is gone from this cache when it returns. One
    /// system call when nothing changed. A directory that was deleted is made again. Not to be called while `io` is
    /// held.
    package func checkNow() { check(mayMake: true) }

    /// The same for a pass, which makes nothing.
    func check(mayMake: Bool) {
        nextCheck.restart()
        look(at: MonotonicTime.nanoseconds, mayMake: mayMake)
    }

    /// The same for changes that cannot bring a removed response back. An owner that is alone need not look: if a cache
    /// comes meanwhile, it either removes the record, so that the change fails, or finds the changed record.
    package func checkIfShared() {
        if !catalog.isAlone { checkNow() }
    }

    private func look(at now: UInt64, mayMake: Bool) {
        guard isOpeningProcess else { return }
        checkFolderIfDue(at: now)
        if configuration.isReadOnly { return }
        membership.look(for: self, mayMake: mayMake)
    }

    /// Once a second: checks that the paths still lead to the folder of records and the lock that were opened.
    /// - Returns: false if this cache has left the directory, since its lock is gone.
    @discardableResult
    func checkFolderIfDue(at now: UInt64) -> Bool {
        guard nextFolderCheck.isDue(at: now) else { return true }
        checkFolder()
        return !membership.leaveIfLockIsGone(self)
    }

    private func checkFolder() {
        // The process may have changed its user meanwhile.
        FileOwner.userMayHaveChanged()
        let status = try? files.status(at: paths.recordsBytes)
        // There is a link, a file or another user's folder at the path; nothing is read from it.
        let found = [status, try? files.status(at: paths.directoryBytes)].compactMap { $0 }
        if found.contains(where: { !configuration.owner.trusts($0) }) {
            move(.refuse(isReadable: false))
            return maintenance.schedule(after: 0)
        }
        if let folder = catalog.state.folder, status?.identity != folder {
            // The index describes a different folder.
            catalog.distrust()
            withIO { _ = prepareDirectory(&$0, mayMake: false) }
            maintenance.schedule(after: 0)
        } else if configuration.isReadOnly, status != nil, !catalog.state.isReadable {
            move(.accept)
        }
    }

    /// Opens the directory and asks for its lock. Called while the lock of `membership` is held.
    func comeToDirectory(mayMake: Bool, _ events: inout [DiskEvent]) -> Membership.Role {
        guard withIO(&events, { prepareDirectory(&$0, mayMake: mayMake) }) else { return .none }
        if passTime == nil, elect(&events) { return .newOwner(isFirst: catalog.state.isFirstOwner) }
        return isOwner ? .owner : .guest
    }

    /// Applies changes by other caches to the index, and then to the layer above. Called while the lock of `membership`
    /// is held.
    func heed(_ changes: [DirectoryChange]) {
        for change in changes { catalog.note(change) }
        if isOwner { maintenance.schedule(after: configuration.maintenanceDelay) }
        let told = changes.filter { change in
            if case .stored = change { return true }
            return change.isRemoval
        }
        if !told.isEmpty { observer.withLock { $0 }(told) }
    }

    // MARK: Numbers

    /// The bytes that the directory may take. After lowering it, records are evicted soon; `flush` waits for that.
    package var capacity: Int {
        get { catalog.capacity }
        set {
            catalog.capacity = max(0, newValue)
            if !configuration.isReadOnly { maintenance.schedule(after: configuration.maintenanceDelay) }
        }
    }

    /// The bytes that the directory takes on disk: records, folders and index files, and the space reserved for
    /// arriving bodies.
    func footprint(_ io: Section) -> Int { catalog.read { $0.bytes } + bytesBesidesRecords(io) }

    func bytesBesidesRecords(_ io: Section) -> Int { io.directory.overhead + incoming.bytes }

    /// The bytes above the capacity; negative if below.
    var excess: Int { withIO { footprint($0) - catalog.capacity } }

    /// The largest size of a record, in bytes.
    package var largestEntry: Int { capacity.share(configuration.maximumEntryFraction) }

    /// The bytes that the records take on disk, in whole blocks.
    package var usage: Int { total(\.bytes, { $0.bytes }) }

    package var entryCount: Int { total(\.count, { $0.records.count }) }

    /// A sum from the index if this cache has one, otherwise from a listing of the folder.
    private func total(_ ofIndex: (DiskIndex) -> Int, _ ofListing: (FolderListing) -> Int) -> Int {
        if refresh() { return catalog.read(ofIndex) }
        guard catalog.state.isReadable else { return 0 }
        return (try? FolderListing(files, paths, owner: configuration.owner)).map(ofListing) ?? 0
    }

    var isOwner: Bool { catalog.state.isOwner }

    /// Whether other caches may use the directory.
    package var isShared: Bool { !catalog.isAlone }
}

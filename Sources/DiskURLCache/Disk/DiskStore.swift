import Foundation

/// Face of the disk layer: one record file per entry in one directory, an index of them if this cache owns the
/// directory, and a maintenance queue that evicts and saves the index.
///
/// Lookups, writes and removals use files on the caller's thread. When a write or a removal returns, it is done.
///
/// Two locks. `io` is taken first and held across file operations: files change, and rows come into the index or leave
/// it, only while it is held, so the two agree. That of the `catalog` is taken last and never held across file
/// operations; a lookup takes `io` only if the rows and the files of its key may not agree.
package final class DiskStore: Sendable {
    package typealias Configuration = DiskConfiguration

    // Constant after construction.
    let configuration: Configuration
    let files: any FileSystem
    let paths: DiskPaths
    let reader: RecordReader
    let clock: WallClock
    let maintenance: MaintenanceQueue
    /// Nil if the system suspends no process.
    let passTime: PassTime?
    /// Of the directory.
    let salt: CredentialSalt
    /// Whether other caches use the directory, and what they tell.
    let membership: Membership
    /// Is told what other caches changed. Set once, before the first lookup.
    private let observer = Mutex<@Sendable ([DirectoryChange]) -> Void>({ _ in })
    /// When a lookup is to look at what other processes did.
    let nextCheck = CheckTime()
    /// When to look whether the folder of records is the one that it was.
    let nextFolderCheck = CheckTime()
    /// Bodies that are arriving.
    let incoming = IncomingSpace()
    private let report: @Sendable (DiskEvent) -> Void
    /// A forked child has our memory but not our threads, and is not to touch the directory.
    private let process = ProcessGeneration.current

    /// Guarded by its own lock.
    let catalog: Catalog
    /// To be used while `io` is held.
    let records: RecordFiles
    private let io: Mutex<Section>

    /// The state of file operations; guarded by `io`. Each part owns its state.
    struct Section {
        var directory: CacheDirectory
        /// The next time to ask for the directory's lock, in seconds of the monotonic clock, if each pass asks again.
        var nextElection = 0.0
        /// The directory whose folders were prepared.
        var preparedDirectory: FileIdentity?
        /// When the index was saved, in seconds of the monotonic clock. Not soon after the first store: an app that
        /// deletes the folder then is not to meet a new file in it.
        var lastSave = MonotonicTime.seconds
        /// To be told when the lock is free again.
        var events: [DiskEvent] = []
    }

    /// Opens no file: the directory is opened on the maintenance queue. Never fails: with a directory that cannot be
    /// used, the store holds nothing, and an event and `openingError` say so.
    ///
    /// - Parameter maintenance: the queue of an owner, who sets its work. Nil makes a queue, whose work is
    ///   `runPass(isFlush: false)`.
    package init(
        configuration: Configuration, fileSystem: any FileSystem = SystemFiles(), clock: WallClock = .system,
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
        io = Mutex(Section(directory: CacheDirectory(fileSystem, paths, owner: configuration.owner)))
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

    /// Runs file operations one at a time, and tells the events when the lock is free again.
    @discardableResult
    func withIO<Result>(_ body: (inout Section) -> Result) -> Result {
        var events: [DiskEvent] = []
        defer { tell(events) }
        return withIO(&events, body)
    }

    /// The same for a caller that holds another lock, and tells the events later.
    func withIO<Result>(_ events: inout [DiskEvent], _ body: (inout Section) -> Result) -> Result {
        io.withLock { io in
            let result = body(&io)
            events += io.events
            io.events = []
            return result
        }
    }

    func tell(_ events: [DiskEvent]) {
        for event in events { report(event) }
    }

    // MARK: State

    /// The one way to what this cache is to its directory.
    func move(_ step: DiskState.Step) {
        // Outside the catalog's lock: the state before may hold the last reference to the directory's lock.
        withExtendedLifetime(catalog.move(step)) {}
    }

    /// Leaves the directory to the other caches; the index in memory stays a hint.
    func giveUpLock() {
        guard case .owner(let lock, _) = catalog.state else { return }
        move(.leave)
        // At once, though a pass may hold a reference still.
        lock.release()
    }

    /// Makes sure that the directory and its folder of records are there and can be used; two system calls when they
    /// are. False when they cannot be used, or are gone and `mayMake` is false.
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
        case nil:
            leave(&io)
            return false
        case .otherDirectory: leave(&io)
        case .otherFolder:
            catalog.forget()
            catalog.distrust()
        case .same: break
        }
        // Nothing is read from a folder that is still to be cleared.
        if io.directory.mustClear { return clear(&io) }
        move(.accept)
        return true
    }

    /// Moves the records' folder away; false if that cannot be done: then nothing is read from it until it is.
    func clear(_ io: inout Section) -> Bool {
        let wasToClear = io.directory.mustClear
        do throws(Errno) {
            try io.directory.clear()
        } catch {
            if !wasToClear { io.events.append(.cannotDelete(errno: error.code)) }
            move(.refuse(isReadable: false))
            return false
        }
        move(.accept)
        followFolder(io)
        return true
    }

    /// - Parameter error: why the directory cannot be used, which is told once; nil if it can.
    func note(_ error: DiskURLCache.Error?, _ io: inout Section) {
        let isNew = io.directory.note(error)
        guard let error else { return }
        move(.refuse(isReadable: !error.isForeign))
        if isNew { io.events.append(.unavailable(error)) }
    }

    /// No fact about a directory holds for a different one: its lock is a different one, too.
    private func leave(_ io: inout Section) {
        catalog.forget()
        salt.directoryChanged()
        move(.leave)
    }

    /// This cache replaced the folder itself: what it knows of the records holds for the new one.
    func followFolder(_ io: Section) { move(.replaceFolder(io.directory.identity?.folder)) }

    /// The directory's salt, which is the given one if it has none.
    private func directorySalt(_ new: [UInt8]) -> [UInt8]? {
        guard isOpeningProcess, !configuration.isReadOnly else { return nil }
        return withIO { io in
            guard prepareDirectory(&io, mayMake: true) else { return nil }
            return try? CredentialSalt.bytes(files, paths, adding: new)
        }
    }

    // MARK: Other processes

    /// - Parameter observer: is told what other caches changed, each time before the lookup, the store or the pass goes
    ///   on that read it. It may remove records.
    package func observeChanges(_ observer: @escaping @Sendable ([DirectoryChange]) -> Void) {
        self.observer.withLock { $0 = observer }
    }

    /// The one lookup that comes a second after this cache looked at what other processes did looks again; the others
    /// go on.
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

    /// The same before and after a change that brings no response back. An owner that is alone need not look: a cache
    /// that comes meanwhile either removes the record, and then the change fails, or finds it changed.
    package func checkIfShared() {
        if !catalog.isAlone { checkNow() }
    }

    private func look(at now: UInt64, mayMake: Bool) {
        guard isOpeningProcess else { return }
        if nextFolderCheck.isDue(at: now) { checkFolder() }
        if configuration.isReadOnly { return }
        tell(membership.look(for: self, mayMake: mayMake))
    }

    /// Looks whether the folder of records is the one that was opened. An owner that is alone relies on it for a
    /// second.
    private func checkFolder() {
        // The process may have changed its user.
        FileOwner.userMayHaveChanged()
        let status = try? files.status(at: paths.recordsBytes)
        // A link, a file or the folder of another user is at the path: nothing is read through it.
        let found = [status, try? files.status(at: paths.directoryBytes)].compactMap { $0 }
        if found.contains(where: { !configuration.owner.trusts($0) }) {
            move(.refuse(isReadable: false))
            return maintenance.schedule(after: 0)
        }
        if let folder = catalog.state.folder, status?.identity != folder {
            // The index is about another folder.
            catalog.distrust()
            withIO { _ = prepareDirectory(&$0, mayMake: false) }
            maintenance.schedule(after: 0)
        } else if configuration.isReadOnly, status != nil, !catalog.state.isReadable {
            move(.accept)
        }
    }

    /// Comes to the directory: opens it, and asks for its lock. Called with the lock of `membership` held.
    func comeToDirectory(mayMake: Bool, _ events: inout [DiskEvent]) -> Membership.Role {
        guard withIO(&events, { prepareDirectory(&$0, mayMake: mayMake) }) else { return .none }
        if passTime == nil { elect(&events) }
        return isOwner ? .owner(isFirst: withIO(&events) { $0.directory.wasMadeHere }) : .guest
    }

    /// Other caches told changes: the index follows, and then the layer above. Called with the lock of `membership`
    /// held.
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

    /// Bytes that the directory may take. When lowered, eviction follows soon; `flush` waits for it.
    package var capacity: Int {
        get { catalog.capacity }
        set {
            catalog.capacity = max(0, newValue)
            if !configuration.isReadOnly { maintenance.schedule(after: configuration.maintenanceDelay) }
        }
    }

    /// Bytes that the directory takes on disk: records, folders and index files, and what bodies that are arriving may
    /// take.
    func footprint(_ io: Section) -> Int {
        catalog.read { $0.bytes } + io.directory.overhead + incoming.bytes
    }

    /// Bytes above the capacity; negative below it.
    var excess: Int { withIO { footprint($0) - catalog.capacity } }

    var isOverCapacity: Bool { excess > 0 }

    /// Bytes that the largest record may take.
    package var largestEntry: Int { capacity.share(configuration.maximumEntryFraction) }

    /// Bytes on disk that the records take, in allocated blocks.
    package var usage: Int { total(\.bytes, { $0.bytes }) }

    package var entryCount: Int { total(\.count, { $0.records.count }) }

    /// From the index if this cache has one, and if not, from the folder.
    private func total(_ ofIndex: (DiskIndex) -> Int, _ ofListing: (FolderListing) -> Int) -> Int {
        if refresh() { return catalog.read(ofIndex) }
        guard catalog.state.isReadable else { return 0 }
        return (try? FolderListing(files, paths, owner: configuration.owner)).map(ofListing) ?? 0
    }

    var isOwner: Bool { catalog.state.isOwner }

    /// Whether other caches may use the directory.
    var isShared: Bool { !catalog.isAlone }

    /// Why the directory cannot be used; nil while it can. Waits for the first look at it.
    var openingError: DiskURLCache.Error? {
        maintenance.perform {
            if configuration.isReadOnly { checkReadOnly() }
            return withIO { io in
                if !io.directory.wasOpened && isOpeningProcess { _ = prepareDirectory(&io, mayMake: true) }
                return io.directory.error
            }
        }
    }
}

import Foundation

/// The work of the maintenance queue, and the calls that wait for it.
///
/// A pass is `beginPass`, the owner's writes with `evictIfNeeded` between them, and `endPass`. Long work in the background is
/// done in steps, each asking for the next.
extension DiskStore {
    /// Looks at the directory, opens it if that was not done yet, and takes in what secondary processes did.
    ///
    /// - Parameter mayMake: a directory that is gone is made again; the first pass makes it in any case.
    /// - Returns: false when the directory cannot be used, or is gone.
    func beginPass(isFlush: Bool, mayMake: Bool) -> Bool {
        guard isOwnProcess, !configuration.isReadOnly else { return false }
        maintenance.assertCurrent()
        let isUsable = withIO { io in
            io.discarded = []
            return prepareDirectory(&io, mayMake: mayMake || !io.directory.wasOpened)
        }
        // Before anything is read into memory, so that no removal after that is missed.
        if isUsable { removals.attachIfNeeded() } else { removals.attachLater() }
        guard isUsable else { return false }
        prepareFolders()
        beginLocking()
        guard open(isFlush: isFlush) else {
            endLocking()
            return false
        }
        takeInOthers()
        withIO { $0.lastLook = 0 }
        return true
    }

    private func prepareFolders() {
        guard let prepare = configuration.prepareFolders else { return }
        let isNew = withIO { io in
            defer { io.preparedDirectory = io.directory.identity }
            return io.preparedDirectory != io.directory.identity
        }
        if isNew { prepare([paths.directory, paths.records]) }
    }

    // MARK: Locks during passes only

    private func beginLocking() {
        passLock?.begin { [weak self] in self?.rest() }
    }

    private func endLocking() {
        guard let passLock else { return }
        rest()
        passLock.end()
    }

    /// Gives up the role until the next pass.
    private func rest() {
        withIO { io in
            guard io.role.isMaintainer else { return }
            io.leftIndex = indexFiles
            catalog.isAuthoritative = false
            io.role.rest(files)
        }
    }

    /// They change whenever another process maintains the directory.
    var indexFiles: [FileStatus?] {
        [paths.index, paths.journal].map { (path: String) in try? files.status(at: path) }
    }

    /// Whether files may be locked now.
    var mayLock: Bool { passLock?.isGranted ?? true }

    /// Runs what may lock files, apart from a pass.
    func lockingFiles(_ body: () -> Void) {
        beginLocking()
        body()
        endLocking()
    }

    /// Repairs, expires, sweeps, saves and evicts; asks for the next pass where work is left.
    func endPass(isFlush: Bool) {
        guard isOwnProcess, !configuration.isReadOnly else { return }
        maintenance.assertCurrent()
        defer { endLocking() }
        examineRequested()
        let (mustClear, hasCleared) = withIO { io in
            io.lastLook = nil
            guard io.directory.mustClear else { return (false, false) }
            clear(&io)
            return (io.directory.mustClear, !io.directory.mustClear)
        }
        if hasCleared { tellOfNewFolder() }
        removeExpired()
        let isSwept = sweepTrash(limit: isFlush ? .max : 256)
        sweepIncomingNowAndThen()
        saveChanges(always: isFlush)
        // Evicting makes the index files grow, perhaps above the capacity again.
        for round in 0..<(isFlush ? 3 : 1) where isOverCapacity {
            evictIfNeeded(now: isFlush && round < 2)
            saveChanges(always: false)
        }
        // The folder was exchanged during the pass: open the new one.
        let mustReopen = withIO { !$0.isReconciled && $0.directory.identity != nil }
        if !isSwept || mustReopen { maintenance.schedule(after: 0.001) }
        let hasChanges = withIO { !$0.log.isEmpty } || catalog.read { $0.dirtyCount > 0 }
        if mustClear || hasChanges { maintenance.schedule(after: configuration.accessTimeDelay) }
    }

    /// A whole pass without an owner.
    func runPass(isFlush: Bool) {
        if configuration.isReadOnly { return checkReadOnly() }
        if !isFlush, withIO({ $0.isClosed }) { return }
        if beginPass(isFlush: isFlush, mayMake: false) { endPass(isFlush: isFlush) }
    }

    /// True when nothing is left.
    private func sweepTrash(limit: Int) -> Bool {
        // Noted first, so that a clearing that comes meanwhile is not forgotten.
        let hasTrash = withIO { io in
            defer { io.directory.noteTrash(false) }
            return io.directory.hasTrash
        }
        if !hasTrash || CacheDirectory.sweepTrash(files, paths, limit: limit) { return true }
        withIO { $0.directory.noteTrash() }
        return false
    }

    /// Of a secondary process that died: once a minute is soon enough.
    private func sweepIncomingNowAndThen() {
        let isDue = withIO { io in
            let now = MonotonicTime.nanoseconds
            guard io.role.isMaintainer, now &- io.lastSweep > 60_000_000_000 else { return false }
            io.lastSweep = now
            return true
        }
        if isDue { sweepIncoming() }
    }

    private func saveChanges(always: Bool) {
        withIO { io in
            if always || !io.log.isEmpty || catalog.read({ $0.dirtyCount > 0 }) { save(&io) }
            io.directory.updateOverhead()
        }
    }

    /// Writes the changes: the maintainer to the index, a secondary cache to the file that the maintainer reads.
    func save(_ io: inout Section) {
        // What is not written now is written by a pass to come.
        guard isOwnProcess, io.directory.identity != nil, !io.isIndexUnreadable, mayLock else { return }
        if io.role.isMaintainer { io.log.save(catalog) } else { io.log.send(catalog) }
    }

    // MARK: Waiting for it

    /// Returns when the directory is within its capacity and the index is saved. For a store with a maintenance queue of its
    /// own.
    func flush() {
        if configuration.isReadOnly { return }
        maintenance.perform { runPass(isFlush: true) }
        balanceByNeighbour { runPass(isFlush: true) }
    }

    /// A secondary cache does not evict. Where another cache of this process maintains the directory, that one is asked, so
    /// that the directory is within its capacity when a flush returns.
    ///
    /// - Parameter pass: the owner's, tried again while a maintainer is just being let go. On the maintenance queue.
    func balanceByNeighbour(_ pass: () -> Void) {
        // One that is being let go gives up its role within moments.
        for _ in 0..<100 {
            let directory = withIO { $0.role.isMaintainer ? nil : $0.directory.identity }
            guard let directory else { return }
            switch MaintainerLock.neighbour(in: directory) {
            case .maintainer(let store): return store.maintenance.perform { store.runPass(isFlush: true) }
            case .none: return
            case .leaving: usleep(1_000)
            }
            maintenance.perform(pass)
        }
    }

    // MARK: Ending

    /// Gives up being the directory's maintainer, before a suspension in which no file may be locked: iOS ends an app that
    /// is suspended with a lock on a file of an App Group container.
    func releaseLock() {
        if configuration.isReadOnly { return }
        maintenance.perform {
            runPass(isFlush: true)
            withIO { giveUpRole(&$0) }
        }
    }

    func reacquireLock() {
        if configuration.isReadOnly { return }
        withIO { $0.role.reclaim() }
        maintenance.schedule(after: 0)
    }

    private func giveUpRole(_ io: inout Section) {
        catalog.isAuthoritative = false
        io.role.giveUp(files)
    }

    /// Saves the index and ends maintenance: lookups and removals still work, writes do not.
    func close() {
        close(withPass: true)
    }

    func close(withPass: Bool) {
        guard isOwnProcess, !configuration.isReadOnly else { return }
        maintenance.perform {
            if withPass, !withIO({ $0.isClosed }) { runPass(isFlush: true) }
            lockingFiles {
                withIO { io in
                    io.isClosed = true
                    save(&io)
                    giveUpRole(&io)
                }
            }
        }
    }
}

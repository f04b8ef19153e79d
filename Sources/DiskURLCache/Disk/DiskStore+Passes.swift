import Foundation

/// The work of the maintenance queue, and the calls that wait for it.
///
/// A pass is `beginPass`, the uses that memory answered, and `endPass`. Long work in the background is
/// done in steps, each asking for the next.
extension DiskStore {
    // MARK: A pass

    /// Looks at the directory, and opens it if that was not done yet: then it is made, too.
    /// - Returns: false when the directory cannot be used, or is gone.
    package func beginPass(isFlush: Bool) -> Bool {
        guard isOwnProcess, !configuration.isReadOnly else { return false }
        maintenance.assertCurrent()
        let isUsable = withIO { io in
            io.discarded = []
            return prepareDirectory(&io, mayMake: !io.directory.wasOpened)
        }
        guard isUsable else { return false }
        prepareFolders()
        lookNow()
        if !catalog.state.isSuspended { passTime?.begin { [weak self] in self?.withIO { _ in self?.giveUpLock() } } }
        open(isFlush: isFlush)
        return true
    }

    private func prepareFolders() {
        guard let prepare = configuration.prepareFolders else { return }
        let isNew = withIO { io in
            defer { io.preparedDirectory = io.directory.identity?.directory }
            return io.preparedDirectory != io.directory.identity?.directory
        }
        if isNew { prepare([paths.directory, paths.records]) }
    }

    /// Repairs, expires, sweeps, evicts and saves; asks for the next pass where work is left.
    package func endPass(isFlush: Bool) {
        guard isOwnProcess, !configuration.isReadOnly else { return }
        maintenance.assertCurrent()
        examineRequested()
        removeExpired()
        // While `io` is held, the ownership stays.
        withIO { _ in if catalog.state.isOwner { changes.replaceIfFull(capacity: catalog.capacity) } }
        let isSwept = sweepTrash(limit: isFlush ? .max : 256)
        sweepIncoming()
        // The index may grow, perhaps above the capacity again.
        var mustSave = isFlush
        for round in 0..<(isFlush ? 3 : 1) {
            if isOverCapacity, evictIfNeeded(now: isFlush && round < 2) { mustSave = true }
            save(now: mustSave)
        }
        if !isSwept || (catalog.state.isOwner && !catalog.state.isCurrent) { maintenance.schedule(after: 0.001) }
        if withIO({ $0.directory.mustClear }) { maintenance.schedule(after: 1) }
        if catalog.state.isCurrent, catalog.read({ $0.isChanged }) {
            maintenance.schedule(after: configuration.savingInterval)
        }
        guard let passTime else { return }
        withIO { _ in giveUpLock() }
        passTime.end()
    }

    /// A whole pass without an owner.
    func runPass(isFlush: Bool) {
        if configuration.isReadOnly { return checkReadOnly() }
        if !isFlush, catalog.state.isClosed { return }
        if beginPass(isFlush: isFlush) { endPass(isFlush: isFlush) }
    }

    /// Returns when the directory is within its capacity and the index is saved. For a store with a maintenance queue of its own.
    package func flush() {
        if configuration.isReadOnly { return }
        maintenance.perform { runPass(isFlush: true) }
    }

    // MARK: Opening

    /// Asks for the directory's lock where another cache may have left it, and makes the index where this cache has none.
    private func open(isFlush: Bool) {
        if case .guest = catalog.state { elect(now: isFlush) }
        if catalog.isUncertain { catalog.distrust() }
        guard case .owner(let lock, _) = catalog.state else { return }
        if !catalog.state.isCurrent { makeIndex(lock) }
        examineRequested()
    }

    private func elect(now: Bool) {
        let isElected = withIO { io in
            let time = MonotonicTime.seconds
            guard passTime?.isGranted != false, let directory = io.directory.identity?.directory else { return false }
            guard now || time >= io.nextElection else {
                // The last pass left the lock.
                if passTime != nil { maintenance.schedule(after: io.nextElection - time) }
                return false
            }
            io.nextElection = time + 1
            guard let lock = OwnerLock.acquire(files, paths, directory: directory) else { return false }
            become(.owner(lock, folder: nil))
            if passTime == nil || !io.wasOwner { io.events.append(.becameMaintainer) }
            io.wasOwner = true
            // What an owner before this one left.
            io.directory.noteTrash()
            io.lastSweep = -Double.infinity
            return true
        }
        guard isElected else { return }
        // What a process that died left half written. A cache that writes it at this moment finds that out, and begins again.
        for path in [paths.newIndex, paths.newChanges] { try? files.unlink(path) }
    }

    /// Lists the folder, and takes each row that it proves from the index in memory, or from the index file. Lookups go on
    /// meanwhile: they probe slots. A key that changes meanwhile is examined afterwards.
    private func makeIndex(_ lock: OwnerLock) {
        // No thread of the app waits for it.
        var (saved, savedAt) = (catalog.read { $0.leastRecentFirst }, Int.max)
        var problem: DiskEvent.RebuildReason?
        let start = MonotonicTime.seconds
        if saved.isEmpty {
            switch IndexFile(files: files, paths: paths).load() {
            case .loaded(let rows, let time): (saved, savedAt) = (rows, time)
            case .missing: problem = .missing
            case .rejected: problem = .rejected
            // It is not written over: the next pass tries again.
            case .unreadable: return
            }
        }
        catalog.beginListing()
        // A listing that failed proves nothing.
        guard let folder = withIO({ $0.directory.identity?.folder }),
            let listing = try? FolderListing(files, paths, owner: configuration.owner)
        else { return }
        var index = DiskIndex()
        let partial = index.fill(with: saved, savedAt: savedAt, listing: listing)
        withIO { io in
            // The directory was left meanwhile.
            guard case .owner(let current, folder: nil) = catalog.state, current === lock else { return }
            io.discarded.append(catalog.read { $0 })
            guard catalog.becomeCurrent(index, lock, folder) else { return }
            // Reading each head, which finds what a crash left unfinished, takes long where there are many: then size and name do.
            if partial.count <= 512 {
                for name in partial { catalog.requestExamination(of: name.key) }
            }
            switch problem {
            case .rejected: io.events.append(.rebuiltIndex(.rejected))
            // A folder that this cache made has lost nothing.
            case .missing:
                if !partial.isEmpty, !io.directory.isFolderOwn { io.events.append(.rebuiltIndex(.missing)) }
            case nil: break
            }
            io.directory.updateOverhead()
            // Where each pass begins with it, it takes no more than a twentieth of the time.
            let end = MonotonicTime.seconds
            io.nextElection = max(io.nextElection, end + 20 * (end - start))
        }
    }

    /// Looks into keys whose files and rows may not agree. On the maintenance queue.
    private func examineRequested() {
        while let request = catalog.nextExamination {
            withIO { io in
                // Without an index there is nothing to be made to agree later.
                if !catalog.state.isCurrent { catalog.examinationEnded(of: request.key) }
                records.examine(request.key, &io.events, verifyingBodies: request.verifiesBodies)
            }
        }
    }

    /// Makes the index agree with the files as they are now; false where this cache has no index.
    @discardableResult
    func refresh() -> Bool {
        guard isOwnProcess, !configuration.isReadOnly else { return false }
        if catalog.state.isCurrent, !catalog.isUncertain, catalog.nextExamination == nil {
            lookNow()
            if catalog.state.isCurrent, catalog.nextExamination == nil {
                // A pass may be examining the last key at this moment: under the lock.
                withIO { _ in }
                return true
            }
        }
        return maintenance.perform {
            guard withIO({ prepareDirectory(&$0, mayMake: false) }) else { return false }
            lookNow()
            open(isFlush: false)
            return catalog.state.isCurrent
        }
    }

    /// Makes the index anew from the records; false when another process owns the directory.
    package func rebuildIndex() -> Bool {
        flush()
        return maintenance.perform {
            guard catalog.state.isOwner else { return false }
            catalog.distrust()
            withIO { forgetIndex(&$0) }
            try? files.unlink(paths.index)
            open(isFlush: true)
            save(now: true)
            return catalog.state.isCurrent
        }
    }

    // MARK: Saving

    /// Writes the index. Only an owner whose index knows every record does.
    private func save(now: Bool) {
        let time = MonotonicTime.seconds
        let isDue = withIO { io in
            io.directory.updateOverhead()
            guard isOwnProcess, io.directory.identity != nil, catalog.state.isCurrent,
                catalog.read({ $0.isChanged }) || (now && (try? files.status(at: paths.index)) == nil),
                now || time - io.lastSave >= configuration.savingInterval
            else { return false }
            io.lastSave = time
            return true
        }
        guard isDue else { return }
        let rows = catalog.change { index in
            index.noteSaved()
            return index.leastRecentFirst
        }
        // Where there is no room the next saving tries again.
        if (try? IndexFile(files: files, paths: paths).save(rows)) == nil { catalog.change { $0.noteUnsaved() } }
        withIO { $0.directory.updateOverhead() }
    }

    // MARK: Bounds

    /// Evicts the least recently used records from above the capacity down to the low-water mark. A record that cannot be unlinked is
    /// passed over; when many in a row cannot, the directory is at fault, and eviction rests for a while. Only an owner evicts.
    ///
    /// - Parameter now: even if it hardly worked a moment ago.
    /// - Returns: whether anything was evicted.
    @discardableResult
    func evictIfNeeded(now: Bool) -> Bool {
        maintenance.assertCurrent()
        guard catalog.state.isCurrent, now || withIO({ $0.eviction.isRested }) else { return false }
        let target = catalog.capacity.share(configuration.lowWaterFraction)
        let pinnedLimit = catalog.capacity.share(configuration.pinnedFraction)
        guard isOverCapacity else { return false }
        var passedOver = withIO { $0.eviction.stuck }
        var failures = 0
        var isAny = false
        while failures < 16 {
            let policy = EvictionPolicy(pinnedLimit: pinnedLimit, passedOver: passedOver)
            let victims = withIO { io in
                let excess = footprint(io) - target
                return catalog.read { policy.victims(in: $0, freeing: excess) }
            }
            if victims.isEmpty { break }
            for victim in victims where failures < 16 {
                if withIO({ records.evict(victim, &$0.events) }) {
                    (failures, isAny) = (0, true)
                } else {
                    passedOver.insert(victim.name)
                    failures += 1
                }
            }
        }
        withIO { $0.eviction.ended(passedOver: passedOver, isHopeless: failures >= 16) }
        if withIO({ $0.directory.overhead > 64 << 10 }) { replaceEmptyFolder(target) }
        return isAny
    }

    /// An empty folder that alone takes more than the target is replaced: a folder does not shrink.
    package func replaceEmptyFolder(_ target: Int) {
        withIO { io in
            guard incoming.bytes == 0, footprint(io) > target, catalog.state.isCurrent,
                catalog.read({ $0.count == 0 }), io.directory.replaceEmptyFolder()
            else { return }
            followFolder(io)
            io.directory.updateOverhead()
        }
    }

    /// Removes what exceeds the maximum ages.
    private func removeExpired() {
        guard configuration.hasAges, catalog.state.isCurrent else { return }
        let now = clock.now().timeIntervalSince1970
        let expired = catalog.read { $0.leastRecentFirst.filter { configuration.isExpired($0, now: now) } }
        for row in expired { withIO { records.expire(row, &$0.events) } }
    }

    /// True when nothing is left.
    private func sweepTrash(limit: Int) -> Bool {
        // Noted first, so that a clearing that comes meanwhile is not forgotten.
        let hasTrash = withIO { $0.directory.takeTrash() }
        if !hasTrash || CacheDirectory.sweepTrash(files, paths, limit: limit) { return true }
        withIO { $0.directory.noteTrash() }
        return false
    }

    /// Of processes that died: once a minute is soon enough.
    private func sweepIncoming() {
        let isDue = withIO { io in
            let now = MonotonicTime.seconds
            guard catalog.state.isOwner, now - io.lastSweep > 60 else { return false }
            io.lastSweep = now
            return true
        }
        if isDue { incoming.sweep(files, paths) }
    }

    // MARK: Ending

    /// Saves, and holds no lock from then on, before the system may suspend the process: iOS ends an app that is suspended with a
    /// lock on a file of an App Group container.
    func suspend() {
        if configuration.isReadOnly { return }
        maintenance.perform {
            runPass(isFlush: true)
            withIO { io in
                giveUpLock()
                forgetIndex(&io)
                become(.suspended)
            }
            incoming.unlock()
        }
    }

    func resume() {
        guard catalog.state.isSuspended else { return }
        withIO { io in
            io.nextElection = 0
            become(.guest)
        }
        maintenance.schedule(after: 0)
    }

    /// Saves the index and ends maintenance: lookups and removals still work, writes do not.
    package func close() {
        close(withPass: true)
    }

    func close(withPass: Bool) {
        guard isOwnProcess, !configuration.isReadOnly else { return }
        maintenance.perform {
            if withPass, !catalog.state.isClosed { runPass(isFlush: true) }
            withIO { _ in become(.closed) }
        }
    }
}

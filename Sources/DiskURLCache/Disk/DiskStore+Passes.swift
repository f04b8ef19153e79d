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
        guard isOpeningProcess, !configuration.isReadOnly, !catalog.state.isClosed else { return false }
        maintenance.assertCurrent()
        func prepare() -> Bool { withIO { prepareDirectory(&$0, mayMake: !$0.directory.wasOpened) } }
        if !prepare() {
            // Only the folder is meant that was to be cleared, not one that has taken its place since `prepare`.
            guard withIO({ $0.directory.canClear }) else {
                // Only its folder of records is missing. Others may store in a new one, and only an owner evicts.
                if catalog.state.isOwner { maintenance.schedule(after: configuration.savingInterval) }
                return false
            }
            clear()
            guard prepare() else { return false }
        }
        prepareFolders()
        // The app may be deleting the directory at this moment, which fails if a new lock appears there. A later pass
        // asks for it.
        if !isFlush, !checkFolderIfDue(at: MonotonicTime.nanoseconds) { return false }
        check(mayMake: false)
        passTime?.begin { [weak self] in self?.withIO { _ in self?.giveUpLock() } }
        open(isFlush: isFlush)
        return true
    }

    /// Repairs, expires, sweeps, evicts and saves; asks for a further pass if work is left.
    package func endPass(isFlush: Bool) {
        guard isOpeningProcess, !configuration.isReadOnly else { return }
        maintenance.assertCurrent()
        examineRequested()
        readHeads()
        removeExpired(now: isFlush)
        // The index may grow, perhaps above the capacity again.
        var mustSave = isFlush
        for _ in 0..<(isFlush ? 3 : 1) {
            if evictIfNeeded() { mustSave = true }
            save(now: mustSave)
        }
        let isSwept = sweep(limit: isFlush ? .max : 256)
        if !isSwept { maintenance.schedule(after: 0.001) }
        if catalog.state.isOwner, !catalog.state.isCurrent { maintenance.schedule(after: 1) }
        // An owner that is not used itself makes passes, too: guests store and do not evict, and memory answers. Not on
        // systems where each pass asks for the directory's lock.
        let isToSave = catalog.state.isCurrent && catalog.read { $0.isChanged }
        if isToSave || passTime == nil && catalog.state.isOwner {
            maintenance.schedule(after: configuration.savingInterval)
        }
        if configuration.hasAges, catalog.state.isCurrent {
            maintenance.schedule(after: withIO { $0.upkeep.nextAgeCheck } - MonotonicTime.seconds)
        }
        guard let passTime else { return }
        withIO { _ in passTime.end { giveUpLock() } }
    }

    /// A whole pass without an owner.
    func runPass(isFlush: Bool) {
        if configuration.isReadOnly { return checkReadOnly() }
        if !isFlush, catalog.state.isClosed { return }
        if beginPass(isFlush: isFlush) { endPass(isFlush: isFlush) }
    }

    /// Returns when the directory is within its capacity and the index is saved. For a store that has a maintenance
    /// queue alone.
    package func flush() {
        if configuration.isReadOnly { return }
        maintenance.perform { runPass(isFlush: true) }
    }

    // MARK: Opening

    /// Asks for the directory's lock if a different cache may have left it, and makes the index if this cache has none.
    private func open(isFlush: Bool) {
        if case .guest = catalog.state, mayElect(now: isFlush) {
            var events: [DiskEvent] = []
            let isElected = elect(&events)
            tell(events)
            if isElected { membership.becameOwner(self) }
        }
        guard case .owner(let lock, _, _) = catalog.state else { return }
        membership.endIfAlone(self)
        if !catalog.state.isCurrent { makeIndex(lock) }
        examineRequested()
    }

    /// Whether this pass may ask for the directory's lock. On systems where each pass gives the lock up again, making
    /// the index each time would take too long, so only some passes do.
    private func mayElect(now: Bool) -> Bool {
        withIO { io in
            let time = MonotonicTime.seconds
            if now || time >= io.nextElection { return true }
            maintenance.schedule(after: io.nextElection - time)
            return false
        }
    }

    /// Asks for the directory's lock. True if this cache has got it now.
    func elect(_ events: inout [DiskEvent]) -> Bool {
        let isElected = withIO(&events) { io in
            // When the time of a pass ends, the lock is given up under the same lock of files.
            guard case .guest = catalog.state, passTime?.isGranted != false,
                let directory = io.directory.identity?.directory,
                let lock = OwnerLock.acquire(files, paths, directory: directory)
            else { return false }
            move(.own(lock))
            guard isOwner else { return false }
            // If each pass asks for the lock again, only the first one reports it.
            if io.nextElection == 0 { io.events.append(.becameOwner) }
            return true
        }
        // Removes the unfinished index file of a process that died. A cache that is writing one at this moment notices
        // that it is gone, and writes it again.
        if isElected { try? files.unlink(paths.newIndex) }
        return isElected
    }

    /// Lists the folder, and takes each row that it proves from the index in memory, or from the index file. Lookups go
    /// on meanwhile: they probe slots. A key that changes meanwhile is examined afterwards.
    private func makeIndex(_ lock: OwnerLock) {
        // No thread of the app waits for it.
        var saved = Array(catalog.read { $0.inOrder })
        var savedAt = Int64.max
        var isRejected = false
        let start = MonotonicTime.seconds
        if saved.isEmpty {
            switch IndexFile(files: files, paths: paths).load() {
            case .loaded(let rows, let time):
                saved = rows
                savedAt = time
            case .missing: break
            // No descriptor is free, or the device is locked. The file is not replaced: a later pass reads it.
            case .notPermitted where configuration.hasFileProtection, .unreadable: return
            case .rejected, .notPermitted: isRejected = true
            }
        }
        catalog.beginListing()
        // A listing that failed proves nothing.
        guard let folder = withIO({ $0.directory.identity?.folder }),
            let listing = try? FolderListing(
                files, paths, owner: configuration.owner, expectedCount: saved.count)
        else { return }
        var index = DiskIndex()
        let partial = index.fill(with: saved, savedAt: savedAt, listing: listing)
        withIO { io in
            // This cache has left the directory, or lost its lock, meanwhile.
            guard case .owner(let current, folder: nil, _) = catalog.state, current === lock else { return }
            // Something changed meanwhile: it is listed again at once.
            guard catalog.becomeCurrent(index, lock, folder) else { return maintenance.schedule(after: 0.001) }
            // Reading each head finds records that a crash left unfinished. If there are many records, that would take
            // too long, so names and sizes are trusted, and the heads are read by and by.
            let examinesAll = partial.new.count <= 512
            if examinesAll { for key in partial.new { catalog.requestExamination(of: key) } }
            // What is larger than the whole cache goes before any record has to make room for it.
            for file in listing.records where file.status.size > catalog.capacity {
                catalog.requestExamination(of: file.name.key)
            }
            io.upkeep = Upkeep(unread: partial.unread + (examinesAll ? [] : partial.new))
            if isRejected { io.events.append(.rejectedIndex) }
            io.directory.updateOverhead()
            // On systems where a pass makes the index anew each time, that takes at most a twentieth of the time, and
            // there is at least a second between two times.
            let end = MonotonicTime.seconds
            if passTime != nil { io.nextElection = end + max(1, 20 * (end - start)) }
        }
    }

    /// Examines the keys whose files and rows may not agree. On the maintenance queue.
    private func examineRequested() {
        while let request = catalog.beginExamination() {
            let suspects = request.verifiesBodies ? records.damaged(of: request.key) : []
            examine(request.key, suspects)
            // The owner may have rows of what was removed now.
            if !isOwner { tellOfChange(of: request.key) }
        }
    }

    /// - Parameter suspects: see `RecordFiles.examine`.
    private func examine(_ key: KeyName, _ suspects: Slots = []) {
        withIO { io in
            if !catalog.state.isCurrent { catalog.dropRequest(of: key) }
            let rows = records.examine(key, &io.events, suspects: suspects)
            // No descriptor was free, or the disk had an error. A foreign file stays unread.
            let isUnread = rows.contains { $0.isPartial && records.mayMatch($0.name) { _ in true } }
            guard catalog.state.isCurrent, isUnread else { return }
            io.upkeep.readLater(key, after: configuration.savingInterval)
            maintenance.schedule(after: configuration.savingInterval)
        }
    }

    /// Makes the index agree with the files as they are now; false if this cache has no index.
    @discardableResult
    func refresh() -> Bool {
        guard isOpeningProcess, !configuration.isReadOnly else { return false }
        if catalog.hasNothingToExamine { check(mayMake: false) }
        if !catalog.hasNothingToExamine {
            let isThere = maintenance.perform {
                guard withIO({ prepareDirectory(&$0, mayMake: false) }) else { return false }
                check(mayMake: false)
                open(isFlush: false)
                return true
            }
            if !isThere { return false }
        }
        // Another thread may be examining a key at this moment, under the lock: waits for it.
        withIO { _ in }
        return catalog.state.isCurrent
    }

    /// Makes the index again from the records; false if a different process owns the directory.
    package func rebuildIndex() -> Bool {
        flush()
        return maintenance.perform {
            guard catalog.state.isOwner else { return false }
            catalog.distrust()
            withIO { _ in catalog.forget() }
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
            guard isOpeningProcess, io.directory.identity != nil, catalog.state.isCurrent,
                catalog.read({ $0.isChanged }) || (now && (try? files.status(at: paths.index)) == nil),
                now || time - io.lastSave >= configuration.savingInterval
            else { return false }
            io.lastSave = time
            return true
        }
        guard isDue else { return }
        var nextExpiry = Double.infinity
        let rows = catalog.change { index in
            index.noteSaved()
            return index.inOrder
        }
        let bytes = IndexFile.encode(count: rows.count) { put in
            for row in rows {
                if configuration.hasAges { nextExpiry = min(nextExpiry, configuration.expiry(of: row)) }
                put(row)
            }
        }
        if configuration.hasAges {
            // A record that came since the last look at ages may be older than those before.
            let wait = nextExpiry - clock.now().timeIntervalSince1970
            withIO { $0.upkeep.bringAgeCheckForward(to: wait, atLeast: configuration.savingInterval) }
        }
        // On a full disk the next saving tries again.
        if (try? IndexFile(files: files, paths: paths).save(bytes)) == nil { catalog.change { $0.noteUnsaved() } }
        withIO { $0.directory.updateOverhead() }
    }

    // MARK: Bounds

    /// Evicts records from above the capacity down to the low-water mark, in the order of `EvictionPolicy`. A record
    /// that cannot be unlinked becomes the most recent one; when many in a row cannot, the directory is at fault, and
    /// the pass evicts no more. Only an owner evicts.
    ///
    /// - Returns: whether anything was evicted.
    @discardableResult
    func evictIfNeeded() -> Bool {
        maintenance.assertCurrent()
        guard catalog.state.isCurrent, excess > 0 else { return false }
        let target = catalog.capacity.share(configuration.lowWaterFraction)
        let policy = EvictionPolicy(
            pinnedLimit: catalog.capacity.share(configuration.pinnedFraction), weighsSize: configuration.weighsSize)
        var failures = 0
        var isAny = false
        while failures < RecordFiles.evictionFailures {
            // After a change by another cache the rows may not describe the files. Nothing is evicted until the index
            // is made again.
            let excess = withIO { catalog.state.isCurrent ? footprint($0) - target : 0 }
            let victims = catalog.victims(by: policy, freeing: excess)
            if victims.isEmpty { break }
            // So few that a slot is not kept for long from being used again.
            for start in stride(from: 0, to: victims.count, by: policy.batch) {
                var batch = Array(victims[start...].prefix(policy.batch))
                for key in Set(batch.map(\.key)) where catalog.exactRows(of: key) == nil {
                    // A record that is known by name alone may be pinned. Once its head was read, it is chosen by that.
                    examine(key)
                    // Before the newer one, without which it would be the answer.
                    let replaced = catalog.read { $0.rows(of: key) }.filter(\.isReplaced)
                    batch.removeAll { row in replaced.contains { $0.slot == row.slot && row.key == key } }
                    batch.insert(contentsOf: replaced, at: 0)
                }
                if records.evict(batch, failures: &failures, in: self) { isAny = true }
            }
        }
        if withIO({ $0.directory.overhead > 64 << 10 }) { replaceEmptyFolder(target) }
        return isAny
    }

    /// An empty folder that alone takes more than the target is replaced.
    package func replaceEmptyFolder(_ target: Int) {
        withIO { io in
            guard incoming.bytes == 0, footprint(io) > target, catalog.state.isCurrent,
                catalog.read({ $0.count == 0 }), io.directory.replaceEmptyFolder()
            else { return }
            followFolder(io)
            io.directory.updateOverhead()
        }
    }

    /// Removes what exceeds the maximum ages, if a record may do so by now.
    private func removeExpired(now mustLook: Bool) {
        guard configuration.hasAges, catalog.state.isCurrent else { return }
        guard mustLook || withIO({ $0.upkeep.nextAgeCheck }) <= MonotonicTime.seconds else { return }
        let now = clock.now().timeIntervalSince1970
        // Of a copy, so that no lookup waits for it.
        let rows = Array(catalog.read { $0.inOrder })
        let next = records.removeExpired(rows, at: now, in: self)
        withIO { $0.upkeep.planAgeCheck(after: next - now, atLeast: configuration.savingInterval) }
    }

    /// Reads the heads of some records that were taken in by name alone, and asks for a pass that reads the next ones.
    /// That takes at most a tenth of the time.
    private func readHeads() {
        guard catalog.state.isCurrent else { return }
        let start = MonotonicTime.seconds
        let (keys, isLast) = withIO { io in catalog.read { io.upkeep.nextUnread(in: $0) } }
        for key in keys { examine(key) }
        if !isLast { maintenance.schedule(after: max(0.02, 9 * (MonotonicTime.seconds - start))) }
    }

    /// Deletes up to `limit` files that clearings have left, and the files of arriving bodies whose process died. False
    /// if more such files can be deleted.
    private func sweep(limit: Int) -> Bool {
        // On systems where arriving bodies are not locked, only the age of a file shows that its process has died.
        let hourAgo = passTime == nil ? nil : clock.now().addingTimeInterval(-3_600)
        if catalog.state.isOwner { incoming.sweep(files, paths, olderThan: hourAgo) }
        return CacheDirectory.sweepTrash(files, paths, limit: limit)
    }

    // MARK: Ending

    /// Saves the index and ends maintenance: lookups and removals still work, writes do not.
    package func close() {
        close(withPass: true)
    }

    func close(withPass: Bool) {
        guard isOpeningProcess, !configuration.isReadOnly else { return }
        maintenance.perform {
            if withPass, !catalog.state.isClosed { runPass(isFlush: true) }
            membership.leave(self)
            withIO { _ in move(.close) }
        }
    }
}

import Foundation

/// What the maintenance queue does, and the calls that wait for it.
extension DiskStore {
    /// The timer's handler.
    func backgroundPass() {
        guard maintenance.beginPass() else { return }
        if !state.withLock({ $0.isClosed }) { pass(isFlush: false) }
        maintenance.endPass()
    }

    /// Does what there is to do. In the background long work is done in steps, each asking for the next.
    func pass(isFlush: Bool) {
        guard isOwnProcess, !configuration.isReadOnly else { return }
        // What comes in now is written by this pass.
        state.withLock { $0.isPassScheduled = true }
        let isSettled = settle.withLock { $0 }?() ?? true
        let hasStaged = state.withLock { state in
            state.isPassScheduled = false
            return !state.staged.isEmpty
        }
        let isUsable = withIO { io in
            io.discarded = []
            return prepareDirectory(&io, mayMake: hasStaged || !io.wasOpened)
        }
        if !isSettled { maintenance.schedule(after: configuration.maintenanceDelay) }
        guard isUsable else {
            // What was staged since is for the next pass, which may make the directory.
            if hasStaged {
                dropStaged()
            } else if state.withLock({ !$0.staged.isEmpty }) {
                maintenance.schedule(after: 0)
            }
            return
        }
        open(isFlush: isFlush)
        takeInGuests()
        writeStaged()
        examineSuspects()
        let mustClear = withIO { io in
            if io.mustClear { clear(&io) }
            return io.mustClear
        }
        removeExpired()
        let isSwept = !withIO { $0.hasTrash } || sweepTrash(limit: isFlush ? .max : 256)
        evict(now: isFlush)
        withIO { io in
            if isFlush || isSaveDue(io) { save(&io) }
            updateOverhead(&io)
        }
        if isFlush, isOverCapacity {
            // The index files grew above the mark: once more, and they are counted.
            evict(now: true)
            withIO { io in
                save(&io)
                updateOverhead(&io)
            }
        }
        // The folder was exchanged during the pass: open the new one.
        let mustReopen = withIO { io in !io.isReconciled && state.withLock { $0.directoryIdentity != nil } }
        if !isSwept || mustReopen { maintenance.schedule(after: 0.001) }
        if mustClear { maintenance.schedule(after: configuration.accessTimeDelay) }
        if state.withLock({ $0.touchedCount > 0 }) || withIO({ !$0.pending.isEmpty }) {
            maintenance.schedule(after: configuration.accessTimeDelay)
        }
    }

    /// Asks for a pass, which begins with `settle`.
    func scheduleSettling(isPressing: Bool) {
        maintenance.schedule(after: isPressing ? 0 : configuration.maintenanceDelay, keeping: self)
    }

    /// The directory cannot be used, or is gone with nothing to write: what is staged lives in memory only.
    private func dropStaged() {
        while let write = state.withLock({ $0.staged.next() }) {
            state.withLock { $0.staged.finish(write) }
            tell(.dropped(key: write.key.digest, .unavailable))
        }
        signalRoom()
    }

    /// Elects, loads and lists, as far as that was not done yet.
    private func open(isFlush: Bool) {
        let isLoaded = withIO { io in
            elect(&io, now: isFlush)
            return io.isReconciled
        }
        if !isLoaded {
            loadAndReconcile()
            withIO { io in
                guard io.isMaintainer else { return }
                // What a maintainer before us left; a guest's clearing is its own to sweep while it lives, but both may.
                io.hasTrash = true
                try? files.unlink(paths.newIndex)
                if io.storage.snapshot == nil { save(&io) }
            }
        }
        withIO { io in
            guard io.isMaintainer, io.isReconciled else { return }
            let isEmpty = GuestFile(files: files, paths: paths).isEmpty
            state.withLock { $0.isAuthoritative = isEmpty }
        }
    }

    /// Brings what guests did into the index; only the maintainer does.
    private func takeInGuests() {
        guard withIO({ $0.isMaintainer }) else { return }
        let taking = GuestFile(files: files, paths: paths).take { rows, isWhole in
            if !isWhole || rows.contains(where: { $0.kind == .clear }) { reconcile() }
            var touched: [JournalRow] = []
            // In the order of the rows: it is the order of use.
            var changed: [KeyDigest] = []
            var seen: Set<KeyDigest> = []
            for row in rows {
                switch row.kind {
                case .store, .remove: if seen.insert(row.row.digest).inserted { changed.append(row.row.digest) }
                case .touch: touched.append(row)
                case .clear: break
                }
            }
            // The rows only say where to look: what is there counts.
            for digest in changed { withIO { examine(digest, &$0) } }
            withIO { io in
                for row in touched {
                    state.withLock { row.apply(to: &$0.index) }
                    io.pending.append(row)
                }
            }
        }
        switch taking {
        case .busy: maintenance.schedule(after: 0.1)
        case .nothing, .taken: withIO { io in state.withLock { $0.isAuthoritative = io.isReconciled } }
        }
    }

    // MARK: Saving

    private func isSaveDue(_ io: IOState) -> Bool {
        !io.pending.isEmpty || state.withLock { $0.touchedCount > 0 }
    }

    /// Writes what changed: the maintainer to the journal, or, where that does not pay any more, as a whole; a guest to the
    /// guests' file.
    func save(_ io: inout IOState) {
        guard isOwnProcess, state.withLock({ $0.directoryIdentity != nil }) else { return }
        let touched = state.withLock { state in
            defer { state.touchedCount = 0 }
            return state.touchedCount > 0 ? state.index.takeTouched(state.touchedCount) : []
        }
        io.pending += touched.map { JournalRow(kind: .touch, row: $0) }
        guard io.isMaintainer else {
            if io.pending.isEmpty { return }
            if GuestFile(files: files, paths: paths).append(io.pending) {
                io.pending = []
                io.freed = [:]
            } else if io.pending.count > 100_000 {
                // Nobody took them for long. Whoever maintains next lists the records.
                io.pending = [.clear]
            }
            return
        }
        do throws(Errno) {
            let count = state.withLock { $0.index.count }
            // A journal longer than half of the index takes longer to load than a new index takes to write.
            let isLong = io.storage.journalRows + io.pending.count > max(4096, count / 2)
            if io.storage.snapshot != nil, !isLong {
                try io.storage.append(io.pending)
            } else {
                try saveWhole(&io)
            }
            io.pending = []
            io.freed = [:]
        } catch {
            // The old files still hold; listing the records finds what they lack. The next saving is of the whole.
            io.storage.invalidate()
            io.pending = []
        }
    }

    private func saveWhole(_ io: inout IOState) throws(Errno) {
        let time = MonotonicTime.seconds
        // A disk that is full stays full for a while.
        guard time >= io.nextSave else { throw Errno(EAGAIN) }
        do throws(Errno) {
            try io.storage.save(state.withLock { $0.index })
        } catch {
            io.nextSave = time + 1
            throw error
        }
    }

    // MARK: Waiting for it

    /// Returns when all that was stored or removed before is in the files, within the capacity, and the index is saved.
    func flush() {
        if configuration.isReadOnly { return }
        maintenance.perform { pass(isFlush: true) }
        balanceByNeighbour()
    }

    /// A guest does not evict. Where another cache of this process maintains the directory, that one is asked, so that
    /// the directory is within its capacity when `flush` returns.
    private func balanceByNeighbour() {
        // One that is being let go gives up its role within moments.
        for _ in 0..<100 {
            guard !withIO({ $0.isMaintainer }), let identity = state.withLock({ $0.directoryIdentity }) else { return }
            switch MaintainerLock.neighbour(in: identity) {
            case .maintainer(let store): return store.maintenance.perform { store.pass(isFlush: true) }
            case .none: return
            case .leaving: usleep(1_000)
            }
            maintenance.perform { pass(isFlush: true) }
        }
    }

    /// Evicts until no more than that many bytes are taken.
    func trim(toBytes bytes: Int) {
        if configuration.isReadOnly { return }
        maintenance.perform {
            pass(isFlush: true)
            guard withIO({ $0.isMaintainer }) else { return }
            // Twice: saving what the first round did may take a block more.
            for _ in 0..<2 {
                evict(downTo: max(0, bytes))
                withIO { io in
                    save(&io)
                    updateOverhead(&io)
                }
            }
        }
    }

    /// Bytes that the directory may take. Less than is taken is made true soon, and by `flush`.
    var capacity: Int {
        get { state.withLock { $0.capacity } }
        set {
            state.withLock { $0.capacity = max(0, newValue) }
            if !configuration.isReadOnly { maintenance.schedule(after: configuration.maintenanceDelay) }
        }
    }

    /// Bytes on disk that the records take, in allocated blocks, and those that staged entries will take.
    var usage: Int {
        refreshIfNeeded()
        return state.withLock { $0.index.bytes + $0.staged.bytes }
    }

    var entryCount: Int {
        refreshIfNeeded()
        return state.withLock { $0.index.count + $0.staged.count }
    }

    func refreshIfNeeded() {
        let isCurrent = state.withLock { $0.isAuthoritative } && GuestFile(files: files, paths: paths).isEmpty
        if !isCurrent { maintenance.perform { refresh() } }
    }

    /// Makes the index agree with the files as they are now.
    func refresh() {
        guard isOwnProcess else { return }
        if configuration.isReadOnly { return reconcile() }
        guard withIO({ prepareDirectory(&$0, mayMake: false) }) else { return }
        let wasReconciled = withIO { $0.isReconciled }
        open(isFlush: false)
        takeInGuests()
        // A guest is told nothing: it has to look.
        if wasReconciled, !withIO({ $0.isMaintainer }) { reconcile() }
    }

    /// Calls with the metadata and the body length of each record, the least recently used first.
    func forEachRecord(_ body: (DiskRecordInfo) -> Void) {
        refreshIfNeeded()
        var rows: [IndexRow] = []
        state.withLock { state in
            rows.reserveCapacity(state.index.count)
            state.index.forEachLeastRecentFirst {
                rows.append($0)
                return true
            }
        }
        for row in rows {
            guard case .record(let record) = reader.read(row.digest, slot: row.slot, .head, limit: .max >> 1)
            else { continue }
            body(
                DiskRecordInfo(
                    digest: row.digest, metadata: record.metadata, bodyLength: record.header.bodyLength,
                    allocated: record.allocated, accessedAt: Date(recordSeconds: row.accessedAt)))
        }
    }

    // MARK: Ending

    /// Gives up being the directory's maintainer, before a suspension in which no file may be locked: iOS ends an app that
    /// is suspended with a lock on a file of an App Group container.
    func releaseLock() {
        if configuration.isReadOnly { return }
        maintenance.perform {
            pass(isFlush: true)
            withIO { io in
                io.isRoleGivenUp = true
                giveUpRole(&io)
            }
        }
    }

    func reacquireLock() {
        if configuration.isReadOnly { return }
        withIO { io in
            io.isRoleGivenUp = false
            io.nextElection = 0
        }
        maintenance.schedule(after: 0)
    }

    private func giveUpRole(_ io: inout IOState) {
        state.withLock { $0.isAuthoritative = false }
        if case .maintainer(let lock) = io.role { lock.release(files) }
        io.role = .guest
    }

    /// Writes what is staged, and the index, and ends maintenance: lookups and removals still work, stores do not.
    func close() {
        close(landing: true)
    }

    func close(landing: Bool) {
        guard isOwnProcess, !configuration.isReadOnly else { return }
        maintenance.perform {
            if landing, !state.withLock({ $0.isClosed }) { pass(isFlush: true) }
            state.withLock { $0.isClosed = true }
            withIO { io in
                save(&io)
                io.isRoleGivenUp = true
                giveUpRole(&io)
            }
        }
    }
}

import Foundation

/// Opening: the directory, who maintains it, the index, and the listing that makes the index agree with the files.
extension DiskStore {
    /// Why the directory cannot be used; nil while it can. Waits for the first look at it.
    var openingError: DiskStoreError? {
        if configuration.isReadOnly { return nil }
        return maintenance.perform {
            withIO { io in
                if !io.wasOpened && isOwnProcess { _ = prepareDirectory(&io, mayMake: true) }
                return io.openingError
            }
        }
    }

    // MARK: The directory

    /// Makes sure that the directory and its folder of records are there and are directories of ours; a look at two names
    /// when they are. False when they cannot be used, or are gone and `mayMake` is false.
    func prepareDirectory(_ io: inout IOState, mayMake: Bool) -> Bool {
        let (knownDirectory, knownRecords) = state.withLock { ($0.directoryIdentity, $0.recordsIdentity) }
        do throws(DiskStoreError) {
            guard let (directory, isNewDirectory) = try directoryStatus(mayMake: mayMake, &io),
                let (records, isNew) = try folderStatus(mayMake: mayMake)
            else {
                forgetDirectory(&io)
                return false
            }
            // A folder made just now is another one, even where the file system gave it the same number again.
            if directory != knownDirectory || records != knownRecords || isNew || isNewDirectory {
                let isSameDirectory = directory == knownDirectory && !isNewDirectory
                // Another process cleared the cache if it replaced the folder: what was staged before goes with it. One that
                // is just doing so may have left the making of the new folder to us.
                if knownDirectory != nil {
                    forgetDirectory(&io, keepingRole: isSameDirectory, droppingStaged: isSameDirectory && !isNew)
                }
                state.withLock { state in
                    state.directoryIdentity = directory
                    state.recordsIdentity = records
                    state.isBlocked = io.mustClear
                }
            } else if !io.mustClear {
                state.withLock { $0.isBlocked = false }
            }
            io.openingError = nil
            io.wasOpened = true
            return true
        } catch {
            if io.openingError != error { io.events.append(.unavailable(error)) }
            io.openingError = error
            io.wasOpened = true
            forgetDirectory(&io)
            if case .symbolicLink = error { state.withLock { $0.isBlocked = true } }
            return false
        }
    }

    /// The identity of the directory; a link to a directory is followed here, since the user gave the path.
    private func directoryStatus(
        mayMake: Bool, _ io: inout IOState
    ) throws(DiskStoreError) -> (identity: FileIdentity, isNew: Bool)? {
        let path = paths.directory
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw .cannotMakeDirectory(path: path, errno: EINVAL)
        }
        for attempt in 0..<2 {
            do throws(Errno) {
                let status = try files.status(at: path + "/.")
                guard status.kind == .directory else { throw Errno(ENOTDIR) }
                return (status.identity, isNew: attempt > 0)
            } catch {
                switch error.code {
                case ENOENT where attempt == 0:
                    guard mayMake else { return nil }
                    if io.wasOpened && io.openingError == nil { io.events.append(.remadeDirectory) }
                    try makeDirectories(path)
                case ENOTDIR: throw .notADirectory(path: path)
                case ENOENT: throw .cannotMakeDirectory(path: path, errno: error.code)
                default: throw .notReadable(path: path, errno: error.code)
                }
            }
        }
        return nil
    }

    private func makeDirectories(_ path: String) throws(DiskStoreError) {
        var partial = ""
        for component in path.split(separator: "/") {
            partial += "/" + component
            do throws(Errno) {
                try files.makeDirectory(partial)
            } catch {
                // What is there already need not be ours to make; whether it is a directory shows in the end.
                let isThere = (try? files.status(at: partial + "/.")) != nil
                if !isThere {
                    if error.code == EEXIST || error.code == ENOTDIR { throw .notADirectory(path: partial) }
                    throw .cannotMakeDirectory(path: partial, errno: error.code)
                }
            }
        }
    }

    private func folderStatus(
        mayMake: Bool
    ) throws(DiskStoreError) -> (identity: FileIdentity, isNew: Bool)? {
        let path = paths.records
        for attempt in 0..<2 {
            do throws(Errno) {
                let status = try files.status(at: path)
                switch status.kind {
                case .directory: return (status.identity, isNew: attempt > 0)
                case .symbolicLink: throw Errno(ELOOP)
                case .regular, .other: throw Errno(ENOTDIR)
                }
            } catch {
                switch error.code {
                case ENOENT where attempt == 0:
                    guard mayMake else { return nil }
                    do throws(Errno) {
                        try files.makeDirectory(path)
                    } catch {
                        if error.code != EEXIST { throw .notWritable(path: path, errno: error.code) }
                    }
                case ELOOP: throw .symbolicLink(path: path)
                case ENOTDIR: throw .notADirectory(path: path)
                default: throw .notReadable(path: path, errno: error.code)
                }
            }
        }
        return nil
    }

    /// The directory that was open is gone, or is another one now, or only its records are: nothing that is known of them
    /// holds any more. The role is that of the directory: it is kept where only the records were replaced.
    private func forgetDirectory(_ io: inout IOState, keepingRole: Bool = false, droppingStaged: Bool = false) {
        state.withLock { state in
            io.discarded.append(state.index)
            state.index = DiskIndex()
            state.touchedCount = 0
            state.isAuthoritative = false
            state.directoryIdentity = nil
            state.recordsIdentity = nil
            if droppingStaged { state.staged.removeAll() }
        }
        if droppingStaged { signalRoom() }
        if !keepingRole {
            if case .maintainer(let lock) = io.role { lock.release(files) }
            io.role = .undecided
            io.nextElection = 0
        }
        io.isReconciled = false
        io.pending = []
        io.freed = [:]
        io.storage = IndexStorage(files, paths)
    }

    // MARK: Who maintains

    /// Tries to become the maintainer, at most once a second unless `now` is asked for.
    func elect(_ io: inout IOState, now: Bool) {
        if io.isMaintainer || io.isRoleGivenUp { return }
        let time = MonotonicTime.seconds
        guard now || time >= io.nextElection, let identity = state.withLock({ $0.directoryIdentity }) else { return }
        io.nextElection = time + 1
        switch MaintainerLock.acquire(files, paths, identity: identity, for: self) {
        case .acquired(let lock):
            io.role = .maintainer(lock)
            // What this cache knew as a guest may be less than what the index file and the files say.
            io.isReconciled = false
            io.events.append(.becameMaintainer)
        case .taken, .failed: io.role = .guest
        }
    }

    // MARK: The index

    /// Loads the index and makes it agree with the files. On the maintenance queue; lookups go on meanwhile.
    func loadAndReconcile() {
        // Read without a lock, so that removals need not wait. What is removed meanwhile has a row then, but no file, and
        // the listing that follows drops it: one that went before is no use then.
        let removals = withIO { $0.removalCount }
        let (storage, loading, early) = loadIndex()
        let isCurrent = withIO { io in
            io.storage = storage
            state.withLock { state in
                io.discarded.append(state.index)
                state.index = DiskIndex()
                if case .loaded(let index) = loading { state.index = index }
                state.touchedCount = 0
                state.isAuthoritative = false
            }
            return io.removalCount == removals
        }
        reconcile(with: isCurrent ? early : nil)
        withIO { io in
            guard io.isMaintainer else { return }
            switch loading {
            case .loaded: break
            // A directory that holds nothing yet has lost nothing.
            case .missing: if state.withLock({ $0.index.count }) > 0 { io.events.append(.rebuiltIndex(.missing)) }
            case .rejected: io.events.append(.rebuiltIndex(.rejected))
            }
        }
    }

    /// The index as it is on disk; where it is large, the records are listed meanwhile by another thread.
    private func loadIndex() -> (IndexStorage, IndexStorage.Loading, Listing?) {
        var storage = IndexStorage(files, paths)
        // About a millisecond each: less is not worth another thread.
        let isLarge = (try? files.status(at: paths.index)).map { $0.size > 128 << 10 } ?? false
        guard isLarge else { return (storage, storage.load(), nil) }
        let listing = Mutex<Listing?>(nil)
        let hasListed = DispatchSemaphore(value: 0)
        // A thread of its own, since it gives way to those of an app that is launching.
        Thread.detachNewThread { [self] in
            Platform.giveWayToOtherThreads()
            let records = listRecords()
            listing.withLock { $0 = records }
            hasListed.signal()
        }
        let loading = storage.load()
        hasListed.wait()
        return (storage, loading, listing.withLock { $0 })
    }

    private struct Listing: Sendable {
        var names: [RecordName] = []
        /// A listing that failed proves nothing about what it does not show.
        var failure: Errno?
    }

    private func listRecords() -> Listing {
        var listing = Listing()
        do throws(Errno) {
            try files.list(paths.records) { name in
                if let name = RecordName(name) { listing.names.append(name) }
            }
        } catch {
            listing.failure = error
        }
        return listing
    }

    /// Lists the records: rows without a file go, files without a row come in. Guests do this whenever they must know.
    func reconcile() {
        reconcile(with: nil)
    }

    private func reconcile(with known: Listing?) {
        let listing = known ?? listRecords()
        let failure = listing.failure
        var unknown: [RecordName] = []
        var start = 0
        while start < listing.names.count {
            let batch = listing.names[start..<min(start + DiskIndex.batchSize, listing.names.count)]
            unknown += state.withLock { $0.index.setSeen(batch) }
            start = batch.endIndex
        }
        withIO { io in
            let unseen = state.withLock { $0.index.takeUnseen() }
            guard failure == nil else { return }
            for row in unseen {
                // One that came in anew since its name was listed has no mark either: the file itself tells.
                let name = RecordName(digest: row.digest, slot: row.slot)
                if recordStatus(name) != nil { continue }
                state.withLock { _ = $0.index.remove(row.digest, row.slot) }
                io.pending.append(JournalRow(kind: .remove, row: row))
                io.noteFreed(name)
            }
        }
        addUnknown(unknown)
        withIO { io in
            guard failure == nil else { return }
            io.isReconciled = true
            updateOverhead(&io)
        }
    }

    /// Up to here each file is read, which also finds what a crash left unfinished. Many unknown files mean that the index
    /// is lost; then name and size must do, and a header is read when it is needed.
    private static let readingLimit = 512

    private func addUnknown(_ names: [RecordName]) {
        if names.count <= Self.readingLimit {
            for digest in Set(names.map(\.digest)) {
                withIO { examine(digest, &$0) }
            }
            return
        }
        let removals = withIO { $0.removalCount }
        // By their names alone, which is faster; by their paths where the folder cannot be opened.
        let folder = try? files.openFile(paths.records, O_RDONLY | O_DIRECTORY)
        defer { if let folder { files.closeQuietly(folder) } }
        var found: [(row: IndexRow, modified: Int)] = []
        found.reserveCapacity(names.count)
        for name in names {
            guard let status = recordStatus(name, in: folder) else { continue }
            found.append((IndexRow(name, status), status.modified))
        }
        found.sort { $0.modified < $1.modified }
        state.withLock { $0.index.prepare(for: $0.index.count + found.count) }
        var start = 0
        while start < found.count {
            let end = min(start + DiskIndex.batchSize, found.count)
            withIO { io in
                var rows = found[start..<end].map(\.row)
                if io.removalCount != removals {
                    // A removal that came between took the file: look again.
                    rows.removeAll { recordStatus(RecordName(digest: $0.digest, slot: $0.slot)) == nil }
                }
                state.withLock { $0.index.insertMissing(rows) }
            }
            start = end
        }
        withIO { io in io.storage.invalidate() }
    }

    /// The status of a record's file; nil when there is none, or what has the name is not a file of ours.
    /// - Parameter folder: that of the records, where it is open.
    func recordStatus(_ name: RecordName, in folder: Int32? = nil) -> FileStatus? {
        let status =
            if let folder {
                DiskPaths.withName(name.digest, name.slot) { try? files.status(of: $0, in: folder) }
            } else {
                paths.withRecord(name.digest, name.slot) { try? files.status(at: $0) }
            }
        guard let status, status.kind == .regular, status.links == 1 else { return nil }
        return status
    }
}

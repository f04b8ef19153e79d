import Foundation

/// Opening: the directory, who maintains it, the index, and the listing that makes the index agree with the files.
extension DiskStore {
    // MARK: The directory

    /// Makes sure that the directory and its folder of records are there and can be used; two system calls when they are. False
    /// when they cannot be used, or are gone and `mayMake` is false.
    func prepareDirectory(_ io: inout Section, mayMake: Bool) -> Bool {
        do throws(DiskStoreError) {
            guard let look = try io.directory.look(mayMake: mayMake) else {
                forgetDirectory(&io)
                return false
            }
            if look.wasRemade { io.events.append(.remadeDirectory) }
            let isSameDirectory = look.directory == io.directory.identity && !look.isNewDirectory
            // A folder made just now is another one, even where the file system gave it the same number again.
            if !isSameDirectory || look.folder != catalog.folder || look.isNewFolder {
                // Another process cleared the cache if it replaced the folder.
                if io.directory.identity != nil { forgetDirectory(&io, keepingRole: isSameDirectory) }
                catalog.folder = look.folder
            }
            // The folder of a clearing by others is left for `RemovalNews` to find.
            if look.isNewFolder { removals.noteFolder(look.folder) }
            io.directory.opened(look.directory)
            catalog.isBlocked = io.directory.mustClear
            return true
        } catch {
            if io.directory.failed(error) { io.events.append(.unavailable(error)) }
            forgetDirectory(&io)
            if error.isForeign { catalog.isBlocked = true }
            return false
        }
    }

    /// The directory that was open is gone, or is another one now, or only its records are: nothing that is known of them
    /// holds any more. The role is that of the directory: it is kept where only the records were replaced.
    private func forgetDirectory(_ io: inout Section, keepingRole: Bool = false) {
        io.discarded.append(catalog.exchange(DiskIndex()))
        catalog.isAuthoritative = false
        catalog.folder = nil
        io.directory.forget()
        if !keepingRole { io.role.rest(files) }
        io.isReconciled = false
        io.log.begin(with: IndexStorage(files, paths))
    }

    /// Looks whether a directory that is only read can be read, and tells once when it cannot: then every lookup is a miss.
    func checkReadOnly() {
        guard isOwnProcess else { return }
        withIO { io in
            let error = readingError(io.directory)
            if let error, io.directory.failed(error) { io.events.append(.unavailable(error)) }
            catalog.isBlocked = error?.isForeign == true
            if error == nil { io.directory.readable() }
        }
    }

    private func readingError(_ directory: CacheDirectory) -> DiskStoreError? {
        var first: RecordName?
        do throws(DiskStoreError) {
            guard try directory.look(mayMake: false) != nil else {
                let isThere = (try? files.status(at: paths.directory + "/.")) != nil
                return .notACache(path: paths.directory, errno: isThere ? 0 : ENOENT)
            }
        } catch {
            return error
        }
        do throws(Errno) {
            try files.list(paths.records) { name in if first == nil { first = RecordName(name) } }
        } catch {
            return .notReadable(path: paths.records, errno: error.code)
        }
        // The modes of the first record are those of all: whoever filled the directory wrote them.
        guard let first, case .unreadable(let error) = reader.read(first, .head, limit: .max >> 1) else { return nil }
        return .notReadable(path: paths.records + "/" + first.text, errno: error.code)
    }

    // MARK: Opening

    /// Elects, loads and lists, as far as that was not done yet. False where the index cannot be read now.
    func open(isFlush: Bool) -> Bool {
        let isLoaded = withIO { io in
            if mayLock, let directory = io.directory.identity,
                io.role.elect(self, directory: directory, now: isFlush)
            {
                let wasLeftAlone = io.isReconciled && !io.leftIndex.isEmpty && io.leftIndex == indexFiles
                if !wasLeftAlone {
                    // What this cache knew as a secondary one may be less than what the index file and the files say.
                    io.isReconciled = false
                    io.events.append(.becameMaintainer)
                }
            }
            return io.isReconciled
        }
        if !isLoaded {
            guard loadAndReconcile() else { return false }
            withIO { io in
                guard io.role.isMaintainer else { return }
                // What a maintainer before us left; a secondary one sweeps what it cleared while it lives, but both may.
                io.directory.noteTrash()
                try? files.unlink(paths.newIndex)
                removals.sweep()
                sweepIncoming()
                if !io.log.hasSnapshot { save(&io) }
            }
        }
        withIO { io in
            guard io.isReconciled else { return }
            catalog.takeEarlyUses()
            guard io.role.isMaintainer else { return }
            catalog.isAuthoritative = SecondaryFile(files: files, paths: paths).isEmpty
        }
        return true
    }

    /// Loads the index and makes it agree with the files. On the maintenance queue; lookups go on meanwhile. False where the index
    /// is there and cannot be read now: it is left as it is, and the next pass tries again.
    private func loadAndReconcile() -> Bool {
        // Read without a lock, so that removals need not wait. What is removed meanwhile has a row then, but no file, and
        // the listing that follows drops it: one that went before is no use then.
        let removals = withIO { $0.removalCount }
        let (storage, loading, early) = loadIndex()
        let isUnreadable = withIO { io in
            if case .unreadable = loading { io.isIndexUnreadable = true } else { io.isIndexUnreadable = false }
            return io.isIndexUnreadable
        }
        if isUnreadable { return false }
        let isCurrent = withIO { io in
            io.log.begin(with: storage)
            catalog.isAuthoritative = false
            let old = catalog.exchange(DiskIndex())
            if case .loaded(let index) = loading { _ = catalog.exchange(index) }
            // What was stored or used here before: the index on disk may not know it yet.
            let uncertain = catalog.change { $0.adopt(usesOf: old) }
            for key in uncertain { examine(key, &io) }
            io.discarded.append(old)
            return io.removalCount == removals
        }
        let found = reconcile(with: isCurrent ? early : nil)
        withIO { io in
            guard io.role.isMaintainer else { return }
            switch loading {
            case .loaded, .unreadable: break
            // A directory that holds nothing yet has lost nothing.
            case .missing: if found > 0 { io.events.append(.rebuiltIndex(.missing)) }
            case .rejected: io.events.append(.rebuiltIndex(.rejected))
            }
        }
        return true
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
            ThreadPriority.giveWayToOthers()
            let records = listRecords()
            listing.withLock { $0 = records }
            hasListed.signal()
        }
        let loading = storage.load()
        hasListed.wait()
        return (storage, loading, listing.withLock { $0 })
    }

    // MARK: Listing

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

    /// Lists the records: rows without a file go, files without a row come in. A secondary one does this whenever it must
    /// know.
    func reconcile() {
        reconcile(with: nil)
    }

    /// How many records were found that no row told of.
    @discardableResult
    private func reconcile(with known: Listing?) -> Int {
        let listing = known ?? listRecords()
        var unknown: [RecordName] = []
        var start = 0
        while start < listing.names.count {
            let batch = listing.names[start..<min(start + DiskIndex.batchSize, listing.names.count)]
            unknown += catalog.change { $0.setSeen(batch) }
            start = batch.endIndex
        }
        // A record that was being written when it was listed has its row by now.
        unknown = withIO { _ in unknown.filter { name in catalog.read { $0.row(name) } == nil } }
        withIO { io in
            let unseen = catalog.change { $0.takeUnseen() }
            guard listing.failure == nil else { return }
            for row in unseen {
                // One that came in anew since its name was listed has no mark either: the file itself tells.
                if recordStatus(row.name) != nil { continue }
                forget(row, &io)
                io.log.noteFreed(row.name)
            }
        }
        addUnknown(unknown)
        withIO { io in
            guard listing.failure == nil else { return }
            io.isReconciled = true
            io.directory.updateOverhead()
        }
        return unknown.count
    }

    /// Up to here each file is read, which also finds what a crash left unfinished. Many unknown files mean that the index
    /// is lost; then name and size must do, and a header is read when it is needed.
    private static let readingLimit = 512

    /// Takes in files that have no row, where the time of their writing puts them.
    private func addUnknown(_ names: [RecordName]) {
        if names.isEmpty { return }
        let removals = withIO { $0.removalCount }
        // By their names alone, which is faster; by their paths where the folder cannot be opened.
        let folder = try? files.openFile(paths.records, O_RDONLY | O_DIRECTORY)
        defer { if let folder { files.closeQuietly(folder) } }
        var found: [(name: RecordName, status: FileStatus)] = []
        found.reserveCapacity(names.count)
        for name in names {
            if let status = recordStatus(name, in: folder) { found.append((name, status)) }
        }
        found.sort { $0.status.modified < $1.status.modified }
        if names.count <= Self.readingLimit {
            for file in found { withIO { examine(file.name.key, &$0) } }
            return
        }
        catalog.change { $0.prepare(for: $0.count + found.count) }
        // The latest first: each batch is older than the one before.
        var end = found.count
        while end > 0 {
            let batch = found[max(0, end - DiskIndex.batchSize)..<end]
            withIO { io in
                var rows = batch.map { IndexRow($0.name, $0.status) }
                if io.removalCount != removals {
                    // A removal that came between took the file: look again.
                    rows.removeAll { recordStatus($0.name) == nil }
                }
                catalog.change { $0.putUnknown(rows) }
            }
            end = batch.startIndex
        }
        withIO { io in io.log.invalidate() }
    }

    // MARK: Other processes

    /// Brings what secondary caches did into the index; only the maintainer does.
    func takeInOthers() {
        guard isMaintainer else { return }
        let taking = takingRows { rows, isWhole in
            if !isWhole || rows.contains(where: { $0.kind == .clear }) { reconcile() }
            // The rows only say where to look: what is there counts.
            var changed: [KeyName] = []
            var seen: Set<KeyName> = []
            for row in rows where row.kind != .clear {
                let isKnown =
                    row.kind == .put && catalog.read { $0.row(row.row.name) }?.isSameRecord(as: row.row) == true
                if !isKnown, seen.insert(row.row.key).inserted { changed.append(row.row.key) }
            }
            // The clock is that of all processes. Times of an earlier boot may be later than now: they keep their order.
            let latest = rows.reduce(0) { max($0, $1.row.lastUse) }
            let shift = latest.subtractingReportingOverflow(MonotonicTime.nanoseconds)
            let uses = rows.filter { $0.kind == .put }.map { row in
                let time = row.row.lastUse
                return IndexUse(
                    key: row.row.key, slot: row.row.slot,
                    time: shift.overflow ? time : max(1, time - min(time, shift.partialValue)),
                    seconds: row.row.accessedAt)
            }
            var times: [RecordName: UInt64] = [:]
            for use in uses { times[RecordName(key: use.key, slot: use.slot ?? 0)] = use.time }
            for key in changed { withIO { examine(key, &$0, usedAt: times) } }
            catalog.change { $0.note(uses) }
        }
        switch taking {
        case .busy: maintenance.schedule(after: 0.1)
        case .nothing, .taken: withIO { io in catalog.isAuthoritative = io.isReconciled }
        }
    }

    private func takingRows(_ apply: ([JournalRow], Bool) -> Void) -> SecondaryFile.Taking {
        let file = SecondaryFile(files: files, paths: paths)
        guard let passLock else { return file.take(apply) }
        return passLock.whileGranted { file.take(apply) } ?? .busy
    }

    /// Makes the index agree with the files as they are now, where it may not.
    func refreshIfNeeded() {
        let isCurrent = catalog.isAuthoritative && SecondaryFile(files: files, paths: paths).isEmpty
        if !isCurrent { maintenance.perform { refresh() } }
    }

    private func refresh() {
        guard isOwnProcess else { return }
        if configuration.isReadOnly { return reconcile() }
        guard withIO({ prepareDirectory(&$0, mayMake: false) }) else { return }
        let wasReconciled = withIO { $0.isReconciled }
        lockingFiles {
            guard open(isFlush: false) else { return }
            takeInOthers()
            // A secondary cache is told nothing: it has to look.
            if wasReconciled, !isMaintainer { reconcile() }
        }
    }
}

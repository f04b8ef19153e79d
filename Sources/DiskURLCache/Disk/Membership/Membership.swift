import Foundation

/// Finds out whether other caches use the directory, tells them what this cache changes, and applies what they report.
/// What was found is in `DiskState`: an owner is alone, or there may be others.
///
/// The file `changes` exists only while there are other caches. A guest makes the file, and holds a shared lock on it,
/// before its first lookup. The owner deletes it in a pass if no cache holds it. So the owner is alone if the file does
/// not exist. It checks that by one system call: before each store and removal, and once a second for lookups. As long
/// as it is alone it writes no rows, locks no records, and trusts its index.
///
/// When the file appears, the owner reads it from its first row on, and tells that it has noticed it, or that every
/// record may be removed, if it removed one that nobody was told of. From then on the order of the steps is enough, and
/// no cache waits for another: a remover appends a row, removes, and appends the row again. A writer writes its record,
/// and then reads the rows. So either the writer reads the remover's first row, and removes its own record; or the
/// record was whole before that row, and the remover finds it. A reader that read a record before the removal finds the
/// second row after it. `Documentation/Model/Appear.md` has each order of a cache that appears.
final class Membership: Sendable {
    /// What this cache has become after it came to the directory.
    enum Role {
        /// It has owned the directory before it came.
        case owner
        /// - Parameter isFirst: whether no cache owned the directory before, so that no owner can have removed
        ///   something there without telling the others.
        case newOwner(isFirst: Bool)
        case guest
        /// There is no directory, or it cannot be used.
        case none
    }

    private struct State {
        /// The open file, if there may be other caches. A guest holds its lock. Nil while this cache is alone, and also
        /// if it has not come yet, has left, or could not come; then nothing is known about other caches.
        var file: ChangeFile?
        /// The removals that are in progress.
        var removals: [DirectoryChange] = []
        /// What was removed since the last look that found no other cache, or was being removed at that time. A cache
        /// that has come since may have read it before, and was not told. Also what was removed when the others could
        /// not be told.
        private(set) var untold: [DirectoryChange] = []
        /// The directory that this cache came to last; untold removals were made there.
        var directory: FileIdentity?
        var hasCome = false
        /// Why this cache could not come; 0 if the system gave no reason.
        var failure: Int32 = 0
        /// Events to send when the lock is released.
        var events: [DiskEvent] = []

        /// One variant counts as all of its key; more removals than a few as one of everything.
        mutating func noteUntold(_ change: DirectoryChange) {
            let change = if case .stored(let key) = change { DirectoryChange.removed(key) } else { change }
            for known in untold where known == change || known == .removedAll { return }
            if untold.count < Membership.untoldLimit { untold.append(change) } else { untold = [.removedAll] }
        }

        /// Nobody is left who has to be told of what is over.
        mutating func forgetUntold() {
            untold.removeAll(keepingCapacity: true)
            for change in removals { noteUntold(change) }
        }

        mutating func takeUntold() -> [DirectoryChange] {
            defer { untold = [] }
            return untold
        }
    }

    /// The largest number of removals that are told one by one.
    private static let untoldLimit = 64

    private let place: ChangeFile.Place
    /// Held while rows are read and applied, so that a second caller waits until they are applied. `DiskStore.io` may
    /// be taken while it is held, but not the other way round.
    private let state = Mutex(State())

    /// - Parameter isHeld: see `ChangeFile.Place.isHeld`.
    init(_ files: any FileSystem, _ paths: DiskPaths, capacity: Int, isHeld: Bool) {
        place = ChangeFile.Place(
            files: files, paths: paths, limit: ChangeFile.limit(capacity: capacity), isHeld: isHeld)
    }

    /// Does something under the lock, and sends the events after it is released.
    private func withState<Value>(of store: DiskStore, _ body: (inout State) -> Value) -> Value {
        let (value, events) = state.withLock { state in
            let value = body(&state)
            defer { state.events = [] }
            return (value, state.events)
        }
        store.tell(events)
        return value
    }

    // MARK: Looking

    /// Applies the changes that other caches reported. One system call if there is nothing new.
    /// - Parameter mayMake: whether the directory is made if it does not exist.
    func look(for store: DiskStore, mayMake: Bool) { withState(of: store) { look(&$0, store, mayMake) } }

    private func look(_ state: inout State, _ store: DiskStore, _ mayMake: Bool) {
        if let file = state.file {
            do throws(Errno) {
                guard let size = try file.hasNews() else { return come(&state, store, mayMake) }
                guard size != file.offset || !state.untold.isEmpty else { return }
                let changes = size == file.offset ? [] : file.read(to: size) ?? [.removedAll]
                if !changes.isEmpty { store.heed(changes) }
                tellUntoldRemovals(&state, store)
            } catch {
                // The directory cannot be searched now: others may remove what this cache has in memory.
                store.heed([.removedAll])
            }
        } else if store.catalog.isAlone {
            do throws(Errno) {
                _ = try place.files.status(at: place.paths.changesBytes)
                // The file may be in another directory that has taken the place: nothing was removed there.
                let directory = try? place.files.status(at: place.paths.directory + "/.").identity
                guard directory == state.directory else { return come(&state, store, mayMake) }
                appear(&state, store, isAfterAnother: false)
            } catch {
                guard error.isMissing else { return store.heed([.removedAll]) }
                // A cache that comes from now on cannot have read anything that was removed before.
                state.forgetUntold()
            }
        } else {
            come(&state, store, mayMake)
        }
    }

    // MARK: Coming and going

    /// An owner whose file `lock` is gone leaves. The next look asks for the lock again, as that of any cache does.
    /// Another process may own the directory by now, and each of the two took itself to be alone.
    /// - Returns: whether it has left.
    func leaveIfLockIsGone(_ store: DiskStore) -> Bool {
        state.withLock { state in
            guard case .owner(let lock, _, _) = store.catalog.state, lock.isGone else { return false }
            part(&state, store)
            state.noteUntold(.removedAll)
            store.giveUpLock()
            store.maintenance.schedule(after: 1)
            return true
        }
    }

    /// There may be other caches, which are heard by the file.
    private func join(_ state: inout State, _ file: ChangeFile, _ store: DiskStore) {
        state.file = file
        store.move(.expectOthers)
    }

    /// This cache owns the directory, and there is no other one.
    private func beAlone(_ state: inout State, _ store: DiskStore) {
        state.file = nil
        store.move(.findNobody)
    }

    /// From now on nothing is known about other caches.
    private func part(_ state: inout State, _ store: DiskStore) {
        state.file = nil
        store.catalog.dropNames()
        store.move(.expectOthers)
    }

    /// Comes to the directory, as its owner or as a guest. Earlier changes were not reported to this cache, and memory
    /// may have responses from before: other threads look up while this one comes.
    private func come(_ state: inout State, _ store: DiskStore, _ mayMake: Bool) {
        part(&state, store)
        let role = store.comeToDirectory(mayMake: mayMake || !state.hasCome, &state.events)
        state.hasCome = true
        let directory = store.withIO(&state.events) { $0.directory.identity?.directory }
        // Another directory has taken the place of the one in which something was removed.
        let isOther = directory != nil && state.directory != nil && directory != state.directory
        if isOther { state.forgetUntold() }
        state.directory = directory ?? state.directory
        switch role {
        case .none:
            state.failure = 0
            return
        // It forgets before it may be alone: then its other threads do not wait for this lock.
        case .owner:
            store.heed([.removedAll])
            comeAsOwner(&state, store, isAfterAnother: false)
        case .newOwner(let isFirst):
            if !isFirst { store.heed([.removedAll]) }
            comeAsOwner(&state, store, isAfterAnother: !isFirst)
        case .guest:
            do throws(Errno) {
                let file = try ChangeFile.open(place, holds: true)
                join(&state, file, store)
                tellUntoldRemovals(&state, store)
            } catch {
                state.failure = error.code
                // The owner, if there is one, does not know of this cache, and tells it nothing.
                if (try? place.files.status(at: place.paths.lock)) != nil { store.heed([.removedAll]) }
                return
            }
        }
        if store.catalog.isAlone { return }
        // What this cache stored before it noticed was announced to nobody: the owner lists the folder again.
        if isOther { tell(.removedAll, &state, store) }
        store.heed([.removedAll])
    }

    /// - Parameter isAfterAnother: see `appear`.
    private func comeAsOwner(_ state: inout State, _ store: DiskStore, isAfterAnother: Bool) {
        let isThere = (try? place.files.status(at: place.paths.changesBytes)) != nil
        if isThere || !place.isHeld || !store.catalog.state.isCertainOwner {
            appear(&state, store, isAfterAnother: isAfterAnother)
        } else {
            beAlone(&state, store)
        }
    }

    /// The owner finds that there are other caches.
    /// - Parameter isAfterAnother: whether this cache has just become the owner, after another cache. That one may have
    ///   died before it noticed the file, so that its removals were never reported.
    private func appear(_ state: inout State, _ store: DiskStore, isAfterAnother: Bool) {
        guard let file = try? ChangeFile.open(place, holds: false) else {
            // Something that is not a file of a cache has the name, so other caches may be there and cannot be heard.
            part(&state, store)
            return store.heed([.removedAll])
        }
        // What this cache itself has to tell comes before the row that says that it is noticed.
        var rows: [DirectoryChange] = isAfterAnother && place.isHeld && !file.isNoticed ? [.removedAll] : state.untold
        if rows.isEmpty { rows = [.noticed] }
        // They are written first: a guest that writes a record from now on reads them.
        let areWritten = rows.allSatisfy { (try? file.append($0)) != nil }
        let changes = file.readAll() ?? [.removedAll]
        join(&state, file, store)
        store.heed(changes)
        tellUntoldRemovals(&state, store)
        if rows != [.noticed], areWritten, state.untold.isEmpty { tell(.noticed, &state, store) }
    }

    /// Tells the others what this cache removed while it could tell nobody, and removes what they have announced of
    /// that: they may have stored again what they had read before. As in every removal, there is a row before and after
    /// it: a cache whose record is not whole yet reads the first one. A removal that is under way tells of itself when
    /// it ends. If it cannot be told now, the next look tells it.
    private func tellUntoldRemovals(_ state: inout State, _ store: DiskStore) {
        // Taken first: a cache that has to come again for a row calls this function again.
        let untold = state.takeUntold()
        guard !untold.isEmpty else { return }
        // A row may take the place of the file, if that is full.
        var announced = state.file?.announcedKeys ?? []
        if untold.allSatisfy({ tell($0, &state, store) }), let file = state.file {
            announced.formUnion(file.announcedKeys)
            let concerned = announced.filter { key in untold.contains { $0.concerns(key) } }
            store.withIO(&state.events) { store.records.removeAnnounced(concerned, &$0.events) }
            if untold.allSatisfy({ tell($0, &state, store) }), state.file != nil { return }
        }
        for change in untold { state.noteUntold(change) }
    }

    /// For a guest that became the owner: it has to know which records guests were writing before.
    func becameOwner(_ store: DiskStore) {
        withState(of: store) { state in
            guard let file = state.file else {
                // This cache could not open the file. The owner before it may have died with something to tell.
                if !store.catalog.state.isFirstOwner { state.noteUntold(.removedAll) }
                return
            }
            let wasNoticed = !place.isHeld || file.isNoticed
            // What this cache has heeded before says only what guests were writing, not again what to forget.
            let rows = file.readAgain()
            for change in rows?.known ?? [] { store.catalog.note(change) }
            store.heed(rows?.news ?? [.removedAll])
            if wasNoticed { return }
            // The previous owner may have died before it noticed the file, so that its removals were never reported.
            // Without the first row the second one is not true: a later owner would tell nothing.
            if tell(.removedAll, &state, store) { tell(.noticed, &state, store) }
            store.heed([.removedAll])
        }
    }

    /// For the owner, in a pass: deletes the file if there is no other cache.
    func endIfAlone(_ store: DiskStore) {
        state.withLock { state in
            guard let file = state.file, store.catalog.state.isCertainOwner else { return }
            guard file.deleteIfUnheld({ store.heed($0 ?? [.removedAll]) }) else { return }
            beAlone(&state, store)
            state.forgetUntold()
            store.catalog.endSharing()
        }
    }

    /// The cache closes: it reports its removals, and releases the file.
    func leave(_ store: DiskStore) {
        withState(of: store) { state in
            guard state.file != nil || store.catalog.isAlone else { return }
            look(&state, store, false)
            part(&state, store)
        }
    }

    // MARK: Telling

    /// Reports a change to the other caches, if there are any.
    func tell(_ change: DirectoryChange, for store: DiskStore) {
        withState(of: store) { _ = tell(change, &$0, store) }
    }

    /// Called before a guest changes a record of a key. Until the end of the change the owner looks at the files of
    /// that key.
    /// - Returns: the system's error if the owner cannot be told; then nothing may be written.
    func beginStore(of key: KeyName, for store: DiskStore) -> Errno? {
        if store.isOwner { return nil }
        return withState(of: store) { state in
            if state.file == nil { look(&state, store, true) }
            guard tell(.storing(key), &state, store) else { return Errno(ENOSPC) }
            return state.file != nil || store.isOwner ? nil : Errno(state.failure)
        }
    }

    /// Called after a record was changed. Other caches drop the key from their memory, and know that it has records.
    /// This cache reads what was removed meanwhile.
    func endStore(of key: KeyName, for store: DiskStore) {
        withState(of: store) { state in
            if state.file == nil { look(&state, store, true) }
            tell(.stored(key), &state, store)
        }
    }

    /// The first row of a removal. A writer that does not read it has a record that is found now. So the rows of
    /// guests, which say where their records are, are read after it.
    func beginRemoval(_ change: DirectoryChange, for store: DiskStore) {
        withState(of: store) { state in
            state.removals.append(change)
            if state.file == nil || !change.isRemoval { look(&state, store, true) }
            let isTold = !change.isRemoval || tell(change, &state, store)
            if !isTold || state.file == nil { state.noteUntold(change) }
        }
    }

    /// Writes the second row of a removal. A cache that has read a record before it was removed drops it when it reads
    /// this row.
    /// - Returns: whether this cache has to look again within a second, since it could tell no other cache.
    func endRemoval(_ change: DirectoryChange, for store: DiskStore) -> Bool {
        withState(of: store) { state in
            if let place = state.removals.firstIndex(of: change) { state.removals.remove(at: place) }
            if tell(change, &state, store), state.file != nil { return false }
            state.noteUntold(change)
            return true
        }
    }

    /// Appends a row, and applies the rows that others appended. If a row cannot be appended, the file is replaced, so
    /// that the others assume that every record may have been removed.
    /// - Returns: false if there are others and they could not be told.
    @discardableResult
    private func tell(_ change: DirectoryChange, _ state: inout State, _ store: DiskStore) -> Bool {
        // Another cache may replace the file meanwhile, but not every time.
        for _ in 0..<8 {
            guard let file = state.file else { return true }
            do throws(Errno) {
                if let size = try file.append(change) {
                    let changes = size == file.offset ? [] : file.read(to: size)
                    if changes != [] { store.heed(changes ?? [.removedAll]) }
                    if file.isWorn(size) { replace(file, &state, store) }
                    return true
                }
                come(&state, store, true)
            } catch {
                if replace(file, &state, store) { return true }
                // No row can be written, but what the others removed is read: perhaps what this cache has stored. The
                // file may be gone from its path, with rows that were not read.
                let size = try? file.hasNews()
                if size != file.offset { store.heed(size.flatMap { file.read(to: $0) } ?? [.removedAll]) }
                return false
            }
        }
        return false
    }

    /// False if there is still the old file.
    @discardableResult
    private func replace(_ file: ChangeFile, _ state: inout State, _ store: DiskStore) -> Bool {
        guard let (new, rest) = try? file.replaced() else { return false }
        state.file = new
        if rest != [] { store.heed(rest ?? [.removedAll]) }
        return true
    }
}

#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// A cache that is alone pays for nobody else; one that comes, at any moment, is told what it must know.
    @Suite struct MembershipTests {
        private let scratch: ScratchDirectory
        private var directory: String { scratch.url.path + "/c" }
        private var changes: String { directory + "/changes" }

        init() throws { scratch = try ScratchDirectory() }

        private static let key = RequestKey(
            text: "https://example.com/a", uri: "https://example.com/a", isForHead: false)
        private static let other = RequestKey(
            text: "https://example.org/b", uri: "https://example.org/b", isForHead: false)

        private static let third = RequestKey(
            text: "https://example.org/c", uri: "https://example.org/c", isForHead: false)

        /// - Parameter isResting: nothing happens on its queue, from the first moment on.
        private func open(_ files: any FileSystem = SystemFiles(), isResting: Bool = false) -> TieredStore {
            let maintenance = MaintenanceQueue()
            if isResting { maintenance.pause() }
            let disk = DiskStore(
                configuration: DiskStore.Configuration(directory: directory, capacity: 64 << 20), fileSystem: files,
                maintenance: maintenance)
            return TieredStore.over(disk, maintenance)
        }

        @discardableResult
        private func put(
            _ body: String, _ key: RequestKey = key, in store: TieredStore, memoryOnly: Bool = false,
            ticket: StoreTicket? = nil
        ) -> DiskURLCache.Reason? {
            var metadata = StoredEntry.test(Data(), tags: ["account"], url: key.text).metadata
            metadata.placement = memoryOnly ? .memoryOnly : .memoryAndDisk
            return store.store(metadata, .memory(Data(body.utf8)), for: key, ticket: ticket)
        }

        private func found(_ key: RequestKey = key, in store: TieredStore) -> String? {
            store.lookup(key).variants().first?.load().map { String(decoding: $0.body, as: UTF8.self) }
        }

        /// What a lookup finds that comes a second later.
        private func body(_ key: RequestKey = key, in store: TieredStore) -> String? {
            store.diskStore?.checkNow()
            return found(key, in: store)
        }

        // MARK: Alone

        /// None of the calls looks for others but the first and the last.
        @Test func aCacheThatIsAloneMakesTheCallsOfTheFilesOnly() throws {
            let files = FaultyFileSystem()
            let store = open(files)
            store.flush()
            let disk = try #require(store.diskStore)
            put("a", Self.other, in: store)
            store.maintenance.pause()
            // Once a second a folder is looked at, too.
            disk.nextFolderCheck.restart()
            func calls(_ body: () -> Void) -> [FaultyFileSystem.Operation] {
                _ = files.takeCalls()
                body()
                return files.takeCalls().map(\.operation)
            }
            let ticket = store.ticket(at: Date())
            #expect(
                calls { put("c", Self.third, in: store, ticket: ticket) }
                    == [.open, .write, .status, .close, .statusAt])
            #expect(calls { put("b", in: store) } == [.statusAt, .open, .write, .status, .close, .statusAt])
            #expect(calls { _ = found(in: store) } == [])
            store.removeMemory()
            var hit: String?
            let lookup = calls { hit = found(in: store) }
            #expect(lookup == [.open, .status, .read, .close] && hit == "b")
            let number = try #require(store.lookup(Self.key).variants().first).metadata.sequence
            var updated: EntryMetadata?
            let update = calls { updated = store.update(number, of: Self.key) { $0.tags = ["t"] } }
            #expect(updated != nil && update == [.open, .status, .read, .write, .status, .close])
            #expect(calls { store.remove(Self.key) } == [.statusAt, .unlink])
            #expect(calls { store.remove(Self.key) } == [.statusAt])
            #expect(calls { store.remove(uri: Self.other.uri) } == [.statusAt, .unlink])
            #expect(calls { put("m", in: store, memoryOnly: true) } == [.statusAt])
            #expect(!FileManager.default.fileExists(atPath: changes))
            store.maintenance.resume()
        }

        @Test func theFileOfChangesIsThereWhileThereAreOthers() throws {
            let owner = open()
            owner.flush()
            put("a", in: owner)
            #expect(!FileManager.default.fileExists(atPath: changes))
            do {
                let guest = open()
                #expect(found(in: guest) == "a")
                #expect(FileManager.default.fileExists(atPath: changes))
                owner.flush()
                #expect(FileManager.default.fileExists(atPath: changes))
                owner.remove(Self.key)
                #expect(body(in: guest) == nil)
                guest.close()
            }
            owner.flush()
            #expect(!FileManager.default.fileExists(atPath: changes))
            put("b", in: owner)
            #expect(body(in: owner) == "b" && body(in: open()) == "b")
        }

        /// What is in memory only leaves no trace in the file that the caches share, not even a hash of its URL.
        @Test func aGuestTellsNothingOfWhatIsInMemoryOnly() throws {
            let owner = open()
            owner.flush()
            let guest = open()
            put("a", in: guest)
            let before = FileManager.default.contents(atPath: changes)
            put("b", Self.other, in: guest, memoryOnly: true)
            #expect(found(Self.other, in: guest) == "b")
            #expect(before != nil && FileManager.default.contents(atPath: changes) == before)
            // One that replaces a record is told.
            put("c", in: guest, memoryOnly: true)
            #expect(body(in: owner) == nil && found(in: guest) == "c")
        }

        /// An unsafe request costs what it removes, in a guest as in the owner.
        @Test func aGuestListsTheFolderOnceForUnsafeRequests() throws {
            let owner = open()
            owner.flush()
            for number in 0..<300 {
                let key = RequestKey(
                    text: "https://example.com/\(number)", uri: "https://example.com/\(number)", isForHead: false)
                put("\(number)", key, in: owner)
            }
            let files = FaultyFileSystem()
            let guest = open(files)
            guest.flush()
            guest.maintenance.pause()
            guest.remove(uri: "https://example.com/0")
            _ = files.takeCalls()
            let calls = (1..<20).map { number in
                guest.remove(uri: "https://example.com/\(number)")
                return files.takeCalls().count
            }
            #expect(calls.allSatisfy { $0 <= 20 }, "\(calls)")
            // Also what was stored since.
            let late = [owner, open()].enumerated().map { index, store in
                let key = RequestKey(
                    text: "https://example.com/late\n\(index)", uri: "https://example.com/late", isForHead: false)
                put("late", key, in: store)
                return (store, key)
            }
            guest.remove(uri: "https://example.com/late")
            for (store, key) in late {
                #expect(body(key, in: guest) == nil && body(key, in: store) == nil && body(key, in: owner) == nil)
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: directory + "/records")
            #expect(left.count == 280)
            guest.maintenance.resume()
        }

        // MARK: A cache that comes

        private enum Act: CaseIterable {
            case removeKey, removeResource, removeTag, removeAll, removeDisk
        }

        /// It comes between two file operations of a removal, and reads what is being removed.
        @Test(arguments: ["key", "resource", "tag", "all", "variant"])
        func whatACacheReadWhileItWasRemovedIsForgotten(what: String) throws {
            for moment in 1...12 {
                let files = FaultyFileSystem()
                let owner = open(files)
                owner.flush()
                put("private", in: owner)
                owner.flush()
                owner.maintenance.pause()
                let comer = open(isResting: true)
                let count = Mutex(0)
                files.rule = { _ in
                    let isNow = count.withLock { count in
                        count += 1
                        return count == moment
                    }
                    if isNow { _ = comer.lookup(Self.key).variants().first?.load() }
                    return nil
                }
                switch what {
                case "key": owner.remove(Self.key)
                case "resource": owner.remove(uri: Self.key.uri)
                case "tag": owner.remove(matching: EntryCriteria(tag: "account"))
                case "all": owner.removeAll()
                default: put("public", in: owner, memoryOnly: true)
                }
                files.rule = { _ in nil }
                owner.maintenance.resume()
                comer.maintenance.resume()
                // The owner looks within a second, also when nothing else happens.
                owner.diskStore?.checkNow()
                #expect(body(in: comer) == nil, "\(what), call \(moment)")
                if what != "variant" { #expect(body(in: owner) == nil, "\(what), call \(moment)") }
                comer.removeMemory()
                #expect(body(in: comer) == nil, "\(what), call \(moment), on disk")
                owner.removeAll()
                comer.close()
                owner.close()
            }
        }

        /// It comes between two file operations of a store, and removes what is being stored.
        @Test(arguments: ["key", "resource", "tag", "all"], [false, true])
        func whatACacheRemovedWhileItWasStoredIsGone(what: String, isUpdate: Bool) throws {
            for moment in 1...12 {
                let files = FaultyFileSystem()
                let owner = open(files)
                owner.flush()
                if isUpdate { put("private", in: owner) }
                owner.flush()
                owner.maintenance.pause()
                let ticket = owner.ticket(at: Date())
                let comer = open(isResting: true)
                let count = Mutex(0)
                let hasRemoved = Mutex(false)
                files.rule = { _ in
                    let isNow = count.withLock { count in
                        count += 1
                        return count == moment
                    }
                    guard isNow else { return nil }
                    hasRemoved.withLock { $0 = true }
                    switch what {
                    case "key": comer.remove(Self.key)
                    case "resource": comer.remove(uri: Self.key.uri)
                    case "tag": comer.remove(matching: EntryCriteria(tag: "account"))
                    default: comer.removeAll()
                    }
                    return nil
                }
                if isUpdate {
                    let number = owner.lookup(Self.key).variants().first?.metadata.sequence ?? 0
                    owner.update(number, of: Self.key) { $0.isPinned = true }
                } else {
                    put("private", in: owner, ticket: ticket)
                }
                files.rule = { _ in nil }
                owner.maintenance.resume()
                comer.maintenance.resume()
                if hasRemoved.withLock({ $0 }) {
                    #expect(found(in: comer) == nil, "\(what), call \(moment): never in the process that removed it")
                    #expect(body(in: owner) == nil, "\(what), call \(moment)")
                    owner.removeMemory()
                    comer.removeMemory()
                    #expect(body(in: owner) == nil && body(in: comer) == nil, "\(what), call \(moment), on disk")
                }
                owner.removeAll()
                comer.close()
                owner.close()
            }
        }

        /// It has read what was removed just before it was told, and writes it again: a 304 does that.
        @Test func whatACacheStoredAgainBeforeItWasToldIsRemoved() throws {
            let files = FaultyFileSystem()
            let owner = open(files)
            owner.flush()
            put("private", in: owner)
            owner.flush()
            owner.maintenance.pause()
            let comer = open(isResting: true)
            let isArmed = Mutex(true)
            files.rule = { call in
                if call.operation == .unlink, call.isRecord, isArmed.disarm() {
                    _ = comer.lookup(Self.key).variants().first?.load()
                }
                return nil
            }
            owner.remove(Self.key)
            #expect(!isArmed.withLock { $0 })
            let number = try #require(comer.lookup(Self.key).variants().first).metadata.sequence
            comer.update(number, of: Self.key) { $0.isPinned = true }
            #expect(found(in: comer) == "private", "nothing was told yet")
            owner.diskStore?.checkNow()
            #expect(found(in: owner) == nil)
            #expect(body(in: comer) == nil)
            comer.removeMemory()
            #expect(body(in: comer) == nil && body(in: open()) == nil)
            owner.maintenance.resume()
            comer.maintenance.resume()
        }

        /// Another process that was asked before the removal has written its record, and not looked yet.
        @Test(arguments: ["key", "resource", "tag", "all"])
        func aCacheNeverServesWhatItRemovedItself(what: String) throws {
            let files = FaultyFileSystem()
            let remover = open()
            remover.flush()
            let writer = open(files)
            writer.flush()
            writer.maintenance.pause()
            let ticket = writer.ticket(at: Date())
            let metadata = StoredEntry.test(Data(), tags: ["account"], url: Self.key.text).metadata
            switch what {
            case "key": remover.remove(Self.key)
            case "resource": remover.remove(uri: Self.key.uri)
            case "tag": remover.remove(matching: EntryCriteria(tag: "account"))
            default: remover.removeAll()
            }
            let bodies = Mutex<[String?]>([])
            files.rule = { call in
                guard call.operation == .close, call.isRecord else { return nil }
                let body = self.body(in: remover)
                bodies.withLock { $0.append(body) }
                return nil
            }
            let entry = StoredEntry(metadata: metadata, body: Data("private".utf8))
            // The disk layer alone: as the writer is before it looks.
            _ = writer.diskStore?.write(entry, for: Self.key, usedAt: MonotonicTime.nanoseconds)
            files.rule = { _ in nil }
            #expect(bodies.withLock { $0 } == [nil])
            #expect(body(in: remover) == nil)
            _ = ticket
            writer.maintenance.resume()
        }

        /// An owner that dies between its removal and its look tells nobody; the next owner does.
        @Test func whatAnOwnerThatDiedDidNotTellIsForgotten() throws {
            let files = FaultyFileSystem()
            let owner = open(files)
            owner.flush()
            put("private", in: owner)
            owner.flush()
            owner.maintenance.pause()
            let comer = open(isResting: true)
            let isArmed = Mutex(true)
            files.rule = { call in
                if call.operation == .unlink, call.isRecord, isArmed.disarm() {
                    _ = comer.lookup(Self.key).variants().first?.load()
                }
                return nil
            }
            owner.remove(Self.key)
            #expect(found(in: comer) == "private")
            // It ends as a process does that is killed.
            owner.diskStore?.move(.close)
            comer.maintenance.resume()
            comer.flush()
            #expect(comer.diskStore?.isOwner == true)
            #expect(body(in: comer) == nil)
        }

        /// In a new directory a guest may be storing something when the first owner looks for others (found by the
        /// model: the owner removed it).
        @Test func theFirstOwnerRemovesNothingOfAGuestThatStoresDuringItsFirstLook() throws {
            let (ownersFiles, guestsFiles) = (FaultyFileSystem(), FaultyFileSystem())
            let owner = open(ownersFiles, isResting: true)
            let guest = open(guestsFiles, isResting: true)
            let (isOwned, isWritten, isNoticed) = (
                DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
            )
            let (looks, writes) = (Mutex(true), Mutex(true))
            ownersFiles.rule = { call in
                if call.operation == .statusAt, call.name == "changes", looks.disarm() {
                    isOwned.signal()
                    isWritten.isSignalled("the guest's record")
                }
                return nil
            }
            guestsFiles.rule = { call in
                if call.operation == .close, call.isRecord, writes.disarm() {
                    isWritten.signal()
                    isNoticed.isSignalled("the owner's first look")
                }
                return nil
            }
            DispatchQueue.global().async {
                owner.diskStore?.checkNow()
                isNoticed.signal()
            }
            isOwned.isSignalled("the owner's lock")
            #expect(put("a", in: guest) == nil)
            #expect(owner.diskStore?.isOwner == true && guest.diskStore?.isOwner == false)
            #expect(body(in: guest) == "a" && body(in: owner) == "a")
            owner.maintenance.resume()
            guest.maintenance.resume()
        }

        /// Who fills the file of changes replaces it, and misses nothing; the others cannot know what they missed.
        @Test(arguments: [true, false]) func whoFillsTheFileKeepsItsMemory(isOwner: Bool) throws {
            let owner = open()
            owner.flush()
            let guest = open(isResting: true)
            put("guest", Self.other, in: guest, memoryOnly: true)
            put("owner", in: owner, memoryOnly: true)
            let (filler, key) = isOwner ? (owner, Self.key) : (guest, Self.other)
            let size = try #require(try? SystemFiles().status(at: changes).size)
            var isReplaced = false
            for number in 0..<20_000 where !isReplaced {
                filler.remove(
                    RequestKey(
                        text: "https://example.net/\(number)", uri: "https://example.net/\(number)", isForHead: false))
                isReplaced = try SystemFiles().status(at: changes).size < size + number
            }
            #expect(isReplaced)
            #expect(body(key, in: filler) != nil)
            #expect(body(isOwner ? Self.other : Self.key, in: isOwner ? guest : owner) == nil)
        }

        /// On a file system without locks several processes may believe that they own the directory.
        @Test func withoutLocksACacheIsNeverAlone() throws {
            let store = open(FaultyFileSystem { $0.operation == .lockProcess ? .error(ENOLCK) : nil })
            store.flush()
            #expect(store.diskStore?.isOwner == true)
            #expect(FileManager.default.fileExists(atPath: changes))
            put("a", in: store)
            let other = open()
            #expect(body(in: other) == "a")
            store.remove(Self.key)
            #expect(body(in: other) == nil)
        }

        /// Many caches come, store, remove and leave at once, with delays at their file operations. At the end nobody
        /// has what was removed last.
        @Test(arguments: [false, true]) func cachesThatComeAndGoMissNothing(isDelayed: Bool) throws {
            let directory = directory
            @Sendable func open() -> TieredStore {
                guard isDelayed else { return self.open() }
                return self.open(
                    FaultyFileSystem { _ in
                        if Int.random(in: 0..<4) == 0 { usleep(.random(in: 0..<1_500)) }
                        return nil
                    })
            }
            for round in 0..<TestLength.pick(plain: 3, long: 200) {
                let keys = (0..<8).map { number in
                    RequestKey(
                        text: "https://example.com/\(number)", uri: "https://example.com/\(number)", isForHead: false)
                }
                let first = open()
                let second = open()
                DispatchQueue.concurrentPerform(iterations: 4) { thread in
                    for step in 0..<20 {
                        let store = thread < 2 ? [first, second][thread] : open()
                        let key = keys[(thread * 5 + step) % keys.count]
                        put("\(thread) \(step)", key, in: store)
                        _ = found(key, in: store)
                        if step % 3 == 0 { store.remove(keys[(step * 3) % keys.count]) }
                        if thread == 3 { store.flush() }
                        if thread >= 2 { store.close() }
                    }
                }
                for key in keys { (round % 2 == 0 ? first : second).remove(key) }
                for key in keys {
                    #expect(body(key, in: first) == nil && body(key, in: second) == nil, "round \(round)")
                    first.removeMemory()
                    second.removeMemory()
                    #expect(body(key, in: first) == nil && body(key, in: second) == nil, "round \(round), on disk")
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: directory + "/records").isEmpty)
                first.close()
                second.close()
            }
        }
    }
#endif

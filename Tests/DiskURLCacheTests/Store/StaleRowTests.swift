#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What one cache knows of a record that another cache changed in its place.
    @Suite struct StaleRowTests {
        private let scratch: ScratchDirectory
        private var directory: String { scratch.url.path + "/c" }

        init() throws { scratch = try ScratchDirectory() }

        private static let key = RequestKey(
            text: "https://example.com/a", uri: "https://example.com/a", isForHead: false)
        private static func open(
            _ directory: String, files: any FileSystem = SystemFiles(),
            _ change: (inout DiskStore.Configuration) -> Void = { _ in }
        ) -> TieredStore {
            let maintenance = MaintenanceQueue()
            var configuration = DiskStore.Configuration(directory: directory, capacity: 64 << 20)
            change(&configuration)
            let disk = DiskStore(configuration: configuration, fileSystem: files, maintenance: maintenance)
            let store = TieredStore.over(disk, maintenance)
            store.flush()
            return store
        }

        private static func store(
            _ body: String, storedAt: Date = Date(), tags: [String] = [], memoryOnly: Bool = false,
            _ key: RequestKey = key, in store: TieredStore
        ) {
            var metadata = StoredEntry.test(Data(), storedAt: storedAt, tags: tags, url: key.text).metadata
            metadata.placement = memoryOnly ? .memoryOnly : .memoryAndDisk
            _ = store.store(metadata, .memory(Data(body.utf8)), for: key, ticket: nil)
        }

        /// What a lookup finds that comes a second later.
        private static func body(_ key: RequestKey = key, in store: TieredStore) -> String? {
            (store.disk as? DiskStore)?.nextCheck.set(0)
            return store.lookup(key).variants().first?.load().map { String(decoding: $0.body, as: UTF8.self) }
        }

        private static func update(in store: TieredStore, _ change: (inout EntryMetadata) -> Void) throws {
            let number = try #require(store.lookup(key).variants().first).metadata.sequence
            try #require(store.update(number, of: key, change) != nil)
            store.maintenance.perform { store.pass(isFlush: true) }
        }

        /// Two caches, of which the second one has a row of what the first one stored, and nothing of it in memory.
        private static func writerAndRemover(
            _ directory: String, isGuest: Bool, storing body: String, storedAt: Date
        ) throws -> (writer: TieredStore, remover: TieredStore) {
            let first = open(directory)
            let second = open(directory)
            let (writer, remover) = isGuest ? (first, second) : (second, first)
            store(body, storedAt: storedAt, in: writer)
            writer.flush()
            // It has a row of it from then on.
            try #expect(#require(remover.disk as? DiskStore).entryCount == 1)
            remover.flush()
            #expect(Self.body(in: remover) == body)
            remover.removeMemory()
            return (writer, remover)
        }

        /// A 304 gives a record another head, in its place. A guest, whose row is of the head before, removes
        /// what was stored since a time before that.
        @Test(arguments: [true, false], ["since", "older"])
        func whatAnotherCacheFreshenedIsRemoved(isGuest: Bool, what: String) throws {
            let (writer, remover) = try Self.writerAndRemover(
                directory, isGuest: isGuest, storing: "private", storedAt: Date() - 1_000)
            try Self.update(in: writer) { $0.storedAt = Date() - 10 }
            let limit = Date() - 100
            remover.remove(
                matching: what == "since" ? EntryCriteria(storedAfter: limit) : EntryCriteria(storedBefore: limit))
            // The other direction: what was freshened is not old.
            let left = what == "since" ? nil : "private"
            for store in [writer, remover, Self.open(directory)] { #expect(Self.body(in: store) == left) }
        }

        /// The same by two stores, of which the second one has the slot that the row tells of.
        @Test(arguments: [true, false]) func whatAnotherCacheReplacedTwiceIsRemoved(isGuest: Bool) throws {
            let (writer, remover) = try Self.writerAndRemover(
                directory, isGuest: isGuest, storing: "public", storedAt: Date() - 3)
            remover.maintenance.pause()
            for number in [2.0, 1] {
                Self.store("private", storedAt: Date() - number, tags: ["account"], in: writer)
                writer.maintenance.perform { writer.pass(isFlush: true) }
            }
            remover.remove(matching: EntryCriteria(tag: "account"))
            #expect(Self.body(in: writer) == nil)
            #expect(Self.body(in: remover) == nil)
            remover.maintenance.resume()
            #expect(Self.body(in: Self.open(directory)) == nil)
        }

        /// A process is killed between its record and the row that tells of it. The owner has looked at the key just
        /// before.
        @Test(arguments: ["tag", "host", "key", "resource", "all"]) func whatAKilledProcessLeftIsRemoved(what: String)
            throws
        {
            let files = FaultyFileSystem()
            let (remover, killed) = (Self.open(directory), Self.open(directory, files: files))
            let disk = try #require(remover.disk as? DiskStore)
            let (isArmed, isWritten, isDead, isTold) = (Mutex(true), Mutex(false), Mutex(false), Mutex(false))
            files.rule = { call in
                if isDead.withLock({ $0 }) { return .error(EIO) }
                if call.name == "changes", call.operation == .write { isTold.withLock { $0 = true } }
                guard call.isRecord else { return nil }
                // The row is told, and the file is about to be made; before it, the store looked for a record to
                // replace.
                if isTold.withLock({ $0 }), isArmed.disarm() { _ = disk.entryCount }
                if call.operation == .write { isWritten.withLock { $0 = true } }
                if call.operation == .close, isWritten.withLock({ $0 }) { isDead.withLock { $0 = true } }
                return nil
            }
            Self.store("private", tags: ["account"], in: killed)
            killed.maintenance.perform { killed.pass(isFlush: true) }
            #expect(isDead.withLock { $0 })
            Self.remove(what, in: remover)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory + "/records").isEmpty)
            #expect(Self.body(in: remover) == nil)
        }

        private static func remove(_ what: String, in store: TieredStore) {
            switch what {
            case "all": store.removeAll()
            case "key": store.remove(key)
            case "tag": store.remove(matching: EntryCriteria(tag: "account"))
            case "resource": store.remove(uri: key.uri)
            default: store.remove(matching: EntryCriteria(hostHash: key.hostHash))
            }
        }

        /// A guest stored the older answer a moment ago; the owner has not looked since. The newer one is not for the
        /// disk.
        @Test(arguments: [true, false]) func whatANewerAnswerReplacedStaysGone(isTold: Bool) throws {
            let files = FaultyFileSystem()
            let owner = Self.open(directory)
            let other = Self.open(directory, files: files)
            files.rule = { call in
                let isOfChanges = call.name == "changes" || call.name.hasPrefix("incoming-")
                return isOfChanges && [.open, .write].contains(call.operation) && !isTold ? .error(EMFILE) : nil
            }
            Self.store("older", in: other)
            other.maintenance.perform { other.pass(isFlush: true) }
            Self.store("newer", memoryOnly: true, in: owner)
            owner.removeMemory()
            files.rule = { _ in nil }
            other.maintenance.perform { other.pass(isFlush: true) }
            owner.flush()
            #expect(Self.body(in: owner) == nil)
            #expect(Self.body(in: Self.open(directory)) == nil)
        }

        /// A clearing that could not be done at once is done later, and takes what was stored since.
        @Test func aClearingThatIsDoneLaterLeavesWhatWasStoredSince() throws {
            let files = FaultyFileSystem()
            let remover = Self.open(directory, files: files)
            let other = Self.open(directory)
            Self.store("old", in: other)
            other.maintenance.perform { other.pass(isFlush: true) }
            files.rule = { $0.operation == .rename && $0.name == "records" ? .error(ENOSPC) : nil }
            remover.removeAll()
            #expect(Self.body(in: remover) == nil)
            // What was removed is not served by the other either.
            #expect(Self.body(in: other) == nil)
            let new = RequestKey(text: "https://example.com/new", uri: "https://example.com/new", isForHead: false)
            Self.store("new", new, in: other)
            other.maintenance.perform { other.pass(isFlush: true) }
            #expect(Self.body(new, in: other) == "new")
            files.rule = { _ in nil }
            remover.maintenance.perform { remover.pass(isFlush: true) }
            #expect(Self.body(new, in: other) == "new")
            #expect(Self.body(new, in: Self.open(directory)) == "new")
        }

        // MARK: Within a second

        /// A record that has the slot, size and second of another one is another one all the same.
        @Test func whatWasReplacedWithinASecondHasARowOfItsOwn() throws {
            let now = Date()
            do {
                let owner = Self.open(directory)
                let other = Self.open(directory)
                Self.store("public", storedAt: now, in: owner)
                owner.flush()
                owner.maintenance.pause()
                for _ in 0..<2 {
                    Self.store("secret", storedAt: now, tags: ["account"], in: other)
                    other.maintenance.perform { other.pass(isFlush: true) }
                }
                other.close()
                owner.flush()
                owner.close()
            }
            // The only one by now.
            let last = Self.open(directory)
            last.remove(matching: EntryCriteria(tag: "account"))
            #expect(Self.body(in: last) == nil)
        }

        // MARK: In the middle of something

        /// The row changes while the removal is under way, and the entry was there before.
        @Test func whatIsTakenInDuringARemovalIsRemoved() throws {
            let files = FaultyFileSystem()
            let during = Mutex<(@Sendable () -> Void)?>(nil)
            let remover = DiskStore(
                configuration: DiskStore.Configuration(directory: directory, capacity: 64 << 20), fileSystem: files,
                report: { event in
                    guard case .cannotDelete = event else { return }
                    during.withLock { action in
                        defer { action = nil }
                        return action
                    }?()
                })
            let stuck = RequestKey.test("stuck")
            let old = Date() - 1_000
            remover.store(.test(testBody(1), sequence: 1, storedAt: Date() - 10), for: stuck)
            remover.store(.test(testBody(2), sequence: 2, storedAt: old), for: Self.key)
            remover.flush()
            let other = DiskStore(configuration: DiskStore.Configuration(directory: directory, capacity: 64 << 20))
            other.maintenance.perform { other.runPass(isFlush: true) }
            other.maintenance.pause()
            let metadata = StoredEntry.test(Data(), sequence: 3, storedAt: Date() - 10).metadata
            #expect(other.update(metadata, of: Self.key, replacing: 2, usedAt: MonotonicTime.nanoseconds))
            during.withLock {
                $0 = {
                    other.maintenance.perform { other.runPass(isFlush: true) }
                    remover.maintenance.perform { remover.runPass(isFlush: true) }
                }
            }
            let name = stuck.name.hex
            files.rule = { $0.operation == .unlink && $0.name.hasPrefix(name) ? .error(EBUSY) : nil }
            remover.remove(matching: EntryCriteria(storedAfter: Date() - 100))
            #expect(during.withLock { $0 == nil })
            #expect(remover.body(Self.key) == nil)
        }

        /// Another cache has put another variant into the slot of which the row tells.
        @Test func aStoreRemovesNoOtherVariant() throws {
            let files = FaultyFileSystem()
            let configuration = DiskStore.Configuration(directory: directory, capacity: 64 << 20)
            let owner = DiskStore(configuration: configuration, fileSystem: files)
            owner.flush()
            let key = Self.key
            let english = StoredEntry.test(testBody(1), sequence: 1, language: "en")
            owner.store(english, for: key)
            owner.flush()
            owner.maintenance.pause()
            let other = DiskStore(configuration: configuration)
            other.maintenance.perform { other.runPass(isFlush: true) }
            other.remove(key, variant: english.metadata.varyKey)
            other.maintenance.perform { other.runPass(isFlush: true) }
            other.store(.test(testBody(2), sequence: 2, language: "de"), for: key)
            other.maintenance.perform { other.runPass(isFlush: true) }
            owner.store(.test(testBody(3), sequence: 3, language: "en"), for: key)
            owner.flush()
            for store in [owner, other] {
                let bodies = store.variants(of: key).compactMap { $0.load()?.body }
                #expect(Set(bodies) == [testBody(2), testBody(3)])
            }
        }

        /// Another cache has freshened what is too old by the row.
        @Test func whatWasFreshenedDoesNotExpire() throws {
            var configuration = DiskStore.Configuration(directory: directory, capacity: 64 << 20)
            configuration.maximumStorageAge = 100
            // For the other one it is not too old yet.
            let owner = DiskStore(configuration: configuration, clock: WallClock { Date() + 50 })
            owner.flush()
            owner.maintenance.pause()
            owner.store(.test(testBody(1), sequence: 1, storedAt: Date() - 70), for: Self.key)
            let other = DiskStore(configuration: configuration)
            other.maintenance.pause()
            other.maintenance.perform { other.runPass(isFlush: true) }
            owner.maintenance.perform { #expect(owner.beginPass(isFlush: true)) }
            let metadata = StoredEntry.test(Data(), sequence: 2, storedAt: Date()).metadata
            #expect(other.update(metadata, of: Self.key, replacing: 1, usedAt: MonotonicTime.nanoseconds))
            other.maintenance.perform { other.runPass(isFlush: true) }
            owner.maintenance.perform { owner.endPass(isFlush: true) }
            for store in [owner, other] { #expect(store.body(Self.key) == testBody(1)) }
        }

        // MARK: Names that are another file's by now

        /// Another cache clears the folder, and stores in the new one, while a record is being written that fails then.
        @Test(arguments: [false, true]) func aFailedWriteRemovesNoOtherRecord(isLarge: Bool) throws {
            let files = FaultyFileSystem()
            let configuration = DiskStore.Configuration(directory: directory, capacity: 64 << 20)
            let store = DiskStore(configuration: configuration, fileSystem: files)
            store.flush()
            store.maintenance.pause()
            let other = DiskStore(configuration: configuration)
            other.maintenance.perform { other.runPass(isFlush: true) }
            other.maintenance.pause()
            let isArmed = Mutex(true)
            files.rule = { call in
                let isHere =
                    isLarge
                    ? call.operation == .rename && call.name.hasPrefix("incoming-")
                    : call.operation == .write && call.isRecord
                guard isHere,
                    isArmed.disarm()
                else { return nil }
                other.removeAll()
                other.store(.test(testBody(2), sequence: 2), for: Self.key)
                other.maintenance.perform { other.runPass(isFlush: true) }
                // The file that was arriving is gone.
                return isLarge ? nil : .error(ENOSPC)
            }
            let entry = StoredEntry.test(testBody(1), sequence: 1)
            if isLarge {
                let body = try store.beginIncoming()
                try body.append(testBody(1))
                _ = store.adopt(body, entry.metadata, for: Self.key, usedAt: MonotonicTime.nanoseconds)
                body.discard()
            } else {
                store.store(entry, for: Self.key)
            }
            #expect(!isArmed.withLock { $0 })
            #expect(other.body(Self.key) == testBody(2))
            store.flush()
            #expect(store.body(Self.key) == testBody(2))
        }

        // MARK: Pins

        /// A pin makes no answer newer: neither one that only memory still has, nor one on disk that waits to be
        /// replaced.
        @Test(arguments: [true, false]) func aPinBringsNoOlderAnswerBack(isWritten: Bool) throws {
            let store = Self.open(directory)
            let other = Self.open(directory)
            Self.store("older", storedAt: Date() - 100, in: store)
            store.flush()
            other.maintenance.pause()
            Self.store("newer", storedAt: Date() - 50, in: other)
            if isWritten { other.maintenance.perform { other.pass(isFlush: true) } }
            Self.store(
                "b", RequestKey(text: "https://example.com/b", uri: "https://example.com/b", isForHead: false),
                in: store)
            let number = try #require(store.lookup(Self.key).variants().first).metadata.sequence
            _ = store.update(number, of: Self.key) { $0.isPinned = true }
            store.flush()
            other.maintenance.perform { other.pass(isFlush: true) }
            other.removeMemory()
            #expect(Self.body(in: other) == "newer")
            #expect(Self.body(in: Self.open(directory)) == "newer")
        }

        // MARK: Removals that are under way

        /// A record is written anew for a head while another cache removes it, which does not find the new one.
        @Test(arguments: ["tag", "host", "key"])
        func whatIsWrittenAnewDuringARemovalGoesToo(what: String) throws {
            let files = FaultyFileSystem()
            let remover = Self.open(directory)
            let store = Self.open(directory, files: files)
            Self.store("private", storedAt: Date() - 100, tags: ["account"], in: remover)
            remover.flush()
            #expect(Self.body(in: store) == "private")
            let isArmed = Mutex(true)
            let path = directory + "/records/" + Self.key.name.hex + "1"
            let isLocked = Mutex(false)
            files.rule = { call in
                // A pin gets no larger number from another process: the record is written anew.
                if call.operation == .lockFile, call.isRecord { isLocked.withLock { $0 = true } }
                guard isLocked.withLock({ $0 }), call.path == path, call.operation == .open else { return nil }
                guard isArmed.disarm() else { return nil }
                switch what {
                case "tag": remover.remove(matching: EntryCriteria(tag: "account"))
                case "host": remover.remove(matching: EntryCriteria(hostHash: Self.key.hostHash))
                default: remover.remove(Self.key)
                }
                return nil
            }
            let number = try #require(store.lookup(Self.key).variants().first).metadata.sequence
            _ = store.update(number, of: Self.key) { $0.isPinned = true }
            files.rule = { _ in nil }
            #expect(!isArmed.withLock { $0 })
            store.flush()
            for store in [store, remover, Self.open(directory)] { #expect(Self.body(in: store) == nil) }
        }

        /// A status that cannot be had says nothing of a file.
        @Test func whatWasClearedDoesNotComeBack() throws {
            let files = FaultyFileSystem()
            let store = Self.open(directory, files: files)
            Self.store("private", in: store)
            store.flush()
            files.rule = { call in
                call.operation == .statusAt && call.isRecord && call.path.contains("/trash-") ? .error(EIO) : nil
            }
            store.removeAll()
            store.flush()
            files.rule = { _ in nil }
            #expect(Self.body(in: store) == nil)
            #expect(Self.body(in: Self.open(directory)) == nil)
        }

        /// A response that is stored while the folder that has grown is replaced is written into the new one.
        @Test func whatWaitsWhileTheOwnFolderIsReplacedIsWritten() throws {
            let files = FaultyFileSystem()
            let store = Self.open(directory, files: files)
            try ScratchDirectory.grow(directory + "/records")
            let evicted = RequestKey(
                text: "https://example.com/evicted", uri: "https://example.com/evicted", isForHead: false)
            Self.store("evicted", evicted, in: store)
            store.flush()
            let reference = WeakReference<TieredStore>()
            reference.object = store
            let isArmed = Mutex(true)
            let isStored = DispatchGroup()
            files.rule = { call in
                guard call.operation == .removeDirectory, let store = reference.object, isArmed.disarm()
                else { return nil }
                // Its file operations wait for the new folder.
                DispatchQueue.global().async(group: isStored) { Self.store("new", in: store) }
                return nil
            }
            let disk = try #require(store.disk as? DiskStore)
            disk.maintenance.perform {
                disk.capacity = 100 << 10
                store.pass(isFlush: true)
            }
            isStored.wait(for: "the store in the new folder")
            store.flush()
            #expect(!isArmed.withLock { $0 })
            // Another folder may have the number of the one before.
            #expect(try SystemFiles().status(at: directory + "/records").allocated <= 64 << 10)
            store.removeMemory()
            #expect(Self.body(in: store) == "new")
        }
    }
#endif

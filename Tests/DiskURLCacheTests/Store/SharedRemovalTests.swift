#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What one cache of a directory removed, the others stop to serve within a second: from memory, and by a late
    /// answer.
    @Suite struct SharedRemovalTests {
        private let scratch: ScratchDirectory
        private var directory: String { scratch.url.path + "/c" }

        init() throws { scratch = try ScratchDirectory() }

        /// A store on a directory, as one process has it.
        private static func open(
            _ directory: String, files: any FileSystem = SystemFiles(), isResting: Bool = false
        ) -> TieredStore {
            let maintenance = MaintenanceQueue()
            if isResting { maintenance.pause() }
            let disk = DiskStore(
                configuration: DiskStore.Configuration(directory: directory, capacity: 64 << 20), fileSystem: files,
                maintenance: maintenance)
            let store = TieredStore.over(disk, maintenance)
            if !isResting { store.flush() }
            return store
        }

        private static let key = RequestKey(
            text: "https://example.com/a", uri: "https://example.com/a", isForHead: false)
        private static let other = RequestKey(
            text: "https://example.org/b", uri: "https://example.org/b", isForHead: false)

        @discardableResult
        private static func store(
            _ body: String, _ key: RequestKey = key, in store: TieredStore, memoryOnly: Bool = false,
            ticket: StoreTicket? = nil
        ) -> DiskURLCache.Reason? {
            var metadata = StoredEntry.test(Data(), tags: key == other ? [] : ["account"], url: key.text).metadata
            metadata.placement = memoryOnly ? .memoryOnly : .memoryAndDisk
            return store.store(metadata, .memory(Data(body.utf8)), for: key, ticket: ticket)
        }

        /// What a lookup finds that comes a second later.
        private static func body(_ key: RequestKey = key, in store: TieredStore) -> String? {
            (store.disk as? DiskStore)?.checkNow()
            return store.lookup(key).variants().first?.load().map { String(decoding: $0.body, as: UTF8.self) }
        }

        private static let removals = ["key", "tag", "host", "prefix", "since", "all", "inspector"]

        private static func remove(_ what: String, _ directory: String) throws {
            let store = TieredStore.forTests(directory)
            switch what {
            case "key": store.remove(key)
            case "tag": store.remove(matching: EntryCriteria(tag: "account"))
            case "host": store.remove(matching: EntryCriteria(hostHash: key.hostHash))
            case "prefix": store.remove(matching: EntryCriteria(urlPrefix: "https://example.com/"))
            case "since": store.remove(matching: EntryCriteria(storedAfter: .distantPast))
            case "all": store.removeAll()
            default:
                let inspector = try DiskURLCache.Inspector(directory: URL(fileURLWithPath: directory))
                let records = try inspector.records().filter { $0.url == key.text }
                #expect(inspector.remove(records) == 1)
            }
        }

        // MARK: Children

        static func removeInChild(_ directory: String) throws {
            try remove(try #require(ChildProcess.argument("WHAT")), directory)
            ChildProcess.say("removed")
            ChildProcess.waitForParent()
        }

        /// A folder that has grown is replaced once it is empty. Who is not told finds that out after it stored
        /// something.
        @Test(arguments: [true, false]) func whatIsStoredWhileAnotherCacheReplacesTheFolderStays(isBefore: Bool) throws
        {
            let files = FaultyFileSystem()
            let owner = Self.open(directory, files: files)
            let other = Self.open(directory)
            try ScratchDirectory.grow(directory + "/records")
            Self.store("evicted", in: owner)
            owner.flush()
            @Sendable func storeByOther() {
                Self.store("new", Self.other, in: other)
                // Not a flush: that would wait for the owner.
                other.maintenance.perform { other.pass(isFlush: true) }
            }
            if isBefore {
                files.rule = { call in
                    if call.name == "records", call.operation == .removeDirectory { storeByOther() }
                    return nil
                }
            }
            #expect(Self.body(Self.other, in: other) == nil)
            let disk = try #require(owner.disk as? DiskStore)
            disk.maintenance.perform {
                let capacity = disk.capacity
                disk.capacity = 0
                disk.evictIfNeeded()
                disk.capacity = capacity
            }
            // Another folder may have the number of the one before.
            let isLarge = try SystemFiles().status(at: directory + "/records").allocated > 64 << 10
            #expect(isLarge == isBefore)
            if !isBefore { storeByOther() }
            #expect(Self.body(Self.other, in: other) == "new")
            #expect(Self.body(Self.other, in: Self.open(directory)) == "new")
        }

        /// The remover does not find what is written at that moment, and the writer hears of the removal later.
        @Test(arguments: [true, false]) func whatIsWrittenMeanwhileGoesToo(isAll: Bool) throws {
            let files = FaultyFileSystem()
            let store = Self.open(directory, files: files)
            let other = Self.open(directory)
            let hasRemoved = Mutex(false)
            files.rule = { call in
                let isFirst = hasRemoved.withLock { hasRemoved in
                    defer { if call.isRecord, call.operation == .open { hasRemoved = true } }
                    return call.isRecord && call.operation == .open && !hasRemoved
                }
                // Before the file is made.
                if isFirst { isAll ? other.remove(matching: EntryCriteria(tag: "account")) : other.remove(Self.key) }
                return nil
            }
            #expect(Self.store("private", in: store) == .removedMeanwhile)
            #expect(hasRemoved.withLock { $0 })
            #expect(Self.body(in: store) == nil)
            for store in [store, other, Self.open(directory)] {
                store.removeMemory()
                #expect(Self.body(in: store) == nil)
            }
        }

        // MARK: Other processes

        @Test(arguments: removals) func aLookupIsAMissWithinASecond(what: String) throws {
            let store = Self.open(directory)
            Self.store("private", in: store)
            Self.store("other", Self.other, in: store)
            store.flush()
            let ticket = store.ticket(at: Date())
            #expect(Self.body(in: store) == "private")
            #expect(store.memory.contains(Self.key))
            let child = try ChildProcess("remove", directory: directory, ["WHAT": what])
            #expect(child.nextLine() == "removed")
            #expect(Self.body(in: store) == nil)
            #expect(!store.contains(Self.key))
            #expect((Self.body(Self.other, in: store) == nil) == ["since", "all"].contains(what))
            // What was asked for before is not stored after, but for a record that an inspector took off the disk.
            if what != "inspector" {
                #expect(Self.store("late", in: store, ticket: ticket) == .removedMeanwhile)
                #expect(Self.body(in: store) == nil)
            }
            #expect(Self.store("new", in: store, ticket: store.ticket(at: Date())) == nil)
            #expect(Self.body(in: store) == "new")
            store.flush()
            store.removeMemory()
            #expect(Self.body(in: store) == "new")
            child.release()
            _ = child.remainingLines()
            #expect(Self.body(in: store) == "new")
        }

        /// What the remover cannot find on the disk goes too: it is in the memory of another.
        @Test(arguments: ["key", "tag", "host", "all"]) func whatIsNotOnDiskGoesToo(what: String) throws {
            let store = Self.open(directory)
            store.maintenance.pause()
            Self.store("private", in: store, memoryOnly: true)
            let ticket = store.ticket(at: Date())
            #expect(Self.body(in: store) == "private")
            let child = try ChildProcess("remove", directory: directory, ["WHAT": what])
            #expect(child.nextLine() == "removed")
            #expect(Self.body(in: store) == nil)
            #expect(Self.store("late", in: store, ticket: ticket) == .removedMeanwhile)
            store.flush()
            #expect(Self.body(in: store) == nil)
            child.release()
            _ = child.remainingLines()
        }

        /// In the first moments of a directory, when no cache has made it yet (found by the model).
        @Test(arguments: ["key", "tag", "host", "all"])
        func beforeThereIsAFolder(what: String) throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.appending("c").path
            let first = Self.open(directory, isResting: true)
            let second = Self.open(directory, isResting: true)
            Self.store("1", in: first, memoryOnly: true)
            switch what {
            case "key": second.remove(Self.key)
            case "tag": second.remove(matching: EntryCriteria(tag: "account"))
            case "host": second.remove(matching: EntryCriteria(hostHash: Self.key.hostHash))
            default: second.removeAll()
            }
            #expect(Self.body(in: first) == nil)
            Self.store("2", in: first)
            #expect(Self.body(in: first) == "2")
        }

        // MARK: Races

        /// Two stores on a directory: one stores and writes, the other removes at any moment of that.
        @Test(arguments: [true, false]) func aRemovalRacingAWrite(isRemoverFirst: Bool) throws {
            // The first one maintains the directory: each removes what the other one wrote without a row.
            let stores = [Self.open(directory), Self.open(directory)]
            let (remover, writer) = isRemoverFirst ? (stores[0], stores[1]) : (stores[1], stores[0])
            for round in 0..<TestLength.pick(plain: 100, long: 5_000) {
                let group = DispatchGroup()
                let reason = Mutex<DiskURLCache.Reason?>(nil)
                DispatchQueue.global().async(group: group) {
                    let result = Self.store("\(round)", in: writer)
                    reason.withLock { $0 = result }
                }
                DispatchQueue.global().async(group: group) { _ = Self.body(in: writer) }
                // At another moment of the writing each time.
                for _ in 0..<(round % 50) * 20 { _ = getppid() }
                remover.remove(matching: EntryCriteria(tag: "account"))
                group.wait(for: "the store and the lookup")
                // Either it was stored after the removal, or it is gone everywhere.
                let left = Self.body(in: writer)
                #expect(left == nil || reason.withLock { $0 } == nil, "round \(round)")
                // What was asked for before the removal is a miss for its remover for some time.
                let other = Self.body(in: remover)
                #expect(other == nil || other == left, "round \(round)")
                remover.remove(matching: EntryCriteria(tag: "account"))
                #expect(Self.body(in: writer) == nil, "round \(round)")
                writer.flush()
                writer.removeMemory()
                remover.removeMemory()
                #expect(Self.body(in: writer) == nil, "round \(round), on disk")
                #expect(Self.body(in: remover) == nil, "round \(round), on disk")
            }
        }

        // MARK: The file

        private static let damages: [String: @Sendable (_ path: String, _ foreign: String) throws -> Void] = [
            "cut": { path, _ in truncate(path, 100) }, "empty": { path, _ in truncate(path, 0) },
            "huge": { path, _ in truncate(path, 10 << 30) },
            "garbage": { path, _ in try Data(testBody(1, length: 500)).write(to: URL(fileURLWithPath: path)) },
            "garbage rows": { path, _ in
                let old = try Data(contentsOf: URL(fileURLWithPath: path))
                try (old + testBody(1, length: 3 * DirectoryChange.rowLength)).write(to: URL(fileURLWithPath: path))
            },
            "gone": { path, _ in unlink(path) },
            "link": { path, foreign in
                unlink(path)
                symlink(foreign, path)
            },
            "hard link": { path, foreign in
                unlink(path)
                link(foreign, path)
            },
            "folder": { path, _ in
                unlink(path)
                mkdir(path, 0o700)
            },
            "FIFO": { path, _ in
                unlink(path)
                mkfifo(path, 0o600)
            },
            "device": { path, _ in
                unlink(path)
                symlink("/dev/zero", path)
            },
        ]

        @Test(arguments: damages.keys.sorted()) func damage(_ name: String) throws {
            let stores = [Self.open(directory), Self.open(directory)]
            let foreign = scratch.url.path + "/foreign"
            try Data("foreign".utf8).write(to: URL(fileURLWithPath: foreign))
            for _ in 0..<3 {
                Self.store("a", in: stores[0])
                stores[0].flush()
                // Each cache that finds the damage begins the file anew, which the other one takes for a removal: one
                // of them at a time.
                stores[1].maintenance.pause()
                try Self.damages[name]?(directory + "/changes", foreign)
                // At worst memory forgets it.
                #expect(Self.body(in: stores[0]) == "a")
                Self.store("b", in: stores[0])
                stores[0].flush()
                // A folder cannot be replaced: it is a removal of everything at each look.
                if name != "folder" { #expect(Self.body(in: stores[0]) == "b") }
                stores[1].maintenance.resume()
                stores[1].remove(Self.key)
                #expect(Self.body(in: stores[0]) == nil)
                #expect(Self.body(in: stores[1]) == nil)
                if ["folder", "FIFO"].contains(name) { break }
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: foreign)) == Data("foreign".utf8))
            #expect(try SystemFiles().status(at: foreign).permissions != 0o600)
            if ["cut", "empty", "huge", "garbage", "garbage rows", "gone"].contains(name) {
                let status = try SystemFiles().status(at: directory + "/changes")
                #expect(status.permissions == 0o600 && status.size <= 64 << 10)
            }
        }

        /// A full disk: each removal is told, by an empty file.
        @Test(arguments: ["write", "rename"]) func aFullDiskIsToldEachTime(what: String) throws {
            let store = Self.open(directory)
            let files = FaultyFileSystem { call in
                guard call.name.hasPrefix("changes") else { return nil }
                return call.operation == .rename || (what == "write" && call.operation == .write) ? .error(ENOSPC) : nil
            }
            let remover = DiskStore(
                configuration: DiskStore.Configuration(directory: directory, capacity: 1 << 20), fileSystem: files)
            remover.flush()
            for number in 0..<5 {
                Self.store("\(number)", in: store)
                store.flush()
                #expect(Self.body(in: store) == "\(number)")
                remover.remove(Self.key)
                #expect(Self.body(in: store) == nil, "\(number)")
            }
            files.rule = { _ in nil }
            Self.store("again", in: store)
            store.flush()
            remover.remove(Self.key)
            #expect(Self.body(in: store) == nil)
            #expect(try SystemFiles().status(at: directory + "/changes").size > 0)
        }

        @Test func rowsAreWhole() {
            let changes: [DirectoryChange] = [
                .storing(Self.key.name), .stored(Self.key.name), .removed(Self.key.name), .removedResource(7),
                .removedAll, .noticed,
            ]
            for change in changes {
                var bytes = change.row(by: 5 << 8)
                #expect(bytes.count == DirectoryChange.rowLength)
                let decoded = bytes.withUnsafeBytes { DirectoryChange.decode($0) }
                #expect(decoded?.change == change && decoded?.writer == 5 << 8)
                for bit in 0..<bytes.count * 8 {
                    bytes[bit / 8] ^= 1 << (bit % 8)
                    #expect(bytes.withUnsafeBytes { DirectoryChange.decode($0) } == nil)
                    bytes[bit / 8] ^= 1 << (bit % 8)
                }
            }
        }
    }

    extension TieredStore {
        /// One that was opened just now: nothing was done on its queue yet.
        fileprivate static func forTests(_ directory: String) -> TieredStore {
            let maintenance = MaintenanceQueue()
            maintenance.pause()
            let disk = DiskStore(
                configuration: DiskStore.Configuration(directory: directory, capacity: 64 << 20),
                maintenance: maintenance)
            return over(disk, maintenance)
        }
    }
#endif

#if os(Linux)
    import Dispatch
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What one cache of a directory removed, no other serves: not from memory, not from the buffer, not by a late answer.
    @Suite struct SharedRemovalTests {
        /// A store on a directory, as one process has it.
        private static func open(
            _ directory: String, sharesMemory: Bool = true, files: any FileSystem = SystemFiles(),
            isResting: Bool = false
        ) -> TieredStore {
            let maintenance = MaintenanceQueue()
            if isResting { maintenance.pause() }
            var configuration = DiskStore.Configuration(directory: directory, capacity: 64 << 20)
            configuration.sharesMemory = sharesMemory
            let disk = DiskStore(configuration: configuration, fileSystem: files, maintenance: maintenance)
            let store = TieredStore.over(disk, maintenance)
            if !isResting { store.flush() }
            return store
        }

        private static func news(of store: TieredStore) throws -> RemovalNews {
            let news = try #require(store.disk as? DiskStore).removals
            // The file may be another store's at the moment: then memory is shared a little later.
            for _ in 0..<10_000 where !news.isShared { news.attachIfNeeded() }
            store.takeRemovalsNow()
            return news
        }

        private static let key = RequestKey(text: "https://example.com/a", uri: nil, isForHead: false)
        private static let other = RequestKey(text: "https://example.org/b", uri: nil, isForHead: false)

        @discardableResult
        private static func store(
            _ body: String, _ key: RequestKey = key, in store: TieredStore, memoryOnly: Bool = false,
            ticket: StoreTicket? = nil
        ) -> CacheReason? {
            var metadata = StoredEntry.test(Data(), tags: key == other ? [] : ["account"], url: key.text).metadata
            metadata.placement = memoryOnly ? .memoryOnly : .memoryAndDisk
            return store.store(metadata, body: Data(body.utf8), for: key, ticket: ticket)
        }

        private static func body(_ key: RequestKey = key, in store: TieredStore) -> String? {
            store.lookup(key).variants().first?.load().map { String(decoding: $0.body, as: UTF8.self) }
        }

        private static let removals = ["key", "tag", "host", "prefix", "since", "all", "inspector"]

        private static func remove(_ what: String, _ directory: String) throws {
            let store = TieredStore.forTests(directory)
            switch what {
            case "key": store.remove(key)
            case "tag": store.remove(matching: EntryCriteria(tag: "account"))
            case "host": store.remove(matching: EntryCriteria(hostHash: RequestKey.hostHash("example.com")))
            case "prefix": store.remove(matching: EntryCriteria(urlPrefix: "https://example.com/"))
            case "since": store.remove(matching: EntryCriteria(storedAfter: .distantPast))
            case "all": store.removeAll()
            default:
                let inspector = try CacheInspector(directory: URL(fileURLWithPath: directory))
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

        static func holdInChild(_ directory: String) throws {
            let store = open(directory)
            Self.store("held", in: store)
            store.flush()
            ChildProcess.say(body(in: store) ?? "nothing")
            try news(of: store).setNextLook(.max)
            ChildProcess.waitForParent()
            ChildProcess.say(body(in: store) ?? "nothing")
        }

        static func holdSegmentsInChild(_ directory: String) throws {
            let numbers = 0..<20
            let stores = numbers.map { open(directory + "/\($0)") }
            ChildProcess.say("\(try segments(of: getpid()))")
            for number in numbers { _ = open(directory + "/again\(number)") }
            ChildProcess.say("\(try segments(of: getpid()))")
            ChildProcess.waitForParent()
            withExtendedLifetime(stores) {}
        }

        /// How many a process made that are still there.
        private static func segments(of process: pid_t) throws -> Int {
            let table = try String(contentsOfFile: "/proc/sysvipc/shm", encoding: .utf8)
            return table.split(separator: "\n").dropFirst().count { $0.split(separator: " ")[4] == "\(process)" }
        }

        /// A folder that has grown is replaced once it is empty. Who is not told finds that out after it stored something.
        @Test(arguments: [true, false]) func whatIsStoredWhileAnotherCacheReplacesTheFolderStays(isBefore: Bool) throws
        {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let files = FaultyFileSystem()
            let maintainer = Self.open(directory, files: files)
            let other = Self.open(directory)
            _ = try Self.news(of: other)
            try ScratchDirectory.grow(directory + "/records")
            Self.store("evicted", in: maintainer)
            maintainer.flush()
            let folder = try SystemFiles().status(at: directory + "/records").identity
            @Sendable func storeByOther() {
                Self.store("new", Self.other, in: other)
                // Not a flush: that would wait for the maintainer.
                other.maintenance.perform { other.pass(isFlush: true) }
            }
            if isBefore {
                files.rule = { call in
                    if call.name.hasPrefix(DiskPaths.trashPrefix), call.operation == .makeDirectory { storeByOther() }
                    return nil
                }
            }
            #expect(Self.body(Self.other, in: other) == nil)
            try #require(maintainer.disk as? DiskStore).trim(toBytes: 0)
            let isSame = try SystemFiles().status(at: directory + "/records").identity == folder
            #expect(isSame == isBefore)
            if !isBefore { storeByOther() }
            #expect(Self.body(Self.other, in: other) == "new")
            #expect(Self.body(Self.other, in: Self.open(directory)) == "new")
        }

        /// The remover does not find what is written at that moment, and the writer hears of the removal later.
        @Test(arguments: [true, false]) func whatIsWrittenMeanwhileGoesToo(isAll: Bool) throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let files = FaultyFileSystem()
            let store = Self.open(directory, sharesMemory: false, files: files)
            let other = Self.open(directory, sharesMemory: false)
            store.maintenance.pause()
            Self.store("private", in: store)
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
            store.maintenance.resume()
            store.flush()
            #expect(hasRemoved.withLock { $0 })
            #expect(Self.body(in: store) == nil)
            for store in [store, other, Self.open(directory)] {
                store.removeMemory()
                #expect(Self.body(in: store) == nil)
            }
        }

        // MARK: Other processes

        /// - Parameter sharesMemory: where it is not shared, what others removed is seen a second later.
        @Test(arguments: removals, [true, false]) func theNextLookupIsAMiss(what: String, sharesMemory: Bool) throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let store = Self.open(directory, sharesMemory: sharesMemory)
            Self.store("private", in: store)
            Self.store("other", Self.other, in: store)
            store.flush()
            let ticket = store.ticket(at: Date())
            #expect(Self.body(in: store) == "private")
            try Self.news(of: store).setNextLook(.max)
            #expect(store.memory.contains(Self.key))
            let child = try ChildProcess("remove", directory: directory, ["WHAT": what])
            #expect(child.nextLine() == "removed")
            if !sharesMemory {
                // Until then memory may still answer.
                try Self.news(of: store).setNextLook(0)
            }
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

        /// What the remover cannot find on the disk goes too: it is in the memory or the buffer of another.
        @Test(arguments: ["key", "tag", "host", "all"], [true, false])
        func whatIsNotOnDiskGoesToo(what: String, memoryOnly: Bool) throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let store = Self.open(directory)
            store.maintenance.pause()
            Self.store("private", in: store, memoryOnly: memoryOnly)
            let ticket = store.ticket(at: Date())
            #expect(store.buffer.contains(Self.key) != memoryOnly)
            #expect(Self.body(in: store) == "private")
            try Self.news(of: store).setNextLook(.max)
            let child = try ChildProcess("remove", directory: directory, ["WHAT": what])
            #expect(child.nextLine() == "removed")
            #expect(Self.body(in: store) == nil)
            #expect(Self.store("late", in: store, ticket: ticket) == .removedMeanwhile)
            store.flush()
            #expect(Self.body(in: store) == nil)
            child.release()
            _ = child.remainingLines()
        }

        @Test(arguments: removals) func theOtherWayRound(what: String) throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let child = try ChildProcess("hold in memory", directory: directory)
            #expect(child.nextLine() == "held")
            try Self.remove(what, directory)
            child.release()
            #expect(child.remainingLines() == ["nothing"])
        }

        /// In the first moments of a directory, when nobody has made it yet (found by the model).
        @Test(arguments: ["key", "tag", "host", "all"], [true, false])
        func beforeThereIsAFolder(what: String, sharesMemory: Bool) throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.appending("c").path
            let first = Self.open(directory, sharesMemory: sharesMemory, isResting: true)
            let second = Self.open(directory, sharesMemory: sharesMemory, isResting: true)
            Self.store("1", in: first)
            #expect(!FileManager.default.fileExists(atPath: directory))
            switch what {
            case "key": second.remove(Self.key)
            case "tag": second.remove(matching: EntryCriteria(tag: "account"))
            case "host": second.remove(matching: EntryCriteria(hostHash: RequestKey.hostHash("example.com")))
            default: second.removeAll()
            }
            #expect(Self.body(in: first) == nil)
            Self.store("2", in: first)
            #expect(Self.body(in: first) == "2")
        }

        @Test func noMemoryIsLeftOver() throws {
            let scratch = try ScratchDirectory()
            let child = try ChildProcess("segments", directory: scratch.url.path)
            // How many stores share memory at that moment depends on the machine; none keeps more than one segment.
            for _ in 1...2 { #expect((Int(child.nextLine() ?? "") ?? .max) <= 20) }
            child.kill()
            #expect(try Self.segments(of: child.identifier) == 0)
        }

        // MARK: Races

        /// Two stores on a directory: one stores and writes, the other removes at any moment of that.
        @Test(arguments: [true, false]) func aRemovalRacingAWrite(isRemoverFirst: Bool) throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            // The first one maintains the directory: each removes what the other one wrote without a row.
            let stores = [Self.open(directory), Self.open(directory)]
            let (remover, writer) = isRemoverFirst ? (stores[0], stores[1]) : (stores[1], stores[0])
            for store in stores { try Self.news(of: store).setNextLook(.max) }
            for round in 0..<TestLength.pick(plain: 100, long: 5_000) {
                Self.store("\(round)", in: writer)
                let group = DispatchGroup()
                DispatchQueue.global().async(group: group) { writer.flush() }
                DispatchQueue.global().async(group: group) { _ = Self.body(in: writer) }
                // At another moment of the writing each time.
                for _ in 0..<(round % 50) { _ = getppid() }
                remover.remove(matching: EntryCriteria(tag: "account"))
                #expect(Self.body(in: writer) == nil, "round \(round)")
                group.wait()
                writer.flush()
                writer.removeMemory()
                remover.removeMemory()
                #expect(Self.body(in: writer) == nil, "round \(round), on disk")
                #expect(Self.body(in: remover) == nil, "round \(round), on disk")
            }
        }

        @Test func manyThreads() throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let stores = [Self.open(directory), Self.open(directory)]
            for store in stores { try Self.news(of: store).setNextLook(.max) }
            // Each thread has a key of its own, removed through one store and looked up in the other.
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                let key = RequestKey(text: "https://example.com/\(thread)", uri: nil, isForHead: false)
                for round in 0..<TestLength.pick(plain: 60, long: 5_000) {
                    let (first, second) = (stores[round % 2], stores[(round + thread) % 2])
                    Self.store("\(round)", key, in: first)
                    #expect(Self.body(key, in: first) == "\(round)")
                    second.remove(key)
                    #expect(Self.body(key, in: first) == nil)
                    #expect(first.memory.contains(key) == false)
                }
            }
        }

        // MARK: The file

        private static let damages: [String: @Sendable (_ path: String, _ foreign: String) throws -> Void] = [
            "cut": { path, _ in truncate(path, 100) }, "empty": { path, _ in truncate(path, 0) },
            "huge": { path, _ in truncate(path, 10 << 30) },
            "garbage": { path, _ in try Data(testBody(1, length: 500)).write(to: URL(fileURLWithPath: path)) },
            "garbage rows": { path, _ in
                let old = try Data(contentsOf: URL(fileURLWithPath: path))
                try (old + testBody(1, length: 3 * RemovalRow.length)).write(to: URL(fileURLWithPath: path))
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
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let stores = [Self.open(directory), Self.open(directory)]
            for store in stores { try Self.news(of: store).setNextLook(.max) }
            let foreign = scratch.url.path + "/foreign"
            try Data("foreign".utf8).write(to: URL(fileURLWithPath: foreign))
            for _ in 0..<3 {
                Self.store("a", in: stores[0])
                stores[0].flush()
                try Self.damages[name]?(directory + "/removals", foreign)
                try Self.news(of: stores[0]).setNextLook(0)
                // At worst memory forgets it.
                #expect(Self.body(in: stores[0]) == "a")
                try Self.news(of: stores[0]).setNextLook(.max)
                Self.store("b", in: stores[0])
                stores[0].flush()
                #expect(Self.body(in: stores[0]) == "b")
                stores[1].remove(Self.key)
                #expect(Self.body(in: stores[0]) == nil)
                #expect(Self.body(in: stores[1]) == nil)
                if ["folder", "FIFO"].contains(name) { break }
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: foreign)) == Data("foreign".utf8))
            #expect(try SystemFiles().status(at: foreign).permissions != 0o600)
            if ["cut", "empty", "huge", "garbage", "garbage rows", "gone"].contains(name) {
                let status = try SystemFiles().status(at: directory + "/removals")
                #expect(status.permissions == 0o600 && status.size < 64 << 10)
            }
        }

        /// Also where it came after the pass had begun: what is removed from then on finds it, and nothing is taken for written during a
        /// removal.
        @Test func whatAPassWritesIsConfirmedAtItsEnd() throws {
            let scratch = try ScratchDirectory()
            let opened = WeakReference<TieredStore>()
            let files = FaultyFileSystem()
            let store = Self.open(scratch.url.path + "/c", files: files, isResting: true)
            store.flush()
            opened.object = store
            let isArmed = Mutex(true)
            files.rule = { call in
                // A pass looks at the directory when it has seen what there is to write.
                guard call.operation == .statusAt, call.path.hasSuffix("/."), let store = opened.object,
                    isArmed.withLock({ isArmed in
                        defer { isArmed = false }
                        return isArmed
                    })
                else { return nil }
                Self.store("a", in: store)
                return nil
            }
            store.flush()
            #expect(!isArmed.withLock { $0 } && store.buffer.isEmpty)
            #expect(store.unconfirmed.withLock { $0.isEmpty })
            #expect(Self.body(in: store) == "a")
        }

        /// A full disk, no permission, a lock that somebody holds: the others hear that something went, and then anything may.
        @Test func aRowThatCannotBeWritten() throws {
            let scratch = try ScratchDirectory()
            let directory = scratch.url.path + "/c"
            let store = Self.open(directory)
            let files = FaultyFileSystem { call in
                call.name.hasPrefix("removals") && [.write, .rename].contains(call.operation) ? .error(ENOSPC) : nil
            }
            let remover = DiskStore(
                configuration: DiskStore.Configuration(directory: directory, capacity: 1 << 20), fileSystem: files)
            remover.flush()
            Self.store("private", in: store)
            store.flush()
            #expect(Self.body(in: store) == "private")
            try Self.news(of: store).setNextLook(.max)
            remover.remove(Self.key)
            #expect(Self.body(in: store) == nil)
            // A lock.
            Self.store("again", in: store)
            store.flush()
            let file = try SystemFiles().openFile(directory + "/removals", O_RDONLY)
            #expect(try SystemFiles().lockFile(file, exclusively: true))
            files.rule = { _ in nil }
            remover.remove(Self.key)
            #expect(Self.body(in: store) == nil)
            SystemFiles().closeQuietly(file)
        }

        /// Where no memory is shared, the file alone tells: by its length, which can be changed on a full disk too.
        @Test(arguments: ["write", "rename"]) func aFullDiskIsToldEachTime(what: String) throws {
            let scratch = try ScratchDirectory()
            let files = FaultyFileSystem()
            let log = RemovalLog(files: files, paths: DiskPaths(directory: scratch.url.path))
            var state = RemovalLog.State()
            _ = log.news(&state, for: 1, isCertain: false)
            let row = RemovalRow(removal: .key(KeyName(high: 1, low: 2)), writer: 2)
            // With no room for a second row, or with much.
            let limit = what == "rename" ? RemovalLog.Header.length + RemovalRow.length : 4_096
            #expect(log.append(row, limit: limit) != nil)
            #expect(log.news(&state, for: 1, isCertain: false) == .removed([row.removal]))
            files.rule = { call in
                call.name.hasPrefix("removals") && [.write, .rename].contains(call.operation) ? .error(ENOSPC) : nil
            }
            for _ in 0..<100 {
                #expect(log.append(row, limit: limit) == nil)
                #expect(log.news(&state, for: 1, isCertain: false) == .everything)
                #expect(log.news(&state, for: 1, isCertain: false) == nil)
            }
            files.rule = { _ in nil }
            #expect(log.append(row, limit: limit) != nil)
            #expect(log.news(&state, for: 1, isCertain: false) == .removed([row.removal]))
        }

        @Test func theLogIsBounded() throws {
            let scratch = try ScratchDirectory()
            let log = RemovalLog(files: SystemFiles(), paths: DiskPaths(directory: scratch.url.path))
            var (steady, slow) = (RemovalLog.State(), RemovalLog.State())
            _ = log.news(&steady, for: 1, isCertain: false)
            _ = log.news(&slow, for: 1, isCertain: false)
            let limit = RemovalLog.limit(capacity: 1 << 20)
            #expect(limit <= 1 << 14)
            for number in 0..<1_000 {
                let removal = SharedRemoval.key(KeyName(high: 1, low: UInt64(number)))
                #expect(log.append(RemovalRow(removal: removal, writer: 2), limit: limit) != nil)
                // One's own is no news.
                let own = RemovalRow(removal: .everything, writer: 1)
                if number % 3 == 0 { #expect(log.append(own, limit: limit) != nil) }
                #expect(log.news(&steady, for: 1, isCertain: false) == .removed([removal]))
                #expect(log.news(&steady, for: 1, isCertain: true) == nil)
                #expect(try SystemFiles().status(at: scratch.url.path + "/removals").size <= limit)
            }
            #expect(log.news(&slow, for: 1, isCertain: false) == .everything)
            #expect(log.news(&slow, for: 1, isCertain: true) == nil)
        }

        @Test func rowsAreWhole() throws {
            var criteria = EntryCriteria(uriHash: 7, hostHash: 8, tag: "a", urlPrefix: "https://example.com/")
            criteria.storedAfter = Date(timeIntervalSinceReferenceDate: 1.25)
            criteria.storedBefore = .distantFuture
            criteria.accessedBefore = .distantPast
            let removals: [SharedRemoval] = [
                .key(KeyName("a")), .variant(KeyName("b")), .everything, .matching(SharedCriteria(criteria)),
                .matching(SharedCriteria(EntryCriteria(tag: ""))), .matching(SharedCriteria(EntryCriteria())),
            ]
            for removal in removals {
                let row = RemovalRow(removal: removal, writer: 5)
                var output = ByteWriter()
                row.encode(to: &output)
                var bytes = output.finish()
                #expect(bytes.count == RemovalRow.length)
                #expect(bytes.withUnsafeBytes { RemovalRow.decode($0) } == row)
                for bit in 0..<bytes.count * 8 {
                    bytes[bit / 8] ^= 1 << (bit % 8)
                    #expect(bytes.withUnsafeBytes { RemovalRow.decode($0) } == nil)
                    bytes[bit / 8] ^= 1 << (bit % 8)
                }
            }
        }

        /// The hashed criteria say what the plain ones say.
        @Test func criteriaAgree() {
            let time = Date(timeIntervalSinceReferenceDate: 1_000)
            let all: [EntryCriteria] = [
                EntryCriteria(), EntryCriteria(uriHash: Self.key.uriHash), EntryCriteria(hostHash: Self.other.hostHash),
                EntryCriteria(tag: "account"), EntryCriteria(tag: "accoun"), EntryCriteria(tag: ""),
                EntryCriteria(storedAfter: time), EntryCriteria(storedAfter: time + 1),
                EntryCriteria(storedBefore: time),
                EntryCriteria(storedBefore: time + 1), EntryCriteria(accessedBefore: time),
                EntryCriteria(accessedBefore: time + 1), EntryCriteria(urlPrefix: "https://example.com"),
                EntryCriteria(urlPrefix: "https://example.com/ab"), EntryCriteria(urlPrefix: ""),
                EntryCriteria(tag: "account", urlPrefix: "https://example.org"),
            ]
            for key in [Self.key, Self.other] {
                for (tags, url) in [([], key.text), (["account", "x"], key.text), ([""], nil)] as [([String], String?)]
                {
                    let metadata = StoredEntry.test(Data(), storedAt: time, tags: tags, url: url).metadata
                    for criteria in all {
                        let removal = SharedRemoval.matching(SharedCriteria(criteria))
                        let isShared = removal.concerns(
                            key.name, metadata, uriHash: key.uriHash, hostHash: key.hostHash)
                        #expect(isShared == criteria.matches(key, metadata), "\(criteria)")
                    }
                }
            }
        }
    }

    extension TieredStore {
        /// A store as a process has it, over its disk.
        static func over(_ disk: DiskStore, _ maintenance: MaintenanceQueue) -> TieredStore {
            TieredStore(
                configuration: TieredStore.Configuration(
                    memoryCapacity: 8 << 20, memoryCountLimit: 1_000, maximumEntryShare: 0.5,
                    writeBufferLimit: 8 << 20),
                disk: disk, maintenance: maintenance, fallbacks: [], hub: EventHub())
        }

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

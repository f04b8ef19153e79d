#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What children do for the tests below.
    enum ProcessScenarios {
        static let key = RequestKey.test("a")
        static let keys = 50

        private static func open(_ directory: String, files: any FileSystem = SystemFiles()) -> DiskStore {
            DiskStore(
                configuration: .init(directory: directory, capacity: 100 << 20), fileSystem: files,
                report: { if $0 == .becameOwner { ChildProcess.say("owner") } })
        }

        /// Four threads store, read and remove keys that the other processes use, too.
        static func share(_ directory: String) {
            let store = open(directory)
            let process = Int(getpid())
            onThreads(4) { thread in
                var random = TestRandom(process * 4 + thread)
                for step in 0..<TestLength.pick(plain: 100, long: 1_000) {
                    let key = Int.random(in: 0..<keys, using: &random)
                    switch step % 10 {
                    case 0..<5:
                        if let body = store.body(.test("\(key)")),
                            NumberedBody.number(of: body).map({ $0 % keys }) != key
                        {
                            ChildProcess.say("wrong \(key)")
                        }
                    case 5..<9:
                        let value = key + keys * (step * 16 + process % 4 * 4 + thread)
                        store.store(
                            .test(NumberedBody.make(value), sequence: UInt64(step)), for: .test("\(key)"))
                    default: store.remove(.test("\(key)"))
                    }
                }
            }
            store.flush()
            ChildProcess.say("shared")
            ChildProcess.waitForParent()
            store.flush()
            store.close()
            ChildProcess.say("end")
        }

        /// Maintains the directory until it is killed.
        static func hold(_ directory: String) {
            let store = open(directory)
            store.store(.test(testBody(1)), for: key)
            store.flush()
            ChildProcess.say("held")
            ChildProcess.waitForParent()
            store.close()
        }

        /// Owns a directory whose file `lock` was deleted, until it hears that everything may have been removed.
        static func take(_ directory: String) {
            let store = open(directory)
            store.observeChanges { if $0.contains(.removedAll) { ChildProcess.say("forgets") } }
            store.store(.test(testBody(1)), for: key)
            store.flush()
            ChildProcess.say("taken")
            ChildProcess.waitForParent()
            store.lookLater()
            ChildProcess.say(store.isOwner ? "still owner" : "no owner")
            ChildProcess.waitForParent()
        }

        /// Stops itself in the middle of writing a record.
        static func stop(_ directory: String) {
            let files = FaultyFileSystem()
            let store = open(directory, files: files)
            store.flush()
            let count = Mutex(0)
            files.rule = { call in
                guard call.isRecord, call.operation == .write else { return nil }
                let number = count.next()
                if number == 1 { return .short(50) }
                if number == 2 {
                    ChildProcess.say("stopping")
                    raise(SIGSTOP)
                }
                return nil
            }
            store.store(.test(testBody(1)), for: key)
            store.flush()
            ChildProcess.say("written")
            ChildProcess.waitForParent()
        }

        /// Forks, and lets the child try everything.
        static func fork(_ directory: String) throws {
            typealias Fork = @convention(c) () -> pid_t
            let fork = unsafeBitCast(try #require(dlsym(nil, "fork")), to: Fork.self)
            let store = open(directory)
            store.store(.test(testBody(1)), for: key)
            store.flush()
            store.maintenance.pause()
            let folder = URL(fileURLWithPath: directory + "/cache")
            let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: folder)
            let request = Responses.request("/a")
            cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: request)
            cache.flush()
            (cache.store.disk as? DiskStore)?.maintenance.pause()
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "newer"), for: request)
            let recordNames = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/records")
            let before = try Data(contentsOf: URL(fileURLWithPath: directory + "/index.plist"))
            let removals = try? Data(contentsOf: URL(fileURLWithPath: folder.path + "/changes"))
            let child = fork()
            if child == 0 {
                _ = cache.cachedResponse(for: request)
                cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "by the child"), for: request)
                cache.store.close()
                store.store(.test(testBody(2)), for: .test("b"))
                store.touch(key)
                store.remove(key)
                store.removeAll()
                cache.removeAllCachedResponses()
                store.runPass(isFlush: true)
                store.close(withPass: true)
                store.close(withPass: false)
                _exit(0)
            }
            let status = ChildProcess.status(of: child)
            ChildProcess.say(status == 0 ? "child ended" : "child failed")
            let after = try Data(contentsOf: URL(fileURLWithPath: directory + "/index.plist"))
            ChildProcess.say(before == after ? "same index" : "index changed")
            let records = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/records")
            ChildProcess.say(Set(records) == Set(recordNames) ? "same records" : "other records")
            let removalsAfter = try? Data(contentsOf: URL(fileURLWithPath: folder.path + "/changes"))
            ChildProcess.say(removals == removalsAfter ? "same removals" : "other removals")
            let isThere = cache.cachedResponse(for: request)?.data == Data("newer".utf8)
            ChildProcess.say(isThere ? "stored by the parent" : "lost")
            ChildProcess.say("forked")
            ChildProcess.waitForParent()
            store.close()
        }

        static func limits(_ directory: String) {
            signal(SIGXFSZ, SIG_IGN)
            let store = open(directory)
            store.store(.test(testBody(1)), for: key)
            store.flush()
            func names() -> Int {
                ((try? FileManager.default.contentsOfDirectory(atPath: directory + "/records")) ?? []).count
            }
            // RLIMIT_FSIZE: no file may grow beyond it.
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            var small = rlimit(rlim_cur: 5000, rlim_max: limit.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &small)
            store.store(.test(testBody(2, length: 20_000), sequence: 2), for: key)
            store.flush()
            let kept = store.body(key) == testBody(1) && names() == 1
            ChildProcess.say(kept ? "size: kept" : "size: lost")
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            store.store(.test(testBody(2, length: 20_000), sequence: 2), for: key)
            store.flush()
            ChildProcess.say(store.body(key) == testBody(2, length: 20_000) ? "size: works again" : "size: broken")
            // RLIMIT_NOFILE: not one more.
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            small = rlimit(rlim_cur: 3, rlim_max: limit.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &small)
            let isMiss = store.variants(of: key).isEmpty
            store.store(.test(testBody(3)), for: .test("b"))
            store.flush()
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            ChildProcess.say(isMiss && names() == 1 ? "files: kept" : "files: lost")
            store.store(.test(testBody(3)), for: .test("b"))
            store.flush()
            let works = store.body(key) == testBody(2, length: 20_000) && store.body(.test("b")) == testBody(3)
            ChildProcess.say(works ? "files: works again" : "files: broken")
        }

        /// Run without root's rights, which pass over file modes.
        static func nobody(_ directory: String) {
            let store = open(directory)
            for number in 0..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
            store.flush()
            chmod(directory, 0)
            let isMiss = store.variants(of: .test("1")).isEmpty
            store.store(.test(testBody(50)), for: .test("50"))
            store.flush()
            let isTold = store.openingError != nil
            chmod(directory, 0o700)
            ChildProcess.say(isMiss && isTold ? "000: error" : "000: no error")
            store.flush()
            let isThere = (0..<20).allSatisfy { store.body(.test("\($0)")) == testBody($0) }
            ChildProcess.say(isThere && store.openingError == nil ? "000: works again" : "000: broken")
            // Records that cannot be removed: lookups work, clearing still hides them.
            chmod(directory + "/records", 0o500)
            store.capacity = 0
            store.flush()
            store.capacity = 100 << 20
            store.store(.test(testBody(51)), for: .test("51"))
            store.flush()
            let stillThere = (0..<20).allSatisfy { store.body(.test("\($0)")) == testBody($0) }
            ChildProcess.say(stillThere && !store.contains(.test("51")) ? "500: reads" : "500: broken")
            store.remove(.test("1"))
            // Another cache finds a file of that name, and nothing in it.
            var reading = DiskConfiguration(directory: directory, capacity: 100 << 20)
            reading.isReadOnly = true
            let other = DiskStore(configuration: reading)
            let isRemoved = !store.contains(.test("1")) && !other.contains(.test("1")) && other.contains(.test("2"))
            ChildProcess.say(isRemoved ? "500: removed" : "500: not removed")
            chmod(directory + "/records", 0o700)
            store.removeAll()
            store.flush()
            ChildProcess.say(store.usage == 0 ? "500: works again" : "500: broken")
            store.close()
            ChildProcess.say(lostModes(directory) ?? "the one key")
        }

        /// A folder cannot be searched while one of two caches removes one key, by the owner or the guest, and alone.
        /// Nothing else is lost, and the key stays removed. Nil, or what went wrong.
        private static func lostModes(_ directory: String) -> String? {
            let keys = (0..<6).map { RequestKey.test("\($0)") }
            let removals: [(name: String, make: (DiskStore) -> Void)] = [
                ("key", { $0.remove(keys[1]) }),
                ("URL", { $0.remove(matching: EntryCriteria(uri: keys[1].uri)) }),
                ("tag", { $0.remove(matching: EntryCriteria(tags: ["one"])) }),
            ]
            for place in ["", "/records"] {
                for mode: mode_t in [0, 0o400] {
                    for remover in ["alone", "owner", "guest"] {
                        for removal in removals {
                            let store = open(directory)
                            store.flush()
                            let guest = remover == "alone" ? nil : open(directory)
                            // A pass that meets the folder like this refuses stores for a second.
                            for cache in [store, guest] { cache?.maintenance.pause() }
                            for (number, key) in keys.enumerated() {
                                let tags = number == 1 ? ["one"] : []
                                (number % 2 == 0 ? store : guest ?? store)
                                    .store(.test(testBody(number), tags: tags), for: key)
                            }
                            chmod(directory + place, mode)
                            removal.make(remover == "guest" ? guest ?? store : store)
                            chmod(directory + place, 0o700)
                            store.store(.test(testBody(6)), for: .test("6"))
                            for cache in [store, guest] { cache?.flush() }
                            for cache in [guest, store] { cache?.close() }
                            let after = open(directory)
                            let left = (0...6).filter { after.body(.test("\($0)")) == testBody($0) }
                            after.removeAll()
                            after.close()
                            let what = "\(place) \(mode) \(remover) \(removal.name): \(left)"
                            if left != [0, 2, 3, 4, 5, 6] { return what }
                        }
                    }
                }
            }
            return nil
        }
    }

    @Suite("Several processes", .fewAtATime) struct ProcessesTests {
        private let key = ProcessScenarios.key
        private let fixture: DiskFixture

        init() throws { fixture = try DiskFixture() }

        @Test("Four processes with four threads each: right bytes always, usage converges, one owner")
        func fourProcesses() throws {
            let children = try (0..<4).map { _ in try ChildProcess("share", directory: fixture.directory) }
            var owners = 0
            for child in children {
                while let line = child.nextLine(), line != "shared" {
                    #expect(line == "owner")
                    owners += 1
                }
            }
            #expect(owners == 1)
            // One after the other hands over.
            for child in children {
                child.release()
                #expect(child.remainingLines().filter { $0 != "owner" } == ["end"])
            }
            let store = fixture.open()
            for _ in 0..<2 {
                for key in 0..<ProcessScenarios.keys {
                    guard let body = store.body(.test("\(key)")) else { continue }
                    #expect(NumberedBody.number(of: body).map { $0 % ProcessScenarios.keys } == key)
                }
                store.flush()
            }
            #expect(store.usage == fixture.allocatedByRecords())
            #expect(store.entryCount == fixture.recordNames().count)
        }

        @Test("The maintaining process is killed: another takes over") func takingOver() throws {
            let child = try ChildProcess("hold", directory: fixture.directory)
            #expect(child.nextLine() == "owner")
            #expect(child.nextLine() == "held")
            let store = fixture.open()
            store.flush()
            #expect(store.body(key) == testBody(1))
            #expect(fixture.log.count { $0 == .becameOwner } == 0)
            store.store(.test(testBody(2), sequence: 2), for: key)
            store.flush()
            child.kill()
            store.flush()
            #expect(fixture.log.count { $0 == .becameOwner } == 1)
            #expect(store.body(key) == testBody(2))
            #expect(store.usage == fixture.allocatedByRecords())
        }

        /// A cleaner of old files deletes `lock`, which is never written again. Another process makes a new one.
        @Test func anOwnerWhoseLockWasDeletedLeaves() throws {
            let changes = Mutex<[DirectoryChange]>([])
            let store = fixture.open()
            store.observeChanges { new in changes.withLock { $0 += new } }
            store.flush()
            store.maintenance.pause()
            try SystemFiles().unlink(fixture.directory + "/lock")
            let child = try ChildProcess("take", directory: fixture.directory)
            #expect(child.nextLine() == "owner")
            #expect(child.nextLine() == "taken")
            #expect(store.isOwner, "nothing has told of it yet")
            store.lookLater()
            #expect(!store.isOwner)
            #expect(changes.withLock { $0 }.contains(.removedAll), "the other may have removed something")
            #expect(store.body(key) == testBody(1))
            child.release()
            #expect(child.nextLine() == "forgets", "this cache may have removed something")
            #expect(child.nextLine() == "still owner")
            store.remove(key)
            child.kill()
            store.flush()
            #expect(store.isOwner)
            #expect(store.body(key) == nil)
        }

        /// Nobody else has come.
        @Test func anOwnerWhoseLockWasDeletedMakesItAnew() throws {
            let store = fixture.open()
            store.store(.test(testBody(1)), for: key)
            store.flush()
            store.maintenance.pause()
            try SystemFiles().unlink(fixture.directory + "/lock")
            store.lookLater()
            #expect(store.isOwner)
            #expect(store.body(key) == testBody(1))
            let child = try ChildProcess("hold", directory: fixture.directory)
            #expect(child.nextLine() == "held", "it is a guest")
            child.release()
            store.flush()
            #expect(store.usage == fixture.allocatedByRecords())
        }

        /// An app that deletes the directory deletes `lock` first. Deleting fails if a new one appears meanwhile.
        @Test func aPassThatFindsNoLockMakesNone() throws {
            let store = fixture.open()
            store.flush()
            let lock = fixture.directory + "/lock"
            try SystemFiles().unlink(lock)
            store.maintenance.perform {
                store.nextFolderCheck.set(0)
                store.runPass(isFlush: false)
                #expect(!FileManager.default.fileExists(atPath: lock))
                #expect(!store.isOwner)
                store.runPass(isFlush: false)
                #expect(FileManager.default.fileExists(atPath: lock), "the directory is still there")
                #expect(store.isOwner)
            }
        }

        @Test("A forked child never writes the index or frees the lock") func forking() throws {
            let child = try ChildProcess("fork", directory: fixture.directory)
            var lines: [String] = []
            while let line = child.nextLine() {
                lines.append(line)
                if line == "forked" { break }
            }
            #expect(
                lines == [
                    "owner", "child ended", "same index", "same records", "same removals",
                    "stored by the parent", "forked",
                ])
            // The parent still has the lock.
            let store = fixture.open()
            store.flush()
            #expect(fixture.log.count { $0 == .becameOwner } == 0)
            #expect(store.variants(of: .test("b")).isEmpty)
            child.release()
            _ = child.remainingLines()
            store.flush()
            #expect(fixture.log.count { $0 == .becameOwner } == 1)
        }

        @Test("No descriptor leaks over exec, and every open says so") func descriptors() throws {
            let files = FaultyFileSystem()
            let store = fixture.open(files: files)
            store.store(.test(testBody(1)), for: key)
            store.flush()
            store.removeAll()
            store.flush()
            let flags = files.openFlags
            #expect(flags.count > 5)
            for flag in flags { #expect(flag & O_CLOEXEC != 0 && flag & O_NOFOLLOW != 0) }
            // The lock is open all the time. `ls` is started with everything that may be inherited.
            let output = fixture.scratch.appending("output").path
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT, 0o600)
            var arguments: [UnsafeMutablePointer<CChar>?] = []
            for argument in ["ls", "-l", "/proc/self/fd"] { arguments.append(strdup(argument)) }
            arguments.append(nil)
            var child: pid_t = 0
            #expect(posix_spawn(&child, "/bin/ls", &actions, nil, &arguments, environ) == 0)
            _ = ChildProcess.status(of: child)
            for argument in arguments { free(argument) }
            posix_spawn_file_actions_destroy(&actions)
            let listing = try String(contentsOfFile: output, encoding: .utf8)
            #expect(listing.contains(" 0 ->"))
            #expect(!listing.contains(fixture.directory + "/"))
        }

        @Test("A process stopped in mid-write: others go on, and its fresh file is not swept") func stopped()
            throws
        {
            // The cache that maintains the directory removes what looks torn.
            var store = fixture.open()
            store.flush()
            let child = try ChildProcess("stop", directory: fixture.directory)
            #expect(child.nextLine() == "stopping")
            #expect(child.waitUntilStopped())
            for _ in 0..<2 {
                #expect(store.variants(of: key).isEmpty)
                store.flush()
                store.store(.test(testBody(3)), for: .test("b"))
                store.flush()
                #expect(store.body(.test("b")) == testBody(3))
                #expect(fixture.recordNames().count == 2)
                store.close()
                store = fixture.open()
            }
            // Otherwise the child, once it runs again, might become the owner.
            store.flush()
            child.signal(SIGCONT)
            #expect(child.nextLine() == "written")
            #expect(store.body(key) == testBody(1))
            child.kill()
            store.flush()
            #expect(store.body(key) == testBody(1))
            #expect(store.usage == fixture.allocatedByRecords())
        }

        @Test("RLIMIT_FSIZE and RLIMIT_NOFILE: dropped, nothing deleted, works again") func limits()
            throws
        {
            let lines = try ChildProcess("limits", directory: fixture.directory).remainingLines()
            #expect(lines == ["owner", "size: kept", "size: works again", "files: kept", "files: works again"])
        }

        @Test(
            "Modes 000 and 500, seen without root's rights",
            .enabled(if: ChildProcess.canBeNobody, "as root it needs setpriv, and a test binary that others may run"))
        func otherUser() throws {
            chmod(fixture.scratch.url.path, 0o777)
            let lines = try ChildProcess("nobody", directory: fixture.directory, asNobody: true).remainingLines()
            #expect(
                lines.filter { $0 != "owner" } == [
                    "000: error", "000: works again", "500: reads", "500: removed", "500: works again",
                    "the one key",
                ])
        }

        @Test(
            "A tmpfs of 1 MB and 20 inodes: dropped, old value kept, no leftovers, works again",
            .enabled(if: ScratchMount.hasTmpfs, "needs root, and the right to mount"),
            arguments: ["size=1m,nr_inodes=1000", "size=4m,nr_inodes=20"])
        func fullFileSystem(options: String) throws {
            let mount = try ScratchMount(.tmpfs, options)
            let log = EventLog()
            let directory = mount.path + "/cache"
            let store = DiskStore(configuration: .init(directory: directory, capacity: 1 << 30), report: log.report)
            store.store(.test(testBody(0), sequence: 1), for: key)
            store.flush()
            let results = (0..<100).map { number in
                store.store(.test(testBody(number, length: 30_000)), for: .test("\(number)"))
            }
            store.flush()
            store.store(.test(testBody(1, length: 300_000), sequence: 2), for: key)
            store.flush()
            #expect(results.filter { $0.refusal == DiskWriteResult.words(ENOSPC) }.count > 10)
            #expect(store.body(key) == testBody(0))
            let names = try FileManager.default.contentsOfDirectory(atPath: directory + "/records")
            #expect(store.entryCount == names.count)
            for number in 0..<100 {
                if let body = store.body(.test("\(number)")) { #expect(body == testBody(number, length: 30_000)) }
            }
            for number in 0..<100 { store.remove(.test("\(number)")) }
            store.store(.test(testBody(1, length: 300_000), sequence: 2), for: key)
            store.flush()
            #expect(store.body(key) == testBody(1, length: 300_000))
            #expect(store.entryCount == 1)
            store.close()
            withExtendedLifetime(mount) {}
        }
    }
#endif

#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache
    @testable import DiskURLCacheTools

    /// What one cache of a directory removed, the others stop to serve within a second: from memory, from disk, and by
    /// a late answer.
    @Suite(.fewAtATime) struct SharedRemovalTests {
        typealias Removal = SharedDirectory.Removal

        private let directory: SharedDirectory

        init() throws { directory = try SharedDirectory() }

        /// A removal of one request's response leaves what others have of the URL.
        @Test func whatOthersHaveOfTheURLStays() {
            let (remover, other) = (directory.open(), directory.open())
            let requests = (0..<5).map { Responses.request("/a", fields: ["Authorization": "Bearer \($0)"]) }
            for request in requests {
                remover.storeCachedResponse(Responses.cached(Responses.url("/a")), for: request)
            }
            directory.clock.advance(by: 1)
            remover.removeCachedResponse(for: requests[0])
            remover.forgetMemory()
            for cache in [remover, other, directory.open()] {
                #expect(requests.map { cache.cachedResponse(for: $0) != nil } == [false, true, true, true, true])
            }
        }

        /// Memory may have read the record just before another cache removed it. A change of the response, such as by a
        /// 304, does not store it again behind the removal.
        @Test(arguments: [true, false]) func aChangeDuringARemovalBringsNothingBack(isByOwner: Bool) throws {
            let files = FaultyFileSystem()
            let first = directory.open(isByOwner ? files : SystemFiles())
            let second = directory.open(isByOwner ? SystemFiles() : files)
            let (remover, other) = isByOwner ? (first, second) : (second, first)
            remover.put("private")
            let rows = Mutex(0)
            files.rule = { call in
                if call.operation == .unlink, call.isRecord { #expect(other.foundLater() == "private") }
                if call.operation == .write, call.name == "changes", rows.next() == 2 { other.pin() }
                return nil
            }
            remover.remove(.key)
            #expect(rows.withLock { $0 } >= 2, "the pin came between the removal and its second row")
            #expect(other.foundLater() == nil)
            #expect(try directory.records == [])
        }

        /// A cache that takes itself to be alone writes it no more than others do: another one may have come a moment
        /// ago. Memory goes on having what the origin has confirmed; a pin says that nothing is on disk.
        @Test func whatTheDiskHasLostIsNotWrittenAgainFromMemory() throws {
            let cache = directory.open()
            cache.put("body")
            for record in try directory.records {
                try FileManager.default.removeItem(at: directory.url.appendingPathComponent("records/" + record))
            }
            let key = try #require(cache.key(for: Responses.request("/a")))
            let (store, now) = (cache.store, Date())
            let found = try #require(store.lookup(key).variants().first?.metadata)
            let confirmed = store.update(found, of: key, ticket: store.ticket(at: now)) { $0.storedAt = now + 1 }
            #expect(confirmed?.storedAt == now + 1)
            #expect(try directory.records == [] && cache.found() == "body")
            #expect(!cache.setPinned(true, for: Responses.request("/a")))
            #expect(try directory.records == [] && cache.found() == nil)
        }

        // MARK: Processes

        static let removals = Removal.allCases.map(\.rawValue) + ["inspector"]

        /// The other process: opens the directory, and removes when it is told to.
        static func removeInChild(_ directory: String) throws {
            let url = URL(fileURLWithPath: directory, isDirectory: true)
            let cache = DiskURLCache(memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: url)
            cache.flush()
            ChildProcess.say("opened")
            _ = readLine()
            let what = try #require(ChildProcess.argument("WHAT"))
            if let removal = Removal(rawValue: what) {
                for path in ["/a", "/a-memory", "/a-late"] { cache.remove(removal, path) }
            } else {
                let inspector = try DiskURLCache.Inspector(directory: url)
                let records = try inspector.records().filter { $0.url == "https://example.com/a" }
                #expect(inspector.remove(records) == 1)
            }
            ChildProcess.say("removed")
            ChildProcess.waitForParent()
        }

        @Test(arguments: removals, [true, false])
        func whatAProcessRemovedIsGoneInTheOthersWithinASecond(what: String, isByOwner: Bool) async throws {
            func child() throws -> ChildProcess {
                let child = try ChildProcess("remove", directory: directory.url.path, ["WHAT": what])
                #expect(child.nextLine() == "opened")
                return child
            }
            let owner = isByOwner ? try child() : nil
            let cache = directory.open()
            let remover = try owner ?? child()
            cache.put("private", "/a")
            cache.put("private", "/a-memory", inMemoryOnly: true)
            cache.put("other", "/other", tags: [])
            let late = await HeldLoad("/a-late", from: cache)
            #expect(cache.found("/a") == "private" && cache.found("/a-memory") == "private")
            remover.send("")
            #expect(remover.nextLine() == "removed")
            #expect(cache.foundLater("/a") == nil)
            #expect(!cache.contains(Responses.request("/a")))
            let isOtherRemoved = ["host", "since", "all"].contains(what)
            #expect(cache.found("/other") == (isOtherRemoved ? nil : "other"))
            // An inspector takes a record off the disk, and no more.
            let isOfRecord = what == "inspector"
            #expect(cache.found("/a-memory") == (isOfRecord ? "private" : nil))
            try await late.end("late")
            #expect(cache.foundLater("/a-late") == (isOfRecord ? "late" : nil))
            // What is stored afterwards stays.
            cache.put("new", "/a")
            #expect(cache.foundLater("/a") == "new")
            cache.forgetMemory()
            #expect(cache.foundLater("/a") == "new")
            remover.release()
            _ = remover.remainingLines()
            #expect(cache.foundLater("/a") == "new")
        }

        /// A removal by tag reads the head of each record. While it does, responses are found and stored.
        @Test func aRemovalThatReadsManyRecordsHoldsUpNobodyElse() async {
            let (gate, hasBegun, isDone, isRemoved) = (Gate(), Flag(), Flag(), Flag())
            let files = FaultyFileSystem()
            defer { gate.open() }
            let cache = directory.open(files)
            for number in 0..<20 { cache.put("private", "/\(number)") }
            cache.put("other", "/other", tags: [])
            cache.flush()
            cache.forgetMemory()
            let remover = Mutex<pthread_t?>(nil)
            files.rule = { call in
                guard call.isRecord, call.operation == .read, remover.withLock({ $0 == pthread_self() }) else {
                    return nil
                }
                hasBegun.set()
                gate.wait()
                return nil
            }
            DispatchQueue.global().async {
                remover.withLock { $0 = pthread_self() }
                cache.remove(.tag)
                isRemoved.set()
            }
            await hasBegun.isSet()
            DispatchQueue.global().async {
                // Keys of each stripe.
                for number in 0..<64 {
                    cache.put("new", "/new-\(number)", tags: [])
                    #expect(cache.found("/new-\(number)") == "new")
                }
                #expect(cache.found("/other") == "other")
                isDone.set()
            }
            await isDone.isSet()
            #expect(!isRemoved.value)
            gate.open()
            await isRemoved.isSet()
            cache.forgetMemory()
            for number in 0..<20 { #expect(cache.found("/\(number)") == nil) }
            for number in 0..<64 { #expect(cache.found("/new-\(number)") == "new") }
        }

        /// Whoever asks for nothing but whether it is there.
        @Test func whatAnotherCacheRemovedIsNotContained() async {
            let cache = directory.open()
            let remover = directory.open()
            cache.put("private", inMemoryOnly: true)
            #expect(cache.contains(Responses.request("/a")))
            // No pass looks in its place.
            cache.rest()
            remover.remove(.key)
            await eventually("the removal to be seen") { !cache.contains(Responses.request("/a")) }
            cache.wake()
        }

        // MARK: At a bad moment

        /// In the first moments of a directory, when no cache has made it yet (found by the model).
        @Test(arguments: Removal.told) func whatIsRemovedBeforeThereIsAFolderIsGone(what: Removal) {
            let first = directory.open(SystemFiles(), .resting)
            let second = directory.open(SystemFiles(), .resting)
            first.put("1", inMemoryOnly: true)
            second.remove(what)
            #expect(first.foundLater() == nil)
            first.put("2")
            #expect(first.foundLater() == "2")
            for cache in [first, second] { cache.wake() }
        }

        /// The remover does not find what is written at that moment, and the writer hears of the removal later.
        @Test(arguments: Removal.told) func whatIsWrittenMeanwhileIsRemovedToo(what: Removal) {
            let files = FaultyFileSystem()
            let writer = directory.open(files)
            let remover = directory.open()
            let isArmed = Mutex(true)
            files.rule = { call in
                // Before the file is made.
                if call.isRecord, call.operation == .open, isArmed.disarm() { remover.remove(what) }
                return nil
            }
            writer.put("private")
            #expect(!isArmed.withLock { $0 })
            #expect(writer.foundLater() == nil)
            for cache in [writer, remover, directory.open()] {
                cache.forgetMemory()
                #expect(cache.foundLater() == nil)
            }
        }

        /// A folder that has grown is replaced once it is empty. Who is not told finds that out after it stored
        /// something.
        @Test(
            .enabled(if: ScratchDirectory.foldersGrow, ScratchDirectory.needsFoldersThatGrow), arguments: [true, false])
        func whatIsStoredWhileAnotherCacheReplacesTheFolderStays(isBefore: Bool) throws {
            let files = FaultyFileSystem()
            let owner = directory.open(files)
            let other = directory.open()
            let records = directory.url.path + "/records"
            try ScratchDirectory.grow(records)
            owner.put("evicted")
            owner.flush()
            @Sendable func storeByOther() {
                other.put("new", "/new")
                other.flush()
            }
            if isBefore {
                files.rule = { call in
                    if call.name == "records", call.operation == .removeDirectory { storeByOther() }
                    return nil
                }
            }
            #expect(other.foundLater("/new") == nil)
            owner.rest()
            owner.diskCapacity = 1
            // As the capacity says, once, and not again for what is stored meanwhile.
            let disk = try #require(owner.store.diskStore)
            disk.maintenance.perform { _ = disk.evictIfNeeded() }
            owner.diskCapacity = 64 << 20
            owner.wake()
            // Another folder may have the number of the one before.
            let isLarge = try SystemFiles().status(at: records).allocated > 64 << 10
            #expect(isLarge == isBefore)
            if !isBefore { storeByOther() }
            #expect(other.foundLater("/new") == "new")
            #expect(directory.open().foundLater("/new") == "new")
        }

        // MARK: Races

        /// Two caches on a directory: one stores, and the other removes at any moment of the store.
        @Test(arguments: [true, false]) func aRemovalRacingAWrite(isRemoverFirst: Bool) throws {
            // The first cache owns the directory. Each of them removes records that the other wrote without a row.
            let caches = [directory.open(), directory.open()]
            let (remover, writer) = isRemoverFirst ? (caches[0], caches[1]) : (caches[1], caches[0])
            for round in 0..<TestLength.pick(plain: 100, long: 1_000) {
                let group = DispatchGroup()
                DispatchQueue.global().async(group: group) { writer.put("\(round)") }
                DispatchQueue.global().async(group: group) { _ = writer.foundLater() }
                // At another moment of the writing each time.
                for _ in 0..<(round % 50) * 20 { _ = getppid() }
                remover.remove(.tag)
                group.wait(for: "the store and the lookup")
                // Either it was stored after the removal, or it is gone everywhere.
                let left = writer.foundLater()
                // What was asked for before the removal is a miss for its remover for some time.
                let other = remover.foundLater()
                #expect(other == nil || other == left, "round \(round)")
                remover.remove(.tag)
                #expect(writer.foundLater() == nil, "round \(round)")
                writer.flush()
                for cache in [writer, remover] { cache.forgetMemory() }
                #expect(writer.foundLater() == nil, "round \(round), on disk")
                #expect(remover.foundLater() == nil, "round \(round), on disk")
            }
        }

        // MARK: The file of changes

        private static let damages: [String: @Sendable (_ path: String, _ foreign: String) throws -> Void] = [
            "cut": { path, _ in truncate(path, 100) }, "empty": { path, _ in truncate(path, 0) },
            "huge": { path, _ in truncate(path, 10 << 30) },
            "garbage": { path, _ in try testBody(1, length: 500).write(to: URL(fileURLWithPath: path)) },
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

        @Test(arguments: damages.keys.sorted()) func aDamagedFileHidesNoRemoval(_ name: String) throws {
            let caches = [directory.open(), directory.open()]
            let foreign = directory.scratch.appending("foreign")
            try Data("foreign".utf8).write(to: foreign)
            for _ in 0..<3 {
                caches[0].put("a")
                caches[0].flush()
                // Each cache that finds the damage makes a new file, which the other cache takes for a removal. So
                // only one of them runs at a time.
                caches[1].rest()
                try Self.damages[name]?(directory.changes, foreign.path)
                // At worst memory forgets it.
                #expect(caches[0].foundLater() == "a")
                caches[0].put("b")
                caches[0].flush()
                // A folder cannot be replaced: it is a removal of everything at each look.
                if name != "folder" { #expect(caches[0].foundLater() == "b") }
                caches[1].wake()
                caches[1].remove(.key)
                #expect(caches[0].foundLater() == nil)
                #expect(caches[1].foundLater() == nil)
                if ["folder", "FIFO"].contains(name) { break }
            }
            #expect(try Data(contentsOf: foreign) == Data("foreign".utf8))
            #expect(try SystemFiles().status(at: foreign.path).permissions != 0o600)
            if ["cut", "empty", "huge", "garbage", "garbage rows", "gone"].contains(name) {
                let status = try SystemFiles().status(at: directory.changes)
                #expect(status.permissions == 0o600 && status.size <= 64 << 10)
            }
        }

        /// A full disk: each removal is told, by an empty file.
        @Test func aFullDiskIsToldEachTime() throws {
            let cache = directory.open()
            let files = FaultyFileSystem {
                let isOfChanges = $0.name == "changes" || $0.name.hasPrefix("incoming-")
                return $0.operation == .write && isOfChanges ? .error(ENOSPC) : nil
            }
            let remover = directory.open(files)
            for number in 0..<5 {
                cache.put("\(number)")
                cache.flush()
                #expect(cache.foundLater() == "\(number)")
                // While a pass of the owner looks whether it is alone, nobody replaces the file; the next look does.
                cache.rest()
                remover.remove(.key)
                #expect(cache.foundLater() == nil, "\(number)")
                cache.wake()
            }
            #expect(files.faults >= 10, "the row, and the first row of the new file")
            files.rule = { _ in nil }
            cache.put("again")
            cache.flush()
            remover.remove(.key)
            #expect(cache.foundLater() == nil)
            #expect(try SystemFiles().status(at: directory.changes).size > 0)
        }
    }
#endif

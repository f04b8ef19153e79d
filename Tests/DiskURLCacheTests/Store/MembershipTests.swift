#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// A cache that is alone pays for nobody else; one that comes, at any moment, is told what it must know.
    @Suite(.fewAtATime) struct MembershipTests {
        typealias Removal = SharedDirectory.Removal

        private let directory: SharedDirectory

        init() throws { directory = try SharedDirectory() }

        private var hasChanges: Bool { FileManager.default.fileExists(atPath: directory.changes) }

        // MARK: Alone

        /// None of its calls looks for others but one, before the first or after the last.
        @Test func aCacheThatIsAloneMakesTheCallsOfTheFilesOnly() {
            let files = FaultyFileSystem()
            let cache = directory.open(files)
            // With a row of something: a cache that has none lists the folder first.
            cache.put("a", "/a")
            cache.rest()
            /// The fewest calls of several times: once a second the folder is looked at, too.
            func fewestCalls(_ act: (_ path: String) -> Void) -> Int {
                let counts = (0..<3).map { number in
                    _ = files.takeCalls()
                    act("/\(number)")
                    return files.takeCalls().count
                }
                return counts.min() ?? 0
            }
            #expect(fewestCalls { cache.put("b", $0) } <= 6)
            #expect(fewestCalls { _ = cache.found($0) } == 0)
            cache.forgetMemory()
            var bodies: [String?] = []
            #expect(fewestCalls { bodies.append(cache.found($0)) } <= 4)
            #expect(bodies == ["b", "b", "b"])
            #expect(fewestCalls { cache.pin($0) } <= 6)
            #expect(fewestCalls { cache.remove(.key, $0) } <= 2)
            #expect(fewestCalls { cache.remove(.resource, $0) } <= 1)
            #expect(fewestCalls { cache.put("m", $0, inMemoryOnly: true) } <= 1)
            #expect(!hasChanges)
            cache.wake()
        }

        /// A guest that is killed while it writes never says that it has written. Once it is gone, nothing is probed.
        @Test func whatADeadGuestWasWritingIsNotProbedForEver() async throws {
            let files = FaultyFileSystem()
            let owner = directory.open(files)
            owner.put("a", "/other")
            let guest = directory.open()
            guest.put("b", "/b")
            owner.flush()
            // The last row of a guest that died.
            let catalog = try #require(owner.store.diskStore?.catalog)
            let key = try #require(owner.key(for: Responses.request("/dead"))).name
            catalog.note(.storing(key))
            _ = files.takeCalls()
            #expect(owner.found("/dead") == nil)
            #expect(files.takeCalls().contains { $0.operation == .open })
            guest.close()
            // A child process that is being made at this moment has the guest's file, and holds it for a moment longer.
            await eventually("the end of sharing") {
                owner.flush()
                return catalog.sharedKeys == []
            }
            owner.rest()
            let counts = (0..<3).map { _ in
                _ = files.takeCalls()
                #expect(owner.found("/dead") == nil)
                return files.takeCalls().count
            }
            // Once a second the folder is looked at.
            #expect(counts.min() == 0)
            owner.wake()
        }

        @Test func theFileOfChangesIsThereWhileThereAreOthers() async {
            let owner = directory.open()
            owner.put("a")
            #expect(!hasChanges)
            let guest = directory.open(SystemFiles(), .justOpened)
            #expect(guest.found() == "a")
            // By this lookup, or by the guest's queue, which has begun to look.
            await eventually("the guest's file") { hasChanges }
            owner.flush()
            #expect(hasChanges)
            owner.remove(.key)
            #expect(guest.foundLater() == nil)
            guest.close()
            // The guest's queue may hold the file for a moment longer.
            await eventually("the end of the file") {
                owner.flush()
                return !hasChanges
            }
            owner.put("b")
            #expect(owner.foundLater() == "b")
            #expect(directory.open(SystemFiles(), .justOpened).foundLater() == "b")
        }

        /// A guest has just made the file, and the owner deletes it before the guest can hold it. Nothing was removed.
        @Test func aFileThatIsDeletedWhileItIsOpenedIsNoRemoval() throws {
            let owner = directory.open()
            owner.rest()
            let (files, path) = (FaultyFileSystem(), directory.changes)
            let wasDeleted = Mutex(false)
            files.onStatus = { opened, status in
                guard opened == path, !wasDeleted.withLock({ $0 }) else { return }
                wasDeleted.withLock { $0 = true }
                unlink(path)
                status.links = 0
            }
            let guest = directory.open(files)
            #expect(wasDeleted.withLock { $0 })
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)).isEmpty)
            owner.put("a")
            #expect(guest.found() == "a")
            owner.wake()
        }

        /// A clearing moves the folder of records away and makes a new one. In between the directory is the same.
        @Test func anOwnerStaysTheOwnerWhileAGuestClears() throws {
            let owner = directory.open()
            owner.rest()
            let disk = try #require(owner.store.diskStore)
            let files = FaultyFileSystem()
            let guest = directory.open(files)
            owner.look()
            let looks = Mutex(0)
            files.rule = { call in
                guard call.operation == .makeDirectory, call.name == "records" else { return nil }
                _ = looks.next()
                disk.nextFolderCheck.set(0)
                owner.look()
                return nil
            }
            guest.remove(.all)
            #expect(looks.withLock { $0 } == 1)
            #expect(disk.isOwner)
            owner.put("new")
            #expect(owner.found() == "new" && guest.foundLater() == "new")
            owner.wake()
        }

        /// The app has deleted the directory of two caches.
        @Test func askingForTheUsageMakesNoDirectory() throws {
            let owner = directory.open()
            owner.put("a")
            let guest = directory.open()
            owner.flush()
            for cache in [owner, guest] { cache.rest() }
            try FileManager.default.removeItem(at: directory.url)
            #expect(owner.currentDiskUsage == 0)
            #expect(!FileManager.default.fileExists(atPath: directory.url.path))
        }

        /// What is in memory only leaves no trace in the file that the caches share, not even a hash of its URL.
        @Test func aGuestTellsNothingOfWhatIsInMemoryOnly() {
            let owner = directory.open()
            let guest = directory.open()
            guest.put("a")
            // The owner tells once that it cannot say what it removed before the guest came. Now it has.
            #expect(owner.foundLater() == "a")
            let before = FileManager.default.contents(atPath: directory.changes)
            guest.put("b", "/b", inMemoryOnly: true)
            #expect(guest.found("/b") == "b")
            #expect(before != nil && FileManager.default.contents(atPath: directory.changes) == before)
            // One that replaces a record is told.
            guest.put("c", inMemoryOnly: true)
            #expect(owner.foundLater() == nil && guest.found() == "c")
        }

        /// An unsafe request costs what it removes, in a guest as in the owner.
        @Test func aGuestListsTheFolderOnceForUnsafeRequests() throws {
            let owner = directory.open()
            for number in 0..<300 { owner.put("\(number)", "/\(number)") }
            let files = FaultyFileSystem()
            let guest = directory.open(files)
            guest.rest()
            guest.remove(.resource, "/0")
            _ = files.takeCalls()
            for number in 1..<20 {
                guest.remove(.resource, "/\(number)")
                let calls = files.takeCalls()
                #expect(calls.count <= 40 && calls.allSatisfy { $0.operation != .list })
            }
            // Also what was stored since, by the owner and by a cache that has come since.
            for store in [owner, directory.open()] {
                store.put("late", "/late")
                guest.remove(.resource, "/late")
                for cache in [store, guest, owner] { #expect(cache.foundLater("/late") == nil) }
            }
            #expect(try directory.records.count == 280)
            guest.wake()
        }

        /// In a directory that cannot be written any more.
        @Test(arguments: [EROFS, EACCES]) func aGuestThatMayOnlyReadTheChangesHearsOfThem(error: Int32) {
            let owner = directory.open()
            // While there are others, there is a file of changes.
            let other = directory.open()
            let files = FaultyFileSystem { call in
                guard call.operation == .open, call.name == "changes", call.flags & O_ACCMODE != O_RDONLY else {
                    return nil
                }
                return .error(error)
            }
            let guest = directory.open(files)
            guest.put("memory", "/memory", inMemoryOnly: true)
            owner.put("a")
            #expect(guest.foundLater() == "a")
            owner.remove(.key)
            #expect(guest.foundLater() == nil)
            #expect(guest.foundLater("/memory") == "memory")
            #expect(files.faults > 0)
            other.close()
        }

        /// A folder that another process writes, and this one has on a file system that it may only read.
        @Test func aGuestThatMayOnlyReadTheFolderKeepsNothingInMemory() {
            let owner = directory.open()
            owner.put("a")
            let files = FaultyFileSystem { call in
                call.operation == .open && call.flags & O_ACCMODE != O_RDONLY ? .error(EROFS) : nil
            }
            let guest = directory.open(files)
            #expect(guest.foundLater() == "a")
            owner.remove(.key)
            #expect(guest.foundLater() == nil)
            #expect(files.faults > 0)
        }

        // MARK: A cache that comes

        /// A cache that is alone, and a second cache that comes at a moment that the test chooses.
        private struct Scene {
            let directory: SharedDirectory
            let files = FaultyFileSystem()
            let owner: DiskURLCache
            /// Does not open the directory before it looks something up or removes something.
            let comer: DiskURLCache

            /// The owner has stored "private".
            init(_ directory: SharedDirectory) {
                self.directory = directory
                owner = directory.open(files)
                owner.put("private")
                owner.flush()
                owner.rest()
                // What happens now is later than the store.
                directory.clock.advance(by: 1)
                comer = directory.open(SystemFiles(), .resting)
            }

            /// Runs `act` before one of the file operations of the owner.
            /// - Parameter moment: the number of the operation, from 1.
            func at(_ moment: Int, _ act: @escaping @Sendable () -> Void) {
                let count = Mutex(0)
                files.rule = { _ in
                    if count.next() == moment { act() }
                    return nil
                }
            }

            /// The owner removes the response, and the comer reads it just before its file is removed.
            func removeWhileItIsRead() {
                let (comer, isArmed) = (comer, Mutex(true))
                files.rule = { call in
                    if call.operation == .unlink, call.isRecord, isArmed.disarm() { _ = comer.found() }
                    return nil
                }
                owner.remove(.key)
                files.rule = { _ in nil }
                #expect(!isArmed.withLock { $0 })
            }

            func end() {
                files.rule = { _ in nil }
                owner.wake()
                comer.wake()
            }
        }

        /// What an owner does that is alone, while another cache comes between two of its file operations: that one
        /// reads what goes, or removes what is written.
        enum Meeting: Sendable {
            case removal(Removal)
            /// By a response that is for memory only.
            case replacement
            case store(removed: Removal)
            /// It is given another head.
            case change(removed: Removal)

            static let all: [Meeting] =
                [.replacement] + Removal.told.flatMap { [.removal($0), .store(removed: $0), .change(removed: $0)] }
        }

        @Test(arguments: Meeting.all) func whatGoesWhileACacheComesIsGone(meeting: Meeting) async throws {
            var meetings = 0
            for moment in 1...12 {
                let scene = Scene(try SharedDirectory())
                let (owner, comer) = (scene.owner, scene.comer)
                let hasMet = Mutex(false)
                let readsAtTheMoment = {
                    scene.at(moment) { if comer.found() != nil { hasMet.withLock { $0 = true } } }
                }
                let removesAtTheMoment = { (what: Removal) in
                    scene.at(moment) {
                        hasMet.withLock { $0 = true }
                        comer.remove(what)
                    }
                }
                switch meeting {
                case .removal(let what):
                    readsAtTheMoment()
                    owner.remove(what)
                case .replacement:
                    readsAtTheMoment()
                    owner.put("public", inMemoryOnly: true)
                case .store(let what):
                    let late = await HeldLoad(from: owner)
                    removesAtTheMoment(what)
                    try await late.end("private, too")
                case .change(let what):
                    removesAtTheMoment(what)
                    owner.pin()
                }
                scene.end()
                let (name, met) = ("\(meeting), call \(moment)", hasMet.withLock { $0 })
                if met { meetings += 1 }
                switch meeting {
                case .store, .change:
                    guard met else { continue }
                    #expect(comer.found() == nil, "\(name): never in the process that removed it")
                case .removal, .replacement: break
                }
                // The owner looks within a second, also when nothing else happens.
                let found = owner.foundLater()
                #expect(comer.foundLater() == nil, "\(name)")
                comer.forgetMemory()
                #expect(comer.foundLater() == nil, "\(name), on disk")
                if case .replacement = meeting { continue }
                #expect(found == nil, "\(name)")
                owner.forgetMemory()
                #expect(owner.foundLater() == nil, "\(name), on disk")
            }
            #expect(meetings > 0)
        }

        /// It is removed while one thread of a new cache comes to the directory, and another one has looked it up.
        @Test func whatIsReadBeforeACacheHasComeIsForgotten() {
            let (owner, other) = (directory.open(), directory.open())
            owner.put("private")
            let files = FaultyFileSystem()
            let comer = directory.open(files, .resting)
            let isArmed = Mutex(true)
            files.rule = { call in
                guard call.operation == .open, call.name == "changes", isArmed.disarm() else { return nil }
                #expect(comer.found() == "private")
                owner.remove(.key)
                return nil
            }
            comer.look()
            #expect(!isArmed.withLock { $0 })
            #expect(comer.foundLater() == nil)
            withExtendedLifetime(other) {}
            comer.wake()
        }

        /// It has read what was removed just before it was told, and writes it again: a 304 does that.
        @Test func whatACacheStoredAgainBeforeItWasToldIsRemoved() {
            let scene = Scene(directory)
            let (owner, comer) = (scene.owner, scene.comer)
            scene.removeWhileItIsRead()
            comer.pin()
            #expect(owner.foundLater() == nil)
            #expect(comer.foundLater() == nil)
            comer.forgetMemory()
            #expect(comer.foundLater() == nil)
            #expect(directory.open().foundLater() == nil)
            scene.end()
        }

        /// An owner that dies between its removal and its look tells nobody; the next owner does.
        @Test func whatAnOwnerThatDiedDidNotTellIsForgotten() {
            let scene = Scene(directory)
            scene.removeWhileItIsRead()
            scene.owner.die()
            scene.comer.wake()
            scene.comer.flush()
            #expect(scene.comer.ownsDirectory)
            #expect(scene.comer.foundLater() == nil)
        }

        /// The same, if a cache that comes later is the next owner.
        @Test func whatAnOwnerThatDiedDidNotTellIsToldByWhoeverComesNext() {
            let scene = Scene(directory)
            scene.removeWhileItIsRead()
            scene.owner.die()
            let next = directory.open()
            #expect(next.ownsDirectory)
            #expect(scene.comer.foundLater() == nil)
        }

        /// An owner that knew of the others has told them what it removed: nothing else counts as removed.
        @Test(arguments: [true, false]) func whatAnOwnerThatLeavesDidNotRemoveStaysInMemory(isKilled: Bool) {
            let owner = directory.open()
            let guest = directory.open()
            owner.flush()
            guest.put("kept", inMemoryOnly: true)
            if isKilled { owner.die() } else { owner.close() }
            guest.flush()
            #expect(guest.ownsDirectory)
            #expect(guest.foundLater() == "kept")
        }

        /// Another process that asked the network before the removal is about to write its record, and has looked
        /// before: the remover finds it complete.
        @Test(arguments: Removal.told) func aCacheNeverServesWhatItRemovedItself(what: Removal) async throws {
            let files = FaultyFileSystem()
            let remover = directory.open()
            let writer = directory.open(files)
            writer.rest()
            let late = await HeldLoad(from: writer)
            directory.clock.advance(by: 1)
            let isArmed = Mutex(true)
            let isWritten = Mutex(false)
            files.rule = { call in
                guard call.isRecord else { return nil }
                if call.operation == .open, isArmed.disarm() { remover.remove(what) }
                if call.operation == .close {
                    isWritten.withLock { $0 = true }
                    #expect(remover.foundLater() == nil)
                }
                return nil
            }
            try await late.end("private")
            files.rule = { _ in nil }
            #expect(isWritten.withLock { $0 })
            #expect(remover.foundLater() == nil && writer.foundLater() == nil)
            writer.wake()
        }

        /// In a new directory a guest may be storing something when the first owner looks for others (found by the
        /// model: the owner removed it).
        /// - Parameter isLockThere: whether a cache that did not get the lock has made its file.
        @Test(arguments: [false, true])
        func theFirstOwnerRemovesNothingOfAGuestThatStoresDuringItsFirstLook(isLockThere: Bool) throws {
            if isLockThere {
                try FileManager.default.createDirectory(
                    at: directory.url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
                let lock = directory.url.appendingPathComponent("lock").path
                #expect(FileManager.default.createFile(atPath: lock, contents: nil))
            }
            let (ownersFiles, guestsFiles) = (FaultyFileSystem(), FaultyFileSystem())
            let owner = directory.open(ownersFiles, .resting)
            let guest = directory.open(guestsFiles, .resting)
            let isOwned = DispatchSemaphore(value: 0)
            let isWritten = DispatchSemaphore(value: 0)
            let isNoticed = DispatchSemaphore(value: 0)
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
                _ = owner.foundLater()
                isNoticed.signal()
            }
            isOwned.isSignalled("the owner's lock")
            guest.put("a")
            #expect(owner.ownsDirectory && !guest.ownsDirectory)
            #expect(guest.foundLater() == "a")
            #expect(owner.foundLater() == "a")
            for cache in [owner, guest] { cache.wake() }
        }

        // MARK: Limits

        /// Who fills the file of changes replaces it, and misses nothing; the others cannot know what they missed.
        @Test(arguments: [true, false]) func whoFillsTheFileKeepsItsMemory(isOwner: Bool) throws {
            // The smaller the capacity, the sooner the file is full.
            let owner = directory.open { $0.diskCapacity = 4 << 20 }
            let guest = directory.open(SystemFiles(), .resting) { $0.diskCapacity = 4 << 20 }
            guest.put("guest", "/guest", inMemoryOnly: true)
            owner.put("owner", "/owner", inMemoryOnly: true)
            let filler = isOwner ? owner : guest
            let size = try SystemFiles().status(at: directory.changes).size
            var isReplaced = false
            for number in 0..<20_000 where !isReplaced {
                filler.remove(.key, "/other\(number)")
                isReplaced = try SystemFiles().status(at: directory.changes).size < size + number
            }
            #expect(isReplaced)
            #expect(owner.foundLater("/owner") == (isOwner ? "owner" : nil))
            #expect(guest.foundLater("/guest") == (isOwner ? nil : "guest"))
        }

        /// On a file system without locks several processes may believe that they own the directory.
        @Test func withoutLocksACacheIsNeverAlone() {
            let cache = directory.open(FaultyFileSystem { $0.operation == .lockProcess ? .error(ENOLCK) : nil })
            #expect(cache.ownsDirectory)
            #expect(hasChanges)
            cache.put("a")
            let other = directory.open()
            #expect(other.foundLater() == "a")
            cache.remove(.key)
            #expect(other.foundLater() == nil)
        }

        /// Many caches come, store, remove and leave at once, with delays at their file operations. At the end nobody
        /// has what was removed last.
        @Test(arguments: [false, true]) func cachesThatComeAndGoMissNothing(isDelayed: Bool) throws {
            let directory = directory
            @Sendable func open() -> DiskURLCache {
                guard isDelayed else { return directory.open(SystemFiles(), .justOpened) }
                let files = FaultyFileSystem { _ in
                    if Int.random(in: 0..<4) == 0 { usleep(.random(in: 0..<1_500)) }
                    return nil
                }
                return directory.open(files, .justOpened)
            }
            let paths = (0..<8).map { "/\($0)" }
            for round in 0..<TestLength.pick(plain: 2, long: 20) {
                let first = open()
                let second = open()
                DispatchQueue.concurrentPerform(iterations: 4) { thread in
                    for step in 0..<20 {
                        let cache = thread < 2 ? [first, second][thread] : open()
                        let path = paths[(thread * 5 + step) % paths.count]
                        cache.put("\(thread) \(step)", path)
                        _ = cache.found(path)
                        if step % 3 == 0 { cache.remove(.key, paths[(step * 3) % paths.count]) }
                        if thread == 3 { cache.flush() }
                        if thread >= 2 { cache.close() }
                    }
                }
                for path in paths { (round % 2 == 0 ? first : second).remove(.key, path) }
                for path in paths {
                    for cache in [first, second] {
                        #expect(cache.foundLater(path) == nil, "round \(round)")
                        cache.forgetMemory()
                        #expect(cache.foundLater(path) == nil, "round \(round), on disk")
                    }
                }
                #expect(try directory.records.isEmpty)
                for cache in [first, second] { cache.close() }
            }
        }
    }
#endif

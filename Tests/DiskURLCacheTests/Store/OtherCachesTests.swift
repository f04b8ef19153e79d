#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What becomes of a response that another cache on the directory changed in its place.
    @Suite(.fewAtATime) struct OtherCachesTests {
        typealias Removal = SharedDirectory.Removal

        private let directory: SharedDirectory

        init() throws { directory = try SharedDirectory() }

        /// Two caches, of which the second one knows from the disk what the first one stored.
        private func writerAndRemover(
            isRemoverGuest: Bool, storing body: String, tags: Set<String> = ["account"]
        ) -> (writer: DiskURLCache, remover: DiskURLCache) {
            let (first, second) = (directory.open(), directory.open())
            let (writer, remover) = isRemoverGuest ? (first, second) : (second, first)
            writer.put(body, tags: tags)
            remover.flush()
            #expect(remover.foundLater() == body)
            remover.forgetMemory()
            return (writer, remover)
        }

        // MARK: Removals of something else

        /// A cache deletes a record that it has removed and that another one was still writing. Nothing else is deleted
        /// for that.
        @Test(arguments: ["addresses", "tags"]) func whatIsRemovedConcernsNothingElse(what: String) {
            let (owner, other) = (directory.open(), directory.open())
            let count = 300
            for number in 0..<count { owner.put("\(number)", "/kept-\(number)", tags: []) }
            owner.flush()
            directory.clock.advance(by: 1)
            for number in 0..<count where what == "addresses" || number < 20 {
                if what == "addresses" {
                    other.removeCachedResponse(for: Responses.request("/removed-\(number)"))
                } else {
                    other.removeCachedResponses(tag: "removed-\(number)", host: "other.example")
                }
            }
            let found = (0..<count).filter { other.found("/kept-\($0)") == "\($0)" }
            #expect(found.count == count)
            #expect((0..<count).allSatisfy { owner.found("/kept-\($0)") == "\($0)" })
        }

        /// Whether others have removed something cannot be seen: memory answers nothing meanwhile.
        @Test(arguments: [EIO, EACCES]) func whatCannotBeSeenIsTakenForARemoval(error: Int32) {
            let files = FaultyFileSystem()
            let (owner, guest) = (directory.open(), directory.open(files))
            owner.put("private")
            owner.flush()
            #expect(guest.foundLater() == "private")
            files.rule = { $0.operation == .statusAt && $0.name == "changes" ? .error(error) : nil }
            owner.remove(.key)
            #expect(guest.foundLater() == nil)
            #expect(files.faults > 0)
        }

        /// The cache does not know yet that the directory is its own.
        @Test func aDiskLayerThatIsTurnedOffAtOnceIsEmpty() throws {
            let first = directory.open()
            first.put("private")
            first.flush()
            first.close()
            let second = directory.open(SystemFiles(), .resting)
            second.diskCapacity = 0
            #expect(try directory.records.isEmpty)
            second.wake()
        }

        // MARK: Numbers of other caches

        /// The record has a number that another cache gave, above all that this one would give by its time.
        @Test(arguments: [10, 300_000]) func aPinOfWhatAnotherCacheHasPinnedKeepsIt(length: Int) throws {
            let body = String(repeating: "x", count: length)
            let first = directory.open()
            first.put(body)
            let request = Responses.request("/a")
            #expect(first.setPinned(true, for: request))
            first.flush()
            let files = FaultyFileSystem()
            let second = directory.open(files)
            _ = files.takeCalls()
            #expect(second.setPinned(false, for: request))
            // By a new tail, not by a new file.
            #expect(!files.takeCalls().contains { $0.flags & O_CREAT != 0 && $0.operation == .open && $0.isRecord })
            for cache in [first, second, directory.open()] { #expect(cache.foundLater() == body) }
        }

        // MARK: Changed heads

        /// A 304 gives a record another head, in its place: it is as old as that head.
        @Test(arguments: [true, false], ["since", "older"])
        func whatAnotherCacheFreshenedIsRemovedByItsNewTime(isRemoverGuest: Bool, what: String) async throws {
            let (writer, remover) = writerAndRemover(isRemoverGuest: isRemoverGuest, storing: "private")
            directory.clock.advance(by: 1_000)
            try await writer.freshen()
            let limit = directory.clock.now - 100
            if what == "since" {
                remover.removeCachedResponses(since: limit)
            } else {
                remover.removeCachedResponses(olderThan: limit)
            }
            let left = what == "since" ? nil : "private"
            for cache in [writer, remover, directory.open()] { #expect(cache.foundLater() == left) }
        }

        /// A store that comes after another cache's store of a later response is not counted as one.
        @Test func aStoreThatALaterResponseOfAnotherCacheSupersedesIsNoStore() {
            let (first, second) = (directory.open(), directory.open())
            directory.clock.advance(by: 1)
            second.put("later")
            directory.clock.advance(by: -1)
            first.put("earlier")
            #expect(first.statistics.stores == 0 && second.statistics.stores == 1)
            for cache in [first, second, directory.open()] { #expect(cache.foundLater() == "later") }
        }

        /// The later response comes after the earlier one is on disk, and before memory has it.
        @Test(arguments: [true, false]) func whatAnotherCacheReplacesAtOnceIsNotInMemory(isGuest: Bool) {
            let files = FaultyFileSystem()
            let first = isGuest ? directory.open() : directory.open(files)
            let second = isGuest ? directory.open(files) : directory.open()
            let (cache, other) = isGuest ? (second, first) : (first, second)
            let isWritten = Mutex(false)
            files.rule = { [directory] call in
                if call.operation == .write, call.isRecord { isWritten.withLock { $0 = true } }
                let isTelling = call.name == "changes" && isWritten.withLock { $0 }
                guard isTelling else { return nil }
                files.rule = { _ in nil }
                directory.clock.advance(by: 1)
                other.put("later")
                return nil
            }
            cache.put("earlier")
            #expect(isWritten.withLock { $0 })
            for cache in [cache, other, directory.open()] { #expect(cache.foundLater() == "later") }
        }

        /// Two stores, of which the second one has the slot that the remover knows.
        @Test(arguments: [true, false]) func whatAnotherCacheReplacedTwiceIsRemoved(isRemoverGuest: Bool) {
            let (writer, remover) = writerAndRemover(isRemoverGuest: isRemoverGuest, storing: "public", tags: [])
            remover.rest()
            for _ in 0..<2 {
                directory.clock.advance(by: 1)
                writer.put("private")
                writer.flush()
            }
            remover.remove(.tag)
            #expect(writer.foundLater() == nil)
            #expect(remover.foundLater() == nil)
            remover.wake()
            #expect(directory.open().foundLater() == nil)
        }

        /// A record that has the slot, size and second of the record before it is a different one all the same.
        @Test func whatWasReplacedWithinASecondIsRemoved() {
            let owner = directory.open()
            let other = directory.open()
            owner.put("public", tags: [])
            owner.flush()
            owner.rest()
            for _ in 0..<2 {
                other.put("secret")
                other.flush()
            }
            other.close()
            owner.flush()
            owner.close()
            // The only one by now.
            let last = directory.open()
            last.remove(.tag)
            #expect(last.foundLater() == nil)
        }

        // MARK: Older answers

        /// A guest stored the older response a moment ago; the owner has not looked since. The newer one is not for the
        /// disk.
        @Test(arguments: [true, false]) func whatANewerResponseReplacedStaysGone(isTold: Bool) {
            let files = FaultyFileSystem()
            let owner = directory.open()
            let other = directory.open(files)
            files.rule = { call in
                let isOfChanges = call.name == "changes" || call.name.hasPrefix("incoming-")
                return isOfChanges && [.open, .write].contains(call.operation) && !isTold ? .error(EMFILE) : nil
            }
            other.put("older")
            other.flush()
            owner.put("newer", inMemoryOnly: true)
            owner.forgetMemory()
            #expect((files.faults > 0) == !isTold)
            files.rule = { _ in nil }
            other.flush()
            owner.flush()
            #expect(owner.foundLater() == nil)
            #expect(directory.open().foundLater() == nil)
        }

        /// A pin makes no response newer.
        @Test func aPinBringsNoOlderResponseBack() {
            let cache = directory.open()
            let other = directory.open()
            cache.put("older")
            cache.flush()
            other.rest()
            directory.clock.advance(by: 50)
            other.put("newer")
            cache.put("b", "/b")
            cache.pin()
            cache.flush()
            other.flush()
            other.forgetMemory()
            #expect(other.foundLater() == "newer")
            #expect(directory.open().foundLater() == "newer")
            other.wake()
        }

        // MARK: Removals that are under way

        /// A process is killed between its record and the row that tells of it. The owner has looked at the key just
        /// before.
        @Test(arguments: [Removal.tag, .host, .key, .resource, .all])
        func whatAKilledProcessLeftIsRemoved(what: Removal) throws {
            let files = FaultyFileSystem()
            let remover = directory.open()
            let killed = directory.open(files)
            let (isArmed, isWritten, isDead, isTold) = (Mutex(true), Mutex(false), Mutex(false), Mutex(false))
            files.rule = { call in
                if isDead.withLock({ $0 }) { return .error(EIO) }
                if call.name == "changes", call.operation == .write { isTold.withLock { $0 = true } }
                guard call.isRecord else { return nil }
                // The row is told, and the file is about to be made; before it, the store looked for a record to
                // replace.
                if isTold.withLock({ $0 }), isArmed.disarm() { _ = remover.currentDiskUsage }
                if call.operation == .write { isWritten.withLock { $0 = true } }
                if call.operation == .close, isWritten.withLock({ $0 }) { isDead.withLock { $0 = true } }
                return nil
            }
            killed.put("private")
            killed.flush()
            #expect(isDead.withLock { $0 })
            remover.remove(what)
            #expect(try directory.records.isEmpty)
            #expect(remover.foundLater() == nil)
        }

        /// A cache replaces a record. Between two of its file operations another one replaces it, too, and gives its
        /// name to a new one.
        @Test(arguments: [true, false]) func whatGetsTheNameOfAReplacedRecordStays(isOwner: Bool) throws {
            let files = FaultyFileSystem()
            let first = isOwner ? directory.open(files) : directory.open()
            let second = isOwner ? directory.open() : directory.open(files)
            let (writer, other) = isOwner ? (first, second) : (second, first)
            let meetings = Mutex(0)
            for moment in 1...60 {
                other.put("oldest")
                writer.look()
                directory.clock.advance(by: 1)
                let calls = Mutex(0)
                // The calls are those of the store alone, which has its number before the others.
                writer.rest()
                files.rule = { call in
                    guard call.isRecord, calls.next() == moment else { return nil }
                    _ = meetings.next()
                    for body in ["newer", "newer still", "newest"] {
                        directory.clock.advance(by: 1)
                        other.put(body)
                    }
                    return nil
                }
                writer.put("new")
                files.rule = { _ in nil }
                writer.wake()
                let expected = calls.withLock { $0 } < moment ? "new" : "newest"
                for cache in [writer, other] {
                    cache.forgetMemory()
                    #expect(cache.foundLater() == expected, "call \(moment)")
                    cache.flush()
                    #expect(cache.foundLater() == expected, "call \(moment), after a pass")
                }
                #expect(try directory.records.count == 1, "call \(moment)")
            }
            #expect((5..<60).contains(meetings.withLock { $0 }))
        }

        /// A record is written anew for a head while another cache removes it, which does not find the new one.
        @Test(arguments: [Removal.tag, .host, .key])
        func whatIsWrittenAnewDuringARemovalIsRemovedToo(what: Removal) {
            let files = FaultyFileSystem()
            let remover = directory.open()
            let cache = directory.open(files)
            remover.put("private")
            remover.flush()
            #expect(cache.foundLater() == "private")
            let isArmed = Mutex(true)
            files.rule = { call in
                let isNewSlot = call.isRecord && call.operation == .open && call.flags & O_CREAT != 0
                if isNewSlot, isArmed.disarm() { remover.remove(what) }
                return nil
            }
            // Each is a tail, until the record is full.
            for number in 0..<1_000 where isArmed.withLock({ $0 }) {
                cache.setPinned(number % 2 == 0, for: Responses.request("/a"))
            }
            files.rule = { _ in nil }
            #expect(!isArmed.withLock { $0 })
            cache.flush()
            for cache in [cache, remover, directory.open()] { #expect(cache.foundLater() == nil) }
        }

        /// A clearing that cannot move the folder deletes the records at once, and leaves nothing to be done later, to
        /// what was stored since.
        @Test func aClearingThatCannotMoveTheFolderLeavesWhatWasStoredSince() throws {
            let files = FaultyFileSystem()
            let remover = directory.open(files)
            let other = directory.open()
            other.put("old")
            other.flush()
            files.rule = { $0.operation == .rename && $0.name == "records" ? .error(ENOSPC) : nil }
            remover.remove(.all)
            #expect(try files.faults > 0 && directory.records.isEmpty)
            #expect(remover.foundLater() == nil)
            #expect(other.foundLater() == nil)
            other.put("new", "/new")
            other.flush()
            #expect(other.foundLater("/new") == "new")
            files.rule = { _ in nil }
            remover.flush()
            #expect(other.foundLater("/new") == "new")
            #expect(directory.open().foundLater("/new") == "new")
        }

        /// A status that cannot be had says nothing of a file.
        @Test func whatWasClearedDoesNotComeBack() {
            let files = FaultyFileSystem()
            let cache = directory.open(files)
            cache.put("private")
            cache.flush()
            files.rule = { call in
                call.operation == .statusAt && call.isRecord && call.path.contains("/trash-") ? .error(EIO) : nil
            }
            cache.remove(.all)
            cache.flush()
            #expect(files.faults > 0)
            files.rule = { _ in nil }
            #expect(cache.foundLater() == nil)
            #expect(directory.open().foundLater() == nil)
        }

        /// A record that another cache was still writing when it was removed is a miss. The next answer finds none to
        /// replace then, so it has to be gone for good.
        @Test(arguments: [true, false]) func whatWasTakenForRemovedDoesNotComeBack(isByGuest: Bool) async throws {
            let caches = [directory.open(), directory.open()]
            let (cache, other) = isByGuest ? (caches[1], caches[0]) : (caches[0], caches[1])
            let request = Responses.request("/a")
            cache.put("old")
            let path = try directory.url.path + "/records/" + #require(directory.records.first)
            let bytes = try #require(FileManager.default.contents(atPath: path))
            directory.clock.advance(by: 1)
            cache.remove(.key)
            #expect(
                FileManager.default.createFile(atPath: path, contents: bytes, attributes: [.posixPermissions: 0o600]))
            // As the writer announces it.
            try cache.store.diskStore?.requestExamination(of: #require(cache.key(for: request)).name)
            let network = MemoryTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "no-store"])
                exchange.piece("new")
                exchange.end()
            }
            _ = try await LoadReader(request, from: cache, over: network).answer()
            directory.clock.advance(by: 10)
            for cache in [cache, other, directory.open()] {
                cache.store.disk?.checkNow()
                #expect(cache.cachedResponse(for: request) == nil)
            }
        }

        /// A response that is stored while the folder that has grown is replaced is written into the new one.
        @Test(.enabled(if: ScratchDirectory.foldersGrow, ScratchDirectory.needsFoldersThatGrow))
        func whatWaitsWhileTheOwnFolderIsReplacedIsWritten() throws {
            let files = FaultyFileSystem()
            let cache = directory.open(files)
            let records = directory.url.path + "/records"
            try ScratchDirectory.grow(records)
            cache.put("evicted", "/evicted")
            cache.flush()
            let reference = WeakReference<DiskURLCache>()
            reference.object = cache
            let isArmed = Mutex(true)
            let isStored = DispatchGroup()
            files.rule = { call in
                guard call.operation == .removeDirectory, let cache = reference.object, isArmed.disarm()
                else { return nil }
                // Its file operations wait for the new folder.
                DispatchQueue.global().async(group: isStored) { cache.put("new") }
                return nil
            }
            cache.diskCapacity = 100 << 10
            cache.flush()
            isStored.wait(for: "the store in the new folder")
            cache.flush()
            #expect(!isArmed.withLock { $0 })
            // Another folder may have the number of the one before.
            #expect(try SystemFiles().status(at: records).allocated <= 64 << 10)
            cache.forgetMemory()
            #expect(cache.foundLater() == "new")
        }
    }
#endif

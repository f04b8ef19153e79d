#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache
    @testable import DiskURLCacheTools

    /// A removal that a cache could tell nobody of when it was made, since the file of changes could not be opened or
    /// written, or since there seemed to be nobody.
    @Suite(.fewAtATime) struct UntoldRemovalTests {
        private let directory: SharedDirectory
        private let files = FaultyFileSystem()

        init() throws { directory = try SharedDirectory() }

        private func failing(_ operations: [FaultyFileSystem.Operation], _ code: Int32 = EMFILE) {
            files.rule = { call in
                let isOfChanges = call.name == "changes" || call.name.hasPrefix("incoming-")
                return isOfChanges && operations.contains(call.operation) ? .error(code) : nil
            }
        }

        @Test func aGuestThatCouldNotComeTellsItsRemovalWhenItComes() {
            let owner = directory.open()
            owner.put("secret")
            failing([.open])
            let guest = directory.open(files)
            guest.remove(.key)
            #expect(files.faults > 0)
            files.rule = { _ in nil }
            // The pass that it has asked for.
            guest.flush()
            #expect(owner.foundLater() == nil)
            #expect(guest.foundLater() == nil)
            #expect(directory.open().foundLater() == nil)
        }

        @Test(arguments: [true, false]) func aRemovalThatCouldNotBeWrittenIsToldByTheNextLook(isGuest: Bool) {
            let (first, second) =
                isGuest
                ? (directory.open(), directory.open(files))
                : (
                    directory.open(files), directory.open()
                )
            let (remover, other) = isGuest ? (second, first) : (first, second)
            other.put("secret")
            other.look()
            remover.look()
            failing([.write, .open, .rename], ENOSPC)
            remover.remove(.key)
            #expect(other.foundLater() == "secret")
            files.rule = { _ in nil }
            remover.flush()
            #expect(other.foundLater() == nil)
            #expect(directory.open().foundLater() == nil)
        }

        /// There is a row before what others have announced is removed: one of them may be writing at that moment.
        @Test func whatIsStoredWhileAnUntoldRemovalIsToldIsRemoved() throws {
            let (remover, other) = (directory.open(files), directory.open())
            remover.look()
            failing([.write, .open, .rename], ENOSPC)
            remover.remove(.key)
            let rows = Mutex(0)
            files.rule = { call in
                if call.operation == .write, call.name == "changes", rows.next() == 1 { other.put("private") }
                return nil
            }
            remover.flush()
            #expect(other.foundLater() == nil)
            #expect(try directory.records == [])
        }

        /// The owner seemed to be alone when it removed something, or could not tell it. What is told later is that
        /// alone: another response that a cache has stored meanwhile stays.
        @Test(arguments: [SharedDirectory.Removal.key, .resource], [true, false])
        func whatIsToldLaterTakesNothingElseAlong(what: SharedDirectory.Removal, isAlone: Bool) throws {
            let owner = directory.open(files)
            owner.put("private")
            owner.rest()
            if isAlone { owner.remove(what) }
            let other = directory.open()
            if !isAlone {
                owner.look()
                failing([.write, .open, .rename], ENOSPC)
                owner.remove(what)
                #expect(files.faults > 0)
                files.rule = { _ in nil }
            }
            other.put("other", "/b")
            owner.wake()
            owner.flush()
            for cache in [owner, other, directory.open()] {
                #expect(cache.foundLater() == nil && cache.foundLater("/b") == "other")
            }
            #expect(try directory.records.count == 1)
        }

        /// The row by which it is told takes the place of the file, with what was announced there.
        @Test func whatWasAnnouncedInAFullFileIsRemoved() throws {
            let other = directory.open { $0.diskCapacity = 256 << 10 }
            let remover = directory.open(files) { $0.diskCapacity = 256 << 10 }
            for cache in [remover, other] { cache.look() }
            failing([.write, .open, .rename], ENOSPC)
            remover.remove(.key)
            other.put("private")
            while try SystemFiles().status(at: directory.changes).size < 4_096 - 32 { other.put("other", "/b") }
            files.rule = { _ in nil }
            remover.flush()
            #expect(other.foundLater() == nil)
            #expect(other.foundLater("/b") == "other")
        }

        /// More than are told one by one.
        @Test func manyRemovalsThatCouldNotBeToldAreAllTold() {
            let (remover, other) = (directory.open(files), directory.open())
            let paths = (0..<70).map { "/\($0)" }
            for path in paths { other.put("private", path) }
            remover.look()
            failing([.write, .open, .rename], ENOSPC)
            for path in paths { remover.remove(.key, path) }
            #expect(paths.allSatisfy { other.foundLater($0) != nil })
            files.rule = { _ in nil }
            remover.flush()
            #expect(paths.allSatisfy { other.foundLater($0) == nil })
        }

        /// No row can be written, but the others' rows are read: they may have removed what is being stored.
        @Test func whoCanWriteNoRowReadsThoseOfTheOthers() throws {
            let (writer, remover) = (directory.open(files), directory.open())
            writer.look()
            let writes = Mutex(0)
            files.rule = { call in
                if call.operation == .write, call.isRecord, writes.next() == 1 { remover.remove(.key) }
                let isOfChanges = call.name == "changes" || call.name.hasPrefix("incoming-")
                return isOfChanges && [.write, .rename].contains(call.operation) ? .error(ENOSPC) : nil
            }
            writer.put("private")
            #expect(writes.withLock { $0 } > 0, "the removal came during the store")
            #expect(writer.found() == nil)
            #expect(try directory.records == [])
        }

        /// It is in the place of the one in which something was removed, and other caches are there already.
        @Test func nothingIsToldInAnotherDirectory() throws {
            let owner = directory.open()
            owner.put("old")
            // It looks at the folder itself only once a second.
            owner.look()
            owner.remove(.all)
            // A pass could tell that it is another directory while the others store.
            owner.rest()
            try FileManager.default.moveItem(at: directory.url, to: directory.scratch.appending("aside"))
            let others = [directory.open(), directory.open()]
            for other in others { other.put("new") }
            owner.look()
            for other in others {
                other.forgetMemory()
                #expect(other.foundLater() == "new")
            }
            owner.wake()
        }

        /// A cache has stored in it before it noticed that it is another one.
        @Test func whatIsStoredInAnotherDirectoryIsKnownThere() throws {
            let first = directory.open()
            first.look()
            first.rest()
            try FileManager.default.moveItem(at: directory.url, to: directory.scratch.appending("aside"))
            let owner = directory.open()
            owner.put("other", "/other")
            try #require(first.store.diskStore).nextFolderCheck.set(.max)
            first.put("private")
            try #require(first.store.diskStore).nextFolderCheck.set(0)
            first.look()
            #expect(first.found() == "private")
            owner.look()
            owner.remove(.key)
            #expect(first.foundLater() == nil)
            #expect(owner.foundLater("/other") == "other")
            first.wake()
        }

        /// The guest has read the response while it could not be heard of: the owner told nobody of its removal.
        @Test func aGuestThatCouldNotComeForgetsWhatItReadMeanwhile() {
            let owner = directory.open()
            owner.put("secret")
            failing([.open])
            let guest = directory.open(files)
            #expect(guest.found() == "secret")
            owner.remove(.key)
            owner.flush()
            files.rule = { _ in nil }
            #expect(guest.foundLater() == nil)
        }

        /// A tool removes records one by one while nobody else is there; a cache that has come meanwhile hears of it.
        @Test func theRemovalOfARecordByAToolIsTold() throws {
            let owner = directory.open()
            owner.put("secret")
            owner.flush()
            let store = try #require(owner.store.diskStore)
            let names = store.recordNames()
            owner.rest()
            let guest = directory.open()
            #expect(guest.found() == "secret")
            for name in names {
                let sequence = try #require(store.records.footer(of: name)?.sequence)
                #expect(store.removeRecord(name, sequence: sequence) == .removed)
            }
            #expect(guest.foundLater() == nil)
            owner.wake()
        }

        /// The other has read again what was still there when it was told.
        @Test(arguments: [true, false]) func aClearingThatIsDoneLaterIsToldThen(isGuest: Bool) {
            let (first, second) =
                isGuest ? (directory.open(), directory.open(files)) : (directory.open(files), directory.open())
            let (remover, other) = isGuest ? (second, first) : (first, second)
            remover.put("private")
            #expect(other.foundLater() == "private")
            files.rule = { call in
                let isOfRecords = call.isRecord || call.name == "records"
                return isOfRecords && [.rename, .unlink].contains(call.operation) ? .error(EIO) : nil
            }
            remover.removeAllCachedResponses()
            #expect(remover.found() == nil)
            #expect(other.foundLater() == "private")
            files.rule = { _ in nil }
            remover.flush()
            #expect(other.foundLater() == nil)
            #expect(remover.foundLater() == nil)
            remover.put("new")
            #expect(other.foundLater() == "new")
        }

        /// Something has deleted the file, with rows that the owner had not read.
        @Test func theFirstOwnerKnowsNothingOfWhatWasInAFileThatIsGone() throws {
            let owner = directory.open()
            let guest = directory.open()
            owner.look()
            owner.rest()
            guest.put("secret")
            try FileManager.default.removeItem(atPath: directory.changes)
            owner.look()
            owner.remove(.key)
            #expect(owner.foundLater() == nil)
            guest.forgetMemory()
            #expect(guest.foundLater() == nil)
            #expect(directory.open().foundLater() == nil)
            owner.wake()
        }
    }
#endif

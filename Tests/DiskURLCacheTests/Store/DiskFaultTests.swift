#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// A folder that cannot be listed, files that cannot be deleted or read, a clock that is set back, a guest that is
    /// killed.
    @Suite(.fewAtATime) struct DiskFaultTests {
        typealias Removal = SharedDirectory.Removal

        private let directory: SharedDirectory

        init() throws { directory = try SharedDirectory() }

        /// A guest has no index. What it cannot find must not come back, so everything goes.
        @Test(arguments: [Removal.resource, .tag, .host, .prefix, .since], [EMFILE, EACCES])
        func aRemovalThatCannotListTheFolderRemovesEverything(what: Removal, error: Int32) {
            let owner = directory.open()
            owner.put("private")
            owner.flush()
            let files = FaultyFileSystem()
            let guest = directory.open(files)
            files.rule = { $0.operation == .list && $0.name == "records" ? .error(error) : nil }
            guest.remove(what)
            #expect(files.faults > 0)
            files.rule = { _ in nil }
            owner.forgetMemory()
            #expect(owner.foundLater() == nil)
            #expect(guest.foundLater() == nil)
            owner.put("new")
            #expect(guest.foundLater() == "new")
        }

        /// What cannot be marked is removed.
        @Test func whatCannotBeFoundToBeMarkedStaleIsRemoved() {
            let owner = directory.open()
            owner.put("private")
            owner.flush()
            let files = FaultyFileSystem()
            let guest = directory.open(files)
            files.rule = { $0.operation == .list && $0.name == "records" ? .error(EMFILE) : nil }
            guest.store.markStale(matching: EntryCriteria(), at: directory.clock.now)
            #expect(files.faults > 0)
            files.rule = { _ in nil }
            owner.forgetMemory()
            #expect(owner.foundLater() == nil)
        }

        /// A response from the future keeps no newer one out.
        @Test func anAnswerReplacesAResponseFromBeforeTheClockWasSetBack() async throws {
            let cache = directory.open()
            let early = await HeldLoad(from: cache)
            try await early.end("ahead")
            directory.clock.advance(by: -3_600)
            let late = await HeldLoad(from: cache)
            try await late.end("newer")
            #expect(cache.found() == "newer")
        }

        // MARK: Passes that can do nothing

        private func passes(_ files: FaultyFileSystem, _ name: String, _ operation: FaultyFileSystem.Operation) -> Int {
            _ = files.takeCalls()
            Thread.sleep(forTimeInterval: 0.5)
            return files.takeCalls().filter { $0.operation == operation && $0.name == name }.count
        }

        @Test func aFolderThatCannotBeListedIsTriedOnceASecond() async throws {
            let fixture = try DiskFixture()
            let files = FaultyFileSystem { $0.operation == .list && $0.name == "records" ? .error(EIO) : nil }
            let store = fixture.open(files: files)
            store.flush()
            #expect(passes(files, "records", .list) <= 2)
            let tried = files.faults
            await eventually("another try") { files.faults > tried }
            files.rule = { _ in nil }
            store.flush()
            #expect(store.catalog.state.isCurrent)
        }

        @Test func aClearedFolderThatCannotBeDeletedIsNotTriedAtOnce() async throws {
            let fixture = try DiskFixture()
            let files = FaultyFileSystem()
            let store = fixture.open(files: files)
            for number in 0..<300 { store.store(.test(testBody(number, length: 10)), for: .test("\(number)")) }
            store.flush()
            files.rule = { $0.operation == .unlink && $0.isRecord ? .error(EROFS) : nil }
            store.removeAll()
            store.maintenance.schedule(after: 0)
            await eventually("a try") { files.faults > 0 }
            try await Task.sleep(for: .milliseconds(200))
            _ = files.takeCalls()
            try await Task.sleep(for: .milliseconds(500))
            #expect(files.takeCalls().filter { $0.operation == .unlink && $0.isRecord }.count <= 1_200)
            files.rule = { _ in nil }
            store.flush()
            let left = try FileManager.default.contentsOfDirectory(atPath: fixture.directory)
            #expect(!left.contains { $0.hasPrefix("trash") })
        }

        @Test func anIndexThatMayNotBeReadIsMadeAnew() throws {
            let fixture = try DiskFixture()
            do {
                let store = fixture.open()
                store.store(.test(testBody(1)), for: .test("a"))
                store.close()
            }
            let files = FaultyFileSystem { call in
                call.operation == .open && call.name == "index.plist" && call.flags & O_ACCMODE == O_RDONLY
                    ? .error(EACCES) : nil
            }
            let store = fixture.open(files: files)
            store.flush()
            #expect(store.catalog.state.isCurrent && fixture.log.events.contains(.rejectedIndex))
            #expect(store.body(.test("a")) == testBody(1))
        }

        // MARK: Names

        /// A guest that was killed while it stored has told only that it begins.
        @Test func aGuestKnowsTheKeysThatOthersBeginToStore() throws {
            let owner = directory.open()
            let guest = directory.open()
            guest.remove(.resource, "/other")
            let catalog = try #require(guest.store.diskStore?.catalog)
            let key = try #require(guest.key(for: Responses.request("/dead"))).name
            catalog.note(.storing(key))
            #expect(catalog.names(ofResource: key.resource) == [key])
            #expect(owner.ownsDirectory)
        }

        /// A cache that is alone has one clock: what it stores is newer than what is there.
        @Test(arguments: [0.3, 2.0, 30, 3_600]) func whatIsStoredAfterTheClockWasSetBackStays(seconds: Double) {
            // The shortest way back is into another second, too: records know whole ones.
            directory.clock.set(Date(timeIntervalSince1970: directory.clock.now.timeIntervalSince1970.rounded() + 0.2))
            let cache = directory.open()
            cache.put("older")
            directory.clock.advance(by: -seconds)
            cache.put("newer")
            #expect(cache.found() == "newer")
            cache.forgetMemory()
            #expect(cache.found() == "newer")
        }
    }
#endif

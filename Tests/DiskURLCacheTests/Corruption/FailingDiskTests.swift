import Foundation
import Testing

@testable import DiskURLCache

/// Faults of `Reliability.md` about a system that refuses: the store is dropped, the old value is kept, nothing is left
/// over, and the store works again once the cause is gone.
@Suite("Failing disk", .fewAtATime) struct FailingDiskTests {
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }
    private typealias Call = FaultyFileSystem.Call
    private typealias Fault = FaultyFileSystem.Fault
    private let key = RequestKey.test("a")

    @Test(
        "No room for a record: dropped, the old value kept, no leftovers, no spinning",
        arguments: [ENOSPC, EDQUOT, EFBIG, EIO], [FaultyFileSystem.Operation.open, .write, .close])
    func noRoom(code: Int32, operation: FaultyFileSystem.Operation) throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        let usage = store.usage
        files.rule = { call in
            call.isRecord && call.operation == operation ? .error(code) : nil
        }
        _ = files.takeCalls()
        let result = store.store(.test(testBody(2), sequence: 2), for: key)
        store.store(.test(testBody(3)), for: .test("b"))
        store.flush()
        #expect(files.takeCalls().filter(\.isRecord).count < 40)
        #expect(result.refusal == DiskWriteResult.words(code))
        files.rule = { _ in nil }
        #expect(store.body(key) == testBody(1))
        #expect(!store.contains(.test("b")))
        #expect(store.usage == usage)
        #expect(fixture.recordNames().count == 1)
        store.store(.test(testBody(4), sequence: 3), for: key)
        store.flush()
        #expect(store.body(key) == testBody(4))
        #expect(fixture.recordNames().count == 1)
    }

    /// Another process may shorten a file between the look at its length and the reading.
    @Test func ofAFileThatIsShorterWhatIsThereIsRead() throws {
        try Data("0123456789".utf8).write(to: fixture.scratch.appending("file"))
        let (file, _) = try SystemFiles().openRegular(fixture.scratch.appending("file").path, O_RDONLY)
        defer { try? SystemFiles().close(file) }
        #expect(try SystemFiles().bytes(of: file, at: 4, count: 100) == Array("456789".utf8))
    }

    /// Whoever asks first waits for the first look at the directory.
    @Test func aDirectoryThatCannotBeMadeIsToldBeforeTheFirstPass() {
        let files = FaultyFileSystem { $0.operation == .makeDirectory ? .error(EROFS) : nil }
        let maintenance = MaintenanceQueue()
        maintenance.pause()
        let store = DiskStore(
            configuration: .init(directory: fixture.directory, capacity: 1 << 20), fileSystem: files,
            maintenance: maintenance)
        #expect(store.openingError != nil)
    }

    /// A key has eight slots.
    @Test func aSlotWhoseRecordCouldNotBeWrittenIsFreeAgain() {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        files.rule = { $0.isRecord && $0.operation == .write ? .error(ENOSPC) : nil }
        for number in 0..<20 { store.store(.test(testBody(number), sequence: UInt64(number + 1)), for: key) }
        #expect(store.body(key) == nil)
        files.rule = { _ in nil }
        store.store(.test(testBody(20), sequence: 21), for: key)
        #expect(store.body(key) == testBody(20))
        #expect(fixture.recordNames().count == 1)
    }

    @Test("Full while the index is written: the old one holds, no record is lost, saved again later")
    func noRoomForIndex() throws {
        let files = FaultyFileSystem()
        for operation in [FaultyFileSystem.Operation.open, .write, .close, .rename] {
            let store = fixture.open(files: files)
            store.store(.test(testBody(1)), for: .test("\(operation) 1"))
            store.flush()
            let before = files.faults
            files.rule = { call in
                call.operation == operation && call.name.hasPrefix("index") ? .error(ENOSPC) : nil
            }
            for round in 0..<20 {
                store.store(.test(testBody(round)), for: .test("\(operation) \(round)"))
                store.flush()
            }
            #expect(files.faults >= before + 20, "\(operation)")
            #expect(store.body(.test("\(operation) 19")) == testBody(19))
            store.close()
            files.rule = { _ in nil }
            let reopened = fixture.open(files: files)
            reopened.flush()
            for round in 0..<20 { #expect(reopened.body(.test("\(operation) \(round)")) == testBody(round)) }
            #expect(reopened.usage == fixture.allocatedByRecords(), "\(operation)")
            reopened.close()
            #expect(!FileManager.default.fileExists(atPath: fixture.directory + "/index.plist.new"))
        }
    }

    @Test("Out of file descriptors: a miss or a skipped store, nothing deleted, works again")
    func noDescriptors() throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        for number in 0..<10 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        for code in [EMFILE, ENFILE, EACCES, EIO, ENOMEM] {
            files.rule = { $0.operation == .open || $0.operation == .list ? .error(code) : nil }
            for number in 0..<10 { #expect(store.variants(of: .test("\(number)")).isEmpty) }
            store.store(.test(testBody(99)), for: .test("new"))
            store.flush()
            let other = fixture.open(files: files)
            #expect(other.variants(of: .test("1")).isEmpty)
            other.flush()
            other.close()
            #expect(fixture.recordNames().count == 10)
            files.rule = { _ in nil }
            for number in 0..<10 { #expect(store.body(.test("\(number)")) == testBody(number)) }
        }
        store.store(.test(testBody(99)), for: .test("new"))
        store.flush()
        #expect(store.body(.test("new")) == testBody(99))
        #expect(store.usage == fixture.allocatedByRecords())
    }

    @Test(
        "An error while reading is a miss, and nothing is deleted",
        arguments: [FaultyFileSystem.Operation.read, .status])
    func readError(operation: FaultyFileSystem.Operation) throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        for length in [100, 100_000, 1_000_000] {
            store.store(.test(testBody(1, length: length)), for: key)
            store.flush()
            files.rule = { $0.isRecord && $0.operation == operation ? .error(EIO) : nil }
            #expect(store.body(key) == nil)
            store.flush()
            files.rule = { _ in nil }
            #expect(store.body(key) == testBody(1, length: length))
        }
    }

    @Test("Interrupted calls and short counts are carried to the end") func interrupted() throws {
        // Each kind of call in its own rhythm: with a common one some might never be interrupted.
        let counts = Mutex<[FaultyFileSystem.Operation: Int]>([:])
        let files = FaultyFileSystem { call in
            guard [.read, .write, .open].contains(call.operation) else { return nil }
            let number = counts.withLock { counts in
                counts[call.operation, default: 0] += 1
                return counts[call.operation, default: 0]
            }
            switch (call.operation, number % 3) {
            case (.open, 0), (.read, 0), (.write, 0): return .error(EINTR)
            case (.read, 1), (.write, 1): return .short(call.name.hasPrefix("index") ? 50 : 70)
            default: return nil
            }
        }
        var store = fixture.open(files: files)
        for number in 0..<20 { store.store(.test(testBody(number, length: number * 100)), for: .test("\(number)")) }
        store.flush()
        for number in 0..<20 { #expect(store.body(.test("\(number)")) == testBody(number, length: number * 100)) }
        store.close()
        store = fixture.open(files: files)
        store.flush()
        for number in 0..<20 { #expect(store.body(.test("\(number)")) == testBody(number, length: number * 100)) }
        #expect(store.usage == fixture.allocatedByRecords())
        #expect(!fixture.log.events.contains(.rejectedIndex))
    }

    @Test("A listing that fails proves nothing: no row goes, order and times of use stay")
    func listingFails() throws {
        let clock = ManualClock()
        var store = fixture.open(clock: clock.wallClock)
        var times: [Date] = []
        for number in 0..<10 {
            clock.advance(by: 10)
            store.store(.test(testBody(number)), for: .test("\(number)"))
            store.flush()
            times.append(Date(recordSeconds: clock.now.recordSeconds))
        }
        store.close()
        clock.advance(by: 1000)
        let files = FaultyFileSystem { $0.operation == .list ? .error(EMFILE) : nil }
        store = fixture.open(files: files, clock: clock.wallClock)
        store.flush()
        // The index is not complete: it cannot say no by itself.
        #expect(store.isOwner && store.mayContain(.test("none")))
        files.rule = { _ in nil }
        store.flush()
        var found: [Date] = []
        store.forEachRecord { found.append($0.accessedAt) }
        #expect(found == times)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    @Test("A read that ends early is a miss, and the file stays if a second read proves it whole")
    func endsEarly() throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files) { $0.maintenanceDelay = 3600 }
        store.store(.test(testBody(1)), for: key)
        store.flush()
        // The lookup reads without a lock, and then with it.
        let left = Mutex(2)
        files.rule = { call in
            guard call.isRecord, call.operation == .read else { return nil }
            return left.withLock { left in
                left -= 1
                return left >= 0 ? .short(0) : nil
            }
        }
        #expect(store.body(key) == nil)
        store.flush()
        #expect(store.body(key) == testBody(1))
    }

    @Test("A directory that cannot be written: lookups work, stores drop, eviction does not loop")
    func readOnly() async throws {
        let files = FaultyFileSystem()
        let store = fixture.open(capacity: 1 << 20, files: files)
        for number in 0..<50 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        for code in [EROFS, EACCES] {
            files.rule = { call in
                switch call.operation {
                case .unlink, .rename, .makeDirectory, .removeDirectory, .write, .truncate: .error(code)
                default: nil
                }
            }
            _ = files.takeCalls()
            store.capacity = 100 << 10
            store.flush()
            store.store(.test(testBody(99)), for: .test("new"))
            store.flush()
            store.flush()
            // Some fifty in each pass, of which some come by themselves. A loop would make thousands.
            #expect((1..<1_000).contains(files.takeCalls().count { $0.operation == .unlink }))
            for number in 0..<50 { #expect(store.body(.test("\(number)")) == testBody(number)) }
            #expect(!store.contains(.test("new")))
            // Cleared all the same, as far as anybody can see.
            files.rule = { _ in nil }
        }
        await eventually("the eviction, once it is possible") {
            store.flush()
            return fixture.allocated() <= 100 << 10
        }
    }

    /// A store whose clearing could not be done.
    private func storeToClear(_ files: FaultyFileSystem) -> DiskStore {
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        files.rule = { [.rename, .unlink].contains($0.operation) ? .error(EACCES) : nil }
        store.removeAll()
        return store
    }

    @Test("A clearing that cannot be done is never seen undone, and is done as soon as it can be")
    func clearingFails() throws {
        let files = FaultyFileSystem()
        let store = storeToClear(files)
        let told = fixture.log.events.filter { $0 == .cannotDelete(errno: EACCES) }.count
        #expect(told > 0)
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        #expect(fixture.log.events.filter { $0 == .cannotDelete(errno: EACCES) }.count == told, "told once")
        files.rule = { _ in nil }
        store.flush()
        #expect(fixture.recordNames().isEmpty)
        store.store(.test(testBody(2)), for: key)
        store.flush()
        #expect(store.body(key) == testBody(2))
    }

    @Test("A clearing that cannot be done blocks the folder, also while no index says what is in it")
    func clearingFailsWithoutIndex() throws {
        var store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.close()
        let files = FaultyFileSystem { [.rename, .list].contains($0.operation) ? .error(EACCES) : nil }
        store = fixture.open(files: files)
        store.flush()
        #expect(store.body(key) == testBody(1))
        let before = files.faults
        store.removeAll()
        #expect(files.faults > before)
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        files.rule = { _ in nil }
        store.flush()
        #expect(fixture.recordNames().isEmpty)
        #expect(store.variants(of: key).isEmpty)
    }

    @Test("A folder that could not be cleared goes by itself: what others put into a new one is read")
    func clearingFailsAndTheFolderGoes() throws {
        let store = storeToClear(FaultyFileSystem())
        try FileManager.default.removeItem(atPath: fixture.records)
        store.maintenance.perform { store.runPass(isFlush: false) }
        let other = fixture.open()
        other.store(.test(testBody(2)), for: key)
        #expect(store.body(key) == testBody(2))
    }

    @Test("A directory that has taken the place of the one to clear is not cleared")
    func clearingFailsAndTheDirectoryIsReplaced() throws {
        let files = FaultyFileSystem()
        let store = storeToClear(files)
        try FileManager.default.moveItem(
            atPath: fixture.directory, toPath: fixture.scratch.appending("aside").path)
        let other = fixture.open()
        other.store(.test(testBody(2)), for: key)
        files.rule = { _ in nil }
        store.flush()
        #expect(store.body(key) == testBody(2))
        #expect(other.body(key) == testBody(2))
    }

    @Test("Nor is one that takes its place after a pass has looked at it")
    func theDirectoryIsReplacedDuringALateClearing() throws {
        let files = FaultyFileSystem()
        let store = storeToClear(files)
        let looks = Mutex(0)
        let other = Mutex<DiskStore?>(nil)
        let (fixture, key) = (fixture, key)
        files.rule = { call in
            guard call.operation == .statusAt, call.name == "records" else { return nil }
            // The first look is the one with which the pass begins.
            guard
                looks.withLock({
                    $0 += 1
                    return $0
                }) == 2
            else { return nil }
            try? FileManager.default.moveItem(
                atPath: fixture.directory, toPath: fixture.scratch.appending("aside").path)
            let new = fixture.open()
            new.store(.test(testBody(2)), for: key)
            other.withLock { $0 = new }
            return nil
        }
        store.flush()
        #expect(looks.withLock { $0 } >= 2)
        #expect(other.withLock { $0 }?.body(key) == testBody(2))
        store.flush()
        #expect(store.body(key) == testBody(2))
    }

    @Test("A victim that cannot be unlinked is passed over") func stuckVictim() throws {
        let files = FaultyFileSystem()
        let store = fixture.open(capacity: 400 << 10, files: files)
        store.store(.test(testBody(0)), for: .test("0"))
        store.flush()
        let stuck = try #require(fixture.recordNames().first)
        files.rule = { $0.operation == .unlink && $0.name == stuck ? .error(EPERM) : nil }
        _ = files.takeCalls()
        for number in 1..<300 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        #expect(fixture.allocated() <= 400 << 10)
        #expect(fixture.recordNames().contains(stuck))
        #expect(store.contains(.test("299")))
        #expect(files.takeCalls().filter { $0.operation == .unlink && $0.name == stuck }.count <= 20)
    }

    @Test(
        "Directory deleted, renamed or replaced while in use: the next store makes it again and works",
        arguments: ["deleted", "records deleted", "renamed", "replaced", "records replaced"])
    func directoryGone(kind: String) throws {
        let store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        // No lookup asks for these records again, so their bytes must be subtracted without one.
        for number in 10..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        let aside = fixture.scratch.appending("aside").path
        switch kind {
        case "deleted": try FileManager.default.removeItem(atPath: fixture.directory)
        case "records deleted": try FileManager.default.removeItem(atPath: fixture.records)
        case "renamed": try FileManager.default.moveItem(atPath: fixture.directory, toPath: aside)
        case "replaced":
            try FileManager.default.moveItem(atPath: fixture.directory, toPath: aside)
            try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
        default:
            try FileManager.default.moveItem(atPath: fixture.records, toPath: aside)
            try FileManager.default.createDirectory(atPath: fixture.records, withIntermediateDirectories: true)
        }
        #expect(store.variants(of: key).isEmpty)
        for number in 0..<3 {
            store.store(.test(testBody(number)), for: .test("\(number)"))
            store.flush()
            // A folder that another process put there may mean that it cleared the cache, so the first store may be
            // lost.
            if number > 0 || kind != "records replaced" { #expect(store.body(.test("\(number)")) == testBody(number)) }
        }
        #expect(store.variants(of: key).isEmpty)
        #expect(store.usage == fixture.allocatedByRecords())
        let status = try SystemFiles().status(at: fixture.records)
        if kind != "records replaced" { #expect(status.permissions == 0o700) }
        // And this store maintains the new directory.
        #expect(FileManager.default.fileExists(atPath: fixture.directory + "/index.plist"))
    }

    @Test("A directory deleted in mid-write", arguments: 1...6) func directoryGoneInMidWrite(step: Int)
        async throws
    {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.flush()
        let count = Mutex(0)
        let directory = fixture.directory
        files.rule = { call in
            let number = count.next()
            if number == step { try? FileManager.default.removeItem(atPath: directory) }
            return nil
        }
        for number in 0..<5 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        files.rule = { _ in nil }
        store.store(.test(testBody(9)), for: .test("9"))
        store.flush()
        #expect(store.body(.test("9")) == testBody(9))
        // A record that was lost with the directory, just after it was written, is counted until a lookup misses it.
        await eventually("a usage that is what the files take") {
            for number in 0..<5 { _ = store.body(.test("\(number)")) }
            store.flush()
            return store.usage == fixture.allocatedByRecords()
        }
    }

    @Test("Nothing is ever written outside the directory") func noTemporaryDirectory() throws {
        let files = FaultyFileSystem()
        _ = files.takeCalls()
        files.logChanges()
        let store = fixture.open(files: files)
        for number in 0..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        store.removeAll()
        store.close()
        var renamed = 0
        for case .rename(let path, let newPath) in files.changes {
            #expect(path.hasPrefix(fixture.directory) && newPath.hasPrefix(fixture.directory + "/"))
            renamed += 1
        }
        #expect(renamed >= 2)
        let calls = files.takeCalls()
        #expect(calls.count > 100)
        // Making the directory tries its parents, and nothing else.
        #expect(
            calls.allSatisfy {
                $0.path.hasPrefix(fixture.directory)
                    || fixture.directory.hasPrefix($0.path.replacingOccurrences(of: "/.", with: ""))
            })
    }
}

import Dispatch
import Foundation
import Testing

@testable import DiskURLCache

/// A 304 or a pin appends a tail to its record. Whatever happens to the file: the old tail, the new tail or a miss.
@Suite("Updated records", .fewAtATime) struct UpdateDamageTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    private func metadata(_ sequence: UInt64, tags: [String] = ["new"], language: String? = "de") -> EntryMetadata {
        StoredEntry.test(Data(), sequence: sequence, language: language, tags: tags).metadata
    }

    private func update(_ store: DiskStore, to sequence: UInt64, from old: UInt64, tags: [String] = ["new"]) -> Bool {
        store.update(
            metadata(sequence, tags: tags), of: key, replacing: metadata(old), usedAt: MonotonicTime.nanoseconds)
    }

    @Test func anUpdateAppendsATailAndWritesNoBody() throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.store(.test(testBody(1, length: 3_000_000), sequence: 1, language: "de"), for: key)
        store.store(.test(testBody(2), sequence: 2, language: "en"), for: key)
        store.flush()
        let names = fixture.recordNames()
        _ = files.takeReadings()
        _ = files.takeCalls()
        files.logChanges()
        var pinned = metadata(3, tags: ["x", "y"])
        pinned.isPinned = true
        pinned.storedAt = Date(timeIntervalSince1970: 1_800_000_000)
        #expect(store.update(pinned, of: key, replacing: metadata(1), usedAt: MonotonicTime.nanoseconds))
        let written = files.changes.reduce(0) { if case .write(_, _, let bytes) = $1 { $0 + bytes.count } else { $0 } }
        #expect(written < 2000)
        #expect(files.takeReadings().values.reduce(0) { $0 + $1.bytes } < 20_000)
        #expect(fixture.recordNames() == names)
        for round in 0..<3 {
            let found = try #require(store.variants(of: key).first)
            #expect(found.metadata == pinned)
            // Not the body, until somebody wants it.
            if round < 2 { #expect(files.takeReadings().values.reduce(0) { $0 + $1.bytes } < 20_000) }
            #expect(found.load()?.body == testBody(1, length: 3_000_000))
            _ = files.takeReadings()
            #expect(store.usage == fixture.allocatedByRecords())
            if round == 1 { store.withIO { store.examine(key.name, &$0, verifyingBodies: true) } }
        }
        store.close()
        let reopened = fixture.open()
        #expect(reopened.variants(of: key).map(\.metadata.sequence) == [3, 2])
        reopened.flush()
        reopened.remove(matching: EntryCriteria(tags: ["y"]))
        #expect(reopened.variants(of: key).map(\.metadata.sequence) == [2])
    }

    /// The index knows of a record what its tail says, also if its row is made anew.
    @Test(arguments: [false, true], ["tag", "date", "pin"])
    func removalsAndEvictionFindWhatAnUpdateChanged(isMadeAnew: Bool, by what: String) throws {
        let store = fixture.open()
        store.store(.test(testBody(1), sequence: 1, language: "de"), for: key)
        store.store(.test(testBody(2), sequence: 2, language: "en"), for: key)
        store.flush()
        var changed = metadata(3, tags: ["x", "y"])
        changed.isPinned = what == "pin"
        changed.storedAt = Date().addingTimeInterval(86_400)
        #expect(store.update(changed, of: key, replacing: metadata(1), usedAt: MonotonicTime.nanoseconds))
        if isMadeAnew { store.withIO { store.examine(key.name, &$0, verifyingBodies: true) } }
        var criteria = EntryCriteria.everything
        switch what {
        case "tag": criteria.tags = ["y"]
        case "date": criteria.storedAfter = Date().addingTimeInterval(3_600)
        default:
            for number in 0..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
            store.capacity = 40 << 10
            store.flush()
            #expect(store.variants(of: key).map(\.metadata.sequence) == [3])
            return
        }
        store.remove(matching: criteria)
        #expect(store.variants(of: key).map(\.metadata.sequence) == [2])
    }

    @Test func onlyTheRecordThatWasAskedAboutIsUpdated() throws {
        let store = fixture.open()
        #expect(!update(store, to: 6, from: 5))
        store.store(.test(testBody(1), sequence: 5, language: "de"), for: key)
        #expect(!update(store, to: 7, from: 6))
        #expect(store.variants(of: key).map(\.metadata.sequence) == [5])
        store.store(.test(testBody(2), sequence: 6, language: "de"), for: key)
        #expect(!update(store, to: 7, from: 5))
        #expect(store.body(key) == testBody(2))
        store.remove(key)
        #expect(!update(store, to: 7, from: 6))
        #expect(store.variants(of: key).isEmpty)
        #expect(fixture.recordNames().isEmpty)
        store.store(.test(testBody(1), sequence: 8, language: "de"), for: key)
        store.removeAll()
        #expect(!update(store, to: 9, from: 8))
        #expect(fixture.recordNames().isEmpty)
    }

    @Test(
        "An append that fails leaves the old tail, and what was written of it is cut off",
        arguments: [ENOSPC, EDQUOT, EIO], [0, 50])
    func failedAppend(code: Int32, written: Int) throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.store(.test(testBody(1, length: 5000), sequence: 5, language: "de"), for: key)
        store.flush()
        let path = try #require(fixture.onlyRecord(key))
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let isFirst = Mutex(written > 0)
        files.rule = { call in
            guard call.isRecord, call.operation == .write else { return nil }
            return isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? .short(written) : .error(code)
            }
        }
        #expect(!update(store, to: 6, from: 5))
        files.rule = { _ in nil }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
        #expect(store.variants(of: key).map(\.metadata.sequence) == [5])
        #expect(fixture.log.events.contains(.notUpdated(key: key.name, .diskFailed(errno: code))))
        #expect(update(store, to: 6, from: 5))
        #expect(store.variants(of: key).map(\.metadata.sequence) == [6])
        #expect(store.body(key) == testBody(1, length: 5000))
    }

    @Test func aRecordOfTooManyTailsIsWrittenAnew() throws {
        let store = fixture.open()
        let body = testBody(1, length: 300_000)
        store.store(.test(body, sequence: 1, language: "de"), for: key)
        let limit = 300_000 + RecordWriter.tailsLimit(bodyLength: 300_000) + 2 * 1000
        var names: Set<String> = []
        var largest = 0
        for sequence in UInt64(1)..<300 {
            #expect(update(store, to: sequence + 1, from: sequence, tags: ["\(sequence)"]))
            let path = try #require(fixture.onlyRecord(key))
            names.insert(path)
            largest = max(largest, try SystemFiles().status(at: path).size)
        }
        #expect(largest <= limit)
        #expect(largest > 300_000 + RecordWriter.tailsLimit(bodyLength: 300_000) / 2)
        #expect(names.count == 2 || names.count > 2 && names.count < 20)
        let found = try #require(store.variants(of: key).first)
        #expect(found.metadata.tags == ["299"])
        #expect(found.load()?.body == body)
        store.flush()
        #expect(store.usage == fixture.allocatedByRecords())
        #expect(store.entryCount == 1)
    }

    @Test func aRecordThatSomebodyElseHasLockedIsWrittenAnew() throws {
        let store = fixture.open()
        store.store(.test(testBody(1), sequence: 5, language: "de"), for: key)
        let path = try #require(fixture.onlyRecord(key))
        // A cache that is alone asks for no lock.
        let other = fixture.open()
        #expect(other.body(key) == testBody(1))
        store.checkNow()
        let file = try SystemFiles().openFile(path, O_RDONLY)
        #expect(try SystemFiles().lockFile(file))
        #expect(update(store, to: 6, from: 5))
        #expect(store.variants(of: key).map(\.metadata.sequence) == [6])
        // Whoever has locked the old one may be about to remove it, so it stays as long.
        SystemFiles().closeQuietly(file)
        #expect(store.variants(of: key).map(\.metadata.sequence) == [6])
        #expect(store.body(key) == testBody(1))
        store.flush()
        #expect(try #require(fixture.onlyRecord(key)) != path)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// Its writer, which has just written it, does not know that it is replaced, or it is killed before it tells of it.
    @Test(arguments: [true, false]) func aReplacedRecordThatItsWriterHasLockedDoesNotComeBack(isEvicted: Bool) throws {
        let store = fixture.open(capacity: 64 << 10) { $0.lowWaterFraction = 1 }
        store.store(.test(testBody(1), sequence: 5), for: key)
        let path = try #require(fixture.onlyRecord(key))
        let other = fixture.open(capacity: 64 << 10)
        #expect(other.body(key) == testBody(1))
        store.checkNow()
        let file = try SystemFiles().openFile(path, O_RDONLY)
        #expect(try SystemFiles().lockFile(file))
        store.store(.test(testBody(2), sequence: 6), for: key)
        #expect(fixture.recordNames().count == 2)
        if isEvicted {
            for number in 1...30 {
                store.store(.test(testBody(number)), for: .test("/\(number)"))
                store.flush()
                #expect(other.body(key) != testBody(1))
            }
            #expect(store.body(key) == nil && other.body(key) == nil)
            SystemFiles().closeQuietly(file)
        } else {
            store.flush()
            #expect(store.body(key) == testBody(2))
            SystemFiles().closeQuietly(file)
            store.requestExamination(of: key.name)
            store.flush()
            #expect(try #require(fixture.onlyRecord(key)) != path)
            #expect(store.body(key) == testBody(2) && store.entryCount == 1)
        }
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// Calls `work` on another thread while the record of `key` is written anew, since another process has locked it.
    /// - Returns: whether the update succeeded, and whether the work was done while the bytes were being written.
    private func rewrite(
        _ work: @escaping @Sendable (DiskStore) -> Void
    ) throws -> (store: DiskStore, isUpdated: Bool, wasDone: Bool) {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.store(.test(testBody(1), sequence: 5, language: "de"), for: key)
        store.store(.test(testBody(2), sequence: 6), for: .test("b"))
        let outcome = Mutex(false)
        let isFirst = Mutex(true)
        files.rule = { call in
            guard call.name.hasPrefix("incoming"), call.operation == .write, isFirst.withLock({ $0 }) else {
                return nil
            }
            isFirst.withLock { $0 = false }
            let isDone = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                work(store)
                isDone.signal()
            }
            let wasDone = isDone.isSignalled("the work beside a record that is written anew")
            outcome.withLock { $0 = wasDone }
            return nil
        }
        let isUpdated = try whileLocked(store) { _ in update(store, to: 7, from: 5) }
        return (store, isUpdated, outcome.withLock { $0 })
    }

    /// Calls `work` while another process has locked the record of `key`.
    private func whileLocked<Result>(_ store: DiskStore, _ work: (_ path: String) throws -> Result) throws -> Result {
        let path = try #require(fixture.onlyRecord(key))
        // A cache that is alone asks for no lock.
        let other = fixture.open()
        #expect(other.variants(of: key).count == 1)
        defer { other.close() }
        store.checkNow()
        let file = try SystemFiles().openFile(path, O_RDONLY)
        defer { SystemFiles().closeQuietly(file) }
        #expect(try SystemFiles().lockFile(file))
        return try work(path)
    }

    /// The body may be large, and the disk slow.
    @Test func nothingWaitsForARecordThatIsWrittenAnew() throws {
        let (store, isUpdated, wasDone) = try rewrite { $0.remove(.test("b")) }
        #expect(isUpdated && wasDone)
        #expect(store.variants(of: key).map(\.metadata.sequence) == [7])
        #expect(store.body(key) == testBody(1) && store.variants(of: .test("b")).isEmpty)
        store.flush()
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// A large body is not read into memory for that.
    @Test func aRecordIsWrittenAnewInPieces() throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        let body = testBody(1, length: 3_000_000)
        store.store(.test(body, sequence: 5, language: "de"), for: key)
        files.logChanges()
        #expect(try whileLocked(store) { _ in update(store, to: 7, from: 5) })
        let lengths = files.changes.compactMap { change in
            if case .write(_, _, let bytes) = change { bytes.count } else { nil }
        }
        #expect(lengths.reduce(0, +) >= body.count && lengths.max() ?? 0 <= 256 << 10)
        #expect(store.body(key) == body)
        store.flush()
        #expect(store.usage == fixture.allocatedByRecords() && fixture.recordNames().count == 1)
    }

    @Test func aRecordThatIsRemovedWhileItIsWrittenAnewIsNotBroughtBack() throws {
        let key = key
        let (store, isUpdated, wasDone) = try rewrite { $0.remove(key) }
        #expect(!isUpdated && wasDone)
        #expect(store.variants(of: key).isEmpty && store.body(.test("b")) == testBody(2))
        #expect(fixture.recordNames().count == 1)
        store.flush()
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// What another thread stored meanwhile is newer.
    @Test func aRecordThatIsReplacedWhileItIsWrittenAnewStaysReplaced() throws {
        let key = key
        let (store, isUpdated, wasDone) = try rewrite {
            $0.store(.test(testBody(3), sequence: 8, language: "de"), for: key)
        }
        #expect(!isUpdated && wasDone)
        #expect(store.variants(of: key).map(\.metadata.sequence) == [8] && store.body(key) == testBody(3))
        store.flush()
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// Written anew, it would not be found by another process that is just removing it.
    @Test func aRecordThatGetsNoMarkIsRemoved() throws {
        let store = fixture.open()
        store.store(.test(testBody(1), sequence: 5, language: "de", tags: ["t"]), for: key)
        try whileLocked(store) { _ in
            let mark = EntryCriteria(tags: ["t"])
            store.markStale(matching: mark, at: Date(timeIntervalSince1970: 1_900_000_000))
            #expect(store.variants(of: key).isEmpty && fixture.recordNames().isEmpty)
        }
        store.flush()
        #expect(store.usage == fixture.allocatedByRecords())
    }

    @Test func whatCannotBeKeptTakesTheOldRecordAlong() throws {
        let store = fixture.open()
        store.store(.test(testBody(1), sequence: 5, language: "de"), for: key)
        var bad = metadata(6)
        bad.placement = .memoryOnly
        #expect(store.update(bad, of: key, replacing: metadata(5), usedAt: 0))
        #expect(store.variants(of: key).isEmpty)
        #expect(fixture.recordNames().isEmpty)
        #expect(fixture.log.events.contains(.notUpdated(key: key.name, .malformed)))
    }

    @Test("What a guest updates the owner counts") func updatesOfOthers() throws {
        let owner = fixture.open()
        owner.store(.test(testBody(1, length: 3800), sequence: 5, language: "de"), for: key)
        owner.flush()
        let other = fixture.open()
        for sequence in UInt64(5)..<25 { #expect(update(other, to: sequence + 1, from: sequence)) }
        other.flush()
        owner.flush()
        #expect(owner.variants(of: key).map(\.metadata.sequence) == [25])
        #expect(owner.usage == fixture.allocatedByRecords())
    }
}

import Foundation
import Testing

@testable import DiskURLCache

/// What has been stored and removed, by number; decides whether a value read was possible.
///
/// A value was possible unless a removal, or the storing of another value for the key, began after the value was stored
/// and ended before the reading began.
final class Oracle: Sendable {
    private struct Key {
        /// When the storing of each value ended; nil while it is under way.
        var stored: [Int: Int?] = [:]
        /// When the last of the operations began that have ended.
        var lastBegan = 0
    }

    private struct State {
        var time = 0
        var keys: [Key]

        mutating func next() -> Int {
            time += 1
            return time
        }
    }

    private let state: Mutex<State>

    init(keys: Int) {
        state = Mutex(State(keys: .init(repeating: Key(), count: keys)))
    }

    /// Stores a value that was never stored before, or nil to remove.
    func change(_ key: Int, to value: Int?, _ work: () -> Void) {
        let began = state.withLock { state in
            if let value { state.keys[key].stored[value] = .some(nil) }
            return state.next()
        }
        work()
        state.withLock { state in
            if let value { state.keys[key].stored[value] = state.next() }
            state.keys[key].lastBegan = max(state.keys[key].lastBegan, began)
        }
    }

    func changeAll(_ work: () -> Void) {
        let began = state.withLock { $0.next() }
        work()
        state.withLock { state in
            for key in state.keys.indices { state.keys[key].lastBegan = max(state.keys[key].lastBegan, began) }
        }
    }

    /// Whether what `read` finds was possible.
    func isPossible(_ key: Int, _ read: () -> Int?) -> Bool {
        let lastBegan = state.withLock { $0.keys[key].lastBegan }
        // A cache may always forget.
        guard let value = read() else { return true }
        return state.withLock { state in
            guard let stored = state.keys[key].stored[value] else { return false }
            return stored.map { lastBegan < $0 } ?? true
        }
    }
}

@Suite("Concurrency", .fewAtATime) struct ConcurrencyTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    private static func run(
        _ stores: [DiskStore], threads: Int, operations: Int, oracle: Oracle, keys: Int, removesAll: Bool
    ) async {
        let sequences = Mutex<UInt64>(0)
        await onThreads(threads) { thread in
            var random = TestRandom(thread + 1)
            let store = stores[thread % stores.count]
            for step in 0..<operations {
                let key = Int.random(in: 0..<keys, using: &random)
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<50:
                    let isPossible = oracle.isPossible(key) {
                        guard let candidate = store.variants(of: .test("\(key)")).first, let entry = candidate.load()
                        else { return nil }
                        // A body that is nobody's is a number that nobody stored.
                        return NumberedBody.number(of: entry.body) ?? -1
                    }
                    if !isPossible { Issue.record("an impossible value of \(key)") }
                case 50..<85:
                    let value = (step * threads + thread) + 1
                    oracle.change(key, to: value) {
                        // As the owner of the layers gives them: later entries have larger numbers.
                        let sequence = sequences.next()
                        store.store(.test(NumberedBody.make(value), sequence: sequence), for: .test("\(key)"))
                    }
                case 85..<95: oracle.change(key, to: nil) { store.remove(.test("\(key)")) }
                case 95..<97: store.touch(.test("\(key)"))
                case 97: _ = store.contains(.test("\(key)"))
                case 98: if step % 20 == 0 { store.flush() }
                default: if removesAll, step % 10 == 0 { oracle.changeAll { store.removeAll() } }
                }
            }
        }
    }

    /// The long form has 100,000 in all.
    private static let operations = TestLength.operations(plain: 200, long: 12_500)

    @Test(
        "Eight threads, all operations mixed: some serial order, and all agree after a flush",
        arguments: [100 << 20, 300 << 10])
    func eightThreads(capacity: Int) async throws {
        let store = fixture.open(capacity: capacity)
        let oracle = Oracle(keys: 60)
        await Self.run([store], threads: 8, operations: Self.operations, oracle: oracle, keys: 60, removesAll: true)
        store.flush()
        #expect(store.usage == fixture.allocatedByRecords())
        #expect(store.entryCount == fixture.recordNames().count)
        #expect(fixture.allocated() <= capacity)
        for key in 0..<60 {
            let isPossible = oracle.isPossible(key) {
                store.body(.test("\(key)")).map { NumberedBody.number(of: $0) ?? -1 }
            }
            #expect(isPossible)
        }
        #expect(fixture.log.count { if case .removedCorruptRecord = $0 { true } else { false } } == 0)
    }

    @Test("Two caches on one directory: right bytes, one owner, usage converges") func twoCaches()
        async throws
    {
        let stores = [fixture.open(), fixture.open()]
        await onThreads(8) { thread in
            var random = TestRandom(thread)
            let store = stores[thread % 2]
            for step in 0..<Self.operations / 3 {
                let key = Int.random(in: 0..<50, using: &random)
                switch step % 10 {
                case 0..<5:
                    if let body = store.body(.test("\(key)")), NumberedBody.number(of: body).map({ $0 % 50 }) != key {
                        Issue.record("not a body of \(key)")
                    }
                case 5..<9:
                    store.store(
                        .test(NumberedBody.make(key + 50 * (step * 8 + thread)), sequence: UInt64(step * 8 + thread)),
                        for: .test("\(key)"))
                default: store.remove(.test("\(key)"))
                }
            }
        }
        // From here on no pass comes between two looks of the test.
        for store in stores { store.maintenance.pause() }
        for store in stores { store.flush() }
        for store in stores { store.flush() }
        #expect(fixture.log.count { $0 == .becameOwner } == 1)
        for store in stores {
            #expect(store.usage == fixture.allocatedByRecords())
            #expect(store.entryCount == fixture.recordNames().count)
            for key in 0..<50 {
                if let body = store.body(.test("\(key)")) {
                    #expect(NumberedBody.number(of: body).map { $0 % 50 } == key)
                }
            }
        }
        // What one stores, replaces or removes the other sees.
        for (one, other) in [(stores[0], stores[1]), (stores[1], stores[0])] {
            one.store(.test(testBody(1), sequence: 1 << 40), for: key)
            one.flush()
            other.flush()
            #expect(other.body(key) == testBody(1))
            other.store(.test(testBody(2), sequence: 1 << 41), for: key)
            other.flush()
            one.flush()
            #expect(one.body(key) == testBody(2))
            one.remove(key)
            #expect(other.variants(of: key).isEmpty)
            one.store(.test(testBody(3), sequence: 1 << 42), for: key)
            one.flush()
            other.removeAll()
            #expect(one.variants(of: key).isEmpty)
            one.flush()
            #expect(one.usage == 0)
            #expect(other.usage == 0)
        }
        // The owner closes, and the guest takes over.
        let isFirst = stores[0].isOwner
        stores[isFirst ? 0 : 1].close()
        let heir = stores[isFirst ? 1 : 0]
        heir.flush()
        #expect(heir.isOwner)
    }

    @Test("Lookups see by themselves what others stored, and that the folder is another one")
    func lookingOutside() throws {
        let store = fixture.open()
        // It becomes the owner before the second store is opened: on a loaded machine either could be first.
        store.flush()
        let guest = fixture.open()
        store.maintenance.pause()
        func body(_ key: RequestKey) -> Data? {
            store.lookLater()
            return store.body(key)
        }
        #expect(body(key) == nil)
        guest.store(.test(testBody(1)), for: key)
        guest.flush()
        #expect(body(key) == testBody(1))
        // A folder of the same name, and nothing that says so.
        store.maintenance.resume()
        store.flush()
        store.maintenance.pause()
        let new = fixture.recordPath(.test("b"))
        store.store(.test(testBody(2)), for: .test("b"))
        store.flush()
        let aside = fixture.scratch.appending("aside").path
        try FileManager.default.moveItem(atPath: new, toPath: aside)
        store.remove(.test("b"))
        #expect(body(.test("b")) == nil)
        // The index is complete: it says no by itself.
        #expect(!store.mayContain(.test("none")))
        // Moved, not removed: a file system may give a new folder the number of one that is gone.
        try FileManager.default.moveItem(atPath: fixture.records, toPath: fixture.scratch.appending("old").path)
        try FileManager.default.createDirectory(atPath: fixture.records, withIntermediateDirectories: true)
        try FileManager.default.moveItem(atPath: aside, toPath: new)
        #expect(body(.test("b")) == testBody(2))
        #expect(body(key) == nil)
    }

    /// The key's variants have the first two slots.
    private func storeOfTwoVariants(_ files: FaultyFileSystem) -> DiskStore {
        let store = fixture.open(files: files) { $0.maintenanceDelay = 3600 }
        store.flush()
        store.store(.test(testBody(1), sequence: 1), for: key)
        store.store(.test(testBody(2), sequence: 2, language: "de"), for: key)
        return store
    }

    /// The variant that was asked for moved on while its key was read, and its old slot has the beginning of a later
    /// record: the older variant beside it is no answer.
    @Test func aSlotThatIsBeingWrittenAgainHidesNothing() async throws {
        let (key, first) = (key, fixture.recordPath(key))
        let (isBegun, isRead) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let files = FaultyFileSystem()
        let store = storeOfTwoVariants(files)
        let opened = Mutex(0)
        let isPaused = Mutex(false)
        let writer = DispatchGroup()
        files.rule = { call in
            guard call.path == first else { return nil }
            switch call.operation {
            case .open:
                let number = opened.next()
                if number > 1 { return nil }
                // The reader is about to open the first slot.
                writer.enter()
                Thread.detachNewThread {
                    store.store(.test(testBody(3), sequence: 3), for: key)
                    store.store(.test(testBody(4), sequence: 4), for: key)
                    writer.leave()
                }
                isBegun.isSignalled("the writer to begin")
            case .write:
                isPaused.withLock { $0 = true }
                isBegun.signal()
                isRead.isSignalled("the reader to close the file")
            case .close: if isPaused.withLock({ $0 }) { isRead.signal() }
            default: break
            }
            return nil
        }
        let found = store.variants(of: key)
        await withCheckedContinuation { ended in writer.notify(queue: .global()) { ended.resume() } }
        // The third is the one to serve until the fourth is whole.
        #expect([[3, 2], [4, 2]].contains(found.map(\.metadata.sequence)))
    }

    /// Another cache replaces a record that is whole, but of which its own cache has no row yet.
    @Test func aRecordThatIsReplacedBeforeItHasARowGetsNone() {
        let files = FaultyFileSystem()
        let owner = fixture.open(files: files)
        owner.flush()
        let guest = fixture.open()
        guest.flush()
        let isArmed = Mutex(true)
        files.rule = { [key] call in
            // The last operation before the record gets its row.
            guard call.operation == .close, call.isRecord, isArmed.disarm() else { return nil }
            guest.store(.test(testBody(2), sequence: 2), for: key)
            // By now the owner has heard what the guest told.
            owner.checkNow()
            owner.flush()
            return nil
        }
        owner.store(.test(testBody(1), sequence: 1), for: key)
        #expect(owner.entryCount == fixture.recordNames().count)
        #expect(owner.body(key) == testBody(2))
    }

    /// Another cache removes an older record by its name, which the new record has by now: before the writer looks
    /// whether the record is still there, or after it.
    @Test(arguments: [FaultyFileSystem.Operation.close, .open])
    func aRecordThatGoesInsteadOfAnOlderOneIsWrittenAgain(before operation: FaultyFileSystem.Operation) {
        let files = FaultyFileSystem()
        let owner = fixture.open(files: files)
        owner.flush()
        owner.store(.test(testBody(1), sequence: 1), for: key)
        let guest = fixture.open()
        guest.flush()
        owner.checkNow()
        let (first, isArmed) = (fixture.recordPath(key), Mutex(true))
        files.rule = { call in
            guard call.operation == operation, call.isRecord, call.path != first,
                call.flags & O_CREAT == 0, isArmed.disarm()
            else { return nil }
            #expect(throws: Never.self) { try SystemFiles().unlink(call.path) }
            return nil
        }
        owner.store(.test(testBody(2), sequence: 2), for: key)
        #expect(!isArmed.withLock { $0 })
        for store in [owner, guest] { #expect(store.body(key) == testBody(2)) }
        #expect(fixture.recordNames().count == 1)
    }

    /// The record is replaced, and its file is gone, after the reader opened it.
    @Test func aRecordThatIsReplacedWhileItIsReadHidesNothing() {
        let (key, first) = (key, fixture.recordPath(key))
        let files = FaultyFileSystem()
        let store = storeOfTwoVariants(files)
        let asked = Mutex(0)
        files.rule = { call in
            guard call.path == first, call.operation == .status, asked.next() == 1 else { return nil }
            store.store(.test(testBody(3), sequence: 3), for: key)
            return nil
        }
        #expect(store.variants(of: key).map(\.metadata.sequence) == [3, 2])
    }

    @Test("A guest neither writes the index nor evicts") func guestKeepsOut() throws {
        let owner = fixture.open()
        owner.flush()
        let files = FaultyFileSystem()
        _ = files.takeCalls()
        let guest = fixture.open(capacity: 100 << 10, files: files)
        for number in 0..<100 { guest.store(.test(testBody(number)), for: .test("\(number)")) }
        guest.flush()
        #expect(fixture.recordNames().count == 100)
        let calls = files.takeCalls()
        #expect(!calls.contains { $0.operation == .write && $0.name.hasPrefix("index") })
        #expect(!calls.contains { $0.operation == .unlink && $0.isRecord })
        owner.flush()
        #expect(owner.usage == fixture.allocatedByRecords())
        owner.capacity = 200 << 10
        owner.flush()
        #expect(fixture.allocated() <= 200 << 10)
    }

    /// Between making its file and locking it a writer may be held up for any time.
    @Test("A record that another cache took for torn before its writer had locked it is written again")
    func removedBeforeItsLock() throws {
        let other = fixture.open { $0.maintenanceDelay = 3600 }
        other.flush()
        let count = Mutex(0)
        let key = key
        let files = FaultyFileSystem { call in
            guard call.isRecord, call.operation == .lockFile else { return nil }
            let number = count.next()
            if number <= 2 { other.withIO { other.examine(key.name, &$0) } }
            return nil
        }
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.store(.test(testBody(2)), for: .test("b"))
        store.maintenance.perform { store.runPass(isFlush: false) }
        #expect(fixture.log.count { $0 == .removedCorruptRecord(key: key.name) } == 2)
        #expect(store.body(key) == testBody(1))
        #expect(store.body(.test("b")) == testBody(2))
        #expect(fixture.recordNames().count == 2)
        other.flush()
        #expect(other.usage == fixture.allocatedByRecords())
        #expect(other.entryCount == 2)
    }

    @Test("Who fails to become the owner leaves the place of another as it is") func failedElection()
        throws
    {
        let moved = fixture.scratch.appending("moved").path
        let other = Mutex<DiskStore?>(nil)
        let isFirst = Mutex(true)
        let directory = fixture.directory
        let log = fixture.log
        let files = FaultyFileSystem { call in
            guard call.operation == .lockProcess,
                isFirst.disarm()
            else { return nil }
            // Meanwhile the directory is that of another cache.
            try? FileManager.default.moveItem(atPath: directory, toPath: moved)
            let store = DiskStore(configuration: .init(directory: moved, capacity: 1 << 20), report: log.report)
            store.flush()
            // No pass of its timer comes before the look at it.
            store.maintenance.pause()
            other.withLock { $0 = store }
            return .error(EIO)
        }
        let store = fixture.open(files: files)
        store.flush()
        let second = try #require(other.withLock { $0 })
        // While the first one asked, the place was taken.
        #expect(!second.isOwner)
        second.maintenance.resume()
        second.flush()
        #expect(second.isOwner)
        let third = DiskStore(configuration: .init(directory: moved, capacity: 1 << 20), report: log.report)
        third.flush()
        #expect(!third.isOwner)
    }

    @Test("Eviction while a reader holds the body: its bytes stay whole") func evictionWhileReading() throws {
        let store = fixture.open()
        store.store(.test(testBody(1, length: 2_000_000)), for: key)
        store.flush()
        let candidate = try #require(store.variants(of: key).first)
        let body = try #require(candidate.load()?.body)
        // Cut, overwritten, unlinked, the folder moved away.
        let path = try #require(fixture.onlyRecord(key))
        try Data(count: 10).write(to: URL(fileURLWithPath: path))
        store.remove(key)
        store.removeAll()
        store.flush()
        #expect(body == testBody(1, length: 2_000_000))
        #expect(candidate.load() == nil)
    }
}

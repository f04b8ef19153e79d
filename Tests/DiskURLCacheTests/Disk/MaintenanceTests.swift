import Foundation
import Testing

@testable import DiskURLCache

@Suite("Maintenance", .fewAtATime) struct MaintenanceTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    /// One source that was suspended and scheduled again lost a firing in one of 500 rounds:
    /// `DISKURLCACHE_TIMER_ROUNDS=5000` finds such a thing for certain.
    @Test("Timer: start, suspend and release in every order: fires when it is to, and then only")
    func timerOrders() {
        for _ in 0..<TestLength.timerRounds where !everyOrderFires() {
            Issue.record("timers that are due do not fire")
            return
        }
    }

    private func everyOrderFires() -> Bool {
        let queue = DispatchQueue(label: "test")
        let fired = Mutex<Set<Int>>([])
        let isDone = DispatchSemaphore(value: 0)
        var mustFire: Set<Int> = []
        var mayFire: Set<Int> = []
        // Of those that are to fire every other one is let go at once, the rest when they have fired.
        var kept: [SuspendableTimer] = []
        for steps in 0..<4096 {
            let timer = SuspendableTimer(queue: queue) {
                if fired.withLock({ $0.insert(steps).inserted }) { isDone.signal() }
            }
            var rest = steps
            var isDue = false
            for _ in 0..<6 {
                switch rest % 4 {
                case 0:
                    timer.start(after: 1000)
                    isDue = false
                case 1:
                    timer.suspend()
                    isDue = false
                case 2:
                    timer.start(after: 0)
                    isDue = true
                    mayFire.insert(steps)
                default: break
                }
                rest /= 4
            }
            if isDue, steps % 2 == 0 {
                mustFire.insert(steps)
                kept.append(timer)
            }
        }
        #expect(mustFire.count > 300)
        while !fired.withLock({ mustFire.isSubset(of: $0) }) {
            guard isDone.isSignalled("the timer") else { return false }
        }
        kept = []
        queue.sync {}
        #expect(fired.withLock { $0.isSubset(of: mayFire) })
        return true
    }

    @Test("A timer that was let go, or started anew, does not fire for what was before") func firesOnce() {
        let queue = DispatchQueue(label: "test")
        // What the handler holds, to see that it is let go.
        var count: Mutex<Int>? = Mutex(0)
        weak let held = count
        // Due while the queue is held up, and so in flight.
        let isHeld = DispatchSemaphore(value: 0)
        let mayGo = DispatchSemaphore(value: 0)
        queue.async {
            isHeld.signal()
            mayGo.isSignalled("the test to go on")
        }
        isHeld.isSignalled("the handler of the timer")
        var timer: SuspendableTimer? = SuspendableTimer(queue: queue) { [count] in count?.withLock { $0 += 1 } }
        for _ in 0..<100 { timer?.start(after: 0) }
        mayGo.signal()
        var patience = Patience()
        while count?.withLock({ $0 }) == 0, !patience.isOver() { queue.sync {} }
        for _ in 0..<100 { queue.sync {} }
        #expect(count?.withLock { $0 } == 1)
        timer?.start(after: 1000)
        timer = nil
        count = nil
        // Dispatch lets go of the handler when it gets round to it.
        for _ in 0..<10_000_000 where held != nil { queue.sync {} }
        #expect(held == nil)
    }

    @Test("Let go at any moment: all that was stored lands, and nothing that was cleared", arguments: 0..<30)
    func releasedAtAnyMoment(number: Int) throws {
        let isCleared = number % 5 == 0
        do {
            var configuration = DiskConfiguration(directory: fixture.directory, capacity: 100 << 20)
            configuration.maintenanceDelay = 0
            let store = DiskStore(configuration: configuration)
            for step in 0..<number { #expect(store.store(.test(testBody(step)), for: .test("\(step)")) == .written) }
            if number % 3 == 0 { _ = store.variants(of: key) }
            if isCleared { store.removeAll() }
            if number % 7 == 0 { store.close() }
        }
        let store = fixture.open()
        for _ in 0..<2 {
            for step in 0..<number {
                #expect(store.body(.test("\(step)")) == (isCleared ? nil : testBody(step)))
            }
            store.flush()
        }
        #expect(fixture.recordNames().count == (isCleared ? 0 : number))
        #expect(store.entryCount == fixture.recordNames().count)
    }

    @Test func aClosedStoreReadsAndRemovesButDoesNotStore() throws {
        let store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.store(.test(testBody(2)), for: .test("b"))
        store.close()
        store.close()
        #expect(store.body(key) == testBody(1))
        #expect(store.store(.test(testBody(3)), for: key).refusal == DiskWriteResult.words(0))
        store.remove(.test("b"))
        #expect(!store.contains(.test("b")))
        store.flush()
        #expect(store.body(key) == testBody(1))
    }

    @Test func callingBackFromAnEventDoesNotHang() throws {
        let box = Mutex<DiskStore?>(nil)
        let called = DispatchSemaphore(value: 0)
        let key = key
        let store = DiskStore(
            configuration: .init(directory: fixture.directory, capacity: 100 << 10),
            report: { event in
                guard case .evicted = event, let store = box.withLock({ $0 }) else { return }
                called.signal()
                _ = store.variants(of: key)
                _ = store.usage
                store.remove(.test("other"))
                store.flush()
            })
        box.withLock { $0 = store }
        for number in 0..<30 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.store(.test(testBody(1)), for: key)
        store.flush()
        called.isSignalled("the event of an eviction")
        #expect(store.body(key) == testBody(1))
        box.withLock { $0 = nil }
    }

    @Test func aPassThatAsksForAnotherIsFollowedByIt() {
        let queue = MaintenanceQueue()
        let hasPassed = DispatchSemaphore(value: 0)
        let asksAgain = Mutex(true)
        queue.setWork { [weak queue] in
            if asksAgain.disarm() { queue?.schedule(after: 0) }
            hasPassed.signal()
        }
        queue.schedule(after: 0)
        hasPassed.isSignalled("the first pass")
        hasPassed.isSignalled("the pass that the first one asked for")
        // Nothing is left to do, so the timer is suspended; it starts again with the next request.
        queue.perform {}
        queue.schedule(after: 0)
        hasPassed.isSignalled("a pass after the timer was suspended")
    }

    /// Stores that leave nothing to do are followed by a pass now and then; those that exceed the capacity by one soon.
    @Test func passesAreRareWhileTheyFindNothing() async throws {
        let files = FaultyFileSystem()
        var configuration = DiskConfiguration(directory: fixture.directory, capacity: 1 << 20)
        configuration.maintenanceDelay = 0
        configuration.idleInterval = 1_000
        // The test may be held up for a minute.
        configuration.savingInterval = 1_000
        let store = DiskStore(configuration: configuration, fileSystem: files)
        store.flush()
        // Each pass lists the directory.
        func hasPassed() -> Bool { files.takeCalls().contains { $0.operation == .list } }
        // One pass, whether or not that of the opening has come already.
        store.maintenance.pause()
        store.maintenance.schedule(after: 0)
        _ = files.takeCalls()
        store.maintenance.resume()
        await eventually("a pass") { hasPassed() }
        store.maintenance.perform {}
        _ = files.takeCalls()
        for number in 1..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        try await Task.sleep(for: .milliseconds(50))
        #expect(!hasPassed())
        let count = 1_100
        for number in 0..<count { store.store(.test(testBody(number)), for: .test("\(number)")) }
        await eventually("the eviction") { store.catalog.read { $0.bytes } <= 1 << 20 }
        #expect(hasPassed())
    }

    @Test("The first lookups do not wait for the index") func lookupsBeforeTheIndex() throws {
        var store = fixture.open()
        for number in 0..<10 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.close()
        // The listing waits for the lookups: the other way round this never ends.
        let done = DispatchSemaphore(value: 0)
        let files = FaultyFileSystem { call in
            if call.operation == .list || call.name == "index.plist" {
                done.isSignalled("the lookups, which do not wait for the index")
            }
            return nil
        }
        store = fixture.open(files: files)
        for number in 0..<10 { #expect(store.body(.test("\(number)")) == testBody(number)) }
        #expect(store.variants(of: key).isEmpty)
        store.remove(.test("3"))
        store.store(.test(testBody(50)), for: .test("50"))
        #expect(store.body(.test("50")) == testBody(50))
        for _ in 0..<100 { done.signal() }
        store.flush()
        #expect(!store.contains(.test("3")))
        #expect(store.entryCount == 10)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    @Test func anAuthoritativeIndexAnswersMissesWithoutSystemCalls() throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        store.maintenance.pause()
        _ = store.variants(of: key)
        // So that no further lookup looks for changes by others.
        store.lookLater()
        _ = files.takeCalls()
        for number in 0..<10 { #expect(store.variants(of: .test("\(number)")).isEmpty) }
        #expect(!store.mayContain(.test("b")) && store.mayContain(key))
        #expect(files.takeCalls().isEmpty)
        // And a hit takes four.
        #expect(store.body(key) == testBody(1))
        #expect(files.takeCalls().map(\.operation) == [.open, .status, .read, .close])
    }

    /// An index that could not be saved is saved by the next pass; one that was saved is left alone.
    @Test func theIndexIsSavedUntilItIs() {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        files.rule = { $0.operation == .rename ? .error(ENOSPC) : nil }
        store.store(.test(testBody(2)), for: .test("b"))
        store.flush()
        files.rule = { _ in nil }
        func isSaved() -> Bool {
            _ = files.takeCalls()
            store.flush()
            return files.takeCalls().contains { $0.operation == .rename }
        }
        #expect(isSaved())
        #expect(!isSaved())
    }

    /// The index is written under this name first. A cache that was the owner before may have left such a file.
    @Test func aFileInTheWayOfTheNewIndexIsReplaced() throws {
        let store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.flush()
        let index = URL(fileURLWithPath: fixture.directory + "/index.plist")
        let saved = try Data(contentsOf: index)
        let new = index.appendingPathExtension("new")
        try Data("unfinished".utf8).write(to: new)
        store.store(.test(testBody(2)), for: .test("b"))
        store.flush()
        #expect(try Data(contentsOf: index) != saved)
        #expect(!FileManager.default.fileExists(atPath: new.path))
    }

    /// Of a process that died while it wrote its index.
    @Test func whoeverBecomesTheOwnerRemovesAnUnfinishedIndex() throws {
        let store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.close()
        let path = fixture.directory + "/index.plist.new"
        try Data("unfinished".utf8).write(to: URL(fileURLWithPath: path))
        let files = FaultyFileSystem()
        _ = files.takeCalls()
        let other = fixture.open(files: files)
        other.flush()
        #expect(other.isOwner)
        #expect(files.takeCalls().first { $0.path == path }?.operation == .unlink)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// The cache that has cleared the folder knows what is in the new one.
    @Test func aClearedFolderIsNotListed() {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        _ = files.takeCalls()
        store.removeAll()
        store.flush()
        store.store(.test(testBody(2)), for: key)
        store.lookLater()
        #expect(store.body(key) == testBody(2))
        store.flush()
        let records = fixture.records
        #expect(!files.takeCalls().contains { $0.operation == .list && $0.path == records })
    }
}

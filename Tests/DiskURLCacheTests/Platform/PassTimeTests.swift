import Foundation
import Testing

@testable import DiskURLCache

/// Locks of a directory where a process may be suspended: held during a pass that was granted time, and at no other
/// moment.
@Suite(.fewAtATime) struct PassTimeTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    fileprivate static let granting: PassTime.Activity = { handler in
        Thread.detachNewThread { handler(false) }
    }

    /// Calls that lock a file.
    private static func locks(_ calls: [FaultyFileSystem.Call]) -> [FaultyFileSystem.Call] {
        calls.filter { $0.operation == .lockFile || $0.operation == .lockProcess }
    }

    @Test func anIdleCacheHoldsNoLock() throws {
        let store = fixture.open { $0.passActivity = Self.granting }
        store.store(.test(testBody(1)), for: key)
        store.flush()
        #expect(!store.isOwner)
        #expect(fixture.log.count { $0 == .becameOwner } == 1)
        let other = fixture.open()
        other.flush()
        #expect(other.isOwner)
        #expect(other.body(key) == testBody(1))
    }

    @Test func theActivityEndsWithThePass() throws {
        let hasEnded = DispatchSemaphore(value: 0)
        let store = fixture.open {
            $0.passActivity = { handler in
                Thread.detachNewThread {
                    handler(false)
                    hasEnded.signal()
                }
            }
        }
        store.flush()
        hasEnded.isSignalled("the end of the activity")
    }

    @Test func whatOthersDidBetweenPassesIsTakenIn() throws {
        let store = fixture.open { $0.passActivity = Self.granting }
        store.store(.test(testBody(1)), for: key)
        store.flush()
        let other = fixture.open()
        other.store(.test(testBody(2)), for: .test("b"))
        other.flush()
        other.close()
        store.flush()
        #expect(store.entryCount == 2)
        #expect(store.body(.test("b")) == testBody(2))
    }

    /// Each pass takes the directory's lock again, and reads the changes from the first one on.
    @Test func whatWasToldBeforeIsNotToldAgain() throws {
        let (store, other) = (
            fixture.open { $0.passActivity = Self.granting }, fixture.open { $0.passActivity = Self.granting }
        )
        for store in [store, other] { store.flush() }
        let told = Mutex<[DirectoryChange]>([])
        store.observeChanges { changes in told.withLock { $0 += changes } }
        other.removeAll()
        store.checkNow()
        #expect(told.withLock { $0 }.contains(.removedAll))
        told.withLock { $0 = [] }
        for number in 0..<3 {
            store.store(.test(testBody(number)), for: key)
            store.flush()
        }
        #expect(told.withLock { $0 } == [])
        other.remove(key)
        store.flush()
        #expect(told.withLock { $0 }.contains(.removed(key.name)))
    }

    /// Between passes no row takes note of a use.
    @Test func whatIsUsedBetweenPassesDoesNotExpire() throws {
        let clock = ManualClock()
        let store = fixture.open(clock: clock.wallClock) {
            $0.passActivity = Self.granting
            $0.maximumAccessAge = 100
        }
        store.store(.test(testBody(1), storedAt: clock.now), for: key)
        store.flush()
        store.maintenance.pause()
        for _ in 0..<3 {
            clock.advance(by: 60)
            #expect(store.body(key) == testBody(1))
        }
        store.flush()
        #expect(store.body(key) == testBody(1))
        #expect(fixture.recordNames().count == 1)
    }

    @Test func aPassWithoutTimeLocksNothingAndWritesAllTheSame() throws {
        let files = FaultyFileSystem()
        let hasTime = Mutex(false)
        let store = fixture.open(files: files) {
            $0.passActivity = { handler in
                let hasTime = hasTime.withLock { $0 }
                Thread.detachNewThread { handler(!hasTime) }
            }
        }
        _ = files.takeCalls()
        store.store(.test(testBody(1)), for: key)
        store.flush()
        #expect(Self.locks(files.takeCalls()).isEmpty)
        #expect(store.body(key) == testBody(1))
        #expect(fixture.recordNames().count == 1)
        hasTime.withLock { $0 = true }
        store.flush()
        #expect(FileManager.default.fileExists(atPath: fixture.directory + "/index.plist"))
        #expect(store.entryCount == 1)
    }

    @Test func expiryGivesTheLockUpInTheMiddleOfAPass() throws {
        let files = FaultyFileSystem()
        let handler = Mutex<(@Sendable (Bool) -> Void)?>(nil)
        let mayExpire = Mutex(true)
        // The records are listed in the first pass, while the lock is held: there the system takes the time back.
        files.rule = { call in
            guard call.operation == .list, call.name == "records" else { return nil }
            guard
                mayExpire.disarm()
            else { return nil }
            let isDone = DispatchSemaphore(value: 0)
            let expire = handler.withLock { $0 }
            Thread.detachNewThread {
                expire?(true)
                isDone.signal()
            }
            isDone.isSignalled("the expiry, which does not wait for the pass")
            _ = files.takeCalls()
            return nil
        }
        let store = fixture.open(files: files) {
            $0.passActivity = { given in
                handler.withLock { $0 = given }
                // The flush may be another pass than the one whose time ran out: that one gets none.
                Thread.detachNewThread { given(!mayExpire.withLock { $0 }) }
            }
        }
        _ = files.takeCalls()
        store.flush()
        #expect(!mayExpire.withLock { $0 }, "the records were listed")
        #expect(!store.isOwner)
        let other = fixture.open()
        other.flush()
        #expect(other.isOwner)
    }

    @Test func afterTheExpiryThePassTakesNoLock() throws {
        let handler = Mutex<(@Sendable (Bool) -> Void)?>(nil)
        let lock = PassTime { given in
            handler.withLock { $0 = given }
            Thread.detachNewThread { given(false) }
        }
        let expiries = Mutex(0)
        #expect(!lock.isGranted)
        lock.begin { expiries.withLock { $0 += 1 } }
        #expect(lock.isGranted)
        handler.withLock { $0 }?(true)
        #expect(!lock.isGranted)
        lock.end {}
        #expect(expiries.withLock { $0 } == 1)
        // A call that comes late is about a pass that is over.
        handler.withLock { $0 }?(true)
        #expect(expiries.withLock { $0 } == 1)
    }

    /// A store that takes its turn between the two would lock a file just before the process is suspended.
    @Test func noLockIsTakenOnceTheLocksAreGivenUp() {
        let time = PassTime(activity: Self.granting)
        time.begin {}
        #expect(time.isGranted)
        time.end { #expect(!time.isGranted) }
    }

    /// There a body holds no lock while it arrives, so its age tells.
    /// Else a lock would be taken of which nobody tells the system.
    @Test func anAnswerAfterThePassHasGivenUpWaitingGrantsNothing() throws {
        let handlers = Mutex<[@Sendable (Bool) -> Void]>([])
        let time = PassTime(
            activity: { handler in handlers.withLock { $0.append(handler) } }, patience: .milliseconds(1))
        time.begin { Issue.record("there is nothing to give up") }
        #expect(!time.isGranted)
        let answer = try #require(handlers.withLock { $0.first })
        let hasReturned = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            answer(false)
            hasReturned.signal()
        }
        // The system may suspend the process: the handler holds it no longer.
        hasReturned.isSignalled("the end of the activity")
        #expect(!time.isGranted)
        time.end {}
    }

    @Test(arguments: [true, false]) func aBodyThatAnotherProcessIsReceivingIsSpared(_ isFresh: Bool) throws {
        try FileManager.default.createDirectory(
            atPath: fixture.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let path = fixture.directory + "/incoming-0123456789abcdef"
        #expect(
            FileManager.default.createFile(
                atPath: path, contents: testBody(1), attributes: [.posixPermissions: 0o600]))
        if !isFresh {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -7_200)], ofItemAtPath: path)
        }
        let store = fixture.open { $0.passActivity = Self.granting }
        store.flush()
        #expect(FileManager.default.fileExists(atPath: path) == isFresh)
    }

    // MARK: The system's time

    /// A system that is asked for time, and gives it.
    private final class AskedSystem: Sendable {
        let handlers = Mutex<[@Sendable (Bool) -> Void]>([])
        let hasEnded = DispatchSemaphore(value: 0)

        var time: ExpiringTime {
            ExpiringTime { handler in
                self.handlers.withLock { $0.append(handler) }
                Thread.detachNewThread {
                    handler(false)
                    self.hasEnded.signal()
                }
            }
        }

        var count: Int { handlers.withLock { $0.count } }
    }

    @Test func theSystemIsAskedForTimeInTheBackgroundOnly() {
        let system = AskedSystem()
        let expiring = system.time
        let time = PassTime { expiring.request($0) }
        func pass() {
            time.begin {}
            #expect(time.isGranted)
            time.end {}
        }
        pass()
        #expect(system.count == 1, "an app may be launched in the background")
        expiring.endsSuspension()
        pass()
        #expect(system.count == 1)
        expiring.allowsSuspension()
        // Also for the pass before, if its end was not noted yet.
        let asked = system.count
        pass()
        #expect(system.count == asked + 1)
    }

    @Test(arguments: [true, false]) func aPassThatTheAppLeavesTheForegroundInGetsTimeOrEnds(_ expires: Bool) throws {
        let system = AskedSystem()
        let expiring = system.time
        expiring.endsSuspension()
        let time = PassTime { expiring.request($0) }
        let expiries = Mutex(0)
        time.begin { expiries.withLock { $0 += 1 } }
        #expect(system.count == 0)
        // Twice: the app may come back and leave again.
        for _ in 1...2 { expiring.allowsSuspension() }
        #expect(system.count == 2 && time.isGranted)
        if expires {
            let expire = try #require(system.handlers.withLock { $0.first })
            expire(true)
            #expect(!time.isGranted)
        } else {
            time.end {}
        }
        #expect(expiries.withLock { $0 } == (expires ? 1 : 0))
        for _ in 1...2 { #expect(system.hasEnded.isSignalled("the end of the system's time")) }
        time.end {}
    }

    /// The whole cache, by the platform's own choice: in the app's own container, and in one that apps share.
    @Test(arguments: [
        (Platform.iOS, false, false), (.iOS, true, true), (.watchOS, false, false), (.macOS, false, true),
    ])
    func whoHoldsALockWhenIdle(_ platform: Platform, isOwnContainer: Bool, _ isHeld: Bool) throws {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 0, diskCapacity: 1 << 20, directory: URL(fileURLWithPath: fixture.directory))
        configuration.platform = platform
        configuration.container = isOwnContainer ? fixture.scratch.url.path : "/another"
        configuration.superclassDirectory = fixture.scratch.appending("superclass")
        let cache = DiskURLCache(configuration: configuration)
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: Responses.request("/a"))
        cache.flush()
        #expect(FileManager.default.fileExists(atPath: fixture.directory + "/index.plist"))
        // Idle: no later pass begins, and one that has begun is over.
        cache.rest()
        cache.store.maintenance.perform {}
        let other = fixture.open()
        other.flush()
        #expect(other.isOwner != isHeld)
        #expect(cache.contains(Responses.request("/a")))
    }

    @Test func removingAndClosingWorkBetweenPasses() throws {
        do {
            let store = fixture.open { $0.passActivity = Self.granting }
            for name in ["a", "b"] { store.store(.test(testBody(1)), for: .test(name)) }
            store.flush()
            store.remove(key)
            #expect(store.body(key) == nil)
            store.close()
        }
        let next = fixture.open()
        #expect(next.entryCount == 1)
        #expect(next.body(key) == nil)
    }
}

/// A device that is locked: files are there and cannot be read.
@Suite struct LockedDeviceTests {
    @Test(arguments: [EPERM, EACCES], [true, false])
    func anIndexThatCannotBeReadIsAMissAndIsKept(_ code: Int32, isInOwnContainer: Bool) throws {
        let fixture = try DiskFixture()
        let key = RequestKey.test("a")
        do {
            let store = fixture.open()
            store.store(.test(testBody(1)), for: key)
            store.close()
        }
        let index = URL(fileURLWithPath: fixture.directory + "/index.plist")
        let before = try Data(contentsOf: index)
        let files = FaultyFileSystem { call in
            guard call.operation == .open, call.name == "index.plist" || call.isRecord else { return nil }
            return .error(code)
        }
        let store = fixture.open(files: files) {
            $0.hasFileProtection = true
            if !isInOwnContainer { $0.passActivity = PassTimeTests.granting }
        }
        store.flush()
        #expect(store.body(key) == nil)
        store.flush()
        #expect(try Data(contentsOf: index) == before)
        #expect(fixture.recordNames().count == 1)
        files.rule = { _ in nil }
        store.flush()
        #expect(store.body(key) == testBody(1))
        #expect(store.entryCount == 1)
        #expect(!fixture.log.events.contains(.rejectedIndex))
    }
}

/// What only Apple platforms have, done with closures that write down what they were asked.
@Suite struct FolderPreparationTests {
    private final class Calls: Sendable {
        let set = Mutex<[String]>([])
        let classes = Mutex<[String: FileProtectionType]>([:])
        /// Cannot be changed.
        let locked = Mutex<Set<String>>([])
    }

    private func preparation(_ calls: Calls) -> FolderPreparation {
        FolderPreparation(
            protection: { path in calls.classes.withLock { $0[path] } },
            setProtection: { path, wanted in
                calls.set.withLock { $0.append(path) }
                if calls.locked.withLock({ $0.contains(path) }) { return false }
                calls.classes.withLock { $0[path] = wanted }
                return true
            }, names: { $0 == "/c" ? ["index.plist", "records"] : ["r1", "r2"] },
            excludeFromBackup: { path in calls.set.withLock { $0.append("backup " + path) } })
    }

    @Test func anExistingFolderGetsTheNewClassWithItsFiles() {
        let calls = Calls()
        let prepare = preparation(calls)
        prepare(["/c", "/c/records"], protection: .completeUntilFirstUserAuthentication)
        prepare(["/c", "/c/records"], protection: .complete)
        let files = ["/c/records", "/c/records", "/c/records/r1", "/c/records/r2", "/c/index.plist", "/c"]
        #expect(calls.set.withLock { $0 } == ["backup /c"] + files + ["backup /c"] + files)
        #expect(calls.classes.withLock { $0 }.values.allSatisfy { $0.rawValue == FileProtectionType.complete.rawValue })
    }

    @Test func aFolderThatHasTheClassIsLeftAlone() {
        let calls = Calls()
        let prepare = preparation(calls)
        prepare(["/c", "/c/records"], protection: .complete)
        calls.set.withLock { $0 = [] }
        prepare(["/c", "/c/records"], protection: .complete)
        #expect(calls.set.withLock { $0 } == ["backup /c"])
    }

    @Test func whereNoClassIsKeptTheFilesAreLeftAlone() {
        let calls = Calls()
        var prepare = preparation(calls)
        prepare.protection = { _ in nil }
        prepare(["/c", "/c/records"], protection: .complete)
        #expect(calls.set.withLock { $0 } == ["backup /c", "/c/records"])
    }

    @Test func aFileThatCannotBeChangedNowIsChangedAtTheNextLaunch() {
        let calls = Calls()
        let prepare = preparation(calls)
        prepare(["/c", "/c/records"], protection: .completeUntilFirstUserAuthentication)
        calls.locked.withLock { $0 = ["/c/records/r1"] }
        prepare(["/c", "/c/records"], protection: .complete)
        #expect(calls.classes.withLock { $0["/c/records/r2"]?.rawValue } == FileProtectionType.complete.rawValue)
        calls.locked.withLock { $0 = [] }
        prepare(["/c", "/c/records"], protection: .complete)
        #expect(calls.classes.withLock { $0 }.values.allSatisfy { $0.rawValue == FileProtectionType.complete.rawValue })
    }

    @Test func openingDoesNotWaitForThePreparation() throws {
        let fixture = try DiskFixture()
        let isOpen = DispatchSemaphore(value: 0)
        let store = fixture.open {
            $0.prepareFolders = { _ in
                isOpen.isSignalled("the store to open, which does not wait for the folders")
            }
        }
        store.store(.test(testBody(1)), for: .test("a"))
        isOpen.signal()
        store.flush()
        #expect(store.body(.test("a")) == testBody(1))
    }

    @Test func foldersArePreparedOnceOnTheMaintenanceQueueAndAgainWhenMadeAnew() throws {
        let fixture = try DiskFixture()
        let prepared = Mutex<[[String]]>([])
        let store = fixture.open {
            $0.prepareFolders = { folders in prepared.withLock { $0.append(folders) } }
        }
        store.flush()
        store.flush()
        #expect(prepared.withLock { $0 } == [[fixture.directory, fixture.records]])
        try FileManager.default.moveItem(atPath: fixture.directory, toPath: fixture.directory + ".away")
        store.store(.test(testBody(1)), for: .test("a"))
        store.flush()
        #expect(prepared.withLock { $0 }.count == 2)
    }
}

import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

/// Directories, folders and records of another user, and folders that other users may write: nothing in them is
/// believed or changed.
@Suite("File owner", .fewAtATime) struct FileOwnerTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }
    private static let stranger: UInt32 = 4_001

    enum Part: String, Sendable, CaseIterable { case directory, records }

    private static func path(_ part: Part, _ fixture: DiskFixture) -> String {
        part == .directory ? fixture.directory : fixture.records
    }

    /// A store that sees the folder otherwise than it is.
    private static func files(
        _ part: Part, _ fixture: DiskFixture, _ change: @escaping @Sendable (inout FileStatus) -> Void
    ) -> FaultyFileSystem {
        let files = FaultyFileSystem()
        let path = path(part, fixture)
        files.onStatus = { seen, status in if seen == path || seen == path + "/." { change(&status) } }
        return files
    }

    private static let changing: Set<FaultyFileSystem.Operation> = [
        .makeDirectory, .removeDirectory, .rename, .unlink, .write, .truncate, .setPermissions,
    ]

    /// Uses the store in every way, and sees that nothing was found, believed or changed.
    private func expectLeftAlone(
        _ store: DiskStore, _ files: FaultyFileSystem, _ fixture: DiskFixture, _ error: DiskURLCache.Error
    ) {
        _ = files.takeCalls()
        let names = fixture.scratch.files()
        #expect(store.openingError == error)
        #expect(store.variants(of: key).isEmpty)
        #expect(!store.contains(key))
        #expect(store.store(.test(testBody(2)), for: .test("b")).isWritten == false)
        store.remove(key)
        store.remove(matching: EntryCriteria())
        store.removeAll()
        store.flush()
        #expect(store.usage == 0)
        store.close()
        #expect(!files.takeCalls().contains { Self.changing.contains($0.operation) })
        #expect(fixture.scratch.files() == names)
        #expect(fixture.log.count { $0 == .unavailable(error) } == 1)
    }

    @Test("The directory or the records' folder of another user", arguments: Part.allCases)
    func ofAnotherUser(part: Part) throws {
        fixture.open().storeAndClose(key)
        let files = Self.files(part, fixture) { $0.owner = Self.stranger }
        let error = DiskURLCache.Error(.otherOwner, path: Self.path(part, fixture), userID: Self.stranger)
        expectLeftAlone(fixture.open(files: files), files, fixture, error)
        // By its true owner it is used.
        #expect(fixture.open().body(key) == testBody(1))
    }

    @Test(
        "The directory or the records' folder that other users may write", arguments: Part.allCases,
        [UInt32(0o770), 0o720, 0o702, 0o777])
    func writableByOthers(part: Part, mode: UInt32) throws {
        fixture.open().storeAndClose(key)
        let path = Self.path(part, fixture)
        #expect(chmod(path, mode_t(mode)) == 0)
        let files = FaultyFileSystem()
        expectLeftAlone(
            fixture.open(files: files), files, fixture, .init(.writableByOthers, path: path))
        // Reading may be allowed to others.
        #expect(chmod(path, 0o755) == 0)
        #expect(fixture.open().body(key) == testBody(1))
    }

    @Test("A folder that is given to another user while the store is open", arguments: Part.allCases)
    func givenAway(part: Part) throws {
        let isGiven = Mutex(false)
        let files = Self.files(part, fixture) { status in
            if isGiven.withLock({ $0 }) { status.owner = Self.stranger }
        }
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        #expect(store.body(key) == testBody(1))
        isGiven.withLock { $0 = true }
        // As if a second had gone by: a cache that is alone relies on its folder for so long.
        store.nextFolderCheck.set(0)
        store.checkNow()
        #expect(store.store(.test(testBody(2), sequence: 2), for: key).isWritten == false)
        store.flush()
        let error = DiskURLCache.Error(.otherOwner, path: Self.path(part, fixture), userID: Self.stranger)
        #expect(store.openingError == error)
        #expect(store.variants(of: key).isEmpty)
        isGiven.withLock { $0 = false }
        store.flush()
        #expect(store.openingError == nil)
        #expect(store.body(key) == testBody(1))
    }

    @Test("A lookup sees by itself that the records' folder is that of another user") func seenByALookup() throws {
        let isGiven = Mutex(false)
        let files = Self.files(.records, fixture) { status in
            if isGiven.withLock({ $0 }) { status.owner = Self.stranger }
        }
        let store = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        store.maintenance.pause()
        isGiven.withLock { $0 = true }
        store.lookLater()
        #expect(store.body(key) == nil)
        store.maintenance.resume()
    }

    @Test(
        "A record of another user, or that other users may write, is a miss and stays",
        arguments: [UInt32(0o600), 0o620, 0o602])
    func record(permissions: UInt32) throws {
        fixture.open().storeAndClose(key)
        let files = FaultyFileSystem()
        files.onStatus = { path, status in
            if status.kind == .regular, path.contains("/records/") {
                if permissions == 0o600 { status.owner = Self.stranger }
                status.permissions = permissions
            }
        }
        let store = fixture.open(files: files)
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        store.close()
        #expect(fixture.open().body(key) == testBody(1))
    }

    @Test(
        "A directory that is only read may be that of root, and of nobody else",
        arguments: [(UInt32(0), true), (geteuid(), true), (stranger, false)])
    func onlyRead(owner: UInt32, isRead: Bool) throws {
        fixture.open().storeAndClose(key)
        let files = FaultyFileSystem()
        files.onStatus = { _, status in status.owner = owner }
        let store = fixture.open(files: files) { $0.isReadOnly = true }
        #expect((store.openingError == nil) == isRead)
        #expect(store.body(key) == (isRead ? testBody(1) : nil))
    }

    @Test(
        "A directory that is only read and cannot be read is told, once",
        arguments: ["missing", "file", "empty", "unreadable"])
    func unreadable(kind: String) throws {
        if kind != "missing" { fixture.open().storeAndClose(key) }
        let files = FaultyFileSystem { call in
            kind == "unreadable" && call.operation == .open && call.isRecord ? .error(EACCES) : nil
        }
        let error: DiskURLCache.Error
        switch kind {
        case "missing": error = .init(.notACache, path: fixture.directory, errno: ENOENT)
        case "file":
            try FileManager.default.removeItem(atPath: fixture.directory)
            try Data().write(to: URL(fileURLWithPath: fixture.directory))
            error = .init(.obstructed, path: fixture.directory)
        case "empty":
            try FileManager.default.removeItem(atPath: fixture.records)
            error = .init(.notACache, path: fixture.directory, errno: 0)
        default: error = .init(.notReadable, path: try #require(fixture.onlyRecord(key)), errno: EACCES)
        }
        let store = fixture.open(files: files) { $0.isReadOnly = true }
        for _ in 0..<2 { #expect(store.openingError == error) }
        #expect(store.variants(of: key).isEmpty)
        #expect(fixture.log.count { $0 == .unavailable(error) } == 1)
        #expect(kind != "missing" || !FileManager.default.fileExists(atPath: fixture.directory))
    }

    /// A folder in one of all users, such as /tmp: who made it could take the cache away, and bring it back after a
    /// removal.
    @Test(arguments: ["none", "folder", "writable", "link", "file", "stranger's"])
    func aFolderThatAnyUserMayMakeIsLookedAt(what: String) throws {
        let enclosure = fixture.scratch.appending("user-1").path
        let files = FaultyFileSystem()
        var code: DiskURLCache.Error.Code?
        switch what {
        case "none": break
        case "link":
            try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: enclosure, withDestinationPath: fixture.directory)
            code = .obstructed
        case "file":
            try Data().write(to: URL(fileURLWithPath: enclosure))
            code = .obstructed
        default:
            try FileManager.default.createDirectory(atPath: enclosure, withIntermediateDirectories: true)
            chmod(enclosure, what == "writable" ? 0o777 : 0o700)
            if what == "writable" { code = .writableByOthers }
            if what == "stranger's" {
                code = .otherOwner
                files.onStatus = { path, status in if path == enclosure { status.owner = Self.stranger } }
            }
        }
        var configuration = DiskConfiguration(directory: enclosure + "/DiskURLCache/p", capacity: 1 << 20)
        configuration.enclosure = enclosure
        let store = DiskStore(configuration: configuration, fileSystem: files, report: fixture.log.report)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        #expect(store.openingError?.code == code)
        #expect(store.body(key) == (code == nil ? testBody(1) : nil))
        #expect(fixture.log.count { if case .unavailable = $0 { true } else { false } } == (code == nil ? 0 : 1))
        #expect(FileManager.default.fileExists(atPath: configuration.directory) == (code == nil))
        if what == "none" { #expect(try SystemFiles().status(at: enclosure).permissions == 0o700) }
    }

    #if os(Linux)
        @Test(
            "By the system: the directory of another user is not used; a fallback of root is",
            .enabled(if: OwnerScenario.canChangeUser, "needs root and setpriv"))
        func otherProcess() throws {
            let fixture = try DiskFixture()
            // A child that is not root has to reach it.
            #expect(chmod(fixture.scratch.url.path, 0o777) == 0)
            for folder in [fixture.scratch.url.deletingLastPathComponent()] { chmod(folder.path, 0o755) }
            let theirs = fixture.scratch.appending("theirs").path
            let ours = fixture.scratch.appending("ours").path
            OwnerScenario.fill(ours)
            // What another user can read, so that only the owner counts.
            chmod(ours, 0o755)
            chmod(ours + "/records", 0o755)
            for name in try FileManager.default.contentsOfDirectory(atPath: ours + "/records") {
                chmod(ours + "/records/" + name, 0o644)
            }
            let child = try ChildProcess("owner", directory: fixture.scratch.url.path, asNobody: true)
            #expect(child.remainingLines() == ["700", "refused 0", "nothing", "read"])
            let store = DiskStore(configuration: .init(directory: theirs, capacity: 1 << 20))
            #expect(store.openingError == DiskURLCache.Error(.otherOwner, path: theirs, userID: 65_534))
            #expect(store.variants(of: key).isEmpty)
            let inspector = try DiskURLCache.Inspector(directory: URL(fileURLWithPath: theirs))
            #expect(try inspector.records().map(\.problem) == [nil], "root looks into any cache")
            #expect { try inspector.rebuildIndex() } throws: { ($0 as? DiskURLCache.Error)?.code == .otherOwner }
        }
    #endif
}

extension DiskStore {
    fileprivate func storeAndClose(_ key: RequestKey) {
        store(.test(testBody(1)), for: key)
        close()
    }
}

#if os(Linux)
    /// What a process of another user does with a directory of root, and how it makes one of its own.
    enum OwnerScenario {
        static let canChangeUser = geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0
        private static let key = RequestKey.test("a")

        static func fill(_ directory: String) {
            let store = DiskStore(configuration: .init(directory: directory, capacity: 1 << 20))
            store.store(.test(testBody(1)), for: key)
            store.close()
        }

        static func runInChild(_ scratch: String) throws {
            // Rights of the owner that a umask takes are given back.
            umask(0o177)
            fill(scratch + "/theirs")
            umask(0o022)
            let mode = try SystemFiles().status(at: scratch + "/theirs").permissions
            ChildProcess.say(String(mode, radix: 8))
            let ours = scratch + "/ours"
            let store = DiskStore(configuration: .init(directory: ours, capacity: 1 << 20))
            if let error = store.openingError, error.code == .otherOwner, error.path == ours {
                ChildProcess.say("refused \(error.userID ?? .max)")
            }
            ChildProcess.say(store.variants(of: key).isEmpty ? "nothing" : "believed")
            var configuration = DiskConfiguration(directory: ours, capacity: 1 << 20)
            configuration.isReadOnly = true
            let fallback = DiskStore(configuration: configuration)
            ChildProcess.say(
                fallback.openingError == nil && fallback.body(key) == testBody(1) ? "read" : "not read")
        }
    }
#endif

extension DiskWriteResult {
    fileprivate var isWritten: Bool { if case .written = self { true } else { false } }
}

import Foundation
import Testing

@testable import DiskURLCache

/// Faults of `Reliability.md` about names in the directory that are not the cache's own.
@Suite("Foreign files", .fewAtATime) struct ForeignFilesTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    @Test(
        "A record file that grew beyond the whole cache costs no other record", arguments: [false, true], [false, true])
    func aFileLargerThanTheCache(isEmptiedFirst: Bool, isReopened: Bool) throws {
        var store = fixture.open(capacity: 1 << 20)
        for number in 0..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        let grown = RequestKey.test("3")
        let path = try #require(fixture.onlyRecord(grown))
        if isReopened { store.close() }
        if isEmptiedFirst { #expect(truncate(path, 0) == 0) }
        #expect(truncate(path, 10 << 30) == 0)
        if isReopened { store = fixture.open(capacity: 1 << 20) }
        #expect(store.variants(of: grown).isEmpty)
        store.flush()
        store.store(.test(testBody(20)), for: .test("20"))
        store.flush()
        for number in 0...20 where number != 3 { #expect(store.body(.test("\(number)")) == testBody(number)) }
        #expect(store.usage == fixture.allocatedByRecords())
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("A file of the cache's own that grew takes no place of records") func ownFilesThatGrew() throws {
        let store = fixture.open(capacity: 1 << 20)
        _ = store.salt.digest(of: "made")
        store.store(.test(testBody(1)), for: key)
        store.flush()
        let files = ["CACHEDIR.TAG", "salt"].map { fixture.directory + "/" + $0 }
        let before = try files.map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
        for file in files {
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data(count: 3 << 20))
            try handle.close()
        }
        store.store(.test(testBody(2)), for: .test("b"))
        store.flush()
        #expect(store.body(key) == testBody(1) && store.body(.test("b")) == testBody(2))
        #expect(try files.map { try Data(contentsOf: URL(fileURLWithPath: $0)) } == before)
    }

    @Test("Foreign files and folders are never read as records, never deleted") func foreignFiles() throws {
        var store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.close()
        let names = [
            "notes.txt", String(repeating: "a", count: RecordName.length), key.name.hex, key.name.hex + "8",
            key.name.hex + "00", key.name.hex.uppercased() + "1", "trash-0123456789abcdef", ".hidden",
        ]
        let folders = [fixture.directory, fixture.records]
        for folder in folders {
            for name in names { try testBody(5).write(to: URL(fileURLWithPath: folder + "/" + name)) }
            try FileManager.default.createDirectory(
                atPath: folder + "/folder/inner", withIntermediateDirectories: true)
        }
        store = fixture.open()
        store.flush()
        #expect(store.entryCount == 1)
        store.removeAll()
        store.flush()
        store.store(.test(testBody(2)), for: key)
        store.capacity = 0
        store.flush()
        store.close()
        for folder in folders {
            for name in names {
                let bytes = try? Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
                #expect(bytes == testBody(5), "\(folder)/\(name)")
            }
            #expect(FileManager.default.fileExists(atPath: folder + "/folder/inner"))
        }
    }

    /// Sparse files, on file systems that allow them, or a damaged file system.
    @Test("Files that claim absurd sizes: no trap, whatever is summed")
    func absurdSizes() throws {
        let files = FaultyFileSystem()
        let owner = fixture.open()
        for number in 0..<3 { owner.store(.test(testBody(number)), for: .test("\(number)")) }
        owner.flush()
        let guest = fixture.open(files: files)
        var value = stat()
        value.st_size = .max
        value.st_blocks = .max / 512
        let absurd = FileStatus(value)
        files.onStatus = { path, status in
            status.allocated = absurd.allocated
            if status.kind == .regular { status.size = absurd.size }
        }
        #expect(guest.usage > 1 << 30)
        // The next owner sums them with its folders, and evicts them.
        owner.close()
        guest.flush()
        #expect(guest.usage == 0 && fixture.recordNames().isEmpty)
    }

    @Test("What the system says of a damaged file fits") func absurdStatus() {
        var value = stat()
        value.st_size = .max
        value.st_blocks = .max
        #expect(FileStatus(value).spaceTaken > 0 && FileStatus(value).allocated > 0)
        value.st_size = .min
        value.st_blocks = .min
        #expect(FileStatus(value).spaceTaken == 0)
    }

    @Test(
        "A record's name is a link, FIFO, device, folder, hard link: no hang, a miss, the target untouched",
        arguments: ["symlink", "dangling", "fifo", "device", "directory", "hardlink"])
    func namesTaken(kind: String) throws {
        var store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.close()
        // The target is an intact record of this very key and slot, outside.
        let path = try #require(fixture.onlyRecord(key))
        let outside = fixture.scratch.appending("outside").path
        try FileManager.default.moveItem(atPath: path, toPath: outside)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: outside))
        switch kind {
        case "symlink": try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: outside)
        case "dangling":
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/nowhere/at/all")
        case "fifo": #expect(mkfifo(path, 0o600) == 0)
        case "device":
            // /dev/zero never ends. Where the machine does not let us make one, a link to it must do.
            if mknod(path, S_IFCHR | 0o600, dev_t(1 << 8 | 5)) != 0 {
                try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
            }
        case "directory":
            try FileManager.default.createDirectory(atPath: path + "/inner", withIntermediateDirectories: true)
        default: #expect(link(outside, path) == 0)
        }
        store = fixture.open()
        for _ in 0..<2 {
            #expect(store.variants(of: key).isEmpty)
            store.flush()
        }
        #expect(store.usage == 0)
        #expect(throws: Never.self, "it is not ours to remove") { try SystemFiles().status(at: path) }
        store.store(.test(testBody(2)), for: key)
        store.flush()
        #expect(store.body(key) == testBody(2))
        store.remove(key)
        #expect(store.variants(of: key).isEmpty)
        store.store(.test(testBody(3)), for: key)
        store.removeAll()
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: outside)) == bytes)
    }

    @Test("The records' folder is a symbolic link: a miss, nothing written, the target untouched")
    func linkedFolder() throws {
        var store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.close()
        let outside = fixture.scratch.appending("outside").path
        try FileManager.default.moveItem(atPath: fixture.records, toPath: outside)
        try FileManager.default.createSymbolicLink(atPath: fixture.records, withDestinationPath: outside)
        let before = try FileManager.default.contentsOfDirectory(atPath: outside)
        store = fixture.open()
        #expect(store.variants(of: key).isEmpty)
        #expect(store.openingError == DiskURLCache.Error(.obstructed, path: fixture.records))
        let result = store.store(.test(testBody(2)), for: key)
        #expect(result.refusal == DiskWriteResult.words(0))
        store.store(.test(testBody(2)), for: .test("b"))
        store.flush()
        store.remove(key)
        store.removeAll()
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == before)
        // The store works again once the link is removed.
        try FileManager.default.removeItem(atPath: fixture.records)
        store.store(.test(testBody(3)), for: key)
        store.flush()
        #expect(store.body(key) == testBody(3))
        #expect(store.openingError == nil)
    }

    @Test("The records' folder becomes a link while the store is open") func folderLinkedLater() throws {
        let store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.flush()
        let outside = fixture.scratch.appending("outside").path
        // A pass that sees the link while the record is being written leaves what was written.
        store.maintenance.pause()
        try FileManager.default.moveItem(atPath: fixture.records, toPath: outside)
        try FileManager.default.createSymbolicLink(atPath: fixture.records, withDestinationPath: outside)
        store.store(.test(testBody(2)), for: key)
        store.maintenance.resume()
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside).count == 1)
    }

    @Test(
        "A lookup sees by itself that a link has the place of the records' folder",
        arguments: [false, true])
    func folderLinkedBetweenLookups(isReadOnly: Bool) throws {
        let writer = fixture.open()
        writer.store(.test(testBody(1)), for: key)
        writer.flush()
        let store = isReadOnly ? fixture.open { $0.isReadOnly = true } : writer
        store.maintenance.pause()
        #expect(store.body(key) == testBody(1))
        let outside = fixture.scratch.appending("outside").path
        try FileManager.default.moveItem(atPath: fixture.records, toPath: outside)
        try FileManager.default.createSymbolicLink(atPath: fixture.records, withDestinationPath: outside)
        store.lookLater()
        #expect(store.body(key) == nil)
        store.maintenance.resume()
    }

    @Test(
        "Index files that are links or have a second name are not written through",
        arguments: ["index.plist", "lock", "changes", "index.plist.new"],
        [true, false])
    func linkedIndexFiles(name: String, isSymbolic: Bool) throws {
        try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
        let target = fixture.scratch.appending("target")
        try testBody(7).write(to: target)
        chmod(target.path, 0o644)
        if isSymbolic {
            try FileManager.default.createSymbolicLink(
                atPath: fixture.directory + "/" + name, withDestinationPath: target.path)
        } else {
            #expect(link(target.path, fixture.directory + "/" + name) == 0)
        }
        for round in 0..<2 {
            let store = fixture.open()
            let second = fixture.open()
            // Who replaces `changes` says that all may be removed: what is stored at that moment is lost.
            store.flush()
            second.flush()
            for number in 0..<10 {
                store.store(.test(testBody(number)), for: .test("\(round) \(number)"))
                second.store(.test(testBody(number)), for: .test("\(round) \(number) b"))
            }
            store.flush()
            second.flush()
            for number in 0..<10 { #expect(store.body(.test("\(round) \(number)")) == testBody(number)) }
            for number in 0..<10 { #expect(second.body(.test("\(round) \(number) b")) == testBody(number)) }
            store.close()
            second.close()
        }
        #expect(try Data(contentsOf: target) == testBody(7))
        #expect(try SystemFiles().status(at: target.path).permissions == 0o644)
    }

    @Test("File names are always fixed-length hexadecimal") func fileNames() throws {
        let store = fixture.open()
        let urls = ["http://a/../../etc/passwd", "a\0b", String(repeating: "x", count: 100 << 10), "😀/..", "", "."]
        for url in urls { store.store(.test(testBody(1), url: url), for: .test(url)) }
        store.flush()
        #expect(fixture.recordNames().count == urls.count)
        for name in fixture.recordNames() {
            #expect(name.utf8.count == RecordName.length)
            #expect(name.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) })
        }
        for url in urls { #expect(store.body(.test(url)) == testBody(1)) }
    }

    /// Only Linux has a file system in which not even root makes a folder.
    private static let forbidden = FileManager.default.fileExists(atPath: "/proc/self") ? ["forbidden"] : []

    @Test(
        "A file, a missing parent, a relative or forbidden path: a typed error, and memory only",
        arguments: ["file", "below a file", "relative", "empty", "root", "nul"] + forbidden)
    func unusableDirectories(kind: String) throws {
        let file = fixture.scratch.appending("file").path
        try testBody(1).write(to: URL(fileURLWithPath: file))
        let (path, error): (String, DiskURLCache.Error) =
            switch kind {
            case "file": (file, .init(.obstructed, path: file))
            case "below a file": (file + "/x/y", .init(.obstructed, path: file + "/x/y"))
            case "relative": ("a/b", .init(.notWritable, path: "a/b", errno: EINVAL))
            case "empty": ("", .init(.notWritable, path: "", errno: EINVAL))
            case "root": ("//", .init(.notWritable, path: "/", errno: EINVAL))
            case "nul": ("/tmp/a\0b", .init(.notWritable, path: "/tmp/a\0b", errno: EINVAL))
            default: ("/proc/nothing/here", .init(.notWritable, path: "/proc/nothing", errno: ENOENT))
            }
        // Nothing is changed there, nor, for a path without a beginning, in the working directory or the root: not even
        // when this fails.
        let isNobodys = ["relative", "empty", "root", "nul"].contains(kind)
        let changing: Set<FaultyFileSystem.Operation> = [.makeDirectory, .rename, .unlink, .write, .truncate]
        let files = FaultyFileSystem { call in
            isNobodys && (call.operation == .open || changing.contains(call.operation)) ? .error(EPERM) : nil
        }
        _ = files.takeCalls()
        let store = DiskStore(
            configuration: .init(directory: path, capacity: 1 << 20), fileSystem: files, report: fixture.log.report)
        #expect(store.variants(of: key).isEmpty)
        #expect(store.store(.test(testBody(1)), for: key).refusal == DiskWriteResult.words(0))
        store.remove(.test("b"))
        store.flush()
        #expect(store.openingError == error)
        #expect(store.variants(of: key).isEmpty)
        store.removeAll()
        #expect(store.usage == 0)
        store.close()
        #expect(fixture.log.count { $0 == .unavailable(error) } == 1)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == testBody(1))
        #expect(!isNobodys || !files.takeCalls().contains { changing.contains($0.operation) })
    }
}

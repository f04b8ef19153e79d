import Foundation
import Testing

@testable import DiskURLCache

/// The security rules of `Reliability.md`, as far as they are the disk layer's.
@Suite("Disk security") struct DiskSecurityTests {
    private let key = RequestKey.test("a")

    /// Every byte of every file of a directory, one after the other.
    private func allBytes(_ directory: String) -> Data {
        var all = Data()
        for name in FileManager.default.enumerator(atPath: directory)?.compactMap({ $0 as? String }) ?? [] {
            all += Data(name.utf8)
            all += (try? Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))) ?? Data()
        }
        return all
    }

    @Test("Directory 0700 and files 0600, whatever the umask", arguments: ["000", "022", "777"])
    func modes(mask: String) throws {
        // The umask belongs to the whole process, so what it takes away is taken away here by the seam.
        struct Masked: FileSystem {
            let system = SystemFiles()
            let mask: mode_t

            func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 {
                let isNew = flags & O_CREAT != 0 && (try? system.status(at: path)) == nil
                let file = try system.open(path, flags)
                if isNew { fchmod(file, 0o600 & ~mask) }
                return file
            }
            func close(_ file: Int32) throws(Errno) { try system.close(file) }
            func status(_ file: Int32) throws(Errno) -> FileStatus { try system.status(file) }
            func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus { try system.status(at: path) }
            func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int {
                try system.read(file, buffer, at: offset)
            }
            func write(
                _ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
            ) throws(Errno) -> Int { try system.write(file, first, second) }
            func truncate(_ file: Int32, _ length: Int) throws(Errno) { try system.truncate(file, length) }
            func setPermissions(_ file: Int32, _ permissions: UInt32) throws(Errno) {
                try system.setPermissions(file, permissions)
            }
            func unlink(_ path: UnsafePointer<CChar>) throws(Errno) { try system.unlink(path) }
            func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno) {
                try system.rename(path, to: newPath)
            }
            func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) { try system.makeDirectory(path) }
            func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) { try system.removeDirectory(path) }
            func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Void) throws(Errno) {
                try system.list(path, body)
            }
            func lockFile(_ file: Int32) throws(Errno) -> Bool {
                try system.lockFile(file)
            }

            func unlockFile(_ file: Int32) throws(Errno) {
                try system.unlockFile(file)
            }
            func lockProcess(_ file: Int32) throws(Errno) -> Bool { try system.lockProcess(file) }
        }
        let fixture = try DiskFixture()
        let files = Masked(mask: try #require(mode_t(mask, radix: 8)))
        let store = fixture.open(files: files)
        let secondary = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        secondary.store(.test(testBody(1)), for: .test("b"))
        secondary.flush()
        let directory = try SystemFiles().status(at: fixture.directory)
        #expect(directory.permissions == 0o700)
        #expect(try SystemFiles().status(at: fixture.records).permissions == 0o700)
        for name in fixture.scratch.files() {
            let status = try SystemFiles().status(at: fixture.scratch.appending(name).path)
            #expect(status.permissions == 0o600, "\(name)")
        }
        #expect(
            Set(fixture.scratch.files().map { $0.contains("records/") ? "record" : $0 }) == [
                "record", "cache/lock", "cache/index.plist",
                "cache/changes",
            ])
    }

    @Test("Names and index hold digests only") func digestsOnly() throws {
        let fixture = try DiskFixture()
        let store = fixture.open { $0.keepsURLs = false }
        store.store(.test(Data(), url: "https://secret.example/secret?secret=1"), for: .test("https://secret.example"))
        store.flush()
        store.close()
        #expect(allBytes(fixture.directory).range(of: Data("secret".utf8)) == nil)
        // And with URLs kept, only the record has them.
        let other = fixture.open()
        other.store(.test(Data(), url: "https://secret.example/"), for: .test("https://secret.example"))
        other.close()
        try FileManager.default.removeItem(atPath: fixture.records)
        #expect(allBytes(fixture.directory).range(of: Data("secret".utf8)) == nil)
    }

    @Test("Values of the fields that Vary names are kept as digests only") func varyDigests() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        store.store(.test(testBody(1), language: "marker-8843"), for: key)
        store.close()
        #expect(allBytes(fixture.directory).range(of: Data("marker-8843".utf8)) == nil)
    }

    @Test("After removeAll and a flush a search for a marker finds nothing") func nothingIsLeft() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        let marker = Data("marker-5521".utf8)
        for number in 0..<50 { store.store(.test(marker + testBody(number)), for: .test("\(number)")) }
        store.flush()
        #expect(allBytes(fixture.directory).range(of: marker) != nil)
        store.removeAll()
        store.flush()
        #expect(allBytes(fixture.directory).range(of: marker) == nil)
        // The same for one entry that was replaced, refused or removed.
        store.store(.test(marker), for: key)
        store.flush()
        store.store(.test(testBody(1), sequence: 2), for: key)
        store.flush()
        #expect(allBytes(fixture.directory).range(of: marker) == nil)
        store.store(.test(marker, sequence: 3), for: key)
        store.flush()
        store.remove(key)
        #expect(allBytes(fixture.directory).range(of: marker) == nil)
    }

    @Test("Fault 4: a clearing is final at once, before any sweeping") func clearingIsFinal() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        for number in 0..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        store.maintenance.pause()
        store.removeAll()
        // What another process finds now is what it would find after a kill.
        let other = fixture.open()
        for number in 0..<20 { #expect(other.variants(of: .test("\(number)")).isEmpty) }
        other.flush()
        #expect(other.entryCount == 0)
        #expect(fixture.recordNames().isEmpty)
    }
}

import Foundation
import Testing

@testable import DiskURLCache

@Suite struct DirectoryChangeTests {
    /// A row of which one bit differs is no row.
    @Test func rowsAreWhole() {
        let key = RequestKey.test("a").name
        let changes: [DirectoryChange] = [
            .storing(key), .stored(key), .removed(key), .removedResource(7), .removedAll, .noticed,
        ]
        for change in changes {
            var bytes = change.row(by: 5 << 8)
            #expect(bytes.count == DirectoryChange.rowLength)
            let decoded = bytes.withUnsafeBytes { DirectoryChange.decode($0) }
            #expect(decoded?.change == change && decoded?.writer == 5 << 8)
            for bit in 0..<bytes.count * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8)
                #expect(bytes.withUnsafeBytes { DirectoryChange.decode($0) } == nil)
                bytes[bit / 8] ^= 1 << (bit % 8)
            }
        }
    }

    /// As `OnDiskFormat.md` has it: 16 bytes of the key's name, of which a resource has the first eight, and the kind.
    @Test func rowsAreAsTheFormatSays() {
        let key = KeyName(resource: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)
        let name = Array(UInt8(1)...16)
        let none = [UInt8](repeating: 0, count: 16)
        let rows: [(change: DirectoryChange, name: [UInt8], kind: UInt8)] = [
            (.stored(key), name, 1), (.removed(key), name, 2),
            (.removedResource(key.resource), Array(name[..<8] + none[..<8]), 3), (.removedAll, none, 4),
            (.storing(key), name, 5), (.noticed, none, 6),
        ]
        for row in rows {
            let bytes = row.change.row(by: 0x1122_3344_5566_7700)
            #expect(bytes[..<16].elementsEqual(row.name))
            #expect(bytes[16..<24].elementsEqual([row.kind, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]))
        }
    }

    /// Of two caches that find the file full, only one replaces it: the other one's file would be replaced in turn,
    /// with rows in it that nobody read.
    @Test func oneCacheAtATimeReplacesTheFile() throws {
        let scratch = try ScratchDirectory()
        let paths = DiskPaths(directory: scratch.url.path)
        let files = FaultyFileSystem()
        let first = ChangeFile.Place(files: files, paths: paths, limit: 4_096, isHeld: true)
        let second = ChangeFile.Place(files: SystemFiles(), paths: paths, limit: 4_096, isHeld: true)
        let refusals = Mutex(0)
        files.rule = { call in
            guard call.operation == .rename else { return nil }
            #expect(throws: Errno(EAGAIN)) { try ChangeFile.open(second, holds: true).replaced() }
            _ = refusals.next()
            return nil
        }
        _ = try ChangeFile.open(first, holds: true).replaced()
        #expect(refusals.withLock { $0 } == 1)
    }
}

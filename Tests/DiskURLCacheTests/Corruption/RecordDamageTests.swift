import Foundation
import Testing

@testable import DiskURLCache

/// Faults of `Reliability.md` about records that are not as they were written.
@Suite("Damaged records") struct RecordDamageTests {
    /// A directory with one record, closed; its path and bytes.
    private func fixture(
        _ entry: StoredEntry, _ label: String = #function
    ) throws -> (fixture: DiskFixture, path: String, bytes: Data) {
        let fixture = try DiskFixture(label)
        let store = fixture.open()
        store.store(entry, for: key)
        store.close()
        let path = try #require(fixture.onlyRecord(key))
        return (fixture, path, try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private let key = RequestKey.test("a")
    private let entry = StoredEntry.test(testBody(1, length: 300), sequence: 5, language: "de", tags: ["t"])

    /// What a reader that shares nothing with the store that wrote makes of the file.
    private func read(_ fixture: DiskFixture, slot: UInt8 = 0) -> RecordReading {
        RecordReader(files: SystemFiles(), paths: DiskPaths(directory: fixture.directory))
            .read(RecordName(key: key.name, slot: slot), .whole, limit: 100 << 20)
    }

    private func write(_ bytes: Data, to path: String) throws {
        // Over the old bytes, as damage does: not a new file.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    @Test("Fault 9: truncated at every length: a miss at each") func truncatedAtEveryLength() throws {
        let (fixture, path, bytes) = try fixture(entry)
        for length in 0..<bytes.count {
            try write(bytes.prefix(length), to: path)
            guard case .damaged = read(fixture) else {
                Issue.record("length \(length) is not found damaged")
                return
            }
        }
        try write(bytes, to: path)
        guard case .record(let record) = read(fixture) else {
            Issue.record("the whole record is not read")
            return
        }
        #expect(record.body == entry.body)
    }

    @Test("Fault 10: every single-bit flip: the identical response or a miss") func everyBitFlip() throws {
        let (fixture, path, bytes) = try fixture(entry)
        for position in bytes.indices {
            for bit in TestLength.bits(at: position) {
                var flipped = bytes
                flipped[position] ^= 1 << UInt8(bit)
                try write(flipped, to: path)
                if case .record(let record) = read(fixture) {
                    Issue.record("bit \(bit) of byte \(position) goes unnoticed: \(record.header)")
                    return
                }
            }
        }
    }

    @Test("Faults 6, 8: zero length, garbage, a tail of zeros: a miss, and the file goes")
    func lostData() throws {
        let (fixture, path, bytes) = try fixture(entry)
        let damages: [Data] = [
            Data(), Data(count: bytes.count), testBody(9, length: bytes.count), Data(count: 20),
            bytes.prefix(bytes.count - 50) + Data(count: 50), bytes + Data([0]),
        ]
        for (number, damage) in damages.enumerated() {
            try damage.write(to: URL(fileURLWithPath: path))
            let store = fixture.open()
            // At once, and again with the index known.
            #expect(store.variants(of: key).isEmpty, "damage \(number)")
            store.flush()
            #expect(store.variants(of: key).isEmpty, "damage \(number)")
            store.flush()
            #expect(!FileManager.default.fileExists(atPath: path), "damage \(number)")
            #expect(store.usage == 0)
            store.store(entry, for: key)
            store.flush()
            #expect(store.body(key) == entry.body)
            store.removeAll()
            store.close()
        }
        #expect(fixture.log.count { $0 == .removedCorruptRecord(key: key.name) } == damages.count)
    }

    @Test("Fault 10: a damaged body is found while the store runs, and the file goes") func damagedWhileOpen() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        for length in [300, 500_000] {
            store.store(.test(testBody(1, length: length)), for: key)
            store.flush()
            let path = try #require(fixture.onlyRecord(key))
            var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            bytes[bytes.count - 3] ^= 4
            try write(bytes, to: path)
            #expect(store.body(key) == nil)
            store.flush()
            #expect(fixture.recordNames().isEmpty)
            #expect(store.variants(of: key).isEmpty)
            #expect(store.usage == 0)
        }
    }

    @Test("Fault 12: two records swapped by name: a miss for both") func swapped() throws {
        let fixture = try DiskFixture()
        let other = RequestKey.test("b")
        let store = fixture.open()
        store.store(.test(testBody(1)), for: key)
        store.store(.test(testBody(2)), for: other)
        store.close()
        let (first, second) = (try #require(fixture.onlyRecord(key)), try #require(fixture.onlyRecord(other)))
        let spare = fixture.scratch.appending("spare").path
        for (from, to) in [(first, spare), (second, first), (spare, second)] {
            try FileManager.default.moveItem(atPath: from, toPath: to)
        }
        let reopened = fixture.open()
        for _ in 0..<2 {
            #expect(reopened.variants(of: key).isEmpty)
            #expect(reopened.variants(of: other).isEmpty)
            reopened.flush()
        }
        // Both can be stored again, beside what lies there.
        reopened.store(.test(testBody(3)), for: key)
        reopened.flush()
        #expect(reopened.body(key) == testBody(3))
        #expect(reopened.usage == fixture.allocatedByRecords())
    }

    @Test("Fault 12: a record under another slot of its key is a miss") func movedToAnotherSlot() throws {
        let (fixture, path, _) = try fixture(entry)
        try FileManager.default.moveItem(atPath: path, toPath: path.dropLast() + "5")
        let store = fixture.open()
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(store.variants(of: key).isEmpty)
    }

    @Test("Fault 13: an older record put back over a newer one: the older response whole, or a miss")
    func olderPutBack() throws {
        let (fixture, path, old) = try fixture(entry)
        let store = fixture.open()
        let newer = StoredEntry.test(testBody(2, length: 400), sequence: 6, language: "de")
        store.store(newer, for: key)
        store.close()
        let newPath = try #require(fixture.onlyRecord(key))
        try write(old, to: newPath)
        let reopened = fixture.open()
        let body = reopened.body(key)
        #expect(body == nil || body == entry.body)
        reopened.flush()
        reopened.removeAll()
        reopened.store(newer, for: key)
        reopened.close()
        // Put back under a name of its own, beside the newer: the newer counts.
        try FileManager.default.moveItem(
            atPath: try #require(fixture.onlyRecord(key)), toPath: fixture.scratch.appending("x").path)
        try old.write(to: URL(fileURLWithPath: path))
        let again = fixture.open()
        #expect(again.body(key) == entry.body)
        again.close()
        try FileManager.default.removeItem(atPath: path)
        let last = fixture.open()
        last.flush()
        last.store(newer, for: key)
        last.flush()
        try FileManager.default.moveItem(
            atPath: try #require(fixture.onlyRecord(key)), toPath: fixture.recordPath(key, slot: 3))
        #expect(last.variants(of: key).isEmpty)
    }

    @Test("Fault 1: of two records of one variant, left by a crash, the newer is served and the older goes")
    func olderBesideNewer() throws {
        let (fixture, path, old) = try fixture(entry)
        let store = fixture.open()
        store.store(.test(testBody(2), sequence: 6, language: "de"), for: key)
        store.close()
        #expect(fixture.onlyRecord(key) != path)
        try old.write(to: URL(fileURLWithPath: path))
        let reopened = fixture.open()
        #expect(reopened.variants(of: key).map(\.metadata.sequence) == [6])
        reopened.flush()
        #expect(reopened.variants(of: key).map(\.metadata.sequence) == [6])
        #expect(fixture.recordNames().count == 1)
        #expect(reopened.usage == fixture.allocatedByRecords())
    }

    @Test("Fault 16: a record of a future version is a miss, and is left alone") func futureVersion() throws {
        let (fixture, path, bytes) = try fixture(entry)
        var future = bytes
        future[4] = 2
        try write(future, to: path)
        let store = fixture.open()
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test("Fault 25: a header that claims gigabytes or 2^32 fields is a miss before anything is allocated")
    func hugeClaims() throws {
        let (fixture, path, bytes) = try fixture(entry)
        // Lengths of metadata and body, at 88 and 96.
        for (offset, value) in [(88, UInt64.max), (88, 1 << 40), (96, UInt64.max), (96, 1 << 62), (96, 1 << 40)] {
            var claimed = bytes
            withUnsafeBytes(of: value.littleEndian) { claimed.replaceSubrange(offset..<offset + 8, with: $0) }
            try write(claimed, to: path)
            guard case .damaged = read(fixture) else {
                Issue.record("\(value) at \(offset) was believed")
                continue
            }
        }
        // Within intact metadata: a count of fields that the bytes cannot hold.
        var writer = ByteWriter()
        writer.append(0.0)
        writer.append(optional: nil)
        writer.append(UInt8(0))
        writer.append("GET")
        writer.append(Int64(200))
        writer.append(0.0)
        writer.append(0.0)
        writer.append(UInt32.max)
        writer.append(UInt64(0))
        #expect(writer.finish().withUnsafeBytes { MetadataCodec.decode($0, sequence: 1, isPinned: false) } == nil)
        // A sparse file of 1 TB under a record's name.
        try write(bytes, to: path)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 1 << 40)
        try file.close()
        guard case .foreign = read(fixture) else {
            Issue.record("a file larger than the capacity was read")
            return
        }
    }

    @Test(
        "Fault 26: CR, LF or NUL in a header field: not stored, and not read either",
        arguments: ["\r", "\n", "\0", "\r\n"])
    func forgedHeaders(bad: String) throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        for fields: HeaderFields in [["X": "a\(bad)Set-Cookie: b"], ["X\(bad)Y": "a"]] {
            store.store(.test(testBody(1)), for: key)
            store.store(.test(testBody(2), fields: fields), for: key)
            store.flush()
            #expect(store.variants(of: key).isEmpty)
            #expect(fixture.recordNames().isEmpty)
            // Written by a careless hand, checksums and all.
            var metadata = try #require(
                MetadataCodec.encode(StoredEntry.test(Data(), fields: ["X": "a_____b"]).metadata, keepsURL: true))
            // Not by one byte, which a time may hold, too.
            let place = try #require(Data(metadata).range(of: Data("_____".utf8))).lowerBound
            metadata.replaceSubrange(place..<place + bad.utf8.count, with: bad.utf8)
            #expect(metadata.withUnsafeBytes { MetadataCodec.decode($0, sequence: 1, isPinned: false) } == nil)
        }
        #expect(fixture.log.count { $0 == .dropped(key: key.name, .notRepresentable) } == 2)
    }

    @Test("Fault 26: other bytes in header fields and URLs survive as they are")
    func oddHeaders() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        let odd = StoredEntry.test(
            testBody(1), url: "http://é.example/\u{1}\u{7f}😀\u{0}", fields: ["X-😀": "\u{1}\t\u{7f}ÿ\u{FEFF}", "": ""])
        store.store(odd, for: key)
        store.close()
        #expect(fixture.open().variants(of: key).first?.metadata == odd.metadata)
    }

    @Test("Fault 27: 10,000 headers and a 1 MB header are stored; what exceeds 4 MB is refused")
    func manyHeaders() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        var fields = HeaderFields((0..<10_000).map { .init(name: "X-\($0)", value: "value \($0)") })
        fields.append("Large", String(repeating: "x", count: 1 << 20))
        let large = StoredEntry.test(testBody(1), fields: fields)
        store.store(large, for: key)
        store.close()
        let reopened = fixture.open()
        #expect(reopened.variants(of: key).first?.load()?.metadata == large.metadata)
        let tooLarge = TestLength.pick(plain: [4 << 20], long: [4 << 20, 100 << 20])
        for count in tooLarge {
            reopened.store(.test(testBody(2), fields: ["Large": String(repeating: "x", count: count)]), for: key)
            reopened.flush()
            #expect(reopened.variants(of: key).isEmpty)
            #expect(fixture.recordNames().isEmpty)
        }
        #expect(fixture.log.count { $0 == .dropped(key: key.name, .notRepresentable) } == tooLarge.count)
    }

    @Test("Fault 34: two keys with the same file name: the other key is a miss") func sameName() throws {
        let (fixture, _, _) = try fixture(entry)
        // No two texts with the same name are known: a key is made up that has the name and another digest.
        var other = key.diskKey
        other.digest.words[0] ^= 1 << 63
        let store = fixture.open()
        func find() -> [StoredVariant] { store.variants(named: other.name) { other.digest } }
        for _ in 0..<2 {
            #expect(find().isEmpty)
            #expect(store.variants(named: other.name) { other.digest }.isEmpty)
            store.flush()
        }
        // Both have room, and neither takes the other along.
        let second = StoredEntry.test(testBody(2), sequence: 9, language: "de")
        store.write(second, for: other, usedAt: MonotonicTime.nanoseconds)
        #expect(find().first?.load()?.body == testBody(2))
        #expect(store.body(key) == entry.body)
        store.flush()
        #expect(fixture.recordNames().count == 2)
        store.remove(key)
        #expect(store.variants(of: key).isEmpty)
        #expect(find().count == 1)
        store.withIO { store.examine(other.name, &$0) }
        #expect(find().count == 1)
    }

    @Test(
        "Metadata may be as long as the format says, and no longer",
        .enabled(if: TestLength.isLong, "long form: checksums of 4 MB take seconds without optimisation"))
    func longestMetadata() throws {
        let key = RequestKey.test("a")
        func entry(_ length: Int) -> StoredEntry {
            let plain = StoredEntry.test(testBody(1))
            var metadata = plain.metadata
            metadata.userInfo = ["a": .data(Data(repeating: 7, count: length)), "b": .boolean(true)]
            return StoredEntry(metadata: metadata, body: plain.body)
        }
        func record(_ length: Int) -> PreparedRecord? {
            PreparedRecord(entry(length), for: key.diskKey, keepsURL: true)
        }
        let rest = try #require(record(0)).header.metadataLength
        let longest = MetadataCodec.maximumLength - rest
        #expect(record(longest)?.header.metadataLength == MetadataCodec.maximumLength)
        #expect(record(longest + 1) == nil)
        // Through the files as well.
        let fixture = try DiskFixture()
        let store = fixture.open()
        store.store(entry(longest), for: key)
        store.flush()
        #expect(store.body(key) == testBody(1))
        #expect(store.variants(of: key).first?.metadata.userInfo["b"] == .boolean(true))
    }
}

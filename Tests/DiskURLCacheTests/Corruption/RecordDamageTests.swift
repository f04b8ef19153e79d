import Foundation
import Testing

@testable import DiskURLCache

/// Faults of `Reliability.md` about records that are not as they were written.
@Suite("Damaged records", .fewAtATime) struct RecordDamageTests {
    /// A record that is as it was written, or that a 304 or a pin gave a second tail.
    private struct Subject: Sendable, CustomTestStringConvertible {
        var bodyLength = 300
        var isUpdated = false

        static let all = [Subject(), Subject(isUpdated: true), Subject(bodyLength: 20_000, isUpdated: true)]
        var testDescription: String { "\(bodyLength) bytes\(isUpdated ? ", updated" : "")" }

        var entry: StoredEntry {
            .test(testBody(1, length: bodyLength), sequence: 5, language: "de", tags: ["t"])
        }
    }

    /// A directory with one record, closed; its path, its bytes, and where its first tail ends.
    private func fixture(
        _ subject: Subject = Subject(), _ label: String = #function
    ) throws -> (fixture: DiskFixture, path: String, bytes: Data, first: Int) {
        let fixture = try DiskFixture(label)
        let store = fixture.open()
        store.store(subject.entry, for: key)
        let path = try #require(fixture.onlyRecord(key))
        let first = try SystemFiles().status(at: path).size
        if subject.isUpdated {
            let metadata = StoredEntry.test(Data(), sequence: 6, language: "de", tags: ["new"]).metadata
            #expect(
                store.update(metadata, of: key, replacing: subject.entry.metadata, usedAt: MonotonicTime.nanoseconds))
        }
        store.close()
        return (fixture, path, try Data(contentsOf: URL(fileURLWithPath: path)), first)
    }

    private let key = RequestKey.test("a")
    private let entry = Subject().entry

    /// What a reader that shares nothing with the store that wrote makes of the file.
    private func read(_ fixture: DiskFixture, _ extent: RecordReader.Extent = .whole) -> RecordReading {
        RecordReader(files: SystemFiles(), paths: DiskPaths(directory: fixture.directory))
            .read(RecordName(key: key.name, slot: 0), extent, limit: 100 << 20)
    }

    private func write(_ bytes: Data, to path: String) throws {
        // Over the old bytes, as damage does: not a new file.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    @Test("Truncated at every length: a miss, or the older tail at its end", arguments: Subject.all)
    private func truncatedAtEveryLength(subject: Subject) throws {
        let (fixture, path, bytes, first) = try fixture(subject)
        // Within a large body a few lengths say as much.
        for length in 0...bytes.count where length % 1_000 == 0 || length >= subject.bodyLength || length < 1_000 {
            try write(bytes.prefix(length), to: path)
            switch read(fixture) {
            case .damaged: #expect(length != first && length != bytes.count)
            case .record(let record):
                #expect(length == first || length == bytes.count)
                #expect(record.footer.sequence == (length == first ? 5 : 6))
                #expect(record.body == subject.entry.body)
            default: Issue.record("length \(length)")
            }
        }
        try write(bytes + Data([0]), to: path)
        if case .record = read(fixture) { Issue.record("one byte more goes unnoticed") }
    }

    @Test("Every single-bit flip: the identical response or a miss", arguments: Subject.all)
    private func everyBitFlip(subject: Subject) throws {
        let (fixture, path, bytes, first) = try fixture(subject)
        // A tail that is not the last one says nothing any more. A large record is read in pieces when only its tail is
        // wanted.
        let isLarge = subject.bodyLength > 8 << 10
        let body = isLarge ? 0..<0 : 0..<subject.bodyLength
        let last = (subject.isUpdated ? first : subject.bodyLength)..<bytes.count
        guard case .record = read(fixture, isLarge ? .tail : .whole) else {
            Issue.record("the record is not read as it was written")
            return
        }
        for position in Array(body) + Array(last) {
            for bit in TestLength.bits(at: position) {
                var flipped = bytes
                flipped[position] ^= 1 << UInt8(bit)
                try write(flipped, to: path)
                if case .record(let record) = read(fixture, isLarge ? .tail : .whole) {
                    Issue.record("bit \(bit) of byte \(position) goes unnoticed: \(record.footer)")
                    return
                }
            }
        }
    }

    @Test("Zero length, garbage, a tail of zeros: a miss, and the file goes", arguments: [false, true])
    func lostData(isUpdated: Bool) throws {
        let (fixture, path, bytes, first) = try fixture(Subject(isUpdated: isUpdated))
        let ends = isUpdated ? [first, first + 1, first + 100, bytes.count - 1] : [bytes.count - 50, bytes.count - 1]
        let all: [Data] =
            [
                Data(), Data(count: bytes.count), testBody(9, length: bytes.count), Data(count: 20), bytes + Data([0]),
            ] + ends.map { bytes.prefix($0) + Data(count: bytes.count - $0) }
        // The last byte of a checksum may be 0 anyway.
        let damages = all.filter { $0 != bytes }
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

    @Test("A damaged body is found while the store runs, and the file goes") func damagedWhileOpen() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        for length in [300, 500_000] {
            store.store(.test(testBody(1, length: length)), for: key)
            store.flush()
            let path = try #require(fixture.onlyRecord(key))
            var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            bytes[length - 3] ^= 4
            try write(bytes, to: path)
            #expect(store.body(key) == nil)
            store.flush()
            #expect(fixture.recordNames().isEmpty)
            #expect(store.variants(of: key).isEmpty)
            #expect(store.usage == 0)
        }
    }

    @Test("Two records swapped by name: a miss for both") func swapped() throws {
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

    @Test("A record under another slot of its key is a miss") func movedToAnotherSlot() throws {
        let (fixture, path, _, _) = try fixture()
        try FileManager.default.moveItem(atPath: path, toPath: path.dropLast() + "5")
        let store = fixture.open()
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(store.variants(of: key).isEmpty)
    }

    @Test("An older record put back over a newer one: the older response whole, or a miss")
    func olderPutBack() throws {
        let (fixture, path, old, _) = try fixture()
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

    @Test("Of two records of one variant, left by a crash, the newer is served and the older goes")
    func olderBesideNewer() throws {
        let (fixture, path, old, _) = try fixture()
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

    @Test("A record of a future version is a miss, and is left alone") func futureVersion() throws {
        let (fixture, path, bytes, _) = try fixture()
        var future = bytes
        future[future.count - RecordFooter.length + 4] = 2
        try write(future, to: path)
        let store = fixture.open()
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test("A header that claims gigabytes or 2^32 fields is a miss before anything is allocated")
    func hugeClaims() throws {
        let (fixture, path, bytes, _) = try fixture()
        // Lengths of metadata and body, at 88 and 96 of the footer.
        for (offset, value) in [(88, UInt64.max), (88, 1 << 40), (96, UInt64.max), (96, 1 << 62), (96, 1 << 40)] {
            var claimed = bytes
            let place = bytes.count - RecordFooter.length + offset
            withUnsafeBytes(of: value.littleEndian) { claimed.replaceSubrange(place..<place + 8, with: $0) }
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
        // A sparse file of 8 GB under a record's name.
        try write(bytes, to: path)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 1 << 33)
        try file.close()
        guard case .foreign = read(fixture) else {
            Issue.record("a file larger than the capacity was read")
            return
        }
    }

    @Test(
        "CR, LF or NUL in a header field: not stored, and not read either",
        arguments: ["\r", "\n", "\0", "\r\n"])
    func forgedHeaders(bad: String) throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        for fields: HeaderFields in [["X": "a\(bad)Set-Cookie: b"], ["X\(bad)Y": "a"]] {
            store.store(.test(testBody(1)), for: key)
            #expect(store.store(.test(testBody(2), fields: fields), for: key) == .dropped(.malformed))
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
    }

    @Test("Other bytes in header fields and URLs survive as they are")
    func oddHeaders() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        let odd = StoredEntry.test(
            testBody(1), url: "http://é.example/\u{1}\u{7f}😀\u{0}", fields: ["X-😀": "\u{1}\t\u{7f}ÿ\u{FEFF}", "": ""])
        store.store(odd, for: key)
        store.close()
        #expect(fixture.open().variants(of: key).first?.metadata == odd.metadata)
    }

    @Test("10,000 headers and a 1 MB header are stored; what exceeds 4 MB is refused")
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
            let result = reopened.store(
                .test(testBody(2), fields: ["Large": String(repeating: "x", count: count)]), for: key)
            #expect(result == .dropped(.malformed))
            reopened.flush()
            #expect(reopened.variants(of: key).isEmpty)
            #expect(fixture.recordNames().isEmpty)
        }
    }

    @Test("Two keys with the same file name: the other key is a miss") func sameName() throws {
        let fixture = try DiskFixture()
        // No two texts with the same name are known: a key is made up that has the name and another digest.
        var other = key.diskKey
        other.digest = SHA256Digest.digest(of: "another key")
        let store = fixture.open()
        store.store(.test(testBody(2), sequence: 9, language: "de"), for: other)
        for _ in 0..<2 {
            #expect(store.variants(of: key).isEmpty)
            #expect(!store.contains(key))
            store.flush()
        }
        // Both keys have room under the one name.
        store.store(entry, for: key)
        #expect(store.body(key) == entry.body)
        store.flush()
        store.withIO { store.examine(other.name, &$0) }
        #expect(fixture.recordNames().count == 2)
        #expect(store.variants(of: key).count == 1)
        // A removal of one of them removes the other, too.
        store.remove(key)
        #expect(fixture.recordNames().isEmpty)
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
        let rest = try #require(record(0)).footer.metadataLength
        let longest = MetadataCodec.maximumLength - rest
        #expect(record(longest)?.footer.metadataLength == MetadataCodec.maximumLength)
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

import Foundation
import Testing

@testable import DiskURLCache

/// A directory as format version 1 wrote it, kept as files: every later version still reads it.
///
/// The files were made by `DISKURLCACHE_WRITE_FIXTURES=1 swift test --filter GoldenFixtureTests`. Making them again
/// after the first release would defeat their purpose. They were made last on 29 November 2026, when records and index
/// got the levels of paths.
@Suite("Golden fixtures") struct GoldenFixtureTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fixtures/v1")
    private static let time = Date(timeIntervalSince1970: 1_790_000_000)

    /// The bodies of the files.
    private static func body(_ number: Int, length: Int) -> Data {
        var state = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15 | 1
        return Data(
            (0..<length).map { _ in
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                return UInt8(truncatingIfNeeded: state)
            })
    }

    private static let entries: [(key: RequestKey, entry: StoredEntry)] = {
        let other = EntryMetadata(
            sequence: 4, url: nil,
            response: .other(mimeType: "text/plain", expectedContentLength: 5, textEncodingName: nil),
            storedAt: time, placement: .memoryAndDisk, userInfo: [:], tags: [], isPinned: true)
        return [
            (.test("plain"), .test(body(1, length: 200), sequence: 1, storedAt: time)),
            (.test("variants"), .test(body(2, length: 50), sequence: 2, storedAt: time, language: "de")),
            (.test("variants"), .test(body(3, length: 0), sequence: 3, storedAt: time, language: "en")),
            (.test("other"), StoredEntry(metadata: other, body: body(4, length: 5))),
            (
                .test("all of it"),
                .test(
                    body(5, length: 300), sequence: 5, storedAt: time, tags: ["one", "two"],
                    url: "https://example.org/é",
                    userInfo: [
                        "string": .string("é"), "integer": .integer(-1), "real": .real(0.5), "yes": .boolean(true),
                        "no": .boolean(false), "date": .date(time), "data": .data(Data([0, 255])),
                        "array": .array([.integer(1), .dictionary(["x": .string("")])]),
                    ], fields: ["Set-Cookie": "a", "set-cookie": "b", "X-Empty": ""])
            ),
        ]
    }()

    private func fill(_ fixture: DiskFixture, clock: ManualClock) {
        let store = fixture.open(clock: clock.wallClock)
        store.flush()
        for (key, entry) in Self.entries.dropLast() { store.store(entry, for: key) }
        store.flush()
        store.touch(.test("plain"))
        if let (key, entry) = Self.entries.last { store.store(entry, for: key) }
        store.close()
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment["DISKURLCACHE_WRITE_FIXTURES"] != nil, "only on demand"))
    func write() throws {
        let fixture = try DiskFixture()
        fill(fixture, clock: ManualClock(Self.time))
        try FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
        for name in ["records", "index.plist"] {
            try FileManager.default.copyItem(
                atPath: fixture.directory + "/" + name, toPath: Self.folder.appendingPathComponent(name).path)
        }
    }

    @Test func version1IsRead() throws {
        let fixture = try DiskFixture()
        try FileManager.default.copyItem(atPath: Self.folder.path, toPath: fixture.directory)
        let store = fixture.open()
        for _ in 0..<2 {
            for (key, entry) in Self.entries {
                let found = store.variants(of: key).first { $0.metadata.sequence == entry.metadata.sequence }
                let loaded = try #require(found?.load())
                #expect(loaded.metadata == entry.metadata)
                #expect(loaded.body == entry.body)
            }
            store.flush()
        }
        #expect(store.entryCount == Self.entries.count)
        #expect(!fixture.log.events.contains(.rejectedIndex))
    }

    @Test func version1IndexHoldsWhatTheRecordsSay() throws {
        var index = [UInt8](try Data(contentsOf: Self.folder.appendingPathComponent("index.plist")))
        let rows = try #require(index.withUnsafeMutableBytes { IndexFile.decode($0) })
        #expect(rows.count == Self.entries.count)
        for (key, entry) in Self.entries {
            let hash = UInt32(truncatingIfNeeded: entry.metadata.varyHash)
            let row = try #require(rows.first { $0.key == key.name && $0.varyHash == hash })
            #expect(row.key.resource == key.resource)
            #expect(row.hostHash == key.hostHash)
            #expect(row.tagFilter == TagFilter(entry.metadata.tags))
            #expect(row.storedAt == Self.time.recordSeconds)
            #expect(row.isPinned == entry.metadata.isPinned)
            #expect(!row.isPartial)
        }
    }

    @Test func recordsAreStillWrittenByteForByteAlike() throws {
        let fixture = try DiskFixture()
        fill(fixture, clock: ManualClock(Self.time))
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path + "/records")
        #expect(names.sorted() == fixture.recordNames())
        for name in names {
            let golden = try Data(contentsOf: Self.folder.appendingPathComponent("records/" + name))
            #expect(golden == (try Data(contentsOf: URL(fileURLWithPath: fixture.records + "/" + name))))
        }
    }
}

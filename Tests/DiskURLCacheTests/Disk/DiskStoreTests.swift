import Foundation
import Testing

@testable import DiskURLCache

@Suite("Disk store", .fewAtATime) struct DiskStoreTests {
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    /// The system copies neither between all file systems, nor into a file that is open for appending.
    @Test func aBodyIsCopiedWhereTheSystemDoesNotCopy() throws {
        let body = testBody(1, length: 300 << 10)
        let source = fixture.scratch.appending("source")
        let target = fixture.scratch.appending("target")
        try body.write(to: source)
        let files = SystemFiles()
        let file = OpenFile(try files.openFile(source.path, O_RDONLY), files)
        let destination = OpenFile(try files.openFile(target.path, O_WRONLY | O_CREAT | O_APPEND), files)
        #expect(file.copy(100..<body.count, to: destination.file) == nil)
        #expect(try Data(contentsOf: target) == body.dropFirst(100))
    }

    @Test func storedEntryIsVisibleAtOnceAndAfterReopening() throws {
        let key = RequestKey.test("a")
        let entry = StoredEntry.test(
            testBody(1), sequence: 7, tags: ["one", "two"],
            userInfo: ["a": .array([.integer(1), .dictionary(["x": .boolean(true)])]), "d": .data(Data([1, 2]))])
        do {
            let store = fixture.open()
            store.store(entry, for: key)
            #expect(store.variants(of: key).first?.metadata == entry.metadata)
            store.flush()
            let read = try #require(store.variants(of: key).first?.load())
            #expect(read.metadata == entry.metadata)
            #expect(read.body == entry.body)
            #expect(read.body.startIndex == 0)
            store.close()
        }
        let store = fixture.open()
        let read = try #require(store.variants(of: key).first?.load())
        #expect(read.metadata == entry.metadata)
        #expect(read.body == entry.body)
        #expect(store.variants(of: .test("b")).isEmpty)
        store.flush()
        #expect(store.variants(of: .test("b")).isEmpty)
        #expect(store.usage == fixture.allocatedByRecords())
        #expect(store.entryCount == 1)
    }

    /// After a crash the index on disk would take the new file for the old one.

    @Test(arguments: [0, 1, 100, 5000, 300_000, 3_000_000])
    func bodiesOfEverySizeSurvive(length: Int) throws {
        let key = RequestKey.test("a")
        let store = fixture.open()
        store.store(.test(testBody(length, length: length)), for: key)
        store.flush()
        let candidate = try #require(store.variants(of: key).first)
        #expect(candidate.bodyLength == length)
        #expect(candidate.load()?.body == testBody(length, length: length))
    }

    @Test func storingAgainReplacesTheSameVariantOnly() throws {
        let key = RequestKey.test("a")
        let store = fixture.open()
        for round in 1...30 {
            for (place, language) in ["de", "en", nil].enumerated() {
                store.store(
                    .test(testBody(round * 10 + place), sequence: UInt64(round * 10 + place), language: language),
                    for: key)
            }
            if round % 3 == 0 { store.flush() }
            let found = store.variants(of: key)
            #expect(found.map(\.metadata.sequence) == [2, 1, 0].map { UInt64(round * 10 + $0) })
            #expect(found.compactMap { $0.load()?.body } == [2, 1, 0].map { testBody(round * 10 + $0) })
        }
        store.flush()
        #expect(fixture.recordNames().count == 3)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    @Test func whatAKilledProcessLeftIsSwept() throws {
        let leftovers = ["index.plist.new"].map { fixture.directory + "/" + $0 }
        try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
        for path in leftovers { try Data("half".utf8).write(to: URL(fileURLWithPath: path)) }
        fixture.open().flush()
        for path in leftovers { #expect(!FileManager.default.fileExists(atPath: path), "\(path)") }
    }

    // MARK: Stores by others

    /// What waited to be written does not replace what another process stored since.
    @Test func aLaterRecordOfAnotherProcessStays() async throws {
        let (first, second) = (fixture.open(), fixture.open())
        let now = EntrySequence.number(at: Date())
        // The first one knows a record of the key already, or it does not.
        for key in [RequestKey.test("a"), .test("b")] {
            if key == .test("a") { first.store(.test(testBody(0), sequence: now - 3_000_000), for: key) }
            second.store(.test(testBody(2), sequence: now - 1_000_000), for: key)
            first.store(.test(testBody(1), sequence: now - 2_000_000), for: key)
            for store in [second, fixture.open()] { #expect(store.body(key) == testBody(2)) }
            // Once this store maintains the directory, it learns of the other store's record within a second.
            await eventually("the newest record, alone") {
                second.flush()
                first.flush()
                return first.body(key) == testBody(2) && fixture.onlyRecord(key) != nil
            }
        }
    }

    /// A pin raises the number of an older response, and a newer response replaces it all the same.
    @Test func aPinMakesNoResponseNewer() throws {
        let store = fixture.open()
        let now = EntrySequence.number(at: Date())
        store.store(.test(testBody(1), sequence: now + 255), for: .test("a"))
        store.store(.test(testBody(2), sequence: now + 256), for: .test("a"))
        #expect(store.body(.test("a")) == testBody(2))
    }

    /// A record from before the clock was set back keeps nothing out.
    @Test func aRecordFromTheFutureIsReplaced() throws {
        let store = fixture.open()
        let now = EntrySequence.number(at: Date())
        store.store(.test(testBody(1), sequence: EntrySequence.number(at: Date() + 3_600)), for: .test("a"))
        store.store(.test(testBody(2), sequence: now), for: .test("a"))
        #expect(store.body(.test("a")) == testBody(2))
    }
}

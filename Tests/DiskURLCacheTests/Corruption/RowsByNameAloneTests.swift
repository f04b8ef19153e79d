import Foundation
import Testing

@testable import DiskURLCache

/// Hundreds of records that the index lacks are taken in by name and size alone, so that the directory opens at once.
/// Their heads are read later, so that what counts by the head counts for them, too.
@Suite(.fewAtATime) struct RowsByNameAloneTests {
    private let fixture: DiskFixture
    private static let count = 600
    private static let pinned = 20

    init() throws {
        fixture = try DiskFixture()
        let store = fixture.open()
        for number in 0..<Self.count {
            let isPinned = number < Self.pinned
            let entry = StoredEntry.test(
                testBody(number), storedAt: isPinned ? Date() : Date() - 1_000, isPinned: isPinned)
            store.store(entry, for: .test("\(number)"))
        }
        store.close()
        try FileManager.default.removeItem(atPath: fixture.directory + "/index.plist")
    }

    /// - Parameter isSaved: whether an index was saved by which the heads were not read.
    private func prepare(isSaved: Bool) {
        guard isSaved else { return }
        let store = fixture.open()
        store.flush()
        store.close()
    }

    @Test(arguments: [false, true]) func tooOldOnesAreRemoved(isSaved: Bool) async throws {
        prepare(isSaved: isSaved)
        let store = fixture.open { $0.maximumStorageAge = 100 }
        // Of each the file goes first, and then the row.
        await eventually("only the new records are there") {
            store.flush()
            return fixture.recordNames().count == Self.pinned && store.entryCount == Self.pinned
        }
    }

    @Test(arguments: [false, true]) func pinnedOnesCountAsPinned(isSaved: Bool) async throws {
        prepare(isSaved: isSaved)
        let store = fixture.open()
        let pinned = (0..<Self.pinned).map { fixture.recordPath(.test("\($0)")) }
        let bytes = pinned.reduce(0) { $0 + ((try? SystemFiles().status(at: $1))?.allocated ?? 0) }
        await eventually("the pinned records are known") {
            store.flush()
            return store.catalog.read { $0.pinnedBytes } == bytes
        }
        #expect(store.entryCount == Self.count)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// A removal by tag reads the head of each record that is known by name alone.
    @Test func theirHeadsAreReadOnce() async throws {
        let files = FaultyFileSystem()
        let store = fixture.open(files: files)
        await eventually("all are known") {
            store.flush()
            return store.catalog.read {
                $0.count == Self.count && !$0.inOrder.contains(where: \.isPartial)
            }
        }
        store.flush()
        store.maintenance.pause()
        _ = files.takeCalls()
        store.remove(matching: EntryCriteria(tags: ["t"]))
        #expect(!files.takeCalls().contains { $0.operation == .open && $0.isRecord })
    }

    /// Their heads are read a second later, and eviction may come first.
    @Test(arguments: [false, true]) func pinnedOnesAreEvictedLast(weighsSize: Bool) throws {
        let pinned = (0..<Self.pinned).map { fixture.recordPath(.test("\($0)")) }
        let store = fixture.open(capacity: 1 << 20) { $0.weighsSize = weighsSize }
        store.flush()
        #expect(store.entryCount < Self.count)
        #expect(pinned.allSatisfy { FileManager.default.fileExists(atPath: $0) })
    }

    /// For a while no descriptor is free. So few records are all examined at once, and more by and by: by itself, in a
    /// tenth of the time, so not so many here.
    @Test(arguments: [130, 10]) func headsThatCannotBeReadAreReadLater(count: Int) async throws {
        for name in fixture.recordNames().dropFirst(count) {
            try FileManager.default.removeItem(atPath: fixture.records + "/" + name)
        }
        let files = FaultyFileSystem { $0.operation == .open && $0.isRecord ? .error(EMFILE) : nil }
        let store = fixture.open(files: files) { $0.savingInterval = 0.05 }
        // As many passes as it takes to try each of them.
        for _ in 0..<count / 64 + 2 { store.flush() }
        #expect(store.catalog.read { $0.inOrder.filter(\.isPartial).count } == count)
        files.rule = { _ in nil }
        await eventually("all are known") {
            store.catalog.read { !$0.inOrder.contains(where: \.isPartial) }
        }
        #expect(store.entryCount == count)
    }
}

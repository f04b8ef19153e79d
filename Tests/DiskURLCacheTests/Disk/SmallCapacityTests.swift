import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

/// What is not records (index, changes, lock) takes its small share of a small capacity, and no more.
@Suite("Small capacities", .fewAtATime) struct SmallCapacityTests {
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    @Test(
        "Megabytes that were meant as such are a problem",
        arguments: [(16, 0, true), (16 << 20, 200, true), (0, 0, false), (1 << 10, 24 << 10, false)])
    func capacitiesAreInBytes(memory: Int, disk: Int, isProblem: Bool) {
        let folder = URL(fileURLWithPath: fixture.directory)
        let cache = DiskURLCache(memoryCapacity: memory, diskCapacity: disk, directory: folder)
        #expect(cache.openingError?.code == (isProblem ? .settingsWithoutEffect : nil))
        #expect((cache.openingError?.description.contains("16 << 20 is 16 MB") ?? false) == isProblem)
    }

    private func indexSize(_ fixture: DiskFixture) throws -> Int {
        try SystemFiles().status(at: fixture.directory + "/index.plist").allocated
    }

    /// Each store by the second cache has two rows of 32 bytes, each removal two.
    @Test(
        "The changes do not eat a small capacity",
        arguments: [350 << 10, TestLength.pick(plain: 1 << 20, long: 8 << 20)])
    func changes(capacity: Int) {
        let owner = fixture.open(capacity: capacity)
        owner.flush()
        let guest = fixture.open(capacity: capacity)
        guest.flush()
        let limit = ChangeFile.limit(capacity: capacity)
        #expect(limit <= max(4096, capacity / 64))
        // A pass may delete the file between its replacement by the owner and the guest's next look.
        func size() -> Int { (try? SystemFiles().status(at: fixture.directory + "/changes").size) ?? 0 }
        for round in 0..<3 {
            var longest = 0
            for number in 0..<limit / 64 {
                guest.store(.test(testBody(number, length: 300)), for: .test("\(round) \(number)"))
                owner.remove(.test("\(round) \(number)"))
                longest = max(longest, size())
            }
            // The file is replaced when it is full, and not with each row.
            #expect(longest > limit / 2)
            owner.flush()
            #expect(size() <= limit)
        }
    }

    @Test("The index does not eat a small capacity", arguments: [350 << 10, 200 << 10])
    func index(capacity: Int) throws {
        let store = fixture.open(capacity: capacity)
        let count = TestLength.pick(plain: 800, long: 5_000)
        for number in 0..<count {
            store.store(.test(testBody(number, length: 300)), for: .test("\(number)"))
            if number % 50 == 49 { store.flush() }
        }
        store.flush()
        #expect(fixture.allocated() <= capacity)
        let served = (count - 200..<count).filter { store.contains(.test("\($0)")) }
        // A block each; a tenth for the low-water mark, and 40 KB for directories, index and lock.
        #expect(served.count >= (capacity * 9 / 10 - (40 << 10)) / 4096 - 1)
        #expect(served == Array((count - served.count)..<count))
    }

    @Test func aCapacityOfZeroLeavesNoIndex() throws {
        let store = fixture.open()
        store.flush()
        for number in 0..<400 { store.store(.test(testBody(number, length: 300)), for: .test("\(number)")) }
        store.flush()
        #expect(try indexSize(fixture) > 16 << 10)
        store.capacity = 0
        store.flush()
        #expect(fixture.recordNames().isEmpty)
        #expect(try indexSize(fixture) <= 4096)
    }

    @Test("Garbage in the lock does not count") func garbageInLock() throws {
        try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
        try Data(count: 3_000_000).write(to: URL(fileURLWithPath: fixture.directory + "/lock"))
        let store = fixture.open(capacity: 1 << 20)
        store.store(.test(testBody(1)), for: .test("a"))
        store.flush()
        #expect(store.body(.test("a")) == testBody(1))
    }

    @Test func asLongAsTheRecordsCannotBeListedEverythingMayBeThere() throws {
        let files = FaultyFileSystem { $0.operation == .list ? .error(EMFILE) : nil }
        let store = fixture.open(files: files)
        store.flush()
        #expect(store.mayContain(.test("b")))
        files.rule = { _ in nil }
        store.flush()
        #expect(!store.mayContain(.test("b")))
    }

}

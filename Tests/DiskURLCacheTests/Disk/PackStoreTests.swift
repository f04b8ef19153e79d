import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Entries in pack files: what must hold before they are worth measuring.
struct PackStoreTests {
    /// A directory, and caches on it that keep nothing in memory.
    private final class Fixture {
        let scratch: ScratchDirectory
        var directory: URL { scratch.appending("cache") }
        let log = EventLog()
        let files = FaultyFileSystem()

        init(_ label: String = #function) throws { scratch = try ScratchDirectory(label) }

        func open(_ capacity: Int = 64 << 20) -> DiskURLCache {
            var settings = DiskURLCache.Configuration(
                memoryCapacity: 0, diskCapacity: capacity, directory: directory)
            settings.usesPacks = true
            settings.fileSystem = files
            return DiskURLCache(configuration: settings)
        }

        /// A store alone, whose passes the test runs.
        func store(_ capacity: Int = 64 << 20) -> (store: PackStore, queue: MaintenanceQueue) {
            let queue = MaintenanceQueue()
            queue.pause()
            let store = PackStore(
                configuration: DiskStore.Configuration(directory: directory.path, capacity: capacity),
                fileSystem: files, clock: .system, maintenance: queue, report: log.report)
            return (store, queue)
        }

        var packs: [URL] {
            scratch.files().filter { $0.hasSuffix(".pack") }.map { scratch.appending($0) }
        }

        func loseIndex() throws {
            try FileManager.default.removeItem(at: directory.appendingPathComponent("index.plist"))
        }
    }

    private func body(_ store: PackStore, _ key: RequestKey) -> Data? {
        store.variants(of: key).first?.load()?.body
    }

    @Test func storesReplacesAndRemovesLikeEveryLayer() throws {
        let scratch = try ScratchDirectory()
        var made = 0
        let acceptance = StorageAcceptance(isPersistent: false) {
            made += 1
            var settings = DiskURLCache.Configuration(
                memoryCapacity: 0, diskCapacity: 1 << 20, directory: scratch.appending("cache-\(made)"))
            settings.usesPacks = true
            return DiskURLCache(configuration: settings)
        }
        try acceptance.storesReplacesAndRemoves()
        try acceptance.keepsVariantsApart()
        try acceptance.removesManyAtOnce()
        try acceptance.keepsWholeResponses()
    }

    @Test(arguments: [false, true]) func everythingIsThereInANewProcess(losesIndex: Bool) throws {
        let fixture = try Fixture()
        do {
            let (store, queue) = fixture.store()
            for number in 0..<3_000 {
                store.write(
                    .test(testBody(number, length: 3_000), sequence: UInt64(number)), for: .test("\(number)"),
                    usedAt: UInt64(number))
            }
            queue.perform {
                _ = store.beginPass(isFlush: true, mayMake: true)
                store.endPass(isFlush: true)
            }
            store.close()
        }
        #expect(fixture.packs.count > 1)
        if losesIndex { try fixture.loseIndex() }
        let (store, _) = fixture.store()
        for number in 0..<3_000 { #expect(body(store, .test("\(number)")) == testBody(number, length: 3_000)) }
        #expect(store.usage < 3_000 * 3_500)
    }

    /// What follows is what a kill leaves: the store is not closed, and its index is that of before, or none.
    @Test(arguments: [false, true]) func whatWasRemovedOrReplacedDoesNotComeBack(losesIndex: Bool) throws {
        let fixture = try Fixture()
        let (first, firstQueue) = fixture.store()
        for number in 0..<50 { first.write(.test(testBody(number)), for: .test("\(number)"), usedAt: 1) }
        first.close()
        let (second, secondQueue) = fixture.store()
        second.remove(.test("7"))
        second.write(.test(testBody(108), sequence: 2), for: .test("8"), usedAt: 2)
        second.remove(.test("9"), sequence: 1)
        second.remove(.test("10"), variant: .none)
        second.write(.test(testBody(111), sequence: 2), for: .test("11"), usedAt: 2)
        second.remove(.test("11"))
        if losesIndex { try fixture.loseIndex() }
        let (third, _) = fixture.store()
        for number in [7, 9, 10, 11] { #expect(body(third, .test("\(number)")) == nil) }
        #expect(body(third, .test("8")) == testBody(108))
        #expect(body(third, .test("12")) == testBody(12))
        withExtendedLifetime((firstQueue, secondQueue)) {}
    }

    @Test func aReplacementThatWasGatheredIsRemovedWithWhatItReplaced() throws {
        let fixture = try Fixture()
        let (store, queue) = fixture.store()
        store.write(.test(testBody(1)), for: .test("a"), usedAt: 1)
        queue.perform {
            _ = store.beginPass(isFlush: false, mayMake: true)
            store.write(.test(testBody(2), sequence: 2), for: .test("a"), usedAt: 2)
            #expect(body(store, .test("a")) == testBody(2))
            store.remove(.test("a"))
            #expect(body(store, .test("a")) == nil)
        }
        // Killed here: the pass never ended.
        let (after, _) = fixture.store()
        #expect(body(after, .test("a")) == nil)
    }

    /// The next process goes on with the pack, behind what was torn.
    @Test func aTornTailCostsOnlyItself() throws {
        let fixture = try Fixture()
        do {
            let (store, _) = fixture.store()
            for number in 0..<20 { store.write(.test(testBody(number)), for: .test("\(number)"), usedAt: 1) }
        }
        let pack = try #require(fixture.packs.first)
        let length = try Data(contentsOf: pack).count
        // A hundred bytes of the last record are left.
        truncate(pack.path, off_t(length - (length - PackHead.length) / 20 + 100))
        do {
            let (after, _) = fixture.store()
            for number in 0..<19 { #expect(body(after, .test("\(number)")) == testBody(number)) }
            #expect(body(after, .test("19")) == nil)
            after.write(.test(testBody(20)), for: .test("20"), usedAt: 2)
        }
        #expect(fixture.packs == [pack])
        let (again, _) = fixture.store()
        for number in (0..<19) { #expect(body(again, .test("\(number)")) == testBody(number)) }
        #expect(body(again, .test("20")) == testBody(20))
    }

    /// A kill between writing a record and marking the one that it replaces leaves both; in which order they lie does not matter.
    @Test(arguments: [[1, 2], [2, 1]]) func ofTwoLivingRecordsTheLargerSequenceCounts(order: [Int]) throws {
        let fixture = try Fixture()
        do {
            let (store, _) = fixture.store()
            for number in order {
                store.write(.test(testBody(number), sequence: UInt64(number)), for: .test("a"), usedAt: 1)
            }
        }
        let pack = try #require(fixture.packs.first)
        var bytes = try Data(contentsOf: pack)
        withUnsafeBytes(of: PackRecord.living.littleEndian) {
            bytes.replaceSubrange(PackHead.length..<PackHead.length + 8, with: $0)
        }
        try bytes.write(to: pack)
        do {
            let (after, _) = fixture.store()
            #expect(body(after, .test("a")) == testBody(2))
            after.remove(.test("a"))
        }
        let (again, _) = fixture.store()
        #expect(body(again, .test("a")) == nil)
    }

    /// Every byte of a pack, one bit each: an answer is what was stored, or none.
    @Test func aFlippedBitIsAMiss() throws {
        let fixture = try Fixture()
        let (store, _) = fixture.store()
        for number in 0..<3 { store.write(.test(testBody(number, length: 40)), for: .test("\(number)"), usedAt: 1) }
        let pack = try #require(fixture.packs.first)
        let whole = try Data(contentsOf: pack)
        for offset in whole.indices {
            var damaged = whole
            damaged[offset] ^= UInt8(1 << (offset % 8))
            try damaged.write(to: pack)
            let (after, _) = fixture.store()
            var found = 0
            for number in 0..<3 {
                guard let body = body(after, .test("\(number)")) else { continue }
                #expect(body == testBody(number, length: 40))
                found += 1
            }
            // One record is lost at the most, or all with the pack's own head.
            #expect(found >= 2 || offset < PackHead.length)
        }
    }

    /// A body that holds a record is not taken for one, even where the record around it is damaged.
    @Test(arguments: 0..<8) func aRecordInABodyIsNotFound(padding: Int) throws {
        let fixture = try Fixture()
        let (store, _) = fixture.store()
        store.write(.test(testBody(1)), for: .test("victim"), usedAt: 1)
        let pack = try #require(fixture.packs.first)
        let bytes = try Data(contentsOf: pack)
        let record = Data(bytes[PackHead.length...])
        let forged = Data(count: padding) + record
        store.remove(.test("victim"))
        store.write(.test(forged, sequence: 9), for: .test("carrier"), usedAt: 2)
        var damaged = try Data(contentsOf: pack)
        // The carrier's head.
        damaged[PackHead.length + record.count + 20] ^= 1
        try damaged.write(to: pack)
        let (after, _) = fixture.store()
        #expect(body(after, .test("carrier")) == nil)
        #expect(body(after, .test("victim")) == nil)
    }

    @Test func theDirectoryKeepsToItsCapacityAndPacksToAQuarterOfDeadBytes() throws {
        let fixture = try Fixture()
        let capacity = 4 << 20
        let (store, queue) = fixture.store(capacity)
        var generator = SystemRandomNumberGenerator()
        for round in 0..<40 {
            queue.perform {
                #expect(store.beginPass(isFlush: true, mayMake: true))
                for _ in 0..<100 {
                    let number = Int.random(in: 0..<2_000, using: &generator)
                    store.write(
                        .test(testBody(number, length: 500 + number), sequence: UInt64(round + 1)),
                        for: .test("\(number)"), usedAt: MonotonicTime.nanoseconds)
                    _ = store.variants(of: .test("\(Int.random(in: 0..<200, using: &generator))"))
                }
                store.endPass(isFlush: true)
            }
            var taken = 0
            for path in fixture.scratch.files() {
                var status = stat()
                if stat(fixture.scratch.appending(path).path, &status) == 0 { taken += Int(status.st_blocks) * 512 }
            }
            #expect(taken <= capacity)
            store.table.withLock { table in
                for (place, pack) in table.packs.enumerated() where place != table.current {
                    if let pack { #expect(pack.dead <= pack.length / 4) }
                }
                #expect(table.packs.reduce(0) { $0 + ($1?.live ?? 0) } == table.index.bytes)
            }
        }
        for number in 0..<2_000 {
            if let body = body(store, .test("\(number)")) { #expect(body == testBody(number, length: 500 + number)) }
        }
    }

    /// Exact: what is left is what was used last.
    @Test func theLeastRecentlyUsedGo() throws {
        let fixture = try Fixture()
        let (store, queue) = fixture.store(2 << 20)
        func pass(_ body: () -> Void) {
            queue.perform {
                _ = store.beginPass(isFlush: true, mayMake: true)
                body()
                store.endPass(isFlush: true)
            }
        }
        pass {
            for number in 0..<300 {
                store.write(
                    .test(testBody(number, length: 4_000)), for: .test("\(number)"), usedAt: MonotonicTime.nanoseconds)
            }
        }
        for number in 0..<50 { #expect(body(store, .test("\(number)")) != nil) }
        pass {
            for number in 300..<500 {
                store.write(
                    .test(testBody(number, length: 4_000)), for: .test("\(number)"), usedAt: MonotonicTime.nanoseconds)
            }
        }
        let order = Array(50..<300) + Array(0..<50) + Array(300..<500)
        let isThere = order.map { store.mayContain(.test("\($0)")) }
        let first = try #require(isThere.firstIndex(of: true))
        #expect(first > 0)
        #expect(isThere[first...].allSatisfy { $0 })
    }

    @Test func aFullDiskLeavesTheOlderEntry() throws {
        let fixture = try Fixture()
        let (store, _) = fixture.store()
        store.write(.test(testBody(1)), for: .test("a"), usedAt: 1)
        fixture.files.rule = { $0.operation == .write ? .error(ENOSPC) : nil }
        let result = store.write(.test(testBody(2), sequence: 2), for: .test("a"), usedAt: 2)
        #expect(result == .dropped(.failed(errno: ENOSPC)))
        fixture.files.rule = { _ in nil }
        #expect(body(store, .test("a")) == testBody(1))
    }

    @Test func clearingHoldsWhenTheIndexComesBack() throws {
        let fixture = try Fixture()
        let cache = fixture.open()
        for number in 0..<50 {
            let request = Responses.request("/\(number)")
            cache.storeCachedResponse(Responses.cached(request.url!), for: request)
        }
        cache.flush()
        cache.removeAllCachedResponses()
        for number in 0..<50 { #expect(cache.cachedResponse(for: Responses.request("/\(number)")) == nil) }
        cache.flush()
        #expect(fixture.packs.isEmpty)
    }
}

import Foundation
import Testing

@testable import DiskURLCache

@Suite("Capacity and recency", .fewAtATime) struct CapacityTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    @Test("Capacity cut during stores, to 0, raised: at or below it after a flush") func capacityChanges()
        throws
    {
        let store = fixture.open(capacity: 4 << 20)
        let (count, unit) = TestLength.pick(plain: (100, 350 << 10), long: (300, 1 << 20))
        for (round, capacity) in [4 * unit, 2 * unit, 300 << 10, unit, 0, 2 * unit, Int.max, -5, unit / 2].enumerated()
        {
            for number in 0..<count {
                store.store(.test(testBody(number, length: 6000)), for: .test("\(round) \(number)"))
                if number == count / 2 { store.capacity = capacity }
            }
            store.flush()
            #expect(store.capacity == max(0, capacity))
            if capacity > 0 {
                #expect(fixture.allocated() <= capacity, "capacity \(capacity)")
                #expect(store.body(.test("\(round) \(count - 1)")) == testBody(count - 1, length: 6000))
            } else {
                #expect(fixture.recordNames().isEmpty)
                #expect(store.usage == 0)
            }
            #expect(store.usage == fixture.allocatedByRecords())
        }
    }

    /// A guest evicts nothing. The owner is not used.
    /// - Parameter wasFolderGone: one of its passes found no folder of records.
    @Test(arguments: [false, true])
    func whatGuestsStoreIsEvictedByAnOwnerThatIsIdle(wasFolderGone: Bool) async throws {
        let files = FaultyFileSystem()
        let owner = fixture.open(capacity: 1 << 20, files: files) { $0.savingInterval = 0.05 }
        owner.flush()
        if wasFolderGone {
            try FileManager.default.removeItem(atPath: fixture.records)
            _ = files.takeCalls()
            await eventually("a pass that finds no folder") {
                files.takeCalls().contains { $0.operation == .statusAt && $0.path.contains("/records") }
            }
        }
        let guest = fixture.open(capacity: 1 << 20)
        guest.flush()
        let written = (0..<100).count { number in
            guest.store(.test(testBody(number, length: 100 << 10)), for: .test("\(number)")) == .written
        }
        #expect(written > 50)
        await eventually("the eviction") { fixture.allocated() <= 1 << 20 }
        withExtendedLifetime((owner, guest)) {}
    }

    /// On ZFS a file takes hardly any blocks until some seconds after it was written.
    @Test func aFileWhoseBlocksAreAllocatedLaterCountsByItsLength() {
        let files = FaultyFileSystem()
        files.onStatus = { _, status in if status.kind == .regular { status.allocated = 512 } }
        let store = fixture.open(capacity: 1 << 20, files: files)
        for number in 0..<100 { store.store(.test(testBody(number, length: 100 << 10)), for: .test("\(number)")) }
        store.flush()
        #expect(store.usage <= 1 << 20 && store.usage >= store.entryCount * (100 << 10))
        // The rest of the last block of each is not known.
        #expect(fixture.allocatedByRecords() <= (1 << 20) + store.entryCount * 4_096)
    }

    @Test("A capacity of 0 stores nothing") func nothing() throws {
        let store = fixture.open(capacity: 0)
        for body in [Data(), testBody(1)] {
            #expect(store.store(.test(body), for: key) == .dropped(.tooLarge))
        }
        #expect(store.variants(of: key).isEmpty)
        store.flush()
        #expect(fixture.recordNames().isEmpty)
    }

    @Test("An entry larger than its share is refused before writing, and takes the older one along")
    func tooLarge() throws {
        let files = FaultyFileSystem()
        let store = fixture.open(capacity: 1 << 20, files: files) { $0.maximumEntryFraction = 0.25 }
        store.store(.test(testBody(1, length: 250 << 10)), for: key)
        store.store(.test(testBody(2), language: "de"), for: key)
        store.flush()
        #expect(store.variants(of: key).count == 2)
        _ = files.takeCalls()
        #expect(store.store(.test(Data(count: 260 << 10), sequence: 2), for: key) == .dropped(.tooLarge))
        store.flush()
        #expect(store.variants(of: key).map(\.bodyLength) == [1000])
        #expect(!files.takeCalls().contains { $0.isRecord && $0.operation == .write })
        // With its metadata it is too large by a little.
        let result = store.store(.test(Data(count: 256 << 10), sequence: 2, language: "de"), for: key)
        #expect(result == .dropped(.tooLarge))
        store.flush()
        #expect(store.variants(of: key).isEmpty)
    }

    @Test func pinnedEntriesGoLastWithinTheirShare() throws {
        let store = fixture.open(capacity: 400 << 10)
        for number in 0..<10 { store.store(.test(testBody(number), isPinned: true), for: .test("pinned \(number)")) }
        for number in 0..<300 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        for number in 0..<10 { #expect(store.contains(.test("pinned \(number)"))) }
        // More than the share: they take their turn like all others.
        for number in 10..<200 { store.store(.test(testBody(number), isPinned: true), for: .test("pinned \(number)")) }
        store.store(.test(testBody(1)), for: .test("last"))
        store.flush()
        #expect(!store.contains(.test("pinned 0")))
        #expect(store.contains(.test("last")))
        #expect(fixture.allocated() <= 400 << 10)
    }

    @Test("A clock set back ten years, or forward and back: recency stays right, ages are never negative")
    func clockChanges() throws {
        let clock = ManualClock()
        let store = fixture.open(capacity: 400 << 10, clock: clock.wallClock)
        let years: TimeInterval = 10 * 365 * 86400
        for number in 0..<300 {
            if number == 100 { clock.advance(by: -years) }
            if number == 200 { clock.advance(by: 2 * years) }
            if number == 250 { clock.advance(by: -years) }
            // Used all the time: never among the least recent.
            if number > 0 { _ = store.variants(of: .test("0")) }
            store.store(.test(testBody(number), storedAt: clock.now), for: .test("\(number)"))
            if number % 10 == 9 {
                store.flush()
                #expect(store.contains(.test("\(number)")))
                #expect(store.contains(.test("\(number - 9)")))
                #expect(store.contains(.test("0")), "\(number)")
            }
        }
        for date in [Date.distantPast, .distantFuture, Date(timeIntervalSinceReferenceDate: -1e300)] {
            clock.set(date)
            store.store(.test(testBody(1), storedAt: Date.distantPast), for: key)
            store.flush()
            #expect(store.body(key) == testBody(1))
        }
    }

    /// 30 small entries, then 2 large ones, then 25 small ones, which are too much: the first large one weighs more
    /// than the oldest small one.
    @Test(arguments: [false, true]) func aLargeEntryIsEvictedBeforeOlderSmallOnesIfSizeIsWeighed(weighs: Bool) throws {
        let store = fixture.open(capacity: 460 << 10) { $0.weighsSize = weighs }
        for number in 0..<30 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        for number in 0..<2 { store.store(.test(testBody(number, length: 120 << 10)), for: .test("large \(number)")) }
        for number in 30..<55 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        #expect(fixture.allocated() <= 460 << 10)
        #expect(store.contains(.test("0")) == weighs)
        #expect(store.contains(.test("large 0")) != weighs)
        #expect(store.contains(.test("large 1")) && store.contains(.test("54")))
    }

    @Test(arguments: [false, true]) func theSettingOfACacheDecidesWhetherSizeIsWeighed(weighs: Bool) throws {
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 0, diskCapacity: 460 << 10, directory: URL(fileURLWithPath: fixture.directory))
        #expect(!settings.evictionWeighsSize)
        settings.evictionWeighsSize = weighs
        let cache = DiskURLCache(configuration: settings)
        func store(_ path: String, length: Int) {
            let response = Responses.cached(Responses.url(path), String(repeating: "x", count: length))
            cache.storeCachedResponse(response, for: Responses.request(path))
        }
        for number in 0..<30 { store("/\(number)", length: 1_000) }
        for number in 0..<2 { store("/large/\(number)", length: 120 << 10) }
        for number in 30..<55 { store("/\(number)", length: 1_000) }
        cache.flush()
        #expect((cache.cachedResponse(for: Responses.request("/0")) != nil) == weighs)
        #expect((cache.cachedResponse(for: Responses.request("/large/0")) != nil) != weighs)
    }

    /// Another cache removes everything during an eviction: the rows that are left are not evicted again and again.
    @Test(arguments: [false, true]) func anEvictionEndsWhenAnotherCacheRemovesEverything(weighs: Bool) throws {
        let directory = try SharedDirectory()
        let files = FaultyFileSystem()
        let cache = directory.open(files) { $0.evictionWeighsSize = weighs }
        for number in 0..<50 { cache.put("x", "/\(number)") }
        cache.flush()
        let other = directory.open()
        let count = Mutex(0)
        files.rule = { call in
            guard call.operation == .unlink, call.isRecord else { return nil }
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 {
                other.removeAllCachedResponses()
                // As a lookup does on another thread.
                let hasLooked = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    cache.look()
                    hasLooked.signal()
                }
                hasLooked.isSignalled("a look for changes")
            }
            // Ends an eviction that would not end.
            return number > 1_000 ? .error(EIO) : nil
        }
        cache.diskCapacity = 50 << 10
        cache.flush()
        #expect(count.withLock { (1...50).contains($0) })
        #expect(SystemFiles().allocated(at: directory.url.path) <= 50 << 10)
    }

    @Test func whatIsTooOldIsAMissAndGoes() throws {
        let clock = ManualClock()
        let store = fixture.open(clock: clock.wallClock) {
            $0.maximumStorageAge = 1000
            $0.maximumAccessAge = 100
        }
        for name in ["used", "unused"] { store.store(.test(testBody(1), storedAt: clock.now), for: .test(name)) }
        store.flush()
        for _ in 0..<19 {
            clock.advance(by: 50)
            #expect(store.body(.test("used")) == testBody(1))
        }
        #expect(store.variants(of: .test("unused")).isEmpty)
        store.flush()
        #expect(fixture.recordNames().count == 1)
        clock.advance(by: 60)
        #expect(store.variants(of: .test("used")).isEmpty)
        store.flush()
        #expect(fixture.recordNames().isEmpty)
    }

    @Test func removingByCriteria() throws {
        let start = Date(timeIntervalSince1970: 1_790_000_000)
        func key(_ number: Int) -> RequestKey { .test("\(number)", host: number < 3 ? "three" : "other") }
        func fill(_ store: DiskStore) {
            store.removeAll()
            for number in 0..<20 {
                store.store(
                    .test(
                        testBody(number), sequence: UInt64(number), storedAt: start + Double(number) / 4,
                        tags: number < 5 ? ["five", "all"] : ["all"], url: "http://example.org/\(number % 2)/\(number)"),
                    for: key(number))
            }
        }
        let three = HostName("three")
        let rows: [(EntryCriteria, (Int) -> Bool)] = [
            (EntryCriteria(uri: key(7).uri), { $0 == 7 }),
            (EntryCriteria(host: three), { $0 < 3 }),
            (EntryCriteria(tags: ["five"]), { $0 < 5 }),
            (EntryCriteria(tags: ["none"]), { _ in false }),
            (EntryCriteria(storedAfter: start + 2.5), { $0 >= 10 }),
            (EntryCriteria(storedBefore: start + 2.5), { $0 < 10 }),
            (EntryCriteria(storedAfter: start + 1, storedBefore: start + 2), { (4..<8).contains($0) }),
            (EntryCriteria(urlPrefix: "http://example.org/1/"), { $0 % 2 == 1 }),
            (EntryCriteria(host: three, tags: ["five"], storedAfter: start + 0.25), { $0 == 1 || $0 == 2 }),
            (EntryCriteria(), { _ in true }),
        ]
        for (criteria, isRemoved) in rows {
            // Staged, written, and of a directory that was just opened.
            for state in 0..<3 {
                var store = fixture.open()
                fill(store)
                if state > 0 { store.flush() }
                if state == 2 {
                    store.close()
                    store = fixture.open()
                }
                store.remove(matching: criteria)
                for number in 0..<20 {
                    let isThere = !store.variants(of: key(number)).isEmpty
                    #expect(isThere == !isRemoved(number), "\(criteria) \(number) \(state)")
                }
                store.flush()
                #expect(store.usage == fixture.allocatedByRecords())
                store.close()
            }
        }
    }

    /// The index knows how the path of each record begins: with rows of this process, and with those that were saved.
    @Test(arguments: [true, false]) func aRemovalByPrefixReadsNoRecordOfAnotherFolder(isSaved: Bool) throws {
        let files = FaultyFileSystem()
        var store = fixture.open(files: files)
        store.flush()
        for number in 0..<40 {
            let folder = number % 2 == 0 ? "users" : "items"
            store.store(
                .test(testBody(number), url: "https://example.org/api/v1/\(folder)/\(number)"), for: .test("\(number)"))
        }
        store.flush()
        if isSaved {
            store.close()
            store = fixture.open(files: files)
            store.flush()
        }
        _ = files.takeCalls()
        store.remove(matching: EntryCriteria(urlPrefix: "https://example.org/api/v1/users/"))
        let opened = Set(files.takeCalls().filter { $0.operation == .open && $0.isRecord }.map(\.name))
        #expect(opened.count == 20)
        #expect(fixture.recordNames().count == 20)
    }

    @Test func removingOneVariant() throws {
        let store = fixture.open()
        for (number, language) in ["a", "b", "c"].enumerated() {
            store.store(.test(testBody(number), sequence: UInt64(number), language: language), for: key)
        }
        func variant(_ language: String) -> VaryKey { StoredEntry.test(Data(), language: language).metadata.varyKey }
        store.remove(key, variant: variant("b"))
        #expect(store.variants(of: key).map(\.metadata.sequence) == [2, 0])
        store.flush()
        store.remove(key, variant: variant("c"))
        #expect(store.variants(of: key).map(\.metadata.sequence) == [0])
        #expect(fixture.recordNames().count == 1)
    }

    @Test func theNinthVariantReplacesTheLeastRecent() throws {
        let clock = ManualClock()
        let store = fixture.open(clock: clock.wallClock)
        for number in 0..<12 {
            clock.advance(by: 1)
            store.store(.test(testBody(number), sequence: UInt64(number), language: "\(number)"), for: key)
            store.flush()
        }
        #expect(Set(store.variants(of: key).map(\.metadata.sequence)).count == 8)
        #expect(store.variants(of: key).first?.metadata.sequence == 11)
        // Replacing one of eight variants works, too.
        store.store(.test(testBody(50), sequence: 50, language: "9"), for: key)
        store.flush()
        #expect(store.body(key) == testBody(50))
        #expect(store.usage == fixture.allocatedByRecords())
    }

    @Test func aReadOnlyDirectoryIsOnlyRead() throws {
        let writing = fixture.open()
        for number in 0..<5 { writing.store(.test(testBody(number)), for: .test("\(number)")) }
        writing.close()
        let before = fixture.scratch.files()
        let files = FaultyFileSystem()
        _ = files.takeCalls()
        let store = fixture.open(files: files) { $0.isReadOnly = true }
        #expect(store.body(.test("1")) == testBody(1))
        #expect(store.entryCount == 5)
        #expect(store.usage == fixture.allocatedByRecords())
        store.store(.test(testBody(1)), for: key)
        store.remove(.test("1"))
        store.remove(matching: EntryCriteria())
        store.removeAll()
        store.flush()
        store.close()
        #expect(store.body(.test("1")) == testBody(1))
        #expect(store.variants(of: key).isEmpty)
        #expect(fixture.scratch.files() == before)
        let reading: Set<FaultyFileSystem.Operation> = [.open, .close, .status, .statusAt, .read, .list]
        #expect(files.takeCalls().allSatisfy { reading.contains($0.operation) })
    }

    @Test func whatIsNotTooOldStays() {
        let clock = ManualClock()
        let store = fixture.open(clock: clock.wallClock) { $0.maximumStorageAge = 1000 }
        store.store(.test(testBody(1), storedAt: clock.now), for: key)
        clock.advance(by: 900)
        store.flush()
        #expect(store.body(key) == testBody(1))
    }

    /// Room is made for a large body before it is written, piece by piece: for small pieces, and for one that takes
    /// more than the eighth by which stores may run ahead.
    @Test(arguments: [256 << 10, 2 << 20]) func anArrivingBodyKeepsToTheCapacity(length: Int) {
        let maintenance = MaintenanceQueue()
        let disk = DiskStore(
            configuration: .init(directory: fixture.directory, capacity: 8 << 20), maintenance: maintenance)
        let store = TieredStore.over(disk, maintenance)
        store.flush()
        for number in 0..<28 { disk.store(.test(testBody(number, length: 256 << 10)), for: .test("\(number)")) }
        // No pass makes the room by chance.
        maintenance.pause()
        let piece = testBody(0, length: length)
        var body: IncomingBody?
        for _ in 0..<(3 << 20) / length {
            #expect(store.append(piece, to: &body) == nil)
            #expect(disk.excess <= disk.capacity / 8)
        }
        body?.discard()
        maintenance.resume()
    }

    /// It is written before the removals of its key have to wait for it, and is counted before it is written.
    @Test func aLargeBodyInMemoryKeepsToTheCapacity() {
        let files = FaultyFileSystem()
        let maintenance = MaintenanceQueue()
        let disk = DiskStore(
            configuration: .init(directory: fixture.directory, capacity: 8 << 20), fileSystem: files,
            maintenance: maintenance)
        let store = TieredStore.over(disk, maintenance)
        store.flush()
        for number in 0..<28 { disk.store(.test(testBody(number, length: 256 << 10)), for: .test("\(number)")) }
        maintenance.pause()
        let (records, largest) = (fixture.records, Mutex(0))
        files.rule = { call in
            guard call.operation == .write, call.name.hasPrefix("incoming") else { return nil }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: records)) ?? []
            largest.withLock { $0 = max($0, names.count) }
            return nil
        }
        let metadata = StoredEntry.test(Data()).metadata
        _ = store.store(metadata, .memory(testBody(0, length: 3 << 20)), for: .test("large"))
        // The file of three megabytes, and no more than six of records.
        #expect(largest.withLock { $0 } > 0 && largest.withLock { $0 } <= 24)
        maintenance.resume()
    }

    /// In steps of a megabyte; whoever takes a further step makes room for it.
    @Test func spaceForAnArrivingBodyIsReservedBeforeItIsWritten() throws {
        let store = fixture.open()
        store.flush()
        let body = try store.beginIncoming()
        #expect(body.reserve(1) && store.incoming.bytes == 1 << 20)
        try body.append(Data([1]))
        #expect(!body.reserve((1 << 20) - 1) && store.incoming.bytes == 1 << 20)
        #expect(body.reserve(1 << 20) && store.incoming.bytes == 2 << 20)
        body.discard()
        #expect(store.incoming.bytes == 0)
    }
}

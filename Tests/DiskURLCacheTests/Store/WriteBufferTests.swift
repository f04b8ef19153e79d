import Dispatch
import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What is stored and not on disk yet: nobody sees the difference.
@Suite struct WriteBufferTests {
    /// A cache whose maintenance rests, so that what is buffered stays so.
    private struct Fixture {
        let scratch: ScratchDirectory
        let cache: DiskURLCache
        var store: TieredStore { cache.store }

        init(
            memory: Int = 1 << 20, disk: Int = 64 << 20,
            configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
        ) throws {
            scratch = try ScratchDirectory()
            var configuration = DiskURLCache.Configuration(
                memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("c"))
            configure(&configuration)
            cache = DiskURLCache(configuration: configuration)
            pause()
        }

        func pause() { store.maintenance.pause() }

        func store(
            _ path: String, _ body: String, _ fields: [String: String] = ["Cache-Control": "max-age=3600"],
            request: [String: String] = [:], policy: URLCache.StoragePolicy = .allowed
        ) {
            cache.storeCachedResponse(
                Responses.cached(Responses.url(path), body, fields: fields, policy: policy),
                for: Responses.request(path, fields: request))
        }

        func body(_ path: String, _ fields: [String: String] = [:]) -> String? {
            cache.cachedResponse(for: Responses.request(path, fields: fields)).map {
                String(decoding: $0.data, as: UTF8.self)
            }
        }

        func key(_ path: String) throws -> RequestKey { try #require(cache.key(for: Responses.request(path))) }

        func isBuffered(_ path: String) throws -> Bool { try store.buffer.contains(key(path)) }
    }

    private static let german = ["Accept-Language": "de"]
    private static let french = ["Accept-Language": "fr"]
    private static let byLanguage = ["Cache-Control": "max-age=3600", "Vary": "Accept-Language"]

    @Test(arguments: [0, 1 << 20]) func theNextLookupSeesIt(memory: Int) throws {
        let fixture = try Fixture(memory: memory)
        fixture.store("/b", "other")
        for number in 1...4 {
            fixture.store("/a", "\(number)")
            fixture.store("/a", "\(number) again")
            #expect(try fixture.isBuffered("/a"))
            #expect(fixture.body("/a") == "\(number) again")
        }
        #expect(fixture.cache.contains(Responses.request("/b")))
        #expect(fixture.cache.statistics.stores == 9)
        fixture.cache.flush()
        #expect(try !fixture.isBuffered("/a"))
        #expect(fixture.body("/a") == "4 again")
    }

    @Test(.loadsOnLinux) func tasksSeeIt() async throws {
        let fixture = try Fixture(memory: 0)
        let session = LoadingHarness.session(of: fixture.cache)
        defer { session.invalidateAndCancel() }
        fixture.store("/a", "1")
        let answer = try await LoadingHarness.load(Responses.request("/a"), in: session)
        #expect(answer.text == "1")
        fixture.store("/a", "2")
        let task = session.dataTask(with: Responses.request("/a"))
        let body = await withCheckedContinuation { continuation in
            fixture.cache.getCachedResponse(for: task) { continuation.resume(returning: $0?.data) }
        }
        #expect(body == Data("2".utf8))
        task.cancel()
    }

    @Test func removalsComeAfterIt() throws {
        let fixture = try Fixture()
        let removals: [(DiskURLCache) -> Void] = [
            { $0.removeCachedResponse(for: Responses.request("/a")) },
            { $0.removeAllCachedResponses() },
            { $0.removeCachedResponses(since: .distantPast) },
            { $0.removeCachedResponses(olderThan: .distantFuture) },
            { $0.removeCachedResponses(host: "example.com") },
            { $0.removeCachedResponses(urlPrefix: "https://example.com/a") },
        ]
        for remove in removals {
            fixture.store("/a", "1")
            fixture.cache.flush()
            fixture.store("/a", "2")
            #expect(try fixture.isBuffered("/a"))
            remove(fixture.cache)
            #expect(fixture.body("/a") == nil)
            fixture.cache.flush()
            #expect(fixture.body("/a") == nil)
        }
    }

    @Test func layersAreEmptiedOneByOne() throws {
        let fixture = try Fixture()
        fixture.store("/a", "1")
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.cache.currentMemoryUsage == 0)
        #expect(fixture.body("/a") == "1", "the disk will have it")
        fixture.store("/a", "2")
        fixture.cache.removeAllCachedResponses(from: .disk)
        #expect(fixture.body("/a") == "2", "from memory")
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.body("/a") == nil)
    }

    /// The maintenance queue writes by itself soon after a store.
    @Test func itLandsByItself() throws {
        let storage = SignallingStorage()
        let fixture = try Fixture(memory: 0) { $0.diskStorage = storage }
        fixture.store.maintenance.resume()
        fixture.store("/a", "1")
        #expect(storage.isStored.isSignalled())
    }

    @Test func whatIsStoredDuringAPauseLandsAfterIt() throws {
        let storage = SignallingStorage()
        let fixture = try Fixture(memory: 0) { $0.diskStorage = storage }
        fixture.store("/a", "1")
        fixture.store.maintenance.resume()
        #expect(storage.isStored.isSignalled())
    }

    @Test func itLandsWhenTheCacheGoes() async throws {
        let scratch = try ScratchDirectory()
        for number in 0..<20 {
            weak var store: TieredStore?
            do {
                let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 20, directory: scratch.appending("c"))
                store = cache.store
                // Else its first pass, which opens the directory, would write the entry.
                cache.flush()
                cache.storeCachedResponse(
                    Responses.cached(Responses.url("/\(number)"), "x"), for: Responses.request("/\(number)"))
            }
            // Its own maintenance queue may hold it for the rest of a pass.
            await eventually { store == nil }
            let next = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 20, directory: scratch.appending("c"))
            #expect(next.contains(Responses.request("/\(number)")))
        }
    }

    @Test func whatIsRefusedTakesTheOlderOneAlong() throws {
        let fixture = try Fixture()
        fixture.store("/a", "1")
        #expect(fixture.body("/a") == "1")
        fixture.store("/a", "2", ["Cache-Control": "no-store"])
        #expect(fixture.body("/a") == nil)
        fixture.cache.flush()
        #expect(fixture.body("/a") == nil)
    }

    // MARK: Variants

    @Test func variantsStayApart() throws {
        let fixture = try Fixture()
        for language in ["de", "fr", "it"] {
            fixture.store("/a", language, Self.byLanguage, request: ["Accept-Language": language])
        }
        for _ in 1...2 {
            for language in ["de", "fr", "it"] {
                #expect(fixture.body("/a", ["Accept-Language": language]) == language)
            }
            fixture.cache.flush()
            fixture.cache.removeAllCachedResponses(from: .memory)
        }
    }

    /// A variant that stays in memory takes its own older version off the disk, and no other variant.
    @Test func aVariantInMemoryOnlyLeavesTheOthersOnDisk() throws {
        let fixture = try Fixture()
        fixture.store("/a", "old", Self.byLanguage, request: Self.german)
        fixture.store("/a", "fr", Self.byLanguage, request: Self.french)
        fixture.cache.flush()
        fixture.store("/a", "de", Self.byLanguage, request: Self.german, policy: .allowedInMemoryOnly)
        #expect(fixture.body("/a", Self.german) == "de")
        #expect(fixture.body("/a", Self.french) == "fr")
        fixture.cache.flush()
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.body("/a", Self.german) == nil, "an older version of what was replaced does not come back")
        #expect(fixture.body("/a", Self.french) == "fr")
    }

    /// Memory knows when it has all variants of a key: then nobody asks the disk, whatever `Vary` says.
    @Test func memoryAnswersForVariantsToo() throws {
        let fixture = try Fixture()
        let key = try fixture.key("/a")
        // The index is read then.
        fixture.cache.flush()
        fixture.store("/a", "de", Self.byLanguage, request: Self.german)
        #expect(fixture.store.lookup(key).known?.count == 1, "nothing else can be stored of a new key")
        fixture.store("/a", "fr", Self.byLanguage, request: Self.french)
        #expect(fixture.store.lookup(key).known?.count == 2)
        fixture.cache.flush()
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.store.lookup(key).known == nil)
        #expect(fixture.body("/a", Self.german) == "de")
        let known = try #require(fixture.store.lookup(key).known, "the lookup found out what there is")
        #expect(Set(known.map(\.bodyLength)) == [2] && known.count == 2)
        #expect(fixture.body("/a", Self.french) == "fr")
        #expect(fixture.store.lookup(key).known?.allSatisfy { $0.entry != nil } == true)
        // A new variant beside those that memory knows, and one that it does not know.
        fixture.store("/a", "it", Self.byLanguage, request: ["Accept-Language": "it"])
        #expect(fixture.store.lookup(key).known?.count == 3)
        fixture.cache.flush()
        fixture.cache.removeAllCachedResponses(from: .memory)
        fixture.store("/a", "en", Self.byLanguage, request: ["Accept-Language": "en"])
        #expect(fixture.store.lookup(key).variants().count == 4)
        #expect(fixture.body("/a", Self.german) == "de")
    }

    // MARK: Bounds

    @Test func memoryAndBufferKeepToOneLimit() throws {
        let fixture = try Fixture(memory: 2 << 20)
        fixture.store.maintenance.resume()
        for number in 0..<150 {
            fixture.store("/\(number)", String(repeating: "x", count: 30_000))
            #expect(fixture.store.memory.totalCost + fixture.store.buffer.aloneBytes <= 2 << 20)
        }
        fixture.cache.flush()
        for number in 0..<150 { #expect(fixture.body("/\(number)")?.utf8.count == 30_000) }
    }

    /// Fills the buffer, and gives the number of what is in it.
    private func fill(_ fixture: Fixture) -> Int {
        var number = 0
        while fixture.store.buffer.bytes + 1_025 <= 64 << 10 {
            fixture.store("/\(number)", "x")
            number += 1
        }
        return number
    }

    @Test("Fault 64: who stores faster than the disk writes waits for room") func aFullBuffer() throws {
        let fixture = try Fixture(memory: 0) { $0.pendingWriteLimit = 64 << 10 }
        let count = fill(fixture)
        let isStored = Mutex(false)
        let hasEnded = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            fixture.store("/last", "x")
            isStored.withLock { $0 = true }
            hasEnded.signal()
        }
        while fixture.store.buffer.waiterCount == 0, !isStored.withLock({ $0 }) { usleep(100) }
        #expect(fixture.store.buffer.bytes <= 64 << 10)
        fixture.store.maintenance.resume()
        #expect(hasEnded.isSignalled())
        fixture.cache.flush()
        #expect(fixture.store.buffer.isEmpty && fixture.store.buffer.bytes == 0)
        for number in 0..<count { #expect(fixture.body("/\(number)") == "x") }
        #expect(fixture.body("/last") == "x")
    }

    /// The maintenance queue cannot wait for itself.
    @Test("Fault 64: what there is no room for takes the older one along") func whatIsGivenUp() throws {
        let fixture = try Fixture(memory: 0) { $0.pendingWriteLimit = 64 << 10 }
        fixture.store("/a", "old")
        fixture.cache.flush()
        #expect(fixture.body("/a") == "old")
        _ = fill(fixture)
        fixture.store.maintenance.perform { fixture.store("/a", "new") }
        #expect(fixture.body("/a") == nil)
        fixture.cache.flush()
        #expect(fixture.body("/a") == nil)
    }

    /// A pass that comes while a removal runs does not write what the removal has cancelled.
    @Test(arguments: [false, true]) func aPassDuringARemovalWritesNothingOfIt(isOfAll: Bool) throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        let fixture = try Fixture { $0.diskStorage = disk }
        fixture.store("/a", "1")
        #expect(fixture.store.buffer.count == 1)
        // The disk is erased first, and what was cancelled is dropped last.
        disk.afterNextChange.withLock { $0 = { [cache = fixture.cache] in cache.flush() } }
        if isOfAll {
            fixture.cache.removeAllCachedResponses()
        } else {
            fixture.cache.removeCachedResponse(for: Responses.request("/a"))
        }
        #expect(disk.count == 0)
        #expect(fixture.body("/a") == nil)
    }

    /// A lookup that comes while a removal erases the disk does not find there what the buffer had a newer one of.
    @Test(arguments: [false, true]) func aLookupDuringARemovalFindsNothingOlder(isOfAll: Bool) throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        let fixture = try Fixture(memory: 0) { $0.diskStorage = disk }
        fixture.store("/a", "old")
        fixture.cache.flush()
        fixture.store("/a", "new")
        let found = Mutex<String?>("nothing yet")
        disk.beforeNextChange.withLock { $0 = { found.withLock { $0 = fixture.body("/a") } } }
        if isOfAll {
            fixture.cache.removeAllCachedResponses()
        } else {
            fixture.cache.removeCachedResponse(for: Responses.request("/a"))
        }
        #expect(found.withLock { $0 } == "new")
        #expect(fixture.body("/a") == nil)
    }

    /// With a full buffer the order of use still is that of the calls: the newest entries stay.
    @Test func theNewestStay() throws {
        let fixture = try Fixture(memory: 0, disk: 1 << 20) { $0.pendingWriteLimit = 64 << 10 }
        fixture.store.maintenance.resume()
        for number in 0..<500 { fixture.store("/\(number)", "\(number)") }
        fixture.cache.flush()
        let stored = (0..<500).map { fixture.cache.contains(Responses.request("/\($0)")) }
        let first = try #require(stored.firstIndex(of: true))
        #expect(first > 0, "some were evicted")
        #expect(stored[first...].allSatisfy { $0 }, "and those were the oldest")
    }

    /// An entry in the buffer that is looked up counts as used.
    @Test func aLookupOfABufferedEntryCountsAsItsUse() throws {
        let fixture = try Fixture(memory: 0, disk: 140_000) { $0.lowWaterFraction = 0.8 }
        for number in 0..<40 { fixture.store("/\(number)", "x") }
        #expect(fixture.body("/0") == "x")
        fixture.cache.flush()
        #expect(fixture.body("/0") == "x")
        #expect(fixture.body("/1") == nil)
    }

    /// What memory answers counts as use on disk, without being told at each hit.
    @Test func hitsInMemoryKeepAnEntryOnDisk() throws {
        let fixture = try Fixture(memory: 1 << 20, disk: 400_000)
        fixture.store("/kept", "x")
        for number in 0..<300 {
            #expect(fixture.body("/kept") == "x")
            fixture.store("/\(number)", "y")
            if number % 50 == 0 { fixture.cache.flush() }
        }
        fixture.cache.flush()
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.body("/kept") == "x")
        #expect(fixture.body("/0") == nil)
    }

    // MARK: Others

    /// Another process clears the directory: what was stored before goes, what was stored after stays.
    @Test func storesAfterAnotherProcesssClearStay() throws {
        let fixture = try Fixture(memory: 0)
        fixture.store("/first", "1")
        fixture.cache.flush()
        fixture.pause()
        fixture.store("/before", "1")
        let other = DiskStore(
            configuration: DiskStore.Configuration(
                directory: fixture.scratch.appending("c").path, capacity: 64 << 20))
        other.removeAll()
        fixture.store("/after", "1")
        fixture.cache.flush()
        #expect(fixture.body("/first") == nil)
        #expect(fixture.body("/before") == nil)
        #expect(fixture.body("/after") == "1")
        other.close()
    }

    @Test func twoCachesOnOneDirectoryAreOneStore() throws {
        let fixture = try Fixture()
        let directory = fixture.scratch.appending("c")
        let second = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 64 << 20, directory: directory)
        fixture.store("/a", "1")
        #expect(second.cachedResponse(for: Responses.request("/a"))?.data == Data("1".utf8))
        second.removeCachedResponse(for: Responses.request("/a"))
        #expect(fixture.body("/a") == nil)
        #expect(second.memoryCapacity == fixture.cache.memoryCapacity)
        second.memoryCapacity = 12_345
        #expect(fixture.cache.memoryCapacity == 12_345)
    }

    // MARK: Races

    /// A read of the disk that began before a store brings nothing old into memory afterwards.
    @Test func aReadUnderWayIsVoidedByAStore() throws {
        let fixture = try Fixture()
        fixture.store("/a", "old")
        fixture.cache.flush()
        fixture.cache.removeAllCachedResponses(from: .memory)
        let key = try fixture.key("/a")
        let ticket = fixture.store.memory.beginRead(key)
        let old = try #require(fixture.store.disk?.variants(of: key))
        fixture.store("/a", "new")
        fixture.store.memory.endRead(key, ticket: ticket, promoting: (MemoryRecord(old, isComplete: true), 1))
        #expect(fixture.body("/a") == "new")
        // One whose body is read after the removal.
        fixture.cache.flush()
        fixture.cache.removeAllCachedResponses(from: .memory)
        let variants = fixture.store.lookup(key).variants()
        fixture.cache.removeCachedResponse(for: Responses.request("/a"))
        _ = variants.first?.load()
        #expect(fixture.body("/a") == nil)
    }

    /// While a removal runs, a lookup finds the newest version or nothing: never the older one on disk.
    @Test("Concurrency: no older version under removal") func noOlderVersionUnderRemoval() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 20, directory: scratch.appending("c"))
        let request = Responses.request("/a")
        let rounds = TestLength.pick(plain: 40, long: 1_000)
        let old = Mutex(0)
        for round in 0..<rounds {
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "old"), for: request)
            cache.flush()
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "new"), for: request)
            DispatchQueue.concurrentPerform(iterations: 2) { thread in
                if thread == 0 {
                    if round % 2 == 0 {
                        cache.removeCachedResponse(for: request)
                    } else {
                        cache.removeAllCachedResponses()
                    }
                } else {
                    for _ in 0..<20 where cache.cachedResponse(for: request)?.data == Data("old".utf8) {
                        old.withLock { $0 += 1 }
                    }
                }
            }
            #expect(cache.cachedResponse(for: request) == nil)
        }
        #expect(old.withLock { $0 } == 0)
    }

    /// What a lookup reads from the buffer while a removal runs is not in memory afterwards.
    @Test("Concurrency: a lookup during a removal brings nothing back", arguments: [true, false])
    func nothingComesBack(isOfAll: Bool) throws {
        let fixture = try Fixture()
        let requests = (0..<64).map { Responses.request("/\($0)", fields: Self.german) }
        for _ in 0..<TestLength.pick(plain: 20, long: 1_000) {
            for number in 0..<64 { fixture.store("/\(number)", "old", Self.byLanguage, request: Self.german) }
            // Buffered only, so that lookups read the buffer and let memory know.
            fixture.cache.removeAllCachedResponses(from: .memory)
            let isRemoved = Mutex(false)
            DispatchQueue.concurrentPerform(iterations: 2) { thread in
                if thread == 0 {
                    if isOfAll {
                        fixture.cache.removeAllCachedResponses()
                    } else {
                        fixture.cache.removeCachedResponses(since: .distantPast)
                    }
                    isRemoved.withLock { $0 = true }
                } else {
                    while !isRemoved.withLock({ $0 }) {
                        for request in requests { _ = fixture.cache.cachedResponse(for: request) }
                    }
                }
            }
            #expect(requests.filter { fixture.cache.cachedResponse(for: $0) != nil } == [])
        }
    }

    /// One thread stores larger and larger numbers for a key, others look: nobody sees a number below one whose store had
    /// returned before the lookup began.
    @Test("Concurrency: a store that returned is seen", arguments: [0, 20_000, 1 << 20]) func monotonic(memory: Int)
        throws
    {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: memory, diskCapacity: 64 << 20, directory: scratch.appending("c"))
        let keys = 4
        let rounds = TestLength.operations(plain: 2_000, long: 16_000)
        let finished = (0..<keys).map { _ in Mutex(0) }
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 6) { thread in
            if thread < 2 {
                for number in 1...rounds / 8 {
                    for key in 0..<keys where key % 2 == thread {
                        let path = "/\(key)"
                        var fields = ["Cache-Control": "max-age=3600"]
                        // Some select by a field that no request has.
                        if number % 7 == 0 { fields["Vary"] = "X-Nothing" }
                        cache.storeCachedResponse(
                            Responses.cached(Responses.url(path), "\(number)", fields: fields),
                            for: Responses.request(path))
                        finished[key].withLock { $0 = number }
                    }
                }
            } else {
                for round in 0..<rounds / 8 {
                    let key = (round + thread) % keys
                    let least = finished[key].withLock { $0 }
                    let found = cache.cachedResponse(for: Responses.request("/\(key)")).flatMap {
                        Int(String(decoding: $0.data, as: UTF8.self))
                    }
                    if found ?? 0 < least {
                        failures.withLock { $0.append("\(key): \(found ?? -1) below \(least)") }
                    }
                    switch round % 64 {
                    case 0: cache.flush()
                    case 21: cache.removeAllCachedResponses(from: .memory)
                    case 42: cache.relieveMemoryPressure()
                    default: break
                    }
                }
            }
        }
        #expect(failures.withLock { $0 }.prefix(5) == [])
        for key in 0..<keys {
            let found = cache.cachedResponse(for: Responses.request("/\(key)")).map {
                String(decoding: $0.data, as: UTF8.self)
            }
            #expect(found == "\(rounds / 8)")
        }
    }
}

/// Tells when something was stored.
private final class SignallingStorage: DiskURLCache.EntryStorage {
    let isStored = DispatchSemaphore(value: 0)

    func entries(named name: String) -> [DiskURLCache.Entry] { [] }
    func store(_ entry: DiskURLCache.Entry, named name: String) { isStored.signal() }
    func removeEntries(matching criteria: DiskURLCache.Criteria) {}
    var capacity: Int {
        get { 1 << 20 }
        set {}
    }
    var usage: Int { 0 }
    func flush() {}
}

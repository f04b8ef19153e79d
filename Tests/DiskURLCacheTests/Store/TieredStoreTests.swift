import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Memory over the disk: what is stored is in both when the store returns, and what is removed is in neither.
@Suite(.fewAtATime) struct TieredStoreTests {
    /// A cache whose maintenance rests, so that all work is done on the test's thread.
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

        /// What is enqueued from now on is not done before the gate is open.
        func holdQueue() -> Gate {
            let gate = Gate()
            store.maintenance.enqueue { gate.wait() }
            return gate
        }

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

        /// What is on disk, for another process, say.
        func bodyOnDisk(_ path: String) throws -> String? {
            let other = DiskStore(
                configuration: DiskConfiguration(
                    directory: scratch.appending("c").path, capacity: store.disk?.capacity ?? 0))
            defer { other.close() }
            return try other.variants(of: key(path)).first?.load().map { String(decoding: $0.body, as: UTF8.self) }
        }
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
            #expect(try fixture.bodyOnDisk("/a") == "\(number) again")
            #expect(fixture.body("/a") == "\(number) again")
        }
        #expect(fixture.cache.contains(Responses.request("/b")))
        #expect(fixture.cache.statistics.stores == 9)
        fixture.cache.flush()
        #expect(fixture.body("/a") == "4 again")
    }

    @Test func layersAreEmptiedOneByOne() throws {
        let fixture = try Fixture()
        fixture.store("/a", "1")
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.cache.currentMemoryUsage == 0)
        #expect(fixture.body("/a") == "1", "the disk has it")
        fixture.store("/a", "2")
        fixture.cache.removeAllCachedResponses(from: .disk)
        #expect(fixture.body("/a") == "2", "from memory")
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.body("/a") == nil)
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

    /// A removal of another user's response concerns the whole resource, since it may be the same page (found by the
    /// model: the older response was served on).
    @Test(arguments: [0, 1 << 20]) func whatARemovalRefusesTakesTheOlderOneAlong(memory: Int) throws {
        let fixture = try Fixture(memory: memory)
        fixture.store("/a", "1")
        let (key, store) = (try fixture.key("/a"), fixture.store)
        var metadata = try #require(store.lookup(key).variants().first).metadata
        metadata.sequence = 0
        let ticket = store.ticket(at: Date())
        let others = Responses.request("/a", fields: ["Authorization": "u"])
        store.remove(try #require(fixture.cache.key(for: others)))
        #expect(fixture.body("/a") == "1")
        #expect(store.store(metadata, .memory(Data("2".utf8)), for: key, ticket: ticket) == .removedMeanwhile)
        #expect(fixture.body("/a") == nil)
        #expect(try fixture.bodyOnDisk("/a") == nil)
    }

    // MARK: Variants

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

    /// A server whose `Vary` names a field that no two requests share makes a variant for each request. Lookups and
    /// stores compare all of them.
    @Test(arguments: [0, 64 << 20], [URLCache.StoragePolicy.allowed, .allowedInMemoryOnly])
    func aKeyHasEightVariantsInMemory(disk: Int, policy: URLCache.StoragePolicy) throws {
        let fixture = try Fixture(memory: 4 << 20, disk: disk)
        let byName = ["Cache-Control": "max-age=3600", "Vary": "X-Name"]
        for number in 1...40 {
            fixture.store("/a", "\(number)", byName, request: ["X-Name": "\(number)"], policy: policy)
            #expect(fixture.body("/a", ["X-Name": "\(number)"]) == "\(number)")
        }
        let key = try fixture.key("/a")
        #expect(fixture.store.memory.value(for: key)?.variants.count == 8)
        for number in 33...40 { #expect(fixture.body("/a", ["X-Name": "\(number)"]) == "\(number)") }
        #expect(fixture.body("/a", ["X-Name": "1"]) == nil)
        #expect(fixture.store.memory.value(for: key)?.variants.count == 8, "also what a lookup brings from disk")
    }

    /// The disk drops another variant than memory does: what it still has is found.
    @Test func aVariantThatMemoryDroppedIsFoundOnDisk() throws {
        let fixture = try Fixture(memory: 4 << 20)
        let byName = ["Cache-Control": "max-age=3600", "Vary": "X-Name"]
        fixture.store("/a", "on disk", byName, request: ["X-Name": "disk"])
        for number in 1...8 {
            fixture.store(
                "/a", "\(number)", byName, request: ["X-Name": "\(number)"], policy: .allowedInMemoryOnly)
        }
        #expect(fixture.body("/a", ["X-Name": "disk"]) == "on disk")
        #expect(fixture.body("/a", ["X-Name": "8"]) == "8")
    }

    /// An app's storage may have any number of them.
    @Test func anAppsStorageHasEightVariantsToo() throws {
        let storage = DictionaryStorage(capacity: 1 << 20)
        let fixture = try Fixture(memory: 0) { $0.diskStorage = storage }
        let byName = ["Cache-Control": "max-age=3600", "Vary": "X-Name"]
        for number in 1...20 {
            fixture.store("/a", "\(number)", byName, request: ["X-Name": "\(number)"])
            #expect(fixture.body("/a", ["X-Name": "\(number)"]) == "\(number)")
        }
        #expect(try #require(storage.entries(named: fixture.key("/a").digest.hex)).count <= 9)
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

    @Test func whatMemoryEvictsIsOnDisk() throws {
        let fixture = try Fixture(memory: 2 << 20)
        for number in 0..<150 {
            fixture.store("/\(number)", String(repeating: "x", count: 30_000))
            #expect(fixture.cache.currentMemoryUsage <= 2 << 20)
        }
        for number in 0..<150 { #expect(fixture.body("/\(number)")?.utf8.count == 30_000) }
    }

    /// A burst of stores runs an eighth of the capacity ahead of eviction at most, and the newest entries stay.
    @Test("A burst of stores keeps to the capacity", arguments: [0, 1 << 20], [true, false])
    func aBurst(memory: Int, isMaintained: Bool) throws {
        let capacity = 1 << 20
        let fixture = try Fixture(memory: memory, disk: capacity)
        fixture.cache.flush()
        if isMaintained { fixture.store.maintenance.resume() }
        let disk = try #require(fixture.store.diskStore)
        let count = 350
        for number in 0..<count {
            fixture.store("/\(number)", "\(number)")
            // One record more, and the index file that a pass may be saving.
            #expect(disk.excess <= capacity / 8 + 64 << 10)
        }
        fixture.cache.flush()
        #expect(disk.excess <= 0)
        let stored = (0..<count).map { fixture.cache.contains(Responses.request("/\($0)")) }
        let first = try #require(stored.firstIndex(of: true))
        if memory == 0 { #expect(first > 0, "some were evicted") }
        #expect(stored[first...].allSatisfy { $0 }, "and those were the oldest")
    }

    /// A full disk: memory has the response, an event says so, and what was on disk before stays there.
    @Test(arguments: [0, 1 << 20]) func aFullDisk(memory: Int) async throws {
        let files = FaultyFileSystem()
        let fixture = try Fixture(memory: memory) { $0.fileSystem = files }
        fixture.store("/a", "old")
        let events = fixture.cache.events()
        files.rule = { $0.operation == .write && $0.isRecord ? .error(ENOSPC) : nil }
        fixture.store("/a", "new")
        let notStored = await events.notStored()
        #expect(notStored?.url == Responses.url("/a"))
        #expect(notStored?.reason.description == DiskURLCache.Reason.diskFailed(errno: ENOSPC).description)
        #expect(fixture.body("/a") == (memory > 0 ? "new" : "old"))
        #expect(fixture.cache.statistics.stores == (memory > 0 ? 2 : 1))
        files.rule = { _ in nil }
        // Nor does the older one come back after the newer one was removed by its number.
        let key = try fixture.key("/a")
        let stored = try #require(fixture.store.lookup(key).variants().first)
        fixture.store.remove(key, stored.metadata)
        #expect(fixture.body("/a") == nil)
    }

    /// A lookup that comes while a removal erases the disk does not find anything older there.
    @Test(arguments: [false, true]) func aLookupDuringARemovalFindsNothingOlder(isOfAll: Bool) throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        let fixture = try Fixture(memory: 0) { $0.diskStorage = disk }
        fixture.store("/a", "old")
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

    /// Memory ran short, and the app holds the response.
    @Test(arguments: ["variant", "key", "replaced"])
    func whatIsRemovedIsNotFoundWhereTheAppHoldsIt(how: String) throws {
        let fixture = try Fixture(memory: 64 << 10, disk: 0)
        fixture.store("/a", "1")
        let held = fixture.cache.cachedResponse(for: Responses.request("/a"))
        fixture.cache.relieveMemoryPressure()
        let key = try fixture.key("/a")
        let found = try #require(fixture.store.lookup(key).variants().first)
        switch how {
        case "variant": fixture.store.remove(key, found.metadata)
        case "key": fixture.store.remove(key)
        // By one that is too large to be stored.
        default: fixture.store("/a", String(repeating: "2", count: 64 << 10))
        }
        #expect(fixture.body("/a") == nil)
        withExtendedLifetime(held) {}
    }

    /// The system's loader stores in memory at once, and the file comes later: not after a newer response.
    @Test(arguments: ["too large", "in memory only", "variant removed", "removed", "disk emptied", "pinned", "none"])
    func aLateFileDoesNotUndoAReplacement(how: String) throws {
        let fixture = try Fixture(memory: 64 << 10, disk: 1 << 20)
        let gate = fixture.holdQueue()
        let request = Responses.request("/a")
        fixture.cache.core.store(Responses.cached(Responses.url("/a"), "old"), for: request, by: .systemLoader)
        switch how {
        case "too large":
            let largest = try #require(fixture.store.disk?.largestEntry)
            fixture.store("/a", String(repeating: "2", count: largest))
        case "in memory only": fixture.store("/a", "new", policy: .allowedInMemoryOnly)
        case "variant removed":
            let key = try fixture.key("/a")
            fixture.store.remove(key, try #require(fixture.store.lookup(key).variants().first).metadata)
        case "disk emptied": fixture.cache.removeAllCachedResponses(from: .disk)
        case "removed": fixture.cache.removeCachedResponse(for: request)
        case "pinned": #expect(fixture.cache.setPinned(true, for: request))
        default: break
        }
        fixture.cache.removeAllCachedResponses(from: .memory)
        fixture.store.maintenance.resume()
        gate.open()
        fixture.cache.flush()
        #expect(fixture.body("/a") == (["pinned", "none"].contains(how) ? "old" : nil))
        #expect(fixture.store.diskStore?.entryCount == (["pinned", "none"].contains(how) ? 1 : 0))
    }

    /// The queue has not written its file yet when the tag is removed.
    @Test(arguments: [true, false]) func whatTheSystemsLoaderReplacesLeavesItsTags(isInMemory: Bool) throws {
        let fixture = try Fixture()
        // A removal by tag waits for the first listing.
        fixture.store.maintenance.resume()
        fixture.cache.flush()
        fixture.pause()
        let gate = fixture.holdQueue()
        var tagged = Responses.request("/a")
        tagged.cacheOptions = .init(tags: ["account"])
        fixture.cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "old"), for: tagged)
        if !isInMemory { fixture.cache.removeAllCachedResponses(from: .memory) }
        let new = Responses.cached(Responses.url("/a"), "new")
        fixture.cache.core.store(new, for: Responses.request("/a"), by: .systemLoader)
        fixture.cache.removeCachedResponses(tag: "account")
        // What only the disk knows is found when the file is written.
        if isInMemory { #expect(fixture.body("/a") == nil) }
        fixture.store.maintenance.resume()
        gate.open()
        fixture.cache.flush()
        #expect(fixture.body("/a") == nil)
    }

    /// Its file is still to be written when it is marked: it is not removed, and its file gets the mark.
    @Test(arguments: ["before", "meanwhile"], [true, false])
    func aLateFileGetsTheMark(when: String, isHTTP: Bool) throws {
        let fixture = try Fixture()
        let gate = fixture.holdQueue()
        let request = Responses.request("/a")
        let other = URLResponse(
            url: Responses.url("/a"), mimeType: "text/plain", expectedContentLength: 3, textEncodingName: nil)
        let response =
            isHTTP
            ? Responses.cached(Responses.url("/a"), "old")
            : CachedURLResponse(response: other, data: Data("old".utf8))
        fixture.cache.core.store(response, for: request, by: .systemLoader)
        let key = try fixture.key("/a")
        func isStale() -> Bool? {
            fixture.store.lookup(key).variants().first?.metadata.http.map { $0.staleSince != nil }
        }
        if when == "before" {
            fixture.cache.markStale(for: request)
            #expect(isStale() == (isHTTP ? true : nil))
        }
        let number = when == "before" ? nil : fixture.store.removals.begin(markingStale: .everything, since: Date())
        fixture.store.maintenance.resume()
        gate.open()
        fixture.cache.flush()
        if let number { fixture.store.removals.end(number) }
        #expect(fixture.body("/a") == "old" && isStale() == (isHTTP ? true : nil))
        fixture.cache.removeAllCachedResponses(from: .memory)
        #expect(fixture.body("/a") == "old" && isStale() == (isHTTP ? true : nil))
    }

    /// Its head makes the record larger than the largest one.
    @Test func aResponseThatIsTooLargeOnDiskAloneTakesTheOlderOneAlong() throws {
        let fixture = try Fixture(memory: 64 << 10, disk: 1 << 20)
        fixture.store("/a", "older")
        let largest = try #require(fixture.store.disk?.largestEntry)
        fixture.store("/a", String(repeating: "x", count: largest))
        #expect(fixture.body("/a") == nil)
    }

    /// Removals by URL: an unsafe request costs what it removes.
    @Test func aRemovalByURLVisitsItsOwnResponsesOnly() throws {
        let fixture = try Fixture(memory: 64 << 20, disk: 0)
        let count = 2_000
        for number in 0..<count { fixture.store("/\(number)", "x") }
        fixture.store("/7", "of a variant", Self.byLanguage, request: Self.german)
        var held = fixture.cache.cachedResponse(for: Responses.request("/8"))
        fixture.cache.relieveMemoryPressure()
        #expect(fixture.cache.cachedResponse(for: Responses.request("/8")) === held)
        for number in 0..<count { fixture.store("/\(number + count)", "x") }
        let key = try fixture.key("/\(count)")
        var visited: [RequestKey] = []
        fixture.store.memory.update(resource: key.resource) { visitedKey, _ in visited.append(visitedKey) }
        #expect(visited == [key])
        fixture.cache.invalidate(Responses.url("/\(count)"))
        fixture.cache.invalidate(Responses.url("/7"))
        #expect(fixture.body("/\(count)") == nil && fixture.body("/7") == nil)
        #expect(fixture.store.memory.count == count - 1)
        #expect(fixture.cache.cachedResponse(for: Responses.request("/8")) === held, "a response of another URL")
        fixture.cache.invalidate(Responses.url("/8"))
        #expect(fixture.body("/8") == nil)
        held = nil
    }

    /// The hash that names a URL on disk is no secret: a server can choose a URL that shares it with a URL of another
    /// server.
    @Test func aURLWithTheSameHashStays() throws {
        let fixture = try Fixture()
        // Found by trying numbers: bytes 40 to 47 are the state of `TextHash` after the 32 bytes before, so that the
        // state behind them is 0 in both.
        let own = "https://one.example/ppppppp39824anythingHpB4IWV2one-tail-of-both"
        let other = "https://two.example/pppppp307995anythingm0V5fGElone-tail-of-both"
        #expect(own != other && KeyName.resource(of: own) == KeyName.resource(of: other))
        for uri in [own, other] {
            let url = try #require(URL(string: uri))
            fixture.cache.storeCachedResponse(Responses.cached(url, "x"), for: URLRequest(url: url))
            #expect(fixture.cache.key(for: URLRequest(url: url))?.uri == uri)
        }
        try fixture.cache.invalidate(#require(URL(string: own)))
        #expect(try !fixture.cache.contains(URLRequest(url: #require(URL(string: own)))))
        #expect(
            try fixture.cache.contains(URLRequest(url: #require(URL(string: other)))),
            "in memory; the disk knows the hash only")
    }

    /// A pass that is due during a pause comes after it.
    @Test func whatIsAskedForDuringAPauseComesAfterIt() async throws {
        let fixture = try Fixture(memory: 0)
        for number in 0..<100 { fixture.store("/\(number)", "x") }
        fixture.cache.flush()
        fixture.cache.diskCapacity = 200_000
        let disk = try #require(fixture.store.diskStore)
        #expect(disk.excess > 0)
        fixture.store.maintenance.resume()
        await eventually("the eviction") { disk.excess <= 0 }
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

    /// A large body is read after its metadata. Gone by then, replaced or damaged: the older variant beside it is no
    /// answer, until the next lookup.
    @Test(arguments: [true, false]) func anOlderVariantDoesNotAnswerForABodyThatIsGone(isReplaced: Bool) throws {
        let files = FaultyFileSystem()
        let fixture = try Fixture(memory: 100_000) { $0.fileSystem = files }
        fixture.cache.flush()
        fixture.store("/a", "old", ["Cache-Control": "max-age=3600", "Vary": "X-Nothing"])
        fixture.store("/a", String(repeating: "x", count: 300_000))
        let opened = Mutex(0)
        files.rule = { call in
            // The second record, and its second reading.
            guard call.name.hasSuffix("1"), call.operation == .open, opened.next() == 2 else { return nil }
            if isReplaced { fixture.store("/a", "new") } else { truncate(call.path, 100_000) }
            return nil
        }
        #expect(fixture.body("/a")?.prefix(3) == nil)
        #expect(fixture.body("/a")?.prefix(3) == (isReplaced ? "new" : "old"))
    }

    /// One thread stores larger and larger numbers for a key, others look: nobody sees a number below one whose store
    /// had returned before the lookup began.
    @Test("Concurrency: a store that returned is seen", arguments: [0, 20_000, 1 << 20]) func monotonic(memory: Int)
        throws
    {
        let scratch = try ScratchDirectory()
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: memory, diskCapacity: 64 << 20, directory: scratch.appending("c"))
        // Any file operation may take a while: then the threads meet in many more ways.
        configuration.fileSystem = FaultyFileSystem { _ in
            if Int.random(in: 0..<8) == 0 { usleep(.random(in: 0..<200)) }
            return nil
        }
        let cache = DiskURLCache(configuration: configuration)
        let (keys, rounds) = (4, TestLength.operations(plain: 1_000, long: 16_000))
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

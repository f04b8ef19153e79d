import Dispatch
import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Stores that are accepted and not yet in any layer: nobody sees the difference.
@Suite struct PendingStoresTests {
    /// A cache whose maintenance rests, so that what is pending stays so until somebody needs it.
    private struct Fixture {
        let scratch: ScratchDirectory
        let cache: DiskURLCache

        init(
            memory: Int = 1 << 20, disk: Int = 64 << 20,
            configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
        )
            throws
        {
            scratch = try ScratchDirectory()
            var configuration = DiskURLCache.Configuration(
                memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("c"))
            configure(&configuration)
            cache = DiskURLCache(configuration: configuration)
            pause()
        }

        func pause() { (cache.store.disk as? DiskStore)?.maintenance.pause() }

        func store(
            _ path: String, _ body: String, _ fields: [String: String] = ["Cache-Control": "max-age=3600"],
            request: [String: String] = [:], userInfo: [AnyHashable: Any]? = nil,
            policy: URLCache.StoragePolicy = .allowed
        ) {
            let request = Responses.request(path, fields: request)
            cache.storeCachedResponse(
                Responses.cached(Responses.url(path), body, fields: fields, userInfo: userInfo, policy: policy),
                for: request)
        }

        func body(_ path: String, _ fields: [String: String] = [:]) -> String? {
            cache.cachedResponse(for: Responses.request(path, fields: fields)).map {
                String(decoding: $0.data, as: UTF8.self)
            }
        }

        func isPending(_ path: String) throws -> Bool {
            cache.store.pending.contains(try #require(cache.key(for: Responses.request(path))))
        }
    }

    @Test(arguments: [0, 1 << 20]) func theNextLookupSeesIt(memory: Int) throws {
        let fixture = try Fixture(memory: memory)
        fixture.store("/a", "1")
        fixture.store("/b", "other")
        #expect(try fixture.isPending("/a"))
        #expect(fixture.body("/a") == "1")
        #expect(try !fixture.isPending("/a") && fixture.isPending("/b"), "a lookup settles its own key only")
        // Over what memory holds, what is staged, and what is pending.
        for number in 2...4 {
            fixture.store("/a", "\(number)")
            fixture.store("/a", "\(number) again")
            #expect(try fixture.isPending("/a"))
            #expect(fixture.body("/a") == "\(number) again")
        }
        #expect(fixture.cache.contains(Responses.request("/b")))
        #expect(fixture.cache.statistics.stores == 8)
    }

    @Test func tasksSeeIt() async throws {
        let fixture = try Fixture()
        let session = LoadingHarness.session(of: fixture.cache)
        defer { session.invalidateAndCancel() }
        fixture.store("/a", "1")
        #expect(try fixture.isPending("/a"))
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
            #expect(try fixture.isPending("/a"))
            remove(fixture.cache)
            #expect(fixture.body("/a") == nil)
            fixture.cache.flush()
            fixture.pause()
            #expect(fixture.body("/a") == nil)
        }
        fixture.store("/a", "1")
        fixture.cache.removeMemory()
        #expect(fixture.body("/a") == "1", "from disk")
        fixture.store("/a", "2")
        fixture.cache.removeDisk()
        #expect(fixture.body("/a") == "2", "from memory")
        fixture.cache.removeMemory()
        #expect(fixture.body("/a") == nil)
        fixture.store("/a", "3")
        fixture.cache.removeMemory()
        #expect(fixture.cache.currentMemoryUsage == 0)
        let count = fixture.cache.statistics.stores
        fixture.store("/b", "1")
        fixture.store("/c", "1")
        fixture.cache.removeCachedResponse(for: Responses.request("/b"))
        fixture.cache.removeAllCachedResponses()
        #expect(fixture.cache.statistics.stores == count + 2)
    }

    /// What a load stores, or removes by its number, comes after what was accepted before.
    @Test func changesComeAfterIt() throws {
        let fixture = try Fixture()
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        fixture.store("/a", "1")
        var metadata = StoredEntry.test(Data()).metadata
        metadata.sequence = fixture.cache.sequence.next(at: Date())
        fixture.cache.store.store(StoredEntry(metadata: metadata, body: Data("2".utf8)), for: key)
        #expect(try !fixture.isPending("/a"))
        #expect(fixture.body("/a") == "2")
        fixture.store("/a", "3")
        let number = try #require(fixture.cache.store.pending[key]).call.sequence
        fixture.cache.store.remove(key, sequence: number)
        #expect(fixture.body("/a") == nil)
        fixture.store("/a", "4")
        #expect(fixture.cache.setPinned(true, for: Responses.request("/a")))
        #expect(fixture.body("/a") == "4")
    }

    @Test func itLands() throws {
        let fixture = try Fixture()
        fixture.store("/a", "1")
        fixture.cache.flush()
        #expect(try !fixture.isPending("/a"))
        fixture.pause()
        fixture.store("/b", "2")
        fixture.cache.suspendMaintenance()
        #expect(try !fixture.isPending("/b"))
        let directory = fixture.scratch.appending("c")
        do {
            let second = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 20, directory: directory)
            #expect(second.contains(Responses.request("/a")) && second.contains(Responses.request("/b")))
            second.storeCachedResponse(Responses.cached(Responses.url("/c"), "3"), for: Responses.request("/c"))
            // Let go with a store that is pending.
        }
        #expect(fixture.body("/c") == "3")
    }

    /// The maintenance queue settles by itself, and what is settled is written in the same pass.
    @Test func itLandsByItself() throws {
        let fixture = try Fixture(memory: 0)
        fixture.store("/a", "1")
        (fixture.cache.store.disk as? DiskStore)?.maintenance.resume()
        let store = try #require(fixture.cache.store.disk as? DiskStore)
        for _ in 0..<3_000 where store.state.withLock({ $0.index.count }) == 0 { usleep(10_000) }
        #expect(store.state.withLock { $0.index.count } == 1)
        #expect(try !fixture.isPending("/a"))
    }

    @Test func itIsCounted() throws {
        let fixture = try Fixture()
        fixture.store("/a", String(repeating: "x", count: 10_000))
        #expect(fixture.cache.currentMemoryUsage > 10_000)
        fixture.store("/b", String(repeating: "x", count: 10_000))
        #expect(fixture.cache.currentDiskUsage > 20_000)
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

    @Test func variantsStayApart() throws {
        let fixture = try Fixture()
        let fields = ["Cache-Control": "max-age=3600", "Vary": "Accept-Language"]
        for language in ["de", "fr", "it"] {
            fixture.store("/a", language, fields, request: ["Accept-Language": language])
        }
        for _ in 1...2 {
            for language in ["de", "fr", "it"] {
                #expect(fixture.body("/a", ["Accept-Language": language]) == language)
            }
            fixture.cache.flush()
            fixture.cache.removeMemory()
        }
        // One that memory alone knows is not lost over another one.
        fixture.store("/b", "de", fields, request: ["Accept-Language": "de"], policy: .allowedInMemoryOnly)
        fixture.store("/b", "fr", fields, request: ["Accept-Language": "fr"])
        #expect(fixture.body("/b", ["Accept-Language": "de"]) == "de")
        #expect(fixture.body("/b", ["Accept-Language": "fr"]) == "fr")
    }

    /// What somebody could change later, or looks at, is stored at once.
    @Test func whatCannotWaitDoesNot() throws {
        let fixture = try Fixture()
        let value = NSMutableArray(object: "before")
        fixture.store("/info", "1", userInfo: ["a": value])
        value.add("after")
        #expect(try !fixture.isPending("/info"))
        fixture.cache.flush()
        fixture.cache.removeMemory()
        let found = fixture.cache.cachedResponse(for: Responses.request("/info"))
        #expect(found?.userInfo?["a"] as? [String] == ["before"])
        fixture.store("/memory", "1", policy: .allowedInMemoryOnly)
        #expect(try !fixture.isPending("/memory"))
        fixture.store("/user", "1", request: ["Authorization": "x"])
        #expect(try !fixture.isPending("/user"))
        #expect(fixture.body("/user", ["Authorization": "x"]) == "1" && fixture.body("/user") == nil)
    }

    @Test func eventsComeAtOnceAndInTheirOrder() async throws {
        let fixture = try Fixture()
        fixture.store("/early", "1")
        let events = fixture.cache.events()
        fixture.store("/a", "1")
        #expect(try !fixture.isPending("/a"))
        fixture.store("/b", "2", ["Cache-Control": "no-store"])
        var seen: [String] = []
        for await event in events {
            switch event {
            case .stored(let url, _, _): seen.append("stored \(url ?? "")")
            case .notStored(let url, _): seen.append("not stored \(url ?? "")")
            default: break
            }
            if seen.count == 2 { break }
        }
        #expect(seen == ["stored https://example.com/a", "not stored https://example.com/b"])
    }

    @Test func itIsBounded() throws {
        let fixture = try Fixture { $0.pendingWriteLimit = 1 << 20 }
        for number in 0..<600 { fixture.store("/\(number)", "\(number)") }
        #expect(fixture.cache.store.pending.keys.count <= 256, "a quarter of the limit, a kilobyte each")
        #expect(fixture.cache.statistics.stores == 600)
        for number in 0..<600 { #expect(fixture.body("/\(number)") == "\(number)") }
        let many = try Fixture()
        for number in 0..<PendingStores.countLimit + 100 { many.store("/\(number)", "\(number)") }
        #expect(many.cache.store.pending.keys.count == PendingStores.countLimit)
        let none = try Fixture { $0.pendingWriteLimit = 0 }
        none.store("/a", "1")
        #expect(try !none.isPending("/a"))
    }

    @Test func withoutADiskOfOursNothingIsPending() throws {
        let memory = DictionaryStorage(capacity: 1 << 20)
        let fixture = try Fixture { $0.memoryStorage = memory }
        fixture.store("/a", "1")
        #expect(try !fixture.isPending("/a"))
        let disk = try Fixture { $0.diskStorage = DictionaryStorage(capacity: 1 << 20) }
        disk.store("/a", "1")
        #expect(try !disk.isPending("/a"))
    }

    /// Whoever settles a store is not held up by a disk that is behind, and loses nothing.
    @Test func settlingDoesNotWaitForTheDisk() throws {
        let fixture = try Fixture(memory: 0) { $0.pendingWriteLimit = 64 << 10 }
        fixture.store("/a", "1")
        #expect(try fixture.isPending("/a"))
        let disk = try #require(fixture.cache.store.disk as? DiskStore)
        for number in 0..<3 {
            disk.store(.test(testBody(number, length: 60_000)), for: .test("\(number)"), isPatient: false)
        }
        #expect(fixture.body("/a") == "1")
        // From now on callers are held up again, so that what is staged stays bounded.
        fixture.store("/b", "1")
        #expect(try !fixture.isPending("/b"))
    }

    /// Stores that are looked up at once are staged at once: they too wait for a disk that is behind.
    @Test func lookupsDoNotLetStagedEntriesGrow() throws {
        let fixture = try Fixture(memory: 0) {
            $0.pendingWriteLimit = 1 << 20
        }
        let disk = try #require(fixture.cache.store.disk as? DiskStore)
        let body = String(repeating: "x", count: 100_000)
        for number in 0..<7 {
            fixture.store("/\(number)", body)
            #expect(fixture.body("/\(number)") == body)
        }
        #expect(disk.state.withLock { $0.staged.bytes } <= 800_000)
        #expect(disk.isBehind)
        fixture.store("/7", body)
        #expect(try !fixture.isPending("/7"))
    }

    // MARK: Races

    /// A read of the disk that began before a store was accepted brings nothing old into memory afterwards.
    @Test func aReadUnderWayIsVoidedByIt() throws {
        let fixture = try Fixture()
        fixture.store("/a", "old")
        fixture.cache.flush()
        fixture.cache.removeMemory()
        fixture.pause()
        let layers = fixture.cache.store
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        let before = layers.variants(for: key)
        let accepted = { fixture.store("/a", "new") }
        accepted()
        #expect(try fixture.isPending("/a"))
        // The read ends now.
        #expect(before.first?.load()?.body == Data("old".utf8))
        #expect(layers.memory.value(for: key) == nil)
        #expect(fixture.body("/a") == "new")
        // One that begins while the store is pending, without knowing of it.
        fixture.cache.removeMemory()
        accepted()
        let promotion = Promotion(of: key, into: layers.memory)
        promotion.keep(
            LayeredStore.MemoryRecord(
                entries: [.test(Data("old".utf8))], isComplete: true, uriHash: 0, hostHash: 0, diskKey: nil),
            unless: layers.pending)
        #expect(layers.memory.value(for: key) == nil)
        #expect(fixture.body("/a") == "new")
    }

    /// What the disk does not take is in memory alone once it is settled, perhaps between two looks of a lookup.
    @Test func aLookupDoesNotMissWhatIsSettledMeanwhile() throws {
        let fixture = try Fixture(disk: 0)
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        fixture.store("/a", "1")
        #expect(try fixture.isPending("/a"))
        // The lookup finds nothing in memory; then another thread settles.
        guard case .absent = fixture.cache.store.answerFromMemory(for: key, Responses.request("/a")) else {
            Issue.record("in memory already")
            return
        }
        fixture.cache.store.settleAll()
        let variants = fixture.cache.store.variants(for: key, inMemory: nil)
        #expect(variants.first?.load()?.body == Data("1".utf8))
        // The short way to a lone record, where the disk has an older one still.
        let onDisk = try Fixture()
        onDisk.store("/a", "old")
        onDisk.cache.flush()
        onDisk.cache.removeMemory()
        // It is open for a second after each look at what other processes did.
        var isFound = false
        for _ in 0..<100 where !isFound {
            _ = onDisk.body("/a")
            onDisk.cache.removeMemory()
            isFound = onDisk.cache.store.loneEntryOnDisk(for: key, Responses.request("/a")) != nil
            onDisk.cache.removeMemory()
        }
        #expect(isFound)
        let entry = StoredEntry.test(Data("new".utf8))
        onDisk.cache.store.memory.insert(
            .init(entries: [entry], isComplete: true, uriHash: 0, hostHash: 0, diskKey: nil), for: key, cost: 1)
        #expect(onDisk.cache.store.loneEntryOnDisk(for: key, Responses.request("/a")) == nil)
    }

    /// One that comes while the older one is being settled stays; each is counted once.
    @Test func theNewerOneIsNotEndedWithTheOlder() throws {
        let fixture = try Fixture()
        fixture.store("/a", "1")
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        let pending = fixture.cache.store.pending
        let older = try #require(pending[key])
        fixture.store("/a", "2")
        #expect(pending[key]?.count == 2)
        pending.remove(older)
        #expect(pending[key]?.call.response.data == Data("2".utf8) && pending[key]?.count == 1)
        let newer = try #require(pending[key])
        pending.remove(newer)
        #expect(pending.isEmpty && pending.keys == [])
        for number in 0..<100 { fixture.store("/\(number)", "1") }
        #expect(pending.keys.map(\.text) == (0..<100).map { "https://example.com/\($0)" }, "in their order")
        // The room is free again.
        let limited = PendingStores(byteLimit: 3_000)
        for _ in 0..<10 {
            guard case .accepted(let isFirst, _, _) = limited.add(newer.call), let store = limited[key] else {
                Issue.record("refused")
                return
            }
            #expect(isFirst)
            limited.remove(store)
        }
    }

    /// What comes while a pass settles is for the next pass, though it did not find an empty place.
    @Test func whatComesDuringAPassIsNotForgotten() throws {
        let fixture = try Fixture()
        fixture.store("/1", "1")
        fixture.store("/2", "1")
        let hub = fixture.cache.hub
        let listener = Mutex<UInt64?>(nil)
        // Told of the first one, while the second is pending.
        let id = hub.addListener { _ in
            let id = listener.withLock { id in
                defer { id = nil }
                return id
            }
            guard let id else { return }
            hub.removeListener(id)
            fixture.store("/3", "1")
        }
        listener.withLock { $0 = id }
        #expect(!fixture.cache.store.settleWithoutWaiting())
        #expect(try fixture.isPending("/3"))
        #expect(fixture.cache.store.settleWithoutWaiting())
    }

    /// A load that ends after a store of the same key is the newer one on disk too, whichever is settled first.
    @Test func numbersFollowTheOrderOfCalls() throws {
        let fixture = try Fixture()
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        fixture.store("/a", "store")
        let pending = try #require(fixture.cache.store.pending[key])
        let next = fixture.cache.sequence.next(at: Date())
        #expect(pending.call.sequence < next)
        fixture.cache.store.settleAll()
        #expect(
            fixture.cache.store.memory.value(for: key)?.value.entries.first?.metadata.sequence == pending.call.sequence)
    }

    /// A variant that is accepted while a response without variants is on its way stands beside it.
    @Test func aPendingVariantLeavesOthersInMemory() throws {
        let fixture = try Fixture()
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        fixture.store(
            "/a", "de", ["Cache-Control": "max-age=60", "Vary": "Accept-Language"], request: ["Accept-Language": "de"])
        #expect(try fixture.isPending("/a"))
        var metadata = StoredEntry.test(Data()).metadata
        metadata.isMemoryOnly = true
        metadata.sequence = 0
        // As a store in memory alone that had its stripe before.
        fixture.cache.store.place(
            StoredEntry(metadata: metadata, body: Data("any".utf8)), for: key, onDisk: false, isPatient: true)
        #expect(fixture.body("/a", ["Accept-Language": "de"]) == "de")
        #expect(fixture.body("/a", ["Accept-Language": "fr"]) == "any")
    }

    /// An entry that is settled while a newer one is pending does not come into memory.
    @Test func theOlderOfTwoIsNotSeenAfterTheNewer() throws {
        let fixture = try Fixture()
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        fixture.store("/a", "new")
        // As a store that waited for the key's stripe would do it.
        fixture.cache.store.place(.test(Data("old".utf8)), for: key, onDisk: true, isPatient: true)
        #expect(fixture.cache.store.memory.value(for: key) == nil)
        #expect(fixture.body("/a") == "new")
    }

    /// One thread stores larger and larger numbers for a key, others look: nobody sees a number below one whose store had
    /// returned before the lookup began.
    @Test("Concurrency: a store that returned is seen", arguments: [0, 20_000, 1 << 20]) func monotonic(memory: Int)
        throws
    {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: memory, diskCapacity: 64 << 20, directory: scratch.appending("c"))
        let keys = 4
        let rounds = Int(ProcessInfo.processInfo.environment["DISKURLCACHE_OPERATIONS"] ?? "") ?? 40_000
        let finished = (0..<keys).map { _ in Mutex(0) }
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 6) { thread in
            if thread < 2 {
                for number in 1...rounds / 8 {
                    for key in 0..<keys where key % 2 == thread {
                        let path = "/\(key)"
                        var fields = ["Cache-Control": "max-age=3600"]
                        // Some select by a field, which no request has: they are stored at once.
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
                    let request = Responses.request("/\(key)")
                    let found = cache.cachedResponse(for: request).flatMap {
                        Int(String(decoding: $0.data, as: UTF8.self))
                    }
                    if found ?? 0 < least {
                        failures.withLock { $0.append("\(key): \(found ?? -1) below \(least)") }
                    }
                    switch round % 64 {
                    case 0: cache.flush()
                    case 21: cache.removeMemory()
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

    /// The maintenance queue does not wait for a lock whose holder may wait for the queue.
    @Test func settlingDoesNotWaitForAChange() throws {
        let fixture = try Fixture()
        fixture.store("/a", "1")
        let layers = fixture.cache.store
        let key = try #require(fixture.cache.key(for: Responses.request("/a")))
        layers.stripe(of: key).withLock { _ in
            let (isDone, result) = (DispatchSemaphore(value: 0), Mutex<Bool?>(nil))
            Thread.detachNewThread {
                result.withLock { $0 = layers.settleWithoutWaiting() }
                isDone.signal()
            }
            #expect(isDone.wait(timeout: .now() + 60) == .success)
            #expect(result.withLock { $0 } == false)
        }
        #expect(layers.settleWithoutWaiting())
        #expect(try !fixture.isPending("/a"))
    }
}

import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The shared acceptance suite against the built-in layers and against storages as an app would write them.
@Suite(.fewAtATime) struct EntryStorageTests {
    let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
    }

    /// Not by the rules for Apple's own loader.
    private func settings(memory: Int = 0, disk: Int = 200 << 20, _ folder: String) -> DiskURLCache.Configuration {
        var settings = DiskURLCache.Configuration(
            memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending(folder))
        settings.platform = .linux
        return settings
    }

    @Test func theBuiltInDiskLayer() throws {
        try StorageAcceptance(isPersistent: true) {
            DiskURLCache(configuration: settings(disk: 500_000, "disk"))
        }.run()
    }

    @Test func theBuiltInMemoryLayer() throws {
        try StorageAcceptance(isPersistent: false) {
            DiskURLCache(configuration: settings(memory: 500_000, disk: 0, "memory"))
        }.run()
    }

    @Test func aDictionaryInPlaceOfTheDisk() throws {
        try StorageAcceptance(isPersistent: false) {
            var configuration = settings("none")
            configuration.diskStorage = DictionaryStorage(capacity: 500_000)
            return DiskURLCache(configuration: configuration)
        }.run()
    }

    /// A storage on another machine takes its time for each question.
    @Test func whoAsksForRemovalsAtATimeAsksTogether() async {
        let storage = SlowStorage()
        let adapter = StorageAdapter(storage, keepsURLs: true)
        let applied = Mutex(0)
        adapter.observeChanges { changes in applied.withLock { $0 += changes.count } }
        await onThreads(20) { _ in
            storage.arrivals.withLock { $0 += 1 }
            adapter.checkNow()
            #expect(applied.withLock { $0 } > 0)
        }
        #expect((1...10).contains(storage.questions.withLock { $0 }))
    }

    /// The first answer waits until all twenty have asked.
    private final class SlowStorage: DiskURLCache.EntryStorage {
        let arrivals = Guarded(0)
        let questions = Guarded(0)
        let isShared = true
        let capacity = 0
        let usage = 0

        func entries(named name: String) -> [DiskURLCache.Entry]? { [] }
        func store(_ entry: DiskURLCache.Entry, named name: String) {}
        func removeEntries(matching criteria: DiskURLCache.Criteria) {}
        func flush() {}

        func removalsByOthers() -> [String]? {
            questions.withLock { $0 += 1 }
            while arrivals.withLock({ $0 }) < 20 { Thread.sleep(forTimeInterval: 0.01) }
            Thread.sleep(forTimeInterval: 0.2)
            return nil
        }
    }

    /// An answer, an event and an explanation name the storage, not a disk.
    @Test func aStorageHasItsName() async throws {
        let storage = DictionaryStorage(capacity: 1 << 20)
        var configuration = settings("none")
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        #expect(cache.diskLayer == DiskURLCache.Layer(named: "storage"))
        #expect(DiskURLCache(configuration: settings("other")).diskLayer == .disk)
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: request)
        #expect(try await cache.data(for: request).report.outcome.description == "hit (storage)")
        #expect(cache.explanation(for: request).description.contains("from storage"))
        #expect(cache.statistics.diskHits == 1)
        var events = cache.events().makeAsyncIterator()
        cache.removeAllCachedResponses(from: DiskURLCache.Layer(named: "another"))
        guard case .problem(let error)? = await events.next() else {
            Issue.record("no event")
            return
        }
        #expect(error.code == .invalidPattern && storage.count == 1)
        cache.removeAllCachedResponses(from: cache.diskLayer)
        #expect(storage.count == 0)
    }

    @Test func whatIsForMemoryOnlyDoesNotReachTheStorage() throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("none"))
        configuration.diskStorage = disk
        let cache = DiskURLCache(configuration: configuration)
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!, policy: .allowedInMemoryOnly), for: request)
        cache.flush()
        #expect(disk.count == 0)
        cache.storeCachedResponse(Responses.cached(request.url!, "both"), for: request)
        cache.flush()
        #expect(disk.count == 1)
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.cachedResponse(for: request)?.data == Data("both".utf8))
        #expect(cache.statistics.diskHits == 1)
    }

    /// Another process has put a later response into the storage: a pin of what this one has in memory does not put
    /// that in its place.
    @Test func aPinBringsNoOlderResponseBack() throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("none"))
        configuration.diskStorage = disk
        let (cache, other) = (DiskURLCache(configuration: configuration), DiskURLCache(configuration: configuration))
        let request = Responses.request("/a")
        for (cache, body) in [(cache, "older"), (other, "newer")] {
            cache.storeCachedResponse(Responses.cached(request.url!, body), for: request)
            cache.flush()
        }
        #expect(cache.cachedResponse(for: request)?.data == Data("older".utf8))
        cache.setPinned(true, for: request)
        cache.flush()
        #expect(disk.all.map(\.entry.body) == [Data("newer".utf8)])
        #expect(cache.cachedResponse(for: request)?.data == Data("newer".utf8))
        // What the storage has dropped, it gets again.
        disk.removeEntries(matching: .everything)
        cache.setPinned(true, for: request)
        cache.flush()
        #expect(disk.all.map(\.entry.body) == [Data("newer".utf8)])
    }

    @Test(arguments: [true, false]) func theURLReachesTheStorageWhenURLsAreKept(keepsURLs: Bool) throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("none"))
        configuration.diskStorage = disk
        configuration.keepsURLs = keepsURLs
        let cache = DiskURLCache(configuration: configuration)
        let request = Responses.request("/a?token=SECRET")
        cache.storeCachedResponse(Responses.cached(request.url!, "body"), for: request)
        cache.flush()
        // A pin writes the entry anew.
        for _ in 0..<2 {
            let entry = try #require(disk.all.first)
            let bytes = try #require(entry.encoded())
            #expect((bytes.range(of: Data("SECRET".utf8)) != nil) == keepsURLs)
            cache.removeAllCachedResponses(from: .memory)
            #expect(cache.cachedResponse(for: request)?.response.url == request.url)
            #expect(cache.setPinned(true, for: request))
            cache.flush()
        }
    }

    /// A private cache stores what is for one user only.
    @Test(arguments: [false, true])
    func aStorageForSeveralUsersIsForSharedCaches(isShared: Bool) throws {
        let disk = DictionaryStorage(capacity: 1 << 20, isForSeveralUsers: true)
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("none"))
        configuration.diskStorage = disk
        configuration.isShared = isShared
        let cache = DiskURLCache(configuration: configuration)
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!), for: request)
        cache.flush()
        #expect(disk.count == (isShared ? 1 : 0))
        #expect(cache.openingError?.code == (isShared ? nil : .sharedStorage))
        #expect(cache.cachedResponse(for: request) != nil)
        #expect(!FileManager.default.fileExists(atPath: scratch.appending("none").path))
    }

    /// An app's storage may take its time, or ask the cache: its size is asked for nowhere but by the app itself.
    @Test func theSizeOfAStorageIsAskedForUnderNoLock() throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("none"))
        configuration.diskStorage = disk
        let cache = DiskURLCache(configuration: configuration)
        let request = Responses.request("/a")
        for body in ["one", "two"] {
            cache.storeCachedResponse(Responses.cached(request.url!, body), for: request)
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
            #expect(cache.cachedResponse(for: request) != nil)
        }
        cache.removeCachedResponse(for: request)
        #expect(disk.sizeQuestions.withLock { $0 } == 0)
        #expect(cache.diskCapacity == 1 << 20)
        #expect(cache.currentDiskUsage == 0)
        #expect(disk.sizeQuestions.withLock { $0 } == 2)
    }

    @Test func entriesSurviveTheirBytesAndNothingElseDoes() throws {
        let storage = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("none"))
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!, "body", userInfo: ["k": "v"]), for: request)
        cache.flush()
        let entry = try #require(storage.all.first)
        let bytes = try #require(entry.encoded())
        let decoded = try #require(DiskURLCache.Entry(encoded: bytes))
        #expect(decoded.entry.metadata.url == request.url?.absoluteString)
        #expect(decoded.variant == entry.variant)
        #expect(decoded.entry.body == Data("body".utf8))
        #expect(decoded.entry.metadata == entry.entry.metadata)
        #expect(DiskURLCache.Entry(encoded: Data()) == nil)
        for index in bytes.indices {
            #expect(DiskURLCache.Entry(encoded: bytes.prefix(index)) == nil)
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << bit
                #expect(DiskURLCache.Entry(encoded: damaged) == nil, "byte \(index), bit \(bit)")
            }
        }
        #expect(DiskURLCache.Entry(encoded: Data([0]) + bytes).map { _ in true } == nil)
        #expect(DiskURLCache.Entry(encoded: (Data([0]) + bytes).dropFirst()) != nil, "a slice counts from its start")
    }

    /// A lookup takes no lock of the key: what it read from disk just before a change must not end in memory after it.
    @Test(arguments: ["replace", "remove", "all", "tag"]) func aLookupDuringAChangeKeepsNothing(change: String) throws {
        let disk = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("none"))
        configuration.diskStorage = disk
        let cache = DiskURLCache(configuration: configuration)
        var request = Responses.request("/a")
        request.cacheOptions = .init(tags: ["tag"])
        let tagged = request
        cache.storeCachedResponse(Responses.cached(tagged.url!, "old"), for: tagged)
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        disk.beforeNextChange.withLock { announce in
            announce = { [weak cache] in #expect(cache?.cachedResponse(for: tagged)?.data == Data("old".utf8)) }
        }
        switch change {
        case "replace": cache.storeCachedResponse(Responses.cached(tagged.url!, "new"), for: tagged)
        case "remove": cache.removeCachedResponse(for: tagged)
        case "all": cache.removeAllCachedResponses()
        default: cache.removeCachedResponses(tag: "tag")
        }
        #expect(disk.beforeNextChange.withLock { $0 == nil })
        #expect(cache.cachedResponse(for: tagged)?.data == (change == "replace" ? Data("new".utf8) : nil))
    }

    @Test func anEntryUnderAForeignNameIsAMiss() throws {
        let storage = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(memoryCapacity: 0, directory: scratch.appending("none"))
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        let (a, b) = (Responses.request("/a"), Responses.request("/b"))
        cache.storeCachedResponse(Responses.cached(a.url!), for: a)
        cache.flush()
        let entry = try #require(storage.all.first)
        let name = try #require(cache.key(for: b)).diskKey.digest.hex
        storage.store(entry, named: name)
        #expect(cache.cachedResponse(for: b) == nil)
    }
}

@Suite struct MemoryPressureTests {
    /// What memory alone has is not looked for on disk, whatever kept it off the disk.
    @Test(arguments: ["too large", "capacity", "full"])
    func whatMemoryAloneHasIsPinnedTaggedAndMarkedThere(_ reason: String) throws {
        let (files, scratch) = (FaultyFileSystem(), try ScratchDirectory())
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 64 << 20, diskCapacity: reason == "too large" ? 1 << 20 : 64 << 20,
            directory: scratch.appending("c"))
        settings.platform = .linux
        settings.fileSystem = files
        let cache = DiskURLCache(configuration: settings)
        var request = Responses.request("/a")
        let head = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
        if reason == "full" {
            cache.storeCachedResponse(Responses.cached(request.url!, "old", fields: head), for: request)
            files.rule = { $0.operation == .write ? .error(ENOSPC) : nil }
        }
        let body = String(repeating: "x", count: 900 << 10)
        if reason == "capacity" { cache.diskCapacity = 0 }
        cache.storeCachedResponse(Responses.cached(request.url!, body, fields: head), for: request)
        #expect((files.faults > 0) == (reason == "full"))
        func isFound() -> Bool { cache.cachedResponse(for: request)?.data == Data(body.utf8) }
        #expect(cache.setPinned(true, for: request) && isFound())
        request.cacheOptions = .init(tags: ["t"])
        #expect(isFound() && isFound())
        cache.markStale()
        #expect(isFound())
        #expect(cache.explanation(for: request).outcome == .revalidated(.memory))
        cache.removeCachedResponses(tag: "t")
        #expect(cache.cachedResponse(for: request) == nil)
    }

    /// Also what was on disk before.
    @Test(arguments: [true, false]) func whatLeftTheDiskIsPinnedInMemory(byCapacity: Bool) throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.appending("c"))
        let (request, held) = (Responses.request("/a"), Responses.request("/held"))
        cache.storeCachedResponse(Responses.cached(held.url!, "held"), for: held)
        let response = cache.cachedResponse(for: held)
        cache.relieveMemoryPressure()
        cache.storeCachedResponse(Responses.cached(request.url!, "kept"), for: request)
        cache.flush()
        if byCapacity { cache.diskCapacity = 0 } else { cache.removeAllCachedResponses(from: .disk) }
        for (request, text) in [(request, "kept"), (held, "held")] {
            #expect(cache.setPinned(true, for: request))
            #expect(cache.cachedResponse(for: request)?.data == Data(text.utf8))
        }
        withExtendedLifetime(response) {}
    }

    /// A pin takes it nowhere where it was not allowed to be.
    @Test func aStorageGetsNoBodyAboveItsLimit() {
        let storage = DictionaryStorage(capacity: 10)
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        let request = Responses.request("/a")
        let body = String(repeating: "x", count: 1_000)
        cache.storeCachedResponse(Responses.cached(request.url!, body), for: request)
        #expect(cache.setPinned(true, for: request))
        #expect(cache.cachedResponse(for: request)?.data == Data(body.utf8) && storage.count == 0)
    }

    @Test func whatTheAppHoldsIsStillFoundWhenItWasPinned() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: scratch.appending("c"))
        let request = Responses.request("/held")
        cache.storeCachedResponse(Responses.cached(request.url!, "held"), for: request)
        let response = cache.cachedResponse(for: request)
        cache.relieveMemoryPressure()
        #expect(cache.setPinned(true, for: request))
        #expect(cache.cachedResponse(for: request)?.data == Data("held".utf8))
        withExtendedLifetime(response) {}
    }

    @Test func whatTheAppHoldsIsStillFound() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: scratch.appending("c"))
        let (held, loose) = (Responses.request("/held"), Responses.request("/loose"))
        cache.storeCachedResponse(Responses.cached(held.url!, "held"), for: held)
        cache.storeCachedResponse(Responses.cached(loose.url!, "loose"), for: loose)
        var response = cache.cachedResponse(for: held)
        cache.relieveMemoryPressure()
        #expect(cache.currentMemoryUsage == 0)
        #expect(cache.cachedResponse(for: held) === response)
        #expect(cache.cachedResponse(for: loose) == nil)
        cache.removeCachedResponse(for: held)
        #expect(cache.cachedResponse(for: held) == nil, "removed is removed")
        cache.storeCachedResponse(Responses.cached(held.url!, "held"), for: held)
        response = nil
        cache.relieveMemoryPressure()
        #expect(cache.cachedResponse(for: held) == nil)
    }

    /// What the app holds is an older version then: it does not answer in place of the newer one.
    @Test func aTagThatIsAddedToWhatTheAppHoldsIsFoundByARemoval() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.appending("c"))
        var request = Responses.request("/held")
        cache.storeCachedResponse(Responses.cached(request.url!, "held"), for: request)
        let held = try #require(cache.cachedResponse(for: request))
        cache.relieveMemoryPressure()
        request.cacheOptions = .init(tags: ["a"])
        #expect(cache.cachedResponse(for: request) != nil)
        cache.removeCachedResponses(tag: "a")
        #expect(cache.cachedResponse(for: request) == nil)
        withExtendedLifetime(held) {}
    }

    /// Otherwise the old one would answer requests that differ in what the new one names.
    @Test func a304WithAnotherVaryLeavesOneEntry() async throws {
        let storage = DictionaryStorage(capacity: 1 << 20)
        var configuration = DiskURLCache.Configuration(memoryCapacity: 0, diskCapacity: 0)
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        for status in [200, 304] {
            let network = MemoryTransport { _, exchange in
                let vary = status == 200 ? "A" : "A, B"
                exchange.head(status, ["Cache-Control": "no-cache", "ETag": "\"1\"", "Vary": vary])
                if status == 200 { exchange.piece("body") }
                exchange.end()
            }
            let request = Responses.request("/a", fields: ["A": "1", "B": "1"])
            _ = try await LoadReader(request, from: cache, over: network).answer()
            #expect(storage.count == 1)
        }
    }

    /// A process that runs for months is told of low memory time and again, and each time with other URLs in memory.
    @Test func whatNobodyHoldsIsForgotten() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: scratch.appending("c"))
        var held: [CachedURLResponse] = []
        for number in 0..<100 {
            let request = Responses.request("/\(number)")
            cache.storeCachedResponse(Responses.cached(Responses.url("/\(number)")), for: request)
            let found = try #require(cache.cachedResponse(for: request))
            if number % 10 == 0 { held.append(found) }
        }
        cache.relieveMemoryPressure()
        #expect(cache.store.weakResponses.count == held.count)
        held.removeAll()
        cache.relieveMemoryPressure()
        #expect(cache.store.weakResponses.count == 0)
    }

    /// Its body is asked for where no lock is held: it may come from code of the app, which may use the cache.
    @Test func aWeakResponseMayUseTheCache() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: scratch.appending("c"))
        let request = Responses.request("/a")
        let plain = Responses.cached(Responses.url("/a"))
        let response = AskingResponse(response: plain.response, data: plain.data)
        cache.storeCachedResponse(response, for: request)
        cache.relieveMemoryPressure()
        response.cache = cache
        response.request = request
        #expect(cache.store.weakResponses.count == 1)
        #expect(cache.cachedResponse(for: request) === response)
        #expect(response.asked.value)
    }
}

/// A response of an app's class, whose body looks into the cache.
private final class AskingResponse: CachedURLResponse, @unchecked Sendable {
    // Set by one test, on its thread.
    weak var cache: DiskURLCache?
    var request: URLRequest?
    let asked = Flag()

    override var data: Data {
        if let cache, let request {
            self.cache = nil
            asked.set()
            cache.removeCachedResponses(tag: "none")
            _ = cache.contains(request)
        }
        return super.data
    }
}

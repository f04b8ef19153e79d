import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// That the plain calls compile without `await` in asynchronous functions is a part of the test.
@Suite("Asynchronous calls have the names of the plain ones, and do not shadow them")
struct AsyncTests {
    private let scratch: ScratchDirectory
    private let cache: DiskURLCache

    init() throws {
        scratch = try ScratchDirectory()
        cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.appending("cache"))
    }

    private func store(_ path: String, tag: String? = nil) -> URLRequest {
        var request = Responses.request(path)
        if let tag { request.cacheOptions = .init(tags: [tag]) }
        cache.storeCachedResponse(Responses.cached(Responses.url(path), path), for: request)
        return request
    }

    @Test func thePlainCallsNeedNoAwait() async {
        let request = store("/a")
        let stored = cache.cachedResponse(for: request)
        #expect(stored?.data == Data("/a".utf8))
        cache.flush()
        #expect(cache.contains(request))
        cache.removeAllCachedResponses(from: .memory)
        cache.removeAllCachedResponses(from: .disk)
        cache.removeCachedResponses(olderThan: Date())
        cache.removeCachedResponses(since: Date.distantPast)
        cache.removeCachedResponses(urlPrefix: "https://example.com/")
        cache.removeCachedResponses(tag: "a")
        cache.removeCachedResponses(host: "example.com")
        cache.removeCachedResponse(for: request)
        cache.removeAllCachedResponses()
        #expect(!cache.contains(request))
    }

    @Test func aLookupReadsTheDisk() async {
        let request = store("/a")
        await cache.perform { $0.flush() }
        cache.removeAllCachedResponses(from: .memory)
        #expect(await cache.perform { $0.cachedResponse(for: request) }?.data == Data("/a".utf8))
        #expect(cache.statistics.diskHits == 1)
        #expect(await cache.perform { $0.cachedResponse(for: Responses.request("/b")) } == nil)
    }

    @Test func aLookupOfATaskFindsWhatIsStored() async throws {
        let request = store("/a")
        #expect(try await cache.storedResponse(for: request)?.data == Data("/a".utf8))
        #expect(try await cache.storedResponse(for: Responses.request("/b")) == nil)
    }

    /// However long the disk takes; and a lookup that has not begun does not begin.
    @Test func aCancelledTaskDoesNotWaitForItsLookup() async {
        let gate = Gate()
        let storage = CountingStorage {
            gate.wait()
            return []
        }
        var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        settings.diskStorage = storage
        let cache = DiskURLCache(configuration: settings)
        let task = Task { try await cache.storedResponse(for: Responses.request("/a")) }
        await eventually("the lookup") { storage.counts.withLock { $0.lookups } == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let late = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await cache.storedResponse(for: Responses.request("/a"))
        }
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
        gate.open()
        #expect(storage.counts.withLock { $0.lookups } == 1)
    }

    /// With a disk layer of the app's own: the built-in one may take its own clearing for that of another process, and
    /// then empties memory too.
    @Test(arguments: [DiskURLCache.Layer.memory, .disk, .fallback]) func oneLayerIsEmptied(_ layer: DiskURLCache.Layer)
    {
        let disk = CountingStorage()
        var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        settings.diskStorage = disk
        let cache = DiskURLCache(configuration: settings)
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: Responses.request("/a"))
        cache.flush()
        cache.removeAllCachedResponses(from: layer)
        #expect((cache.currentMemoryUsage == 0) == (layer == .memory))
        #expect((disk.counts.withLock { $0.removals } > 0) == (layer == .disk))
    }
}

/// Counts what it is told, and keeps nothing.
private final class CountingStorage: DiskURLCache.EntryStorage {
    let counts = Guarded((stores: 0, flushes: 0, removals: 0, lookups: 0))
    private let entries: @Sendable () -> [DiskURLCache.Entry]
    var capacity: Int {
        get { 1 << 20 }
        set {}
    }
    let usage = 0

    init(entries: @escaping @Sendable () -> [DiskURLCache.Entry] = { [] }) {
        self.entries = entries
    }

    func entries(named name: String) -> [DiskURLCache.Entry]? {
        counts.withLock { $0.lookups += 1 }
        return entries()
    }
    func store(_ entry: DiskURLCache.Entry, named name: String) { counts.withLock { $0.stores += 1 } }
    func removeEntries(matching criteria: DiskURLCache.Criteria) { counts.withLock { $0.removals += 1 } }
    func flush() { counts.withLock { $0.flushes += 1 } }
}

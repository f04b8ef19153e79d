import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Behaviour seen through the `URLCache` API alone.
@Suite(.fewAtATime) struct URLCacheAPITests {
    let scratch: ScratchDirectory
    let clock = ManualClock()

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func makeCache(
        memory: Int = 1 << 20, disk: Int = 10 << 20, _ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
    ) -> DiskURLCache {
        DiskURLCache(in: scratch, clock: clock, memory: memory, disk: disk) {
            $0.platform = .linux
            configure(&$0)
        }
    }

    private func body(_ cache: URLCache, _ request: URLRequest) -> String? {
        cache.cachedResponse(for: request).map { String(decoding: $0.data, as: UTF8.self) }
    }

    @Test func aSubscriptReadsStoresAndRemoves() {
        let cache = makeCache()
        let request = Responses.request("/a")
        #expect(cache[request] == nil)
        cache[request] = Responses.cached(request.url!, "body")
        #expect(cache[request]?.data == Data("body".utf8) && cache.contains(request))
        cache[request] = nil
        #expect(!cache.contains(request))
    }

    @Test func aLayerIsAskedAlone() {
        let cache = makeCache()
        let request = Responses.request("/a")
        func layers() -> [DiskURLCache.Layer] {
            [.memory, .disk, .fallback].filter { cache.contains(request, in: $0) }
        }
        #expect(layers().isEmpty)
        cache[request] = Responses.cached(request.url!)
        #expect(layers() == [.memory, .disk])
        cache.removeAllCachedResponses(from: .memory)
        #expect(layers() == [.disk])
        _ = cache.contains(request)
        #expect(layers() == [.disk], "that reads no body")
        _ = cache[request]
        #expect(layers() == [.memory, .disk])
        cache.removeAllCachedResponses(from: .disk)
        #expect(layers() == [.memory])
    }

    @Test func memoryKeepsAsManyResponsesAsTheAppSays() {
        let cache = makeCache { $0.memoryCountLimit = 2 }
        for path in ["/a", "/b", "/c"] { cache[Responses.request(path)] = Responses.cached(Responses.url(path)) }
        let inMemory = ["/a", "/b", "/c"].filter { cache.contains(Responses.request($0), in: .memory) }
        #expect(inMemory == ["/b", "/c"])
        #expect(cache.contains(Responses.request("/a"), in: .disk))
    }

    @Test func evictionEndsWhereTheAppSays() {
        let capacity = 1 << 20
        let cache = makeCache(memory: 0, disk: capacity) { $0.evictsTo = 0.5 }
        for number in 0..<80 {
            let url = Responses.url("/\(number)")
            cache[URLRequest(url: url)] = Responses.cached(url, String(repeating: "x", count: 15_000))
        }
        cache.flush()
        // Each takes 16 KB: 64 fill it, after which half of them go.
        #expect(cache.statistics.evictions > 30)
        #expect(cache.currentDiskUsage <= capacity)
    }

    // MARK: Requests

    @Test func aResponseSurvivesANewCacheOnTheSameDirectory() throws {
        let request = Responses.request("/a")
        let date = Date(timeIntervalSince1970: 1_000)
        let userInfo: [AnyHashable: Any] = [
            "s": "text", "i": 7, "d": 1.5, "b": true, "date": date, "data": Data([1, 2]),
            "list": [1, "two", [false]], "map": ["k": ["n": -1]],
        ]
        let first = makeCache()
        first.storeCachedResponse(
            Responses.cached(
                request.url!, "body", status: 203, fields: ["Content-Type": "text/plain; charset=utf-8", "X-A": "b"],
                userInfo: userInfo), for: request)
        first.flush()
        // Two caches on one directory are one store, memory included.
        first.removeAllCachedResponses(from: .memory)
        let second = makeCache()
        let found = try #require(second.cachedResponse(for: request))
        let response = try #require(found.response as? HTTPURLResponse)
        #expect(found.data == Data("body".utf8))
        #expect(found.data.startIndex == 0)
        #expect(response.statusCode == 203)
        #expect(response.url == request.url)
        #expect(response.mimeType == "text/plain")
        #expect(response.value(forHTTPHeaderField: "x-a") == "b")
        #expect(found.storagePolicy == .allowed)
        let info = try #require(found.userInfo as? [String: Any])
        #expect(info["s"] as? String == "text")
        #expect(info["i"] as? Int == 7)
        #expect(info["d"] as? Double == 1.5)
        #expect(info["b"] as? Bool == true)
        #expect(info["date"] as? Date == date)
        #expect(info["data"] as? Data == Data([1, 2]))
        #expect((info["list"] as? [Any])?.count == 3)
        #expect(((info["map"] as? [String: Any])?["k"] as? [String: Any])?["n"] as? Int == -1)
        #expect(second.statistics.diskHits == 1)
        _ = second.cachedResponse(for: request)
        #expect(second.statistics.memoryHits == 1, "a disk hit is promoted to memory")
    }

    /// A fallback directory is read-only.
    @Test func aRemovalFromFallbackDirectoriesSaysThatItRemovesNothing() async {
        let cache = makeCache()
        var events = cache.events().makeAsyncIterator()
        cache.removeAllCachedResponses(from: .fallback)
        cache.hub.emit(.evicted(entries: 0, bytesOnDisk: 0))
        guard case .problem(let error)? = await events.next() else {
            Issue.record("no event")
            return
        }
        #expect(error.code == .invalidPattern && error.description.contains("read-only"))
    }

    /// What an app has not filled in must not empty the cache.
    @Test(arguments: ["", "h", "https", "https://", "no number", "another host"])
    func aConditionThatIsNoneRemovesNothing(_ condition: String) async {
        let cache = makeCache()
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!, "body"), for: request)
        var events = cache.events().makeAsyncIterator()
        let date = Date(timeIntervalSince1970: .nan)
        switch condition {
        case "no number":
            cache.removeCachedResponses(olderThan: date)
            cache.removeCachedResponses(since: date)
        case "another host": cache.markStale(for: request, host: "other.example")
        default: cache.removeCachedResponses(urlPrefix: condition)
        }
        cache.hub.emit(.evicted(entries: 0, bytesOnDisk: 0))
        let event = await events.next()
        if condition != "no number" {
            guard case .problem(let error)? = event else {
                Issue.record("no event")
                return
            }
            #expect(error.code == .invalidPattern)
        }
        #expect(cache.contains(request))
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.contains(request))
    }

    @Test func userInfoOfOtherTypesStaysInMemoryAndIsReported() async throws {
        final class Opaque {}
        let cache = makeCache()
        var events = cache.events().makeAsyncIterator()
        let request = Responses.request("/a")
        let opaque = Opaque()
        cache.storeCachedResponse(Responses.cached(request.url!, userInfo: ["o": opaque, "n": 1]), for: request)
        #expect(cache.cachedResponse(for: request)?.userInfo?["o"] as? Opaque === opaque)
        guard case .notStored(_, let reason)? = await events.next() else {
            Issue.record("no event")
            return
        }
        #expect(reason.code == "user-info" && reason.description.contains("of o are"))
        cache.flush()
        #expect(cache.setPinned(true, for: request))
        #expect(cache.cachedResponse(for: request)?.userInfo?["o"] as? Opaque === opaque, "memory still has it")
        cache.removeAllCachedResponses(from: .memory)
        let found = try #require(cache.cachedResponse(for: request))
        #expect(found.userInfo?["o"] == nil)
        #expect(found.userInfo?["n"] as? Int == 1)
    }

    @Test func storagePolicies() {
        let cache = makeCache()
        let inMemory = Responses.request("/memory")
        let never = Responses.request("/never")
        cache.storeCachedResponse(Responses.cached(inMemory.url!, policy: .allowedInMemoryOnly), for: inMemory)
        cache.storeCachedResponse(Responses.cached(never.url!, policy: .notAllowed), for: never)
        cache.flush()
        #expect(cache.cachedResponse(for: inMemory)?.storagePolicy == .allowedInMemoryOnly)
        #expect(cache.cachedResponse(for: never) == nil)
        #expect(!scratch.files().contains { $0.contains("records/") })
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.cachedResponse(for: inMemory) == nil)
    }

    @Test func headIsAnsweredFromGetWithoutABody() {
        let cache = makeCache()
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!, "body"), for: request)
        var head = request
        head.httpMethod = "HEAD"
        #expect(cache.cachedResponse(for: head)?.data == Data())
        #expect(body(cache, request) == "body")
    }

    // MARK: Removal

    @Test func removingByDate() {
        let cache = makeCache()
        let old = Responses.request("/old")
        let new = Responses.request("/new")
        cache.storeCachedResponse(Responses.cached(old.url!), for: old)
        clock.advance(by: 100)
        let between = clock.now
        clock.advance(by: 100)
        cache.storeCachedResponse(Responses.cached(new.url!), for: new)
        cache.removeCachedResponses(since: between)
        #expect(cache.cachedResponse(for: new) == nil, "since removes what was stored after the date")
        #expect(cache.cachedResponse(for: old) != nil)
        cache.storeCachedResponse(Responses.cached(new.url!), for: new)
        cache.flush()
        cache.removeCachedResponses(olderThan: between)
        #expect(cache.cachedResponse(for: old) == nil)
        #expect(cache.cachedResponse(for: new) != nil)
        let reopened = makeCache()
        #expect(reopened.cachedResponse(for: old) == nil)
        #expect(reopened.cachedResponse(for: new) != nil)
    }

    // MARK: Bounds

    @Test func capacitiesCanBeSetAtRunTime() {
        let cache = makeCache()
        #expect(cache.memoryCapacity == 1 << 20)
        #expect(cache.diskCapacity == 10 << 20)
        for index in 0..<100 {
            let request = Responses.request("/\(index)")
            cache.storeCachedResponse(
                Responses.cached(request.url!, String(repeating: "x", count: 8_000)), for: request)
        }
        cache.flush()
        #expect(cache.currentMemoryUsage > 800_000)
        #expect(cache.currentDiskUsage > 800_000)
        cache.memoryCapacity = 100_000
        #expect(cache.currentMemoryUsage <= 100_000)
        cache.diskCapacity = 200_000
        cache.flush()
        #expect(cache.currentDiskUsage <= 200_000)
        #expect(SystemFiles().allocated(at: scratch.appending("cache").path) <= 200_000)
        #expect(cache.cachedResponse(for: Responses.request("/99")) != nil, "the most recent stays")
        cache.diskCapacity = -1
        #expect(cache.diskCapacity == 0)
        cache.memoryCapacity = -1
        #expect(cache.memoryCapacity == 0)
    }

    /// A loop over the events is a task of its own as a rule: it would stay with all that it holds.
    @Test func theEventsEndWithTheCache() async {
        var cache: DiskURLCache? = makeCache()
        let (read, unread) = (cache?.events(), cache?.events())
        cache?.storeCachedResponse(Responses.cached(Responses.url("/a")), for: Responses.request("/a"))
        cache = nil
        var count = 0
        if let read { for await event in read { if case .stored = event { count += 1 } } }
        #expect(count == 1)
        withExtendedLifetime(unread) {}
    }

    @Test func theLargestEntryIsAStatedShare() async {
        let cache = makeCache(memory: 0, disk: 1 << 20) { $0.maximumEntryFraction = 0.25 }
        var events = cache.events().makeAsyncIterator()
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!, "old"), for: request)
        guard case .stored? = await events.next() else {
            Issue.record("stored")
            return
        }
        cache.storeCachedResponse(
            Responses.cached(request.url!, String(repeating: "x", count: 300_000)), for: request)
        #expect(cache.cachedResponse(for: request) == nil, "the older value goes too")
        guard case .notStored(_, let reason)? = await events.next() else {
            Issue.record("too large")
            return
        }
        #expect(reason == .tooLarge)
        #expect(reason.description == DiskURLCache.Reason.tooLarge(bytes: 300_000, limit: 1 << 18).description)
        cache.storeCachedResponse(
            Responses.cached(request.url!, String(repeating: "x", count: 200_000)), for: request)
        #expect(cache.cachedResponse(for: request)?.data.count == 200_000)
    }

    // MARK: Bad input

    @Test(arguments: [(-1, -1), (Int.min, Int.min), (Int.max, Int.max), (0, Int.max)])
    func capacitiesOutOfRange(memory: Int, disk: Int) {
        let cache = DiskURLCache(memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("c"))
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!), for: request)
        cache.flush()
        #expect((cache.cachedResponse(for: request) != nil) == (disk > 0))
        #expect(cache.memoryCapacity == max(0, memory))
        #expect(cache.diskCapacity == max(0, disk))
    }

    /// Only Linux has a folder in which not even root makes one.
    private static let unusable: [(place: String, code: DiskURLCache.Error.Code)] =
        [("file", .obstructed), ("no file", .notAFileURL)]
        + (Platform.current == .linux ? [("/proc/none/cache", .notWritable)] : [])

    @Test(arguments: unusable) func aDirectoryThatCannotBe(place: String, code: DiskURLCache.Error.Code) throws {
        let file = scratch.appending("file")
        try Data("mine".utf8).write(to: file)
        let urls = ["file": file, "no file": try #require(URL(string: "https://example.com/cache"))]
        let directory = urls[place] ?? URL(fileURLWithPath: place)
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: directory)
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!), for: request)
        cache.flush()
        #expect(cache.cachedResponse(for: request) != nil, "memory works")
        #expect(cache.openingError?.code == code)
        #expect(cache.currentDiskUsage == 0)
        #expect(try Data(contentsOf: file) == Data("mine".utf8), "the file is the user's")
    }

    @Test func emptyAndRelativePaths() throws {
        let caches = try #require(FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first)
        let relative = "DiskURLCacheTests-\(UUID().uuidString)"
        let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 1 << 20, diskPath: relative)
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(request.url!), for: request)
        cache.flush()
        let expected = caches.appendingPathComponent(relative).path
        #expect(FileManager.default.fileExists(atPath: expected))
        try? FileManager.default.removeItem(atPath: expected)
        #expect(!FileManager.default.fileExists(atPath: relative), "never in the working directory")
        let empty = DiskURLCache(memoryCapacity: 0, diskCapacity: 0, diskPath: "")
        #expect(empty.configuration.directory == DiskURLCache.defaultDirectory)
        let none = DiskURLCache(memoryCapacity: 0, diskCapacity: 0, diskPath: nil)
        #expect(none.configuration.directory == DiskURLCache.defaultDirectory)
    }

    @Test func requestsWithoutAKey() throws {
        let cache = makeCache()
        var without = Responses.request("/")
        without.url = nil
        var post = Responses.request("/a")
        post.httpMethod = "POST"
        let requests = [
            without, post, URLRequest(url: URL(string: "ftp://example.com/a")!),
            URLRequest(url: URL(string: "data:,x")!), URLRequest(url: URL(fileURLWithPath: "/etc/hosts")),
        ]
        for request in requests {
            cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: request)
            #expect(cache.cachedResponse(for: request) == nil)
            #expect(!cache.contains(request))
            cache.removeCachedResponse(for: request)
        }
        #expect(cache.cachedResponse(for: Responses.request("/a")) == nil)
    }

    @Test func responsesThatAreNotHTTP() throws {
        let request = Responses.request("/a")
        let plain = URLResponse(
            url: request.url!, mimeType: "text/plain", expectedContentLength: 4, textEncodingName: "utf-8")
        let cache = makeCache()
        cache.storeCachedResponse(CachedURLResponse(response: plain, data: Data("body".utf8)), for: request)
        cache.flush()
        let found = try #require(makeCache().cachedResponse(for: request))
        #expect(!(found.response is HTTPURLResponse))
        #expect(found.response.mimeType == "text/plain")
        #expect(found.response.expectedContentLength == 4)
        #expect(found.response.textEncodingName == "utf-8")
        #expect(found.data == Data("body".utf8))
    }
}

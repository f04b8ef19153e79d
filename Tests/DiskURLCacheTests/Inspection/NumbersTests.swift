import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Counts by host and tag, the entries of a cache in use, and rules by a JSON body.
@Suite(.fewAtATime) struct NumbersTests {
    private let scratch: ScratchDirectory
    private let clock = ManualClock()

    init() throws { scratch = try ScratchDirectory("numbers") }

    private func makeCache(_ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }) -> DiskURLCache {
        DiskURLCache(in: scratch, clock: clock, configure)
    }

    private func request(_ url: URL, _ tags: Set<String> = [], _ storage: DiskURLCache.Options.Storage? = nil)
        -> URLRequest
    {
        var request = URLRequest(url: url)
        request.cacheOptions = DiskURLCache.Options(storage: storage, tags: tags)
        return request
    }

    @Test func bytesAreCountedByHostAndByTag() async throws {
        let origin = try OriginServer { request in
            .ok(
                "12345",
                ["Cache-Control": request.path == "/fresh" ? "max-age=60" : "no-store", "Cache-Groups": "\"g\""])
        }
        let cache = makeCache {
            $0.rules = [DiskURLCache.Rule(for: .contentType("text/*"), tags: ["never"])]
        }
        for _ in 0..<3 { _ = try await cache.data(for: request(origin.url("/fresh"), ["a", "b"])) }
        _ = try await cache.data(for: request(origin.url("/other"), ["b"]))
        let counts = cache.statistics
        #expect(counts.byHost.keys.sorted() == ["127.0.0.1"] && counts.byTag.keys.sorted() == ["a", "b"])
        #expect(counts.byHost["127.0.0.1"]?.bytesLoaded == 10 && counts.byHost["127.0.0.1"]?.bytesSaved == 10)
        #expect(counts.byTag["a"]?.bytesLoaded == 5 && counts.byTag["a"]?.bytesSaved == 10)
        #expect(counts.byTag["b"]?.bytesLoaded == 10 && counts.byTag["b"]?.memoryHits == 2)
        #expect(counts.bytesLoaded == 10 && counts.bytesSaved == 10)
    }

    @Test func theEntriesOfACacheAreASequenceAndThoseThatTheAppChoosesAreRemoved() async throws {
        let origin = try OriginServer { request in
            .ok(String(repeating: "x", count: request.path.count), ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache()
        let paths = ["/a", "/bb", "/ccc"]
        for path in paths { _ = try await cache.data(for: request(origin.url(path), ["t"])) }
        _ = try await cache.data(for: request(origin.url("/dddd"), [], .memoryOnly))
        cache.flush()
        func entries() async -> [DiskURLCache.CachedEntry] {
            await cache.entries().reduce(into: []) { $0.append($1) }.sorted { $0.bytes < $1.bytes }
        }
        let all = await entries()
        #expect(all.map { $0.url?.path } == paths + ["/dddd"] && all.map(\.bytes) == [2, 3, 4, 5])
        #expect(all.map(\.isInMemoryOnly) == [false, false, false, true])
        #expect(all.allSatisfy { $0.status == 200 && $0.method == "GET" && $0.storedAt == clock.now })
        #expect(all[0].tags == ["t"] && all[3].tags.isEmpty)
        #expect(await cache.remove { $0.bytes > 4 || $0.url?.path == "/a" } == 2)
        #expect(await entries().map { $0.url?.path } == ["/bb", "/ccc"])
        for (path, isStored) in [("/a", false), ("/bb", true), ("/ccc", true), ("/dddd", false)] {
            #expect(cache.contains(request(origin.url(path))) == isStored, "\(path)")
            #expect((cache.cachedResponse(for: request(origin.url(path))) != nil) == isStored, "\(path)")
        }
    }

    /// It counts as a removal: an answer that was asked for before is not stored afterwards.
    @Test func anAnswerOnItsWayDoesNotBringBackWhatWasRemovedByAClosure() async throws {
        let directory = try SharedDirectory()
        let cache = directory.open()
        for isOnDisk in [true, false] {
            cache.put("old", inMemoryOnly: !isOnDisk)
            let load = await HeldLoad(from: cache)
            #expect(await cache.remove { $0.url?.path == "/a" } == 1)
            try await load.end("new")
            #expect(cache.found() == nil)
        }
    }

    @Test func whatLeftTheDiskMeanwhileIsRemovedFromMemoryToo() async throws {
        let directory = try SharedDirectory()
        let cache = directory.open()
        cache.put("a")
        let count = await cache.remove { _ in
            cache.removeAllCachedResponses(from: .disk)
            return true
        }
        #expect(count == 1 && cache.found() == nil)
    }

    /// Only what is in memory is known then.
    @Test func whatCouldNotBeListedIsRemovedFromTheDiskToo() async throws {
        let directory = try SharedDirectory()
        let owner = directory.open()
        let files = FaultyFileSystem()
        let guest = directory.open(files)
        owner.put("stored")
        #expect(guest.foundLater() == "stored")
        files.rule = { $0.operation == .list && $0.name == "records" ? .error(EMFILE) : nil }
        #expect(await guest.remove { _ in true } == 1)
        #expect(files.faults > 0)
        files.rule = { _ in nil }
        #expect(guest.found() == nil)
        #expect(owner.foundLater() == nil)
    }

    /// The disk could not write it, so it is in memory alone.
    @Test func whatTheDiskCouldNotWriteIsListedAndRemovedToo() async throws {
        let directory = try SharedDirectory()
        let files = FaultyFileSystem()
        let cache = directory.open(files)
        cache.put("on disk", "/b")
        files.rule = { $0.operation == .write && $0.isRecord ? .error(ENOSPC) : nil }
        cache.put("in memory")
        files.rule = { _ in nil }
        let entries = await cache.entries().reduce(into: []) { $0.append($1) }
        #expect(entries.map { $0.url?.path } == ["/b", "/a"] && entries.map(\.isInMemoryOnly) == [false, true])
        #expect(await cache.remove { _ in true } == 2)
        #expect(cache.found() == nil && cache.found("/b") == nil)
    }

    @Test func theParsedBodyIsGivenToTheClosuresOfRules() throws {
        let seen = Mutex<[String]>([])
        let cache = makeCache { configuration in
            configuration.keyPolicy = .standard.includingBody(ofMethods: "POST")
            configuration.rules = ["Feed", "Profile"].map { name in
                DiskURLCache.Rule(
                    for: .json { body, request in
                        seen.withLock { $0.append("\(name) \(request.httpMethod ?? "")") }
                        return body["operationName"] as? String == name
                    }, tags: [name])
            }
        }
        func tags(_ body: String?) -> Set<String> {
            seen.withLock { $0 = [] }
            var request = URLRequest(url: Responses.url("/graphql"))
            request.httpMethod = "POST"
            request.httpBody = body.map { Data($0.utf8) }
            return cache.core.resolve(DiskURLCache.Request(request)).options.tags
        }
        #expect(tags(#"{"operationName": "Feed", "query": "{ feed }"}"#) == ["Feed"])
        #expect(seen.withLock { $0 } == ["Feed POST", "Profile POST"])
        #expect(tags(#"{"operationName": "Profile"}"#) == ["Profile"])
        for body in ["[1]", "no JSON", nil] {
            #expect(tags(body).isEmpty)
            #expect(seen.withLock { $0.isEmpty })
        }
    }

    /// A crawler has any number of hosts: those above a thousand are counted together.
    @Test func theHostsOfACrawlerAreCounted() {
        let hub = EventHub()
        for _ in 1...2 { for number in 0..<1_002 { hub.countRequest(to: "\(number).example.com") } }
        let counts = hub.statistics.byHost
        #expect(counts.count == 1_001 && counts[""]?.requests == 4 && counts["999.example.com"]?.requests == 2)
    }

    @Test func countsDoNotOverflow() {
        var sum = DiskURLCache.Statistics()
        for _ in 1...2 {
            var count = DiskURLCache.Statistics()
            count.bytesLoaded = .max - 1
            sum.add(count)
        }
        #expect(sum.bytesLoaded == .max)
    }
}

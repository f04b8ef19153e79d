import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import RedisStorage

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private let needsServer = ConditionTrait.enabled(
    if: RedisServer.isInstalled, "redis-server is not installed: `apt-get install redis-server`, or `.ci/run tools`")

/// What was told of failures, in order.
final class Told: Sendable {
    private let failures = NIOLockedValueBox<[RedisFailure]>([])

    var codes: [RedisFailure.Code] { failures.withLockedValue { $0.map(\.code) } }
    var texts: [String] { failures.withLockedValue { $0.map(\.description) } }
    func add(_ failure: RedisFailure) { failures.withLockedValue { $0.append(failure) } }

    /// Failures are told on a queue of their own: this one comes, or the test's time is over.
    func wait(for code: RedisFailure.Code) async {
        await eventually("the event \(code)") { codes.contains(code) }
    }
}

/// As one process: a storage, and a cache on it.
struct Client: Sendable {
    let storage: RedisStorage
    let cache: DiskURLCache
    let told = Told()
    /// Ends with its last client.
    private let server: RedisServer?

    /// Patient, and never pausing, unless the test says otherwise: a busy machine is no failure.
    init(
        _ place: RedisStorage.Configuration.Server, on server: RedisServer? = nil, prefix: String = "diskurlcache",
        memory: Int = 0, keepsURLs: Bool = true, _ change: (inout RedisStorage.Configuration) -> Void = { _ in }
    ) throws {
        self.server = server
        var settings = RedisStorage.Configuration(place, prefix: prefix)
        settings.timeout = 20
        settings.connectTimeout = 20
        settings.pause = 0
        change(&settings)
        settings.onFailure = { [told] in told.add($0) }
        storage = try RedisStorage(settings)
        var configuration = DiskURLCache.Configuration(memoryCapacity: memory, redis: storage)
        configuration.keepsURLs = keepsURLs
        cache = DiskURLCache(configuration: configuration)
    }

    init(
        _ server: RedisServer, prefix: String = "diskurlcache", memory: Int = 0, keepsURLs: Bool = true,
        _ change: (inout RedisStorage.Configuration) -> Void = { _ in }
    ) throws {
        try self.init(
            .host("127.0.0.1", port: server.port), on: server, prefix: prefix, memory: memory, keepsURLs: keepsURLs,
            change)
    }

    func store(
        _ path: String, _ body: String = "body", tags: Set<String> = [],
        fields: [String: String] = ["Cache-Control": "max-age=3600"]
    ) {
        var request = request(path)
        request.cacheOptions = DiskURLCache.Options(tags: tags)
        let response = HTTPURLResponse(
            url: request.url!, statusCode: 200, httpVersion: nil, headerFields: fields)!
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data(body.utf8)), for: request)
        cache.flush()
    }

    func body(_ path: String) -> String? {
        cache.cachedResponse(for: request(path)).map { String(decoding: $0.data, as: UTF8.self) }
    }
}

private func request(_ path: String) -> URLRequest { URLRequest(url: URL(string: "https://example.com\(path)")!) }

// Each server is a process of its own, and some tests stop theirs: not all at a time.
@Suite(needsServer, .serialized, .timeLimit(.minutes(5))) struct RedisStorageTests {
    // MARK: What every storage does

    @Test func itPassesTheAcceptanceSuite() throws {
        // By the end of their time, since Redis's clock for the last use has seconds: of a burst it evicts at random.
        let server = try RedisServer(["--maxmemory", "4mb", "--maxmemory-policy", "volatile-ttl"])
        try StorageAcceptance(isPersistent: true, fillingCount: 400) { try Client(server).cache }.run()
    }

    @Test func whatOneStoresTheOtherFinds() throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server), try Client(server, memory: 1 << 20))
        a.store("/1", "one")
        #expect(b.body("/1") == "one")
        #expect(b.cache.statistics.diskHits == 1)
        #expect(b.body("/1") == "one")
        #expect(b.cache.statistics.memoryHits == 1)
        #expect(a.told.texts + b.told.texts == [])
    }

    @Test func itIsASharedCache() async throws {
        let server = try RedisServer()
        let a = try Client(server, memory: 1 << 20)
        a.store("/1", fields: ["Cache-Control": "max-age=3600, private"])
        a.store("/2", fields: ["Cache-Control": "max-age=3600", "Set-Cookie": "a=b"])
        #expect(a.body("/1") == nil && a.body("/2") == nil)
        #expect(try server.keys("*:e:*").isEmpty)
    }

    @Test func noNameTellsAURLOrATag() throws {
        let server = try RedisServer()
        try Client(server).store("/secret", tags: ["account"])
        for key in try server.keys("*") {
            #expect(key == "diskurlcache:1:log" || key.wholeMatch(of: /diskurlcache:1:[eg]:[0-9a-f]{64}/) != nil)
        }
        #expect(try server.keys("*:e:*").count == 1)
        #expect(try server.keys("*:g:*").count == 3)
    }

    // MARK: How long

    @Test(arguments: [
        (5_000, false, 5_000), (0, false, 1), (.nan, false, 1), (1e300, false, 100 * 366 * 86_400),
        (5_000, true, 366 * 86_400),
    ])
    func anEntryIsKeptAsLongAsTheConfigurationSays(lifetime: TimeInterval, isPinned: Bool, seconds: Int) throws {
        let server = try RedisServer()
        let a = try Client(server) { $0.lifetime = lifetime }
        var request = request("/1")
        request.cacheOptions = DiskURLCache.Options(isPinned: isPinned)
        let response = HTTPURLResponse(url: request.url!, statusCode: 200, httpVersion: nil, headerFields: [:])!
        a.cache.storeCachedResponse(CachedURLResponse(response: response, data: Data()), for: request)
        a.cache.flush()
        let keys = try server.keys("*:[eg]:*")
        #expect(keys.count == 3 || seconds == 1)
        for key in keys {
            // -2: it has ended.
            let left = try #require(Int(server.cli("TTL", key)))
            #expect(left == -2 || (left > seconds - 100 && left <= seconds), "\(key)")
        }
    }

    // MARK: Removal

    @Test(arguments: ["tag", "host", "name", "prefix", "age", "all"]) func aRemovalErases(by: String) async throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server), try Client(server))
        a.store("/1", tags: ["x"])
        a.store("/2", tags: ["y"])
        try server.cli("SET", "diskurlcache:other", "foreign")
        let others = try Client(server, prefix: "diskurlcache*")
        others.store("/1", "others", tags: ["x"])
        var goes = 2
        switch by {
        case "tag":
            b.cache.removeCachedResponses(tag: "x")
            goes = 1
        case "host": b.cache.removeCachedResponses(host: "example.com")
        case "name":
            b.cache.removeCachedResponse(for: request("/1"))
            goes = 1
        case "prefix": b.cache.removeCachedResponses(urlPrefix: "https://example.com/")
        case "age": b.cache.removeCachedResponses(olderThan: .distantFuture)
        default: b.cache.removeAllCachedResponses()
        }
        #expect(a.body("/1") == nil)
        #expect((a.body("/2") == nil) == (goes == 2))
        b.cache.flush()
        // `flush` waits for a second only.
        try await eventually("that no bytes stay") {
            try server.keys("diskurlcache:1:e:*").count == 2 - goes && server.keys("*:gone:*").isEmpty
        }
        #expect(others.body("/1") == "others")
        #expect(try server.cli("GET", "diskurlcache:other") == "foreign")
        // What is stored after the removal is there.
        a.store("/1", "new", tags: ["x"])
        #expect(b.body("/1") == "new")
        #expect(a.told.texts + b.told.texts == [])
    }

    @Test func aLargeGroupIsErasedInSteps() async throws {
        let server = try RedisServer()
        let a = try Client(server)
        for number in 0..<450 {
            var request = request("/\(number)")
            request.cacheOptions = DiskURLCache.Options(tags: ["x"])
            let response = HTTPURLResponse(url: request.url!, statusCode: 200, httpVersion: nil, headerFields: [:])!
            a.cache.storeCachedResponse(CachedURLResponse(response: response, data: Data()), for: request)
        }
        a.cache.flush()
        #expect(try server.keys("*:e:*").count == 450)
        a.cache.removeCachedResponses(tag: "x")
        #expect(a.body("/449") == nil)
        a.cache.flush()
        try await eventually("that no entry stays") { try server.keys("*:e:*").isEmpty }
    }

    /// Redis evicts by a rule of its own, and it may evict what a removal looks up by: then the entries do not count
    /// either.
    @Test(arguments: ["*:g:*", "*:log"]) func whatCannotBeRemovedIsNotServed(evicted: String) throws {
        let server = try RedisServer()
        let a = try Client(server)
        a.store("/1", tags: ["x"])
        try server.cli("DEL", try #require(server.keys(evicted).first))
        a.cache.removeCachedResponses(tag: "x")
        #expect(a.body("/1") == nil)
        a.store("/1", "new")
        a.store("/1", "new")
        #expect(a.body("/1") == "new")
    }

    @Test(arguments: 0..<3) func anEntryWithoutOneOfItsSetsIsAMiss(index: Int) throws {
        let server = try RedisServer()
        let a = try Client(server)
        a.store("/1", tags: ["x"])
        try server.cli("DEL", try server.keys("*:g:*")[index])
        #expect(a.body("/1") == nil)
        #expect(try server.keys("*:e:*").isEmpty, "and it is removed")
    }

    @Test func whatOthersRemoveGoesFromMemory() async throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server), try Client(server, memory: 1 << 20))
        b.store("/1", tags: ["x"])
        b.store("/2")
        a.cache.removeCachedResponse(for: request("/1"))
        // A store looks in any case.
        b.store("/3")
        #expect(b.body("/1") == nil)
        #expect(b.cache.statistics.diskHits == 0)
        #expect(b.body("/2") == "body")
        #expect(b.cache.statistics.memoryHits == 1, "no more than that goes")
        // A removal by a tag is told as one of everything: memory asks the server again.
        b.store("/4", tags: ["x"])
        a.cache.removeCachedResponses(tag: "x")
        b.store("/3")
        #expect(b.body("/4") == nil)
        #expect(b.body("/2") == "body")
        #expect(b.cache.statistics.diskHits == 1)
        // And a lookup looks within a second.
        a.cache.removeCachedResponse(for: request("/2"))
        await eventually("the removal of /2") { b.body("/2") == nil }
        a.cache.removeAllCachedResponses()
        await eventually("the removal of /3") { b.body("/3") == nil }
    }

    @Test func aRemovalByOthersOvertakesAStore() throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server), try Client(server))
        let source = Capture()
        source.store("/1", tags: ["x"])
        source.store("/2", tags: ["y"])
        let entries = source.entries
        #expect(a.storage.removalsByOthers()?.isEmpty == true)
        b.cache.removeCachedResponse(for: request("/1"))
        // Both were stored here before the cache learned of the removal.
        for (name, entry) in entries { a.storage.store(entry, named: name) }
        #expect(b.body("/1") == nil)
        #expect(b.body("/2") == "body")
        #expect(a.storage.removalsByOthers()?.count == 1)
        for (name, entry) in entries { a.storage.store(entry, named: name) }
        #expect(b.body("/1") == "body", "the removal was taken in: this is a new store")
        #expect(a.storage.removalsByOthers()?.isEmpty == true)
    }

    /// What the log had when it could not be read, nobody knows later.
    @Test(arguments: ["check", "store"]) func aRemovalBeforeTheLogCouldBeReadIsToldAsOneOfEverything(
        missed: String
    ) async throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server), try Client(server))
        let source = Capture()
        source.store("/1", tags: [])
        let (name, entry) = try #require(source.entries.first)
        server.kill()
        if missed == "check" {
            #expect(a.storage.removalsByOthers()?.isEmpty == true)
        } else {
            a.storage.store(entry, named: name)
        }
        try server.start()
        b.cache.removeCachedResponse(for: request("/2"))
        // It reads the log, too.
        a.storage.store(entry, named: name)
        await eventually("the removal") { a.storage.removalsByOthers() == nil }
        #expect(a.storage.removalsByOthers()?.isEmpty == true)
        a.storage.store(entry, named: name)
        #expect(b.body("/1") == "body")
    }

    @Test func moreRemovalsThanAreNotedAreARemovalOfEverything() throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server), try Client(server))
        #expect(a.storage.removalsByOthers()?.isEmpty == true)
        for number in 0..<512 { b.cache.removeCachedResponse(for: request("/\(number)")) }
        #expect(a.storage.removalsByOthers()?.count == 512)
        for number in 0..<513 { b.cache.removeCachedResponse(for: request("/\(number)")) }
        #expect(a.storage.removalsByOthers() == nil)
        #expect(a.storage.removalsByOthers()?.isEmpty == true)
    }

    // MARK: Bad servers

    @Test func aWedgedServerIsAMissAndIsLeftAlone() async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        try Client(server).store("/1")
        let a = try Client(server) {
            $0.timeout = 0.2
            $0.pause = 3_600
        }
        await eventually("a body or an event") { a.body("/1") != nil || !a.told.codes.isEmpty }
        server.wedge()
        #expect(a.body("/1") == nil)
        await a.told.wait(for: .timedOut)
        server.unwedge()
        #expect(a.body("/1") == nil, "nobody asks during the pause")
        a.store("/2")
        #expect(try server.keys("*:e:*").count == 1)
        #expect(a.told.codes.count { $0 == .timedOut } == 1, "told once")
    }

    @Test func afterThePauseAWedgedServerIsAskedAgain() async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let a = try Client(server) {
            $0.timeout = 0.5
            $0.pause = 0.01
        }
        while a.body("/1") == nil { a.store("/1") }
        server.wedge()
        #expect(a.body("/1") == nil)
        // The server may still do what it was asked meanwhile, and the answers must not be taken for others.
        a.store("/1", "new")
        server.unwedge()
        await eventually("the new body or none") { [nil, "new"].contains(a.body("/1")) }
        while a.body("/1") != "new" { a.store("/1", "new") }
    }

    /// Many threads at once: each waits its time, and none for another.
    @Test func aWedgedServerHoldsUpNoThreadForLong() async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let a = try Client(server) {
            $0.timeout = 0.1
            $0.pause = 3_600
        }
        server.wedge()
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<200 { group.addTask { a.body("/\(number)") == nil } }
            for await isMiss in group { #expect(isMiss) }
        }
        await a.told.wait(for: .timedOut)
        #expect(a.told.codes.count { $0 == .timedOut } == 1)
    }

    @Test func aServerThatIsKilledAndComesBackIsUsedAgain() async throws {
        let server = try RedisServer()
        let a = try Client(server, memory: 1 << 20)
        a.store("/1")
        server.kill()
        a.cache.removeAllCachedResponses(from: .memory)
        #expect(a.body("/1") == nil)
        await a.told.wait(for: .unreachable)
        a.store("/2")
        #expect(a.body("/2") == "body", "memory goes on")
        try server.start()
        // The server has lost the note of removals: what memory has may be removed.
        while a.cache.statistics.diskHits == 0 {
            a.store("/3")
            a.cache.removeAllCachedResponses(from: .memory)
            _ = a.body("/3")
        }
        #expect(a.body("/1") == nil)
    }

    @Test func aServerThatIsEmptiedInTheMiddle() throws {
        let server = try RedisServer()
        let a = try Client(server, memory: 1 << 20)
        a.store("/1")
        try server.cli("FLUSHALL")
        a.cache.removeAllCachedResponses(from: .memory)
        #expect(a.body("/1") == nil)
        a.store("/2")
        a.store("/3")
        a.cache.removeAllCachedResponses(from: .memory)
        #expect(a.body("/3") == "body")
        #expect(a.told.codes == [])
    }

    /// It has saved what it had, or a replica takes its place: removals since are forgotten, and so is everything.
    @Test func whatAServerHasForgottenToRemoveIsNotServed() async throws {
        let server = try RedisServer()
        let a = try Client(server)
        a.store("/1")
        try server.cli("SAVE")
        a.cache.removeCachedResponse(for: request("/1"))
        server.kill()
        try server.start()
        await eventually("another log") { a.storage.removalsByOthers() == nil }
        #expect(try server.keys("*:e:*").count == 1, "the server has it again")
        #expect(try Client(server).body("/1") == nil)
        a.store("/1", "new")
        a.store("/1", "new")
        #expect(a.body("/1") == "new")
    }

    @Test func whatAnotherProcessMayStoreAndThisOneMayNotIsAMiss() throws {
        let server = try RedisServer()
        let large = try Client(server)
        let small = try Client(server) { $0.maximumEntrySize = 100_000 }
        small.store("/2")
        large.store("/1", String(repeating: "x", count: 200_000))
        #expect(small.body("/1") == nil)
        #expect(small.body("/2") == "body")
        #expect(small.told.codes == [])
        #expect(large.body("/1")?.count == 200_000)
        // Whether it matches cannot be seen here, so it goes.
        small.cache.removeCachedResponses(urlPrefix: try #require(request("/1").url).absoluteString)
        #expect(large.body("/1") == nil)
    }

    @Test func aServerThatForgetsTheScriptsIsToldAgain() async throws {
        let server = try RedisServer()
        // A second connection that is on its way would bring them.
        let a = try Client(server) { $0.connections = 1 }
        a.store("/1")
        try server.cli("SCRIPT", "FLUSH")
        await eventually("the body of /1") { a.body("/1") != nil }
        await a.told.wait(for: .refused)
    }

    @Test func aRemovalThatDidNotComeToTheServerComesFirst() async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let (a, b) = (try Client(server), try Client(server))
        let quick = try Client(server) {
            $0.timeout = 0.3
            $0.pause = 0
        }
        while quick.body("/1") == nil { a.store("/1", tags: ["x"]) }
        a.store("/2", tags: ["y"])
        server.wedge()
        quick.cache.removeCachedResponses(tag: "x")
        await quick.told.wait(for: .removalDelayed)
        server.unwedge()
        await eventually("the body of /2") { quick.body("/2") != nil }
        #expect(quick.body("/1") == nil)
        #expect(b.body("/1") == nil)
        await eventually("the removed entry is erased") {
            quick.storage.flush()
            return (try? server.keys("*:e:*").count) == 1 && (try? server.keys("*:gone:*").isEmpty) == true
        }
    }

    /// Nobody can search the server then, so everything is removed.
    @Test(arguments: ["prefix", "age"]) func aRemovalThatNeedsASearchIsMadeUpFor(by: String) async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let (a, b) = (try Client(server), try Client(server))
        let quick = try Client(server) {
            $0.timeout = 0.3
            $0.pause = 0
        }
        while quick.body("/1") == nil { a.store("/1") }
        server.wedge()
        if by == "prefix" {
            quick.cache.removeCachedResponses(urlPrefix: "https://example.com/")
        } else {
            quick.cache.removeCachedResponses(olderThan: .distantFuture)
        }
        await quick.told.wait(for: .removalDelayed)
        server.unwedge()
        await eventually("the body of /2") {
            a.store("/2")
            return quick.body("/2") != nil
        }
        #expect(quick.body("/1") == nil)
        #expect(b.body("/1") == nil)
        await eventually("the removed entry is erased") {
            quick.storage.flush()
            return (try? server.keys("*:e:*").count) == 1
        }
    }

    /// What is found together with a removal that a full server refuses was found before everything was removed.
    @Test func aRemovalThatComesLateToAFullServerHolds() async throws {
        let server = try RedisServer(["--maxmemory-policy", "noeviction"])
        defer { server.unwedge() }
        let a = try Client(server)
        let quick = try Client(server) {
            $0.timeout = 0.3
            $0.pause = 0
        }
        while quick.body("/1") == nil { a.store("/1", tags: ["x"]) }
        let name = try #require(server.keys("*:e:*").first).suffix(64)
        server.wedge()
        quick.cache.removeCachedResponses(tag: "x")
        await quick.told.wait(for: .removalDelayed)
        server.unwedge()
        try server.cli("CONFIG", "SET", "maxmemory", "1")
        await eventually("the word of the full server") {
            #expect(quick.storage.entries(named: String(name))?.isEmpty != false)
            return quick.told.codes.contains(.full)
        }
    }

    @Test func aFullServerDropsWhatIsStored() async throws {
        let server = try RedisServer(["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"])
        let a = try Client(server)
        a.store("/1", "old")
        try server.cli("CONFIG", "SET", "maxmemory", "1")
        a.store("/1", "new")
        await a.told.wait(for: .full)
        #expect(a.body("/1") == nil, "the old one is gone as well")
        a.store("/2")
        a.store("/3")
        #expect(a.body("/2") == nil)
        #expect(a.told.codes.count { $0 == .full } == 1, "told once")
        try server.cli("CONFIG", "SET", "maxmemory", "100mb")
        a.store("/4")
        a.store("/4")
        #expect(a.body("/4") == "body")
        #expect(a.cache.diskCapacity == 3 << 20 || a.cache.diskCapacity == 100 << 20 || a.cache.diskCapacity == .max)
        // A removal holds on a full server, too.
        a.store("/5", tags: ["x"])
        try server.cli("CONFIG", "SET", "maxmemory", "1")
        a.cache.removeCachedResponses(tag: "x")
        #expect(a.body("/5") == nil)
    }

    @Test func aServerThatEvictsGoesOn() async throws {
        let server = try RedisServer(["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"])
        let a = try Client(server)
        let text = String(repeating: "x", count: 50_000)
        for number in 0..<100 { a.store("/\(number)", "\(number)\(text)") }
        for number in 0..<100 {
            if let body = a.body("/\(number)") { #expect(body == "\(number)\(text)") }
        }
        #expect(a.told.codes.isEmpty)
        #expect(a.cache.currentDiskUsage <= 3 << 20)
        #expect(try server.keys("*:e:*").count < 100, "some were evicted")
        // It may have evicted the log, without which no entry counts: then a later store makes a new one.
        await eventually("a response that is stored and found") {
            a.store("/last")
            return a.body("/last") == "body"
        }
    }

    private func largestSet(of server: RedisServer) throws -> Int {
        let script = """
            local largest = 0
            for _, key in ipairs(redis.call('KEYS', '*:g:*')) do largest = math.max(largest, redis.call('ZCARD', key)) end
            return largest
            """
        return try #require(Int(server.cli("EVAL", script, "0")))
    }

    /// Whoever may choose URLs asks for new ones again and again. The set of the host must not keep the names of all of
    /// them, which would push the responses out.
    @Test func theNamesOfEvictedEntriesGoFromTheSets() throws {
        let server = try RedisServer()
        let a = try Client(server)
        for round in 0..<3 {
            let unlink = "for _, key in ipairs(redis.call('KEYS', '*:e:*')) do redis.call('UNLINK', key) end"
            try server.cli("EVAL", unlink, "0")
            for number in 0..<300 { a.store("/\(round)/\(number)") }
            #expect(try (300..<350).contains(largestSet(of: server)))
            #expect(a.body("/\(round)/0") == "body")
        }
    }

    /// The same with Redis's own eviction.
    @Test func theSetOfAHostGrowsWithWhatIsStored() throws {
        let size = TestLength.pick(plain: "3mb", long: "20mb")
        let server = try RedisServer(["--maxmemory", size, "--maxmemory-policy", "allkeys-lru"])
        let a = try Client(server)
        for number in 0..<TestLength.pick(plain: 2_000, long: 100_000) { a.store("/search?q=\(number)") }
        let (names, stored) = (try largestSet(of: server), try server.keys("*:e:*").count)
        #expect(names < 2 * stored && stored > 100, "\(names) names for \(stored) responses")
    }

    /// An origin says how many groups its responses have, and each makes the scripts longer, for all.
    @Test func aResponseOfManyGroupsIsNotStored() async throws {
        let server = try RedisServer()
        let a = try Client(server, memory: 1 << 20)
        for (path, count) in [("/1", 128), ("/1", 129), ("/2", 128)] {
            a.store(path, "\(count)", tags: Set((0..<count).map { "\($0)" }))
        }
        await a.told.wait(for: .tooLarge)
        #expect(a.body("/1") == "129", "it is in memory")
        let b = try Client(server)
        #expect(b.body("/1") == nil && b.body("/2") == "128")
    }

    @Test func wrongBytesAreAMissAndAreRemoved() async throws {
        let server = try RedisServer()
        let a = try Client(server)
        a.store("/1")
        let key = try #require(server.keys("*:e:*").first)
        let field = try #require(try server.cli("HKEYS", key).split(separator: "\n").first { $0.hasPrefix("b") })
        try server.cli("HSET", key, String(field), "wrong")
        #expect(a.body("/1") == nil)
        await a.told.wait(for: .damaged)
        #expect(try server.keys("*:e:*").isEmpty)
        a.store("/1", "new")
        #expect(a.body("/1") == "new")
        // Something else altogether under our names.
        for name in try server.keys("*:1:*") {
            try server.cli("DEL", name)
            try server.cli("SET", name, "foreign")
        }
        #expect(a.body("/1") == nil)
        #expect(try server.keys("*:e:*").isEmpty)
    }

    @Test func whatIsTooLargeIsNotStored() async throws {
        let server = try RedisServer()
        let a = try Client(server) { $0.maximumEntrySize = 10_000 }
        a.store("/1", "small")
        // The body alone would fit: only the storage knows the length of the record. A larger body does not reach the
        // storage.
        a.store("/1", String(repeating: "x", count: 9_999))
        await a.told.wait(for: .tooLarge)
        #expect(a.body("/1") == nil, "the older one is gone as well")
        a.store("/1", String(repeating: "x", count: 9_000))
        #expect(a.body("/1")?.count == 9_000)
    }

    @Test func variantsWithoutEndDoNotFillAKey() throws {
        let server = try RedisServer()
        let a = try Client(server)
        for number in 0..<40 {
            var request = request("/1")
            request.setValue("\(number)", forHTTPHeaderField: "User-Agent")
            let response = HTTPURLResponse(
                url: request.url!, statusCode: 200, httpVersion: nil, headerFields: ["Vary": "User-Agent"])!
            a.cache.storeCachedResponse(
                CachedURLResponse(response: response, data: Data("\(number)".utf8)), for: request)
            a.cache.flush()
            #expect(a.cache.cachedResponse(for: request)?.data == Data("\(number)".utf8))
        }
        let key = try #require(server.keys("*:e:*").first)
        #expect(try Int(server.cli("HLEN", key))! <= 64)
        try expectNoNamesOfWhatIsGone(server, key)
    }

    /// The sets of the host and the URL have the name of each variant of the one entry, and no more.
    private func expectNoNamesOfWhatIsGone(_ server: RedisServer, _ key: String) throws {
        let sets = try server.keys("*:g:*")
        #expect(sets.count == 2)
        for set in sets { #expect(try Int(server.cli("ZCARD", set))! * 2 == Int(server.cli("HLEN", key))!) }
    }

    /// A lookup transfers all variants of a name, and clients may choose how many there are.
    @Test func theVariantsOfANameAreTogetherNoLargerThanAnEntryMayBe() throws {
        let server = try RedisServer()
        let a = try Client(server) { $0.maximumEntrySize = 100_000 }
        func request(_ number: Int) -> URLRequest {
            var request = URLRequest(url: URL(string: "https://example.com/1")!)
            request.setValue("\(number)", forHTTPHeaderField: "User-Agent")
            return request
        }
        func store(_ number: Int, bytes: Int) {
            let response = HTTPURLResponse(
                url: request(number).url!, statusCode: 200, httpVersion: nil, headerFields: ["Vary": "User-Agent"])!
            a.cache.storeCachedResponse(
                CachedURLResponse(response: response, data: Data(repeating: UInt8(number), count: bytes)),
                for: request(number))
            a.cache.flush()
        }
        func found(_ number: Int) -> Data? { a.cache.cachedResponse(for: request(number))?.data }
        for number in 0..<8 {
            store(number, bytes: 90_000)
            #expect(found(number)?.count == 90_000)
            let key = try #require(server.keys("*:e:*").first)
            let entries = try #require(a.storage.entries(named: String(key.suffix(64))))
            #expect(entries.map(\.bytes).reduce(0, +) <= 100_000)
            try expectNoNamesOfWhatIsGone(server, key)
        }
        for number in 10..<15 { store(number, bytes: 15_000) }
        for number in 10..<15 { #expect(found(number) == Data(repeating: UInt8(number), count: 15_000)) }
        // No more go than have to.
        store(15, bytes: 45_000)
        #expect(found(15)?.count == 45_000)
        #expect((10..<15).count { found($0) != nil } == 3)
        #expect(a.told.texts == [])
    }

    // MARK: Ways in

    /// Neither by a log, nor by `dump`, nor by a test that fails.
    @Test func noSecretIsPrinted() throws {
        var settings = RedisStorage.Configuration(.host("redis.internal", port: 1), prefix: "mine")
        settings.password = "hunter2"
        settings.secret = Data(repeating: 173, count: 32)
        settings.tls = .makeClientConfiguration()
        let text = "redis.internal:1, database 0, prefix mine, with TLS, with a secret"
        #expect("\(settings)" == text && String(reflecting: settings) == text)
        var dumped = ""
        dump(settings, to: &dumped)
        #expect(dumped == "- \(text)\n")
        dumped = ""
        settings.onFailure = nil
        dump(try RedisStorage(settings), to: &dumped)
        #expect(dumped.split(separator: "\n").count == 1, "\(dumped)")
    }

    @Test func aPasswordIsAskedFor() async throws {
        let server = try RedisServer(["--requirepass", "secret"], cli: ["-a", "secret"])
        let right = try Client(server) { $0.password = "secret" }
        right.store("/1")
        #expect(right.body("/1") == "body")
        let wrong = try Client(server) { $0.password = "wrong" }
        #expect(wrong.body("/1") == nil)
        await wrong.told.wait(for: .refused)
        let none = try Client(server)
        #expect(none.body("/1") == nil)
        await none.told.wait(for: .refused)
        let rules = RedisStorage.Configuration(.socket(path: ""), prefix: "mine").accessRules
        try server.cli(["ACL", "SETUSER", "cache", "on", ">pass"] + rules.split(separator: " ").map(String.init))
        let user = try Client(server, prefix: "mine") {
            $0.user = "cache"
            $0.password = "pass"
            $0.database = 3
        }
        user.store("/1", "user's")
        #expect(user.body("/1") == "user's")
        #expect(try server.cli("-n", "3", "DBSIZE") != "0")
        #expect(user.cache.currentDiskUsage > 0)
        // A server that does not answer some question is no failure.
        try server.cli("ACL", "SETUSER", "cache", "-info")
        #expect(user.cache.currentDiskUsage >= 0)
        #expect(user.told.codes.isEmpty)
    }

    /// No server is needed: it is told before a connection is made.
    @Test(arguments: [
        ("redis.internal", true, false, true), ("10.0.0.7", true, false, true), ("127.evil.example", true, false, true),
        ("redis.internal", false, false, false), ("redis.internal", true, true, false),
        ("localhost", true, false, false),
        ("127.0.0.2", true, false, false), ("::1", true, false, false),
    ])
    func aPasswordInTheClearIsTold(host: String, hasPassword: Bool, isEncrypted: Bool, isTold: Bool) async throws {
        let told = Told()
        var settings = RedisStorage.Configuration(.host(host, port: 1), prefix: "mine")
        settings.password = hasPassword ? "secret" : nil
        settings.tls = isEncrypted ? .makeClientConfiguration() : nil
        settings.onFailure = { told.add($0) }
        #expect(settings.sendsPasswordInTheClear == isTold)
        // Each is told in order: the failure of a call, since nobody listens there, ends the wait.
        let storage = try RedisStorage(settings)
        _ = storage.entries(named: "x")
        await eventually("the failure of the call") { told.codes.contains { $0 != .passwordInTheClear } }
        #expect(told.codes.contains(.passwordInTheClear) == isTold)
        if isTold {
            #expect(told.texts.first?.contains("secret") == false && told.texts.first?.contains("tls") == true)
        }
        withExtendedLifetime(storage) {}
    }

    @Test func aFailureIsAWarningOfTheLogIfNothingElseIsSaid() async throws {
        // For the whole process, and once: no other test listens to the log of all.
        let (lines, others) = (NIOLockedValueBox<[String]>([]), NIOLockedValueBox<[String]>([]))
        LoggingSystem.bootstrap { LineHandler(lines: $0 == "RedisStorage" ? lines : others) }
        var settings = RedisStorage.Configuration(.host("redis.internal", port: 1), prefix: "mine")
        settings.password = "secret"
        let storage = try RedisStorage(settings)
        await eventually("the warning of the password") {
            lines.withLockedValue { $0.contains { $0.hasPrefix("warning: The password goes") } }
        }
        withExtendedLifetime(storage) {}
    }

    /// The short list of commands is enough for all that a cache does, and no key of others can be read.
    @Test func theAccessRulesAreEnough() async throws {
        let server = try RedisServer(["--maxmemory", "4mb", "--maxmemory-policy", "volatile-ttl"])
        let rules = RedisStorage.Configuration(.socket(path: ""), prefix: "mine").accessRules
        try server.cli(["ACL", "SETUSER", "cache", "on", ">pass"] + rules.split(separator: " ").map(String.init))
        try server.cli("SET", "foreign", "value")
        func client() throws -> Client {
            try Client(server, prefix: "mine") { ($0.user, $0.password) = ("cache", "pass") }
        }
        try StorageAcceptance(isPersistent: true, fillingCount: 400) { try client().cache }.run()
        let a = try client()
        for remove: (DiskURLCache) -> Void in [
            { $0.removeCachedResponses(tag: "x") }, { $0.removeCachedResponses(host: "example.com") },
            { $0.removeCachedResponse(for: request("/1")) },
            { $0.removeCachedResponses(urlPrefix: "https://example.com/") },
            { $0.removeAllCachedResponses() },
        ] {
            a.store("/1", tags: ["x"])
            #expect(a.body("/1") == "body")
            remove(a.cache)
            #expect(a.body("/1") == nil)
            a.cache.flush()
        }
        #expect(a.storage.usage > 0)
        #expect(a.told.texts == [])
        #expect(try server.cli("--user", "cache", "--pass", "pass", "GET", "foreign").hasPrefix("NOPERM"))
        #expect(try server.cli("--user", "cache", "--pass", "pass", "EVAL", "return 1", "0").hasPrefix("NOPERM"))
        let readme = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("README.md")
        let shop = RedisStorage.Configuration(.socket(path: ""), prefix: "shop").accessRules
        #expect(
            try String(contentsOf: readme, encoding: .utf8).contains(shop), "Integrations/README.md has the same list")
    }

    // MARK: Other users of the server

    /// One number ended every process that used the server.
    @Test(arguments: ["-9223372036854775808", "9223372036854775807", "9007199254740992", "-1", "1e3", "x", ""])
    func noNumberInTheLogEndsAProcess(number: String) throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server, memory: 1 << 20), try Client(server))
        for _ in 0..<3 {
            a.store("/1")
            _ = a.storage.removalsByOthers()
            try server.cli("HSET", "diskurlcache:1:log", "n", number)
            // A new place to count from; what memory had may have been removed.
            _ = a.storage.removalsByOthers()
            #expect(a.storage.removalsByOthers()?.isEmpty == true)
            b.cache.removeCachedResponse(for: request("/2"))
        }
        a.store("/1", "new")
        a.store("/1", "new")
        #expect(b.body("/1") == "new")
    }

    @Test func numbersOfTheServerAreClamped() throws {
        // An app adds to them.
        let server = try RedisServer()
        let a = try Client(server)
        a.store("/1")
        #expect((0...(1 << 53)).contains(a.cache.currentDiskUsage))
        #expect(a.cache.diskCapacity == .max)
    }

    @Test func aLimitOfTheAppThatIsNoneIsClamped() throws {
        let a = try Client(try RedisServer()) { $0.maximumEntrySize = .max }
        a.store("/1")
        #expect(a.body("/1") == "body")
    }

    /// At the first address of the name nothing listens, as where a name has an IPv6 address and the server has not.
    @Test func theSecondAddressOfANameIsTried() throws {
        struct TwoAddresses: Resolver {
            let port: Int
            let loop = MultiThreadedEventLoopGroup.singleton.next()

            func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
                loop.makeCompletedFuture {
                    try ["127.0.0.2", "127.0.0.1"].map { try SocketAddress(ipAddress: $0, port: port) }
                }
            }
            func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
                loop.makeSucceededFuture([])
            }
            func cancelQueries() {}
        }
        let server = try RedisServer()
        let a = try Client(.host("redis.example", port: server.port), on: server) {
            $0.resolver = TwoAddresses(port: server.port)
        }
        a.store("/1")
        #expect(a.body("/1") == "body")
        #expect(a.told.texts == [])
    }

    @Test func aPrivateCacheDoesNotUseIt() throws {
        let server = try RedisServer()
        var settings = RedisStorage.Configuration(.host("127.0.0.1", port: server.port), prefix: "shop")
        settings.timeout = 20
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        configuration.diskStorage = try RedisStorage(settings)
        let cache = DiskURLCache(configuration: configuration)
        #expect(cache.openingError?.code == .sharedStorage)
        let response = HTTPURLResponse(
            url: request("/me").url!, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "private"])!
        cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data("account".utf8)), for: request("/me"))
        cache.flush()
        #expect(cache.cachedResponse(for: request("/me")) != nil, "it works in memory")
        #expect(try server.keys("*:e:*").isEmpty)
    }

    @Test(arguments: [true, false]) func theURLIsInRedisWhenURLsAreKept(keepsURLs: Bool) throws {
        let server = try RedisServer()
        let a = try Client(server, keepsURLs: keepsURLs)
        a.store("/me?token=SECRET")
        #expect(try (server.everything().contains("token=SECRET")) == keepsURLs)
        #expect(a.body("/me?token=SECRET") == "body")
    }

    // MARK: The secret

    private static let secret = Data((0..<32).map { UInt8($0 * 7) })

    @Test func theAcceptanceSuiteWithASecret() throws {
        let server = try RedisServer(["--maxmemory", "4mb", "--maxmemory-policy", "volatile-ttl"])
        try StorageAcceptance(isPersistent: true, fillingCount: 400) {
            try Client(server) { $0.secret = Self.secret }.cache
        }.run()
    }

    /// One from an environment variable that is not set, say, is known to everybody.
    @Test(arguments: [0, 5, 15, 16]) func aSecretThatCanBeGuessedIsAnError(length: Int) throws {
        var settings = RedisStorage.Configuration(.host("127.0.0.1", port: 1), prefix: "mine")
        settings.onFailure = nil
        settings.secret = Data(repeating: 173, count: length)
        do throws(RedisFailure) {
            _ = try RedisStorage(settings)
            #expect(length == 16)
        } catch {
            #expect(error.code == .shortSecret && length < 16)
            #expect(error.description.contains("has \(length) bytes"))
        }
    }

    @Test func withASecretNothingCanBeForgedMovedOrRead() async throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server) { $0.secret = Self.secret }, try Client(server) { $0.secret = Self.secret })
        let others = try [nil, Data(Self.secret.reversed())].map { other in try Client(server) { $0.secret = other } }
        a.store("/1?token=SECRET", "one", tags: ["account"])
        a.store("/2", "two")
        #expect(b.body("/1?token=SECRET") == "one")
        for other in others { #expect(other.body("/2") == nil) }
        let said = try server.everything()
        #expect(!said.contains("SECRET") && !said.contains("example.com") && !said.contains("Cache-Control"))
        // Names are not those that a guess of the key gives.
        let capture = Capture()
        capture.store("/2", tags: ["account"])
        let (name, entry) = try #require(capture.entries.first)
        for guess in [name] + entry.groups { #expect(!said.contains(guess)) }
        // Nor are variants, which are digests of what requests have in the fields of `Vary`.
        let fields = try server.cli("EVAL", "return redis.call('HKEYS', redis.call('KEYS', '*:e:*')[1])", "0")
        #expect(!fields.isEmpty && !fields.split(separator: "\n").contains("h\(entry.variant)"))
        // A record that another program wrote, and one that lies under another name.
        for other in others { other.store("/2", "forged") }
        #expect(b.body("/2") == "two")
        // A record under another name, and one with another byte.
        try server.cli("EVAL", Self.exchange, "0")
        #expect(b.body("/1?token=SECRET") == nil)
        #expect(b.body("/2") == nil)
        await b.told.wait(for: .damaged)
        // What others remove is told by messages that cannot be read.
        let c = try Client(server, memory: 1 << 20) { $0.secret = Self.secret }
        c.store("/3")
        c.store("/4")
        a.cache.removeCachedResponse(for: request("/3"))
        c.store("/5")
        #expect(c.body("/3") == nil)
        #expect(c.body("/4") == "body")
        #expect(c.cache.statistics.diskHits == 0)
    }

    /// Puts the record of each name in the place of the other's.
    private static let exchange = """
        local keys = redis.call('KEYS', '*:e:*')
        local found = {}
        for i, key in ipairs(keys) do
            for _, field in ipairs(redis.call('HKEYS', key)) do
                if string.sub(field, 1, 1) == 'b' then found[#found + 1] = { key, field, redis.call('HGET', key, field) } end
            end
        end
        for i, one in ipairs(found) do redis.call('HSET', one[1], one[2], found[#found + 1 - i][3]) end
        """

    @Test func codesAreThoseOfTheStandard() {
        // RFC 4231, test cases 2 and 6.
        func hex(_ bytes: [UInt8]) -> String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
        #expect(
            hex(RecordSecret(Data("Jefe".utf8)).code(of: Array("what do ya want for nothing?".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let long = RecordSecret(Data(repeating: 0xAA, count: 131))
        #expect(
            hex(long.code(of: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)))
                == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }

    @Test func everyBitOfARecordCounts() throws {
        let secret = RecordSecret(Self.secret)
        let sealed = secret.seal(Data("body and tail".utf8), bodyLength: 4, at: "name:1")
        #expect(secret.open(sealed, at: "name:1") == Data("body and tail".utf8))
        #expect(secret.open(sealed, at: "name:2") == nil)
        for index in sealed.indices {
            #expect(secret.open(sealed.prefix(index), at: "name:1") == nil)
            for bit in 0..<8 {
                var damaged = sealed
                damaged[index] ^= 1 << bit
                #expect(secret.open(damaged, at: "name:1") == nil)
            }
        }
        #expect(secret.open(secret.seal("message")) == "message")
        for text in ["", "x", "!!!!", "AAAA"] { #expect(secret.open(text) == nil) }
    }

    @Test func aUnixSocket() throws {
        let path = "/tmp/redis-storage-\(getpid()).sock"
        let server = try RedisServer(["--unixsocket", path])
        let a = try Client(.socket(path: path), on: server)
        a.store("/1")
        #expect(a.body("/1") == "body")
    }

    @Test(.enabled(if: Certificates.canBeMade, "openssl is not installed")) func encryptedConnections() async throws {
        let certificates = try Certificates()
        let server = try RedisServer(
            [
                "--port", "0", "--tls-port", "PORT", "--tls-cert-file", certificates.path("server.pem"),
                "--tls-key-file", certificates.path("server.key"), "--tls-ca-cert-file", certificates.path("ca.pem"),
                "--tls-auth-clients", "no",
            ], cli: ["--tls", "--cacert", certificates.path("ca.pem")])
        var trusting = TLSConfiguration.makeClientConfiguration()
        trusting.trustRoots = .file(certificates.path("ca.pem"))
        let a = try Client(.host("localhost", port: server.port), on: server) { $0.tls = trusting }
        a.store("/1", String(repeating: "x", count: 100_000))
        #expect(a.body("/1")?.count == 100_000)
        // By default only known authorities are trusted.
        let doubting = try Client(.host("localhost", port: server.port), on: server) {
            $0.tls = .makeClientConfiguration()
        }
        #expect(doubting.body("/1") == nil)
        await doubting.told.wait(for: .unreachable)
        #expect(doubting.told.texts.first?.contains("CERTIFICATE_VERIFY_FAILED") == true)
        // And the name must be the certificate's.
        let misled = try Client(.host("localhost", port: server.port), on: server) {
            $0.tls = trusting
            $0.tlsName = "redis.example"
        }
        #expect(misled.body("/1") == nil)
        await misled.told.wait(for: .unreachable)
        // One side encrypts, the other does not.
        let plain = try Client(.host("localhost", port: server.port), on: server)
        #expect(plain.body("/1") == nil)
        // It ends the connection in one way or the other.
        await eventually("a text") { !plain.told.texts.isEmpty }
        #expect(plain.told.texts.first?.contains("TLS") == true)
    }

    // MARK: Many processes

    @Test func eightProcessesAtOnce() throws {
        let server = try RedisServer()
        let worker = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appendingPathComponent("RedisWorker")
        try #require(FileManager.default.isExecutableFile(atPath: worker.path), "\(worker.path) is not built")
        let processes = try (0..<8).map { number in
            let process = Process()
            process.executableURL = worker
            process.arguments = ["\(server.port)", "eight", "\(number)", "400"]
            let output = Pipe()
            process.standardOutput = output
            process.standardError = output
            try process.run()
            return (process, output)
        }
        var answers = 0
        for (process, output) in processes {
            let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            #expect(process.terminationStatus == 0, "\(said)")
            answers += try #require(Int(said.trimmingCharacters(in: .newlines)), "\(said)")
        }
        #expect(answers > 0, "the test means to find something")
    }
}

/// A storage that keeps what it is given: the only way to get entries.
final class Capture: DiskURLCache.EntryStorage {
    private let kept = NIOLockedValueBox<[(String, DiskURLCache.Entry)]>([])
    var entries: [(String, DiskURLCache.Entry)] { kept.withLockedValue { $0 } }

    func entries(named name: String) -> [DiskURLCache.Entry]? { [] }
    func store(_ entry: DiskURLCache.Entry, named name: String) { kept.withLockedValue { $0.append((name, entry)) } }
    func removeEntries(matching criteria: DiskURLCache.Criteria) {}
    func flush() {}

    func store(_ path: String, tags: Set<String>) {
        var settings = DiskURLCache.Configuration(memoryCapacity: 0)
        settings.diskStorage = self
        settings.isShared = true
        let cache = DiskURLCache(configuration: settings)
        var request = request(path)
        request.cacheOptions = DiskURLCache.Options(tags: tags)
        let response = HTTPURLResponse(
            url: request.url!, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "max-age=3600"])!
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("body".utf8)), for: request)
        cache.flush()
    }
}

import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import NIOConcurrencyHelpers
import Testing

@testable import RedisStorage

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Removals of one variant: the cache does not look first whether the server has it.
@Suite(
    .serialized, .timeLimit(.minutes(5)),
    .enabled(
        if: RedisServer.isInstalled,
        "redis-server is not installed: `apt-get install redis-server`, or `.ci/run tools`"))
struct VariantRemovalTests {
    private func request(_ path: String) -> URLRequest { URLRequest(url: URL(string: "https://example.com\(path)")!) }

    private func storeInMemory(_ client: Client, _ path: String) {
        let response = HTTPURLResponse(
            url: request(path).url!, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "max-age=3600"]
        )!
        client.cache.storeCachedResponse(
            CachedURLResponse(
                response: response, data: Data("memory".utf8), userInfo: nil, storagePolicy: .allowedInMemoryOnly),
            for: request(path))
        client.cache.flush()
    }

    /// While the server does not answer, nobody can ask it what it has.
    @Test(arguments: [nil, Data(repeating: 7, count: 32)])
    func whatTheOriginTakesBackInAnOutageIsGoneAfterIt(secret: Data?) async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let (a, b) = (try Client(server) { $0.secret = secret }, try Client(server) { $0.secret = secret })
        let quick = try Client(server, memory: 1 << 20) {
            $0.timeout = 0.3
            $0.pause = 0
            $0.secret = secret
        }
        while quick.body("/1") == nil { a.store("/1", "old", fields: ["Cache-Control": "max-age=3600", "Vary": "A"]) }
        a.store("/2")
        server.wedge()
        let again = try #require(
            DiskURLCache.Request(
                url: "https://example.com/1", fields: [(name: "Cache-Control", value: "no-cache")], timeoutInterval: 60)
        )
        let stream = try await quick.cache.load(again, through: TakesBack())
        var body = Data()
        for try await piece in stream { body += piece }
        #expect(body == Data("new".utf8))
        await quick.told.wait(for: .removalDelayed)
        server.unwedge()
        await eventually("the body of /2") { quick.body("/2") != nil }
        #expect(quick.body("/1") == nil)
        #expect(b.body("/1") == nil)
    }

    /// Others would drop what they have in memory for nothing, and hear of responses that never reached the server.
    @Test func whatTheServerDoesNotHaveIsToldToNobody() throws {
        let server = try RedisServer()
        let (a, b) = (try Client(server, memory: 1 << 20), try Client(server))
        #expect(b.storage.removalsByOthers()?.isEmpty == true)
        storeInMemory(a, "/1")
        #expect(b.storage.removalsByOthers()?.isEmpty == true)
        b.store("/1")
        storeInMemory(a, "/1")
        #expect(b.storage.removalsByOthers()?.count == 1)
        #expect(b.body("/1") == nil)
        #expect(a.body("/1") == "memory")
    }

    /// What was stored in an outage may still be on its way. It comes too late if the log has a removal since.
    @Test func aStoreThatMayStillArriveIsKeptOut() async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let a = try Client(server)
        let quick = try Client(server, memory: 1 << 20) {
            $0.timeout = 0.3
            $0.pause = 0
        }
        while quick.body("/1") == nil { a.store("/1") }
        a.store("/2")
        server.wedge()
        quick.store("/1", "late")
        await quick.told.wait(for: .timedOut)
        server.unwedge()
        await eventually("the body of /2") { quick.body("/2") != nil }
        for key in try server.keys("*:e:*") { try server.cli("DEL", key) }
        func number() throws -> String { try server.cli("HGET", "diskurlcache:1:log", "n") }
        let before = try number()
        storeInMemory(quick, "/1")
        #expect(try number() != before)
    }

    /// The same removal again and again is one: more than 512 different ones are a removal of everything.
    @Test(arguments: [true, false]) func aRemovalThatIsDelayedAgainIsOne(isSame: Bool) async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let a = try Client(server)
        let quick = try Client(server, memory: 1 << 20) {
            $0.timeout = 0.3
            $0.pause = 1
        }
        while quick.body("/2") == nil { a.store("/2") }
        a.store("/3")
        server.wedge()
        for number in 0..<600 { quick.cache.removeCachedResponse(for: request(isSame ? "/1" : "/x\(number)")) }
        await quick.told.wait(for: .removalDelayed)
        server.unwedge()
        quick.cache.removeAllCachedResponses(from: .memory)
        // What was delayed is sent before anything is found.
        await eventually("a response that is stored after it") {
            a.store("/4")
            return quick.body("/4") != nil
        }
        for path in ["/2", "/3"] { #expect((a.body(path) != nil) == isSame, "\(path)") }
    }

    /// An outage in which many different responses are stored for memory only does not empty the cache of all machines.
    /// Of those that are more than are noted, this process still removes the older ones before it uses them.
    @Test(arguments: [600, 2_200]) func manyDelayedRemovalsOfVariantsRemoveNothingElse(count: Int) async throws {
        let server = try RedisServer()
        defer { server.unwedge() }
        let (a, b) = (try Client(server), try Client(server))
        let quick = try Client(server, memory: 1 << 20) {
            $0.timeout = 0.3
            $0.pause = 1
        }
        while quick.body("/other") == nil { a.store("/other") }
        for path in ["/0", "/500", "/\(count - 1)"] { a.store(path, "old") }
        a.store("/tagged", tags: ["x"])
        server.wedge()
        for number in 0..<count { storeInMemory(quick, "/\(number)") }
        quick.cache.removeCachedResponses(tag: "x")
        server.unwedge()
        quick.cache.removeAllCachedResponses(from: .memory)
        await eventually("the body of /other") { quick.body("/other") != nil }
        #expect(b.body("/0") == nil && b.body("/500") == nil)
        #expect(b.body("/tagged") == nil)
        #expect(quick.body("/\(count - 1)") == nil)
        #expect(b.body("/\(count - 1)") == nil)
    }

    /// Another program may have put anything there.
    @Test func aNameOfAnotherTypeIsRemoved() throws {
        let server = try RedisServer()
        let a = try Client(server, memory: 1 << 20)
        a.store("/1")
        let key = try #require(try server.keys("*:e:*").first)
        try server.cli("DEL", key)
        try server.cli("SET", key, "text")
        storeInMemory(a, "/1")
        #expect(try server.keys("*:e:*").isEmpty)
        a.store("/2")
        #expect(a.told.codes.isEmpty && a.body("/2") == "body")
    }
}

/// An origin that no longer lets its response be stored.
private struct TakesBack: DiskURLCache.Transport {
    func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        receiver.receive(DiskURLCache.Head(status: 200, fields: [("Cache-Control", "no-store")]))
        await receiver.receive(Data("new".utf8))
    }
}

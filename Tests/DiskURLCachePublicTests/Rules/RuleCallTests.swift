import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A rule's closure is the app's code: it is called once for each request that a load sends, whatever the load does.
@Suite struct RuleCallTests {
    private let scratch: ScratchDirectory
    private let clock = ManualClock()
    private let calls = Guarded(0)
    private let cache: DiskURLCache

    init() throws {
        scratch = try ScratchDirectory("rule-calls")
        var configuration = DiskURLCache.Configuration(in: scratch, clock: clock)
        configuration.rules = [
            DiskURLCache.Rule(
                for: .request { [calls] _ in
                    calls.withLock { $0 += 1 }
                    return true
                }, tags: ["a"]),
            DiskURLCache.Rule(for: .contentType("text/*"), minimumDiskLifetime: 1),
        ]
        cache = DiskURLCache(configuration: configuration)
    }

    private func callsOf(_ load: () async throws -> Void) async throws -> Int {
        calls.withLock { $0 = 0 }
        try await load()
        return calls.withLock { $0 }
    }

    @Test func aLoadCallsARuleOnceForEachRequest() async throws {
        let network = ClosureTransport { request, exchange in
            if request.value(forHTTPHeaderField: "If-None-Match") != nil {
                exchange.head(304, ["ETag": "\"1\"", "Cache-Control": "max-age=60"])
            } else if request.url?.path == "/from" {
                exchange.head(301, ["Location": "/a"])
            } else {
                exchange.head(
                    200, ["ETag": "\"1\"", "Cache-Control": "max-age=60", "Content-Type": "text/plain"])
                await exchange.piece("text")
            }
        }
        func load(_ path: String) async throws {
            let answer = try await cache.answer(to: Responses.request(path), through: network)
            #expect(answer.data == Data("text".utf8))
        }
        #expect(try await callsOf { try await load("/a") } == 1, "a first load that is stored")
        #expect(try await callsOf { try await load("/a") } == 1, "a hit")
        clock.advance(by: 100)
        #expect(try await callsOf { try await load("/a") } == 1, "a 304")
        #expect(network.requests.count == 2)
        #expect(try await callsOf { try await load("/from") } == 2, "a redirect, and the request that follows it")
        cache.removeCachedResponses(tag: "a")
        #expect(cache.cachedResponse(for: Responses.request("/a")) == nil, "the rule held for what was stored")
    }

    #if canImport(FoundationNetworking)
        /// Also where a cookie of the session is added to the request.
        @Test func aDirectCallWithACookieCallsARuleOnce() async throws {
            let origin = try OriginServer { _ in .ok("text") }
            let url = origin.url("/a")
            let configuration = URLSessionConfiguration.ephemeral.patient
            let cookie = HTTPCookie(properties: [
                .name: "a", .value: "1", .path: "/", .domain: url.host ?? "", .version: "0",
            ])
            try #require(configuration.httpCookieStorage).setCookie(try #require(cookie))
            let session = URLSession(configuration: configuration)
            let calls = try await callsOf { _ = try await cache.data(for: URLRequest(url: url), session: session) }
            #expect(calls == 1 && origin.requests.first?.fields["Cookie"] == "a=1")
        }

        /// Which the cache leaves to Foundation, and after which it may have to remove something.
        @Test(.enabled(if: LoadingHarness.storesForSessions)) func aPostOfASessionCallsARuleOnce() async throws {
            let origin = try OriginServer { _ in .ok("text") }
            let session = cache.makeSession(configuration: .ephemeral.patient)
            defer { session.invalidateAndCancel() }
            var post = URLRequest(url: origin.url("/a"))
            post.httpMethod = "POST"
            post.httpBody = Data("body".utf8)
            #expect(try await callsOf { _ = try await session.data(for: post) } == 1)
        }
    #endif

    @Test func aCallOfTheAppCallsARuleOnce() async throws {
        let request = Responses.request("/a")
        let stored = Responses.cached(Responses.url("/a"))
        #expect(try await callsOf { cache.storeCachedResponse(stored, for: request) } == 1)
        #expect(try await callsOf { _ = cache.cachedResponse(for: request) } == 1)
        #expect(try await callsOf { _ = cache.contains(request) } == 1)
        #expect(try await callsOf { _ = try await cache.data(for: request) } == 1)
    }
}

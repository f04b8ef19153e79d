import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Answers of memory to direct questions take no driver: they must be what a load would have said.
@Suite(.fewAtATime) struct MemoryHitTests {
    let scratch: ScratchDirectory
    let clock = ManualClock()

    init() throws {
        scratch = try ScratchDirectory("memory-hit")
    }

    private func cache(_ change: (inout DiskURLCache.Configuration) -> Void = { _ in }) -> DiskURLCache {
        DiskURLCache(in: scratch, clock: clock, change)
    }

    /// A network that is not to be asked: its answer would be an error.
    private static func failingNetwork() -> MemoryTransport {
        MemoryTransport { _, exchange in exchange.end(URLError(.notConnectedToInternet)) }
    }

    /// What is stored, and what is asked; true where memory answers alone.
    struct Case: CustomStringConvertible, Sendable {
        var name: String
        var stored: [String: String] = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
        var status = 200
        var asked: [String: String] = [:]
        var policy = URLRequest.CachePolicy.useProtocolCachePolicy
        var method = "GET"
        var seconds: TimeInterval = 10
        var answers: Bool
        var description: String { name }
    }

    static let cases = [
        Case(name: "fresh", answers: true),
        Case(name: "fresh, with Age", stored: ["Cache-Control": "max-age=60", "Age": "20"], answers: true),
        Case(
            name: "of the variant asked for", stored: ["Cache-Control": "max-age=60", "Vary": "Accept"],
            asked: ["Accept": "a"], answers: true),
        Case(name: "not found, fresh", status: 404, answers: true),
        Case(name: "fresh enough for the request", asked: ["Cache-Control": "max-age=20"], answers: true),
        Case(name: "too old for the request", asked: ["Cache-Control": "max-age=5"], answers: false),
        Case(name: "the request wants it confirmed", asked: ["Cache-Control": "no-cache"], answers: false),
        Case(name: "stale", seconds: 100, answers: false),
        Case(
            name: "stale, and allowed to be", stored: ["Cache-Control": "max-age=60, stale-while-revalidate=600"],
            seconds: 100, answers: false),
        Case(name: "stale, and the policy takes it", policy: .returnCacheDataElseLoad, seconds: 100, answers: true),
        Case(name: "the policy wants it confirmed", policy: .reloadRevalidatingCacheData, answers: false),
        Case(name: "the policy wants it loaded", policy: .reloadIgnoringLocalCacheData, answers: false),
        Case(name: "to be confirmed always", stored: ["Cache-Control": "no-cache", "ETag": "\"1\""], answers: false),
        Case(
            name: "a redirect", stored: ["Cache-Control": "max-age=60", "Location": "/b"], status: 301, answers: false),
        Case(name: "a part", asked: ["Range": "bytes=0-1"], answers: true),
        Case(name: "a condition that is met", asked: ["If-None-Match": "\"1\""], answers: true),
    ]

    /// A fresh response is used, and the network is not asked; every other load asks it.
    @Test(arguments: cases, [nil, "cache"])
    func memoryAnswersWithoutTheNetwork(_ example: Case, cacheStatusName: String?) async throws {
        let cache = cache { $0.cacheStatusName = cacheStatusName }
        var request = Responses.request("/a", fields: example.asked)
        cache.storeCachedResponse(
            Responses.cached(Responses.url("/a"), status: example.status, fields: example.stored), for: request)
        // Memory learns from the disk whether there are other variants.
        _ = cache.cachedResponse(for: request)
        clock.advance(by: example.seconds)
        request.cachePolicy = example.policy
        request.httpMethod = example.method
        let network = Self.failingNetwork()
        let answer = try? await LoadReader(request, from: cache, over: network).answer()
        #expect(network.requests.isEmpty == example.answers)
        guard example.answers else { return }
        let loaded = try #require(answer)
        #expect(loaded.isStale == (example.seconds > 60))
        #expect(loaded.response.url == request.url && loaded.report.url == request.url)
        #expect(loaded.report.bytes == loaded.data.count && loaded.report.requestedAt == nil)
        #expect((loaded.response.value(forHTTPHeaderField: "Cache-Status") != nil) == (cacheStatusName != nil))
    }

    @Test(arguments: ["", "x", "text"]) func theWholeBodyIsDelivered(_ body: String) async throws {
        let cache = cache()
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), body), for: request)
        let answer = try await LoadReader(request, from: cache, over: Self.failingNetwork()).answer()
        #expect(answer.data == Data(body.utf8))
    }

    /// The cookies of a session are asked for only where they make a difference, and there they do.
    @Test(arguments: ["Vary", "key", "neither"]) func anAnswerForNoCookiesIsNotForAllCookies(by place: String)
        async throws
    {
        let cache = cache { configuration in
            if place == "key" { configuration.keyPolicy = .standard.includingFields("Cookie") }
        }
        var request = Responses.request("/a")
        request.cachePolicy = .returnCacheDataDontLoad
        var fields = ["Cache-Control": "max-age=60"]
        if place == "Vary" { fields["Vary"] = "Cookie" }
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), fields: fields), for: request)
        _ = cache.cachedResponse(for: request)
        let configuration = URLSessionConfiguration.ephemeral
        let session = URLSession(configuration: configuration)
        #expect(try await cache.data(for: request, session: session).data == Data("body".utf8))
        let cookie = try #require(
            HTTPCookie(properties: [.domain: "example.com", .path: "/", .name: "a", .value: "1"]))
        session.configuration.httpCookieStorage?.setCookie(cookie)
        let answer = try? await cache.data(for: request, session: session)
        #expect((answer == nil) == (place != "neither"))
    }

    /// Listeners and statistics hear of it as of a load.
    @Test func isCountedAndTold() async throws {
        let cache = cache()
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: request)
        let events = cache.events()
        let before = cache.statistics
        #expect(try await cache.data(for: request).source == .stored(.memory))
        #expect(cache.statistics.memoryHits == before.memoryHits + 1)
        #expect(cache.statistics.bytesSaved == before.bytesSaved + 4)
        let report = await events.report()
        #expect(report?.outcome == .hit(.memory) && report?.bytes == 4)
    }

    @Test func anOfflineCacheAnswersWhatIsStale() async throws {
        let cache = cache()
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: request)
        cache.isOffline = true
        clock.advance(by: 7200)
        #expect(try await cache.data(for: request).isStale)
    }
}

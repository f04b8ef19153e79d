import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a shared cache does otherwise than a private one (RFC 9111 §3, §3.5, §5.2.2). Each rule is seen to leave a
/// private cache as it was.
@Suite(.fewAtATime) struct SharedCacheTests {
    private static func cache(isShared: Bool) -> PureCache {
        var cache = PureCache()
        cache.options.isShared = isShared
        return cache
    }

    private static func refusal(
        isShared: Bool = true, of request: HeaderFields = [:], _ fields: HeaderFields
    ) -> DiskURLCache.Reason? {
        var cache = cache(isShared: isShared)
        _ = cache.load(request, answer: fields)
        guard case .refuse(let reason) = cache.lastVerdict else { return nil }
        return reason
    }

    @Test(arguments: [
        "private, max-age=60", "max-age=60, PRIVATE", "private=\"\", max-age=60", "private=x y, max-age=60",
        "public, private, s-maxage=60",
    ])
    func privateIsNotStored(_ control: String) {
        #expect(Self.refusal(["Cache-Control": control]) == .private)
        #expect(Self.refusal(isShared: false, ["Cache-Control": control]) == nil)
    }

    /// RFC 9111 §5.2.2.7: the qualified form withholds the fields only.
    @Test func privateFieldsAreNotStored() {
        for isShared in [true, false] {
            var cache = Self.cache(isShared: isShared)
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60, private=\"X-User, x-other\"", "X-User": "a", "X-Other": "b", "X-All": "c",
                "ETag": "\"1\"",
            ]
            _ = cache.load(answer: fields)
            let answer = cache.load()
            #expect(answer.source == .stored)
            #expect(answer.fields["X-All"] == "c")
            #expect(answer.fields["X-User"] == (isShared ? nil : "a"))
            #expect(answer.fields["X-Other"] == (isShared ? nil : "b"))
            // A 304 brings none of them into the store.
            cache.now += 61
            #expect(cache.load(status: 304, answer: fields).source == .validated)
            #expect(cache.load().fields["X-User"] == (isShared ? nil : "a"))
        }
    }

    @Test func whatSetsACookieIsNotStored() {
        let fields: HeaderFields = ["Cache-Control": "public, max-age=60", "Set-Cookie": "session=1"]
        #expect(Self.refusal(fields) == .setCookie)
        #expect(Self.refusal(isShared: false, fields) == nil)
    }

    /// RFC 9111 §3.5
    @Test(arguments: [
        ("max-age=60", false), ("proxy-revalidate, max-age=60", false), ("public, max-age=60", true),
        ("must-revalidate, max-age=60", true), ("s-maxage=60", true),
    ])
    func answersToAuthorizedRequests(_ control: String, isStored: Bool) {
        let request: HeaderFields = ["authorization": "Basic x"]
        #expect(Self.refusal(of: request, ["Cache-Control": control]) == (isStored ? nil : .authorization))
        #expect(Self.refusal(isShared: false, of: request, ["Cache-Control": control]) == nil)
    }

    /// As §3.5 says of `Authorization`: users whom a cookie tells apart are kept apart.
    @Test(
        arguments: [
            (["Cache-Control": "max-age=60"], false), (["Cache-Control": "max-age=60", "Vary": "Accept"], false),
            (["Cache-Control": "public, max-age=60"], true), (["Cache-Control": "must-revalidate, max-age=60"], false),
            (["Cache-Control": "s-maxage=60"], true),
            (["Cache-Control": "max-age=60", "Vary": "Accept, cookie"], true),
        ] as [(HeaderFields, Bool)])
    func answersToRequestsWithACookie(_ fields: HeaderFields, isStored: Bool) {
        let request: HeaderFields = ["cookie": "a=b"]
        #expect(Self.refusal(of: request, fields) == (isStored ? nil : .cookie))
        #expect(Self.refusal(fields) == nil, "without a cookie")
        #expect(Self.refusal(isShared: false, of: request, fields) == nil)
        var cache = Self.cache(isShared: true)
        for change in [\CachingOptions.keysCookie, \.isCautious] {
            cache.options = CachingOptions()
            cache.options.isShared = true
            cache.options[keyPath: change].toggle()
            cache.entries = []
            _ = cache.load(request, answer: fields)
            #expect(!cache.entries.isEmpty)
        }
    }

    /// What states no lifetime is not shared by a guess.
    @Test func heuristicsNeedPublic() {
        for (isShared, isCautious) in [(true, true), (true, false), (false, true)] {
            for control in ["", "public"] {
                var cache = Self.cache(isShared: isShared)
                cache.options.isCautious = isCautious
                _ = cache.load(answer: [
                    "Cache-Control": control, "Last-Modified": httpDate(-86_400), "Date": httpDate(),
                ])
                let isFresh = control == "public" || !isShared || !isCautious
                #expect((cache.load { _ in nil }.source == .stored) == isFresh)
            }
        }
    }

    /// RFC 9111 §5.2.2.10
    @Test(arguments: [
        ("max-age=10, s-maxage=60", true, 60), ("max-age=60, s-maxage=10", true, 10),
        ("s-maxage=x, max-age=60", true, 0),
        ("max-age=10, s-maxage=60", false, 10), ("max-age=60, s-maxage=10", false, 60),
    ])
    func lifetime(_ control: String, isShared: Bool, seconds: TimeInterval) {
        var cache = Self.cache(isShared: isShared)
        _ = cache.load(answer: ["Cache-Control": control, "Expires": httpDate(5000)])
        cache.now += max(0, seconds - 1)
        #expect(cache.load().source == (seconds > 0 ? .stored : .origin))
        cache.now += 1
        #expect(cache.load().source == .origin)
    }

    /// RFC 9111 §5.2.2.2, §5.2.2.8, §5.2.2.10: nothing allows to use what is stale.
    @Test(arguments: ["max-age=10, proxy-revalidate", "s-maxage=10", "max-age=10, must-revalidate"])
    func staleUse(_ directives: String) {
        for isShared in [true, false] {
            var cache = Self.cache(isShared: isShared)
            cache.options.lifetime = .asServed
            let control = directives + ", stale-while-revalidate=100, stale-if-error=100"
            let fields: HeaderFields = [
                "Cache-Control": control.replacingOccurrences(of: "s-maxage", with: isShared ? "s-maxage" : "max-age")
            ]
            _ = cache.load(answer: fields)
            cache.now += 20
            let isAllowed = !isShared && !directives.contains("must-revalidate")
            var inError = cache
            #expect(inError.load { _ in nil }.source == (isAllowed ? .stored : .unsatisfiable))
            var asked = cache
            #expect(asked.load(["Cache-Control": "max-stale"]).source == (isAllowed ? .stored : .origin))
            #expect(cache.load().source == (isAllowed ? .stored : .origin))
        }
    }

    /// A 304 or the answer to a HEAD that turns a stored response into one user's ends it.
    @Test(arguments: ["304", "HEAD"], ["Set-Cookie", "Cache-Control"])
    func updatesThatMakeItOneUsers(_ way: String, field: String) {
        for isShared in [true, false] {
            var cache = Self.cache(isShared: isShared)
            _ = cache.load(answer: ["Cache-Control": "max-age=10", "ETag": "\"1\""])
            let update: HeaderFields = [
                "ETag": "\"1\"", "Cache-Control": field == "Cache-Control" ? "private, max-age=10" : "max-age=10",
                field == "Set-Cookie" ? "Set-Cookie" : "X-Nothing": "a=b",
            ]
            cache.now += 20
            if way == "304" {
                #expect(cache.load(status: 304, answer: update).source == .validated)
            } else {
                _ = cache.load(method: "HEAD", answer: update, body: "")
            }
            #expect(cache.entries.isEmpty == isShared)
        }
    }

    // MARK: The cache

    private static func open(_ folder: URL, isShared: Bool) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 16 << 20, directory: folder)
        configuration.isShared = isShared
        return DiskURLCache(configuration: configuration)
    }

    /// Foundation sends `Authorization` for them (RFC 9111 §3.5).
    @Test(arguments: [("max-age=60", false), ("public, max-age=60", true)])
    func credentialsOfTheURL(_ control: String, isStored: Bool) throws {
        let scratch = try ScratchDirectory()
        let url = try #require(URL(string: "https://user:secret@example.com/a"))
        let response = Responses.cached(url, fields: ["Cache-Control": control])
        for (isShared, url) in [(true, url), (false, url), (true, Responses.url("/@user/a"))] {
            let cache = Self.open(scratch.appending(UUID().uuidString), isShared: isShared)
            cache.storeCachedResponse(response, for: URLRequest(url: url))
            let isFound = cache.cachedResponse(for: URLRequest(url: url)) != nil
            #expect(isFound == (isStored || !isShared || url.user == nil))
        }
    }

    /// What an app stored for one user is not found by a server that opens the same folder, nor does the app find what
    /// the server stored.
    @Test func onOneFolder() throws {
        let scratch = try ScratchDirectory()
        let request = Responses.request("/a", fields: ["Authorization": "x"])
        let response = Responses.cached(Responses.url("/a"), "mine", fields: ["Cache-Control": "public, max-age=60"])
        for isShared in [false, true] {
            let folder = scratch.appending("\(isShared)")
            let cache = Self.open(folder, isShared: isShared)
            cache.storeCachedResponse(response, for: request)
            cache.flush()
            let other = Self.open(folder, isShared: !isShared)
            #expect(other.cachedResponse(for: request) == nil)
            #expect(cache.cachedResponse(for: request)?.data == response.data)
            cache.store.close()
            #expect(Self.open(folder, isShared: isShared).cachedResponse(for: request) != nil)
        }
    }

    /// The default is the safe one; a key policy with `Cookie`, or the setting, takes it back.
    @Test(arguments: ["default", "keyed", "ruled", "trusting"]) func cookies(_ setting: String) throws {
        let scratch = try ScratchDirectory()
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        configuration.directory = scratch.appending("c")
        configuration.isShared = true
        let byCookie = DiskURLCache.KeyPolicy.standard.includingFields("Cookie")
        switch setting {
        case "keyed": configuration.keyPolicy = byCookie
        case "ruled":
            configuration.keyPolicies["c"] = byCookie
            configuration.rules = [DiskURLCache.Rule(for: .all, keyPolicy: "c")]
        case "trusting": configuration.sharesCautiously = false
        default: break
        }
        let cache = DiskURLCache(configuration: configuration)
        let request = Responses.request("/a", fields: ["Cookie": "session=1"])
        let response = Responses.cached(Responses.url("/a"), fields: ["Cache-Control": "max-age=60"])
        cache.storeCachedResponse(response, for: request)
        #expect(cache.contains(request) == (setting != "default"))
        let http = try #require(response.response as? HTTPURLResponse)
        let explained = cache.explanation(for: request, response: http)
        #expect(explained.notStoredReason == (setting == "default" ? .cookie : nil))
    }

    @Test func storedByHand() throws {
        let scratch = try ScratchDirectory()
        let cache = Self.open(scratch.appending("c"), isShared: true)
        let request = Responses.request("/a")
        func store(_ fields: [String: String]) {
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "body", fields: fields), for: request)
        }
        store(["Cache-Control": "max-age=60"])
        #expect(cache.contains(request))
        // The app does not want the older one served any more.
        store(["Cache-Control": "private, max-age=60"])
        #expect(!cache.contains(request))
        store(["Cache-Control": "max-age=60", "Set-Cookie": "a=b"])
        #expect(!cache.contains(request))
        #expect(
            cache.explanation(
                for: request,
                response: HTTPURLResponse(
                    url: Responses.url("/a"), statusCode: 200, httpVersion: nil,
                    headerFields: ["Cache-Control": "private, max-age=60"])
            ).notStoredReason == .private)
    }

    /// The key is made before the type is known, so such a rule does not tell users apart.
    @Test func aRuleByTypeKeysNoCookie() throws {
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        configuration.isShared = true
        configuration.keyPolicies["c"] = .standard.includingFields("Cookie")
        configuration.rules = [DiskURLCache.Rule(for: .contentType("text/html"), keyPolicy: "c")]
        let cache = DiskURLCache(configuration: configuration)
        #expect(cache.openingError?.code == .invalidRule(index: 0))
        let request = Responses.request("/a", fields: ["Cookie": "session=1"])
        let fields = ["Cache-Control": "max-age=60", "Content-Type": "text/html"]
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), fields: fields), for: request)
        #expect(!cache.contains(request))
    }

    /// Neither a direct call nor a refresh in the background sends a user's cookies.
    @Test func aRefreshHasNoCookiesOfTheProcess() async throws {
        let origin = try OriginServer.counting(["Cache-Control": "public, max-age=1, stale-while-revalidate=600"])
        // A name that the other tests do not use: they share the process's cookies.
        let url = try #require(URL(string: "http://localhost:\(origin.port)/a"))
        let jar = HTTPCookieStorage.shared
        let cookie = try #require(
            HTTPCookie(properties: [.name: "user", .value: "1", .domain: "localhost", .path: "/"]))
        jar.setCookie(cookie)
        defer { jar.deleteCookie(cookie) }
        let scratch = try ScratchDirectory("shared")
        let clock = ManualClock()
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 8 << 20, directory: scratch.appending("cache"))
        settings.isShared = true
        settings.clock = clock.wallClock
        let cache = DiskURLCache(configuration: settings)
        _ = try await cache.data(from: url)
        clock.advance(by: 60)
        #expect(try await cache.data(from: url).isStale)
        await eventually("two requests") { origin.requests.count == 2 }
        #expect(origin.requests.allSatisfy { $0.fields["Cookie"] == nil })
    }
}

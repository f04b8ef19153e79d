import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.fewAtATime) struct RulesTests {
    typealias Rule = DiskURLCache.Rule
    typealias Treatment = DiskURLCache.Options
    let scratch: ScratchDirectory
    let clock = ManualClock()

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func makeCache(
        _ rules: [Rule] = [], _ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
    ) throws -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.appending("cache"))
        configuration.clock = clock.wallClock
        configure(&configuration)
        configuration.rules = rules
        return DiskURLCache(configuration: configuration)
    }

    private var records: [String] { scratch.files().filter { $0.contains("records/") } }

    // MARK: Precedence

    /// The other options count, whatever a length of time says.
    @Test(arguments: [(TimeInterval.infinity, 3_153_600_000), (.nan, 0), (-.infinity, 0)])
    func aLengthOfTimeThatIsNotFiniteLosesNoOption(seconds: TimeInterval, counts: TimeInterval) {
        var request = Responses.request("/a")
        request.cacheOptions = .init(storage: .memoryOnly, lifetime: .always(.seconds(seconds)))
        #expect(request.cacheOptions?.storage == .memoryOnly)
        #expect(request.cacheLifetime == .seconds(counts))
        request.cacheLifetime = .seconds(.infinity)
        #expect(request.cacheOptions?.storage == .memoryOnly)
    }

    @Test(arguments: ["application/json\t; a=b", "application/json, application/json", "text/x, Application/JSON"])
    func aRuleByContentTypeSeesEachSpelling(type: String) async throws {
        let cache = try makeCache([.init(for: .contentType("application/json"), storage: .never)])
        _ = try await answer(from: cache, type: type, ["Cache-Control": "max-age=60"])
        #expect(cache.statistics.stores == 0)
        _ = try await answer(from: cache, type: "application/jsonp", ["Cache-Control": "max-age=60"])
        #expect(cache.statistics.stores == 1)
    }

    @Test func theRequestComesBeforeTheRulesAndTheRulesInOrder() throws {
        let cache = try makeCache([
            Rule(for: .url("https://example.com/a*"), lifetime: .always(1), tags: ["a"]),
            Rule(for: .host("example.com"), lifetime: .always(2), staleIfError: 20, tags: ["host"]),
            Rule(for: .all, lifetime: .always(3), staleWhileRevalidate: 300, staleIfError: 30),
        ])
        var request = Responses.request("/abc")
        #expect(cache.resolve(request).options.lifetime == .always(1))
        #expect(cache.resolve(request).options.staleIfError == 20)
        #expect(cache.resolve(request).options.staleWhileRevalidate == 300)
        #expect(cache.resolve(request).options.tags == ["a", "host"])
        #expect(cache.resolve(Responses.request("/b")).options.lifetime == .always(2))
        #expect(
            cache.resolve(URLRequest(url: URL(string: "https://other.org/")!)).options.lifetime
                == .always(3))
        request.cacheOptions = Treatment(lifetime: .whenMissing(9), tags: ["mine"])
        #expect(cache.resolve(request).options.lifetime == .whenMissing(9))
        #expect(cache.resolve(request).options.staleIfError == 20)
        #expect(cache.resolve(request).options.tags == ["a", "host", "mine"])
        request.cacheOptions = nil
        #expect(cache.resolve(request).options.lifetime == .always(1))
    }

    @Test func aTreatmentTravelsWithItsRequest() throws {
        var request = Responses.request("/a", fields: ["X": "y"])
        request.httpMethod = "POST"
        request.httpBody = Data("b".utf8)
        let cacheOptions = Treatment(
            storage: .memoryOnly, lifetime: .always(.seconds(1.5)), staleWhileRevalidate: 2, staleIfError: 3,
            minimumDiskLifetime: 4, keyPolicy: "k", tags: ["t", "ü / ?#"], isPinned: false)
        request.cacheOptions = cacheOptions
        #expect(request.cacheOptions == cacheOptions)
        request.setValue("z", forHTTPHeaderField: "X")
        #expect(request.cacheOptions == cacheOptions)
        #expect(request.httpBody == Data("b".utf8))
        let task = URLSession(configuration: .ephemeral).dataTask(with: request)
        #expect(task.originalRequest?.cacheOptions == cacheOptions)
        task.cancel()
        request.cacheOptions = nil
        #expect(request.cacheOptions == nil)
    }

    @Test(arguments: [
        Treatment(), Treatment(storage: .memoryAndDisk), Treatment(storage: .never, isPinned: true),
        Treatment(storage: .memoryOnly), Treatment(lifetime: .whenMissing(7)), Treatment(lifetime: .always(0)),
        Treatment(keyPolicy: "k", tags: ["t"]),
    ])
    func eachTreatmentArrivesAsItLeft(_ cacheOptions: Treatment) {
        var request = Responses.request("/a")
        request.cacheOptions = cacheOptions
        #expect(request.cacheOptions == cacheOptions)
    }

    @Test(arguments: [
        ("*", "anything", true), ("", "", true), ("", "a", false), ("a*c", "abc", true), ("a*c", "ac", true),
        ("a*c", "acb", false), ("*.png", "x.png", true), ("*.png", "x.png?y", false), ("a**b", "axxb", true),
        ("a*b*c", "a1b2b3c", true), ("a?c", "abc", false), ("image/*", "image/svg+xml", true),
    ])
    func patterns(pattern: String, text: String, matches: Bool) {
        #expect(Glob.matches(pattern.utf8, text.utf8) == matches)
    }

    @Test func aHostilePatternTakesNoForever() {
        let pattern = String(repeating: "a*", count: 500) + "b"
        #expect(!Glob.matches(pattern.utf8, String(repeating: "a", count: 5_000).utf8))
    }

    @Test func hostsIncludeSubdomains() {
        let rule = Rule(for: .host("Example.com"), tags: ["x"])
        func matches(_ url: String) -> Bool {
            rule.mayApply(
                to: DiskURLCache.Request(URLRequest(url: URL(string: url)!)),
                canonicalURL: URLCanonicalizer.canonical(url), json: nil)
        }
        #expect(matches("https://example.com/"))
        #expect(matches("https://API.example.com:8443/x"))
        #expect(!matches("https://badexample.com/"))
        #expect(!matches("https://example.com.evil.org/"))
    }

    // MARK: What options do

    @Test func lifetimes() async throws {
        let origin = try OriginServer { request in
            switch request.path {
            case "/image": .ok("i", ["Content-Type": "image/png; q=1"])
            case "/short": .ok("s", ["Cache-Control": "max-age=1", "Content-Type": "text/css"])
            case "/nostore": .ok("n", ["Cache-Control": "no-store"])
            default: .ok("p")
            }
        }
        let cache = try makeCache([
            Rule(for: .contentType("image/*"), lifetime: .whenMissing(.days(7))),
            Rule(for: .contentType("text/css"), lifetime: .always(1_000)),
            Rule(for: .url("*/nostore"), lifetime: .always(1_000)),
        ])
        for path in ["/image", "/short", "/nostore", "/plain"] { _ = try await cache.data(from: origin.url(path)) }
        clock.advance(by: 500)
        #expect(try await cache.data(from: origin.url("/image")).source == .stored(.memory))
        #expect(try await cache.data(from: origin.url("/short")).source == .stored(.memory))
        #expect(try await cache.data(from: origin.url("/nostore")).source == .network)
        #expect(try await cache.data(from: origin.url("/plain")).source == .network)
    }

    @Test func whereResponsesAreKept() async throws {
        let origin = try OriginServer { _ in .ok("x", ["Cache-Control": "max-age=1000"]) }
        let cache = try makeCache([
            Rule(for: .url("*/private*"), storage: .memoryOnly),
            Rule(for: .url("*/never*"), storage: .never),
        ])
        for _ in 0..<2 {
            for path in ["/private", "/never"] { _ = try await cache.data(from: origin.url(path)) }
        }
        cache.flush()
        #expect(records.isEmpty)
        #expect(origin.requests.map(\.path) == ["/private", "/never", "/never"])
        var optOut = URLRequest(url: origin.url("/public"))
        optOut.cacheOptions = Treatment(storage: .never)
        _ = try await cache.data(for: optOut)
        #expect(!cache.contains(URLRequest(url: origin.url("/public"))))
    }

    @Test func whatExpiresSoonStaysOffTheDisk() async throws {
        let origin = try OriginServer { request in .ok("x", ["Cache-Control": "max-age=\(request.path.dropFirst())"]) }
        let cache = try makeCache { $0.minimumDiskLifetime = 300 }
        for path in ["/60", "/299", "/300", "/3000"] { _ = try await cache.data(from: origin.url(path)) }
        cache.flush()
        #expect(records.count == 2)
        #expect(cache.contains(URLRequest(url: origin.url("/60"))), "in memory")
    }

    /// Where a response may live is decided once: neither a 304 nor a pin puts on disk what expires too soon for it.
    @Test func whatStaysOffTheDiskStaysOffAfterAnUpdate() async throws {
        let origin = try OriginServer { request in
            let fields: OriginFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
            return request.fields["If-None-Match"] == nil ? .ok("x", fields) : .status(304, "", fields)
        }
        let clock = ManualClock()
        let cache = try makeCache {
            $0.minimumDiskLifetime = 300
            $0.clock = clock.wallClock
        }
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 100)
        #expect(try await cache.data(for: request).source == .revalidated(.memory))
        #expect(cache.setPinned(true, for: request))
        cache.flush()
        #expect(records.isEmpty)
        #expect(try await cache.data(for: request).source == .stored(.memory))
    }

    /// A 304 for another variant says that its body is the same, not that the app would keep it in the same way.
    @Test(arguments: ["option", "closure", "tag"])
    func whatA304AddsForAnotherVariantHasNoMoreThanTheFirst(what: String) async throws {
        let network = MemoryTransport { request, exchange in
            let isConditional = request.value(forHTTPHeaderField: "If-None-Match") != nil
            exchange.head(
                isConditional ? 304 : 200,
                ["Cache-Control": "max-age=600", "ETag": "\"1\"", "Vary": "Accept-Language"])
            if !isConditional { exchange.piece("body") }
            exchange.end()
        }
        let cache = try makeCache {
            guard what == "closure" else { return }
            $0.willCacheResponse = { response, _ in
                CachedURLResponse(
                    response: response.response, data: response.data, userInfo: nil,
                    storagePolicy: .allowedInMemoryOnly)
            }
        }
        var english = Responses.request("/a", fields: ["Accept-Language": "en"])
        let german = Responses.request("/a", fields: ["Accept-Language": "de"])
        switch what {
        case "option": english.cacheOptions = Treatment(storage: .memoryOnly)
        case "tag": english.cacheOptions = Treatment(tags: ["account"])
        default: break
        }
        _ = try await LoadReader(english, from: cache, over: network).answer()
        #expect(try await LoadReader(german, from: cache, over: network).answer().data == Data("body".utf8))
        cache.flush()
        if what == "tag" {
            cache.removeCachedResponses(tag: "account")
            #expect(!cache.contains(german))
        }
        #expect(records.isEmpty)
    }

    /// It may be there from before the rule.
    @Test func aRuleByContentTypeKeepsOutWhatIsStored() async throws {
        let said: HeaderFields = ["Cache-Control": "max-age=1000"]
        let first = try makeCache()
        _ = try await answer(from: first, type: "application/pdf", said)
        first.flush()
        #expect(records.count == 1)
        let later = try makeCache([Rule(for: .contentType("application/pdf"), storage: .never)])
        #expect(later.cachedResponse(for: Responses.request("/a")) == nil)
        #expect(try await answer(from: later, type: "text/plain", said) == "200 text/plain")
    }

    @Test(arguments: [true, false]) func aRuleByContentTypeSaysWhetherItsURLIsInvalidated(isOfRule: Bool) async throws {
        let cache = try makeCache([Rule(for: .contentType("application/json"), invalidatesURL: false)])
        _ = try await answer(from: cache, type: "text/plain", ["Cache-Control": "max-age=1000"])
        var post = Responses.request("/a")
        post.httpMethod = "POST"
        let network = MemoryTransport { _, exchange in
            exchange.head(200, ["Content-Type": isOfRule ? "application/json" : "text/plain"])
            exchange.end()
        }
        _ = try await LoadReader(post, from: cache, over: network).answer()
        #expect(cache.contains(Responses.request("/a")) == isOfRule)
    }

    /// Only images are cached: the rule by content type is asked when the response is known.
    @Test func onlyOneContentTypeIsCached() async throws {
        let origin = try OriginServer { request in
            .ok(
                "x",
                ["Cache-Control": "max-age=1000", "Content-Type": request.path == "/p" ? "image/png" : "text/html"])
        }
        let cache = try makeCache([
            Rule(for: .contentType("image/*"), storage: .memoryAndDisk), Rule(for: .all, storage: .never),
        ])
        for path in ["/p", "/h"] {
            _ = try await cache.data(from: origin.url(path))
            let again = try await cache.data(from: origin.url(path))
            #expect(again.source == (path == "/p" ? .stored(.memory) : .network))
        }
        #expect(origin.requests.count == 3)
    }

    /// An answer that a rule keeps out replaces a stored response all the same, as any answer that is not stored.
    @Test func anAnswerOfATypeThatIsNotCachedEndsTheStoredResponse() async throws {
        let cache = try makeCache([Rule(for: .contentType("text/html"), storage: .never)])
        let said: HeaderFields = ["Cache-Control": "max-age=60"]
        _ = try await answer(from: cache, type: "image/png", said)
        #expect(cache.contains(Responses.request("/a")))
        _ = try await answer(from: cache, ["Cache-Control": "no-cache"], type: "text/html", said)
        #expect(!cache.contains(Responses.request("/a")))
        let head = URLResponse.http(
            url: Responses.url("/a"), status: 200,
            fields: ["Content-Type": "text/html", "Cache-Control": "max-age=60"])
        let explanation = cache.explanation(for: Responses.request("/a"), response: head as? HTTPURLResponse)
        #expect(explanation.notStoredReason?.code == "never")
    }

    /// Rules that cancel each other are refused where they are set.
    @Test func rulesThatCancelEachOtherAreRefused() throws {
        let images = Rule(for: .contentType("image/*"), lifetime: .whenMissing(60))
        let nothing = Rule(for: .all, storage: .never)
        for (rules, index) in [([images, nothing], 0), ([nothing, images], 1)] {
            let error = try makeCache(rules).openingError
            #expect(error?.code == .invalidRule(index: index))
        }
    }

    @Test func aKeyPolicyForSomeRequests() async throws {
        let origin = try OriginServer { request in .ok(request.target, ["Cache-Control": "max-age=1000"]) }
        let cache = try makeCache([Rule(for: .url("*/links?*"), keyPolicy: .links)]) {
            $0.keyPolicies[.links] = .standard.droppingQueryItems("utm")
        }
        _ = try await cache.data(from: origin.url("/links?id=1&utm=a"))
        #expect(try await cache.data(from: origin.url("/links?id=1&utm=b")).source == .stored(.memory))
        _ = try await cache.data(from: origin.url("/other?id=1&utm=a"))
        #expect(try await cache.data(from: origin.url("/other?id=1&utm=b")).source == .network)
        var unknown = Responses.request("/x")
        unknown.cacheOptions = Treatment(keyPolicy: .nobody)
        #expect(cache.key(for: unknown) == nil)
    }

    /// Neither a store nor a hit by a request without tags takes an entry out of reach, and a hit by one with tags
    /// brings it in.
    @Test(arguments: ["store", "network", "304", "hit", "lookup"]) func tagsStay(way: String) async throws {
        let origin = try OriginServer { request in
            request.fields["If-None-Match"] == nil
                ? .ok("x", ["Cache-Control": "max-age=60", "ETag": "\"1\""])
                : .status(304, "", ["Cache-Control": "max-age=60", "ETag": "\"1\""])
        }
        let cache = try makeCache()
        let plain = URLRequest(url: origin.url("/a"))
        var tagged = plain
        tagged.cacheOptions = Treatment(tags: ["account-1"])
        let (first, second) = ["store", "network"].contains(way) ? (tagged, plain) : (plain, tagged)
        _ = try await cache.data(for: first)
        cache.flush()
        switch way {
        case "store": cache.storeCachedResponse(Responses.cached(origin.url("/a")), for: second)
        case "lookup": #expect(cache.cachedResponse(for: second) != nil)
        case "network":
            var reload = second
            reload.cachePolicy = .reloadIgnoringLocalCacheData
            _ = try await cache.data(for: reload)
        case "304":
            clock.advance(by: 100)
            #expect(try await cache.data(for: second).source == .revalidated(.memory))
        default: #expect(try await cache.data(for: second).source == .stored(.memory))
        }
        #expect(cache.contains(plain))
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        cache.removeCachedResponses(tag: "account-1")
        #expect(!cache.contains(plain))
    }

    /// A rule that came after the response was stored.
    @Test func whatIsConfirmedGetsTheTagsAndThePinOfRules() async throws {
        let origin = try OriginServer { request in
            request.fields["If-None-Match"] == nil
                ? .ok("x", ["Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Type": "image/png"])
                : .status(304, "", ["Cache-Control": "max-age=60", "ETag": "\"1\""])
        }
        let request = URLRequest(url: origin.url("/a"))
        _ = try await makeCache().data(for: request)
        clock.advance(by: 100)
        let cache = try makeCache([Rule(for: .contentType("image/*"), tags: ["images"], isPinned: true)])
        _ = try await cache.data(for: request)
        #expect(origin.requests.count == 2)
        let key = try #require(cache.key(for: request))
        let metadata = try #require(cache.store.lookup(key).variants().first?.metadata)
        #expect(metadata.isPinned && metadata.tags == ["images"])
    }

    /// Everything that was loaded with one account's credentials is removed, and nothing else.
    @Test func credentialsAreAGroup() async throws {
        let origin = try OriginServer { _ in .ok("x", ["Cache-Control": "max-age=60"]) }
        let cache = try makeCache()
        func request(_ path: String, _ credentials: String?) -> URLRequest {
            var request = URLRequest(url: origin.url(path))
            request.setValue(credentials, forHTTPHeaderField: "Authorization")
            return request
        }
        let requests = [
            request("/a", "Bearer a"), request("/b", "Bearer a"), request("/a", "Bearer b"), request("/a", nil),
        ]
        for request in requests.dropFirst() { _ = try await cache.data(for: request) }
        cache.storeCachedResponse(Responses.cached(origin.url("/a")), for: requests[0])
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        cache.removeCachedResponses(authorization: "Bearer a")
        #expect(requests.map { cache.contains($0) } == [false, false, true, true])
        let records = try DiskURLCache.Inspector(directory: scratch.appending("cache")).records()
        #expect(!records.contains { $0.tags.contains { $0.contains("Bearer") } })
    }

    /// A body that may be what a rule names, and cannot be parsed, is kept out where the rule keeps out.
    @Test func aJSONBodyThatCannotBeParsedIsKeptOut() {
        func keepsOut(_ storage: Treatment.Storage?, _ body: String, _ type: String? = nil) -> Bool {
            var request = Responses.request("/a", fields: type.map { ["Content-Type": $0] } ?? [:])
            request.httpMethod = "POST"
            request.httpBody = Data(body.utf8)
            let rule = Rule(
                for: .json { body, _ in body["op"] as? String == "Secret" }, storage: storage, lifetime: .always(9))
            let rules = AppliedRules([rule], to: DiskURLCache.Request(request))
            #expect(rules.areNone == (rules.options(after: nil).storage == nil))
            if rules.reasonToKeepOut(nil) == nil { return false }
            // Not the other options of the rule.
            #expect(rules.options(after: nil).lifetime == nil || body.utf8.count < 100)
            return true
        }
        let deep =
            "{\"op\":\"Secret\",\"x\":" + String(repeating: "[", count: 600) + String(repeating: "]", count: 600) + "}"
        #expect(keepsOut(.never, "{\"op\":\"Secret\"}") && !keepsOut(.never, "{\"op\":\"Feed\"}"))
        for type in [nil, "application/json", "application/graphql+json", "text/plain"] {
            #expect(keepsOut(.never, deep, type))
        }
        #expect(!keepsOut(nil, deep) && !keepsOut(.memoryAndDisk, deep))
        #expect(keepsOut(.never, "[", "application/json") && !keepsOut(.never, "[", "text/plain"))
        for other in ["[1]", "1", "\"Secret\"", ""] { #expect(!keepsOut(.never, other)) }
    }

    /// What an app keeps for offline use is pinned when a new version comes, too, until it says otherwise.
    @Test(arguments: [true, false]) func aPinOutlivesTheResponse(isInMemory: Bool) throws {
        let cache = try makeCache()
        var request = Responses.request("/pinned")
        func isPinned() throws -> Bool {
            let key = try #require(cache.key(for: request))
            return try #require(cache.core.store.lookup(key).variants().first).metadata.isPinned
        }
        func store(_ text: String) {
            if !isInMemory { cache.removeAllCachedResponses(from: .memory) }
            cache.storeCachedResponse(Responses.cached(request.url!, text), for: request)
        }
        store("one")
        cache.setPinned(true, for: request)
        store("two")
        #expect(try isPinned())
        request.cacheOptions = Treatment(isPinned: false)
        store("three")
        #expect(try !isPinned())
        request.cacheOptions = nil
        store("four")
        #expect(try !isPinned())
    }

    @Test func pinsOutliveEviction() throws {
        let cache = try makeCache { configuration in
            configuration.memoryCapacity = 0
            configuration.diskCapacity = 400_000
        }
        let pinned = Responses.request("/pinned")
        cache.storeCachedResponse(Responses.cached(pinned.url!, String(repeating: "p", count: 20_000)), for: pinned)
        #expect(cache.setPinned(true, for: pinned))
        #expect(!cache.setPinned(true, for: Responses.request("/absent")))
        func fill() {
            for index in 0..<60 {
                let request = Responses.request("/\(index)")
                cache.storeCachedResponse(
                    Responses.cached(request.url!, String(repeating: "x", count: 20_000)), for: request)
            }
            cache.flush()
        }
        fill()
        #expect(cache.contains(pinned))
        #expect(!cache.contains(Responses.request("/0")))
        cache.setPinned(false, for: pinned)
        fill()
        #expect(!cache.contains(pinned))
    }

    @Test func fallbackDirectoriesAreReadOnly() async throws {
        let origin = try OriginServer { _ in .ok("network", ["Cache-Control": "max-age=1000"]) }
        let request = URLRequest(url: origin.url("/bundled"))
        var making = DiskURLCache.Configuration(
            memoryCapacity: 0, diskCapacity: 1 << 20, directory: scratch.appending("bundle"))
        making.clock = clock.wallClock
        do {
            let maker = DiskURLCache(configuration: making)
            maker.store(Data("bundled".utf8), for: request, lifetime: 1_000)
            maker.flush()
        }
        let before = try contents(of: "bundle")
        let cache = try makeCache { $0.fallbackDirectories = [scratch.appending("none"), scratch.appending("bundle")] }
        let answer = try await cache.data(for: request)
        #expect(answer.data == Data("bundled".utf8))
        #expect(answer.source == .stored(.fallback))
        cache.removeAllCachedResponses()
        cache.flush()
        #expect(records.filter { $0.hasPrefix("cache/") }.isEmpty, "never copied out")
        #expect(try contents(of: "bundle") == before)
        #expect(cache.contains(request), "a fallback cannot be emptied")
        clock.advance(by: 2_000)
        #expect(try await cache.data(for: request).data == Data("network".utf8), "stale is stale")
        #expect(cache.cachedResponse(for: request)?.data == Data("network".utf8))
        #expect(try contents(of: "bundle") == before)
    }

    private func contents(of folder: String) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for file in scratch.files() where file.hasPrefix(folder) {
            contents[file] = try Data(contentsOf: scratch.appending(file))
        }
        return contents
    }

    // MARK: Errors

    static let wrong: [(name: String, rules: [Rule], index: Int)] = [
        ("negative", [Rule(for: .all, lifetime: .always(-1))], 0),
        ("not a number", [Rule(for: .all, staleIfError: .seconds(.nan))], 0),
        ("infinite", [Rule(for: .all, minimumDiskLifetime: .seconds(.infinity))], 0),
        ("empty pattern", [Rule(for: .url(""), tags: ["a"])], 0),
        ("path alone", [Rule(for: .url("/me*"), tags: ["a"])], 0),
        ("no scheme", [Rule(for: .url("me*"), tags: ["a"])], 0),
        ("fragment", [Rule(for: .url("https://x/*#f"), tags: ["a"])], 0),
        ("other scheme", [Rule(for: .url("ftp://x/*"), tags: ["a"])], 0),
        ("no host", [Rule(for: .url("https:///a"), tags: ["a"])], 0),
        ("host not as in a URL", [Rule(for: .url("https://ü*.example/"), tags: ["a"])], 0),
        ("dot segment", [Rule(for: .url("https://x/a/%2e%2E/b"), tags: ["a"])], 0),
        ("not a path", [Rule(for: .path("me"), tags: ["a"])], 0),
        ("path pattern", [Rule(for: .path("/me*"), tags: ["a"])], 0),
        ("host with path", [Rule(for: .host("a.org/x"), tags: ["a"])], 0),
        ("host with port", [Rule(for: .host("a.org:443"), tags: ["a"])], 0),
        ("host pattern", [Rule(for: .host("*.a.org"), tags: ["a"])], 0),
        ("media type", [Rule(for: .contentType("png"), tags: ["a"])], 0),
        ("media type with parameter", [Rule(for: .contentType("image/*; charset=x"), tags: ["a"])], 0),
        ("nothing", [Rule(for: .all, tags: ["a"]), Rule(for: .host("a.org"), options: Treatment())], 1),
        ("never and pinned", [Rule(for: .all, storage: .never, isPinned: true)], 0),
        ("memory and pinned", [Rule(for: .all, storage: .memoryOnly, isPinned: true)], 0),
        ("unknown policy", [Rule(for: .all, keyPolicy: .nobody)], 0),
        ("policy by media type", [Rule(for: .contentType("text/html"), keyPolicy: "c")], 0),
        (
            "contradiction",
            [
                Rule(for: .host("a.org"), lifetime: .always(1)),
                Rule(for: .host("A.org"), lifetime: .always(2)),
            ],
            1
        ),
    ]

    @Test(arguments: wrong.indices) func wrongRulesAreToldOfByTheCache(row: Int) throws {
        let error = try makeCache(Self.wrong[row].rules).openingError
        #expect(error?.code == .invalidRule(index: Self.wrong[row].index), "\(Self.wrong[row].name)")
        #expect(error?.description.hasPrefix("Rule \(Self.wrong[row].index): ") == true)
    }

    /// A rule for privacy with a pattern that cannot be keeps away more than it should, never less. Any other does
    /// nothing.
    @Test func aRuleWhosePatternCannotBe() throws {
        let request = Responses.request("/me")
        let never = try makeCache([Rule(for: .url("example.com/me"), storage: .never)])
        #expect(never.key(for: request) == nil)
        let memory = try makeCache([Rule(for: .path("me"), storage: .memoryOnly, lifetime: .always(9))])
        #expect(memory.resolve(request).options == Treatment(storage: .memoryOnly))
        let other = try makeCache([Rule(for: .path("me"), lifetime: .always(9))])
        #expect(other.resolve(request).options.lifetime == nil && other.key(for: request) != nil)
    }

    @Test func aPartOfASecondCounts() throws {
        let rule = Rule(for: .all, minimumInterval: .milliseconds(500), errorLifetime: .milliseconds(1_500))
        let cache = try makeCache([rule])
        let options = cache.core.cachingOptions(for: cache.resolve(Responses.request("/a")), response: nil)
        #expect(options.minimumInterval == 1 && options.errorLifetime == 2)
    }

    @Test func aLifetimeForOneRequest() throws {
        let cache = try makeCache()
        var request = Responses.request("/a")
        #expect(request.cacheLifetime == nil)
        request.cacheLifetime = .days(7)
        #expect(request.cacheLifetime == 604_800 && request.cacheOptions == Treatment(lifetime: .always(604_800)))
        #expect(
            cache.core.cachingOptions(for: cache.resolve(request), response: nil).lifetime == .always(seconds: 604_800))
        request.cacheOptions?.tags = ["a"]
        request.cacheLifetime = nil
        #expect(request.cacheOptions == Treatment(tags: ["a"]))
        request.cacheOptions = Treatment(lifetime: .whenMissing(.hours(2)))
        #expect(request.cacheLifetime == nil && request.cacheOptions?.lifetime == .whenMissing(7_200))
    }

    private func answer(
        from cache: DiskURLCache, _ fields: [String: String] = [:], status: Int = 200, type: String,
        _ more: HeaderFields = [:]
    ) async throws -> String {
        let network = MemoryTransport { _, exchange in
            var fields = more
            fields.set("Content-Type", type)
            exchange.head(status, fields)
            exchange.piece("\(status) \(type)")
            exchange.end()
        }
        let answer = try await LoadReader(Responses.request("/a", fields: fields), from: cache, over: network).answer()
        return String(decoding: answer.data, as: UTF8.self)
    }

    /// Not the type of the error.
    @Test(arguments: ["image/png", "text/html"]) func theTypeOfTheStoredResponseDecidesAtAnError(type: String)
        async throws
    {
        let cache = try makeCache([Rule(for: .contentType("image/*"), staleIfError: .days(1))])
        _ = try await answer(from: cache, type: type, ["Cache-Control": "max-age=60"])
        clock.advance(by: 100)
        let other = type == "text/html" ? "image/png" : "text/html"
        let text = try await answer(from: cache, status: 503, type: other)
        #expect(text == (type == "image/png" ? "200 image/png" : "503 image/png"))
    }

    /// Not the type of the variant that was stored last.
    @Test func theTypeOfTheVariantThatAnswersDecides() async throws {
        let cache = try makeCache([Rule(for: .contentType("text/html"), lifetime: .always(.days(1)))])
        let said: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept"]
        let types = ["application/json", "text/html"]
        for last in types {
            for type in types.filter({ $0 != last }) + [last] {
                _ = try await answer(from: cache, ["Accept": type], type: type, said)
            }
            clock.advance(by: 100)
            let html = try await answer(from: cache, ["Accept": "text/html"], type: "new", said)
            #expect(html == "200 text/html", "\(last) was stored last")
            let explanation = cache.explanation(for: Responses.request("/a", fields: ["Accept": "application/json"]))
            #expect(explanation.outcome == .expired(.stale), "\(last) was stored last")
            let json = try await answer(from: cache, ["Accept": "application/json"], type: "new", said)
            #expect(json == "200 new", "\(last) was stored last")
            cache.removeAllCachedResponses()
        }
    }

    @Test func twoRulesForOnePatternMayCompleteEachOther() throws {
        let cache = try makeCache([
            Rule(for: .host("a.org"), lifetime: .always(1)), Rule(for: .host("a.org"), staleIfError: 2),
        ])
        #expect(cache.openingError == nil)
    }
}

extension String {
    fileprivate static let links = "links"
    fileprivate static let nobody = "nobody"
}

import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters
@testable import DiskURLCacheTesting
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("An explanation says what the cache does, with the numbers", .fewAtATime)
struct ExplanationTests {
    /// The headings of the text.
    private enum Topic: String {
        case key = "Key"
        case stored = "Stored responses"
        case freshness = "Freshness"
        case decision = "The decision"
        case storing = "The answer"
        case advice = "Changes that would help"
    }

    private let scratch: ScratchDirectory
    private let directory: URL
    private let clock = ManualClock()
    private let cache: DiskURLCache

    init() throws {
        scratch = try ScratchDirectory()
        directory = scratch.appending("cache")
        var settings = DiskURLCache.Configuration(memoryCapacity: 0, diskCapacity: 10 << 20, directory: directory)
        settings.clock = clock.wallClock
        settings.keyPolicies = ["body": .standard.includingBody(ofMethods: "POST")]
        settings.rules = [
            .init(for: .url("https://example.com/ruled"), lifetime: .always(50)),
            .init(for: .url("https://example.com/never"), storage: .never),
        ]
        cache = DiskURLCache(configuration: settings)
    }

    private func store(_ path: String, _ fields: [String: String], for requestFields: [String: String] = [:]) {
        var fields = fields
        fields["Date"] = fields["Date"] ?? HTTPDate.format(clock.now)
        cache.storeCachedResponse(
            Responses.cached(Responses.url(path), fields: fields),
            for: Responses.request(path, fields: requestFields))
        // What waits to be written counts as memory.
        cache.flush()
    }

    private func text(_ explanation: DiskURLCache.Explanation, _ topic: Topic) -> String {
        let sections = explanation.description.components(separatedBy: "\n\n")
        return sections.first { $0.hasPrefix(topic.rawValue + "\n  ") } ?? ""
    }

    /// The key has a digest of them, with the salt of the directory.
    @Test func aKeyWithCredentialsIsTheStandardOne() throws {
        let fields = ["Authorization": "Bearer x"]
        store("/a", ["Cache-Control": "max-age=60"], for: fields)
        let request = Responses.request("/a", fields: fields)
        let inspector = try DiskURLCache.Inspector(directory: directory)
        for explanation in [cache.explanation(for: request), inspector.explanation(for: request, now: clock.now)] {
            #expect(text(explanation, .key).contains("Authorization"))
            #expect(!text(explanation, .key).contains("A key policy"))
            #expect(explanation.outcome == .hit(.disk))
        }
    }

    /// With the settings of another cache, too.
    @Test func whatAClientHasStoredIsFoundWithoutItsVariant() throws {
        let request = Responses.request("/a")
        let fields = ["Cache-Control": "max-age=60", "Date": HTTPDate.format(clock.now)]
        cache.core.store(Responses.cached(Responses.url("/a"), fields: fields), for: request, variant: "decoded")
        cache.flush()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        #expect(inspector.explanation(for: request, now: clock.now).outcome == .hit(.disk))
        #expect(inspector.explanation(for: request, by: cache).outcome == .hit(.disk))
        #expect(inspector.explanation(for: request, by: cache, variant: "coded").outcome == .miss(.notInCache))
    }

    @Test func withNothingStoredItLoads() {
        let explanation = cache.explanation(for: Responses.request("/a#part"))
        #expect(explanation.outcome == .miss(.notInCache))
        #expect(explanation.notStoredReason == nil)
        #expect(text(explanation, .stored).contains("Nothing is stored"))
        #expect(text(explanation, .key).contains("https://example.com/a."))
        #expect(text(explanation, .key).contains("#part"))
    }

    /// The answer of a redirected load has another URL.
    @Test func theResponseOfAnotherURLIsNotTakenForTheAnswer() throws {
        let fields = ["Cache-Control": "max-age=60"]
        let request = Responses.request("/moved?a=1#part")
        func explanation(_ path: String) throws -> DiskURLCache.Explanation {
            let response = Responses.cached(Responses.url(path), fields: fields).response
            return cache.explanation(for: request, response: try #require(response as? HTTPURLResponse))
        }
        let other = try explanation("/there")
        #expect(text(other, .storing).contains("is that of https://example.com/there, to which"))
        #expect(!other.description.contains("is stored.") && other.notStoredReason == nil)
        #expect(try explanation("/moved?a=1").description.contains("is stored."))
    }

    @Test(arguments: [true, false]) func aMutationIsExplainedAsTheAppWantsIt(_ invalidatesURL: Bool) {
        var request = Responses.request("/a")
        request.httpMethod = "POST"
        request.cacheOptions = .init(storage: .never, invalidatesURL: invalidatesURL)
        let decision = text(cache.explanation(for: request), .decision)
        #expect(decision.contains(invalidatesURL ? "are removed" : "stay: the options say invalidatesURL: false"))
    }

    @Test func aFreshResponseAnswersAndTheSumIsShown() {
        store("/a", ["Cache-Control": "max-age=600", "Age": "15"])
        clock.advance(by: 60)
        let explanation = cache.explanation(for: Responses.request("/a"))
        #expect(explanation.outcome == .hit(.disk))
        #expect(text(explanation, .freshness).contains("Lifetime: 600 s"))
        #expect(text(explanation, .freshness).contains("Age: 75 s = 15 s"))
        #expect(text(explanation, .freshness).contains("600 s - 75 s"))
        #expect(text(explanation, .freshness).contains("RFC 9111 §4.2.3"))
    }

    @Test func aStaleResponseIsAskedAboutWithItsValidator() {
        store("/a", ["Cache-Control": "max-age=10", "ETag": "\"v1\""])
        clock.advance(by: 25)
        let explanation = cache.explanation(for: Responses.request("/a"))
        #expect(explanation.outcome == .revalidated(.disk))
        #expect(text(explanation, .decision).contains("If-None-Match: \"v1\""))
        #expect(text(explanation, .freshness).contains("stale for 15 s"))
    }

    @Test func aStaleResponseThatMayBeUsedIsAStaleHit() {
        store("/a", ["Cache-Control": "max-age=10, stale-while-revalidate=60"])
        clock.advance(by: 25)
        let explanation = cache.explanation(for: Responses.request("/a"))
        #expect(explanation.outcome == .staleHit(.disk, because: .staleWhileRevalidate))
    }

    @Test func aGuessShowsItsParts() {
        let modified = HTTPDate.format(clock.now.addingTimeInterval(-20_000))
        store("/a", ["Last-Modified": modified])
        let explanation = cache.explanation(for: Responses.request("/a"))
        #expect(text(explanation, .freshness).contains("Lifetime: 2000 s, a guess: 10 %"))
        #expect(text(explanation, .advice).contains("max-age"))
    }

    @Test func withoutALifetimeTheAdviceNamesTheAppsOption() {
        store("/a", ["ETag": "\"v1\""])
        let advice = text(cache.explanation(for: Responses.request("/a")), .advice)
        #expect(advice.contains("; the app can set lifetime: .whenMissing(…) in a rule or in cacheOptions."))
    }

    @Test func theFieldByWhichAVariantDiffersIsNamed() {
        store(
            "/a", ["Cache-Control": "max-age=600", "Vary": "Accept, Accept-Language"], for: ["Accept-Language": "de"])
        let other = cache.explanation(for: Responses.request("/a", fields: ["Accept-Language": "en"]))
        #expect(other.outcome == .miss(.variantNotInCache))
        #expect(text(other, .stored).contains("differs in accept-language."))
        let same = cache.explanation(for: Responses.request("/a", fields: ["Accept-Language": "DE"]))
        #expect(same.outcome == .hit(.disk))
    }

    @Test(arguments: [
        ("no-store", 200, "RFC 9111 §5.2.2.5", DiskURLCache.Reason.noStore),
        ("max-age=60, must-understand", 299, "RFC 9111 §5.2.2.3", .statusNotUnderstood),
        ("", 404, "RFC 9111 §3", .notReusable), ("", 500, "RFC 9111 §3", .statusNotCacheable),
    ])
    func whyAResponseIsNotStored(_ control: String, _ status: Int, _ source: String, _ reason: DiskURLCache.Reason) {
        let response = Responses.http(Responses.url("/a"), status: status, fields: ["Cache-Control": control])
        let explanation = cache.explanation(for: Responses.request("/a"), response: response)
        #expect(explanation.notStoredReason == reason)
        #expect(text(explanation, .storing).hasSuffix("[\(source)]"))
        #expect(cache.cachedResponse(for: Responses.request("/a")) == nil)
    }

    @Test func aResponseThatIsStoredSaysForHowLong() {
        let response = Responses.http(Responses.url("/a"), fields: ["Cache-Control": "max-age=90", "ETag": "\"1\""])
        let explanation = cache.explanation(for: Responses.request("/a"), response: response)
        #expect(explanation.outcome == .miss(.notInCache))
        #expect(explanation.notStoredReason == nil)
        #expect(text(explanation, .storing).contains("is stored."))
        #expect(text(explanation, .storing).contains("Lifetime: 90 s"))
        #expect(text(explanation, .storing).contains("a moment later: answered from the store"))
    }

    @Test func aResponseThatIsTooLargeIsNotStored() {
        func explanation(_ bytes: Int, _ method: String = "GET", in cache: DiskURLCache) -> DiskURLCache.Explanation {
            let response = Responses.http(
                Responses.url("/a"), fields: ["Cache-Control": "max-age=90", "Content-Length": "\(bytes)"])
            return cache.explanation(for: URLRequest(Responses.url("/a"), method: method), response: response)
        }
        #expect(explanation(5 << 20, in: cache).notStoredReason == nil)
        let tooLarge = explanation(5 << 20 + 1, in: cache)
        #expect(tooLarge.notStoredReason == .tooLarge)
        #expect(text(tooLarge, .storing).contains("5242881 bytes, and the largest that is stored has 5242880"))
        #expect(text(tooLarge, .advice).contains("maximumEntryFraction"))
        #expect(explanation(5 << 20 + 1, "HEAD", in: cache).notStoredReason == .methodNotCached)
        #expect(explanation(1, in: DiskURLCache(memoryCapacity: 0, diskCapacity: 0)).notStoredReason == .tooLarge)
    }

    @Test func whatTheAppMayRefuseIsSaid() {
        var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        settings.willCacheResponse = { _, _ in nil }
        let response = Responses.http(Responses.url("/a"), fields: ["Cache-Control": "max-age=90"])
        let cache = DiskURLCache(configuration: settings)
        let explanation = cache.explanation(for: Responses.request("/a"), response: response)
        #expect(text(explanation, .storing).contains("if Configuration.willCacheResponse refuses it"))
        let other = self.cache.explanation(for: Responses.request("/a"), response: response)
        #expect(!text(other, .storing).contains("willCacheResponse"))
    }

    /// `explanation(for: request, response: answer.response)` after a load.
    @Test func theStoredResponseIsNotStoredAgain() async throws {
        let origin = try OriginServer.counting(["Cache-Control": "max-age=600", "ETag": "\"a\"", "Set-Cookie": "a=b"])
        let request = URLRequest(origin.url("/a"))
        for seconds in [0, 10, 1_000] {
            clock.advance(by: TimeInterval(seconds))
            let answer = try await cache.data(for: request)
            let explanation = cache.explanation(for: request, response: answer.response)
            let storing = text(explanation, .storing)
            #expect(storing.contains("is the stored one, as it was delivered: nothing new is stored"))
            #expect(!text(explanation, .storing).contains("replaces"))
            #expect(explanation.notStoredReason == nil)
        }
        // Another response of the origin is.
        let other = Responses.http(origin.url("/a"), fields: ["Cache-Control": "max-age=600", "ETag": "\"b\""])
        let storing = text(cache.explanation(for: request, response: other), .storing)
        #expect(storing.contains("is stored and replaces the stored one"))
    }

    /// No change of the response helps a request that wants the network.
    @Test func adviceForAReloadIsAboutTheRequest() {
        store("/a", ["Cache-Control": "max-age=600"])
        let response = Responses.http(Responses.url("/a"), fields: ["Cache-Control": "max-age=601"])
        for (policy, fields, words) in [
            (URLRequest.CachePolicy.reloadIgnoringLocalCacheData, [:], "cachePolicy at .useProtocolCachePolicy"),
            (.reloadRevalidatingCacheData, [:], "cachePolicy at .useProtocolCachePolicy"),
            (.useProtocolCachePolicy, ["Cache-Control": "no-cache"], "Leave no-cache"),
            (.useProtocolCachePolicy, ["Cache-Control": "max-age=0"], "Leave no-cache, max-age"),
            (.useProtocolCachePolicy, ["Cache-Control": "no-store"], "Leave no-store out"),
        ] as [(URLRequest.CachePolicy, [String: String], String)] {
            var request = Responses.request("/a", fields: fields)
            request.cachePolicy = policy
            for response in [nil, response] {
                clock.advance(by: 1)
                let advice = text(cache.explanation(for: request, response: response), .advice)
                #expect(advice.contains(words), "\(policy) \(fields)")
                #expect(!advice.contains("stale-while") && !advice.contains("ETag") && !advice.contains("stale-if"))
            }
        }
    }

    /// Advice about a missing network, a condition or a stale window is for those whom it helps.
    @Test func adviceFitsTheRequestAndTheResponse() {
        store("/a", ["Cache-Control": "max-age=1, must-revalidate", "ETag": "\"1\""])
        clock.advance(by: 10)
        let onlyStored = cache.explanation(for: Responses.request("/a", fields: ["Cache-Control": "only-if-cached"]))
        #expect(onlyStored.outcome == .notAllowed(.mustRevalidate) && !text(onlyStored, .advice).contains("fallback"))
        cache.isOffline = true
        #expect(text(cache.explanation(for: Responses.request("/a")), .advice).contains("fallback: .anyStored"))
        cache.isOffline = false

        func advice(_ status: Int, _ fields: [String: String]) -> String {
            let response = Responses.http(Responses.url("/b"), status: status, fields: fields)
            return text(cache.explanation(for: Responses.request("/b"), response: response), .advice)
        }
        #expect(advice(404, [:]).contains("errorLifetime"))
        #expect(advice(200, ["Cache-Control": "max-age=60"]).contains("stale-while-revalidate"))
        #expect(!advice(404, ["Cache-Control": "max-age=60"]).contains("stale-while-revalidate"))

        var post = Responses.request("/b")
        post.httpMethod = "POST"
        post.httpBody = Data("question".utf8)
        post.cacheOptions = .init(keyPolicy: "body")
        for fields in [["Cache-Control": "max-age=60"], ["Cache-Control": "max-age=60", "ETag": "\"1\""]] {
            let response = Responses.http(Responses.url("/b"), fields: fields)
            let explanation = cache.explanation(for: post, response: response)
            #expect(text(explanation, .key).contains("the method and the body are parts"))
            #expect(!explanation.description.contains("304"))
        }
    }

    @Test func adviceNamesTheCacheOnTheWayAndTheClockOfTheOrigin() {
        func advice(_ fields: [String: String]) -> String {
            let response = Responses.http(Responses.url("/b"), fields: fields)
            return text(cache.explanation(for: Responses.request("/b"), response: response), .advice)
        }
        let control = "max-age=600"
        let old = advice(["Cache-Control": control, "Age": "601"])
        #expect(old.contains("a cache on the way has kept it for 601 s") && !old.contains("stale-while"))
        let behind = advice(["Cache-Control": control, "Date": HTTPDate.format(clock.now.addingTimeInterval(-7_200))])
        #expect(behind.contains("The origin's clock seems to be behind") && behind.contains("2 h before"))
        #expect(!advice(["Cache-Control": control, "Age": "5"]).contains("arrives stale"))
    }

    @Test(arguments: [
        ("maxage=600", "max-age"), ("max_age=600", "max-age"), ("nostore", "no-store"), ("s-max-age=3", "s-maxage"),
        ("must-revalidat", "must-revalidate"), ("imutable", "immutable"),
    ])
    func aMisspeltDirectiveIsNamed(_ written: String, _ meant: String) {
        let response = Responses.http(Responses.url("/b"), fields: ["Cache-Control": "\(written), x-own, group=\"a\""])
        let advice = text(cache.explanation(for: Responses.request("/b"), response: response), .advice)
        let name = written.prefix { $0 != "=" }
        #expect(advice.contains("do not know the directive \(name): did the origin mean \(meant)?"))
        #expect(!advice.contains("x-own") && !advice.contains("group"))
    }

    @Test func adviceForASharedCache() {
        let shared = DiskURLCache.forTesting { $0.isShared = true }
        for (fields, words) in [
            (["Cache-Control": "private, max-age=60"], "isShared = false) stores it"),
            (["Cache-Control": "max-age=60", "Set-Cookie": "a=b"], "set the cookie in another response"),
        ] {
            let response = Responses.http(Responses.url("/b"), fields: fields)
            let explanation = shared.explanation(for: Responses.request("/b"), response: response)
            #expect(text(explanation, .advice).contains(words))
        }
    }

    @Test func aClockThatWasSetBackIsSaid() {
        store("/a", ["Cache-Control": "max-age=600"])
        clock.advance(by: -3_600)
        let explanation = cache.explanation(for: Responses.request("/a"))
        #expect(explanation.outcome == .expired(.stale))
        #expect(text(explanation, .freshness).contains("The clock was set back since it arrived"))
    }

    @Test func rulesCount() {
        let response = Responses.http(Responses.url("/ruled"), fields: ["Cache-Control": "max-age=7"])
        let ruled = cache.explanation(for: Responses.request("/ruled"), response: response)
        #expect(text(ruled, .storing).contains("Lifetime: 50 s, set by the app"))
        let never = cache.explanation(for: Responses.request("/never"), response: response)
        #expect(never.outcome == .bypass(.never))
        #expect(never.notStoredReason == .never)
        #expect(text(never, .key).contains(".never"))
    }

    @Test func aMethodWithoutAKeyIsPassedByAndSaysWhatWouldGiveItOne() {
        var request = Responses.request("/a")
        request.httpMethod = "POST"
        let explanation = cache.explanation(for: request)
        #expect(explanation.outcome == .bypass(.methodNotCached))
        #expect(text(explanation, .advice).contains("includingBody(ofMethods:"))
        #expect(text(explanation, .decision).contains("removed"))
    }

    @Test func secretsAreNotShown() throws {
        let url = try #require(URL(string: "https://ada:lovelace@example.com/a"))
        var request = URLRequest(url: url)
        request.setValue("Bearer s3cret", forHTTPHeaderField: "Authorization")
        let description = cache.explanation(for: request).description
        #expect(description.contains("https://example.com/a"))
        #expect(!description.contains("lovelace") && !description.contains("s3cret"))
        let target = "https://ada:lovelace@example.com/b?sign=s3cret"
        let redirect = try #require(
            HTTPURLResponse(
                url: url, statusCode: 301, httpVersion: nil,
                headerFields: ["Location": target, "Cache-Control": "max-age=60"]))
        let followed = cache.explanation(for: request, response: redirect).description
        #expect(followed.contains("https://example.com/b"))
        #expect(!followed.contains("lovelace") && !followed.contains("s3cret"))
    }

    @Test func whatNobodyMayLoadFails() {
        var request = Responses.request("/a")
        request.cachePolicy = .returnCacheDataDontLoad
        #expect(cache.explanation(for: request).outcome == .notAllowed(.notInCache))
    }

    @Test func anInspectorSaysTheSameAndTouchesNothing() throws {
        store("/a", ["Cache-Control": "max-age=600", "Vary": "Accept"], for: ["Accept": "text/html"])
        store("/a", ["Cache-Control": "max-age=600", "Vary": "Accept"], for: ["Accept": "image/png"])
        cache.flush()
        let before = scratch.files()
        let request = Responses.request("/a", fields: ["Accept": "text/html"])
        let inspector = try DiskURLCache.Inspector(directory: directory)
        #expect(inspector.explanation(for: request, now: clock.now) == cache.explanation(for: request))
        #expect(inspector.explanation(for: request, now: clock.now).description.contains("2 variants"))
        #expect(scratch.files() == before)
    }

    // MARK: What other clients stored

    private func load(_ path: String, variant: String?, _ cache: DiskURLCache, _ control: String = "max-age=600")
        async throws
    {
        struct Canned: DiskURLCache.Transport {
            let control: String
            func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
                receiver.receive(DiskURLCache.Head(status: 200, fields: [("Cache-Control", control)]))
                await receiver.receive(Data("body".utf8))
            }
        }
        let transport = Canned(control: control)
        for try await _ in try await cache.load(Responses.request(path), through: transport, variant: variant) {}
        cache.flush()
    }

    @Test func aVariantOfATransportIsItsOwnKey() async throws {
        try await load("/a", variant: "mine", cache)
        let request = Responses.request("/a")
        #expect(cache.explanation(for: request).outcome == .miss(.notInCache))
        let explanation = cache.explanation(for: request, variant: "mine")
        #expect(explanation.outcome == .hit(.disk))
        #expect(text(explanation, .key).contains("The variant \"mine\""))
        #expect(!text(explanation, .key).contains("key policy"))
        let inspector = try DiskURLCache.Inspector(directory: directory)
        #expect(inspector.explanation(for: request, now: clock.now).outcome == .miss(.notInCache))
        #expect(inspector.explanation(for: request, variant: "mine", now: clock.now) == explanation)
    }

    @Test(arguments: ["coded", "decoded", "own-coding"], [false, true])
    func anInspectorFindsWhatACachingHTTPClientStored(_ variant: String, _ isShared: Bool) async throws {
        let folder = scratch.appending("other")
        var settings = DiskURLCache.Configuration(memoryCapacity: 0, diskCapacity: 10 << 20, directory: folder)
        settings.clock = clock.wallClock
        settings.isShared = isShared
        let cache = DiskURLCache(configuration: settings)
        try await load("/a", variant: variant, cache, "max-age=600, s-maxage=10")
        clock.advance(by: 60)
        let request = Responses.request("/a")
        let inspector = try DiskURLCache.Inspector(directory: folder)
        let explanation = inspector.explanation(for: request, now: clock.now)
        #expect(explanation == cache.explanation(for: request, variant: variant))
        #expect(explanation.outcome == (isShared ? .expired(.stale) : .hit(.disk)))
        #expect(text(explanation, .key).contains("The variant \"\(variant)\""))
        #expect(!text(explanation, .key).contains("key policy"))

        // What URLSession stored comes first.
        try await load("/a", variant: nil, cache)
        let both = inspector.explanation(for: request, now: clock.now)
        #expect(both.outcome == .hit(.disk))
        #expect(!text(both, .key).contains("variant"))
        #expect(text(both, .stored).contains("More is stored for the variant \"\(variant)\""))
    }
}

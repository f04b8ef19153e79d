import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `QUERY` (RFC 10008), a safe method whose content is the question.
@Suite struct QueryTests {
    private static func query(_ body: String, _ fields: [String: String] = ["Content-Type": "text/plain"])
        -> URLRequest
    {
        URLRequest(Responses.url("/search"), fields, method: "QUERY", body: Data(body.utf8))
    }

    private static func key(
        _ body: String, _ fields: [String: String] = ["Content-Type": "text/plain"],
        by policy: DiskURLCache.KeyPolicy = .standard
    ) -> RequestKey? {
        policy.key(for: query(body, fields))
    }

    // MARK: The key (§2.7)

    @Test func theBodyIsInTheKey() {
        #expect(Self.key("a") != nil)
        #expect(Self.key("a") == Self.key("a"))
        #expect(Self.key("a") != Self.key("b"))
        #expect(Self.key("a")?.uri == Responses.url("/search").absoluteString)
        #expect(Self.key("a") != DiskURLCache.KeyPolicy.standard.key(for: Responses.request("/search")))
    }

    /// Equal bytes of two types, codings or languages are two questions, under each policy that keys bodies.
    @Test(arguments: [
        ("QUERY", DiskURLCache.KeyPolicy.standard),
        ("QUERY", .standard.includingBody(ofMethods: "QUERY")),
        ("QUERY", .standard.includingBody(ofMethods: "QUERY", asJSON: true)),
        ("POST", .standard.includingBody(ofMethods: "POST")),
        ("POST", .standard.includingBody(ofMethods: "POST", asJSON: true)),
    ])
    func whatTheBytesMeanIsInTheKey(method: String, policy: DiskURLCache.KeyPolicy) {
        let forms: [[String: String]] = [
            ["Content-Type": "application/sql"], ["Content-Type": "application/graphql"],
            ["Content-Type": "application/graphql; charset=utf-8"],
            ["Content-Type": "application/sql", "Content-Encoding": "gzip"],
            ["Content-Type": "application/sql", "Content-Language": "de"], [:],
        ]
        let keys = forms.map { fields in
            policy.key(for: URLRequest(Responses.url("/a"), fields, method: method, body: Data("x".utf8)))?.text
        }
        #expect(Set(keys).count == forms.count && !keys.contains(nil))
    }

    @Test func caseAndSpaceOfTheTypeMakeNoDifference() {
        #expect(Self.key("a", ["Content-Type": "Text/Plain "]) == Self.key("a", ["Content-Type": "text/plain"]))
        #expect(Self.key("a", ["Content-Encoding": "GZIP"]) == Self.key("a", ["Content-Encoding": "gzip"]))
        #expect(
            Self.key("a", ["Content-Type": "text/plain;charset=A"])
                != Self.key("a", ["Content-Type": "text/plain;charset=a"]))
    }

    /// Foundation takes no line break into a field. An HTTP client of another kind may.
    @Test func aFieldCannotImitateAnother() {
        func key(_ fields: HeaderFields) -> RequestKey? {
            var request = DiskURLCache.Request(Self.query("a"))
            request.headerFields = fields
            return DiskURLCache.KeyPolicy.standard.decision(for: request).key
        }
        #expect(
            key(["Content-Type": "a", "Content-Language": "b"]) != key(["Content-Type": "a\ncontent-language:1:b"]))
    }

    @Test(arguments: ["application/json", "application/graphql+json", "Application/JSON; charset=utf-8"])
    func whiteSpaceAndOrderOfJSONMakeNoDifference(type: String) {
        let fields = ["Content-Type": type]
        #expect(Self.key(#"{"a":1,"b":2}"#, fields) == Self.key(#"{ "b": 2, "a": 1 }"#, fields))
        #expect(Self.key(#"{"a":1}"#, fields) != Self.key(#"{"a":2}"#, fields))
        #expect(Self.key("{1}", fields) != Self.key("{ 1}", fields))
    }

    /// A text that is no JSON counts by its bytes, whatever they are.
    @Test func noBytesImitateJSON() {
        let fields = ["Content-Type": "application/json"]
        for body in ["json:", "json:\(#"{"a":1}"#)", "\njson:"] {
            #expect(Self.key(#"{"a":1}"#, fields) != Self.key(body, fields))
        }
        // Nor does a text that is hashed as it is look like one of another type.
        #expect(Self.key(#"{"a":1}"#, fields)?.text.contains("\njson:") == true)
        #expect(Self.key("{1}", fields)?.text.contains("\nbody:") == true)
    }

    /// Only where the type says JSON, and not where the client asks for no change.
    @Test(arguments: [
        ["Content-Type": "text/plain"], ["Content-Type": "application/json-seq"], [:],
        ["Content-Type": "application/json", "Cache-Control": "max-age=5, no-transform"],
    ])
    func otherBodiesCountByTheirBytes(fields: [String: String]) {
        #expect(Self.key("[1]", fields) == Self.key("[1]", fields))
        #expect(Self.key("[1]", fields) != Self.key("[1 ]", fields))
    }

    @Test func noTransformHoldsForEveryKeyedJSONBody() {
        let policy = DiskURLCache.KeyPolicy.standard.includingBody(ofMethods: "POST", asJSON: true)
        func key(_ body: String, _ control: String) -> RequestKey? {
            policy.key(
                for: URLRequest(
                    Responses.url("/a"), ["Cache-Control": control], method: "POST", body: Data(body.utf8)))
        }
        #expect(key("[1]", "no-transform") != key("[1 ]", "no-transform"))
        #expect(key("[1]", "max-age=5") == key("[1 ]", "max-age=5"))
    }

    /// The content may be on its way all the same, as with an upload.
    @Test func aQueryWhoseContentIsNotKnownHasNoKey() {
        var request = Self.query("")
        for body in [Data(), nil] {
            request.httpBody = body
            let decision = DiskURLCache.KeyPolicy.standard.decision(for: DiskURLCache.Request(request))
            #expect(decision.refusal == .queryWithoutContent)
        }
        request.httpBodyStream = InputStream(data: Data("x".utf8))
        #expect(
            DiskURLCache.KeyPolicy.standard.decision(for: DiskURLCache.Request(request)).refusal == .streamedBody)
    }

    // MARK: Conditions and ranges (§2.6, §2.8)

    private static func cache(_ fields: HeaderFields) -> PureCache {
        var cache = PureCache()
        cache.options.allow("QUERY")
        _ = cache.load(method: "QUERY", answer: fields)
        return cache
    }

    @Test func aStaleAnswerIsConfirmedByA304() {
        var cache = Self.cache(["Cache-Control": "max-age=1", "ETag": "\"1\""])
        cache.now += 10
        let answer = cache.load(
            method: "QUERY", status: 304, answer: ["ETag": "\"1\"", "Cache-Control": "max-age=60"], body: "")
        #expect(answer.source == .validated && answer.body == Data("body".utf8))
        #expect(answer.asked?.fields["If-None-Match"] == "\"1\"")
        cache.now += 10
        #expect(cache.load(method: "QUERY").source == .stored)
    }

    @Test func theClientsConditionAndRangeAreJudgedAsForGet() {
        var cache = Self.cache(["Cache-Control": "max-age=60", "ETag": "\"1\""])
        #expect(cache.load(method: "QUERY", ["If-None-Match": "\"1\""]).status == 304)
        let part = cache.load(method: "QUERY", ["Range": "bytes=1-2"])
        #expect(part.status == 206 && part.body == Data("od".utf8) && part.source == .stored)
        #expect(cache.load(method: "GET").source == .origin)
    }

    // MARK: Redirects (§2.5)

    @Test(arguments: [(301, "QUERY"), (302, "QUERY"), (307, "QUERY"), (308, "QUERY"), (303, "GET")])
    func onlyA303MakesAGetOfIt(status: Int, method: String) throws {
        let names = [
            "Content-Digest", "Content-Encoding", "Content-Language", "Content-Location", "Content-Type", "Digest",
            "Expect", "Last-Modified", "Repr-Digest", "Transfer-Encoding",
        ]
        let request = DiskURLCache.Request(
            Self.query("a", Dictionary(uniqueKeysWithValues: names.map { ($0, "gzip") })))
        let next = try #require(request.following(status: status, fields: ["Location": "/found"]))
        #expect(next.method == method && (next.body != nil) == (method == "QUERY"))
        for name in names {
            #expect((next.headerFields[name] != nil) == (method == "QUERY"), "\(name)")
        }
    }

    // MARK: Through the loader

    /// The answers to two questions are two entries. The URLs that an answer names lose nothing: the method is safe.
    @Test(.loadsOnLinux) func answersAreStoredForTheirQuestions() async throws {
        let origin = try OriginServer { request in
            .ok(
                "\(request.method) \(String(decoding: request.body, as: UTF8.self))",
                ["Cache-Control": "max-age=60", "Location": "/q/1", "Content-Location": "/r/1"])
        }
        let harness = try LoadingHarness()
        try await harness.load(origin.url("/r/1"))
        for (body, type) in [("[1, 2]", "application/json"), ("[1,2]", "application/json"), ("[1,2]", "text/plain")] {
            let loaded = try await harness.load(
                origin.url("/search"), ["Content-Type": type], method: "QUERY", body: Data(body.utf8))
            #expect(loaded.text == (type == "text/plain" ? "QUERY [1,2]" : "QUERY [1, 2]"))
        }
        #expect(origin.requests.count == 3)
        try await harness.load(origin.url("/r/1"))
        #expect(origin.requests.count == 3)
        // A change of the resource removes the answers to all questions.
        try await harness.load(origin.url("/search"), method: "POST", body: Data("x".utf8))
        _ = try await harness.load(
            origin.url("/search"), ["Content-Type": "text/plain"], method: "QUERY", body: Data("[1,2]".utf8))
        #expect(origin.requests.count == 5)
    }

    @Test func whyNamesTheContent() {
        let cache = DiskURLCache(configuration: .init(memoryCapacity: 1 << 20, diskCapacity: 0))
        #expect("\(cache.explanation(for: Self.query("a")))".contains("[RFC 10008 §2.7]"))
        #expect("\(cache.explanation(for: Self.query("")))".contains("QUERY without a body"))
    }
}

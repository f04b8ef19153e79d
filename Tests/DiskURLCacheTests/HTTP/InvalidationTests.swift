import Foundation
import Testing

@testable import DiskURLCache

@Suite struct InvalidationTests {
    static func urls(
        _ method: String, status: Int = 200, _ fields: HeaderFields = [:], target: String = "https://Example.com/a/b"
    ) throws -> [String] {
        let url = try #require(URL(string: target))
        return Invalidation.urls(method: method, target: url, status: status, fields: fields).map(\.absoluteString)
    }

    /// cache-tests `invalidate-*`
    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FOO"])
    func unsafeMethodInvalidatesItsTarget(_ method: String) throws {
        #expect(try Self.urls(method) == ["https://Example.com/a/b"])
        #expect(try Self.urls(method, status: 302).count == 1)
    }

    /// cache-tests `invalidate-*-failed`
    @Test(arguments: [400, 404, 409, 500, 503, 100, 0])
    func failureInvalidatesNothing(_ status: Int) throws {
        #expect(try Self.urls("POST", status: status).isEmpty)
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "TRACE"])
    func safeMethodInvalidatesNothing(_ method: String) throws {
        #expect(try Self.urls(method, ["Location": "/c"]).isEmpty)
    }

    /// cache-tests `invalidate-*-location`, `invalidate-*-cl`
    @Test func locationsOfTheSameOriginGoToo() throws {
        let urls = try Self.urls(
            "POST", status: 201, ["Location": "c", "Content-Location": "https://example.COM:443/d?e"])
        #expect(urls == ["https://Example.com/a/b", "https://Example.com/a/c", "https://example.COM:443/d?e"])
    }

    /// An answer cannot make the cache remove any number of URIs.
    @Test func aLocationCountsWithOneValueOnly() throws {
        func urls(_ values: [String]) throws -> [String] {
            try Self.urls("POST", HeaderFields(values.map { .init(name: "Content-Location", value: $0) }))
        }
        #expect(try urls(["/0", "/0"]) == ["https://Example.com/a/b", "https://Example.com/0"])
        #expect(try urls((0..<200).map { "/\($0)" }) == ["https://Example.com/a/b"])
    }

    @Test(arguments: [
        "https://other.com/c", "http://example.com/c", "https://example.com:8443/c", "//other.com/c",
        "https://user@evil.example/c", "mailto:a@example.com", "https://example.com.evil.org/c",
    ])
    func otherOriginsAreLeftAlone(_ location: String) throws {
        #expect(try Self.urls("POST", ["Location": location]).count == 1)
    }
}

/// A security rule: credentials and removals stay within one origin (RFC 9110 §4.3.1).
@Suite struct OriginTests {
    @Test(
        arguments: [
            ("https://a.com/x", "https://A.com:443/y?z", true), ("HTTP://a.com", "http://a.com:80/", true),
            ("https://a.com", "http://a.com", false), ("https://a.com", "https://a.com:444", false),
            ("https://a.com", "https://a.com.evil.org", false), ("https://a.com", "https://b.a.com", false),
            ("https://[::1]/", "https://[::1]:443/", true), ("https:/a", "https:/b", false),
            ("https:///a", "https:///a", false), ("/a", "/a", false), ("file:///a", "file:///a", false),
            ("mailto:a@b.com", "mailto:a@b.com", false),
        ] as [(String, String, Bool)])
    func origins(_ left: String, _ right: String, _ isSame: Bool) throws {
        let (left, right) = (try #require(URL(string: left)), try #require(URL(string: right)))
        #expect(left.hasSameOrigin(as: right) == isSame)
        #expect(right.hasSameOrigin(as: left) == isSame)
    }
}

@Suite struct HeadUpdateTests {
    static func stored(_ fields: HeaderFields = [:]) -> PureCache {
        var cache = PureCache()
        var fields = fields
        fields.append("Cache-Control", "max-age=2")
        fields.append("A", "1")
        _ = cache.load(answer: fields)
        cache.now += 5
        return cache
    }

    /// cache-tests `head-200-retain`
    @Test(arguments: ["ETag", "Last-Modified"]) func headFreshensAndUpdatesTheStoredGet(_ validator: String) {
        var cache = Self.stored(["B": "1", validator: "x"])
        let head = cache.load(
            method: "HEAD", answer: ["A": "2", "Cache-Control": "max-age=1000", validator: "x"], body: "")
        #expect(head.source == .origin && head.fields["A"] == "2")
        let answer = cache.load()
        #expect(answer.source == .stored && answer.fields["A"] == "2" && answer.fields["B"] == "1")
        #expect(answer.body == Data("body".utf8))
    }

    /// Nothing shows that it is the answer of the same page: neither lifetime nor protection changes.
    @Test(arguments: [[:], ["Content-Length": "4"]] as [HeaderFields])
    func headWithoutAValidatorChangesNothing(_ fields: HeaderFields) {
        var cache = Self.stored(["Content-Security-Policy": "default-src 'none'", "ETag": "\"a\""])
        var answer = fields
        for (name, value) in [
            ("Cache-Control", "max-age=999999"), ("Expires", httpDate(1e6)), ("Content-Security-Policy", ""),
            ("A", "2"),
        ] {
            answer.append(name, value)
        }
        let stored = cache.entries.map(\.response)
        _ = cache.load(method: "HEAD", answer: answer, body: "")
        #expect(cache.entries.map(\.response) == stored)
    }

    @Test(arguments: ["Content-Length", "ETag", "Last-Modified"])
    func headOfAnotherRepresentationInvalidates(_ name: String) {
        var cache = Self.stored([name: "1"])
        _ = cache.load(method: "HEAD", answer: [name: "2", "Cache-Control": "max-age=1000"], body: "")
        #expect(cache.entries.isEmpty)
    }

    /// RFC 9111 §4.3.5: "matching values for any received validator fields".
    @Test(arguments: ["ETag", "Last-Modified"])
    func validatorThatTheStoredResponseLacksIsNotEqual(_ name: String) {
        var cache = Self.stored()
        _ = cache.load(method: "HEAD", answer: [name: "1", "Cache-Control": "max-age=1000"], body: "")
        #expect(cache.load().source == .origin)
    }

    /// Where the GET came without `Content-Length`, its body tells, unless that was decoded.
    @Test(arguments: [
        ("4", [:], true), ("9", [:], false), ("4", ["Content-Encoding": "gzip"], false),
        ("9", ["Content-Encoding": "gzip", "Content-Length": "9"], true),
    ])
    func lengthIsComparedWithTheBody(_ length: String, _ stored: [String: String], _ isSame: Bool) {
        var cache = Self.stored(HeaderFields(dictionary: stored.merging(["Last-Modified": "x"]) { $1 }))
        let answer: HeaderFields = ["Content-Length": length, "Cache-Control": "max-age=99", "Last-Modified": "x"]
        _ = cache.load(method: "HEAD", answer: answer, body: "")
        #expect(cache.load().source == (isSame ? .stored : .origin))
    }

    /// The one that a GET would have got.
    @Test func oneOfSeveralStoredResponsesIsUpdated() {
        var cache = Self.stored(["Last-Modified": "x"])
        cache.entries += cache.entries
        _ = cache.load(method: "HEAD", answer: ["A": "2", "Last-Modified": "x"], body: "")
        #expect(cache.entries.map { $0.response.fields["A"] } == ["2", "1"])
    }

    /// What the GET's request had in a field that only the HEAD's answer varies by is not known.
    @Test func headThatVariesByFurtherFieldsInvalidates() {
        let answer: HeaderFields = ["Vary": "Foo", "ETag": "W/\"a\"", "Cache-Control": "max-age=1000"]
        var cache = Self.stored(["ETag": "W/\"a\""])
        _ = cache.load(method: "HEAD", ["Foo": "1"], answer: answer, body: "")
        #expect(cache.entries.isEmpty)
    }

    @Test func sameStrongTagShowsThatTheFurtherFieldsFit() {
        let answer: HeaderFields = ["Vary": "Foo", "ETag": "\"a\"", "Cache-Control": "max-age=1000"]
        var cache = Self.stored(["ETag": "\"a\""])
        _ = cache.load(method: "HEAD", ["Foo": "1"], answer: answer, body: "")
        #expect(cache.load(["Foo": "1"]).source == .stored)
        #expect(cache.load(["Foo": "2"]).source == .origin)
    }

    @Test func headThatVariesByEverythingInvalidates() {
        var cache = Self.stored()
        _ = cache.load(method: "HEAD", answer: ["Vary": "*", "Cache-Control": "max-age=1000"], body: "")
        #expect(cache.entries.isEmpty)
    }

    @Test func headThatVariesAsBeforeUpdates() {
        var cache = PureCache()
        _ = cache.load(["Foo": "1"], answer: ["Vary": "Foo", "Cache-Control": "max-age=2", "Last-Modified": "x"])
        cache.now += 5
        let answer: HeaderFields = ["Vary": "foo", "Cache-Control": "max-age=99", "Last-Modified": "x"]
        _ = cache.load(method: "HEAD", ["Foo": "1"], answer: answer, body: "")
        #expect(cache.load(["Foo": "1"]).source == .stored)
    }

    /// "each of its stored GET responses that could have been chosen": an older one that is shown to be out of date
    /// is removed too, since it would be chosen once the newer one is removed.
    @Test func headInvalidatesEveryMatchingResponse() {
        var cache = PureCache()
        _ = cache.load(["Foo": "1"], answer: ["Vary": "Foo", "ETag": "\"a\"", "Cache-Control": "max-age=2"])
        _ = cache.load(["Bar": "1"], answer: ["Vary": "Bar", "ETag": "\"b\"", "Cache-Control": "max-age=2"])
        #expect(cache.entries.count == 2)
        let both: HeaderFields = ["Foo": "1", "Bar": "1"]
        _ = cache.load(method: "HEAD", both, policy: .reloadIgnoring, answer: ["ETag": "\"c\""], body: "")
        #expect(cache.entries.isEmpty)
    }

    @Test func fieldsThatHeadOmitsProveNothing() {
        var cache = Self.stored(["Content-Length": "4", "ETag": "\"a\""])
        _ = cache.load(method: "HEAD", answer: ["ETag": "\"a\"", "Cache-Control": "max-age=1000"], body: "")
        #expect(cache.load().source == .stored)
    }

    @Test(arguments: [404, 410, 500])
    func errorToAHeadChangesNothing(_ status: Int) {
        var cache = Self.stored()
        _ = cache.load(method: "HEAD", status: status, answer: ["Cache-Control": "max-age=1000"], body: "")
        #expect(cache.load(status: 500).source == .origin)
        #expect(cache.entries.count == 1)
    }

    @Test func noStoreOfAHeadChangesNothing() {
        var cache = Self.stored()
        _ = cache.load(method: "HEAD", answer: ["A": "2", "Cache-Control": "no-store, max-age=1000"], body: "")
        #expect(cache.load(policy: .dontLoad).fields["A"] == "1")
    }

    @Test func headOfAnotherVariantChangesNothing() {
        var cache = Self.stored(["Vary": "Foo"])
        _ = cache.load(method: "HEAD", ["Foo": "1"], answer: ["A": "2", "Cache-Control": "max-age=1000"], body: "")
        #expect(cache.load(policy: .dontLoad).fields["A"] == "1")
    }
}

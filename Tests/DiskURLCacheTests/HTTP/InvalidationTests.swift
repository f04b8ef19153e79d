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

    @Test(arguments: [
        "https://other.com/c", "http://example.com/c", "https://example.com:8443/c", "//other.com/c",
        "https://user@evil.example/c", "mailto:a@example.com", "https://example.com.evil.org/c",
    ])
    func otherOriginsAreLeftAlone(_ location: String) throws {
        #expect(try Self.urls("POST", ["Location": location]).count == 1)
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

    /// cache-tests `head-200-freshness-update`, `head-200-update`, `head-200-retain`
    @Test func headFreshensAndUpdatesTheStoredGet() {
        var cache = Self.stored(["B": "1"])
        let head = cache.load(method: "HEAD", answer: ["A": "2", "Cache-Control": "max-age=1000"], body: "")
        #expect(head.source == .origin && head.fields["A"] == "2")
        let answer = cache.load()
        #expect(answer.source == .stored && answer.fields["A"] == "2" && answer.fields["B"] == "1")
        #expect(answer.body == Data("body".utf8))
    }

    @Test(arguments: ["Content-Length", "ETag", "Last-Modified"])
    func headOfAnotherRepresentationInvalidates(_ name: String) {
        var cache = Self.stored([name: "1"])
        _ = cache.load(method: "HEAD", answer: [name: "2", "Cache-Control": "max-age=1000"], body: "")
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

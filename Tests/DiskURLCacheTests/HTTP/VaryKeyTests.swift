import Foundation
import Testing

@testable import DiskURLCache

@Suite struct VaryKeyTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var id: String
        var reused: Bool
        var vary: HeaderFields
        var first: HeaderFields
        var second: HeaderFields

        init(_ id: String, _ reused: Bool, vary: HeaderFields, _ first: HeaderFields, _ second: HeaderFields) {
            self.id = id
            self.reused = reused
            self.vary = vary
            self.first = first
            self.second = second
        }

        var testDescription: String { id }
    }

    static let three: HeaderFields = ["Foo": "1", "Bar": "abc", "Baz": "789"]

    static let rows: [Row] = [
        Row("vary-match", true, vary: ["Vary": "Foo"], ["Foo": "1"], ["foo": "1"]),
        Row("vary-no-match", false, vary: ["Vary": "Foo"], ["Foo": "1"], ["Foo": "2"]),
        Row("vary-omit-stored", false, vary: ["Vary": "Foo"], [:], ["Foo": "1"]),
        Row("vary-omit", false, vary: ["Vary": "Foo"], ["Foo": "1"], [:]),
        Row("empty is not absent", false, vary: ["Vary": "Foo"], ["Foo": ""], [:]),
        Row("vary-cache-key", true, vary: ["Vary": "Foo"], ["Foo": "1", "Other": "2"], ["Foo": "1", "Other": "3"]),
        Row("vary-2-match", true, vary: ["Vary": "Foo, Bar"], three, three),
        Row("vary-2-no-match", false, vary: ["Vary": "Foo, Bar"], three, ["Foo": "2", "Bar": "abc"]),
        Row("vary-2-match-omit", false, vary: ["Vary": "Foo, Bar"], three, [:]),
        Row("vary-3-match", true, vary: ["Vary": "Foo", "vary": "Bar, Baz"], three, three),
        Row(
            "vary-3-order", false, vary: ["Vary": "Foo, Bar, Baz"], three, ["Foo": "1", "Baz": "789", "Bar": "abcde"]),
        Row(
            "vary-3-omit", true, vary: ["Vary": "Foo, Bar, Baz"], ["Foo": "1", "Baz": "789"],
            ["Baz": "789", "Foo": "1"]),
        Row("vary-star", false, vary: ["Vary": "*"], three, three),
        Row("vary-syntax-star-star", false, vary: ["Vary": "*, *"], three, three),
        Row("vary-syntax-empty-star", false, vary: ["Vary": ", *"], three, three),
        Row("vary-syntax-empty-star-lines", false, vary: ["Vary": "", "vary": "*"], three, three),
        Row("vary-syntax-star-foo", false, vary: ["Vary": "*, Foo"], three, three),
        Row("vary-syntax-foo-star", false, vary: ["Vary": "Foo, *"], three, three),
        Row("what is no field name", false, vary: ["Vary": "Foo Bar"], three, three),
        Row("empty Vary", true, vary: ["Vary": " , "], three, [:]),
        Row("vary-normalise-combine", true, vary: ["Vary": "Foo"], ["Foo": "1, 2"], ["Foo": "1", "foo": "2"]),
        Row("vary-normalise-space", true, vary: ["Vary": "Foo"], ["Foo": "1,2"], ["Foo": " 1, 2 "]),
        Row("order of unknown fields matters", false, vary: ["Vary": "Foo"], ["Foo": "1,2"], ["Foo": "2,1"]),
        Row("case of unknown fields matters", false, vary: ["Vary": "Foo"], ["Foo": "a"], ["Foo": "A"]),
        Row(
            "vary-normalise-lang-order", true, vary: ["Vary": "Accept-Language"], ["Accept-Language": "en, de"],
            ["Accept-Language": "de, en"]),
        Row(
            "vary-normalise-lang-case", true, vary: ["Vary": "Accept-Language"], ["Accept-Language": "en, de"],
            ["Accept-Language": "eN, De"]),
        Row(
            "vary-normalise-lang-space", true, vary: ["Vary": "Accept-Language"], ["Accept-Language": "en, de"],
            ["Accept-Language": " en ,   de"]),
        Row(
            "weights stay with their languages", false, vary: ["Vary": "Accept-Language"],
            ["Accept-Language": "en, de;q=0.5"], ["Accept-Language": "de, en;q=0.5"]),
        Row(
            "a user is not another", false, vary: ["Vary": "Authorization"], ["Authorization": "a"],
            ["Authorization": "b"]),
    ]

    @Test(arguments: rows)
    func rowIsReusedOrNot(_ row: Row) {
        var cache = PureCache()
        var fields = row.vary
        fields.append("Cache-Control", "max-age=5000")
        _ = cache.load(row.first, answer: fields)
        #expect((cache.load(row.second, answer: fields).source == .stored) == row.reused)
    }

    /// cache-tests `vary-invalidate`
    @Test func variantsStaySideBySide() {
        var cache = PureCache()
        let fields: HeaderFields = ["Cache-Control": "max-age=5000", "Vary": "Foo"]
        _ = cache.load(["Foo": "1"], answer: fields, body: "one")
        _ = cache.load(["Foo": "2"], answer: fields, body: "two")
        #expect(cache.load(["Foo": "1"]).body == Data("one".utf8))
        #expect(cache.load(["Foo": "2"]).body == Data("two".utf8))
        #expect(cache.entries.count == 2)
    }

    @Test func newResponseTakesThePlaceOfTheVariantItEquals() {
        var cache = PureCache()
        let fields: HeaderFields = ["Cache-Control": "max-age=1", "Vary": "Foo"]
        _ = cache.load(["Foo": "1"], answer: fields, body: "one")
        _ = cache.load(["Foo": "2"], answer: fields, body: "two")
        cache.now += 5
        _ = cache.load(["Foo": "1"], answer: fields, body: "new")
        #expect(cache.entries.map(\.body) == [Data("new".utf8), Data("two".utf8)])
    }

    @Test func responseWithoutVaryTakesThePlaceOfAll() {
        var cache = PureCache()
        let fields: HeaderFields = ["Cache-Control": "max-age=1", "Vary": "Foo"]
        _ = cache.load(["Foo": "1"], answer: fields)
        _ = cache.load(["Foo": "2"], answer: fields)
        cache.now += 5
        _ = cache.load(["Foo": "3"], answer: ["Cache-Control": "max-age=60"])
        #expect(cache.entries.count == 1)
        #expect(cache.load(["Foo": "1"]).source == .stored)
    }

    @Test func theMostRecentOfSeveralMatchesIsUsed() {
        var cache = PureCache()
        _ = cache.load(["Foo": "1"], answer: ["Cache-Control": "max-age=5000", "Vary": "Foo"], body: "old")
        _ = cache.load(
            ["Foo": "1", "Cache-Control": "no-cache"], answer: ["Cache-Control": "max-age=5000", "Vary": "Foo, Bar"],
            body: "new")
        #expect(cache.load(["Foo": "1"]).body == Data("new".utf8))
        #expect(cache.load(["Foo": "1", "Bar": "x"]).body == Data("old".utf8))
    }

    @Test func valuesAreKeptAsDigestsOnly() throws {
        let key = VaryKey(response: ["Vary": "Cookie"], request: ["Cookie": "secret"])
        #expect(!"\(key)".contains("secret"))
        let digest = try #require(key.fields.first?.value)
        // The same value of another field has another digest.
        #expect(VaryKey(response: ["Vary": "Foo"], request: ["Foo": "secret"]).fields.first?.value != digest)
    }
}

import Foundation
import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct VaryKeyTests {
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

    /// What the public rows do not ask (see `ConformanceRow.vary`).
    static let rows: [Row] = [
        Row("names in another case", true, vary: ["Vary": "Foo"], ["Foo": "1"], ["foo": "1"]),
        Row("empty is not absent", false, vary: ["Vary": "Foo"], ["Foo": ""], [:]),
        Row("names in two lines", true, vary: ["Vary": "Foo", "vary": "Bar, Baz"], three, three),
        Row("what is no field name", false, vary: ["Vary": "Foo Bar"], three, three),
        Row("empty Vary", true, vary: ["Vary": " , "], three, [:]),
        Row("order of unknown fields matters", false, vary: ["Vary": "Foo"], ["Foo": "1,2"], ["Foo": "2,1"]),
        Row("case of unknown fields matters", false, vary: ["Vary": "Foo"], ["Foo": "a"], ["Foo": "A"]),
        Row("empty members of unknown fields matter", false, vary: ["Vary": "Foo"], ["Foo": "1,,2"], ["Foo": "1,2"]),
        Row("a comma is not nothing", false, vary: ["Vary": "Foo"], ["Foo": ","], ["Foo": ""]),
        Row(
            "weights stay with their languages", false, vary: ["Vary": "Accept-Language"],
            ["Accept-Language": "en, de;q=0.5"], ["Accept-Language": "de, en;q=0.5"]),
        Row(
            "the first language is the preferred one", false, vary: ["Vary": "Accept-Language"],
            ["Accept-Language": "en, de"], ["Accept-Language": "de, en"]),
        Row(
            "case and spaces of languages", true, vary: ["Vary": "Accept-Language"],
            ["Accept-Language": "en, de"], ["Accept-Language": "EN ,DE"]),
        Row(
            "order of codings", true, vary: ["Vary": "Accept-Encoding"], ["Accept-Encoding": "gzip, br"],
            ["Accept-Encoding": "br, gzip"]),
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

    /// A digest costs more than the rest of a hit, and each variant has its own copy of the salt.
    @Test func aLookupDigestsAValueOnceForAllVariants() {
        let variants = (1...8).map { number in
            VaryKey(
                response: ["Vary": "Cookie, X-Name"],
                request: RequestFacts(
                    method: "GET", fields: ["Cookie": "\(number)", "X-Name": "a"], salt: CredentialSalt([1, 2, 3])))
        }
        var digests = FieldDigests(of: ["Cookie": "8", "X-Name": "a"])
        #expect(variants.map { $0.matches(&digests) } == Array(repeating: false, count: 7) + [true])
        #expect(digests.made.map(\.name) == ["cookie", "x-name"])
    }

    /// A server may name any number of fields. Those that the request does not have take no work, and cost memory that
    /// is counted.
    @Test func namesThatNoRequestHasAreNotKept() {
        let names = (0..<1_000).map { "x-\($0)" }
        let request: HeaderFields = ["X-7": "1", "Accept": "a"]
        let key = VaryKey(
            response: ["Vary": names.joined(separator: ", ")], request: RequestFacts(method: "GET", fields: request))
        var digests = FieldDigests(of: request)
        let isMatched = key.matches(&digests)
        #expect(isMatched && key.matches(request))
        #expect(digests.made.map(\.name) == ["x-7"])
        let response = StoredResponse(
            method: "GET", status: 200, fields: [:], requestTime: Date(), responseTime: Date(), vary: key)
        var metadata = EntryMetadata(response: .http(response), storedAt: Date(), placement: .memoryOnly)
        #expect(StoredEntry.headCost(metadata) >= 1_000 * MemoryLayout<VaryKey.Field>.stride)
        metadata.tags = names
        #expect(StoredEntry.headCost(metadata) >= 1_000 * (MemoryLayout<VaryKey.Field>.stride + 16))
        let before = StoredEntry.headCost(metadata)
        metadata.userInfo = ["a": .array([.data(Data(count: 10_000)), .dictionary(["b": .string(names.joined())])])]
        #expect(StoredEntry.headCost(metadata) >= before + 10_000 + names.joined().utf8.count)
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
        let key = VaryKey("Cookie", request: ["Cookie": "secret"])
        #expect(!"\(key)".contains("secret"))
        let digest = try #require(key.fields.first?.value)
        // The same value of another field has another digest.
        #expect(VaryKey("Foo", request: ["Foo": "secret"]).fields.first?.value != digest)
    }

    /// An origin chooses how many names there are: if each were compared with each, this would take minutes.
    @Test func keysWithManyNamesAreComparedInOrder() {
        let names = (0..<200_000).map { "x-\($0)" }.sorted()
        func key(_ names: [String], _ value: Int) -> VaryKey {
            let digests = [1, 2].map { SHA256Digest.digest(of: "\($0)") }
            return VaryKey(
                fields: names.map { VaryKey.Field(name: $0, value: digests[value], salt: nil) }, matchesNothing: false)
        }
        let all = key(names, 0)
        #expect(all.overlaps(all))
        #expect(all.overlaps(key(names.map { $0 + "-" }, 1)))
        for name in [names[0], names[77_777], names[199_999]] {
            #expect(!all.overlaps(key([name], 1)) && !key([name], 1).overlaps(all))
            #expect(all.overlaps(key([name], 0)) && key([name], 0).overlaps(all))
        }
    }
}

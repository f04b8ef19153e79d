import Foundation
import Testing

@testable import DiskURLCache

@Suite struct PartialContentTests {
    static let range: HeaderFields = ["Cache-Control": "max-age=3600", "Content-Range": "bytes 4-9/10"]

    static func part(
        _ fields: HeaderFields = range, request: HeaderFields = ["Range": "bytes=4-9"], body: String = "456789"
    ) -> PureCache {
        var cache = PureCache()
        _ = cache.load(request, status: 206, answer: fields, body: body)
        return cache
    }

    @Test(arguments: [
        ("bytes=4-9", "456789", "bytes 4-9/10"), ("bytes=6-8", "678", "bytes 6-8/10"),
        ("bytes=6-", "6789", "bytes 6-9/10"),
        ("bytes=-1", "9", "bytes 9-9/10"),
    ])
    func smallerRangeIsAnsweredFromAPart(_ range: String, _ body: String, _ contentRange: String) {
        var cache = Self.part()
        let answer = cache.load(["Range": range])
        #expect(answer.source == .stored && answer.status == 206)
        #expect(answer.body == Data(body.utf8))
        #expect(answer.fields["Content-Range"] == contentRange)
        #expect(answer.fields["Content-Length"] == String(body.utf8.count))
    }

    /// cache-tests `partial-store-partial-reuse-partial-byterange`: the origin claims six bytes and sends five.
    @Test func onlyBytesThatAreThereAreServed() {
        var cache = Self.part(body: "01234")
        #expect(cache.load(["Range": "bytes=6-8"]).body == Data("234".utf8))
        for range in ["bytes=6-", "bytes=-1", "bytes=-5", "bytes=9-9"] {
            #expect(cache.load(["Range": range], status: 500).source == .origin, "\(range)")
        }
    }

    @Test func partIsNeverServedAsAWhole() {
        for policy in [ReusePolicy.useProtocol, .elseLoad] {
            var cache = Self.part()
            #expect(cache.load(policy: policy).source == .origin)
        }
        var cache = Self.part()
        #expect(cache.load(policy: .dontLoad).source == .unsatisfiable)
        #expect(cache.load(method: "HEAD").source == .origin)
        cache.options.isOffline = true
        #expect(cache.load().source == .unsatisfiable)
        #expect(cache.load(["Range": "bytes=0-1"]).source == .unsatisfiable)
    }

    @Test func stalePartIsNotServed() {
        var cache = Self.part()
        cache.now += 3600
        #expect(cache.load(["Range": "bytes=4-9"], status: 500).source == .origin)
    }

    /// A refresh in the background would ask for all of it, for the sake of a part.
    @Test func aStalePartIsAskedForAndNotRefreshed() {
        var fields = Self.range
        fields.set("Cache-Control", "max-age=60, stale-while-revalidate=600")
        var cache = Self.part(fields)
        cache.now += 100
        let answer = cache.load(["Range": "bytes=4-9"], status: 206, answer: fields, body: "456789")
        #expect(answer.source == .origin && answer.asked?.fields["Range"] == "bytes=4-9")
        // None could be sent.
        cache.now += 100
        #expect(cache.load(["Range": "bytes=4-9", "Cache-Control": "only-if-cached"]).source == .stored)
    }

    @Test func conditionsOnAPartAreForTheOrigin() {
        var cache = Self.part()
        #expect(cache.load(["Range": "bytes=4-9", "If-None-Match": "\"a\""], status: 500).source == .origin)
        #expect(cache.load(["Range": "bytes=4-9", "If-Range": "\"a\""], status: 500).source == .origin)
    }

    @Test(
        arguments: [
            ["Cache-Control": "max-age=60"], ["Cache-Control": "max-age=60", "Content-Range": "bytes 4-9/*"],
            ["Content-Range": "bytes 4-9/10"],
            ["Cache-Control": "max-age=60", "Content-Range": "bytes 4-9/10", "Content-Encoding": "gzip"],
            ["Cache-Control": "no-store, max-age=60", "Content-Range": "bytes 4-9/10"],
        ] as [HeaderFields])
    func partThatCannotBeJudgedIsNotStored(_ fields: HeaderFields) {
        #expect(Self.part(fields).entries.isEmpty)
    }

    @Test func partThatNobodyAskedForIsNotStored() {
        #expect(Self.part(request: [:]).entries.isEmpty)
    }

    @Test func partDoesNotTakeTheWholesPlace() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=1", "ETag": "\"a\""], body: "0123456789")
        cache.now += 5
        _ = cache.load(["Range": "bytes=4-9"], status: 206, answer: Self.range, body: "456789")
        #expect(cache.entries.count == 1)
        #expect(cache.entries.first?.body.count == 10)
    }

    @Test func wholeTakesThePartsPlace() {
        var cache = Self.part()
        _ = cache.load(answer: ["Cache-Control": "max-age=60"], body: "0123456789")
        #expect(cache.entries.count == 1)
        #expect(cache.load(["Range": "bytes=0-1"]).body == Data("01".utf8))
    }

    @Test func partWithSurplusBytesIsNoPart() {
        let fields: HeaderFields = [
            "ETag": "\"a\"", "Cache-Control": "max-age=60", "Content-Range": "bytes 0-4/10",
        ]
        var cache = Self.part(fields, request: ["Range": "bytes=0-4"], body: "0123456789")
        #expect(cache.entries.isEmpty)
        // As another cache, or an older version of this one, may have written it.
        cache = Self.part(fields, request: ["Range": "bytes=0-4"], body: "01234")
        cache.entries[0].body = Data("012345".utf8)
        #expect(cache.load(["Range": "bytes=0-1"], status: 500).source == .origin)
    }

    /// A part has no `Vary` that says for whom else it is.
    @Test func aPartReplacesNoOtherVariant() {
        var cache = PureCache()
        _ = cache.load(
            ["Accept-Language": "en"], answer: ["Cache-Control": "max-age=3600", "Vary": "Accept-Language"])
        let request: HeaderFields = ["Accept-Language": "de", "Range": "bytes=4-9"]
        _ = cache.load(request, status: 206, answer: Self.range, body: "456789")
        #expect(cache.entries.count == 2)
        #expect(cache.load(["Accept-Language": "en"], status: 500).source == .stored)
    }
}

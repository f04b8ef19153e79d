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

    // MARK: Completion

    static func beginning(_ fields: HeaderFields = ["ETag": "\"a\""]) -> PureCache {
        var fields = fields
        fields.append("Cache-Control", "max-age=3600")
        fields.append("Content-Range", "bytes 0-4/10")
        fields.append("A", "1")
        fields.append("B", "1")
        return part(fields, request: ["Range": "bytes=0-4"], body: "01234")
    }

    static let rest = PureCache.Origin(
        status: 206, fields: ["Content-Range": "bytes 5-9/10", "ETag": "\"a\"", "B": "2"], body: Data("56789".utf8))

    @Test func partsOfTheSameStrongTagMakeAWhole() {
        var cache = Self.beginning()
        let answer = cache.load { _ in Self.rest }
        #expect(answer.asked?.fields["If-Range"] == "\"a\"")
        #expect(answer.source == .combined && answer.status == 200)
        #expect(answer.body == Data("0123456789".utf8))
        #expect(answer.fields["Content-Range"] == nil)
        #expect(answer.fields["Content-Length"] == "10")
        #expect(answer.fields["A"] == "1" && answer.fields["B"] == "2")
        #expect(cache.load().body == Data("0123456789".utf8))
        #expect(cache.entries.count == 1)
    }

    /// It is that of the part which it came with (RFC 9530 §2).
    @Test func aWholeHasNoDigestOfAPart() {
        var cache = Self.beginning()
        var rest = Self.rest
        rest.fields.set("Content-Digest", "sha-256=:AAAA:")
        let answer = cache.load { _ in rest }
        #expect(answer.source == .combined && answer.fields["Content-Digest"] == nil)
        #expect(cache.load().fields["Content-Digest"] == nil)
    }

    /// `Limits.md` says up to 8 MB.
    @Test(arguments: [(8 << 20, "bytes=5-"), (8 << 20 + 1, nil)])
    func theRestOfAPartIsAskedForUpToALength(total: Int, range: String?) {
        var cache = Self.part(
            ["Cache-Control": "max-age=3600", "Content-Range": "bytes 0-4/\(total)", "ETag": "\"a\""],
            request: ["Range": "bytes=0-4"], body: "01234")
        #expect(cache.load(status: 503).asked?.fields["Range"] == range)
    }

    /// The parts could not be combined, so the whole is fetched at once.
    @Test func theRestOfAPartWithAWeakTagIsNotAskedFor() {
        var cache = Self.beginning(["ETag": "W/\"a\""])
        let answer = cache.load(body: "0123456789")
        #expect(answer.asked?.fields["Range"] == nil && answer.originRequests == 1)
        #expect(answer.body == Data("0123456789".utf8))
    }

    @Test func partsThatMayDifferAreNotCombined() {
        let wrong: [(inout PureCache.Origin) -> Void] = [
            { $0.fields.set("ETag", "\"b\"") }, { $0.fields.set("ETag", "W/\"a\"") }, { $0.fields.remove("ETag") },
            { $0.fields.set("Content-Range", "bytes 4-9/10") }, { $0.fields.set("Content-Range", "bytes 5-8/10") },
            { $0.fields.set("Content-Range", "bytes 5-9/11") }, { $0.fields.remove("Content-Range") },
            { $0.fields.set("Content-Encoding", "gzip") }, { $0.status = 416 },
        ]
        for change in wrong {
            var cache = Self.beginning()
            var answer = Self.rest
            change(&answer)
            let result = cache.load { request in
                request.fields["Range"] == nil ? PureCache.Origin(body: Data("whole".utf8)) : answer
            }
            #expect(result.source == .origin && result.originRequests == 2 && result.body == Data("whole".utf8))
        }
    }

    @Test func firstPartWithSurplusBytesIsNoPart() {
        var cache = Self.part(
            ["ETag": "\"a\"", "Cache-Control": "max-age=60", "Content-Range": "bytes 0-4/10"],
            request: ["Range": "bytes=0-4"], body: "0123456789")
        #expect(cache.entries.isEmpty)
        // As another cache, or an older version of this one, may have written it.
        cache = Self.beginning()
        cache.entries[0].body = Data("012345".utf8)
        #expect(cache.load(["Range": "bytes=0-1"], status: 500).source == .origin)
        let asked = cache.load(status: 500).asked
        #expect(asked?.fields["Range"] == nil && asked?.fields["If-Range"] == nil)
    }

    @Test func partWithoutTagIsNotCombined() {
        var cache = Self.beginning([:])
        let result = cache.load { request in
            request.fields["Range"] == nil ? PureCache.Origin(body: Data("whole".utf8)) : Self.rest
        }
        #expect(result.body == Data("whole".utf8))
    }

    @Test func somethingNewerReplacesThePart() {
        var cache = Self.beginning()
        let answer = cache.load(answer: ["Cache-Control": "max-age=9", "ETag": "\"b\""], body: "new")
        #expect(answer.source == .origin && answer.originRequests == 1)
        #expect(cache.entries.map(\.body) == [Data("new".utf8)])
    }

    @Test func partThatIsNoBeginningIsNotCompleted() {
        var cache = Self.part()
        #expect(cache.load().asked?.fields["Range"] == nil)
    }

    @Test func combinedResponseMayForbidStoring() {
        var cache = Self.beginning()
        var rest = Self.rest
        rest.fields.set("Cache-Control", "no-store")
        let answer = cache.load { [rest] _ in rest }
        #expect(answer.body.count == 10)
        #expect(cache.load().source == .origin)
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

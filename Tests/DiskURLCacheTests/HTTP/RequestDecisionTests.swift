import Foundation
import Testing

@testable import DiskURLCache

/// What a request asks for, against what is stored.
@Suite struct RequestDecisionTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var id: String
        var source: PureCache.Source
        var stored: HeaderFields
        var asks: String
        var pause: TimeInterval = 3

        var testDescription: String { id }
    }

    /// What the public rows do not ask (see `ConformanceRow.requestDirectives`).
    static let rows: [Row] = [
        Row(id: "max-age not reached", source: .stored, stored: ["Cache-Control": "max-age=3600"], asks: "max-age=3"),
        Row(id: "max-stale without bound", source: .stored, stored: ["Cache-Control": "max-age=1"], asks: "max-stale"),
        Row(id: "max-stale reached", source: .stored, stored: ["Cache-Control": "max-age=1"], asks: "max-stale=2"),
        Row(id: "max-stale exceeded", source: .origin, stored: ["Cache-Control": "max-age=1"], asks: "max-stale=1"),
        Row(
            id: "max-stale against must-revalidate", source: .origin,
            stored: ["Cache-Control": "max-age=1, must-revalidate"], asks: "max-stale=1000"),
        Row(
            id: "max-stale against no-cache", source: .origin, stored: ["Cache-Control": "max-age=1, no-cache"],
            asks: "max-stale=1000"),
        Row(id: "min-fresh met", source: .stored, stored: ["Cache-Control": "max-age=1500"], asks: "min-fresh=1497"),
        Row(
            id: "only-if-cached, fresh", source: .stored, stored: ["Cache-Control": "max-age=3600"],
            asks: "only-if-cached"),
        Row(
            id: "only-if-cached, stale", source: .unsatisfiable, stored: ["Cache-Control": "max-age=1"],
            asks: "only-if-cached"),
        Row(
            id: "only-if-cached, stale allowed", source: .stored, stored: ["Cache-Control": "max-age=1"],
            asks: "only-if-cached, max-stale"),
        Row(id: "unknown directive", source: .stored, stored: ["Cache-Control": "max-age=3600"], asks: "foo=bar"),
    ]

    /// They are looked for once for each request.
    @Test(arguments: RequestFacts.wishes)
    func eachWishIsSeen(name: String) {
        for spelling in [name, name.uppercased(), name.capitalized] {
            let facts = RequestFacts(method: "GET", fields: ["Accept": "a", spelling: "x", "Cookie": "b"])
            #expect(facts.wish(name) == "x")
        }
        #expect(RequestFacts(method: "GET", fields: ["Accept": "a", "X-\(name)": "x"]).wish(name) == nil)
    }

    @Test(arguments: rows)
    func directivesOfTheRequest(_ row: Row) {
        var cache = PureCache()
        _ = cache.load(answer: row.stored)
        cache.now += row.pause
        #expect(cache.load(["Cache-Control": row.asks]).source == row.source)
    }

    @Test func pragmaCountsOnlyWithoutCacheControl() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=3600"])
        #expect(cache.load(["Pragma": "foo"]).source == .stored)
        let reload = cache.load(["Pragma": "foo"], policy: .reloadIgnoring).asked?.fields
        #expect(reload?["Pragma"] == "foo" && reload?["Cache-Control"] == "no-cache")
        #expect(cache.load(policy: .reloadIgnoring).asked?.fields["Pragma"] == "no-cache")
        #expect(cache.load(["Pragma": "no-cache", "Cache-Control": "max-stale"]).source == .stored)
        #expect(cache.load(["Pragma": "no-cache"]).source == .origin)
    }

    // MARK: Cache policies

    // Each policy, with what is stored fresh, stale or not at all: `LoaderPolicyTests`.

    @Test func reloadTellsTheCachesOnTheWay() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=60", "ETag": "\"a\""])
        let reload = cache.load(policy: .reloadIgnoring, answer: ["ETag": "\"a\""]).asked
        #expect(reload?.fields["Cache-Control"] == "no-cache")
        #expect(reload?.fields["If-None-Match"] == nil)
        let revalidation = cache.load(policy: .revalidate(because: .cachePolicy)).asked
        #expect(revalidation?.fields["Cache-Control"] == "max-age=0")
        #expect(revalidation?.fields["If-None-Match"] == "\"a\"")
        let own = cache.load(["Cache-Control": "foo"], policy: .revalidate(because: .cachePolicy)).asked
        #expect(own?.fields["Cache-Control"] == "foo")
    }

    @Test func immutableIsStillReloadedByForce() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=60, immutable"])
        #expect(cache.load(["Cache-Control": "no-cache"]).source == .origin)
        #expect(cache.load(policy: .reloadIgnoring).source == .origin)
    }

    // MARK: Offline

    @Test func offlineServesWhatIsStaleAndNeverAsks() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=1"])
        cache.now += 1e6
        cache.options.isOffline = true
        let answer = cache.load(["Cache-Control": "no-cache"])
        #expect(answer.source == .stored)
        #expect(answer.fields["Age"] == "1000000")
        #expect(cache.load(policy: .revalidate(because: .cachePolicy)).source == .stored)
        #expect(cache.load(policy: .reloadIgnoring).source == .unsatisfiable)
        #expect(cache.load(method: "POST").source == .unsatisfiable)
    }

    @Test func offlineObeysMustRevalidateAndNoCache() {
        for value in ["max-age=1, must-revalidate", "no-cache"] {
            var cache = PureCache()
            _ = cache.load(answer: ["Cache-Control": value, "ETag": "\"a\""])
            cache.now += 60
            cache.options.isOffline = true
            #expect(cache.load().source == .unsatisfiable)
            #expect(cache.load(policy: .elseLoad).source == .stored)
        }
    }

    // MARK: What is not for a cache

    @Test func conditionsForTheOriginAreForwarded() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=3600", "ETag": "\"a\""])
        #expect(cache.load(["If-Match": "\"a\""]).decision == .fetch(.precondition, fields: [:]))
        #expect(cache.load(["If-Unmodified-Since": httpDate()]).source == .origin)
    }

    @Test func otherMethodsGoToTheOrigin() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=3600"])
        #expect(cache.load(method: "DELETE").decision == .fetch(.methodNotCached, fields: [:]))
    }
}

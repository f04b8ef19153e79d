import Foundation
import Testing

@testable import DiskURLCache

/// Stale on purpose: RFC 5861, and what forbids it.
@Suite struct StaleTests {
    static func stale(_ control: String, age: TimeInterval, options: CachingOptions = CachingOptions()) -> PureCache {
        var cache = PureCache()
        cache.options = options
        _ = cache.load(answer: ["Cache-Control": control, "ETag": "\"abc\""])
        cache.now += age
        return cache
    }

    // MARK: stale-while-revalidate

    /// cache-tests `stale-while-revalidate`
    @Test func staleIsServedAndRefreshedBehind() {
        var cache = Self.stale("max-age=1, stale-while-revalidate=3600", age: 3)
        guard case .useStored(let reuse) = cache.load().decision else {
            Issue.record("not served from the store")
            return
        }
        #expect(reuse.allowance == .staleWhileRevalidate)
        #expect(reuse.backgroundRevalidation?.fields["If-None-Match"] == "\"abc\"")
        #expect(reuse.freshness.timeToLive == -2)
    }

    @Test func refreshWithoutValidatorIsAnOrdinaryRequest() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=1, stale-while-revalidate=9"])
        cache.now += 3
        guard case .useStored(let reuse) = cache.load().decision else {
            Issue.record("not served from the store")
            return
        }
        #expect(reuse.backgroundRevalidation == Revalidation(variant: reuse.variant, fields: [:], reason: .stale))
    }

    @Test func requestThatForbidsTheNetworkStartsNoRefresh() {
        var cache = Self.stale("max-age=1, stale-while-revalidate=3600", age: 3)
        guard case .useStored(let reuse) = cache.load(["Cache-Control": "only-if-cached"]).decision else {
            Issue.record("not served from the store")
            return
        }
        #expect(reuse.backgroundRevalidation == nil)
    }

    /// Windows that options give never lengthen the life of an error; those that the origin states do.
    @Test(arguments: [404, 410, 501], [true, false]) func anErrorGetsNoWindowFromOptions(status: Int, isStated: Bool) {
        var cache = PureCache()
        cache.options.defaultStaleWhileRevalidate = 86_400
        cache.options.defaultStaleIfError = 86_400
        let windows = isStated ? ", stale-while-revalidate=15" : ""
        _ = cache.load(status: status, answer: ["Cache-Control": "max-age=10\(windows)"])
        cache.now += 20
        var failing = cache
        #expect((cache.load().source == .stored) == isStated)
        failing.now += 10
        #expect(failing.load(status: 503, answer: [:]).source == .origin)
    }

    /// cache-tests `stale-while-revalidate-window`
    @Test(arguments: [(4.0, true), (5.0, false), (6.0, false)])
    func windowEnds(_ age: TimeInterval, _ isServed: Bool) {
        var cache = Self.stale("max-age=1, stale-while-revalidate=4", age: age)
        #expect((cache.load().source == .stored) == isServed)
    }

    @Test func freshNeedsNoRefresh() {
        var cache = Self.stale("max-age=10, stale-while-revalidate=4", age: 5)
        guard case .useStored(let reuse) = cache.load().decision else {
            Issue.record("not served from the store")
            return
        }
        #expect(reuse.allowance == nil && reuse.backgroundRevalidation == nil)
    }

    @Test(arguments: ["must-revalidate", "no-cache"])
    func whatForbidsStalenessWins(_ directive: String) {
        var cache = Self.stale("max-age=1, stale-while-revalidate=99, stale-if-error=99, \(directive)", age: 3)
        #expect(cache.load(origin: { _ in nil }).source == .unsatisfiable)
        #expect(cache.load(status: 503).status == 503)
    }

    @Test func clientThatWantsFreshGetsFresh() {
        // RFC 9111 §5.2.1.1: who says how old it may be does not want a stale one, unless `max-stale` says so.
        for directive in ["no-cache", "max-age=0", "max-age=100", "min-fresh=1"] {
            var cache = Self.stale("max-age=1, stale-while-revalidate=3600", age: 3)
            #expect(cache.load(["Cache-Control": directive]).source == .origin)
        }
        var cache = Self.stale("max-age=1, stale-while-revalidate=3600", age: 3)
        #expect(cache.load(["Cache-Control": "max-age=100, max-stale"]).source == .stored)
    }

    @Test func refreshIsAskedWithoutTheClientsRangeAndConditions() {
        var cache = Self.stale("max-age=1, stale-while-revalidate=3600", age: 3)
        let fields: HeaderFields = ["If-None-Match": "\"x\"", "Range": "bytes=0-1", "Foo": "1"]
        guard case .useStored(let reuse) = cache.load(fields).decision else {
            Issue.record("not served from the store")
            return
        }
        #expect(reuse.backgroundRevalidation?.fields["If-None-Match"] == "\"abc\"")
        #expect(RequestFacts(method: "GET", fields: fields).unconditional.fields == ["Foo": "1"])
    }

    @Test func directivesOfARequestAreThoseOfItsFields() {
        let fields: HeaderFields = ["Cache-Control": "no-store, max-age=3", "Range": "bytes=0-1"]
        let facts = RequestFacts(method: "GET", fields: fields)
        #expect(facts.directives == RequestDirectives(fields))
        #expect(facts.unconditional.directives == facts.directives)
        #expect(facts.directives.noStore && facts.directives.maxAge == 3)
    }

    // MARK: stale-if-error

    /// cache-tests `stale-sie-close`, `stale-sie-503`
    @Test(arguments: [500, 501, 502, 503, 504, 505, 507, 520, 522, 530, 599])
    func errorIsHiddenWithinTheBound(_ status: Int) {
        var cache = Self.stale("max-age=2, stale-if-error=60", age: 61)
        let answer = cache.load(status: status)
        #expect(answer.source == .staleOnError && answer.status == 200 && answer.fields["Age"] == "61")
        #expect(cache.load(origin: { _ in nil }).source == .staleOnError)
        cache.now += 1
        #expect(cache.load(status: status).status == status)
        #expect(cache.load(origin: { _ in nil }).source == .unsatisfiable)
    }

    /// A window of 0 seconds is none, fresh or not, and N seconds are not N + 1.
    @Test(arguments: [(0, 0, false), (0, 2, false), (1, 2, true), (1, 3, false)])
    func theWindowOfAnErrorEnds(_ window: Int, _ age: TimeInterval, _ isServed: Bool) {
        for control in ["max-age=2, stale-if-error=\(window)", "max-age=2, stale-while-revalidate=\(window)"] {
            var cache = Self.stale(control, age: age)
            let answer = cache.load(["Cache-Control": age == 0 ? "max-age=0" : ""]) { _ in nil }
            #expect((answer.source != .unsatisfiable) == isServed, "\(control)")
        }
    }

    @Test(arguments: [404, 403, 429])
    func otherAnswersAreDelivered(_ status: Int) {
        var cache = Self.stale("max-age=2, stale-if-error=60", age: 5)
        #expect(cache.load(status: status).status == status)
    }

    @Test func withoutPermissionTheErrorIsDelivered() {
        var cache = Self.stale("max-age=2", age: 5)
        #expect(cache.load(status: 503).status == 503)
        #expect(cache.load(origin: { _ in nil }).source == .unsatisfiable)
        #expect(cache.load(["Cache-Control": "stale-if-error=10"], status: 503).source == .staleOnError)
    }

    @Test func whoAskedTheOriginGetsItsError() {
        var cache = Self.stale("max-age=2, stale-if-error=60", age: 5)
        #expect(cache.load(["Cache-Control": "no-cache"], status: 503).status == 503)
        #expect(cache.load(policy: .reloadIgnoring, status: 503).status == 503)
        #expect(cache.load(policy: .revalidate(because: .cachePolicy), status: 503).status == 503)
    }

    @Test func anotherVariantDoesNotHideTheError() {
        var cache = PureCache()
        _ = cache.load(["Foo": "1"], answer: ["Cache-Control": "max-age=1, stale-if-error=99", "Vary": "Foo"])
        cache.now += 5
        #expect(cache.load(["Foo": "2"], status: 503).status == 503)
    }

    @Test func rangeIsAnsweredFromWhatHidesTheError() {
        var cache = Self.stale("max-age=2, stale-if-error=60", age: 5)
        let answer = cache.load(["Range": "bytes=0-1"], status: 503)
        #expect(answer.status == 206 && answer.body == Data("bo".utf8))
    }

    // MARK: Options

    @Test func optionsStandInForServersThatSendNeither() {
        var options = CachingOptions()
        options.defaultStaleWhileRevalidate = 10
        options.defaultStaleIfError = 20
        var cache = Self.stale("max-age=1", age: 10, options: options)
        #expect(cache.load().source == .stored)
        cache.now += 1
        #expect(cache.load(status: 500).source == .staleOnError)
        cache.now += 10
        #expect(cache.load(status: 500).source == .origin)
        // What the server says counts before the option.
        var own = Self.stale("max-age=1, stale-while-revalidate=0, stale-if-error=0", age: 3, options: options)
        #expect(own.load(status: 500).source == .origin)
    }
}

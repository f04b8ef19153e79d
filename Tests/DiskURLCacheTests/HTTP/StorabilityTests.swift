import Foundation
import Testing

@testable import DiskURLCache

@Suite struct StorabilityTests {
    static let fresh: HeaderFields = ["Cache-Control": "max-age=3600"]

    static func refusal(
        method: String = "GET", of request: HeaderFields = [:], status: Int = 200, _ fields: HeaderFields
    ) -> DiskURLCache.Reason? {
        var cache = PureCache()
        _ = cache.load(method: method, request, status: status, answer: fields)
        guard case .refuse(let reason) = cache.lastVerdict else { return nil }
        return reason
    }

    @Test func noStoreOfTheRequest() {
        #expect(Self.refusal(of: ["Cache-Control": "no-store"], Self.fresh) == .requestNoStore)
    }

    /// Of the public rows `status-*-fresh` and `status-*-stale`, those that the loader does not play.
    @Test(arguments: [301, 302, 303, 307, 308])
    func aRedirectWithALifetimeIsStoredWhileFresh(_ status: Int) {
        var cache = PureCache()
        _ = cache.load(status: status, answer: Self.fresh)
        #expect(cache.load(status: status).source == .stored)
        cache.now += 3600
        #expect(cache.load(status: status).source == .origin)

        var other = PureCache()
        let past: HeaderFields = ["Expires": httpDate(-5000), "Last-Modified": httpDate(-100_000), "Date": httpDate()]
        _ = other.load(status: status, answer: past)
        #expect(other.load(status: status).source == .origin)
    }

    /// The list of statuses for which a lifetime may be guessed does not bind the app.
    @Test(
        arguments: [200, 201, 202, 226, 300, 301, 302, 303, 307, 308],
        [CachingOptions.Lifetime.whenMissing(seconds: 60), .always(seconds: 60), .atLeast(seconds: 60)])
    func aLifetimeOfTheAppHoldsForEachStatusThatIsNoError(_ status: Int, _ lifetime: CachingOptions.Lifetime) {
        var cache = PureCache()
        cache.options.lifetime = lifetime
        _ = cache.load(status: status, answer: ["Location": "/to"])
        cache.now += 59
        #expect(cache.load(status: status).source == .stored)
        cache.now += 1
        #expect(cache.load(status: status).source == .origin)
    }

    @Test(arguments: [100, 199, 600, 999, -1, 0])
    func whatIsNoFinalStatusIsNotStored(_ status: Int) {
        #expect(Self.refusal(status: status, Self.fresh) == .statusNotCacheable)
    }

    @Test(arguments: [412, 416, 417])
    func answerToTheRequestsOwnConditionRangeOrExpectationIsNotStored(_ status: Int) {
        #expect(Self.refusal(of: ["Range": "bytes=20-"], status: status, Self.fresh) == .aboutRequestOnly)
    }

    /// RFC 6585 forbids it for 428, 429, 431 and 511. A stored 401 would keep the user out after a login.
    @Test(arguments: [401, 407, 421, 425, 428, 429, 431, 511])
    func answerToTheSenderOrTheConnectionIsNotStored(_ status: Int) {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=1"])
        cache.now += 5
        #expect(cache.load(status: status, answer: ["Cache-Control": "public, max-age=60"]).status == status)
        let code = [401, 407].contains(status) ? "about-request-only" : "about-sending"
        #expect(cache.lastVerdict?.refusal?.code == code)
        #expect(cache.load(policy: .dontLoad).status == 200)
        #expect(cache.load(answer: [:]).status == 200)
    }

    @Test(arguments: [302, 307, 403, 500, 503, 599])
    func otherStatusWithoutALifetimeIsNotStored(_ status: Int) {
        #expect(Self.refusal(status: status, ["ETag": "\"a\""]) == .statusNotCacheable)
        #expect(Self.refusal(status: status, ["Cache-Control": "no-cache, private"]) == .statusNotCacheable)
    }

    @Test func errorThatCouldNeverBeFreshDoesNotTakeAGoodOnesPlace() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=1"])
        cache.now += 5
        _ = cache.load(status: 500, answer: ["Cache-Control": "no-cache, private"])
        #expect(cache.entries.count == 1)
        #expect(cache.load(policy: .dontLoad).status == 200)
    }

    @Test func successWithoutAnythingIsStoredForOfflineUse() {
        var cache = PureCache()
        _ = cache.load(answer: [:])
        #expect(cache.load(policy: .elseLoad).source == .stored)
        #expect(cache.load().source == .origin)
    }

    /// cache-tests `status-599-must-understand`, `status-200-must-understand`
    @Test func mustUnderstand() {
        let fields: HeaderFields = ["Cache-Control": "max-age=3600, no-store, must-understand"]
        #expect(Self.refusal(status: 200, fields) == nil)
        #expect(Self.refusal(status: 599, fields) == .statusNotUnderstood)
        #expect(Self.refusal(status: 599, ["Cache-Control": "max-age=3600, must-understand"]) == .statusNotUnderstood)
    }

    @Test func methods() {
        #expect(Self.refusal(method: "POST", Self.fresh) == .methodNotCached)
        #expect(Self.refusal(method: "FOO", Self.fresh) == .methodNotCached)
    }

    @Test func aHeadIsNotStored() {
        var cache = PureCache()
        for _ in 0..<2 {
            #expect(cache.load(method: "HEAD", answer: ["Cache-Control": "max-age=60"], body: "").source == .origin)
        }
        // What a GET brings answers both.
        #expect(cache.load(answer: ["Cache-Control": "max-age=60"]).source == .origin)
        #expect(cache.load(method: "HEAD").source == .stored && cache.load().source == .stored)
        #expect(Self.refusal(method: "HEAD", status: 404, Self.fresh) == .methodNotCached)
    }

    @Test func responsesAreEqualByAllThatTheySay() {
        func response(_ status: Int, _ fields: HeaderFields) -> StoredResponse {
            StoredResponse(
                method: "GET", status: status, fields: fields, requestTime: PureCache.start,
                responseTime: PureCache.start, vary: .none)
        }
        #expect(response(200, ["A": "1"]) == response(200, ["A": "1"]))
        #expect(response(200, ["A": "1"]) != response(200, ["A": "2"]))
        #expect(response(200, ["A": "1"]) != response(404, ["A": "1"]))
    }

    @Test func nothingElseAnswersAnotherMethod() {
        var cache = PureCache()
        cache.options.furtherMethods = ["QUERY"]
        _ = cache.load(method: "QUERY", answer: ["Cache-Control": "max-age=60"])
        #expect(cache.load(method: "QUERY").source == .stored)
        #expect(cache.load(method: "HEAD").source == .origin)
        #expect(cache.load().source == .origin)
    }

    @Test func furtherMethodsAreStoredUnderTheirOwnName() {
        var cache = PureCache()
        cache.options.furtherMethods = ["POST"]
        _ = cache.load(method: "POST", answer: ["Cache-Control": "max-age=1", "ETag": "\"a\""])
        #expect(cache.entries.first?.response.method == "POST")
        #expect(cache.load(method: "POST").source == .stored)
        cache.now += 5
        // A condition would turn a POST into a 412.
        #expect(cache.load(method: "POST").asked?.fields["If-None-Match"] == nil)
    }

    @Test func notModifiedThatNobodyAskedForIsNotStored() {
        #expect(Self.refusal(of: ["If-None-Match": "\"a\""], status: 304, Self.fresh) == .notModified)
    }

    // MARK: Whether an older response stays or is removed

    @Test func answerThatCannotBeStoredTakesAwayWhatItReplaces() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=1"])
        cache.now += 5
        _ = cache.load(answer: ["Cache-Control": "no-store"])
        #expect(cache.entries.isEmpty)
    }

    @Test(arguments: [401, 403, 429, 500, 503])
    func errorLeavesWhatIsStored(_ status: Int) {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=1"])
        cache.now += 5
        _ = cache.load(status: status, answer: ["Cache-Control": "no-store"])
        #expect(cache.entries.count == 1)
    }

    @Test func requestThatIsNotToBeStoredLeavesWhatIsStored() {
        var cache = PureCache()
        _ = cache.load(answer: Self.fresh)
        _ = cache.load(["Cache-Control": "no-store"], answer: Self.fresh, body: "private")
        #expect(cache.load().body == Data("body".utf8))
    }
}

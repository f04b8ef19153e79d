import Foundation
import Testing

@testable import DiskURLCache

/// What the app may wish against HTTP, decided without I/O: any stored response instead of none, a least time between
/// two requests, a lifetime for errors, a least lifetime.
struct RestTimeTests {
    // MARK: Any stored response instead of none

    static let prohibitions = ["no-cache", "max-age=0, private, must-revalidate", "max-age=0", "max-age=60"]

    @Test(arguments: prohibitions) func anyStoredResponseReplacesAnError(_ control: String) {
        for accepts in [false, true] {
            var cache = StaleTests.stale(control, age: 1_000)
            cache.options.acceptsAnyStored = accepts
            #expect(cache.load(status: 503).source == (accepts ? .staleOnError : .origin))
            #expect(cache.load { _ in nil }.source == (accepts ? .staleOnError : .unsatisfiable))
        }
    }

    @Test(arguments: [
        ("no-cache", "no-cache"), ("max-age=0, must-revalidate", "must-revalidate, proxy-revalidate or s-maxage"),
    ])
    func theReasonSaysWhatTheServerForbids(_ control: String, _ word: String) {
        var cache = StaleTests.stale(control, age: 1_000)
        cache.options.acceptsAnyStored = true
        cache.options.isOffline = true
        guard case .useStored(let reuse) = cache.load().decision else {
            Issue.record("not served from the store")
            return
        }
        #expect(reuse.allowance == .anyStored)
        #expect(reuse.allowance?.description.hasSuffix("against the server's \(word)") == true)
    }

    @Test func onlineNothingIsUsedAgainstTheServersWord() {
        var cache = StaleTests.stale("no-cache", age: 1)
        cache.options.acceptsAnyStored = true
        #expect(cache.load(status: 304, answer: ["ETag": "\"abc\""]).source == .validated)
    }

    @Test func aStoredErrorReplacesNoError() {
        var cache = PureCache()
        cache.options.acceptsAnyStored = true
        _ = cache.load(status: 503, answer: ["Cache-Control": "max-age=10"])
        cache.now += 100
        #expect(cache.load(status: 500).source == .origin)
    }

    // MARK: A least time between two requests

    /// A held 401 would keep the user out after a login.
    @Test(
        arguments: [401, 407, 412, 416, 417],
        [
            ("GET", ["Cache-Control": "no-store"]), ("GET", ["Vary": "*"]), ("HEAD", [:]),
            ("HEAD", ["Cache-Control": "no-store"]), ("GET", [:]),
        ] as [(String, HeaderFields)])
    func whatIsAboutOneRequestIsNeverHeld(_ status: Int, _ row: (method: String, fields: HeaderFields)) {
        var cache = PureCache()
        cache.options.minimumInterval = 60
        cache.options.errorLifetime = 60
        for _ in 0..<2 {
            #expect(cache.load(method: row.method, status: status, answer: row.fields).source == .origin)
        }
    }

    @Test(arguments: ["no-cache", "max-age=0", "max-age=0, must-revalidate", "private"])
    func aStoredResponseAnswersUntilTheIntervalIsOver(_ control: String) {
        var cache = PureCache()
        cache.options.minimumInterval = 900
        // The server's clock is two hours behind.
        _ = cache.load(answer: ["Cache-Control": control, "Date": httpDate(-7_200), "ETag": "\"a\""])
        cache.now += 899
        guard case .useStored(let reuse) = cache.load().decision else {
            Issue.record("asked before the interval was over")
            return
        }
        #expect(reuse.allowance == .minimumInterval)
        cache.now += 1
        #expect(cache.load(status: 304, answer: ["ETag": "\"a\""]).source == .validated)
        cache.now += 100
        #expect(cache.load().source == .stored)
    }

    @Test(arguments: [["Cache-Control": "no-cache"], ["Cache-Control": "max-age=0"], ["Pragma": "no-cache"]])
    func aRequestThatReloadsIsSentAllTheSame(_ fields: [String: String]) {
        var cache = PureCache()
        cache.options.minimumInterval = 900
        _ = cache.load(answer: ["Cache-Control": "max-age=0"])
        #expect(cache.load().source == .stored)
        #expect(cache.load(HeaderFields(dictionary: fields)).source == .origin)
        for policy in [ReusePolicy.revalidate(because: .cachePolicy), .reloadIgnoring] {
            #expect(cache.load(policy: policy).source == .origin)
        }
    }

    static let unstorable: [(status: Int, fields: HeaderFields, reason: DiskURLCache.Reason)] = [
        (418, ["Cache-Control": "must-understand, no-store"], .statusNotUnderstood),
        (200, ["Cache-Control": "no-store"], .noStore), (200, ["Vary": "*"], .varyAsterisk), (405, [:], .notReusable),
        (500, [:], .statusNotCacheable), (302, ["Location": "/x"], .statusNotCacheable),
    ]

    @Test(arguments: unstorable.indices) func whatMayNotBeStoredIsHeld(row: Int) {
        let (status, fields, reason) = Self.unstorable[row]
        var cache = PureCache()
        _ = cache.load(status: status, answer: fields)
        #expect(cache.lastVerdict == .refuse(reason))
        cache.options.minimumInterval = 60
        _ = cache.load(status: status, answer: fields)
        guard case .hold(let response, let because)? = cache.lastVerdict else {
            Issue.record("not held: \(String(describing: cache.lastVerdict))")
            return
        }
        #expect(because == reason && response.status == status && !response.vary.matchesNothing)
        #expect(cache.entries.isEmpty)
    }

    /// It replaces what is stored in any case.
    @Test(arguments: [301, 308, 404, 410]) func whatMayBeStoredIsStoredForTheTime(_ status: Int) {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=0"])
        cache.options.minimumInterval = 60
        cache.now += 100
        _ = cache.load(status: status, answer: [:], body: "gone")
        #expect(cache.entries.map(\.response.status) == [status])
        cache.now += 59
        #expect(cache.load().source == .stored)
        cache.now += 1
        #expect(cache.load().source == .origin)
    }

    @Test func whatASharedCacheMustNotGiveToOthersIsNotHeld() {
        var cache = PureCache()
        cache.options.minimumInterval = 60
        cache.options.isShared = true
        for fields in [["Cache-Control": "no-store", "Set-Cookie": "a=b"], ["Cache-Control": "no-store, private"]] {
            _ = cache.load(answer: HeaderFields(dictionary: fields))
            #expect(cache.lastVerdict == .refuse(.noStore))
        }
    }

    // MARK: Errors

    @Test(
        arguments: [
            (404, nil, 30), (429, "120", 120), (429, "5", 30), (503, httpDate(90), 90), (503, "9999999999", 86_400),
            (404, "never", 30),
        ] as [(Int, String?, TimeInterval)])
    func anErrorRestsForItsTime(_ status: Int, _ retryAfter: String?, _ seconds: TimeInterval) {
        var fields: HeaderFields = [:]
        if let retryAfter { fields.set("Retry-After", retryAfter) }
        let facts = ReuseFacts(
            StoredResponse(
                method: "GET", status: status, fields: fields, requestTime: PureCache.start,
                responseTime: PureCache.start, vary: .none))
        for reason in [DiskURLCache.Reason.errorLifetime, .minimumInterval] {
            var options = CachingOptions()
            if reason == .errorLifetime { options.errorLifetime = 30 } else { options.minimumInterval = 30 }
            #expect(facts.rest(options, now: PureCache.start + seconds - 1) == reason)
            #expect(facts.rest(options, now: PureCache.start + seconds) == nil)
            #expect(facts.rest(options, now: PureCache.start - 1) == nil, "the clock was set back")
        }
    }

    @Test func aSuccessHasNoErrorLifetime() {
        var cache = PureCache()
        cache.options.errorLifetime = 30
        _ = cache.load(answer: ["Cache-Control": "no-store"])
        #expect(cache.lastVerdict == .refuse(.noStore))
    }

    // MARK: A least lifetime

    @Test(arguments: [
        ("max-age=10", 100.0), ("max-age=1000", 1_000), ("no-cache, max-age=1000", 100), ("", 100),
        ("max-age=0, must-revalidate", 100),
    ])
    func theLongerOfTwoLifetimesCounts(_ control: String, _ lifetime: TimeInterval) {
        var cache = PureCache()
        cache.options.lifetime = .atLeast(seconds: 100)
        _ = cache.load(answer: ["Cache-Control": control])
        cache.now += lifetime - 1
        #expect(cache.load().source == .stored)
        cache.now += 1
        #expect(cache.load(answer: ["Cache-Control": control]).source == .origin)
    }

    @Test func aLeastLifetimeOfZeroIsNone() {
        var cache = PureCache()
        cache.options.lifetime = .atLeast(seconds: 0)
        _ = cache.load(answer: ["Cache-Control": "no-cache"])
        #expect(cache.load(answer: [:]).source == .origin)
    }
}

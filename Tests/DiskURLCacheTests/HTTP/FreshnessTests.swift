import Foundation
import Testing

@testable import DiskURLCache

/// One response stored, one request later: is it reused? Ids are those of the public suite http-tests/cache-tests.
struct ReuseRow: Sendable, CustomTestStringConvertible {
    var id: String
    var reused: Bool
    var fields: HeaderFields
    var status = 200
    /// Seconds between the two requests.
    var pause: TimeInterval = 3

    var testDescription: String { id }

    func play() -> PureCache.Answer {
        var cache = PureCache()
        _ = cache.load(status: status, answer: fields)
        cache.now += pause
        return cache.load(status: status, answer: fields, body: "new")
    }
}

@Suite struct FreshnessTests {
    static let cacheControl: [ReuseRow] = [
        ReuseRow(id: "freshness-none", reused: false, fields: [:]),
        ReuseRow(id: "freshness-max-age", reused: true, fields: ["Cache-Control": "max-age=3600"]),
        ReuseRow(id: "freshness-max-age-stale", reused: false, fields: ["Cache-Control": "max-age=2"]),
        ReuseRow(id: "freshness-max-age-0", reused: false, fields: ["Cache-Control": "max-age=0"]),
        ReuseRow(id: "freshness-max-age-max-minus-1", reused: true, fields: ["Cache-Control": "max-age=2147483647"]),
        ReuseRow(id: "freshness-max-age-max", reused: true, fields: ["Cache-Control": "max-age=2147483648"]),
        ReuseRow(id: "freshness-max-age-max-plus-1", reused: true, fields: ["Cache-Control": "max-age=2147483649"]),
        ReuseRow(id: "freshness-max-age-max-plus", reused: true, fields: ["Cache-Control": "max-age=99999999999"]),
        ReuseRow(
            id: "beyond every integer", reused: true,
            fields: ["Cache-Control": "max-age=999999999999999999999999999999"]),
        ReuseRow(
            id: "freshness-max-age-age", reused: false,
            fields: ["Cache-Control": "max-age=3600", "Age": "7200", "Date": httpDate()]),
        ReuseRow(
            id: "freshness-max-age-date", reused: false,
            fields: ["Cache-Control": "max-age=3600", "Date": httpDate(-7200)]),
        ReuseRow(
            id: "freshness-max-age-expires", reused: true,
            fields: ["Cache-Control": "max-age=3600", "Expires": httpDate(-7200), "Date": httpDate()]),
        ReuseRow(
            id: "freshness-max-age-expires-invalid", reused: true,
            fields: ["Cache-Control": "max-age=3600", "Expires": "0", "Date": httpDate()]),
        ReuseRow(
            id: "freshness-max-age-0-expires", reused: false,
            fields: ["Cache-Control": "max-age=0", "Expires": httpDate(3600), "Date": httpDate()]),
        ReuseRow(id: "freshness-max-age-extension", reused: true, fields: ["Cache-Control": "foobar, max-age=3600"]),
        ReuseRow(id: "freshness-max-age-case-insenstive", reused: true, fields: ["Cache-Control": "MaX-aGe=3600"]),
        ReuseRow(id: "freshness-max-age-negative", reused: false, fields: ["Cache-Control": "max-age=-3600"]),
        ReuseRow(
            id: "freshness-max-age-s-maxage-private", reused: false,
            fields: ["Cache-Control": "s-maxage=3600, max-age=1"]),
        ReuseRow(
            id: "freshness-max-age-s-maxage-private-multiple", reused: false,
            fields: ["Cache-Control": "s-maxage=3600", "cache-control": "max-age=1"]),
        ReuseRow(id: "freshness-max-age-quoted", reused: true, fields: ["Cache-Control": "max-age=\"3600\""]),
        ReuseRow(id: "freshness-max-age-single-quoted", reused: false, fields: ["Cache-Control": "max-age='3600'"]),
        ReuseRow(
            id: "freshness-max-age-ignore-quoted", reused: false,
            fields: ["Cache-Control": "extension=\"max-age=3600\", max-age=1"]),
        ReuseRow(
            id: "freshness-max-age-ignore-quoted-rev", reused: false,
            fields: ["Cache-Control": "max-age=1, extension=\"max-age=3600\""]),
        ReuseRow(id: "freshness-max-age-leading-zero", reused: true, fields: ["Cache-Control": "max-age=003600"]),
        ReuseRow(
            id: "freshness-max-age-space-before-equals", reused: false, fields: ["Cache-Control": "max-age =3600"]),
        ReuseRow(id: "freshness-max-age-space-after-equals", reused: false, fields: ["Cache-Control": "max-age= 3600"]),
        ReuseRow(id: "freshness-max-age-decimal-five", reused: false, fields: ["Cache-Control": "max-age=3600.5"]),
        ReuseRow(id: "freshness-max-age-a100", reused: false, fields: ["Cache-Control": "max-age=a3600"]),
        ReuseRow(id: "freshness-max-age-100a", reused: false, fields: ["Cache-Control": "max-age=3600a"]),
        ReuseRow(
            id: "the least of two max-age, the second", reused: false,
            fields: ["Cache-Control": "max-age=1800, max-age=1"]),
        ReuseRow(
            id: "the least of two max-age, the first", reused: false,
            fields: ["Cache-Control": "max-age=1, max-age=1800"]),
        ReuseRow(id: "immutable is no lifetime", reused: false, fields: ["Cache-Control": "immutable"]),
        ReuseRow(
            id: "Pragma counts without Cache-Control", reused: false,
            fields: ["Pragma": "no-cache", "Expires": httpDate(3600), "Date": httpDate()]),
        ReuseRow(
            id: "pragma-response-no-cache", reused: true,
            fields: ["Pragma": "no-cache", "Cache-Control": "max-age=3600"]),
    ]

    static let age: [ReuseRow] = [
        ("age-parse-nonnumeric", true, "abc"), ("age-parse-negative", true, "-7200"),
        ("age-parse-float", true, "7200.0"), ("age-parse-large-minus-one", false, "2147483647"),
        ("age-parse-large", false, "2147483648"), ("age-parse-larger", false, "2147483649"),
        ("age beyond every integer", false, "99999999999999999999"), ("age-parse-suffix", false, "7200, 0"),
        ("age-parse-prefix", true, "0, 7200"), ("age-parse-dup-0", true, "0, 0"),
        ("age-parse-parameter", true, "7200;foo=bar"),
    ].map { id, reused, value in
        ReuseRow(
            id: id, reused: reused, fields: ["Date": httpDate(), "Cache-Control": "max-age=3600", "Age": value])
    }

    static let expires: [ReuseRow] = [
        ReuseRow(
            id: "freshness-expires-future", reused: true, fields: ["Expires": httpDate(3600), "Date": httpDate()]),
        ReuseRow(
            id: "freshness-expires-past", reused: false, fields: ["Expires": httpDate(-3600), "Date": httpDate()]),
        ReuseRow(
            id: "freshness-expires-present", reused: false, fields: ["Expires": httpDate(), "Date": httpDate()],
            pause: 0),
        ReuseRow(
            id: "freshness-expires-old-date", reused: false, fields: ["Expires": httpDate(300), "Date": httpDate(400)]),
        ReuseRow(id: "freshness-expires-invalid", reused: false, fields: ["Expires": "0", "Date": httpDate()]),
        ReuseRow(
            id: "freshness-expires-invalid with Last-Modified", reused: false,
            fields: ["Expires": "0", "Date": httpDate(), "Last-Modified": httpDate(-100_000)]),
        ReuseRow(
            id: "freshness-expires-invalid-date", reused: true, fields: ["Expires": httpDate(10), "Date": "foo"],
            pause: 0),
        ReuseRow(
            id: "freshness-expires-age-slow-date", reused: false,
            fields: ["Date": httpDate(-10), "Expires": httpDate(10), "Age": "25"], pause: 0),
        ReuseRow(
            id: "freshness-expires-age-fast-date", reused: false,
            fields: ["Date": httpDate(10), "Expires": httpDate(20), "Age": "15"], pause: 0),
        ReuseRow(
            id: "freshness-expires-invalid-multiple-lines", reused: false,
            fields: ["Expires": httpDate(3600), "expires": httpDate(3601), "Date": httpDate()]),
    ]

    static let heuristic: [ReuseRow] =
        [200, 203, 204, 404, 405, 410, 414, 501].map { heuristicRow($0, reused: true) }
        + [201, 202, 403, 502, 503, 504, 599].map { heuristicRow($0, reused: false) }
        + [
            ReuseRow(
                id: "heuristic-599-cached", reused: true,
                fields: [
                    "Last-Modified": httpDate(-86_400), "Date": httpDate(), "Cache-Control": "public",
                ], status: 599),
            ReuseRow(
                id: "a tenth, and no more", reused: false,
                fields: ["Last-Modified": httpDate(-1000), "Date": httpDate()], pause: 100),
            ReuseRow(
                id: "a tenth, but for a second", reused: true,
                fields: ["Last-Modified": httpDate(-1000), "Date": httpDate()], pause: 99),
            ReuseRow(
                id: "at most a week", reused: false,
                fields: ["Last-Modified": httpDate(-1e9), "Date": httpDate()], pause: 7 * 86_400),
            ReuseRow(
                id: "a week, but for a second", reused: true,
                fields: ["Last-Modified": httpDate(-1e9), "Date": httpDate()], pause: 7 * 86_400 - 1),
            ReuseRow(
                id: "Last-Modified in the future", reused: false,
                fields: ["Last-Modified": httpDate(1000), "Date": httpDate()], pause: 0),
        ]

    static func heuristicRow(_ status: Int, reused: Bool) -> ReuseRow {
        ReuseRow(
            id: "heuristic-\(status)-\(reused ? "cached" : "not_cached")", reused: reused,
            fields: ["Last-Modified": httpDate(-86_400), "Date": httpDate()], status: status, pause: 0)
    }

    @Test(arguments: cacheControl + age + expires + heuristic)
    func rowIsReusedOrNot(_ row: ReuseRow) {
        let answer = row.play()
        #expect((answer.source == .stored) == row.reused)
        #expect(answer.originRequests == (row.reused ? 0 : 1))
    }

    @Test func ageIsDeliveredAndCountsFromWhatTheResponseBrought() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=3600", "Age": "30", "Date": httpDate()])
        cache.now += 5
        let answer = cache.load()
        #expect(answer.fields["Age"] == "35")
        #expect(answer.fields["Date"] == httpDate())
    }

    @Test func delayOfTheAnswerCountsAsAge() {
        let sent = PureCache.start
        let response = StoredResponse(
            method: "GET", status: 200, fields: ["Age": "10"], requestTime: sent, responseTime: sent + 7, vary: .none)
        #expect(response.age(at: sent + 7) == 17)
        #expect(response.age(at: sent + 9) == 19)
    }

    @Test func clockSetBackNeverMakesAgeNegative() {
        let response = StoredResponse(
            method: "GET", status: 200, fields: ["Date": httpDate(1e6)], requestTime: PureCache.start,
            responseTime: PureCache.start - 100, vary: .none)
        #expect(response.age(at: PureCache.start - 1e9) == 0)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e300])
    func timesFromADamagedRecordDoNotTrap(_ seconds: Double) {
        let wrong = Date(timeIntervalSinceReferenceDate: seconds)
        let response = StoredResponse(
            method: "GET", status: 200,
            fields: ["Date": httpDate(), "Expires": httpDate(10), "Last-Modified": httpDate(), "Age": "4"],
            requestTime: wrong, responseTime: wrong, vary: .none)
        let age = response.age(at: PureCache.start)
        #expect(age >= 0 && age <= FieldSyntax.greatestDeltaSeconds)
        _ = Freshness(of: ReuseFacts(response), options: CachingOptions(), now: wrong)
    }

    // MARK: Options

    @Test func heuristicsCanBeSwitchedOff() {
        var cache = PureCache()
        cache.options.usesHeuristicFreshness = false
        _ = cache.load(answer: ["Last-Modified": httpDate(-86_400), "Date": httpDate()])
        #expect(cache.load().source == .origin)
    }

    @Test func lifetimeForResponsesThatStateNone() {
        var cache = PureCache()
        cache.options.lifetime = .whenMissing(seconds: 60)
        _ = cache.load(answer: [:])
        cache.now += 59
        #expect(cache.load().source == .stored)
        cache.now += 1
        #expect(cache.load(status: 404).source == .origin)
    }

    @Test func statedLifetimeWinsOverTheOneForMissing() {
        var cache = PureCache()
        cache.options.lifetime = .whenMissing(seconds: 60)
        _ = cache.load(answer: ["Cache-Control": "max-age=1"])
        cache.now += 2
        #expect(cache.load().source == .origin)
    }

    @Test func lifetimeForAlwaysOverrulesTheResponseButNotNoStore() {
        var cache = PureCache()
        cache.options.lifetime = .always(seconds: 60)
        _ = cache.load(answer: ["Cache-Control": "no-cache, max-age=0, must-revalidate"])
        cache.now += 59
        #expect(cache.load().source == .stored)
        cache.now += 1
        #expect(cache.load().source == .origin)

        var other = PureCache()
        other.options.lifetime = .always(seconds: 60)
        _ = other.load(answer: ["Cache-Control": "no-store"])
        #expect(other.entries.isEmpty)
    }

    /// A missing image does not stay missing for a week, whatever the rule for images says.
    @Test(arguments: [404, 405, 410, 414, 500, 501]) func lifetimesOfOptionsAreNotForErrors(_ status: Int) {
        for lifetime in [CachingOptions.Lifetime.always(seconds: 600), .whenMissing(seconds: 600)] {
            var cache = PureCache()
            cache.options.lifetime = lifetime
            _ = cache.load(status: status)
            #expect(cache.entries.isEmpty)
            _ = cache.load(status: status, answer: ["Cache-Control": "max-age=5"])
            #expect(cache.load().source == .stored)
            cache.now += 5
            #expect(cache.load().source == .origin)
        }
    }
}

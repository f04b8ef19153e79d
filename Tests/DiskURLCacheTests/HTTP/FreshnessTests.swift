import Foundation
import Testing

@testable import DiskURLCache

/// One response stored, one request later: is it reused? What the public rows do not ask (see `ConformanceRow`).
struct ReuseRow: Sendable, CustomTestStringConvertible {
    var id: String
    var reused: Bool
    var fields: HeaderFields
    /// Seconds between the two requests.
    var pause: TimeInterval = 3

    var testDescription: String { id }

    func play() -> PureCache.Answer {
        var cache = PureCache()
        _ = cache.load(answer: fields)
        cache.now += pause
        return cache.load(answer: fields, body: "new")
    }
}

@Suite struct FreshnessTests {
    static let rows: [ReuseRow] = [
        ReuseRow(
            id: "max-age beyond every integer", reused: true,
            fields: ["Cache-Control": "max-age=999999999999999999999999999999"]),
        ReuseRow(id: "immutable is no lifetime", reused: false, fields: ["Cache-Control": "immutable"]),
        ReuseRow(
            id: "Pragma counts without Cache-Control", reused: false,
            fields: ["Pragma": "no-cache", "Expires": httpDate(3600), "Date": httpDate()]),
        ReuseRow(
            id: "Age beyond every integer", reused: false,
            fields: ["Date": httpDate(), "Cache-Control": "max-age=3600", "Age": "99999999999999999999"]),
        ReuseRow(
            id: "invalid Expires with Last-Modified", reused: false,
            fields: ["Expires": "0", "Date": httpDate(), "Last-Modified": httpDate(-100_000)]),
        ReuseRow(
            id: "two valid Expires", reused: false,
            fields: ["Expires": httpDate(3600), "expires": httpDate(3601), "Date": httpDate()]),
        ReuseRow(
            id: "one Expires, twice", reused: true,
            fields: ["Expires": httpDate(3600), "expires": httpDate(3600), "Date": httpDate()]),
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
            id: "no guess beside a directive that cannot be read", reused: false,
            fields: ["Cache-Control": "public; max-age=1", "Last-Modified": httpDate(-1e9), "Date": httpDate()]),
        ReuseRow(
            id: "Last-Modified in the future", reused: false,
            fields: ["Last-Modified": httpDate(1000), "Date": httpDate()], pause: 0),
    ]

    @Test(arguments: rows)
    func rowIsReusedOrNot(_ row: ReuseRow) {
        let answer = row.play()
        #expect((answer.source == .stored) == row.reused)
        #expect(answer.originRequests == (row.reused ? 0 : 1))
    }

    /// It may have been the lifetime.
    @Test(arguments: ["public; max-age=30", "public"]) func aLifetimeIsMissingOnlyIfAllCanBeRead(_ said: String) {
        var cache = PureCache()
        cache.options.lifetime = .whenMissing(seconds: 100)
        _ = cache.load(answer: ["Cache-Control": said])
        #expect(cache.load().source == (said == "public" ? .stored : .origin))
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
        #expect(Age.current(of: ReuseFacts(response), now: sent + 7) == 17)
        #expect(Age.current(of: ReuseFacts(response), now: sent + 9) == 19)
    }

    @Test func clockSetBackNeverMakesAgeNegative() {
        let response = StoredResponse(
            method: "GET", status: 200, fields: ["Date": httpDate(1e6)], requestTime: PureCache.start,
            responseTime: PureCache.start - 100, vary: .none)
        #expect(Age.current(of: ReuseFacts(response), now: PureCache.start - 105) == 0)
    }

    /// The clock was ahead when the response was stored, and was set back since: its age is not known.
    @Test(arguments: [3_600, 86_400, 3e8]) func whatWasStoredInTheFutureIsAskedForAgain(_ ahead: TimeInterval) {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60, stale-while-revalidate=600, stale-if-error=600", "ETag": "\"a\"",
        ]
        var cache = PureCache()
        cache.now += ahead
        _ = cache.load(answer: fields)
        cache.now -= ahead
        #expect(cache.load(status: 304, answer: fields).source != .stored)
        // The validation corrects it.
        cache.now += 59
        #expect(cache.load().source == .stored)
        // Within some seconds it is the same clock, corrected.
        cache.now -= 60 + 9
        #expect(cache.load().source == .stored)
        cache.now -= 2
        #expect(cache.load(status: 503).source == .origin)
    }

    /// However long its lifetime is, and the times for which it may be used stale.
    @Test(arguments: [
        "max-age=60, stale-while-revalidate=2147483648, stale-if-error=2147483648", "max-age=2147483648",
    ])
    func noLifetimeAndNoWindowHoldsAnUnknownAge(_ control: String) {
        for expires in [nil, "Fri, 31 Dec 9999 23:59:59 GMT"] {
            var fields: HeaderFields = ["ETag": "\"a\""]
            if let expires { fields.set("Expires", expires) } else { fields.set("Cache-Control", control) }
            var cache = PureCache()
            cache.now += 3_600
            _ = cache.load(answer: fields)
            cache.now -= 3_600
            #expect(cache.load(status: 503).source == .origin)
        }
    }

    /// An intermediary may repeat `Date`.
    @Test(arguments: [(-5_000.0, 0.0), (0, -5_000), (-5_000, -5_000)])
    func theOldestOfSeveralDatesCounts(_ first: TimeInterval, _ second: TimeInterval) {
        var cache = PureCache()
        _ = cache.load(
            answer: HeaderFields(
                [first, second].map { HeaderFields.Field(name: "Date", value: httpDate($0)) }
                    + [HeaderFields.Field(name: "Cache-Control", value: "max-age=3600")]))
        #expect(cache.load().source == .origin)
    }

    @Test func severalDatesInAnyForm() {
        let oldest = Date(timeIntervalSince1970: 784_111_777)
        let reference = PureCache.start
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT, Mon, 07 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT, Mon, 07 Nov 1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994, Mon, 07 Nov 1994 08:49:37 GMT", "0, Sun Nov  6 08:49:37 1994",
        ] {
            #expect(HTTPDate.oldest(text, reference: reference) == oldest, "\(text)")
        }
        for text in ["", ",", "Sun, 06 Nov", "Mon,Mon,Mon,Mon", String(repeating: ",", count: 100_000)] {
            #expect(HTTPDate.oldest(text, reference: reference) == nil)
        }
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e300])
    func timesFromADamagedRecordDoNotTrap(_ seconds: Double) {
        let wrong = Date(timeIntervalSinceReferenceDate: seconds)
        let response = StoredResponse(
            method: "GET", status: 200,
            fields: ["Date": httpDate(), "Expires": httpDate(10), "Last-Modified": httpDate(), "Age": "4"],
            requestTime: wrong, responseTime: wrong, vary: .none)
        let age = Age.current(of: ReuseFacts(response), now: PureCache.start)
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

    @Test(arguments: [0, -1]) func aLifetimeOfNothingForResponsesThatStateNone(seconds: Int64) {
        var cache = PureCache()
        cache.options.lifetime = .whenMissing(seconds: seconds)
        _ = cache.load(answer: ["ETag": "\"a\""])
        #expect(cache.load().source == .origin)
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

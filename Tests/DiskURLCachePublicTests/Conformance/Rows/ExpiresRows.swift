/// Freshness by `Expires` (RFC 9111 §5.3), and the date forms that count (RFC 9110 §5.6.7).
extension ConformanceRow {
    static let expiresFreshness: [ConformanceRow] = [
        .init(
            "freshness-expires-future", .optimal,
            .get.replies(.date("Expires", 30 * 86_400), .date("Date", 0)).pausing, .get.cached),
        .init(
            "freshness-expires-past", .required,
            .get.replies(.date("Expires", -30 * 86_400), .date("Date", 0)).pausing, .get.notCached),
        .init(
            "freshness-expires-present", .required,
            .get.replies(.date("Expires", 0), .date("Date", 0)), .get.notCached),
        .init(
            "freshness-expires-old-date", .required,
            .get.replies(.date("Expires", 300), .date("Date", 400)).pausing, .get.notCached),
        .init(
            "freshness-expires-invalid", .required,
            .get.replies(.unchecked("Expires", "0"), .date("Date", 0)).pausing, .get.notCached),
        .init(
            "freshness-expires-invalid-date", .optimal,
            .get.replies(.unchecked("Date", "foo"), .date("Expires", 10)), .get.cached),
        .init(
            "freshness-expires-age-slow-date", .required,
            .get.replies(.date("Date", -10), .date("Expires", 10), "Age: 25"), .get.notCached),
        .init(
            "freshness-expires-age-fast-date", .required,
            .get.replies(.date("Date", 10), .date("Expires", 20), "Age: 15"), .get.notCached),
    ]

    static let expiresParsing: [ConformanceRow] = [
        valid("32bit", "Tue, 19 Jan 2038 14:14:08 GMT"),
        valid("far-future", "Sun, 21 Nov 2286 04:46:39 GMT"),
        valid("rfc850", "Thursday, 18-Aug-50 02:01:18 GMT"),
        valid("ansi-c", "Thu Aug  8 02:01:18 2050"),
        valid("wrong-case-weekday", "THU, 18 Aug 2050 02:01:18 GMT"),
        valid("wrong-case-month", "Thu, 18 AUG 2050 02:01:18 GMT"),
        valid("wrong-case-tz", "Thu, 18 Aug 2050 02:01:18 gMT"),
        invalid("utc", "Thu, 18 Aug 2050 02:01:18 UTC"),
        invalid("aest", "Thu, 18 Aug 2050 02:01:18 AEST"),
        invalid("2-digit-year", "Thu, 18 Aug 50 02:01:18 GMT"),
        invalid("no-comma", "Thu 18 Aug 2050 02:01:18 GMT"),
        invalid(atOnce: "multiple-spaces", "Thu, 18  Aug  2050 02:01:18 GMT"),
        invalid(atOnce: "date-dashes", "Thu, 18-Aug-2050 02:01:18 GMT"),
        invalid(atOnce: "time-periods", "Thu, 18 Aug 2050 02.01.18 GMT"),
        invalid(atOnce: "1-digit-hour", "Thu, 18 Aug 2050 2:01:18 GMT"),
        invalid(atOnce: "multiple-lines", "Thu, 18 Aug 2050 2:01:18 GMT", "Thu, 18 Aug 2050 2:01:19 GMT"),
    ]

    private static func valid(_ id: String, _ date: String) -> Self {
        Self("freshness-expires-\(id)", .optimal, expiring([date]).pausing, .get.cached)
    }

    private static func invalid(_ id: String, _ dates: String...) -> Self {
        Self("freshness-expires-invalid-\(id)", .required, expiring(dates).pausing, .get.notCached)
    }

    /// Without a pause.
    private static func invalid(atOnce id: String, _ dates: String...) -> Self {
        Self("freshness-expires-invalid-\(id)", .required, expiring(dates), .get.notCached)
    }

    private static func expiring(_ dates: [String]) -> ConformanceStep {
        .get.replies(dates.map { .unchecked("Expires", $0) } + [.date("Date", 0)])
    }
}

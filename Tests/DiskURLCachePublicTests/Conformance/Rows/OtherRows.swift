/// `Age` and `Date` on reuse (RFC 9111 §4, §5.1), queries, cookies, and interim responses.
extension ConformanceRow {
    /// `other-age-delay` is left out: it asks about a proxy's `Age` on a response that is not from a cache.
    static let other: [ConformanceRow] = [
        .init("other-age-gen", .required, .fresh(), .get.cached.sees("Age", greaterThan: 2)),
        .init(
            "other-age-update-expires", .required,
            .get.replies(.date("Expires", 30 * 86_400), .date("Date", 0), "Age: 30").pausing,
            .get.cached.sees("Age", greaterThan: 32)),
        .init(
            "other-age-update-max-age", .required, .fresh("Age: 30"), .get.cached.sees("Age", greaterThan: 32)),
        .init("other-date-update", .required, .fresh(), .get.cached.sees(.date("Date", 0))),
        .init("other-date-update-expires", .required, expiring, .get.cached.sees(.date("Date", 0))),
        .init(
            "other-date-update-expires-update", .check, expiring,
            .get.cached.sees(.date("Expires", 30 * 86_400))),
        .init(
            "query-args-different", .required, .fresh().at("?test=one"), .get.at("?test=two").notCached),
        .init("query-args-same", .optimal, .fresh().at("?test=one"), .get.at("?test=one").cached),
        .init(
            "other-heuristic-content-disposition-attachment", .check,
            .get.replies(
                .date("Last-Modified", -100_000), .date("Date", 0),
                "Content-Disposition: attachment; filename=example.txt"),
            .get.cached),
        .init(
            "other-fresh-content-disposition-attachment", .check,
            .fresh("Content-Disposition: attachment; filename=example.txt"), .get.cached),
        .init("other-set-cookie", .optimal, .fresh("Set-Cookie: a=b"), .get.cached),
        .init("other-cookie", .optimal, .fresh(), .get.sends("Cookie: a=b").cached),
    ]

    /// The public suite wants the interim responses themselves, which URLSession does not show; that the final one
    /// is stored, and theirs are not mixed into it, can be seen.
    static let interim: [ConformanceRow] = [
        .init(
            "interim-102", .extra,
            .get.interim(102).replies("Cache-Control: max-age=100000", .date("Date", 0)).pausing, .get.cached),
        .init(
            "interim-103", .extra,
            .get.interim(103, ["Link": "</styles.css>; rel=preload; as=style"])
                .replies("Cache-Control: max-age=100000", .date("Date", 0)).pausing,
            .get.cached),
        .init(
            "interim-no-header-reuse", .extra,
            .get.interim(103, ["X-My-Header": "test"])
                .replies("Cache-Control: max-age=100000", .date("Date", 0)).misses("X-My-Header").pausing,
            .get.cached.misses("X-My-Header")),
    ]

    private static let expiring = ConformanceStep.get.replies(
        .date("Expires", 30 * 86_400), .date("Date", 0)
    ).pausing
}

/// Rows for caches that look for `CDN-Cache-Control` (RFC 9213).
extension ConformanceRow {
    static let targeted: [ConformanceRow] = [
        governed("cdn-max-age", .optimal, "max-age=3600", by: .get.cached),
        governed("cdn-max-age-max", .optimal, "max-age=2147483648", by: .get.cached),
        governed("cdn-max-age-max-plus", .optimal, "max-age=99999999999", by: .get.cached),
        governed("cdn-max-age-age", .required, "max-age=3600", .date("Date", 0), "Age: 7200", by: .get.notCached),
        governed(
            "cdn-max-age-space-before-equals", .check, "max-age =100", "Cache-Control: max-age=1", by: .get.notCached),
        governed(
            "cdn-max-age-space-after-equals", .check, "max-age= 100", "Cache-Control: max-age=1", by: .get.notCached),
        governed("cdn-max-age-0", .required, "max-age=0", by: .get.notCached),
        governed("cdn-max-age-extension", .optimal, "foobar, max-age=3600", by: .get.cached),
        governed("cdn-max-age-case-insensitive", .check, "MaX-aGe=3600", by: .get.cached),
        governed(
            "cdn-max-age-expires", .optimal, "max-age=3600", .date("Expires", -10_000), .date("Date", 0),
            by: .get.cached),
        governed(
            "cdn-max-age-cc-max-age-invalid-expires", .optimal, "max-age=3600", .unchecked("Expires", "0"),
            .date("Date", 0), by: .get.cached),
        governed(
            "cdn-max-age-0-expires", .required, "max-age=0", .date("Expires", 10_000), .date("Date", 0),
            by: .get.notCached),
        governed(
            "cdn-max-age-short-cc-max-age", .optimal, "max-age=3600", "Cache-Control: max-age=1", by: .get.cached),
        governed(
            "cdn-max-age-long-cc-max-age", .required, "max-age=1", "Cache-Control: max-age=3600", by: .get.notCached),
        .init("cdn-private", .required, .get.replies(forbidding("private")), .get.notCached),
        .init("cdn-no-cache", .required, .get.replies(forbidding("no-cache")), .get.notCached),
        .init("cdn-no-store-cc-fresh", .required, .get.replies(forbidding("no-store")).pausing, .get.notCached),
        governed("cdn-fresh-cc-nostore", .required, "max-age=10000", "Cache-Control: no-store", by: .get.cached),
        governed(
            "cdn-cc-invalid-sh-type-unknown", .required, "max-age=10000, &&&&&", "Cache-Control: no-store",
            by: .get.notCached),
        governed(
            "cdn-cc-invalid-sh-type-wrong", .required, "max-age=\"10000\"", "Cache-Control: no-store",
            by: .get.notCached),
        .init(
            "cdn-remove-header", .check,
            .get.replies(
                "Cache-Control: max-age=10000", .unchecked("CDN-Cache-Control", "foo"), .date("Expires", 10_000),
                .date("Date", 0)
            ).sees("CDN-Cache-Control: foo")),
        exceeding("cdn-remove-age-exceed", .get.has("Age")),
        exceeding("cdn-date-update-exceed", .get.sees(.date("Date", 0))),
        exceeding("cdn-expires-update-exceed", .get.sees(.date("Expires", 1)), .date("Expires", 1)),
    ]

    private static func governed(
        _ id: String, _ kind: Kind, _ value: String, _ fields: ConformanceField..., by second: ConformanceStep
    ) -> Self {
        Self(id, kind, .get.replies(fields + [.unchecked("CDN-Cache-Control", value)]).pausing, second)
    }

    private static func forbidding(_ directive: String) -> [ConformanceField] {
        [
            .init("CDN-Cache-Control", .text(directive), isChecked: directive != "no-store"),
            "Cache-Control: max-age=10000", .date("Expires", 10_000), .date("Date", 0),
        ]
    }

    private static func exceeding(_ id: String, _ second: ConformanceStep, _ fields: ConformanceField...) -> Self {
        let first = ["Cache-Control: max-age=1", "CDN-Cache-Control: max-age=10000", .date("Date", 0)] + fields
        return Self(id, .check, .get.replies(first).pausing, second)
    }
}

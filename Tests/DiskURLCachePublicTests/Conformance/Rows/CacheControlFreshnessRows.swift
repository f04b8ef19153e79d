/// Freshness by `Cache-Control` (RFC 9111 §4.2, §5.2.2.1), and how its value is read (§5.2).
extension ConformanceRow {
    /// The rows about `s-maxage` in a shared cache are in `sharedFreshness`.
    static let cacheControlFreshness: [ConformanceRow] = [
        .init("freshness-none", .check, .get.pausing, .get.notCached),
        lifetime("freshness-max-age", .optimal, "max-age=3600", isReused: true),
        .init("freshness-max-age-stale", .required, .becomesStale(), .get.notCached),
        lifetime("freshness-max-age-0", .required, "max-age=0", isReused: false),
        lifetime("freshness-max-age-max-minus-1", .optimal, "max-age=2147483647", isReused: true),
        lifetime("freshness-max-age-max", .optimal, "max-age=2147483648", isReused: true),
        lifetime("freshness-max-age-max-plus-1", .optimal, "max-age=2147483649", isReused: true),
        lifetime("freshness-max-age-max-plus", .optimal, "max-age=99999999999", isReused: true),
        .init(
            "freshness-max-age-age", .required,
            .get.replies(.date("Date", 0), "Cache-Control: max-age=3600", "Age: 7200").pausing, .get.notCached),
        .init(
            "freshness-max-age-date", .check,
            .get.replies(.date("Date", -7_200), "Cache-Control: max-age=3600").pausing, .get.notCached),
        .init(
            "freshness-max-age-expires", .optimal,
            .get.replies("Cache-Control: max-age=3600", .date("Expires", -7_200), .date("Date", 0)).pausing,
            .get.cached),
        .init(
            "freshness-max-age-expires-invalid", .optimal,
            .get.replies("Cache-Control: max-age=3600", .unchecked("Expires", "0"), .date("Date", 0)).pausing,
            .get.cached),
        .init(
            "freshness-max-age-0-expires", .required,
            .get.replies(.date("Expires", 3_600), "Cache-Control: max-age=0", .date("Date", 0)).pausing,
            .get.notCached),
        lifetime("freshness-max-age-extension", .optimal, "foobar, max-age=3600", isReused: true),
        lifetime("freshness-max-age-case-insenstive", .optimal, "MaX-aGe=3600", isReused: true),
        lifetime("freshness-max-age-negative", .required, "max-age=-3600", isReused: false),
        lifetime("freshness-max-age-s-maxage-private", .required, "s-maxage=3600, max-age=1", isReused: false),
        .init(
            "freshness-max-age-s-maxage-private-multiple", .required,
            .get.replies("Cache-Control: s-maxage=3600", "Cache-Control: max-age=1").pausing, .get.notCached),
    ]

    static let cacheControlParsing: [ConformanceRow] = [
        parsed("freshness-max-age-two-fresh-stale-sameline", .check, "max-age=1800, max-age=1", isReused: true),
        .init(
            "freshness-max-age-two-fresh-stale-sepline", .check,
            .get.replies(.unchecked("Cache-Control", "max-age=1800"), .unchecked("Cache-Control", "max-age=1"))
                .pausing,
            .get.cached),
        parsed("freshness-max-age-two-stale-fresh-sameline", .check, "max-age=1, max-age=1800", isReused: true),
        .init(
            "freshness-max-age-two-stale-fresh-sepline", .check,
            .get.replies(.unchecked("Cache-Control", "max-age=1"), .unchecked("Cache-Control", "max-age=1800"))
                .pausing,
            .get.cached),
        parsed("freshness-max-age-quoted", .check, "max-age=\"3600\"", isReused: true),
        parsed(
            "freshness-max-age-ignore-quoted", .required, "extension=\"max-age=3600\", max-age=1", isReused: false),
        parsed(
            "freshness-max-age-ignore-quoted-rev", .required, "max-age=1, extension=\"max-age=3600\"", isReused: false),
        parsed("freshness-max-age-space-before-equals", .check, "max-age =3600", isReused: false),
        parsed("freshness-max-age-space-after-equals", .check, "max-age= 3600", isReused: false),
        parsed("freshness-max-age-leading-zero", .required, "max-age=003600", isReused: true),
        parsed("freshness-max-age-single-quoted", .required, "max-age='3600'", isReused: false),
        parsed("freshness-max-age-decimal-zero", .check, "max-age=3600.0", isReused: true),
        parsed("freshness-max-age-decimal-five", .check, "max-age=3600.5", isReused: true),
        parsed("freshness-max-age-a100", .check, "max-age=a3600", isReused: true),
        parsed("freshness-max-age-100a", .check, "max-age=3600a", isReused: true),
    ]

    private static func lifetime(_ id: String, _ kind: Kind, _ directives: String, isReused: Bool) -> Self {
        Self(
            id, kind, .get.replies(.init("Cache-Control", .text(directives))).pausing,
            isReused ? .get.cached : .get.notCached)
    }

    private static func parsed(_ id: String, _ kind: Kind, _ directives: String, isReused: Bool) -> Self {
        Self(
            id, kind, .get.replies(.unchecked("Cache-Control", directives)).pausing,
            isReused ? .get.cached : .get.notCached)
    }
}

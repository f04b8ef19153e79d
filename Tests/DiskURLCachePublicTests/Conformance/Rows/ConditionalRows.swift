/// Conditional requests that the cache makes (RFC 9111 §4.3.1), and those that it answers (§4.3.2).
extension ConformanceRow {
    static let conditionals: [ConformanceRow] = [
        .init(
            "conditional-etag-vary-headers", .required,
            .get.sends("Abc: 123").replies(
                .date("Expires", 1), "ETag: \"abcdef\"", .date("Date", 0), "Vary: Abc"
            ).pausing,
            .get.sends("Abc: 123").etagValidated.originSees("Abc: 123")),
        .init(
            "conditional-etag-vary-headers-mismatch", .check,
            .get.sends("Abc: 123").replies(
                .date("Expires", 10_000), "ETag: \"abcdef\"", .date("Date", 0), "Vary: Abc"
            ).pausing,
            .get.sends("Abc: 456").originSees("If-None-Match: \"abcdef\"")),
        .init(
            "conditional-etag-strong-generate", .optimal, .becomesStale("ETag: \"abcdef\""),
            .get.etagValidated.originSees("If-None-Match: \"abcdef\"")),
        .init(
            "conditional-etag-weak-generate-weak", .optimal, .becomesStale("ETag: W/\"abcdef\""),
            .get.etagValidated.originSees("If-None-Match: W/\"abcdef\"")),
        .init(
            "conditional-etag-strong-generate-unquoted", .check, .becomesStale("ETag: abcdef"),
            .get.etagValidated.originSees("If-None-Match: \"abcdef\"")),
        .init(
            "conditional-etag-forward", .check,
            ConformanceStep.get.sends("If-None-Match: \"abcdef\"").originSees("If-None-Match: \"abcdef\"")),
        .init(
            "conditional-etag-forward-unquoted", .check,
            ConformanceStep.get.sends("If-None-Match: abcdef").originSees("If-None-Match: \"abcdef\"")),
    ]

    /// The public suite skips these for browsers, whose `fetch` hides the cache's own 304.
    static let answeredConditionals: [ConformanceRow] = [
        etag("conditional-etag-strong-respond", "\"abcdef\"", "\"abcdef\""),
        .init(
            "conditional-304-etag", .extra, .fresh("ETag: \"abcdef\""),
            .get.sends("If-None-Match: \"abcdef\"").cached.seesStatus(304).sees("ETag: \"abcdef\"")),
        .init(
            "conditional-etag-precedence", .extra,
            .fresh(.date("Last-Modified", -5_000), "ETag: \"abcdef\""),
            .get.sends("If-None-Match: \"abcdef\"", .date("If-Modified-Since", -10_000)).cached.seesStatus(304)),
        etag("conditional-etag-weak-respond", "W/\"abcdef\"", "W/\"abcdef\""),
        etag("conditional-etag-strong-respond-multiple-first", "\"abcdef\"", "\"abcdef\", \"1234\", \"5678\""),
        etag("conditional-etag-strong-respond-multiple-second", "\"abcdef\"", "\"1234\", \"abcdef\", \"5678\""),
        etag("conditional-etag-strong-respond-multiple-last", "\"abcdef\"", "\"1234\", \"5678\", \"abcdef\""),
        .init(
            "conditional-etag-strong-respond-obs-text", .check, .fresh("ETag: \"abcdef\u{FC}\""),
            .get.sends("If-None-Match: \"abcdef\u{FC}\"").cached.seesStatus(304).sees("ETag: \"abcdef\u{FC}\"")),
        etag("conditional-etag-quoted-respond-unquoted", "\"abcdef\"", "abcdef", .check),
        etag("conditional-etag-unquoted-respond-unquoted", "abcdef", "abcdef", .check),
        etag("conditional-etag-unquoted-respond-quoted", "abcdef", "\"abcdef\"", .check),
        etag("conditional-etag-weak-respond-lowercase", "w/\"abcdef\"", "w/\"abcdef\"", .check),
        etag("conditional-etag-weak-respond-backslash", "W\\\"abcdef\"", "W\\\"abcdef\"", .check),
        etag("conditional-etag-weak-respond-omit-slash", "W\"abcdef\"", "W\"abcdef\"", .check),
        .init(
            "conditional-lm-fresh", .extra, .fresh(.date("Last-Modified", -3_000)),
            .get.sends(.date("If-Modified-Since", -3_000)).cached.seesStatus(304)),
        .init(
            "conditional-lm-fresh-earlier", .extra, .fresh(.date("Last-Modified", -3_000)),
            .get.sends(.date("If-Modified-Since", -2_000)).cached.seesStatus(304)),
        .init(
            "conditional-lm-stale", .extra, .becomesStale(.date("Last-Modified", -3_000)),
            .get.sends(.date("If-Modified-Since", -3_000)).lastModifiedValidated.seesStatus(304)),
        // In `notAllowed`: without Last-Modified, §4.3.2 compares `Date`, and the date asked for is earlier. The whole
        // response is the right answer, though the public suite wants a 304.
        .init(
            "conditional-lm-fresh-no-lm", .extra, .fresh(),
            .get.sends(.date("If-Modified-Since", -3_000)).cached.seesStatus(304)),
        .init(
            "conditional-lm-fresh-rfc850", .extra, .fresh(.date("Last-Modified", -3_000)),
            .get.sends(.init("If-Modified-Since", .rfc850Date(-3_000))).cached.seesStatus(304)),
    ]

    private static func etag(_ id: String, _ stored: String, _ asked: String, _ kind: Kind = .extra) -> Self {
        Self(
            id, kind, .fresh(.init("ETag", .text(stored))),
            .get.sends(.init("If-None-Match", .text(asked))).cached.seesStatus(304))
    }
}

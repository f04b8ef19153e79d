/// What a response's `Cache-Control` says besides its lifetime (RFC 9111 §5.2.2, RFC 8246).
extension ConformanceRow {
    /// `cc-resp-private-shared` is left out: this cache is private.
    static let cacheControlResponse: [ConformanceRow] = [
        .init(
            "cc-resp-private-private", .optimal,
            .get.replies("Cache-Control: private, max-age=3600"), .get.cached),
        .init("cc-resp-no-store", .required, .get.replies("Cache-Control: no-store"), .get.notCached),
        .init(
            "cc-resp-no-store-case-insensitive", .required,
            .get.replies("Cache-Control: No-StOrE"), .get.notCached),
        .init(
            "cc-resp-no-store-fresh", .required,
            .get.replies("Cache-Control: max-age=10000, no-store", .date("Expires", 10_000), .date("Date", 0)),
            .get.notCached),
        olderThanNoStore("cc-resp-no-store-old-new", "Cache-Control: no-store"),
        olderThanNoStore("cc-resp-no-store-old-max-age", "Cache-Control: no-store, max-age=0"),
        .init(
            "cc-resp-no-cache", .required,
            .get.replies("Cache-Control: max-age=10000, no-cache", .date("Expires", 10_000), .date("Date", 0)),
            .get.notCached),
        .init(
            "cc-resp-no-cache-case-insensitive", .required,
            .get.replies("Cache-Control: max-age=10000, No-CaChE", .date("Expires", 10_000), .date("Date", 0)),
            .get.notCached),
        .init(
            "cc-resp-no-cache-revalidate", .optimal,
            .get.replies("Cache-Control: no-cache", "ETag: \"abcd\""), .get.etagValidated),
        .init(
            "cc-resp-no-cache-revalidate-fresh", .optimal,
            .get.replies(
                "Cache-Control: max-age=10000, no-cache", .date("Expires", 10_000), .date("Date", 0),
                "ETag: \"abcd\""),
            .get.etagValidated),
        .init(
            "headers-omit-headers-listed-in-Cache-Control-no-cache-single", .check,
            .get.replies(
                "Cache-Control: no-cache=\"a\"", "a: 1", "b: 2", "Cache-Control: max-age=3600", .date("Date", 0)
            ).pausing,
            .get.cached.sees("b: 2").misses("a")),
        .init(
            "headers-omit-headers-listed-in-Cache-Control-no-cache", .check,
            .get.replies(
                "Cache-Control: no-cache=\"a, b\"", "a: 1", "b: 2", "c: 3", "Cache-Control: max-age=3600",
                .date("Date", 0)
            ).pausing,
            .get.cached.sees("c: 3").misses("a", "b")),
        .init(
            "cc-resp-must-revalidate-fresh", .optimal,
            .get.replies("Cache-Control: max-age=10000, must-revalidate", "ETag: \"abcd\""), .get.cached),
        .init(
            "cc-resp-must-revalidate-stale", .required,
            .get.replies("Cache-Control: max-age=2, must-revalidate", "ETag: \"abcd\""),
            .get.replies("Cache-Control: max-age=2, must-revalidate", "ETag: \"abcd\"").cached.pausing,
            .get.etagValidated),
        .init(
            "cc-resp-immutable-fresh", .optimal,
            .get.replies("Cache-Control: max-age=10000, immutable", "ETag: \"abcd\"").pausing,
            .get.reloading.cached),
        .init(
            "cc-resp-immutable-stale", .required,
            .get.replies("Cache-Control: max-age=2, immutable", "ETag: \"abcd\"").pausing,
            .get.reloading.etagValidated.originSees("Cache-Control: max-age=0")),
    ]

    /// A response that must not be stored leaves the older, fresh one in place.
    private static func olderThanNoStore(_ id: String, _ cacheControl: ConformanceField) -> Self {
        Self(
            id, .required,
            .get.replies("Cache-Control: max-age=10000", .date("Expires", 10_000), .date("Date", 0), "A: 1").pausing,
            .get.replies(cacheControl, .date("Date", 0), "A: 2").pausing,
            .get.cached.sees("A: 1"))
    }
}

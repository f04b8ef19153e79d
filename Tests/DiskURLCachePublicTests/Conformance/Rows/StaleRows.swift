/// Stale responses (RFC 9111 §4.2.4, RFC 5861).
extension ConformanceRow {
    /// `stale-close-proxy-revalidate` and `stale-close-s-maxage=2` are in `sharedStaleness`.
    static let stale: [ConformanceRow] = [
        .init("stale-close", .check, .becomesStale(), .get.disconnects.cached),
        .init("stale-503", .check, .becomesStale(), .get.status(503).seesStatus(200).cached),
        .init(
            "stale-while-revalidate", .optimal,
            .get.replies("Cache-Control: max-age=1, stale-while-revalidate=3600", "ETag: \"abc\"").pausing,
            .get.cached),
        .init(
            "stale-while-revalidate-window", .required,
            .get.replies("Cache-Control: max-age=1, stale-while-revalidate=4", "ETag: \"abc\"").pausing,
            .get.replies(.unchecked("Cache-Control", "no-cache"), .unchecked("ETag", "\"def\"")).cached.refreshing
                .pausing,
            .get.sees("Client-Request-Count: 3")),
        .init(
            "stale-sie-close", .check,
            .get.replies("Cache-Control: max-age=2, stale-if-error=60").pausing, .get.disconnects.cached),
        .init(
            "stale-sie-503", .check,
            .get.replies("Cache-Control: max-age=2, stale-if-error=60").pausing,
            .get.status(503).seesStatus(200).cached),
        prohibited("must-revalidate"),
        prohibited("no-cache"),
        .init("stale-warning-stored", .check, .alreadyStale, .get.disconnects.cached.has("Warning")),
        .init(
            "stale-warning-become", .check, .becomesStale(),
            .get.disconnects.cached.has("Warning")),
    ]

    /// The client sees the failure; what it must not see is the stored response.
    private static func prohibited(_ directive: String) -> Self {
        Self(
            "stale-close-\(directive)", .required,
            .get.replies(.init("Cache-Control", .text("max-age=2, \(directive)"))).pausing,
            .get.disconnects.anyStatus.anyBody.misses("Server-Request-Count").errorAllowed)
    }
}

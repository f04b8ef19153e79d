/// This cache's answers to the open questions among the rows.
extension ConformanceRow {
    /// The rows of kind `check` that do not hold, each for its reason; all others do. An answer that changes is a
    /// change of behaviour that users see.
    static let answeredNo: Set<String> = [
        // An answer to HEAD without a validator shows nothing about the stored body, and changes nothing (§4.3.5).
        "head-200-freshness-update",
        "head-200-update",
        // Where `max-age` is given twice, or is no number, the shorter life counts (§4.2.1).
        "freshness-max-age-two-fresh-stale-sameline",
        "freshness-max-age-two-fresh-stale-sepline",
        "freshness-max-age-two-stale-fresh-sameline",
        "freshness-max-age-two-stale-fresh-sepline",
        "freshness-max-age-decimal-zero",
        "freshness-max-age-decimal-five",
        "freshness-max-age-a100",
        "freshness-max-age-100a",
        // A parameter makes `Age` invalid, and an invalid `Age` is ignored (§5.1).
        "age-parse-parameter",
        "age-parse-numeric-parameter",
        // Nothing is served stale without permission by the response or the request (§4.2.4); `Warning` is obsolete.
        "stale-close",
        "stale-503",
        "stale-warning-stored",
        "stale-warning-become",
        // A tenth of so short a time is over before the second request (§4.2.2).
        "heuristic-delta-5",
        "heuristic-delta-10",
        "heuristic-delta-30",
        // HEAD updates what is stored; the client sees the origin's own answer, and a 410 clears it (§4.3.5).
        "head-200-retain",
        "head-410-update",
        // `Pragma: no-cache` counts where there is no `Cache-Control` (§5.4).
        "pragma-request-no-cache",
        "pragma-response-no-cache-heuristic",
        // Entity tags are compared and passed on as they are; what is no tag matches nothing.
        "conditional-etag-strong-generate-unquoted",
        "conditional-etag-forward-unquoted",
        "conditional-etag-quoted-respond-unquoted",
        "conditional-etag-unquoted-respond-quoted",
        "conditional-etag-weak-respond-lowercase",
        "conditional-etag-weak-respond-backslash",
        "conditional-etag-weak-respond-omit-slash",
        // Not stored.
        "304-etag-update-response-Clear-Site-Data",
        "304-etag-update-response-Set-Cookie",
        // These describe the stored bytes, or name another response (§3.2, §4.3.4).
        "304-etag-update-response-Content-Location",
        "304-etag-update-response-Content-MD5",
        "304-etag-update-response-Content-Range",
        "304-etag-update-response-Content-Type",
        "304-etag-update-response-ETag",
        "304-etag-update-response-X-Frame-Options",
        "304-etag-update-response-X-XSS-Protection",
    ]
}

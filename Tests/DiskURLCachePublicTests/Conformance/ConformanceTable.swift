/// All rows, and those that this platform or the specifications keep from passing.
extension ConformanceRow {
    static let all: [ConformanceRow] = [
        cacheControlFreshness, cacheControlParsing, ageParsing, expiresFreshness, expiresParsing,
        cacheControlResponse, stale, heuristicFreshness, methods, statusCodes, requestDirectives, pragma, vary,
        varyParsing, conditionals, answeredConditionals, headers, update304, invalidation, partialContent, other,
        interim,
    ].flatMap { $0 }

    /// Rows that a cache for one user is not asked, and those that a shared one is not.
    static let onlyShared = sharedFreshness + sharedStaleness + sharedAuthorization
    static let onlyPrivate: Set<String> = [
        "freshness-max-age-s-maxage-private", "freshness-max-age-s-maxage-private-multiple", "cc-resp-private-private",
        "cc-resp-immutable-fresh", "cc-resp-immutable-stale",
    ]
    /// Of the rows that browsers are not asked, those that caches for several users must pass. The others are optimal.
    static let requiredOfShared: Set<String> = ["conditional-304-etag", "conditional-etag-precedence"]

    /// Rows that no client of URLSession on Linux can meet, so that they are not played.
    static let unreachable: [String: String] = [
        "headers-store-Content-Encoding": "libcurl fails a response whose content coding it does not know",
        "304-etag-update-response-Content-Encoding":
            "libcurl fails a response whose content coding it does not know",
        "headers-store-Transfer-Encoding": "libcurl fails a response whose transfer coding it does not know",
    ]

    /// A requirement that is refused by choice.
    static let refused: [String: String] = [
        "headers-store-Set-Cookie": "cookies go to the cookie storage once and are not replayed from the cache (§3.1)",
        "headers-store-Clear-Site-Data": "an order to delete is carried out once, and is not replayed from the cache",
    ]

    /// What the specifications do not allow as the rows ask for it.
    static let notAllowed: [String: String] = [
        "vary-normalise-lang-order":
            "servers prefer the language that is named first: the order is significant (§4.1, RFC 9110 §12.5.4)",
        "vary-normalise-lang-select":
            "the origin may choose another language for the second request: that is no normalisation (§4.1)",
        "partial-store-partial-reuse-partial":
            "five bytes came where Content-Range announced six: the last five are not all there",
        "partial-store-partial-reuse-partial-absent":
            "five bytes came where Content-Range announced six: the last one is not there",
        "partial-store-partial-reuse-partial-suffix":
            "five bytes came where Content-Range announced six: the last one is not there",
        "conditional-lm-fresh-no-lm":
            "without Last-Modified, Date is compared (§4.3.2), and the date asked for is earlier",
    ]

    /// Optimisations of shared caches that this one does without.
    static let notShared: [String: String] = [
        "other-authorization-public": notBetweenUsers,
        "other-authorization-must-revalidate": notBetweenUsers,
        "other-authorization-smaxage": notBetweenUsers,
    ]

    private static let notBetweenUsers =
        "an answer to one value of Authorization is never shared with another (§3.5 would let it)"

    /// Optimisations that the cache does without.
    static let leftOut: [String: String] = [
        "method-POST": "the answer to a POST is not stored for a GET, which RFC 9110 §9.3.3 would let it",
        "partial-store-partial-complete": "the whole of a stored part is asked for as a whole (§3.4 is a MAY)",
    ]
}

/// All rows, and those that this platform or the specifications keep from passing.
extension ConformanceRow {
    static let all: [ConformanceRow] = [
        cacheControlFreshness, cacheControlParsing, ageParsing, expiresFreshness, expiresParsing,
        cacheControlResponse, stale, heuristicFreshness, methods, statusCodes, requestDirectives, pragma, vary,
        varyParsing, conditionals, answeredConditionals, headers, update304, invalidation, partialContent, other,
        interim,
    ].flatMap { $0 }

    /// Rows that no client of URLSession on Linux can meet, so that they are not played.
    static let unreachable: [String: String] = [
        "headers-store-Content-Encoding": "libcurl fails a response whose content coding it does not know",
        "304-etag-update-response-Content-Encoding":
            "libcurl fails a response whose content coding it does not know",
        "headers-store-Transfer-Encoding": "libcurl fails a response whose transfer coding it does not know",
        "headers-store-Set-Cookie": "cookies go to the cookie storage once and are not replayed from the cache",
        "304-etag-update-response-Set-Cookie":
            "cookies go to the cookie storage once and are not replayed from the cache",
    ]

    /// Optimisations that the specifications do not allow as the rows ask for them.
    static let notAllowed: [String: String] = [
        "vary-normalise-lang-select":
            "the origin may choose another language for the second request: that is no normalisation (§4.1)",
        "partial-store-partial-reuse-partial":
            "five bytes came where Content-Range announced six: the last five are not all there",
        "partial-store-partial-reuse-partial-absent":
            "five bytes came where Content-Range announced six: the last one is not there",
        "partial-store-partial-reuse-partial-suffix":
            "five bytes came where Content-Range announced six: the last one is not there",
    ]

    /// Optimisations that do not happen for data tasks with a delegate.
    static let notByDelegate: [String: String] = [
        "method-POST": "Foundation's own loader, which POST goes through, hands the body to the delegate directly"
    ]
}

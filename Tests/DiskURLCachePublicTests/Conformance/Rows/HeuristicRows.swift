/// Heuristic freshness (RFC 9111 §4.2.2), and which status codes may have it (RFC 9110 §15.1).
extension ConformanceRow {
    static let heuristicFreshness: [ConformanceRow] =
        [200, 203, 404, 405, 410, 414, 501].map { heuristic($0, isReused: true) }
        + [heuristic(204, isReused: true, body: nil)]
        + [201, 202, 403, 502, 503, 504, 599].map { heuristic($0, isReused: false) }
        + [heuristic(599, isReused: true, "Cache-Control: public")]
        + [5, 10, 30, 60, 300, 600, 1_200, 1_800, 3_600, 43_200, 86_400].map(modified)

    private static func heuristic(
        _ status: Int, isReused: Bool, body: String? = "heuristic", _ more: ConformanceField...
    ) -> Self {
        let first = ConformanceStep.get.status(status).body(body)
            .replies([.date("Last-Modified", -86_400), .date("Date", 0)] + more)
        let second = ConformanceStep.get.status(status).body(body)
        return Self(
            "heuristic-\(status)-\(isReused ? "cached" : "not_cached")", isReused ? .optimal : .required, first,
            isReused ? second.cached : second.notCached)
    }

    private static func modified(secondsAgo delta: Int) -> Self {
        Self(
            "heuristic-delta-\(delta)", .check,
            .get.replies(.date("Last-Modified", -delta), .date("Date", 0)).pausing, .get.cached)
    }
}

/// Status codes with explicit freshness (RFC 9111 §3), `must-understand` included (§5.2.2.3).
extension ConformanceRow {
    static let statusCodes: [ConformanceRow] =
        rows([200, 203, 204, 299, 400, 404, 410, 499, 500, 502, 503, 504, 599]) + [
            ConformanceRow(
                "status-599-must-understand", .required,
                .get.status(599).replies("Cache-Control: max-age=3600, no-store, must-understand"),
                .get.notCached),
            ConformanceRow(
                "status-200-must-understand", .optimal,
                .get.status(200).replies("Cache-Control: max-age=3600, no-store, must-understand"),
                .get.cached),
        ]

    /// Not among `all`, as for browsers: the responses have a body and no `Location`, and URLSession on Linux loses
    /// that body.
    static let redirectionCodes = rows([301, 302, 303, 307, 308])

    private static func rows(_ statuses: [Int]) -> [ConformanceRow] {
        statuses.flatMap { status in
            let body: String? = status == 204 ? nil : "status-\(status)"
            return [
                ConformanceRow(
                    "status-\(status)-fresh", .optimal, .fresh().status(status).body(body),
                    .get.status(status).body(body).cached),
                ConformanceRow(
                    "status-\(status)-stale", .required, .alreadyStale.status(status).body(body),
                    .get.body(body).notCached),
            ]
        }
    }
}

/// Status codes with explicit freshness (RFC 9111 §3), `must-understand` included (§5.2.2.3).
extension ConformanceRow {
    /// The rows for 301, 302, 303, 307 and 308 are left out, as for browsers: their responses have a body and no
    /// `Location`, and URLSession on Linux loses that body.
    static let statusCodes: [ConformanceRow] =
        [200, 203, 204, 299, 400, 404, 410, 499, 500, 502, 503, 504, 599].flatMap { status in
            let body: String? = status == 204 ? nil : "status-\(status)"
            return [
                ConformanceRow(
                    "status-\(status)-fresh", .optimal, .fresh().status(status).body(body),
                    .get.status(status).body(body).cached),
                ConformanceRow(
                    "status-\(status)-stale", .required, .alreadyStale.status(status).body(body),
                    .get.body(body).notCached),
            ]
        } + [
            ConformanceRow(
                "status-599-must-understand", .required,
                .get.status(599).replies("Cache-Control: max-age=3600, no-store, must-understand"),
                .get.notCached),
            ConformanceRow(
                "status-200-must-understand", .optimal,
                .get.status(200).replies("Cache-Control: max-age=3600, no-store, must-understand"),
                .get.cached),
        ]
}

/// Unsafe methods clear what they change (RFC 9111 §4.4).
extension ConformanceRow {
    static let invalidation: [ConformanceRow] = ["POST", "PUT", "DELETE", "M-SEARCH"].flatMap { method in
        [
            ConformanceRow("invalidate-\(method)", .required, .fresh(), .send(method, body: "abc"), .get.notCached),
            ConformanceRow(
                "invalidate-\(method)-failed", .optimal, .fresh(), .send(method, body: "abc").status(500),
                .get.cached),
            located("invalidate-\(method)-location", method, at: "/location_target"),
            located("invalidate-\(method)-cl", method, at: "/content_location_target"),
        ]
    }

    private static func located(_ id: String, _ method: String, at suffix: String) -> Self {
        let target = ConformanceStep.get.at(suffix).replies(
            "Cache-Control: max-age=100000", .date("Last-Modified", 0), .date("Date", 0))
        let change = ConformanceStep.send(method, body: "abc").replies(
            .init("Location", .relativeURL("location_target")),
            .init("Content-Location", .relativeURL("content_location_target")))
        return Self(id, .check, target, change, target.notCached)
    }
}

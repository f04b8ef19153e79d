/// What a request asks of the cache: `Cache-Control` (RFC 9111 §5.2.1), `Pragma` (§5.4), and the method.
extension ConformanceRow {
    static let requestDirectives: [ConformanceRow] = [
        asked("ccreq-ma0", .fresh(), "max-age=0", isReused: false),
        asked("ccreq-ma1", .fresh(), "max-age=1", isReused: false),
        asked(
            "ccreq-magreaterage", .fresh("Age: 1800"), "max-age=600", isReused: false),
        asked(
            "ccreq-max-stale", .becomesStale(), "max-stale=1000", isReused: true),
        asked(
            "ccreq-max-stale-age", .get.replies("Cache-Control: max-age=1500", "Age: 2000"), "max-stale=1000",
            isReused: true),
        asked(
            "ccreq-min-fresh", .get.replies("Cache-Control: max-age=1500"), "min-fresh=2000", isReused: false),
        asked(
            "ccreq-min-fresh-age", .get.replies("Cache-Control: max-age=1500", "Age: 1000"), "min-fresh=1000",
            isReused: false),
        asked("ccreq-no-cache", .get.replies("Cache-Control: max-age=3600"), "no-cache", isReused: false),
        .init(
            "ccreq-no-cache-lm", .check,
            .get.replies("Cache-Control: max-age=3600", .date("Last-Modified", -10_000), .date("Date", 0)),
            .get.sends("Cache-Control: no-cache").lastModifiedValidated),
        .init(
            "ccreq-no-cache-etag", .check,
            .get.replies("Cache-Control: max-age=3600", "ETag: \"abc\""),
            .get.sends("Cache-Control: no-cache").etagValidated),
        asked("ccreq-no-store", .fresh(), "no-store", isReused: false),
        .init(
            "ccreq-oic", .check,
            ConformanceStep.get.sends("Cache-Control: only-if-cached").seesStatus(504).anyBody),
    ]

    static let pragma: [ConformanceRow] = [
        .init("pragma-request-no-cache", .check, .fresh(), .get.sends("Pragma: no-cache").cached),
        .init("pragma-request-extension", .check, .fresh(), .get.sends("Pragma: unrecognised-extension").cached),
        .init(
            "pragma-response-no-cache", .check,
            .get.replies("Cache-Control: max-age=3600", "Pragma: no-cache"), .get.cached),
        .init(
            "pragma-response-no-cache-heuristic", .check,
            .get.replies(.date("Date", 0), .date("Last-Modified", -10_000), "Pragma: no-cache"), .get.cached),
        .init(
            "pragma-response-extension", .check,
            .get.replies("Cache-Control: max-age=3600", "Pragma: unrecognised-extension"), .get.cached),
    ]

    /// A response to POST may be reused for GET where it says by `Content-Location` that it is that resource's
    /// (RFC 9110 §9.3.3): in `leftOut`. What HEAD answers may update what is stored for GET (RFC 9111 §4.3.5).
    static let methods: [ConformanceRow] = [
        .init(
            "method-POST", .optimal,
            .send("POST", body: "12345").sends("Content-Type: text/plain").replies(
                "Cache-Control: max-age=3600", .init("Content-Location", .relativeURL("")), .date("Date", 0)
            ).pausing,
            .get.cached),
        .init("head-writethrough", .check, .becomesStale(), .send("HEAD").originSees(method: "HEAD")),
        .init(
            "head-200-retain", .check, .becomesStale(),
            .send("HEAD").originSees(method: "HEAD").sees("Template-A: 1")),
        .init(
            "head-200-freshness-update", .check, .becomesStale(),
            .send("HEAD").originSees(method: "HEAD").replies("Cache-Control: max-age=1000"), .get.cached),
        .init(
            "head-200-update", .check, .becomesStale(),
            .send("HEAD").originSees(method: "HEAD").replies("Template-A: 2", "Cache-Control: max-age=1000"),
            .get.cached.sees("Template-A: 2")),
        .init(
            "head-410-update", .check, .becomesStale(),
            .send("HEAD").originSees(method: "HEAD").status(410).replies(
                "Template-A: 2", "Cache-Control: max-age=1000"),
            .get.cached.sees("Template-A: 2")),
    ]

    private static func asked(
        _ id: String, _ first: ConformanceStep, _ directive: String, isReused: Bool
    ) -> Self {
        let second = ConformanceStep.get.sends(.init("Cache-Control", .text(directive)))
        return Self(id, .check, first, isReused ? second.cached : second.notCached)
    }
}

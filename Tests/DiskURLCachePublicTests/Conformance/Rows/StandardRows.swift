/// Rows of our own, for standards of which the public suite has none: `Tests/cache-tests-standards.mjs` has them in its
/// form.
extension ConformanceRow {
    static let standards = query + groups + digests

    // MARK: QUERY (RFC 10008)

    static let query: [ConformanceRow] = [
        .init("query-fresh", .optimal, asked("a"), question("a").cached),
        .init("query-other-content", .required, asked("a"), question("b").notCached),
        .init("query-other-type", .required, asked("a"), question("a", type: "application/x-test").notCached),
        .init("query-other-encoding", .required, asked("a"), question("a").sends("Content-Encoding: x-test").notCached),
        .init("query-other-language", .required, asked("a"), question("a").sends("Content-Language: de").notCached),
        .init("query-other-path", .required, asked("a"), question("a").at("?b").notCached),
        .init("query-then-get", .required, asked("a"), .get.notCached),
        .init("query-after-get", .required, .fresh(), question("a").notCached),
        .init(
            "query-no-store", .required, question("a").replies("Cache-Control: no-store").pausing,
            question("a").notCached),
        .init(
            "query-vary", .required, asked("a", "Vary: Foo").sends("Foo: 1"), question("a").sends("Foo: 2").notCached),
        .init(
            "query-json-normalise", .check, asked("{\"a\": 1, \"b\": 2}", type: "application/json"),
            question("{\"b\":2,\"a\":1}", type: "application/json").cached),
        .init(
            "query-json-no-transform", .check, asked("[1, 2]", type: "application/json"),
            question("[1,2]", type: "application/json").sends("Cache-Control: no-transform").notCached),
        .init("query-type-case", .check, asked("a"), question("a", type: "TEXT/plain").cached),
        .init(
            "query-etag", .optimal,
            question("a").replies("Cache-Control: max-age=2", .date("Date", 0), "ETag: \"abc\"").pausing,
            question("a").replies("ETag: \"abc\"").etagValidated),
        .init("query-keeps-get", .optimal, .fresh(), question("a"), .get.cached),
        .init(
            "query-keeps-location", .optimal, .fresh().at("/location_target"),
            question("a").replies(.init("Location", .relativeURL("location_target"))),
            .get.at("/location_target").cached),
        .init("query-invalidated-by-POST", .required, asked("a"), .send("POST", body: "x"), question("a").notCached),
    ]

    private static func question(_ body: String, type: String = "text/plain") -> ConformanceStep {
        .send("QUERY", body: body).sends(.init("Content-Type", .text(type)))
    }

    private static func asked(
        _ body: String, type: String = "text/plain", _ fields: ConformanceField...
    ) -> ConformanceStep {
        question(body, type: type).replies(["Cache-Control: max-age=100000", .date("Date", 0)] + fields).pausing
    }

    // MARK: Cache groups (RFC 9875)

    static let groups: [ConformanceRow] = [
        grouped("groups-invalidate", .check, "\"x\"", by: "\"x\"", .get.notCached),
        grouped("groups-invalidate-one-of-several", .check, "\"w\", \"x\", \"y\"", by: "\"z\", \"x\"", .get.notCached),
        grouped("groups-invalidate-parameters", .check, "\"x\";a=1", by: "\"x\";b", .get.notCached),
        grouped("groups-invalidate-32", .check, thirtyTwo(0), by: thirtyTwo(31), .get.notCached),
        grouped("groups-other-group", .optimal, "\"x\"", by: "\"y\"", .get.cached),
        grouped("groups-case", .optimal, "\"x\"", by: "\"X\"", .get.cached),
        grouped("groups-malformed", .optimal, "x", by: "\"x\"", .get.cached),
        grouped("groups-invalidation-malformed", .optimal, "\"x\"", by: "x", .get.cached),
        .init(
            "groups-safe-method", .required, .fresh("Cache-Groups: \"x\""), invalidating("GET", "\"x\""), .get.cached),
        .init(
            "groups-safe-QUERY", .required, .fresh("Cache-Groups: \"x\""), invalidating("QUERY", "\"x\""), .get.cached),
        .init(
            "groups-no-cascade", .required, .fresh("Cache-Groups: \"x\""),
            .fresh("Cache-Groups: \"x\", \"y\"").at("?both"),
            invalidating("POST", "\"y\""), .get.cached),
    ]

    private static func grouped(
        _ id: String, _ kind: Kind, _ groups: String, by invalidation: String, _ last: ConformanceStep
    ) -> Self {
        Self(
            id, kind, .fresh(.init("Cache-Groups", .text(groups), isChecked: !groups.contains(","))),
            invalidating("POST", invalidation), last)
    }

    private static func invalidating(_ method: String, _ groups: String) -> ConformanceStep {
        let request =
            method == "GET" ? ConformanceStep.get : .send(method, body: "abc").sends("Content-Type: text/plain")
        return request.at("/other").replies(.init("Cache-Group-Invalidation", .text(groups), isChecked: false))
    }

    /// 32 groups of 32 characters, beginning with this one.
    private static func thirtyTwo(_ first: Int) -> String {
        (first..<first + 32).map { "\"\(String(repeating: "g", count: 30))\(10 + $0)\"" }.joined(separator: ", ")
    }

    // MARK: Digests (RFC 9530), compared by a setting

    static let digests: [ConformanceRow] = [
        digest("digest-right", .optimal, right, .get.body(text).cached),
        digest("digest-unknown-algorithm", .optimal, "md5=:AAAA:", .get.body(text).cached),
        digest("digest-malformed", .optimal, "sha-256=AAAA", .get.body(text).cached),
        digest("digest-wrong", .check, wrong, .get.body(text).notCached),
        digest("digest-wrong-of-two", .check, "\(right), sha-512=:AAAA:", .get.body(text).notCached),
    ]

    private static let text = "An unexceptional string\n"
    private static let right = "sha-256=:5Bv3NIx05BPnh0jMph6v1RJ5Q7kl9LKMtQxmvc9+Z7Y=:"
    private static let wrong = "sha-256=:AAv3NIx05BPnh0jMph6v1RJ5Q7kl9LKMtQxmvc9+Z7Y=:"

    private static func digest(_ id: String, _ kind: Kind, _ value: String, _ second: ConformanceStep) -> Self {
        Self(id, kind, .fresh(.init("Repr-Digest", .text(value), isChecked: false)).body(text), second)
    }
}

/// Which header fields are stored (RFC 9111 §3.1), and which a 304 updates (§3.2).
extension ConformanceRow {
    static let headers: [ConformanceRow] =
        [
            ConformanceRow(
                "headers-omit-headers-listed-in-Connection", .required,
                .fresh(
                    .unchecked("Connection", "a, b"), .unchecked("a", "1"), .unchecked("b", "2"), .unchecked("c", "3")),
                .get.cached.sees("c: 3").misses("a", "b"))
        ] + TestedHeader.all.map(store)

    static let update304: [ConformanceRow] =
        [
            ConformanceRow(
                "304-lm-use-stored-Test-Header", .required,
                .get.replies(
                    "Cache-Control: max-age=2", "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT", .date("Date", 0),
                    "Test-Header: stored"
                ).pausing,
                .get.replies("Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT", .date("Date", 0)).lastModifiedValidated
                    .sees("Test-Header: stored"))
        ] + TestedHeader.all.filter { $0.isStored }.map(update)

    private struct TestedHeader {
        enum Update { case required, forbidden, either }

        var name: String
        var values: (String, String)
        var isStored = true
        var update = Update.either
        var checksBody = true

        init(
            _ name: String, _ first: String? = nil, _ second: String? = nil, isStored: Bool = true,
            update: Update = .either, checksBody: Bool = true
        ) {
            self.name = name
            values = (first ?? "\(name.lowercased())-value-a", second ?? "\(name.lowercased())-value-b")
            self.isStored = isStored
            self.update = update
            self.checksBody = checksBody
        }

        static let all: [TestedHeader] = [
            .init("Test-Header", update: .required),
            .init("X-Test-Header", update: .required),
            .init("Content-Foo", update: .required),
            .init("X-Content-Foo", update: .required),
            .init("Cache-Control", "max-age=1", "max-age=3600", update: .required),
            .init("Connection", isStored: false),
            .init("Content-Encoding"),
            .init("Content-Length", "36", "10", update: .forbidden, checksBody: false),
            .init("Content-Location", "/foo", "/bar"),
            .init("Content-MD5", "rL0Y20zC+Fzt72VPzMSk2A==", "N7UdGUp1E+RbVvZSTy1R8g=="),
            .init("Content-Range"),
            .init("Content-Security-Policy", "default-src 'self'", "default-src 'self' cdn.example.com"),
            .init("Content-Type", "text/plain", "text/plain;charset=utf-8"),
            .init("Clear-Site-Data", "cache", "cookies"),
            .init("ETag", "\"abcdef\"", "\"ghijkl\""),
            .init("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
            .init("Keep-Alive", isStored: false),
            .init("Proxy-Authenticate", isStored: false),
            .init("Proxy-Authentication-Info", isStored: false),
            .init("Proxy-Authorization", isStored: false),
            .init("Proxy-Connection", isStored: false),
            .init("Public-Key-Pins"),
            .init("Set-Cookie", "a=b", "a=c"),
            .init("Set-Cookie2", "a=b", "a=c"),
            .init("TE", isStored: false),
            .init("Transfer-Encoding", isStored: false),
            .init("Upgrade", isStored: false),
            .init("X-Frame-Options", "deny", "sameorigin"),
            .init("X-XSS-Protection", "1", "1; mode=block"),
        ]
    }

    private static func store(_ header: TestedHeader) -> Self {
        let value = header.values.1
        var first = ConformanceStep.get.replies(
            .date("Date", 0), .init(header.name, .text(value), isChecked: header.isStored))
        if header.name != "Cache-Control" { first = first.replies("Cache-Control: max-age=3600") }
        var second = ConformanceStep.get.cached
        second = header.isStored ? second.sees(.init(header.name, .text(value))) : second.misses(header.name)
        return Self(
            "headers-store-\(header.name)", .required, header.checksBody ? first.pausing : first.pausing.anyBody,
            header.checksBody ? second : second.anyBody)
    }

    private static func update(_ header: TestedHeader) -> Self {
        let kept = header.update == .forbidden ? header.values.0 : header.values.1
        let validator = ConformanceField("ETag", .text("\"\(header.name)-etag\""))

        func step(_ value: String, validated: Bool) -> ConformanceStep {
            var fields: [ConformanceField] = [
                .date("Date", 0), .init(header.name, .text(value), isChecked: header.update != .forbidden),
            ]
            if header.name != "Cache-Control" { fields.append("Cache-Control: max-age=2") }
            if validated, header.name != "ETag" { fields.append(validator) }
            let step = ConformanceStep.get.replies(fields)
            return header.checksBody ? step : step.anyBody
        }

        let field = ConformanceField(header.name, .text(kept))
        return Self(
            "304-etag-update-response-\(header.name)", header.update == .either ? .check : .required,
            step(header.values.0, validated: true).pausing,
            step(header.values.1, validated: true).etagValidated.sees(field),
            step(kept, validated: false).cached.sees(field))
    }
}

import DiskURLCache

/// What the caches and proxies between the origin and this cache said about an answer, as sentences: `Cache-Status`
/// (RFC 9211), `Proxy-Status` (RFC 9209), `Age`, and `X-Cache`, which older ones send.
struct CachesOnTheWay {
    struct Statement: Equatable {
        var text: String
        /// The section of the RFC that defines the statement.
        var source: String?
    }

    /// The statements, from the cache nearest to the origin to the one nearest to this cache.
    let statements: [Statement]

    init(_ fields: HeaderFields) {
        let caches = Self.members(of: fields["Cache-Status"]).map(Self.cache)
        let proxies = Self.members(of: fields["Proxy-Status"]).compactMap(Self.proxy)
        var statements = caches + proxies
        if caches.isEmpty, let value = fields["X-Cache"] {
            statements.append(Statement(text: "X-Cache: \(value). No standard defines what that says."))
        }
        if let age = Age.value(in: fields), age > 0 {
            statements.append(
                Statement(
                    text: "It was \(age) s old when it arrived: a cache on the way had it.", source: "RFC 9111 §5.1"))
        }
        self.statements = statements
    }

    /// The members of a field, whose values name the sender. A field with any other member is ignored.
    private static func members(of value: String?) -> [(
        name: String, said: StructuredField.Entries<StructuredField.BareItem>
    )] {
        var result: [(String, StructuredField.Entries<StructuredField.BareItem>)] = []
        for member in value.flatMap(StructuredField.list) ?? [] {
            guard case .item(let item) = member, let name = text(item.value) else { return [] }
            result.append((name, item.parameters))
        }
        return result
    }

    /// RFC 9211 §2.
    private static func cache(
        _ name: String, _ said: StructuredField.Entries<StructuredField.BareItem>
    ) -> Statement {
        var text = "The cache \"\(name)\" "
        var source = "RFC 9211 §2.1"
        if said["hit"] == .boolean(true) {
            text += "answered from its store"
        } else if let forward = said["fwd"].flatMap(Self.text) {
            text += "asked further on, \(reasons[forward] ?? "because of \(forward)")"
            source = "RFC 9211 §2.2"
            if case .integer(let status)? = said["fwd-status"] { text += ", and got a \(status)" }
            if said["collapsed"] == .boolean(true) { text += ", together with another request" }
            if said["stored"] == .boolean(true) { text += "; it stored the answer" }
        } else {
            text += "handled the request, and does not say how"
        }
        if case .integer(let seconds)? = said["ttl"] {
            text += seconds > 0 ? "; fresh for \(seconds) s more" : "; stale for \(-seconds) s"
        }
        if let detail = said["detail"].flatMap(Self.text) { text += " (\(detail))" }
        return Statement(text: text + ".", source: source)
    }

    /// RFC 9211 §2.2.
    private static let reasons = [
        "bypass": "since it was told not to handle this request", "method": "since it does not store this method",
        "uri-miss": "since it had nothing for the URL",
        "vary-miss": "since it had nothing for these request fields", "miss": "since it had nothing that fits",
        "request": "since the request wanted that", "stale": "since its stored answer was stale",
        "partial": "since it had only a part",
    ]

    /// RFC 9209 §2.1. A member without an error only says that there was a proxy.
    private static func proxy(
        _ name: String, _ said: StructuredField.Entries<StructuredField.BareItem>
    ) -> Statement? {
        guard let error = said["error"].flatMap(text) else { return nil }
        let details = said["details"].flatMap(text).map { " (\($0))" } ?? ""
        return Statement(text: "The proxy \"\(name)\" made this answer: \(error)\(details).", source: "RFC 9209 §2.1.1")
    }

    private static func text(_ value: StructuredField.BareItem) -> String? {
        switch value {
        case .string(let text), .token(let text): text
        default: nil
        }
    }
}

import Foundation

/// Which header fields of a response are stored (RFC 9111 §3.1).
enum StorableFields {
    /// Fields that belong to one connection, to a proxy, or to one user's session.
    ///
    /// `Set-Cookie` is here for safety: a session that was set once must not be set again by every reuse.
    private static let excluded = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// The fields without those above, those that `Connection` names, and those that `no-cache="…"` withholds from
    /// reuse, which arrive again with each validation. In a shared cache also without those that `private="…"` names
    /// (RFC 9111 §5.2.2.7).
    static func filtered(_ fields: HeaderFields, isShared: Bool = false) -> HeaderFields {
        // A set: a server may name any number of them.
        var named = Set<String>()
        if let connection = fields["Connection"] {
            named.formUnion(FieldSyntax.members(of: connection).map { $0.lowercased() })
        }
        let control = CacheControl(fields["Cache-Control"])
        named.formUnion(control.fieldNames("no-cache") ?? [])
        if isShared { named.formUnion(control.fieldNames("private") ?? []) }
        // The fields that decide about reuse stay, even if `Connection` or `no-cache` names them.
        if !named.isEmpty { named.subtract(["cache-control", "vary", "date", "age", "expires"]) }
        return HeaderFields(
            fields.fields.filter { field in
                if excluded.contains(where: field.name.equalsIgnoringASCIICase) { return false }
                return named.isEmpty || !named.contains(field.name.lowercased())
            })
    }

    /// Whether every field can be written down and read again as the same field (RFC 9110 §5.1, §5.5).
    static func areWellFormed(_ fields: HeaderFields) -> Bool {
        fields.fields.allSatisfy { field in
            FieldSyntax.isToken(field.name) && field.value.utf8.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D }
        }
    }

    /// The stored response after a 304, a HEAD or the rest of a partial response (RFC 9111 §3.2): each new field
    /// replaces all stored fields of its name.
    ///
    /// Fields that describe the stored bytes stay as they are: the new response did not bring those bytes.
    static func updated(_ stored: StoredResponse, by exchange: Exchange, isShared: Bool) -> StoredResponse {
        let update = filtered(exchange.fields, isShared: isShared).fields
            .filter { !describesBody.contains($0.name.lowercased()) }
        // The stored `Age` counts from the time of the old response.
        let replaced = Set(update.map { $0.name.lowercased() }).union(["age"])
        let kept = stored.fields.fields.filter { !replaced.contains($0.name.lowercased()) }
        var result = stored
        // A 304 may withhold fields that are stored already.
        result.fields = filtered(HeaderFields(kept + update), isShared: isShared)
        // The stored `Date` would make the validated response look old.
        if exchange.fields["Date"] == nil { result.fields.set("Date", HTTPDate.format(exchange.responseTime)) }
        result.requestTime = exchange.requestTime
        result.responseTime = exchange.responseTime
        return result
    }

    /// A browser reads the stored bytes by these fields (type, framing, sniffing), so an update must not change them,
    /// as it must not change the length. `Content-Foo`, `Content-Security-Policy` and all other fields are updated. As
    /// Chromium does it.
    private static let describesBody: Set<String> = [
        "content-encoding", "content-length", "content-range", "content-type", "content-disposition",
        "content-location",
        "content-md5", "x-content-type-options", "x-frame-options", "x-xss-protection",
    ]
}

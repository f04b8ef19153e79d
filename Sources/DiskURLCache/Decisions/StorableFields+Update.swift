import Foundation

extension StorableFields {
    /// The stored response after a 304, a HEAD or the rest of a partial response (RFC 9111 §3.2): each new field
    /// replaces all stored fields of its name.
    ///
    /// Fields that describe the stored bytes stay as they are: the new response did not bring those bytes.
    static func updated(_ stored: StoredResponse, by exchange: Exchange, isShared: Bool) -> StoredResponse {
        let update = filtered(exchange.fields, isShared: isShared).fields.filter { !describesBody.contains($0.name) }
        // The stored `Age` counts from the time of the old response.
        var replaced = FieldNames(["age"])
        for field in update { replaced.insert(field.name) }
        let kept = stored.fields.fields.filter { !replaced.contains($0.name) }
        var result = stored
        // A 304 may withhold fields that are stored already.
        result.fields = filtered(HeaderFields(kept + update), isShared: isShared)
        // The stored `Date` would make the validated response look old.
        if exchange.fields["Date"] == nil { result.fields.set("Date", HTTPDate.format(exchange.responseTime)) }
        if let since = stored.staleSince, exchange.requestTime >= since { result.staleSince = nil }
        result.requestTime = exchange.requestTime
        result.responseTime = exchange.responseTime
        return result
    }

    /// The fields of a 304 that are not stored, but are for the client that it answers.
    /// - Parameter updated: those of the response that it confirms.
    static func forThisAnswer(_ fields: HeaderFields, besides updated: HeaderFields) -> [HeaderFields.Field] {
        // Nearly always nothing was left out.
        let isNamed = CacheControl(updated["Cache-Control"]).namesFields
        guard isNamed || fields.haveOne(of: forClient) || fields.haveOne(of: excludedWhenShared) else { return [] }
        let ofConnection = FieldNames(FieldSyntax.members(of: fields["Connection"] ?? "").map { String($0) })
        let stored = FieldNames(updated.fields.map(\.name))
        return fields.fields.filter { field in
            let isForClient = !excluded.contains(field.name) && !describesBody.contains(field.name)
            return (isForClient || forClient.contains(field.name)) && !ofConnection.contains(field.name)
                && !stored.contains(field.name)
        }
    }

    /// A browser reads the stored bytes by these fields (type, framing, sniffing), so an update must not change them,
    /// as it must not change the length. `Content-Foo`, `Content-Security-Policy` and all other fields are updated. As
    /// Chromium does it.
    private static let describesBody = FieldNames([
        "content-encoding", "content-length", "content-range", "content-type", "content-disposition",
        "content-location",
        "content-md5", "content-digest", "repr-digest", "unencoded-digest", "x-content-type-options", "x-frame-options",
        "x-xss-protection",
    ])
}

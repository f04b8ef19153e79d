/// The head of a stored response in the form for Apple's own loader, which judges freshness and `Vary` by itself.
enum SystemHead {
    /// The name under which `Vary` is hidden from the loader. The loader compares `Vary` with notes that it attached to
    /// the response object when it stored it; an object made from a record has none, so it would not use most of the
    /// stored responses. The cache has already selected the right variant.
    static let varyName = "DiskURLCache-Vary"

    /// The fields with a `Date`, from which the loader computes the age (RFC 9110 §6.6.1): without one, a response
    /// would look new after each launch.
    static func handedOut(_ stored: StoredResponse) -> HeaderFields {
        var fields = stored.fields
        if fields["Date"] == nil { fields.append("Date", HTTPDate.format(stored.responseTime)) }
        if let vary = fields["Vary"] {
            fields.remove("Vary")
            fields.append(varyName, vary)
        }
        return fields
    }

    /// The fields of a response that the loader stores, with `Vary` under its own name again: after a 304 it stores
    /// fields that it got from the cache.
    static func restored(_ fields: HeaderFields) -> HeaderFields {
        guard let vary = fields[varyName] else { return fields }
        var fields = fields
        fields.remove(varyName)
        if fields["Vary"] == nil { fields.append("Vary", vary) }
        return fields
    }

    /// Request fields that the loader adds after the cache has seen the request. They distinguish users.
    private static let addedLater: Set<String> = ["cookie", "authorization", "accept-language"]

    /// Whether a field that the cache did not see selected the response. The request of another user looks the same to
    /// the cache.
    static func isSelectedUnseen(_ vary: VaryKey) -> Bool {
        vary.fields.contains { $0.value == nil && addedLater.contains($0.name) }
    }
}

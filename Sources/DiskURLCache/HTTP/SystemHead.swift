/// The head of a stored response as Apple's own loader gets it, which judges freshness and `Vary` by itself.
enum SystemHead {
    /// Carries `Vary` past the loader, which compares that field with its notes about the request. An object made from
    /// a record has no such notes, so the loader would fetch most of the web again. The variant was selected here
    /// already.
    static let varyName = "DiskURLCache-Vary"

    /// With a `Date`, from which the loader computes the age (RFC 9110 §6.6.1): without it, each launch would make the
    /// response look new.
    static func handedOut(_ stored: StoredResponse) -> HeaderFields {
        var fields = stored.fields
        if fields["Date"] == nil { fields.append("Date", HTTPDate.format(stored.responseTime)) }
        if let vary = fields["Vary"] {
            fields.remove("Vary")
            fields.append(varyName, vary)
        }
        return fields
    }

    /// The fields of a response that the loader stores, perhaps after a 304 to a head that was handed out, with its
    /// `Vary` again.
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

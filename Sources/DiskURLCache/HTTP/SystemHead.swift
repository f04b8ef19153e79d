/// The head of a stored response in the form for Apple's own loader, which judges freshness and `Vary` by itself.
enum SystemHead {
    /// The name under which `Vary` is hidden from the loader. By public descriptions of the new loading mode, it
    /// compares `Vary` with a note of the request that Foundation's own cache adds to an object as it stores it. The
    /// objects of this cache lack the note, so the loader would refuse most of the web. The cache has already selected
    /// the right variant.
    static let varyName = "DiskURLCache-Vary"

    /// The fields with a `Date`: the time of receipt where the origin sent none, as RFC 9110 §6.6.1 says. The loader
    /// computes the age from it, and a response would look new after each launch.
    static func handedOut(_ stored: StoredResponse, hidesVary: Bool) -> HeaderFields {
        var fields = hidesVary ? renaming("Vary", to: varyName, in: stored.fields) : stored.fields
        if fields["Date"] == nil { fields.append("Date", HTTPDate.format(stored.responseTime)) }
        // All that the loader can be told about a response that was marked as stale.
        if stored.staleSince != nil { fields.set("Cache-Control", "no-cache") }
        return fields
    }

    /// The fields of a response that the loader stores, with `Vary` under its own name again: after a 304 it stores
    /// fields that it got from the cache.
    static func restored(_ fields: HeaderFields) -> HeaderFields { renaming(varyName, to: "Vary", in: fields) }

    private static func renaming(_ name: String, to newName: String, in fields: HeaderFields) -> HeaderFields {
        guard let value = fields[name] else { return fields }
        var fields = fields
        fields.remove(name)
        if fields[newName] == nil { fields.append(newName, value) }
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

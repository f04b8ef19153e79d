/// The head of a stored response in the form for Apple's own loader, which judges freshness and `Vary` by itself.
enum SystemHead {
    /// The fields with a `Date`: the time of receipt where the origin sent none, as RFC 9110 §6.6.1 says. The loader
    /// computes the age from it, and a response would look new after each launch.
    static func handedOut(_ stored: StoredResponse) -> HeaderFields {
        var fields = stored.fields
        if fields["Date"] == nil { fields.append("Date", HTTPDate.format(stored.responseTime)) }
        // All that the loader can be told about a response that was marked as stale.
        if stored.staleSince != nil { fields.set("Cache-Control", "no-cache") }
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

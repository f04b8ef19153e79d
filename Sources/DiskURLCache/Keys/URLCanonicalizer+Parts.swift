// The canonical form of parts of a URL: a host's name, and the beginning of a URL.

extension URLCanonicalizer {
    /// The canonical form of a host's name; nil for a text that no URL has as its host.
    static func host(_ name: String) -> String? {
        guard !name.utf8.contains(where: { "/?#@*% ".utf8.contains($0) || $0 >= 0x80 }), !name.hasPrefix("."),
            // A name with a port is no name. The colons of an IPv6 literal are between brackets.
            name.hasPrefix("[") || !name.contains(":")
        else { return nil }
        return parts(of: "http://\(name)/")?.host
    }

    /// The canonical form of the beginning of a URL, and its host; nil for a text that no URL begins with.
    ///
    /// Scheme and host are whole, the path need not be: `https://example.com/a` begins `https://example.com/about`, and
    /// `https://example.com` does not begin `https://example.com.evil.example/`. A scheme alone has no host.
    static func prefix(_ text: String) -> (text: String, host: String?)? {
        let lowercased = text.lowercased()
        if "http://".hasPrefix(lowercased) || "https://".hasPrefix(lowercased) { return (lowercased, nil) }
        guard let whole = parts(of: text) else { return nil }
        let text = text.prefix { $0 != "#" }
        guard whole.query == nil, whole.hasDotSegments, let slash = text.lastIndex(of: "/") else {
            return (whole.url, whole.host)
        }
        // The last segment may be the beginning of another one: `/.` of `/.well-known`.
        guard let folder = parts(of: String(text[...slash])) else { return nil }
        let last = normalizedPercentEncoding(Array(text[slash...].utf8.dropFirst()))
        return (folder.url + String(decoding: last, as: UTF8.self), whole.host)
    }
}

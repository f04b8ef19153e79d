/// The groups of stored responses that servers name, so that one answer can invalidate many (RFC 9875).
///
/// Within the cache a group is a tag beside the app's tags: a digest of the origin and the name, so no response of
/// another origin is in it, and no tag of an app is one.
enum CacheGroups {
    /// The names of the groups that a response belongs to (RFC 9875 §2).
    /// - Parameter keyFields: further fields that list groups: names between white space or commas, as older servers
    ///   send them in `Surrogate-Key`.
    static func names(of fields: HeaderFields, keyFields: [String] = []) -> [String] {
        var names = strings(in: "Cache-Groups", of: fields)
        for field in keyFields { names += words(of: fields[field] ?? "") }
        return names
    }

    /// The names of the groups that an answer invalidates (RFC 9875 §3). An answer to a safe method must not be heard.
    /// A removal that comes of it brings no further removal about.
    static func invalidated(by fields: HeaderFields) -> [String] { strings(in: "Cache-Group-Invalidation", of: fields) }

    /// The names are opaque: they compare byte by byte. A field that is no list of strings counts as absent.
    private static func strings(in field: String, of fields: HeaderFields) -> [String] {
        fields[field].flatMap(StructuredField.strings) ?? []
    }

    private static func words(of value: String) -> [String] {
        value.utf8.split { $0 == UInt8(ascii: ",") || FieldSyntax.isWhitespace($0) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    private static let prefix = "cache-group "

    /// Half a SHA-256: among 128 bits nobody finds two alike.
    /// - Parameter origin: of the response's URL, in its canonical spelling.
    static func tag(of name: String, origin: String) -> String {
        prefix + SHA256Digest.digest(of: "\(origin)\n\(name)").hex.prefix(32)
    }

    static func isGroup(_ tag: String) -> Bool { tag.hasPrefix(prefix) }
}

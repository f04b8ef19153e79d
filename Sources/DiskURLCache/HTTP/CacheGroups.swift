/// Groups of stored responses, which servers name so that one answer can invalidate many responses (RFC 9875).
///
/// Inside the cache a group is a tag, beside the app's tags: a digest of the origin and the name, so that it can
/// contain neither responses of a different origin nor be confused with a tag of the app.
package enum CacheGroups {
    /// The names of the groups that a response belongs to (RFC 9875 §2).
    /// - Parameter keyFields: further fields that list groups: names between white space or commas, as older servers
    ///   send them in `Surrogate-Key`.
    package static func names(of fields: HeaderFields, keyFields: [String] = []) -> [String] {
        var names = strings(in: "Cache-Groups", of: fields)
        for field in keyFields { names += words(of: fields[field] ?? "") }
        return names
    }

    /// The largest number of groups of which one answer invalidates nothing but their responses. RFC 9875 §2 wants at
    /// least 32. An answer that names more invalidates everything of its origin, so that no name has to be compared.
    static let limit = 128

    /// The names of the groups that an answer invalidates (RFC 9875 §3). Only for answers to unsafe methods. The
    /// removal does not lead to further removals.
    static func invalidated(by fields: HeaderFields) -> [String] { strings(in: "Cache-Group-Invalidation", of: fields) }

    /// Names are compared byte by byte. A field that is not a list of strings is ignored.
    private static func strings(in field: String, of fields: HeaderFields) -> [String] {
        fields[field].flatMap(StructuredField.strings) ?? []
    }

    private static func words(of value: String) -> [String] {
        value.utf8.split { $0 == UInt8(ascii: ",") || FieldSyntax.isWhitespace($0) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    private static let prefix = "cache-group "

    /// Half of a SHA-256: with 128 bits, nobody can find two names with the same tag.
    /// - Parameter origin: the origin of the response's URL, in its canonical spelling.
    static func tag(of name: String, origin: String) -> String {
        prefix + SHA256Digest.digest(of: "\(origin)\n\(name)").hex.prefix(32)
    }

    static func isGroup(_ tag: String) -> Bool { tag.hasPrefix(prefix) }
}

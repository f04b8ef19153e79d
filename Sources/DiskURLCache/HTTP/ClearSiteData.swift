/// `Clear-Site-Data` (W3C Clear Site Data §3.1), as far as it concerns a cache.
enum ClearSiteData {
    static let fieldName = "Clear-Site-Data"

    /// Whether an answer tells the cache to remove what it has of the answer's origin. Only over a secure connection,
    /// where nobody on the way can have added the field, and only in a private cache: of a shared one, the answer to
    /// one user would empty it for all.
    static func emptiesCache(_ fields: HeaderFields, isSecure: Bool, isShared: Bool) -> Bool {
        guard isSecure, !isShared, let value = fields[fieldName] else { return false }
        return FieldSyntax.members(of: value).contains { $0 == "\"cache\"" || $0 == "\"*\"" }
    }
}

/// The part of `Clear-Site-Data` (W3C Clear Site Data §3.1) that concerns a cache.
enum ClearSiteData {
    static let fieldName = "Clear-Site-Data"

    /// Whether an answer tells the cache to remove everything from its host. Only over a secure connection, where
    /// nobody on the way can have added the field, and only in a private cache: in a shared one, the answer to one user
    /// would remove the responses of all.
    static func emptiesCache(_ fields: HeaderFields, isSecure: Bool, isShared: Bool) -> Bool {
        guard isSecure, !isShared, let value = fields[fieldName] else { return false }
        return FieldSyntax.members(of: value).contains { $0 == "\"cache\"" || $0 == "\"*\"" }
    }
}

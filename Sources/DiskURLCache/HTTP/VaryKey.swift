/// The request fields by which a stored response was selected (RFC 9111 §4.1).
///
/// Values are kept as digests only: they may be cookies or credentials, and a record must not hold those.
struct VaryKey: Sendable, Hashable {
    struct Field: Sendable, Hashable {
        /// In lower case.
        var name: String
        /// Digest of the normalised value; nil when the request did not have the field.
        var value: KeyDigest?
    }

    /// Sorted by name. Empty when the response has no `Vary`.
    var fields: [Field]
    /// `Vary: *`: never matches.
    var matchesNothing: Bool

    static let none = VaryKey(fields: [], matchesNothing: false)
}

extension VaryKey {
    init(response: HeaderFields, request: HeaderFields) {
        self = .none
    }

    /// Whether a request with these fields may be answered by the response this key was made for.
    func matches(_ request: HeaderFields) -> Bool {
        !matchesNothing
    }
}

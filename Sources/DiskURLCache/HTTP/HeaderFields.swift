/// The header fields of one message, in order, with case-insensitive names (RFC 9110 §5.1).
///
/// A name may occur several times; `self[name]` gives the combined value as RFC 9110 §5.3 defines it.
struct HeaderFields: Sendable, Hashable {
    struct Field: Sendable, Hashable {
        var name: String
        var value: String
    }

    private(set) var fields: [Field]

    init(_ fields: [Field] = []) {
        self.fields = fields
    }

    /// The combined value: all values of `name` joined by ", "; nil when the field is absent.
    subscript(name: String) -> String? {
        var result: String?
        for field in fields where field.name.equalsIgnoringASCIICase(name) {
            result = result.map { $0 + ", " + field.value } ?? field.value
        }
        return result
    }

    /// Each value of `name` as it came, in order.
    func values(of name: String) -> [String] {
        fields.compactMap { $0.name.equalsIgnoringASCIICase(name) ? $0.value : nil }
    }

    mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    mutating func remove(_ name: String) {
        fields.removeAll { $0.name.equalsIgnoringASCIICase(name) }
    }

    /// Replaces every value of `name` by one.
    mutating func set(_ name: String, _ value: String) {
        remove(name)
        append(name, value)
    }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field(name: $0.0, value: $0.1) })
    }
}

extension String {
    /// Field names, directives and codings compare without regard to ASCII case (RFC 9110 §5.1).
    func equalsIgnoringASCIICase(_ other: String) -> Bool {
        let left = utf8
        let right = other.utf8
        guard left.count == right.count else { return false }
        return zip(left, right).allSatisfy { $0 == $1 || ($0 | 0x20 == $1 | 0x20 && ($0 | 0x20) &- 97 < 26) }
    }
}

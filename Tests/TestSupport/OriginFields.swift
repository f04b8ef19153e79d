/// The header fields of a message of the origin, in the order in which they are sent. A name that occurs twice is sent
/// as two lines.
///
/// The library's own type is not used here: tests are to check it.
public struct OriginFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    public struct Field: Sendable, Equatable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    public private(set) var fields: [Field]

    public init(_ fields: [Field] = []) {
        self.fields = fields
    }

    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// All values of `name`, in order.
    public func values(of name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// All values of `name` joined by ", " (RFC 9110 §5.3); nil if there is none, and to remove it.
    public subscript(name: String) -> String? {
        get {
            let values = values(of: name)
            return values.isEmpty ? nil : values.joined(separator: ", ")
        }
        set {
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            if let newValue { append(name, newValue) }
        }
    }

    public mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Replaces all fields of this name.
    public mutating func set(_ name: String, _ value: String) {
        self[name] = value
    }
}

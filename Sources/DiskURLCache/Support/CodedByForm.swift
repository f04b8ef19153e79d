/// A value that is written as another value. How that is done is no member to learn for each type.
package protocol CodedByForm: Codable {
    associatedtype Form: Codable

    var form: Form { get }
    /// Nil for a form that no value has.
    init?(form: Form)
}

extension CodedByForm {
    public init(from decoder: any Decoder) throws {
        guard let value = Self(form: try Form(from: decoder)) else {
            let context = DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "no \(Self.self)")
            throw DecodingError.dataCorrupted(context)
        }
        self = value
    }

    public func encode(to encoder: any Encoder) throws { try form.encode(to: encoder) }
}

/// A case without values, which is written as its name.
package protocol NamedCase: CodedByForm, Equatable where Form == String {
    static var allNamed: [Self] { get }
}

extension NamedCase {
    package var form: String { "\(self)" }

    package init?(form: String) {
        guard let value = Self.allNamed.first(where: { $0.form == form }) else { return nil }
        self = value
    }
}

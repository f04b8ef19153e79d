/// A field such as `CDN-Cache-Control` (RFC 9213), which governs a response for caches that look for it;
/// `Cache-Control` and `Expires` do not count then.
struct TargetedField {
    let name: String
    let control: CacheControl

    /// The first of the listed fields that has a valid value. Nil: the response's other fields govern (RFC 9213 §2.2).
    init?(in fields: HeaderFields, listed names: [String]) {
        for name in names {
            var parser = Parser(bytes: Array((fields[name] ?? "").utf8)[...])
            guard let directives = parser.directives() else { continue }
            self.name = name
            control = CacheControl(directives: directives)
            return
        }
        return nil
    }

    /// A structured dictionary (RFC 8941 §4.2.2) whose values are those that directives have: integers, strings,
    /// tokens, or none. Parameters are skipped. A dictionary with any other value is invalid.
    private struct Parser {
        var bytes: ArraySlice<UInt8>
        private static let seconds: Set = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

        mutating func directives() -> [CacheControl.Directive]? {
            var directives: [CacheControl.Directive] = []
            _ = run { $0 == 0x20 }
            while let name = key() {
                let argument = consume("=") ? item(isSeconds: Self.seconds.contains(name)) : CacheControl.Argument.none
                guard let argument, hasParameters(), argument != .none || !Self.seconds.contains(name) else {
                    return nil
                }
                directives.removeAll { $0.name == name }
                directives.append(.init(name: name, argument: argument))
                _ = run(FieldSyntax.isWhitespace)
                if bytes.isEmpty { return directives }
                guard consume(",") else { return nil }
                _ = run(FieldSyntax.isWhitespace)
            }
            return nil
        }

        private mutating func item(isSeconds: Bool = false) -> CacheControl.Argument? {
            let digits = run { (0x30...0x39).contains($0) }
            if isSeconds || !digits.isEmpty { return (1...15).contains(digits.utf8.count) ? .value(digits) : nil }
            if consume("?") { return consume("1") ? CacheControl.Argument.none : nil }
            if consume("\"") { return string().map { .value($0) } }
            guard let first = bytes.first, first == UInt8(ascii: "*") || (0x61...0x7A).contains(first | 0x20) else {
                return nil
            }
            return .value(run { FieldSyntax.isTokenByte($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") })
        }

        private mutating func string() -> String? {
            var text: [UInt8] = []
            while var byte = bytes.popFirst(), (0x20...0x7E).contains(byte) {
                if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
                if byte == UInt8(ascii: "\\") {
                    guard let next = bytes.popFirst(), next == byte || next == UInt8(ascii: "\"") else { return nil }
                    byte = next
                }
                text.append(byte)
            }
            return nil
        }

        private mutating func hasParameters() -> Bool {
            while consume(";") {
                _ = run { $0 == 0x20 }
                guard key() != nil, !consume("=") || item() != nil else { return false }
            }
            return true
        }

        private mutating func key() -> String? {
            guard let first = bytes.first, first == UInt8(ascii: "*") || (0x61...0x7A).contains(first) else {
                return nil
            }
            return run { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || "_-.*".utf8.contains($0) }
        }

        private mutating func consume(_ character: Character) -> Bool {
            guard bytes.first == character.asciiValue else { return false }
            return bytes.popFirst() != nil
        }

        private mutating func run(_ isPart: (UInt8) -> Bool) -> String {
            let part = bytes.prefix(while: isPart)
            bytes = bytes.dropFirst(part.count)
            return String(decoding: part, as: UTF8.self)
        }
    }
}

/// A JSON text in a form that does not depend on white space or on the order of members.
///
/// The rest stays as it was written: numbers keep their spelling (`1` and `1.0`, or two numbers that one
/// `Double` cannot tell apart, may differ to the server), strings their escapes, repeated members their order. Two
/// bodies are made the same only when they are the same JSON.
enum CanonicalJSON {
    // The depth of recursion is limited, since the input may be hostile. Deeper texts are compared by their bytes.
    private static let maximumDepth = 128

    /// Nil if the text is not exactly one JSON value, or if a member's name has an escape: two spellings of one name
    /// would be sorted as two names, although their order says which of them counts.
    static func text(of bytes: some Collection<UInt8>) -> [UInt8]? {
        var scanner = Scanner(bytes: Array(bytes))
        guard let value = scanner.value(depth: 0) else { return nil }
        scanner.skipSpace()
        return scanner.isAtEnd ? value : nil
    }

    private struct Scanner {
        let bytes: [UInt8]
        var position = 0

        var isAtEnd: Bool { position == bytes.count }
        var next: UInt8? { position < bytes.count ? bytes[position] : nil }

        mutating func skipSpace() {
            while let byte = next, [0x20, 0x09, 0x0a, 0x0d].contains(byte) { position += 1 }
        }

        mutating func consume(_ character: Character) -> Bool {
            guard next == character.asciiValue else { return false }
            position += 1
            return true
        }

        mutating func value(depth: Int) -> [UInt8]? {
            guard depth <= CanonicalJSON.maximumDepth else { return nil }
            skipSpace()
            switch next {
            case UInt8(ascii: "{"): return list("{", "}") { $0.member(depth: depth + 1) }.map(Self.object)
            case UInt8(ascii: "["):
                return list("[", "]") { $0.value(depth: depth + 1) }.map {
                    [0x5b] + $0.joined(separator: [0x2c]) + [0x5d]
                }
            case UInt8(ascii: "\""): return string()
            default: return scalar()
            }
        }

        private mutating func list<Element>(
            _ open: Character, _ close: Character, _ element: (inout Scanner) -> Element?
        ) -> [Element]? {
            guard consume(open) else { return nil }
            var elements: [Element] = []
            skipSpace()
            if consume(close) { return elements }
            repeat {
                guard let next = element(&self) else { return nil }
                elements.append(next)
                skipSpace()
            } while consume(",")
            return consume(close) ? elements : nil
        }

        private mutating func member(depth: Int) -> (name: [UInt8], value: [UInt8])? {
            skipSpace()
            guard let name = string(), !name.contains(UInt8(ascii: "\\")) else { return nil }
            skipSpace()
            return consume(":") ? value(depth: depth).map { (name, $0) } : nil
        }

        private static func object(_ members: [(name: [UInt8], value: [UInt8])]) -> [UInt8] {
            // Members with the same name keep their order, since the server chooses which of them counts.
            let sorted = members.enumerated().sorted { left, right in
                if left.element.name == right.element.name { return left.offset < right.offset }
                return left.element.name.lexicographicallyPrecedes(right.element.name)
            }
            var text = [UInt8(ascii: "{")]
            for (position, member) in sorted.enumerated() {
                if position > 0 { text.append(UInt8(ascii: ",")) }
                text += member.element.name
                text.append(UInt8(ascii: ":"))
                text += member.element.value
            }
            text.append(UInt8(ascii: "}"))
            return text
        }

        private mutating func string() -> [UInt8]? {
            let start = position
            guard consume("\"") else { return nil }
            while let byte = next {
                position += 1
                switch byte {
                case UInt8(ascii: "\""): return Array(bytes[start..<position])
                case UInt8(ascii: "\\"):
                    guard next != nil else { return nil }
                    position += 1
                case 0..<0x20: return nil
                default: break
                }
            }
            return nil
        }

        /// A number or a literal, as it is spelled.
        private mutating func scalar() -> [UInt8]? {
            let start = position
            func isPart(_ byte: UInt8) -> Bool {
                let isLetter = (byte | 0x20) &- 97 < 26
                let isDigit = byte >= 48 && byte <= 57
                return isLetter || isDigit || "+-.".utf8.contains(byte)
            }
            while let byte = next, isPart(byte) { position += 1 }
            let text = bytes[start..<position]
            let isLiteral = ["true", "false", "null"].contains { text.elementsEqual($0.utf8) }
            return isLiteral || Self.isNumber(text) ? Array(text) : nil
        }

        /// Whether it is a number of RFC 8259 §6. What only resembles one is compared by its bytes.
        private static func isNumber(_ text: some Collection<UInt8>) -> Bool {
            var rest = text[...]
            func digits() -> Int {
                let count = rest.prefix { $0 &- 48 < 10 }.count
                rest = rest.dropFirst(count)
                return count
            }
            if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
            let beginsWithZero = rest.first == UInt8(ascii: "0")
            let whole = digits()
            guard whole == 1 || whole > 1 && !beginsWithZero else { return false }
            if rest.first == UInt8(ascii: ".") {
                rest = rest.dropFirst()
                guard digits() > 0 else { return false }
            }
            if let letter = rest.first, letter | 0x20 == UInt8(ascii: "e") {
                rest = rest.dropFirst()
                if let sign = rest.first, "+-".utf8.contains(sign) { rest = rest.dropFirst() }
                guard digits() > 0 else { return false }
            }
            return rest.isEmpty
        }
    }
}

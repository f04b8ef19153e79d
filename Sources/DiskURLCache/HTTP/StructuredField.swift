/// The value of a structured field (RFC 9651). One parser serves all fields that are defined in its terms.
///
/// It is strict, as §4.2 requires: if any part of a value breaks the grammar, the whole value is invalid.
package enum StructuredField {
    /// A value without parameters (§3.3).
    package enum BareItem: Sendable, Hashable {
        /// At most fifteen digits.
        case integer(Int64)
        /// In thousandths, since at most three digits after the point are allowed.
        case decimal(thousandths: Int64)
        case string(String)
        case token(String)
        case bytes([UInt8])
        case boolean(Bool)
        /// Seconds since 1970.
        case date(Int64)
        case displayString(String)
    }

    package struct Item: Sendable, Hashable {
        package var value: BareItem
        package var parameters: Entries<BareItem>
    }

    /// A member of a list or of a dictionary.
    package enum Member: Sendable, Hashable {
        case item(Item)
        case innerList([Item], parameters: Entries<BareItem>)
    }

    /// Keys and values, in the order in which the keys first occur. If a key occurs several times, its last value
    /// counts.
    package struct Entries<Value: Sendable & Hashable>: Sendable, Hashable {
        private(set) var list: [(key: String, value: Value)] = []
        private var positions: [String: Int] = [:]

        package subscript(key: String) -> Value? { positions[key].map { list[$0].value } }

        fileprivate mutating func set(_ key: String, _ value: Value) {
            if let position = positions[key] {
                list[position].value = value
            } else {
                positions[key] = list.count
                list.append((key, value))
            }
        }

        package static func == (left: Entries, right: Entries) -> Bool {
            left.list.count == right.list.count
                && zip(left.list, right.list).allSatisfy { $0.key == $1.key && $0.value == $1.value }
        }

        package func hash(into hasher: inout Hasher) {
            for (key, value) in list {
                hasher.combine(key)
                hasher.combine(value)
            }
        }
    }

    // The values are those of all lines of a field, joined by commas (RFC 9110 §5.3). Nil for a malformed value.

    static func item(_ value: String) -> Item? {
        Parser.parse(value) { parser throws(Malformed) in try parser.item() }
    }

    /// Empty for an empty value.
    package static func list(_ value: String) -> [Member]? {
        Parser.parse(value) { parser throws(Malformed) in
            var members: [Member] = []
            try parser.members { parser throws(Malformed) in members.append(try parser.member()) }
            return members
        }
    }

    /// Empty for an empty value.
    static func dictionary(_ value: String) -> Entries<Member>? {
        Parser.parse(value) { parser throws(Malformed) in
            var entries = Entries<Member>()
            try parser.members { parser throws(Malformed) in
                let key = try parser.key()
                if parser.consume("=") {
                    entries.set(key, try parser.member())
                } else {
                    entries.set(key, .item(Item(value: .boolean(true), parameters: try parser.parameters())))
                }
            }
            return entries
        }
    }

    /// The strings of a list that contains only strings, without their parameters; nil for any other value.
    static func strings(_ value: String) -> [String]? {
        guard let members = list(value) else { return nil }
        var strings: [String] = []
        for member in members {
            guard case .item(let item) = member, case .string(let string) = item.value else { return nil }
            strings.append(string)
        }
        return strings
    }

    fileprivate struct Malformed: Error {}
}

extension StructuredField.Member {
    /// The value of the member; nil if it is an inner list.
    var value: StructuredField.BareItem? { if case .item(let item) = self { item.value } else { nil } }
}

extension StructuredField {
    /// §4.2, one function for each of its algorithms.
    private struct Parser {
        private let bytes: [UInt8]
        private var position = 0

        static func parse<Value>(
            _ value: String, _ read: (inout Parser) throws(Malformed) -> Value
        ) -> Value? {
            var parser = Parser(bytes: Array(value.utf8))
            parser.skip { $0 == 0x20 }
            guard let result = try? read(&parser) else { return nil }
            parser.skip { $0 == 0x20 }
            return parser.next == nil ? result : nil
        }

        private init(bytes: [UInt8]) { self.bytes = bytes }

        private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

        mutating func consume(_ character: Unicode.Scalar) -> Bool {
            guard let next, UInt32(next) == character.value else { return false }
            position += 1
            return true
        }

        private mutating func skip(while isPart: (UInt8) -> Bool) {
            while let next, isPart(next) { position += 1 }
        }

        private mutating func take(while isPart: (UInt8) -> Bool) -> String {
            let start = position
            skip(while: isPart)
            return String(decoding: bytes[start..<position], as: UTF8.self)
        }

        private mutating func require(_ character: Unicode.Scalar) throws(Malformed) {
            guard consume(character) else { throw Malformed() }
        }

        /// The members of a list or dictionary (§4.2.1, §4.2.2): none at all, or one after each comma.
        mutating func members(_ read: (inout Parser) throws(Malformed) -> Void) throws(Malformed) {
            guard next != nil else { return }
            try read(&self)
            skip(while: FieldSyntax.isWhitespace)
            while consume(",") {
                skip(while: FieldSyntax.isWhitespace)
                try read(&self)
                skip(while: FieldSyntax.isWhitespace)
            }
        }

        /// An item or an inner list (§4.2.1.1).
        mutating func member() throws(Malformed) -> Member {
            next == UInt8(ascii: "(") ? try innerList() : .item(try item())
        }

        /// §4.2.1.2
        private mutating func innerList() throws(Malformed) -> Member {
            try require("(")
            var items: [Item] = []
            while true {
                skip { $0 == 0x20 }
                if consume(")") { return .innerList(items, parameters: try parameters()) }
                items.append(try item())
                guard next == 0x20 || next == UInt8(ascii: ")") else { throw Malformed() }
            }
        }

        /// §4.2.3
        mutating func item() throws(Malformed) -> Item {
            let value = try bareItem()
            return Item(value: value, parameters: try parameters())
        }

        /// §4.2.3.2
        mutating func parameters() throws(Malformed) -> Entries<BareItem> {
            var parameters = Entries<BareItem>()
            while consume(";") {
                skip { $0 == 0x20 }
                let key = try key()
                parameters.set(key, consume("=") ? try bareItem() : .boolean(true))
            }
            return parameters
        }

        /// §4.2.3.3
        mutating func key() throws(Malformed) -> String {
            guard let next, Self.isLowercase(next) || next == UInt8(ascii: "*") else { throw Malformed() }
            return take { Self.isLowercase($0) || Self.isDigit($0) || "_-.*".utf8.contains($0) }
        }

        /// §4.2.3.1
        private mutating func bareItem() throws(Malformed) -> BareItem {
            guard let next else { throw Malformed() }
            switch next {
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
            case UInt8(ascii: "\""): return .string(try string())
            case UInt8(ascii: ":"): return .bytes(try byteSequence())
            case UInt8(ascii: "?"): return .boolean(try boolean())
            case UInt8(ascii: "@"): return .date(try date())
            case UInt8(ascii: "%"): return .displayString(try displayString())
            case UInt8(ascii: "*"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
                return .token(
                    take { FieldSyntax.isTokenByte($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") })
            default: throw Malformed()
            }
        }

        /// §4.2.4: an integer of at most 15 digits, or at most 12 and, behind a point, one to three.
        private mutating func number() throws(Malformed) -> BareItem {
            let sign: Int64 = consume("-") ? -1 : 1
            let digits = take(while: Self.isDigit)
            guard (1...15).contains(digits.utf8.count), let whole = Int64(digits) else { throw Malformed() }
            guard consume(".") else { return .integer(sign * whole) }
            let fraction = take(while: Self.isDigit)
            guard digits.utf8.count <= 12, (1...3).contains(fraction.utf8.count),
                let thousandths = Int64((fraction + "00").prefix(3))
            else { throw Malformed() }
            return .decimal(thousandths: sign * (whole * 1_000 + thousandths))
        }

        /// §4.2.5
        private mutating func string() throws(Malformed) -> String {
            try require("\"")
            var text: [UInt8] = []
            while let byte = next {
                position += 1
                switch byte {
                case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
                case UInt8(ascii: "\\"):
                    guard let escaped = next, escaped == byte || escaped == UInt8(ascii: "\"") else {
                        throw Malformed()
                    }
                    position += 1
                    text.append(escaped)
                case 0x20...0x7E: text.append(byte)
                default: throw Malformed()
                }
            }
            throw Malformed()
        }

        /// §4.2.7: base64, with or without padding, and with any unused bits.
        private mutating func byteSequence() throws(Malformed) -> [UInt8] {
            try require(":")
            var (result, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
            while let byte = next, let digit = Self.base64(byte) {
                position += 1
                bits = bits << 6 | digit
                count += 1
                if count % 4 != 1 {
                    result.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * UInt32((count - 1) % 4))))
                }
            }
            let padding = take { $0 == UInt8(ascii: "=") }.utf8.count
            // A single digit is less than a byte, and padding only completes a group of four.
            guard count % 4 != 1 else { throw Malformed() }
            guard padding == 0 || (padding <= 2 && (count + padding) % 4 == 0) else { throw Malformed() }
            try require(":")
            return result
        }

        /// §4.2.8
        private mutating func boolean() throws(Malformed) -> Bool {
            try require("?")
            if consume("1") { return true }
            try require("0")
            return false
        }

        /// §4.2.9
        private mutating func date() throws(Malformed) -> Int64 {
            try require("@")
            guard case .integer(let seconds) = try number() else { throw Malformed() }
            return seconds
        }

        /// §4.2.10: UTF-8, of which all but printable ASCII is escaped.
        private mutating func displayString() throws(Malformed) -> String {
            try require("%")
            try require("\"")
            var text: [UInt8] = []
            while let byte = next {
                position += 1
                switch byte {
                case UInt8(ascii: "\""):
                    let string = String(decoding: text, as: UTF8.self)
                    // A byte that is not UTF-8 was replaced.
                    guard string.utf8.elementsEqual(text) else { throw Malformed() }
                    return string
                case UInt8(ascii: "%"):
                    let high = try hexDigit()
                    text.append(high << 4 | (try hexDigit()))
                case 0x20...0x7E: text.append(byte)
                default: throw Malformed()
                }
            }
            throw Malformed()
        }

        private mutating func hexDigit() throws(Malformed) -> UInt8 {
            guard let byte = next, Self.isDigit(byte) || Self.isLowercase(byte), let value = HexDigits.value(of: byte)
            else { throw Malformed() }
            position += 1
            return value
        }

        private static func isDigit(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }

        private static func isLowercase(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        }

        private static func base64(_ byte: UInt8) -> UInt32? {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
            case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
            case UInt8(ascii: "+"): 62
            case UInt8(ascii: "/"): 63
            default: nil
            }
        }
    }
}

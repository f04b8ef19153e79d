/// Which differences between the queries of two URLs do not matter for a response: `No-Vary-Search`
/// (draft-ietf-httpbis-no-vary-search, editors' copy of July 2026; approved as an RFC in November 2026).
package struct SearchVariation: Sendable, Hashable {
    /// By the bytes of the names. Strings would be equal if they are so in Unicode, such as the two spellings of é.
    private enum Parameters: Sendable, Hashable {
        /// `params=("a" "b")`
        case ignored(Set<[UInt8]>)
        /// `except=("a" "b")`
        case kept(Set<[UInt8]>)
    }

    private let parameters: Parameters
    /// `key-order`
    private let ignoresOrder: Bool

    /// Nil if the field is absent, malformed, or has no effect; then queries are compared byte by byte. The form of
    /// older drafts (`params` without a list) is malformed. Unknown keys are ignored.
    package init?(_ fields: HeaderFields) {
        guard let value = fields["No-Vary-Search"], let entries = StructuredField.dictionary(value) else { return nil }
        switch entries["key-order"] {
        case nil: ignoresOrder = false
        case .item(let item)?:
            guard case .boolean(let ignores) = item.value else { return nil }
            ignoresOrder = ignores
        case .innerList?: return nil
        }
        switch (entries["params"], entries["except"]) {
        case (nil, nil): parameters = .ignored([])
        case (let list?, nil):
            guard let names = Self.names(in: list) else { return nil }
            parameters = .ignored(names)
        case (nil, let list?):
            guard let names = Self.names(in: list) else { return nil }
            parameters = .kept(names)
        case (_?, _?): return nil
        }
        if parameters == .ignored([]), !ignoresOrder { return nil }
    }

    /// The strings of an inner list; nil for anything else.
    private static func names(in member: StructuredField.Member) -> Set<[UInt8]>? {
        guard case .innerList(let items, _) = member else { return nil }
        var names: Set<[UInt8]> = []
        for item in items {
            guard case .string(let string) = item.value else { return nil }
            names.insert(Array(decoded(string.utf8).utf8))
        }
        return names
    }

    /// A text that is equal for two queries if and only if they are equivalent.
    /// - Parameter query: the query without the question mark; nil if the URL has none.
    func simplified(_ query: String?) -> String {
        var pairs = (query ?? "").utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            let name = Self.decoded(pair[..<end])
            let value = Self.decoded(pair[end...].dropFirst())
            return (name: name, value: value)
        }
        switch parameters {
        case .ignored(let names): pairs.removeAll { names.contains(Array($0.name.utf8)) }
        case .kept(let names): pairs.removeAll { !names.contains(Array($0.name.utf8)) }
        }
        if ignoresOrder {
            // Parameters with the same name keep their order. Names are sorted by code units, as the draft says; any
            // fixed order would do.
            let sorted = pairs.enumerated().sorted { left, right in
                if left.element.name.hasSameBytes(as: right.element.name) { return left.offset < right.offset }
                return left.element.name.utf16.lexicographicallyPrecedes(right.element.name.utf16)
            }
            pairs = sorted.map(\.element)
        }
        // The lengths make sure that a part cannot look like the next one.
        var text = ""
        for (name, value) in pairs {
            text += "\(name.utf8.count):\(name)="
            text += "\(value.utf8.count):\(value)"
        }
        return text
    }

    /// Decodes a name or a value like the application/x-www-form-urlencoded parser (WHATWG URL §5.1): `+` is a space,
    /// triplets are decoded, and bytes that are not UTF-8 become U+FFFD.
    private static func decoded(_ bytes: some Collection<UInt8>) -> String {
        var result: [UInt8] = []
        var rest = Array(bytes)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): result.append(0x20)
            case UInt8(ascii: "%"):
                let digits = rest.prefix(2)
                if digits.count == 2, let high = HexDigits.value(of: digits[digits.startIndex]),
                    let low = HexDigits.value(of: digits[digits.startIndex + 1])
                {
                    result.append(high << 4 | low)
                    rest = rest.dropFirst(2)
                } else {
                    result.append(byte)
                }
            default: result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

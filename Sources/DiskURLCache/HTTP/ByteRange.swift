/// The value of a `Range` field (RFC 9110 §14.2).
enum RangeRequest: Sendable, Hashable {
    case single(ByteRange)
    /// Several ranges, or a unit that is not bytes: for the origin to answer.
    case other
    /// The value breaks the grammar: the request is answered as if it had no `Range`.
    case malformed

    init(_ value: String) {
        let trimmed = FieldSyntax.trimming(Substring(value))
        let bytes = trimmed.utf8
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), FieldSyntax.isToken(trimmed[..<equals]) else {
            self = .malformed
            return
        }
        guard String(trimmed[..<equals]).equalsIgnoringASCIICase("bytes") else {
            self = .other
            return
        }
        let ranges = FieldSyntax.members(of: String(trimmed[bytes.index(after: equals)...])).map(ByteRange.init)
        if ranges.isEmpty || ranges.contains(nil) {
            self = .malformed
        } else if ranges.count == 1, let range = ranges[0] {
            self = .single(range)
        } else {
            self = .other
        }
    }
}

/// One range of bytes, before the length of the representation is known.
enum ByteRange: Sendable, Hashable {
    /// `first-last` or `first-`, both ends included.
    case from(Int, through: Int?)
    /// `-length`
    case suffix(Int)

    init?(_ member: Substring) {
        guard let dash = member.utf8.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let before = member[..<dash]
        let after = member[member.utf8.index(after: dash)...]
        if before.isEmpty {
            guard let length = Self.position(after) else { return nil }
            self = .suffix(length)
            return
        }
        guard let first = Self.position(before) else { return nil }
        if after.isEmpty {
            self = .from(first, through: nil)
            return
        }
        guard let last = Self.position(after), last >= first else { return nil }
        self = .from(first, through: last)
    }

    /// The bytes of a representation of `total` bytes; nil when the range is not satisfiable (RFC 9110 §14.1.2).
    func resolved(total: Int) -> Range<Int>? {
        switch self {
        case .from(let first, let last):
            guard first < total else { return nil }
            return first..<min(last ?? .max, total - 1) + 1
        case .suffix(let length):
            guard length > 0, total > 0 else { return nil }
            return max(0, total - length)..<total
        }
    }

    /// A number in digits. One that is too large for `Int` becomes `Int.max`: no body is that long.
    static func position(_ digits: Substring) -> Int? {
        guard !digits.isEmpty else { return nil }
        var value = 0
        for byte in digits.utf8 {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            value = overflow ? .max : product.addingSaturated(Int(byte - UInt8(ascii: "0")))
        }
        return value
    }
}

/// The value of a `Content-Range` (RFC 9110 §14.4): `bytes 0-4/10`.
struct ContentRange: Sendable, Hashable {
    /// Positions within the representation.
    var range: Range<Int>
    /// Length of the whole representation.
    var total: Int

    /// Nil also when the length of the whole is unknown (`*`) or too large for `Int`: such a part can be neither completed
    /// nor served.
    init?(_ value: String) {
        let parts = FieldSyntax.trimming(Substring(value)).split(separator: " ")
        guard parts.count == 2, String(parts[0]).equalsIgnoringASCIICase("bytes") else { return nil }
        let numbers = parts[1].split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2, let total = ByteRange.position(numbers[1]), total < .max,
            case .from(let first, let last?) = ByteRange(numbers[0]), last < total
        else { return nil }
        range = first..<last + 1
        self.total = total
    }
}

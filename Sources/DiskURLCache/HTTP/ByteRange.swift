/// The value of a `Range` field (RFC 9110 §14.2).
enum RangeRequest: Sendable, Equatable {
    case single(ByteRange)
    /// Several ranges, or a unit other than bytes: only the origin can answer.
    case other
    /// The value breaks the grammar: the request is answered as if it had no `Range`.
    case malformed

    init(_ value: String) {
        let parts = FieldSyntax.trimming(Substring(value)).split(
            separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        self = .malformed
        guard parts.count == 2, FieldSyntax.isToken(parts[0]) else { return }
        let ranges = FieldSyntax.members(of: String(parts[1])).map(ByteRange.init)
        let isInBytes = String(parts[0]).equalsIgnoringASCIICase("bytes")
        let areSeveral = ranges.count > 1 && !ranges.contains(nil)
        if !isInBytes || areSeveral {
            self = .other
        } else if ranges.count == 1, let range = ranges[0] {
            self = .single(range)
        }
    }
}

/// One range of bytes, before the length of the representation is known.
enum ByteRange: Sendable, Equatable {
    /// `first-last` or `first-`, both ends included.
    case from(Int, through: Int?)
    /// `-length`
    case suffix(Int)

    init?(_ member: Substring) {
        let parts = member.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[0].isEmpty {
            guard let length = FieldSyntax.number(parts[1], limit: Int.max) else { return nil }
            self = .suffix(length)
            return
        }
        guard let first = FieldSyntax.number(parts[0], limit: Int.max) else { return nil }
        if parts[1].isEmpty {
            self = .from(first, through: nil)
            return
        }
        guard let last = FieldSyntax.number(parts[1], limit: Int.max), last >= first else { return nil }
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
}

/// The value of a `Content-Range` (RFC 9110 §14.4): `bytes 0-4/10`.
struct ContentRange: Sendable, Equatable {
    /// Positions within the representation.
    var range: Range<Int>
    /// Length of the whole representation.
    var total: Int
}

extension ContentRange {
    /// Nil also when the length of the whole is unknown (`*`) or too large for `Int`: such a part can be neither
    /// completed nor served.
    init?(_ value: String) {
        let parts = FieldSyntax.trimming(Substring(value)).split(separator: " ")
        guard parts.count == 2, String(parts[0]).equalsIgnoringASCIICase("bytes") else { return nil }
        let numbers = parts[1].split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2, let total = FieldSyntax.number(numbers[1], limit: Int.max), total < .max,
            case .from(let first, let last?) = ByteRange(numbers[0]), last < total
        else { return nil }
        range = first..<last + 1
        self.total = total
    }
}

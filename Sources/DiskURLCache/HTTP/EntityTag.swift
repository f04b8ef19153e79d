import Foundation

/// The value of an `ETag` (RFC 9110 §8.8.3).
struct EntityTag: Sendable, Equatable {
    /// As it is sent: `"abc"`, `W/"abc"`, or the bare text of a server that forgot the quotes.
    var text: String
    var isWeak: Bool

    /// The part that both comparisons compare: the tag without its weakness.
    ///
    /// Bytes: two texts that are equal in Unicode may be different tags for the origin.
    private var opaque: Substring.UTF8View {
        Substring(text).utf8.dropFirst(text.hasPrefix("W/\"") ? 2 : 0)
    }

    /// The value of a response's `ETag` field; nil when a request could not carry it.
    init?(_ value: String) {
        var rest = FieldSyntax.trimming(Substring(value))
        guard let tag = Self.next(in: &rest), rest.isEmpty else { return nil }
        self = tag
    }

    private init(text: Substring, isWeak: Bool) {
        self.text = String(text)
        self.isWeak = isWeak
    }

    static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.text.hasSameBytes(as: right.text)
    }

    /// Weak comparison (RFC 9110 §8.8.3.2): for `If-None-Match`.
    func weaklyMatches(_ other: EntityTag) -> Bool {
        opaque.elementsEqual(other.opaque)
    }

    /// Strong comparison: for `If-Range`, and wherever bytes are combined.
    func stronglyMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weaklyMatches(other)
    }

    /// Takes one tag from the front of `text`.
    ///
    /// A tag without quotes counts as weak. It is sent back as it came, since servers that send such tags compare
    /// texts. Byte ranges are never combined by it.
    fileprivate static func next(in text: inout Substring) -> EntityTag? {
        let bytes = text.utf8
        let isWeak = text.hasPrefix("W/\"")
        let isQuoted = isWeak || text.hasPrefix("\"")
        let lengthOfMark = isWeak ? 2 : 0
        // A backslash escapes nothing inside an entity tag.
        let open = bytes.index(bytes.startIndex, offsetBy: lengthOfMark + (isQuoted ? 1 : 0))
        let close = bytes[open...].firstIndex(of: UInt8(ascii: isQuoted ? "\"" : ","))
        if isQuoted, close == nil { return nil }
        let end = close ?? bytes.endIndex
        let opaque = isQuoted ? text[open..<end] : FieldSyntax.trimming(text[..<end])
        let isReadable = opaque.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }
        guard isReadable, isQuoted || !opaque.isEmpty else { return nil }
        let whole = isQuoted ? text[...end] : opaque
        defer { text = text[whole.endIndex...] }
        return EntityTag(text: whole, isWeak: isWeak || !isQuoted)
    }
}

/// The value of an `If-None-Match` (RFC 9110 §13.1.2).
enum EntityTagCondition: Sendable, Equatable {
    case any
    case tags([EntityTag])

    /// - Parameter value: the combined value of the field. A part that cannot be read matches no tag.
    init(_ value: String) {
        var rest = FieldSyntax.trimming(Substring(value))
        self = .any
        if rest == "*" { return }
        var tags: [EntityTag] = []
        while !rest.isEmpty {
            let first = rest.utf8[rest.startIndex]
            if first == UInt8(ascii: ",") || FieldSyntax.isWhitespace(first) {
                rest = Substring(rest.utf8.dropFirst())
            } else if let tag = EntityTag.next(in: &rest) {
                tags.append(tag)
            } else {
                break
            }
        }
        self = .tags(tags)
    }

    func matches(_ tag: EntityTag?) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tag.map { tag in tags.contains { $0.weaklyMatches(tag) } } ?? false
        }
    }
}

extension StoredResponse {
    var entityTag: EntityTag? { fields["ETag"].flatMap(EntityTag.init) }

    /// The date of `Last-Modified`; nil if there is none or it is invalid.
    var lastModified: Date? {
        fields["Last-Modified"].flatMap { HTTPDate.parse($0, reference: responseTime) }
    }
}

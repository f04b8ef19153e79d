import Foundation

/// The value of an `ETag` (RFC 9110 §8.8.3).
package struct EntityTag: Sendable, Equatable {
    /// As it is sent: `"abc"`, `W/"abc"`, or the bare text of a server that forgot the quotes.
    var text: String
    var isWeak: Bool

    /// The value of a response's `ETag` field; nil when a request could not carry it.
    init?(_ value: String) {
        let tag = value.withBytes { bytes -> EntityTag? in
            var rest = FieldSyntax.trimming(0..<bytes.count, of: bytes)
            let tag = Self.next(of: bytes, in: &rest)
            return rest.isEmpty ? tag : nil
        }
        guard let tag else { return nil }
        self = tag
    }

    private init(_ bytes: Slice<UnsafeBufferPointer<UInt8>>, isWeak: Bool) {
        text = String(decoding: bytes, as: UTF8.self)
        self.isWeak = isWeak
    }

    package static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.text.hasSameBytes(as: right.text)
    }

    /// Weak comparison (RFC 9110 §8.8.3.2), of the tags without their weakness: for `If-None-Match`.
    ///
    /// Bytes: two texts that are equal in Unicode may be different tags for the origin.
    func weaklyMatches(_ other: EntityTag) -> Bool {
        text.withBytes { left in other.text.withBytes { Self.opaque(left).elementsEqual(Self.opaque($0)) } }
    }

    private static func opaque(_ bytes: UnsafeBufferPointer<UInt8>) -> Slice<UnsafeBufferPointer<UInt8>> {
        bytes.dropFirst(isMarkedWeak(bytes[...]) ? 2 : 0)
    }

    private static func isMarkedWeak(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        bytes.starts(with: [UInt8(ascii: "W"), UInt8(ascii: "/"), quote])
    }

    private static let quote = UInt8(ascii: "\"")

    /// Strong comparison: for `If-Range`, and wherever bytes are combined.
    func stronglyMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weaklyMatches(other)
    }

    /// Takes one tag from the front of the rest of `bytes`.
    ///
    /// A tag without quotes counts as weak. It is sent back as it came, since servers that send such tags compare
    /// texts. Byte ranges are never combined by it.
    fileprivate static func next(
        of bytes: UnsafeBufferPointer<UInt8>, in rest: inout Range<Int>
    ) -> EntityTag? {
        let isWeak = isMarkedWeak(bytes[rest])
        let isQuoted = isWeak || bytes[rest].first == quote
        var open = rest.lowerBound
        if isWeak { open += 2 }
        if isQuoted { open += 1 }
        // A backslash escapes nothing inside an entity tag.
        let close = bytes[open..<rest.upperBound].firstIndex(of: isQuoted ? quote : UInt8(ascii: ","))
        if isQuoted, close == nil { return nil }
        let end = close ?? rest.upperBound
        let opaque = isQuoted ? open..<end : FieldSyntax.trimming(open..<end, of: bytes)
        let isReadable = bytes[opaque].allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != quote }
        guard isReadable, isQuoted || !opaque.isEmpty else { return nil }
        let whole = isQuoted ? rest.lowerBound..<end + 1 : opaque
        rest = whole.upperBound..<rest.upperBound
        return EntityTag(bytes[whole], isWeak: isWeak || !isQuoted)
    }
}

/// The value of an `If-None-Match` (RFC 9110 §13.1.2).
enum EntityTagCondition: Sendable, Equatable {
    case any
    case tags([EntityTag])

    /// - Parameter value: the combined value of the field. A part that cannot be read matches no tag.
    init(_ value: String) {
        self = value.withBytes { bytes in
            var rest = FieldSyntax.trimming(0..<bytes.count, of: bytes)
            if bytes[rest].elementsEqual([UInt8(ascii: "*")]) { return .any }
            var tags: [EntityTag] = []
            while let first = bytes[rest].first {
                if first == UInt8(ascii: ",") || FieldSyntax.isWhitespace(first) {
                    rest = rest.dropFirst()
                } else if let tag = EntityTag.next(of: bytes, in: &rest) {
                    tags.append(tag)
                } else {
                    break
                }
            }
            return .tags(tags)
        }
    }

    func matches(_ tag: EntityTag?) -> Bool {
        switch self {
        case .any: return true
        case .tags(let tags):
            guard let tag else { return false }
            return tags.contains { $0.weaklyMatches(tag) }
        }
    }
}

extension StoredResponse {
    package var entityTag: EntityTag? { fields.single("ETag").flatMap(EntityTag.init) }

    /// The date of `Last-Modified`; nil if there is none or it is invalid.
    package var lastModified: Date? {
        fields.single("Last-Modified").flatMap { HTTPDate.parse($0, reference: responseTime) }
    }
}

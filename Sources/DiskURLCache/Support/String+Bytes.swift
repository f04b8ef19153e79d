import Foundation

// Texts of the network and the system are read, compared and searched by their bytes.

extension String {
    /// Calls `body` with the UTF-8 bytes, in place.
    @inline(__always)
    func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
        if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
        // Bridged strings of Apple platforms may have no contiguous bytes.
        var copy = self
        return try copy.withUTF8(body)
    }

    /// Whether the byte occurs. Decided by words.
    func contains(byte: UInt8) -> Bool {
        withBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return memchr(start, Int32(byte), bytes.count) != nil
        }
    }

    /// `==` takes two texts for equal that are equal in Unicode, such as the two spellings of é; for an origin they are
    /// different.
    package func hasSameBytes(as other: String) -> Bool {
        withBytes { left in
            other.withBytes { right in
                guard left.count == right.count else { return false }
                guard let first = left.baseAddress, let second = right.baseAddress else { return true }
                return memcmp(first, second, left.count) == 0
            }
        }
    }

    /// Field names, directives and codings compare without regard to ASCII case (RFC 9110 §5.1).
    ///
    /// Runs for each field of a message at every lookup by name, and nearly all names differ in their lengths.
    @inline(__always)
    func equalsIgnoringASCIICase(_ other: String) -> Bool {
        utf8.count == other.utf8.count && hasSameLetters(as: other)
    }

    /// The same for texts of one length.
    func hasSameLetters(as other: String) -> Bool {
        withBytes { left in
            other.withBytes { right in
                for index in 0..<left.count {
                    let a = left[index]
                    let b = right[index]
                    guard a == b || (a ^ b == 0x20 && (a | 0x20) &- 97 < 26) else { return false }
                }
                return true
            }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// False if surely no byte is below `limit`, at most 128, and none is `other`, which is below 128, too. Looks at
    /// eight bytes at a time; the last eight may be looked at twice.
    @inline(__always)
    func mayHaveByte(below limit: UInt8, or other: UInt8? = nil) -> Bool {
        !everyWord { word in
            let isBelow = (word &- Self.ones &* UInt64(limit)) & ~word
            guard let other else { return isBelow & Self.highBits == 0 }
            let difference = word ^ Self.ones &* UInt64(other)
            return (isBelow | (difference &- Self.ones) & ~difference) & Self.highBits == 0
        }
    }

    /// True only if each byte is an ASCII letter or a hyphen, and there are at least eight. Looks at eight bytes at a
    /// time; the last eight may be looked at twice.
    @inline(__always)
    var hasOnlyLettersAndHyphens: Bool {
        everyWord { word in
            // Each byte has room for a carry into its high bit, which says whether the byte is at least "a", above "z",
            // or other than a hyphen.
            let rest = word & ~Self.highBits
            let lowercased = rest | Self.ones &* 0x20
            let isLetter = (lowercased &+ Self.ones &* 0x1F) & ~(lowercased &+ Self.ones &* 0x05)
            let isHyphen = ~((rest ^ Self.ones &* 0x2D) &+ Self.ones &* 0x7F)
            return (isLetter | isHyphen) & ~word & Self.highBits == Self.highBits
        }
    }

    private static var ones: UInt64 { 0x0101_0101_0101_0101 }
    private static var highBits: UInt64 { 0x8080_8080_8080_8080 }

    /// Whether something is true of all words. False for fewer than eight bytes.
    @inline(__always)
    private func everyWord(_ isTrue: (UInt64) -> Bool) -> Bool {
        guard count >= 8 else { return false }
        var position = 0
        while position + 8 < count {
            if !isTrue(loadUnaligned(fromByteOffset: position, as: UInt64.self)) { return false }
            position += 8
        }
        return isTrue(loadUnaligned(fromByteOffset: count - 8, as: UInt64.self))
    }
}

/// A text in a set or a dictionary that is equal to another one only byte by byte. For Swift, two spellings of é are
/// equal.
struct ByteText: Hashable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: ByteText, right: ByteText) -> Bool { left.text.hasSameBytes(as: right.text) }

    func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

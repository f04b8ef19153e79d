/// A SHA-256 digest as four big-endian words: small enough to copy, cheap to hash and compare.
struct KeyDigest: Sendable, Hashable {
    var words: SIMD4<UInt64>

    /// 64 lower-case hexadecimal digits: the stem of a record's file name.
    var hex: String {
        String(unsafeUninitializedCapacity: 64) { buffer in
            writeHex(to: UnsafeMutableRawPointer(buffer.baseAddress!))
            return 64
        }
    }

    /// Writes the 64 digits of `hex` without allocating, eight at a time.
    @inline(__always)
    func writeHex(to destination: UnsafeMutableRawPointer) {
        for word in 0..<4 {
            for half in 0..<2 {
                // Each nibble into a byte of its own, and each byte to its digit: 39 lies between "9" + 1 and "a".
                var digits = words[word] >> (half == 0 ? 32 : 0) & 0xFFFF_FFFF
                digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
                digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
                digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
                let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
                digits = digits &+ 0x3030_3030_3030_3030 &+ letters &* 39
                destination.storeBytes(of: digits.bigEndian, toByteOffset: word * 16 + half * 8, as: UInt64.self)
            }
        }
    }

    /// Reads 64 lower-case hexadecimal digits; nil for anything else. Eight at a time: opening a cache reads the name of
    /// every record.
    init?(hex bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 64 else { return nil }
        var words = SIMD4<UInt64>()
        for word in 0..<4 {
            guard let high = Self.number(of: bytes, at: word * 16), let low = Self.number(of: bytes, at: word * 16 + 8)
            else { return nil }
            words[word] = high << 32 | low
        }
        self.words = words
    }

    /// The number that eight digits are.
    @inline(__always)
    private static func number(of bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let digits = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        // Letters have bit 6 and begin with 1 in their low nibble.
        var nibbles = (digits & (ones &* 15)) &+ (digits >> 6 & ones) &* 9
        let letters = (nibbles &+ ones &* 6) >> 4 & ones
        // What is a digit comes out as itself again; 39 lies between "9" + 1 and "a".
        guard nibbles & (ones &* 0xF0) == 0, nibbles &+ ones &* 48 &+ letters &* 39 == digits else { return nil }
        nibbles = (nibbles | nibbles >> 4) & 0x00FF_00FF_00FF_00FF
        nibbles = (nibbles | nibbles >> 8) & 0x0000_FFFF_0000_FFFF
        return (nibbles | nibbles >> 16) & 0xFFFF_FFFF
    }

    init(words: SIMD4<UInt64>) {
        self.words = words
    }

    // The words of a SHA-256 digest are uniform already: one of them is as good a hash as any.
    func hash(into hasher: inout Hasher) {
        hasher.combine(words[0])
    }
}

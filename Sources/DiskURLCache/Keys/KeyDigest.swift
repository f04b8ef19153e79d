/// A SHA-256 digest as four big-endian words: small enough to copy, cheap to hash and compare.
struct KeyDigest: Sendable, Hashable {
    var words: SIMD4<UInt64>

    /// 64 lower-case hexadecimal digits: the stem of a record's file name.
    var hex: String {
        String(unsafeUninitializedCapacity: 64) { buffer in
            writeHex(to: buffer.baseAddress!)
            return 64
        }
    }

    /// Writes the 64 digits of `hex` without allocating.
    func writeHex(to destination: UnsafeMutablePointer<UInt8>) {
        for word in 0..<4 {
            let place = UnsafeMutableRawPointer(destination + word * 16)
            place.storeBytes(of: Self.digits(of: words[word] >> 32).bigEndian, as: UInt64.self)
            place.storeBytes(of: Self.digits(of: words[word] & 0xFFFF_FFFF).bigEndian, toByteOffset: 8, as: UInt64.self)
        }
    }

    /// The eight digits of a 32-bit number, the first one in the highest byte.
    @inline(__always)
    private static func digits(of number: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        // One nibble in each byte.
        var nibbles = (number | number << 16) & 0x0000_FFFF_0000_FFFF
        nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF
        nibbles = (nibbles | nibbles << 4) & ones &* 15
        let letters = (nibbles &+ ones &* 6) >> 4 & ones
        // 39 lies between "9" + 1 and "a".
        return nibbles &+ ones &* 48 &+ letters &* 39
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

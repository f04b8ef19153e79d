/// Hexadecimal digits. Those of names are in lower case, and are handled eight at a time: opening a cache reads the
/// name of every record.
enum HexDigits {
    /// What a digit of either case stands for; nil if the byte is none.
    static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// Writes the sixteen digits of a number.
    @inline(__always)
    static func write(_ number: UInt64, to destination: UnsafeMutableRawPointer) {
        for half in 0..<2 {
            // Each nibble goes into one byte, and each byte becomes its digit: 39 lies between "9" + 1 and "a".
            var digits = number >> (half == 0 ? 32 : 0) & 0xFFFF_FFFF
            digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
            digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
            digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
            let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & ones
            digits = digits &+ 0x3030_3030_3030_3030 &+ letters &* 39
            destination.storeBytes(of: digits.bigEndian, toByteOffset: half * 8, as: UInt64.self)
        }
    }

    /// The number that sixteen digits spell; nil if one of the bytes is a capital letter or no digit at all.
    @inline(__always)
    static func number(of bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64? {
        guard let high = half(of: bytes, at: offset), let low = half(of: bytes, at: offset + 8) else { return nil }
        return high << 32 | low
    }

    @inline(__always)
    private static func half(of bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64? {
        let digits = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        // Letters have bit 6 and begin with 1 in their low nibble.
        var nibbles = (digits & (ones &* 15)) &+ (digits >> 6 & ones) &* 9
        let letters = (nibbles &+ ones &* 6) >> 4 & ones
        // Converted back, only real digits give the same bytes; 39 lies between "9" + 1 and "a".
        guard nibbles & (ones &* 0xF0) == 0, nibbles &+ ones &* 48 &+ letters &* 39 == digits else { return nil }
        nibbles = (nibbles | nibbles >> 4) & 0x00FF_00FF_00FF_00FF
        nibbles = (nibbles | nibbles >> 8) & 0x0000_FFFF_0000_FFFF
        return (nibbles | nibbles >> 16) & 0xFFFF_FFFF
    }
}

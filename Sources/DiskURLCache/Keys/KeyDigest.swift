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
            var value = words[word]
            for digit in stride(from: 15, through: 0, by: -1) {
                let nibble = UInt8(truncatingIfNeeded: value & 15)
                destination[word * 16 + digit] = nibble < 10 ? 48 + nibble : 87 + nibble
                value >>= 4
            }
        }
    }

    /// Reads 64 lower-case hexadecimal digits; nil for anything else.
    init?(hex: some Sequence<UInt8>) {
        var words = SIMD4<UInt64>()
        var count = 0
        for byte in hex {
            let nibble: UInt64
            switch byte {
            case 48...57: nibble = UInt64(byte) - 48
            case 97...102: nibble = UInt64(byte) - 87
            default: return nil
            }
            guard count < 64 else { return nil }
            words[count / 16] = words[count / 16] << 4 | nibble
            count += 1
        }
        guard count == 64 else { return nil }
        self.words = words
    }

    init(words: SIMD4<UInt64>) {
        self.words = words
    }

    // The words of a SHA-256 digest are uniform already: one of them is as good a hash as any.
    func hash(into hasher: inout Hasher) {
        hasher.combine(words[0])
    }
}

/// A hash of text, sixteen bytes at a time. (With `Hasher`, hashing would take most of the time of a memory hit.)
///
/// For tables in memory each process uses a random seed, so that a server cannot choose URLs that collide. With a given
/// seed the hash is the same in all processes; names and hashes on disk rely on that (`OnDiskFormat.md`).
enum TextHash {
    private static let processSeed = UInt64.random(in: .min ... .max)
    // Odd numbers whose bits are evenly mixed.
    private static let first: UInt64 = 0x9E37_79B9_7F4A_7C15
    private static let second: UInt64 = 0xD6E8_FEB8_6659_FD93

    static func hash(_ text: String) -> Int { Int(truncatingIfNeeded: hash(text, seed: processSeed)) }

    static func hash(_ text: String, seed: UInt64) -> UInt64 {
        text.withBytes { hash(UnsafeRawBufferPointer($0), seed: seed) }
    }

    static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        hash(bytes, seed: seed, ignoresCase: false)
    }

    /// The same hash for texts that differ only in the case of ASCII letters.
    static func hash(ignoringCaseOf text: String) -> Int {
        text.withBytes {
            Int(truncatingIfNeeded: hash(UnsafeRawBufferPointer($0), seed: processSeed, ignoresCase: true))
        }
    }

    @inline(__always)
    private static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64, ignoresCase: Bool) -> UInt64 {
        let count = bytes.count
        var state = seed ^ UInt64(truncatingIfNeeded: count) &* first
        func word(_ offset: Int) -> UInt64 {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            return ignoresCase ? lowercased(word) : word
        }
        if count >= 16 {
            var offset = 0
            while offset + 16 < count {
                state = folded(word(offset) ^ first, word(offset + 8) ^ state)
                offset += 16
            }
            // The last sixteen bytes; some of them may be read twice.
            state = folded(word(count - 16) ^ first, word(count - 8) ^ state)
        } else {
            var words = (UInt64(0), UInt64(0))
            for (index, byte) in bytes.enumerated() {
                if index < 8 {
                    words.0 = words.0 << 8 | UInt64(byte)
                } else {
                    words.1 = words.1 << 8 | UInt64(byte)
                }
            }
            if ignoresCase { words = (lowercased(words.0), lowercased(words.1)) }
            state = folded(words.0 ^ first, words.1 ^ state)
        }
        return folded(state ^ second, first)
    }

    /// Eight bytes with ASCII letters in lower case. No other byte changes: a server could name any number of fields
    /// whose names differ only in bytes that were taken for equal.
    @inline(__always)
    private static func lowercased(_ word: UInt64) -> UInt64 {
        let highBits: UInt64 = 0x8080_8080_8080_8080
        let rest = word & ~highBits
        // Each byte has room for a carry into its high bit, which says whether the byte is at least "A" (0x41), or
        // above "Z" (0x5A).
        let isAtLeastA = rest &+ 0x3F3F_3F3F_3F3F_3F3F
        let isAboveZ = rest &+ 0x2525_2525_2525_2525
        let isUppercase = (isAtLeastA ^ isAboveZ) & ~word & highBits
        // 0x20 for each.
        return word | (isUppercase >> 2)
    }

    /// All 128 bits of a product, folded into 64.
    @inline(__always)
    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}

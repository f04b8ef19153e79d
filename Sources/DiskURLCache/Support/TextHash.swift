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

    static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 { hash(bytes, seed: seed, ignoring: 0) }

    /// The same hash for texts that differ only in the case of ASCII letters; also for some others.
    static func hash(ignoringCaseOf text: String) -> Int {
        let caseBits: UInt64 = 0x2020_2020_2020_2020
        return text.withBytes {
            Int(truncatingIfNeeded: hash(UnsafeRawBufferPointer($0), seed: processSeed, ignoring: caseBits))
        }
    }

    /// - Parameter ignored: the bits of each word that make no difference.
    @inline(__always)
    private static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64, ignoring ignored: UInt64) -> UInt64 {
        let count = bytes.count
        var state = seed ^ UInt64(truncatingIfNeeded: count) &* first
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) | ignored
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
            state = folded((words.0 | ignored) ^ first, (words.1 | ignored) ^ state)
        }
        return folded(state ^ second, first)
    }

    /// All 128 bits of a product, folded into 64.
    @inline(__always)
    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}

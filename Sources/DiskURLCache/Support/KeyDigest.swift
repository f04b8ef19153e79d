/// A SHA-256 digest as four big-endian words: small enough to copy, cheap to hash and compare.
package struct KeyDigest: Sendable, Hashable {
    var words: SIMD4<UInt64>

    /// 64 lower-case hexadecimal digits.
    package var hex: String {
        String(unsafeUninitializedCapacity: 64) { buffer in
            writeHex(to: UnsafeMutableRawPointer(buffer.baseAddress!))
            return 64
        }
    }

    /// Writes the 64 digits of `hex` without allocating.
    func writeHex(to destination: UnsafeMutableRawPointer) {
        for word in 0..<4 { HexDigits.write(words[word], to: destination + word * 16) }
    }

    init(words: SIMD4<UInt64>) {
        self.words = words
    }

    /// - Parameter bytes: 32 of them.
    init(bytes: UnsafeRawBufferPointer) {
        words = SIMD4()
        for word in 0..<4 {
            words[word] = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: word * 8, as: UInt64.self))
        }
    }

    // The words of a SHA-256 digest are uniform already: one of them is as good a hash as any.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(words[0])
    }
}

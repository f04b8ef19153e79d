/// A digest of 32 bytes as four big-endian words: small enough to copy, cheap to hash and compare. A SHA-256, or for a
/// key the halves of two.
package struct KeyDigest: Sendable, Hashable {
    // Not a vector: memory for a list of those would have to be aligned, which takes longer to allocate.
    fileprivate var first, second, third, fourth: UInt64

    static let zero = KeyDigest { _ in 0 }

    /// - Parameter word: makes each of the four.
    @inline(__always)
    init(_ word: (Int) -> UInt64) {
        (first, second, third, fourth) = (word(0), word(1), word(2), word(3))
    }

    /// Calls `body` with each of the four words.
    @inline(__always)
    func forEachWord(_ body: (UInt64) -> Void) {
        body(first)
        body(second)
        body(third)
        body(fourth)
    }

    /// 64 lower-case hexadecimal digits.
    package var hex: String {
        String(unsafeUninitializedCapacity: 64) { buffer in
            writeHex(to: UnsafeMutableRawPointer(buffer.baseAddress!))
            return 64
        }
    }

    /// Writes the 64 digits of `hex` without allocating.
    func writeHex(to destination: UnsafeMutableRawPointer) {
        var position = destination
        forEachWord { word in
            HexDigits.write(word, to: position)
            position += 16
        }
    }

    /// - Parameter bytes: 32 of them.
    init(bytes: UnsafeRawBufferPointer) {
        self.init { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
    }

    // The words of a SHA-256 digest, and of its halves, are uniform already: one of them is as good a hash as any.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(first)
    }
}

/// Half of the SHA-256 of a host: with 128 bits, nobody can find a name that has the same as a given one.
package struct HostDigest: Sendable, Hashable {
    let high, low: UInt64
}

extension KeyDigest {
    /// The digest of a key: one half of the SHA-256 of its text, and one half of that of its host. Either half has 128
    /// bits: nobody can find a text or a host that has the same as a given one.
    init(ofKey text: String, host: String) {
        let (key, host) = (SHA256Digest.digest(of: text), HostDigest(of: host))
        (first, second, third, fourth) = (key.first, key.second, host.high, host.low)
    }

    /// The half of a key's digest that is its host's.
    package var host: HostDigest { HostDigest(high: third, low: fourth) }
}

extension HostDigest {
    init(of host: String) {
        let digest = SHA256Digest.digest(of: host)
        (high, low) = (digest.first, digest.second)
    }
}

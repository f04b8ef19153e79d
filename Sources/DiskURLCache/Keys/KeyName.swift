/// The name of the key's records on disk: 128 bits, hashed from the text of the key by `TextHash`.
///
/// A name is cheap, so a miss costs no SHA-256. A name is no proof: two texts that share one can be made. So each record
/// holds the SHA-256 of its key, and a record with another digest is not an answer. See decision record 0005.
struct KeyName: Sendable, Hashable {
    var high: UInt64
    var low: UInt64

    /// Digits of `hex`.
    static let length = 32
    // The seeds are part of the on-disk format.
    private static let seeds: (high: UInt64, low: UInt64) = (0x6b65_7920_6368_6563, 0x6e61_6d65_206f_6620)

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    init(_ text: String) {
        var text = text
        (high, low) = text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            return (TextHash.hash(bytes, seed: Self.seeds.high), TextHash.hash(bytes, seed: Self.seeds.low))
        }
    }

    /// 32 lower-case hexadecimal digits.
    var hex: String {
        String(unsafeUninitializedCapacity: Self.length) { buffer in
            guard let base = buffer.baseAddress else { return 0 }
            writeHex(to: UnsafeMutableRawPointer(base))
            return Self.length
        }
    }

    /// Writes the digits of `hex` without allocating.
    func writeHex(to destination: UnsafeMutableRawPointer) {
        HexDigits.write(high, to: destination)
        HexDigits.write(low, to: destination + 16)
    }

    /// Reads 32 lower-case hexadecimal digits; nil for anything else.
    init?(hex bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.length, let high = HexDigits.number(of: bytes, at: 0),
            let low = HexDigits.number(of: bytes, at: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    // The words are uniform already: one of them is as good a hash as any.
    func hash(into hasher: inout Hasher) {
        hasher.combine(high)
    }
}

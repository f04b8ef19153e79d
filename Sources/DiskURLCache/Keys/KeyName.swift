/// The file name of a key's records: a hash of the resource's URL, and a hash of the key's text, both by `TextHash`. So
/// the names of all keys of a resource begin alike.
///
/// A name is cheap, so that a miss costs no SHA-256. But it proves nothing, since two texts with the same name can be
/// constructed. Therefore each record has the SHA-256 of its key inside, and a record with a different digest is not
/// used. See decision record 0005.
package struct KeyName: Sendable, Hashable {
    /// The hash of the canonical URL, which all keys of one resource share.
    var resource: UInt64
    /// The hash of the text of the key.
    var low: UInt64

    /// The number of digits of `hex`.
    static let length = 32
    // The seeds are part of the on-disk format.
    private static let seeds: (resource: UInt64, low: UInt64) = (0x6b65_7920_6368_6563, 0x6e61_6d65_206f_6620)

    init(resource: UInt64, low: UInt64) {
        self.resource = resource
        self.low = low
    }

    /// - Parameter resource: see `resource(of:)`.
    init(_ text: String, resource: UInt64) {
        self.init(resource: resource, low: TextHash.hash(text, seed: Self.seeds.low))
    }

    /// The hash of a canonical URL. Two URLs may share one; each record holds the digest of its key.
    static func resource(of uri: String) -> UInt64 { TextHash.hash(uri, seed: seeds.resource) }

    /// 32 lower-case hexadecimal digits.
    package var hex: String {
        String(unsafeUninitializedCapacity: Self.length) { buffer in
            guard let base = buffer.baseAddress else { return 0 }
            writeHex(to: UnsafeMutableRawPointer(base))
            return Self.length
        }
    }

    /// Writes the digits of `hex` without allocating.
    func writeHex(to destination: UnsafeMutableRawPointer) {
        HexDigits.write(resource, to: destination)
        HexDigits.write(low, to: destination + 16)
    }

    /// Reads 32 lower-case hexadecimal digits; nil for anything else.
    package init?(hex bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.length, let resource = HexDigits.number(of: bytes, at: 0),
            let low = HexDigits.number(of: bytes, at: 16)
        else { return nil }
        self.init(resource: resource, low: low)
    }

    // The hash is uniform already.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(low)
    }
}

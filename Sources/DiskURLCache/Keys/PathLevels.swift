/// The first four levels of a URL's path, `/a/`, `/a/b/` and so on, in a byte each, so that a removal by prefix need
/// not read every record of the host. They prove nothing: two paths may have the same bytes.
package struct PathLevels: Sendable, Hashable {
    /// The first level in the lowest byte. For each level some bits of a hash of the path up to its slash; `none` for a
    /// level that the path lacks. All are 0 if the URL is not known.
    let bits: UInt32

    private static let count = 4
    private static let none: UInt8 = 1

    init(bits: UInt32) { self.bits = bits }

    /// - Parameter url: nil if it is not known.
    init(_ url: String?) {
        let url = url.flatMap(URLCanonicalizer.canonical)
        self = url.map(Self.init(ofNormal:)) ?? Self(bits: 0)
    }

    /// - Parameter url: a canonical URL, or how one begins.
    init(ofNormal url: String) {
        bits = url.withBytes { bytes in
            // The host has a byte at least, so the path begins here at the earliest.
            var place = "http://a".utf8.count
            while place < bytes.count, bytes[place] != UInt8(ascii: "/") { place += 1 }
            place += 1
            var levels = UInt32(Self.none) * 0x0101_0101
            var level = 0
            // FNV-1a, in 32 bits.
            var hash: UInt32 = 0x811C_9DC5
            while place < bytes.count, bytes[place] != UInt8(ascii: "?") {
                hash = (hash ^ UInt32(bytes[place])) &* 0x0100_0193
                if bytes[place] == UInt8(ascii: "/") {
                    let value = max(UInt8(hash >> 24), Self.none + 1)
                    levels += UInt32(value - Self.none) << (8 * level)
                    level += 1
                    if level == Self.count { break }
                }
                place += 1
            }
            return levels
        }
    }

    /// Whether a URL with these levels may begin with a prefix that has those.
    func mayBegin(with prefix: PathLevels) -> Bool {
        if bits == 0 { return true }
        for shift in stride(from: 0, to: 8 * Self.count, by: 8) {
            let wanted = UInt8(truncatingIfNeeded: prefix.bits >> shift)
            if wanted == Self.none { return true }
            if wanted != UInt8(truncatingIfNeeded: bits >> shift) { return false }
        }
        return true
    }
}

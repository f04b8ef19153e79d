/// The host of URLs, for a removal of what is stored for it. An origin may cause such a removal, so the host itself is
/// compared, or a digest of it: two names with the same short hash are found in seconds.
package struct HostName: Sendable, Hashable {
    /// In its canonical spelling.
    let text: String
    /// Narrows the search in an index, and proves nothing.
    let hash: UInt32
    init(_ text: String) {
        self.text = text
        hash = Self.hash(text)
    }

    /// For records and entries that do not have the URL of their key, and made only for those.
    package var digest: HostDigest { HostDigest(of: text) }

    static func hash(_ host: String) -> UInt32 { UInt32(truncatingIfNeeded: TextHash.hash(host, seed: 2)) }

    /// Whether a canonical URL is of this host.
    func isHost(ofNormal url: String) -> Bool { text.hasSameBytes(as: URLCanonicalizer.host(ofNormal: url)) }
}

/// What the disk layer knows of a key: digests only, so that neither names nor index can give a URL or a secret away.
struct DiskKey: Sendable, Hashable {
    /// SHA-256 of the whole key text: the stem of the record's file name.
    var digest: KeyDigest
    /// A second, unrelated hash of the key text, kept inside the record: should two keys ever share a file name, the
    /// other key is a miss.
    var check: UInt64
    /// Hash of the canonical URL alone, whatever else the key holds: to find every entry of one URI (RFC 9111 §4.4).
    var uriHash: UInt32
    /// Hash of the URL's host in lower case: to find every entry of one host.
    var hostHash: UInt32
    /// The key text is the URL that the entry's metadata have. No part of the key's identity.
    var isURL = false

    static func == (left: DiskKey, right: DiskKey) -> Bool {
        left.digest == right.digest && left.check == right.check
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(digest)
    }
}

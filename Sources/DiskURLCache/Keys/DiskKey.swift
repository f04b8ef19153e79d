/// A key in the form for the disk: only hashes, so that file names and the index reveal no URL and no secret.
package struct DiskKey: Sendable, Hashable {
    package var name: KeyName
    /// See `RequestKey.digest`. It is inside the record, and proves that the record belongs to this key. Zero if the
    /// URL of the record is the proof.
    package var digest: KeyDigest
    /// Hash of the URL's host in lower case: narrows the search for the entries of a host.
    package var hostHash: UInt32
    /// The key is the URL that its record has: comparing them proves more than a digest, and costs nothing.
    package var isItsURL = false

    /// See `KeyName.resource`.
    package var resource: UInt64 { name.resource }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
    }
}

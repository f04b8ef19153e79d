/// A key as the disk layer has it: hashes only, so that neither names nor index can give a URL or a secret away.
package struct DiskKey: Sendable, Hashable {
    package var name: KeyName
    /// SHA-256 of the key's text, kept inside the record: the proof that a record of that name is one of this key. Zero
    /// if the URL of the record is the proof.
    package var digest: KeyDigest
    /// Hash of the URL's host in lower case: to find every entry of one host.
    package var hostHash: UInt32
    /// The key is the URL that its record has: comparing them proves more than a digest, and costs nothing.
    package var isItsURL = false

    /// See `KeyName.resource`.
    package var resource: UInt64 { name.resource }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
    }
}

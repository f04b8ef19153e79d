/// A key as the disk layer has it: hashes only, so that neither names nor index can give a URL or a secret away.
struct DiskKey: Sendable, Hashable {
    var name: KeyName
    /// SHA-256 of the key's text, kept inside the record: the proof that a record of that name is one of this key.
    var digest: KeyDigest
    /// Hash of the URL's host in lower case: to find every entry of one host.
    var hostHash: UInt32

    /// See `KeyName.resource`.
    var resource: UInt64 { name.resource }

    static func == (left: DiskKey, right: DiskKey) -> Bool {
        left.name == right.name && left.digest == right.digest
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
    }
}

/// Proves that a record with a key's name belongs to the key.
package struct RecordProof {
    /// Computes the digest of the key; called only if there is a record to compare it with.
    let digest: () -> KeyDigest
    /// Whether the key is a record's URL.
    let isURL: (String) -> Bool

    init(digest: @escaping () -> KeyDigest, isURL: @escaping (String) -> Bool = { _ in false }) {
        self.digest = digest
        self.isURL = isURL
    }

    package init(of key: RequestKey) {
        self.init(digest: { key.digest }, isURL: { key.isURL($0) })
    }

    package func holds(for record: LoadedRecord) -> Bool {
        if record.footer.isOfURL { return record.metadata.url.map(isURL) ?? false }
        return record.footer.digest == digest()
    }
}

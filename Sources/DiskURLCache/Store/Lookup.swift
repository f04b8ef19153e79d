/// What is stored of one key, as far as it is known without the disk; the rest is read when it is asked for.
package struct Lookup: Sendable {
    /// All stored variants, the most recent first, where memory knows them all; nil where the disk has to be asked.
    let known: [StoredVariant]?
    private let below: (store: TieredStore, key: RequestKey)?

    init(known: [StoredVariant]) {
        self.known = known
        below = nil
    }

    /// - Parameter store: reads what memory does not know, on the caller's thread.
    init(_ key: RequestKey, below store: TieredStore) {
        known = nil
        below = (store, key)
    }

    /// All stored variants, the most recent first. May read the disk on the caller's thread.
    func variants() -> [StoredVariant] {
        if let known { return known }
        return below.map { $0.store.read($0.key) } ?? []
    }
}

/// Goes through the entries that a cache has at this moment: those on disk, then those in memory alone. One that is
/// removed meanwhile is left out, one that is stored meanwhile may be.
package final class EntryWalk: Sendable {
    /// The facts of a stored response.
    package struct Found: Sendable {
        package let metadata: EntryMetadata
        /// The length of the body.
        package let bytes: Int
        /// Nil if it is in memory only.
        fileprivate let record: RecordName?
        /// See `KeyName.resource`.
        fileprivate let resource: UInt64

        package var isInMemoryOnly: Bool { record == nil }
    }

    private let store: TieredStore
    /// The records and entries that were not visited yet, the last ones first, and the latter by their numbers. One
    /// that is on disk, too, is visited there.
    private let rest: Mutex<(records: [RecordName], inMemory: [UInt64: Found])>

    /// Looks at the folder, on the caller's thread.
    package init(of core: CacheCore) {
        let store = core.store
        self.store = store
        var inMemory: [UInt64: Found] = [:]
        store.memory.updateAll { key, record in
            for entry in record?.variants.compactMap(\.entry) ?? [] {
                inMemory[entry.metadata.sequence] = Found(
                    metadata: entry.metadata, bytes: entry.body.count, record: nil, resource: key.resource)
            }
        }
        rest = Mutex((store.diskStore?.recordNames() ?? [], inMemory))
    }

    /// The next entry; nil after the last one. Reads the head of a record on the caller's thread.
    package func next() -> Found? {
        while let name = rest.withLock({ $0.records.popLast() }) {
            guard let (metadata, bytes) = store.diskStore?.records.head(of: name), metadata.http != nil else {
                continue
            }
            rest.withLock { _ = $0.inMemory.removeValue(forKey: metadata.sequence) }
            return Found(metadata: metadata, bytes: bytes, record: name, resource: name.key.resource)
        }
        return rest.withLock { $0.inMemory.popFirst()?.value }
    }

    /// Removes an entry that this has found. False if it was removed or replaced meanwhile.
    package func remove(_ found: Found) -> Bool {
        store.remove(found.metadata.sequence, ofResource: found.resource, in: found.record)
    }
}

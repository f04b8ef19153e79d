/// Goes through the entries that a cache has at this moment: those on disk, then those in memory alone. One that is
/// removed meanwhile is left out, one that is stored meanwhile may be.
package final class EntryWalk: Sendable {
    /// The facts of a stored response.
    package struct Found: Sendable {
        package let metadata: EntryMetadata
        /// The length of the body.
        package let bytes: Int
        package let isInMemoryOnly: Bool
        fileprivate var record: RecordName?
    }

    private let store: TieredStore
    /// The records and entries that were not visited yet, the last ones first.
    private let rest: Mutex<(records: [RecordName], inMemory: [Found])>

    /// Looks at the folder, on the caller's thread.
    package init(of core: CacheCore) {
        let store = core.store
        self.store = store
        var inMemory: [Found] = []
        store.memory.updateAll { _, record in
            for variant in record?.variants ?? [] {
                guard let entry = variant.entry, store.diskStore == nil || entry.metadata.placement != .memoryAndDisk
                else { continue }
                inMemory.append(Found(metadata: entry.metadata, bytes: entry.body.count, isInMemoryOnly: true))
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
            return Found(metadata: metadata, bytes: bytes, isInMemoryOnly: false, record: name)
        }
        return rest.withLock { $0.inMemory.popLast() }
    }

    /// Removes an entry that this has found. False if it was removed or replaced meanwhile.
    package func remove(_ found: Found) -> Bool {
        let sequence = found.metadata.sequence
        var isRemoved = false
        if let record = found.record {
            isRemoved = store.diskStore?.removeRecord(record, sequence: sequence) == true
            guard isRemoved else { return false }
        }
        store.memory.updateAll { _, record in
            record?.removeAll { variant in
                guard variant.metadata.sequence == sequence else { return false }
                isRemoved = true
                return true
            }
        }
        store.weakResponses.updateAll { _, response in
            if response?.metadata.sequence == sequence { response = nil }
        }
        return isRemoved
    }
}

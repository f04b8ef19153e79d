import Foundation

/// What `LayeredStore` needs of the layer under the built-in memory: the built-in disk store, or an app's own storage.
protocol StorageLayer: AnyObject, Sendable {
    func candidates(for key: DiskKey) -> [DiskCandidate]
    /// The entry whose key is a URL, if there is a short way to it; nil says nothing.
    func loneEntry(ofURL url: String, uriHash: UInt32) -> (entry: StoredEntry, key: DiskKey)?
    func contains(_ key: DiskKey) -> Bool
    /// False only when nothing is stored of a URL: spares the digest of a key that would be a miss anyway.
    func mayContain(uriHash: UInt32) -> Bool
    /// - Parameter isPatient: whether the caller may be held up while the layer is behind.
    func store(_ entry: StoredEntry, for key: DiskKey, isPatient: Bool)
    func touch(_ key: DiskKey)
    func remove(_ key: DiskKey)
    func remove(_ key: DiskKey, sequence: UInt64)
    func remove(matching criteria: DiskCriteria)
    func removeAll()
    func flush()
    /// The cache goes: what is staged lands now, and nothing is held any more.
    func close()
    var capacity: Int { get set }
    var usage: Int { get }
    var openingError: DiskStoreError? { get }
}

extension DiskStore: StorageLayer {}

/// An app's own storage as a layer.
final class StorageAdapter: StorageLayer {
    private let storage: any EntryStorage

    init(_ storage: any EntryStorage) {
        self.storage = storage
    }

    func candidates(for key: DiskKey) -> [DiskCandidate] {
        storage.entries(named: key.digest.hex)
            // Another key under this name, or an entry that somebody put there: a miss.
            .filter { $0.key == key }
            .sorted { $0.entry.metadata.sequence > $1.entry.metadata.sequence }
            .map { DiskCandidate($0.entry) }
    }

    func loneEntry(ofURL url: String, uriHash: UInt32) -> (entry: StoredEntry, key: DiskKey)? { nil }

    func contains(_ key: DiskKey) -> Bool { !candidates(for: key).isEmpty }

    func mayContain(uriHash: UInt32) -> Bool { true }

    func store(_ entry: StoredEntry, for key: DiskKey, isPatient: Bool) {
        storage.store(DiskURLCache.Entry(entry, key: key), named: key.digest.hex)
    }

    /// The storage sees each lookup: recency is its own affair.
    func touch(_ key: DiskKey) {}

    func remove(_ key: DiskKey) {
        storage.removeEntries(named: key.digest.hex, variant: nil)
    }

    func remove(_ key: DiskKey, sequence: UInt64) {
        for entry in storage.entries(named: key.digest.hex) where entry.entry.metadata.sequence == sequence {
            storage.removeEntries(named: key.digest.hex, variant: entry.variant)
        }
    }

    func remove(matching criteria: DiskCriteria) {
        storage.removeEntries { criteria.matches($0.key, $0.entry.metadata) }
    }

    func removeAll() {
        storage.removeEntries { _ in true }
    }

    func flush() { storage.flush() }

    func close() { storage.flush() }

    var capacity: Int {
        get { storage.capacity }
        set { storage.capacity = newValue }
    }

    var usage: Int { storage.usage }
    var openingError: DiskStoreError? { nil }
}

import DiskURLCache
import Foundation

/// Makes an app's storage the layer below memory. The order of use and eviction are left to the storage.
final class StorageAdapter: StorageLayer {
    private let storage: any DiskURLCache.EntryStorage
    private let keepsURLs: Bool
    private let name: DiskURLCache.Layer
    private let canBeChangedByOthers: Bool
    let largestEntry: Int
    /// The time when the next lookup asks for removals by others.
    private let nextCheck = CheckTime()
    /// Held while removals by others are applied, so that a second caller waits until they are.
    private let taking = Mutex(())
    /// How often this cache has begun to ask for removals by others.
    private let questions = Mutex(0)
    private let observer = Mutex<@Sendable ([DirectoryChange]) -> Void>({ _ in })

    init(_ storage: any DiskURLCache.EntryStorage, keepsURLs: Bool) {
        self.storage = storage
        self.keepsURLs = keepsURLs
        name = DiskURLCache.Layer(of: storage)
        canBeChangedByOthers = storage.isShared
        largestEntry = storage.largestEntry
    }

    // MARK: Lookups

    private func entries(of key: DiskKey) -> [DiskURLCache.Entry]? {
        // An entry with a different key, perhaps put under this name by somebody else, is not an answer.
        storage.entries(named: key.digest.hex)?.filter { $0.key == key }
    }

    /// A storage may keep any number of variants. As on the built-in disk, the eight newest are used; older ones are
    /// removed when they are seen.
    func allVariants(of key: RequestKey) -> [StoredVariant]? {
        let key = key.diskKey
        guard let found = entries(of: key) else { return nil }
        let entries = found.sorted { $0.entry.metadata.sequence > $1.entry.metadata.sequence }
        for entry in entries.dropFirst(StoredVariant.limit) { remove(key, variant: entry.entry.metadata.varyKey) }
        return entries.prefix(StoredVariant.limit).map { StoredVariant($0.entry, from: name) }
    }

    func contains(_ key: RequestKey) -> Bool { entries(of: key.diskKey)?.isEmpty == false }

    func mayContain(_ key: RequestKey) -> Bool { true }

    // MARK: Changes

    @discardableResult
    func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        let diskKey = key.diskKey
        var metadata = entry.metadata
        if !keepsURLs { metadata.url = nil }
        storage.store(
            DiskURLCache.Entry(StoredEntry(metadata: metadata, body: entry.body), key: diskKey),
            named: diskKey.digest.hex)
        checkNow()
        return .written
    }

    func update(_ metadata: EntryMetadata, of key: RequestKey, replacing old: EntryMetadata, usedAt: UInt64) -> Bool {
        let entries = entries(of: key.diskKey)
        guard let found = entries?.first(where: { $0.entry.metadata.isSameEntry(as: old) }) else { return false }
        write(StoredEntry(metadata: metadata, body: found.entry.body), for: key, usedAt: usedAt)
        // A storage replaces the same variant only.
        if old.varyKey != metadata.varyKey { remove(key.diskKey, variant: old.varyKey) }
        return true
    }

    func remove(_ key: RequestKey) {
        storage.removeEntries(matching: DiskURLCache.Criteria(EntryCriteria(key.diskKey)))
    }

    func remove(_ key: RequestKey, variant: VaryKey) { remove(key.diskKey, variant: variant) }

    /// Without a lookup: a storage whose server does not answer finds nothing, but can make up for the removal later.
    private func remove(_ key: DiskKey, variant: VaryKey) {
        storage.removeEntries(matching: DiskURLCache.Criteria(EntryCriteria(key, variant: variant.variant)))
    }

    /// A storage finds the entries of one tag by its name, so it is asked for each tag.
    func remove(matching criteria: EntryCriteria, willRemove: (UInt64) -> Void) {
        for criteria in criteria.ofEachTag { storage.removeEntries(matching: DiskURLCache.Criteria(criteria)) }
    }

    /// A storage does not give the entries of a host or a tag, so they cannot be changed.
    func markStale(matching criteria: EntryCriteria, at time: Date) { remove(matching: criteria) }

    func removeAll() { storage.removeEntries(matching: .everything) }

    // MARK: Removals by other caches

    func observeChanges(_ observer: @escaping @Sendable ([DirectoryChange]) -> Void) {
        self.observer.withLock { $0 = observer }
    }

    var isShared: Bool { canBeChangedByOthers }

    func isCheckDue(at now: UInt64) -> Bool { canBeChangedByOthers && nextCheck.isReached(at: now) }

    func checkIfDue(at now: UInt64) {
        if canBeChangedByOthers, nextCheck.isDue(at: now) { check() }
    }

    func checkNow() {
        guard canBeChangedByOthers else { return }
        nextCheck.restart()
        check()
    }

    func checkIfShared() { checkNow() }

    private func check() {
        let before = questions.withLock { $0 }
        taking.withLock { _ in
            // Many loads ask at a time. What another one has begun to ask since, and has its answer to, is for all.
            let isAnswered = questions.withLock { count in
                defer { if count == before { count += 1 } }
                return count != before
            }
            if isAnswered { return }
            let changes = storage.removalsByOthers()?.map(EntryCriteria.removal) ?? [.removedAll]
            if !changes.isEmpty { observer.withLock { $0 }(changes) }
        }
    }

    // MARK: Passes

    func beginPass(isFlush: Bool) -> Bool { true }

    func endPass(isFlush: Bool) { if isFlush { storage.flush() } }

    func close() { storage.flush() }

    var capacity: Int {
        get { storage.capacity }
        set {}
    }

    var usage: Int { storage.usage }
}

extension DiskURLCache.Layer {
    fileprivate init(of storage: any DiskURLCache.EntryStorage) {
        let name = Self(named: storage.name)
        self = [.memory, .fallback].contains(name) ? Self(named: "storage") : name
    }
}

extension StorageMaker {
    /// Makes the layer for a storage of the app.
    init(_ storage: any DiskURLCache.EntryStorage) {
        self.init(
            storage, isForSeveralUsers: storage.isForSeveralUsers, name: DiskURLCache.Layer(of: storage)
        ) {
            StorageAdapter(storage, keepsURLs: $0)
        }
    }
}

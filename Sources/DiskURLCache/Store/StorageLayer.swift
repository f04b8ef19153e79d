import Foundation

/// What the store needs of the layer under memory: the built-in disk store, or an app's own storage.
protocol StorageLayer: AnyObject, Sendable {
    // Lookups, from any thread.
    /// All stored variants of a key, the most recent first. Counts as a use.
    func variants(of key: RequestKey) -> [StoredVariant]
    func contains(_ key: RequestKey) -> Bool
    /// False only when nothing is stored of a key. Reads no record.
    func mayContain(_ key: RequestKey) -> Bool

    // Changes. When a call returns, its change is done.
    /// - Parameter usedAt: the entry's place in the order of use, in nanoseconds of the monotonic clock.
    @discardableResult
    func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult
    /// Gives the stored entry with this number other metadata; its body stays. False where it is not there any more.
    func update(_ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64) -> Bool
    func remove(_ key: RequestKey)
    func remove(_ key: RequestKey, variant: VaryKey)
    func remove(_ key: RequestKey, sequence: UInt64)
    func remove(matching criteria: DiskCriteria)
    func removeAll()

    // What others removed, from any thread.
    /// Whether others than this store may remove from the layer.
    var isShared: Bool { get }
    /// Whether there may be something to take in. Asked at each lookup.
    /// - Parameter now: of the monotonic clock, in nanoseconds.
    func hasRemovals(at now: UInt64) -> Bool
    /// For callers that have the time for a look at a file.
    /// - Parameter isCertain: whether the look is to be taken even where there seems to be nothing.
    func lookForRemovals(isCertain: Bool)
    /// Hands over what others removed since the last time, if anything; who comes meanwhile waits until it is taken in.
    func takeRemovals(_ apply: (RemovalLog.News) -> Void)

    // Maintenance, on the maintenance queue.
    /// False when nothing can be written now.
    func beginPass(isFlush: Bool, mayMake: Bool) -> Bool
    func noteUses(_ uses: [(name: KeyName, time: UInt64)])
    var isOverCapacity: Bool { get }
    func evictIfNeeded(now: Bool)
    func endPass(isFlush: Bool)
    /// The folder that entries are written to, as it is now; nil where there is none.
    func folderIdentity() -> FileIdentity?
    /// Whether the layer itself put another folder in the place of that one, which was empty.
    func wasReplacedWhenEmpty(_ folder: FileIdentity) -> Bool
    func close()

    /// The largest body that is written, in bytes.
    var largestEntry: Int { get }
    var capacity: Int { get set }
    /// In bytes.
    var usage: Int { get }
    var openingError: DiskStoreError? { get }
    /// False in a forked child, which is not to write what its parent stored.
    var isOwnProcess: Bool { get }
}

extension DiskStore: StorageLayer {
    var isShared: Bool { true }
    func hasRemovals(at now: UInt64) -> Bool { removals.hasNews(at: now) }
    func lookForRemovals(isCertain: Bool) { removals.lookNow(isCertain: isCertain) }
    func takeRemovals(_ apply: (RemovalLog.News) -> Void) { removals.take(apply) }
}

/// An app's own storage as a layer.
final class StorageAdapter: StorageLayer {
    private let storage: any EntryStorage
    private let maximumEntryShare: Double
    private let layer: CacheLayer
    /// Whether others remove from the storage, too. Asked once.
    let isShared: Bool
    /// When they are to be asked for, in nanoseconds of the monotonic clock.
    private let nextLook = SharedNumber(0)
    /// Held while removals by others are taken in: who comes second finds them taken in.
    private let taking = Mutex(())

    init(_ storage: any EntryStorage, maximumEntryShare: Double, as layer: CacheLayer) {
        self.storage = storage
        self.maximumEntryShare = maximumEntryShare
        self.layer = layer
        isShared = storage.isShared
    }

    private func entries(of key: RequestKey) -> [CacheEntry] {
        let diskKey = key.diskKey
        // An entry of another key, or one that somebody else put under this name, is not an answer.
        return storage.entries(named: diskKey.digest.hex).filter { $0.key == diskKey }
    }

    func variants(of key: RequestKey) -> [StoredVariant] {
        entries(of: key).map(\.entry).sorted { $0.metadata.sequence > $1.metadata.sequence }
            .map { StoredVariant($0, from: layer) }
    }

    func contains(_ key: RequestKey) -> Bool { !entries(of: key).isEmpty }

    func mayContain(_ key: RequestKey) -> Bool { true }

    @discardableResult
    func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        let diskKey = key.diskKey
        storage.store(CacheEntry(entry, key: diskKey), named: diskKey.digest.hex)
        return .written(bytes: entry.memoryCost)
    }

    func update(_ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64) -> Bool {
        guard let old = entries(of: key).first(where: { $0.entry.metadata.sequence == sequence }) else { return false }
        write(StoredEntry(metadata: metadata, body: old.entry.body), for: key, usedAt: usedAt)
        return true
    }

    func remove(_ key: RequestKey) {
        storage.removeEntries(matching: EntryCriteria(key))
    }

    func remove(_ key: RequestKey, variant: VaryKey) {
        for entry in entries(of: key) where entry.entry.metadata.varyKey == variant {
            storage.removeEntries(matching: EntryCriteria(entry))
        }
    }

    func remove(_ key: RequestKey, sequence: UInt64) {
        for entry in entries(of: key) where entry.entry.metadata.sequence == sequence {
            storage.removeEntries(matching: EntryCriteria(entry))
        }
    }

    /// What other processes removed.
    func remove(_ removals: ForeignRemovals) {
        for removal in removals.each { storage.removeEntries(matching: EntryCriteria(removal)) }
    }

    func remove(matching criteria: DiskCriteria) {
        storage.removeEntries(matching: EntryCriteria(criteria))
    }

    func removeAll() {
        storage.removeEntries(matching: .everything)
    }

    func hasRemovals(at now: UInt64) -> Bool { isShared && now >= nextLook.value }

    /// A look may ask a server, which is little beside what these callers do. Lookups take one a second.
    func lookForRemovals(isCertain: Bool) { nextLook.value = 0 }

    func takeRemovals(_ apply: (RemovalLog.News) -> Void) {
        taking.withLock { _ in
            // Another caller was faster. The storage may be slow, and who waited does not ask again.
            guard hasRemovals(at: MonotonicTime.nanoseconds) else { return }
            // Set before anything is asked: what happens from now on is seen the next time.
            nextLook.value = MonotonicTime.nanoseconds &+ 1_000_000_000
            guard let removals = storage.removalsByOthers() else { return apply(.everything) }
            if !removals.isEmpty { apply(.removed(removals.map(\.removal))) }
        }
    }

    func beginPass(isFlush: Bool, mayMake: Bool) -> Bool { true }

    /// The storage sees lookups itself; it has an order of use and a size limit of its own.
    func noteUses(_ uses: [(name: KeyName, time: UInt64)]) {}

    var isOverCapacity: Bool { false }

    func evictIfNeeded(now: Bool) {}

    func endPass(isFlush: Bool) { if isFlush { storage.flush() } }

    func folderIdentity() -> FileIdentity? { nil }

    func wasReplacedWhenEmpty(_ folder: FileIdentity) -> Bool { false }

    func close() { storage.flush() }

    var largestEntry: Int { storage.capacity.share(maximumEntryShare) }

    var capacity: Int {
        get { storage.capacity }
        set { storage.capacity = newValue }
    }

    var usage: Int { storage.usage }
    var openingError: DiskStoreError? { nil }
    var isOwnProcess: Bool { true }
}

/// What the store needs of the layer under memory: the built-in disk store, or an app's storage.
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
    func remove(matching criteria: EntryCriteria)
    func removeAll()

    // What other caches removed, from any thread.
    var canBeChangedByOthers: Bool { get }
    /// Whether there may be something to take in. Asked at each lookup.
    /// - Parameter now: of the monotonic clock, in nanoseconds.
    func hasRemovals(at now: UInt64) -> Bool
    /// For callers that have the time for a look at a file.
    /// - Parameter isCertain: whether the look is to be taken even where there seems to be nothing.
    func lookForRemovals(isCertain: Bool)
    /// Hands over what other caches removed since the last time, if anything; a caller that comes meanwhile waits until it is taken in.
    func takeRemovals(_ apply: (RemovalLog.News) -> Void)

    // Passes of the maintenance queue.
    /// False when nothing can be written now.
    func beginPass(isFlush: Bool, mayMake: Bool) -> Bool
    func endPass(isFlush: Bool)
    func close()

    /// The largest body that is written, in bytes.
    var largestEntry: Int { get }
    /// Not to be asked under a lock, nor `usage`: they may be an app's.
    var capacity: Int { get set }
    /// In bytes.
    var usage: Int { get }
}

extension DiskStore: StorageLayer {
    var canBeChangedByOthers: Bool { true }
    func hasRemovals(at now: UInt64) -> Bool { removals.hasNews(at: now) }
    func lookForRemovals(isCertain: Bool) { removals.lookNow(isCertain: isCertain) }
    func takeRemovals(_ apply: (RemovalLog.News) -> Void) { removals.take(apply) }
}

/// Makes a disk layer that is not the built-in one.
package protocol StorageMaker: Sendable {
    /// Whether caches of several users keep their entries in it.
    var isForSeveralUsers: Bool { get }
    var name: DiskURLCache.Layer { get }
    func layer(keepsURLs: Bool) -> any StorageLayer
}

/// The layer under memory as the store needs it: the built-in disk store, or an app's storage.
package protocol StorageLayer: AnyObject, Sendable {
    // Lookups, from any thread.
    /// All stored variants of a key, the most recent first. Counts as a use.
    func variants(of key: RequestKey) -> [StoredVariant]
    func contains(_ key: RequestKey) -> Bool
    /// False only when nothing is stored of a key. Reads no record.
    func mayContain(_ key: RequestKey) -> Bool

    // Changes. When a call returns, its change is done. After `write` and `update` the observer was told what other
    // caches removed meanwhile.
    /// - Parameter usedAt: the entry's place in the order of use, in nanoseconds of the monotonic clock.
    @discardableResult
    func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult
    /// Gives the stored entry with this number other metadata; its body stays. False if it is not there any more.
    func update(_ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64) -> Bool
    func remove(_ key: RequestKey)
    func remove(_ key: RequestKey, variant: VaryKey)
    func remove(matching criteria: EntryCriteria)
    func removeAll()

    // Changes by other caches, from any thread.
    /// - Parameter observer: is told of each change before the call returns that looked for it. It may remove entries.
    func observeChanges(_ observer: @escaping @Sendable ([DirectoryChange]) -> Void)
    /// For each lookup: if it is a second since the last look, one of them looks.
    /// - Parameter now: of the monotonic clock, in nanoseconds.
    func checkIfDue(at now: UInt64)
    /// For callers that have the time to look at a file, or to ask a server.
    func checkNow()
    /// The same for a change that brings no response back: a cache that is alone need not look.
    func checkIfShared()

    // Passes of the maintenance queue.
    /// False when nothing can be written now.
    func beginPass(isFlush: Bool) -> Bool
    func endPass(isFlush: Bool)
    func close()

    // In bytes. Capacity and usage are not to be asked under a lock: they may be an app's.
    /// The largest body that is written.
    var largestEntry: Int { get }
    var capacity: Int { get set }
    var usage: Int { get }
}

extension DiskStore: StorageLayer {}

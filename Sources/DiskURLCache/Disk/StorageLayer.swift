import Foundation

/// Makes a disk layer that replaces the built-in one.
package struct StorageMaker: Sendable {
    /// The app's storage, as the app has given it.
    package let storage: any Sendable
    /// Whether caches of several users keep their entries in it.
    let isForSeveralUsers: Bool
    let name: DiskURLCache.Layer
    let layer: @Sendable (_ keepsURLs: Bool) -> any StorageLayer

    package init(
        _ storage: any Sendable, isForSeveralUsers: Bool, name: DiskURLCache.Layer,
        layer: @escaping @Sendable (_ keepsURLs: Bool) -> any StorageLayer
    ) {
        self.storage = storage
        self.isForSeveralUsers = isForSeveralUsers
        self.name = name
        self.layer = layer
    }
}

/// The layer below memory: the built-in disk store, or an app's storage.
package protocol StorageLayer: AnyObject, Sendable {
    // Lookups, from any thread.
    /// All stored variants of a key, the most recent first. Counts as a use. Nil if they cannot be read at this moment,
    /// for example since no file descriptor is free: then nothing is known of them.
    func allVariants(of key: RequestKey) -> [StoredVariant]?
    func contains(_ key: RequestKey) -> Bool
    /// False if certainly nothing is stored for a key. Reads no record.
    func mayContain(_ key: RequestKey) -> Bool

    // Changes. When a call returns, the change is complete. Before `write` and `update` return, the observer is called
    // with the removals that other caches have made meanwhile.
    /// - Parameter usedAt: the time of use, in nanoseconds of the monotonic clock, which decides the entry's position
    ///   in the order of use.
    @discardableResult
    func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult
    /// Replaces the metadata of the stored entry that has the old ones; its body stays. False if that entry is gone.
    func update(_ metadata: EntryMetadata, of key: RequestKey, replacing old: EntryMetadata, usedAt: UInt64) -> Bool
    func remove(_ key: RequestKey)
    func remove(_ key: RequestKey, variant: VaryKey)
    /// - Parameter willRemove: called with the resource of each matching entry, before it is removed. Not called by an
    ///   app's storage.
    func remove(matching criteria: EntryCriteria, willRemove: (UInt64) -> Void)
    /// Marks the matching entries as stale, or removes those that cannot be marked.
    func markStale(matching criteria: EntryCriteria, at time: Date)
    func removeAll()

    // Changes by other caches, from any thread.
    /// Whether other caches may change the entries.
    var isShared: Bool { get }
    /// - Parameter observer: called with each change, before the call that found it returns. It may remove entries.
    func observeChanges(_ observer: @escaping @Sendable ([DirectoryChange]) -> Void)
    /// Whether the next lookup has to look for changes, which it does once a second.
    /// - Parameter now: the time of the monotonic clock, in nanoseconds.
    func isCheckDue(at now: UInt64) -> Bool
    /// Looks for changes if that is due. Uses files, or asks a server.
    func checkIfDue(at now: UInt64)
    /// Looks for changes now: for callers that have the time to look at a file, or to ask a server.
    func checkNow()
    /// The same for a change that cannot bring a removed response back: a cache that is alone need not look.
    func checkIfShared()

    // Passes of the maintenance queue.
    /// False if nothing can be written now.
    func beginPass(isFlush: Bool) -> Bool
    func endPass(isFlush: Bool)
    func close()

    // In bytes. Capacity and usage must not be read under a lock, since they may be code of the app.
    /// The largest body that is written.
    var largestEntry: Int { get }
    var capacity: Int { get set }
    var usage: Int { get }
}

extension StorageLayer {
    /// What can be read at this moment of the stored variants of a key.
    package func variants(of key: RequestKey) -> [StoredVariant] { allVariants(of: key) ?? [] }

    package func remove(matching criteria: EntryCriteria) { remove(matching: criteria) { _ in } }
}

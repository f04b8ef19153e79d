import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A disk layer that an app implements and that replaces the built-in one
    /// (`DiskURLCache.Configuration.diskStorage`): to encrypt entries, to keep them in a database, or to share them
    /// between machines.
    ///
    /// An app writes four methods, and the properties whose defaults do not suit it. The cache calls them several at
    /// once: for a load on a queue of the cache, never on a thread of Swift's pool, so that a method may wait for a
    /// task; for a call of the app on the thread of that call. The methods must not call the cache. No method throws: a
    /// storage that cannot write an entry, or finds it damaged, drops it, and the next lookup is a miss.
    /// `StorageAcceptance` in the library's tests is a suite for any implementation.
    ///
    /// A load waits for each call, so a storage that uses the network must limit the time of a call.
    public protocol EntryStorage: Sendable {
        /// All entries under a name, one for each variant, in any order. Nil if they cannot be read at this moment:
        /// that is a miss, unless memory has a response of this process, and no fallback directory stands in.
        /// - Parameter name: 64 hexadecimal digits: the SHA-256 of the key.
        func entries(named name: String) -> [Entry]?

        /// Stores an entry in place of one with the same name and variant. When this returns, `entries(named:)` finds
        /// it.
        func store(_ entry: Entry, named name: String)

        /// Removes every entry that the criteria match. When this returns, `entries(named:)` finds none of them.
        ///
        /// A small storage can check each entry. A large one uses `DiskURLCache.Criteria.scope` to find the entries.
        /// There may be none: the cache does not look first, since a storage whose server does not answer at this
        /// moment would find nothing. Such a storage removes them as soon as the server answers. Of a name that it does
        /// not have it need not tell other processes.
        func removeEntries(matching criteria: DiskURLCache.Criteria)

        /// Returns when everything that was stored or removed before is as durable as the storage makes it.
        func flush()

        /// The name of the storage in events, logs, metrics and explanations, such as `redis`. The default is
        /// `storage`, which also stands for `memory` and `fallback`, the names of other layers. It is always the same.
        var name: String { get }

        /// The largest body that the storage accepts, in bytes; the default is 16 MB. Read once, when the cache is
        /// made, so it must return at once.
        var largestEntry: Int { get }

        /// The capacity of the storage in bytes, returned by `DiskURLCache.diskCapacity`; by default there is no limit.
        /// The storage evicts by itself.
        var capacity: Int { get }

        /// The bytes in use, returned by `DiskURLCache.currentDiskUsage`; the default is 0.
        var usage: Int { get }

        // MARK: Several processes

        /// Whether caches of several users keep entries in this storage. If so, only a shared cache uses it
        /// (`DiskURLCache.Error.Code.sharedStorage`). The default is false. Read once, when the cache is made.
        var isForSeveralUsers: Bool { get }

        /// Whether other caches, such as those of other processes, use the same entries. If so, the cache calls
        /// `removalsByOthers()`. The default is false. Read once, when the cache is made.
        var isShared: Bool { get }

        /// The messages (`DiskURLCache.Criteria.message`) of removals by other caches since the last call, in any
        /// order. Nil if they are not known: then the cache empties its memory. The first call returns no messages.
        ///
        /// Called by lookups at most once a second, before a request is sent, and before and after a store. One call at
        /// a time.
        func removalsByOthers() -> [String]?
    }
}

extension DiskURLCache.EntryStorage {
    public var name: String { "storage" }
    public var largestEntry: Int { 16 << 20 }
    public var capacity: Int { .max }
    public var usage: Int { 0 }
    public var isForSeveralUsers: Bool { false }
    public var isShared: Bool { false }
    public func removalsByOthers() -> [String]? { [] }
}

extension DiskURLCache.Configuration {
    /// An app's disk layer, which replaces the built-in one with its folder, capacity, index and eviction. A storage
    /// for several users needs a shared cache (`isShared`); otherwise it is not used, and `openingError` says so.
    public var diskStorage: (any DiskURLCache.EntryStorage)? {
        get { storageMaker?.storage as? any DiskURLCache.EntryStorage }
        set { storageMaker = newValue.map { StorageMaker($0) } }
    }
}

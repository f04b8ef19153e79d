import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A disk layer that an app implements, instead of the built-in one (`DiskURLCache.Configuration.diskStorage`): to
    /// encrypt entries, to keep them in a database, or to share them between machines.
    ///
    /// An app writes four methods, and the properties whose defaults do not hold. The cache calls from any thread,
    /// possibly from several at once; the storage does not call the cache from inside these methods. An entry comes on
    /// the thread that stores it. Nothing here throws: a storage that cannot read or write an entry drops it, and the
    /// next lookup is a miss. `StorageAcceptance` in the library's tests is a suite for any implementation.
    ///
    /// A load waits for the call that it makes. A storage that asks a server bounds the time of each call.
    public protocol EntryStorage: Sendable {
        /// All entries under a name, one for each variant, in any order.
        /// - Parameter name: 64 hexadecimal digits: the SHA-256 of the key.
        func entries(named name: String) -> [Entry]

        /// Stores an entry and removes an older one with the same name and variant. When this returns,
        /// `entries(named:)` finds it.
        func store(_ entry: Entry, named name: String)

        /// Removes every entry that the criteria match. When this returns, `entries(named:)` finds none of them.
        ///
        /// A small storage looks at each entry. A large one looks up by `DiskURLCache.Criteria.scope` the entries to
        /// remove.
        func removeEntries(matching criteria: DiskURLCache.Criteria)

        /// Returns when everything that was stored or removed before is as durable as the storage makes it.
        func flush()

        /// The largest entry that the storage takes, in bytes of its body; the default is 16 MB. Read once, when the
        /// cache is made: it returns at once.
        var largestEntry: Int { get }

        /// Bytes that the storage may take, for `DiskURLCache.diskCapacity`; by default without a bound. The
        /// storage evicts by its own rule.
        var capacity: Int { get }

        /// Bytes that the storage takes, for `DiskURLCache.currentDiskUsage`; the default is 0.
        var usage: Int { get }

        // MARK: Several processes

        /// Whether caches of several users keep their entries here. A private cache does not use such a storage
        /// (`DiskURLCache.Error.Code.sharedStorage`). The default is false. Read once, when the cache is made.
        var isForSeveralUsers: Bool { get }

        /// Whether other caches use the same entries, such as caches of other processes. Then the cache calls
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
    public var largestEntry: Int { 16 << 20 }
    public var capacity: Int { .max }
    public var usage: Int { 0 }
    public var isForSeveralUsers: Bool { false }
    public var isShared: Bool { false }
    public func removalsByOthers() -> [String]? { [] }
}

extension DiskURLCache.Configuration {
    /// An app's disk layer, instead of the built-in one with its folder, capacity, index and eviction. A storage for
    /// several users needs a shared cache (`isShared`, `openingError`).
    public var diskStorage: (any DiskURLCache.EntryStorage)? {
        get { (storageMaker as? CustomStorage)?.storage }
        set { storageMaker = newValue.map { CustomStorage(storage: $0) } }
    }
}

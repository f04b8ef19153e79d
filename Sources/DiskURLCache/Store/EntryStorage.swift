import Foundation

/// A disk layer of an app's own, in place of the built-in one (``DiskURLCache/Configuration/diskStorage``): to encrypt entries, to keep
/// them in a database, or to share them between machines.
///
/// Four methods are to be written; the properties say more where their defaults do not hold. The cache calls from any thread, possibly
/// from several at once; the storage does not call the cache from inside these methods. Entries come from the cache's write buffer,
/// soon after they were stored, in the order of the stores. Nothing here throws: a storage that cannot read or write an entry
/// drops it, and the next lookup is a miss. `StorageAcceptance` in the library's tests is a suite for any implementation.
///
/// A load waits for the call that it makes. A storage that asks a server bounds the time of each call.
public protocol EntryStorage: Sendable {
    /// All entries under a name, one for each variant, in any order.
    /// - Parameter name: 64 hexadecimal digits: the SHA-256 of the key.
    func entries(named name: String) -> [CacheEntry]

    /// Stores an entry in place of the one with the same name and variant. When this returns, `entries(named:)` finds it.
    func store(_ entry: CacheEntry, named name: String)

    /// Removes every entry that the criteria match. When this returns, `entries(named:)` finds none of them.
    ///
    /// A small storage looks at each entry. A large one looks up by `EntryCriteria.scope` what there is to remove.
    func removeEntries(matching criteria: EntryCriteria)

    /// Returns when everything that was stored or removed before is as durable as the storage makes it.
    func flush()

    /// The largest entry that the storage takes, in bytes of its body; 16 MB where a storage does not say. Asked once, when the cache is
    /// made: it is to answer at once.
    var largestEntry: Int { get }

    /// Bytes that the storage may take, for ``DiskURLCache/DiskURLCache/diskCapacity``; no bound where a storage does not say. The
    /// storage evicts by a rule of its own.
    var capacity: Int { get }

    /// Bytes that the storage takes, for ``DiskURLCache/DiskURLCache/currentDiskUsage``; 0 where a storage does not say.
    var usage: Int { get }

    // MARK: Several processes

    /// Whether caches of several users keep their entries here. A private cache does not use such a storage
    /// (``CacheError/Code/sharedStorage``). False where a storage does not say. Asked once, when the cache is made.
    var isForSeveralUsers: Bool { get }

    /// Whether other caches use the same entries, in other processes say. Then the cache asks for ``removalsByOthers()``. False
    /// where a storage does not say. Asked once, when the cache is made.
    var isShared: Bool { get }

    /// The messages (``EntryCriteria/message``) of what other caches removed since the last call, in any order; nil where that is not
    /// known, and then the cache forgets all that it has in its own memory. The first call has nothing to tell.
    ///
    /// Asked by lookups at most once a second, before the network is asked, and before and after a store. One call at a time.
    func removalsByOthers() -> [String]?
}

extension EntryStorage {
    public var largestEntry: Int { 16 << 20 }
    public var capacity: Int { .max }
    public var usage: Int { 0 }
    public var isForSeveralUsers: Bool { false }
    public var isShared: Bool { false }
    public func removalsByOthers() -> [String]? { [] }
}

/// One stored response with its body, as an ``EntryStorage`` keeps it. A value; immutable.
public struct CacheEntry: Sendable {
    let entry: StoredEntry
    let key: DiskKey

    /// Tells the entries of one name apart, which `Vary` selects among. A response that replaces another has its variant.
    public var variant: String { String(entry.metadata.varyHash, radix: 16) }

    /// See ``CacheTreatment/isPinned``: a storage evicts it last.
    public var isPinned: Bool { entry.metadata.isPinned }

    /// Bytes of body and header fields, roughly what the entry takes in memory.
    public var byteCount: Int { entry.memoryCost }

    /// Bytes of the body, which are the last ones of ``encoded()``.
    public var bodyLength: Int { entry.body.count }

    /// What the entry can be removed by, besides its name: its URL, its host and each of its tags, as 64 hexadecimal digits each.
    /// See `EntryCriteria.Scope.group`.
    public var groups: [String] {
        [EntryGroup.uri(key.resource), .host(key.hostHash)].map(\.name)
            + entry.metadata.tags.map { EntryGroup.tag($0).name }
    }

    init(_ entry: StoredEntry, key: DiskKey) {
        self.entry = entry
        self.key = key
    }

    /// The entry in the bytes of the record format (`OnDiskFormat.md`), checksums included; nil when its header
    /// fields cannot be written safely (a line break in a value, or metadata above the format's limits). The URL is among the bytes
    /// unless ``DiskURLCache/Configuration/keepsURLs`` is off.
    public func encoded() -> Data? {
        guard var record = PreparedRecord(entry, for: key, keepsURL: true) else { return nil }
        return record.withHead { Data($0) } + record.body
    }

    /// Reads the bytes that ``encoded()`` made. Nil for all others, even if a single bit differs.
    public init?(encoded data: Data) {
        let decoded: CacheEntry? = data.withUnsafeBytes { bytes in
            guard case .header(let header) = RecordHeader.decode(bytes), header.recordLength == bytes.count,
                RecordHeader.isIntact(bytes, metadataLength: header.metadataLength)
            else { return nil }
            let bodyStart = RecordHeader.length + header.metadataLength
            let body = UnsafeRawBufferPointer(rebasing: bytes[bodyStart...])
            guard Checksum.of(body) == header.bodyChecksum,
                let metadata = MetadataCodec.decode(
                    UnsafeRawBufferPointer(rebasing: bytes[RecordHeader.length..<bodyStart]),
                    sequence: header.sequence, isPinned: header.isPinned)
            else { return nil }
            return CacheEntry(StoredEntry(metadata: metadata, body: Data(body)), key: DiskKey(header))
        }
        guard let decoded else { return nil }
        self = decoded
    }
}

extension EntryCriteria {
    /// Whether an entry is to be removed.
    public func matches(_ entry: CacheEntry) -> Bool {
        if let key { return entry.key == key && (variant == nil || entry.variant == variant) }
        return matches(entry.entry.metadata, resource: entry.key.resource, hostHash: entry.key.hostHash)
    }
}

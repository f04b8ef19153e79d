import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A storage of an app's own, in place of a built-in layer (``DiskURLCache/Configuration/memoryStorage``,
/// ``DiskURLCache/Configuration/diskStorage``): to encrypt entries, to keep them in a database, or to share them between machines.
///
/// The cache calls it from any thread, possibly from several at once. A disk storage gets entries from the cache's write buffer,
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

    /// Bytes that the storage may take. It evicts by a rule of its own.
    var capacity: Int { get nonmutating set }

    /// Bytes that the storage takes.
    var usage: Int { get }

    /// Returns when everything that was stored or removed before is as durable as the storage makes it.
    func flush()

    /// Whether other caches use the same entries, in other processes say. Then the cache asks for ``removalsByOthers()``. False
    /// where a storage does not say.
    var isShared: Bool { get }

    /// What other caches removed since the last call, in any order, as they were asked to by `removeEntries(matching:)`; nil where
    /// that is not known, and then the cache forgets all that it has in its own memory. The first call has nothing to tell.
    ///
    /// Asked by lookups at most once a second, before the network is asked, and before and after a store. One call at a time.
    func removalsByOthers() -> [EntryCriteria]?
}

extension EntryStorage {
    public var isShared: Bool { false }
    public func removalsByOthers() -> [EntryCriteria]? { [] }
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

    /// Until when the entry may answer without the origin's word: its freshness lifetime and the stale allowances, by the rules of
    /// the cache that stores it. Known when an entry is stored; nil for one that was read by ``init(encoded:)``, and for a
    /// response that is not HTTP. Direct calls (`cachedResponse(for:)`) and ``DiskURLCache/isOffline`` use an entry
    /// later still.
    public var usefulUntil: Date? { entry.metadata.usefulUntil }

    /// Whether the origin can be asked if the entry still holds (it has an `ETag` or a `Last-Modified`). Such an entry is worth
    /// keeping after ``usefulUntil``: a 304 saves its body.
    public var isConfirmable: Bool { entry.metadata.http?.isConfirmable ?? false }

    /// What the entry can be removed by, besides its name: its URL, its host and each of its tags, as 64 hexadecimal digits each.
    /// See `EntryCriteria.Scope.group`.
    public var groups: [String] {
        [EntryGroup.uri(key.uriHash), .host(key.hostHash)].map(\.name)
            + entry.metadata.tags.map { EntryGroup.tag($0).name }
    }

    init(_ entry: StoredEntry, key: DiskKey) {
        self.entry = entry
        self.key = key
    }

    /// The entry in the bytes of the record format (`OnDiskFormat.md`), checksums included; nil when its header
    /// fields cannot be written safely (a line break in a value, or metadata above the format's limits).
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

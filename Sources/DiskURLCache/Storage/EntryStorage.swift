import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A place to keep responses: what an app gives ``DiskURLCache/Configuration/memoryStorage`` or
/// ``DiskURLCache/Configuration/diskStorage`` to replace a layer (seed: AUCCache), to encrypt or to use a database, say.
///
/// The cache calls from any thread, possibly from several at once. Nothing here throws: a storage that cannot do what it
/// is asked forgets the entry, since a cache may always answer "miss". `EntryStorageAcceptance` in the library's tests
/// is a suite that any implementation can run.
public protocol EntryStorage: Sendable {
    /// All entries under a name, one for each variant, in any order.
    /// - Parameter name: 64 hexadecimal digits.
    func entries(named name: String) -> [DiskURLCache.Entry]

    /// Keeps an entry in place of the one with the same name and variant. Returns when `entries(named:)` finds it.
    func store(_ entry: DiskURLCache.Entry, named name: String)

    /// Removes the entry of a variant, or all of a name when `variant` is nil.
    func removeEntries(named name: String, variant: String?)

    /// Removes every entry that satisfies the predicate.
    func removeEntries(where shouldRemove: (DiskURLCache.Entry) -> Bool)

    /// Bytes the storage may take; it evicts by a rule of its own choice.
    var capacity: Int { get nonmutating set }

    /// Bytes the storage takes.
    var usage: Int { get }

    /// Returns when everything stored or removed before is as durable as it gets.
    func flush()
}

extension DiskURLCache {
    /// One stored response with its body, as an ``EntryStorage`` keeps it. A value; immutable.
    public struct Entry: Sendable {
        let entry: StoredEntry
        let key: DiskKey

        /// Tells the entries of one name apart: those that `Vary` selects. The same for a response and its successor.
        public var variant: String { String(entry.metadata.varyHash, radix: 16) }

        /// The URL of the response without user name and password.
        public var url: String? { entry.metadata.url }
        public var storedAt: Date { entry.metadata.storedAt }
        public var tags: [String] { entry.metadata.tags }
        public var isPinned: Bool { entry.metadata.isPinned }

        /// Bytes of body and header fields, roughly what the entry takes in memory.
        public var byteCount: Int { entry.memoryCost }

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

        /// Reads what ``encoded()`` made; nil for anything else, a single changed bit included.
        public init?(encoded data: Data) {
            let decoded: Entry? = data.withUnsafeBytes { bytes in
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
                return Entry(StoredEntry(metadata: metadata, body: Data(body)), key: DiskKey(header))
            }
            guard let decoded else { return nil }
            self = decoded
        }
    }
}

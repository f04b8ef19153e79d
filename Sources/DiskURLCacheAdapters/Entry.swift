import DiskURLCache
import Foundation

extension DiskURLCache {
    /// One stored response with its body, as a `DiskURLCache.EntryStorage` keeps it. A value; immutable.
    public struct Entry: Sendable {
        let entry: StoredEntry
        let key: DiskKey

        /// Tells the entries of one name apart, which `Vary` selects among. A response that replaces another has its
        /// variant.
        public var variant: String { String(entry.metadata.varyHash, radix: 16) }

        /// See `DiskURLCache.Options.isPinned`: a storage evicts it last.
        public var isPinned: Bool { entry.metadata.isPinned }

        /// Bytes of body and header fields, roughly what the entry takes in memory.
        public var byteCount: Int { entry.memoryCost }

        /// Bytes of the body, which are the first ones of `encoded()`.
        public var bodyLength: Int { entry.body.count }

        /// The groups by which the entry can be removed: its URL, its host and each of its tags, as 64 hexadecimal
        /// digits each. See `DiskURLCache.Criteria.Scope.group`.
        public var groups: [String] {
            [EntryGroup.uri(key.resource), .host(key.hostHash)].map(\.name)
                + entry.metadata.tags.map { EntryGroup.tag($0).name }
        }

        init(_ entry: StoredEntry, key: DiskKey) {
            self.entry = entry
            self.key = key
        }

        /// The entry in the bytes of the record format (`OnDiskFormat.md`), checksums included; nil when its header
        /// fields cannot be written safely (a line break in a value, or metadata above the format's limits). The URL is
        /// among the bytes unless `DiskURLCache.Configuration.keepsURLs` is off.
        public func encoded() -> Data? {
            guard var record = PreparedRecord(entry, for: key, keepsURL: true) else { return nil }
            let body = record.body
            return record.withTail { body + Data($0) }
        }

        /// Reads the bytes that `encoded()` made. Nil for all others, even if a single bit differs.
        public init?(encoded data: Data) {
            let decoded: Entry? = data.withUnsafeBytes { bytes in
                guard case .footer(let footer) = RecordFooter.decode(endOf: bytes), footer.recordLength == bytes.count,
                    let metadata = footer.metadata(in: bytes)
                else { return nil }
                let body = UnsafeRawBufferPointer(rebasing: bytes[..<footer.bodyLength])
                guard Checksum.of(body) == footer.bodyChecksum else { return nil }
                return Entry(StoredEntry(metadata: metadata, body: Data(body)), key: DiskKey(footer))
            }
            guard let decoded else { return nil }
            self = decoded
        }
    }
}

extension DiskURLCache.Entry {
    /// Whether the entry is among what a message of another process tells to be removed.
    public func isConcerned(by message: String) -> Bool {
        EntryCriteria.removal(message).concerns(key.name)
    }
}

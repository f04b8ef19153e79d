import DiskURLCache
import Foundation

extension DiskURLCache {
    /// One stored response with its body, as a `DiskURLCache.EntryStorage` keeps it. An immutable value.
    public struct Entry: Sendable {
        let entry: StoredEntry
        let key: DiskKey

        /// Distinguishes the entries with the same name, among which `Vary` selects. An entry replaces the one with the
        /// same name and variant.
        public var variant: String { entry.metadata.varyKey.variant }

        /// See `DiskURLCache.Options.isPinned`: a storage should evict it last.
        public var isPinned: Bool { entry.metadata.isPinned }

        /// Bytes of body and header fields, roughly what the entry takes in memory.
        public var bytesInMemory: Int { entry.memoryCost }

        /// The length of the body in bytes. `encoded()` begins with the body.
        public var bytes: Int { entry.body.count }

        /// The groups by which the entry can be removed: its URL, its host, and each of its tags; each is given as 64
        /// hexadecimal digits. See `DiskURLCache.Criteria.Scope.group`.
        public var groups: [String] {
            [EntryGroup.uri(key.resource, key.digest.host), .host(key.digest.host)].map(\.name)
                + entry.metadata.tags.map { EntryGroup.tag($0).name }
        }

        init(_ entry: StoredEntry, key: DiskKey) {
            self.entry = entry
            self.key = key
        }

        /// The entry in the format of the cache's own records (`OnDiskFormat.md`), with checksums. Nil if the entry
        /// does not fit the format: a line break in a header field, or too much metadata. The bytes include the URL
        /// unless `DiskURLCache.Configuration.keepsURLs` is false.
        public func encoded() -> Data? {
            guard var record = PreparedRecord(entry, for: key, keepsURL: true) else { return nil }
            let body = record.body
            return record.withTail { body + Data($0) }
        }

        /// Reads bytes that `encoded()` made. Nil if even one bit is different.
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

extension VaryKey {
    /// `DiskURLCache.Entry.variant` of the entries with this key.
    var variant: String { String(recordHash, radix: 16) }
}

extension DiskURLCache.Entry {
    /// Whether a message from another process says that this entry was removed.
    public func isConcerned(by message: String) -> Bool {
        EntryCriteria.removal(message).concerns(key.name)
    }
}

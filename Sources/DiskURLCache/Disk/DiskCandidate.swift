import Foundation

/// One stored variant of a key, its body not necessarily read yet.
struct DiskCandidate: Sendable {
    let metadata: EntryMetadata
    let bodyLength: Int
    private let source: Source

    private enum Source {
        case entry(StoredEntry)
        case file(DiskStore, DiskKey, slot: UInt8)
    }

    init(_ entry: StoredEntry) {
        metadata = entry.metadata
        bodyLength = entry.body.count
        source = .entry(entry)
    }

    init(_ record: LoadedRecord, in store: DiskStore, for key: DiskKey) {
        metadata = record.metadata
        bodyLength = record.header.bodyLength
        if let body = record.body {
            source = .entry(StoredEntry(metadata: record.metadata, body: body))
        } else {
            source = .file(store, key, slot: record.header.slot)
        }
    }

    /// The whole entry, its checksum verified; nil when it turned out missing or damaged.
    func load() -> StoredEntry? {
        switch source {
        case .entry(let entry): entry
        case .file(let store, let key, let slot): store.load(key, slot: slot, sequence: metadata.sequence)
        }
    }
}

/// What an inspector is told of one record.
struct DiskRecordInfo: Sendable {
    let digest: KeyDigest
    let metadata: EntryMetadata
    let bodyLength: Int
    /// Bytes on disk, in allocated blocks.
    let allocated: Int
    let accessedAt: Date
}

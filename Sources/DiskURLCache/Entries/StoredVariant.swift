/// One stored variant, whose body may still be on disk. Immutable. A class, since it is copied often.
package final class StoredVariant: Sendable {
    /// The greatest number of variants of a key, in each layer. A further one replaces an old one: each lookup compares
    /// the variants with its request, and a server may name a field in `Vary` that no two requests have alike.
    package static let limit = 8

    let metadata: EntryMetadata
    let bodyLength: Int
    let layer: DiskURLCache.Layer
    /// The whole entry; nil if its body is not in memory.
    let entry: StoredEntry?
    /// Returns the whole entry; nil if the record is gone or damaged. May read the disk on the caller's thread.
    let load: @Sendable () -> StoredEntry?
    /// Opens and verifies the body in its file, instead of reading it into memory; nil if the file is gone or damaged.
    /// Reads the whole file once, on the caller's thread. Set only for bodies that are too large to be kept in memory.
    let open: (@Sendable () -> OpenBody?)?

    /// - Parameter entry: nil if the body was not read yet.
    package init(
        _ metadata: EntryMetadata, bodyLength: Int, from layer: DiskURLCache.Layer, entry: StoredEntry? = nil,
        open: (@Sendable () -> OpenBody?)? = nil, load: @escaping @Sendable () -> StoredEntry?
    ) {
        self.metadata = metadata
        self.bodyLength = bodyLength
        self.layer = layer
        self.entry = entry
        self.open = open
        self.load = load
    }

    /// A variant whose body is in memory.
    package convenience init(_ entry: StoredEntry, from layer: DiskURLCache.Layer) {
        self.init(entry.metadata, bodyLength: entry.body.count, from: layer, entry: entry) { entry }
    }

    /// The same variant, with its body opened and verified.
    func opened(_ body: OpenBody) -> StoredVariant {
        StoredVariant(
            metadata, bodyLength: bodyLength, from: layer, open: { body },
            load: { [metadata] in body.contents.map { StoredEntry(metadata: metadata, body: $0) } })
    }

    /// The same variant, with a different layer as its source.
    func from(_ layer: DiskURLCache.Layer) -> StoredVariant {
        StoredVariant(metadata, bodyLength: bodyLength, from: layer, entry: entry, open: open, load: load)
    }
}

extension StoredVariant {
    /// The variant as the decisions by HTTP see it; nil for a response that is not HTTP.
    var candidate: Candidate? {
        if let entry { return entry.candidate }
        return metadata.http.map { Candidate(response: $0, bodyLength: bodyLength) }
    }
}

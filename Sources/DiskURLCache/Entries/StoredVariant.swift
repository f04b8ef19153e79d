/// One stored variant; its body may still be on disk. Immutable; a class, so that a copy costs one reference.
package final class StoredVariant: Sendable {
    let metadata: EntryMetadata
    let bodyLength: Int
    let layer: DiskURLCache.Layer
    /// The whole entry, when its body is in memory.
    let entry: StoredEntry?
    /// The whole entry; nil when it turned out missing or damaged. May read the disk on the caller's thread.
    let load: @Sendable () -> StoredEntry?
    /// Opens the body in its file and verifies it, instead of reading it into memory; nil when the file is missing or
    /// damaged. Set for bodies that are too large to be kept in memory. Reads the whole file once, on the caller's
    /// thread.
    let open: (@Sendable () -> OpenBody?)?

    /// - Parameter entry: nil if the body was not read yet.
    package init(
        _ metadata: EntryMetadata, bodyLength: Int, from layer: DiskURLCache.Layer, entry: StoredEntry? = nil,
        open: (@Sendable () -> OpenBody?)? = nil, load: @escaping @Sendable () -> StoredEntry?
    ) {
        (self.metadata, self.bodyLength, self.layer, self.entry) = (metadata, bodyLength, layer, entry)
        (self.open, self.load) = (open, load)
    }

    /// A variant whose body is in memory.
    package convenience init(_ entry: StoredEntry, from layer: DiskURLCache.Layer) {
        self.init(entry.metadata, bodyLength: entry.body.count, from: layer, entry: entry) { entry }
    }

    /// The same variant, its body opened and verified.
    func opened(_ body: OpenBody) -> StoredVariant {
        StoredVariant(
            metadata, bodyLength: bodyLength, from: layer, open: { body },
            load: { [metadata] in body.contents.map { StoredEntry(metadata: metadata, body: $0) } })
    }

    /// The same variant, found in another layer.
    func from(_ layer: DiskURLCache.Layer) -> StoredVariant {
        StoredVariant(metadata, bodyLength: bodyLength, from: layer, entry: entry, open: open, load: load)
    }
}

extension [StoredVariant] {
    /// The variants with the entry that one of them loaded, so that it is not read again.
    func holding(_ entry: StoredEntry, at index: Int) -> [StoredVariant] {
        guard self[index].entry == nil else { return self }
        var variants = self
        variants[index] = StoredVariant(entry, from: self[index].layer)
        return variants
    }
}

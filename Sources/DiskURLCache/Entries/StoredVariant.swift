/// One stored variant, its body perhaps still on disk. Immutable; a class, so that handing one on costs one reference.
final class StoredVariant: Sendable {
    let metadata: EntryMetadata
    let bodyLength: Int
    let layer: CacheLayer
    /// The whole entry, where its body is in memory.
    let entry: StoredEntry?
    /// The whole entry; nil when it turned out missing or damaged. May read the disk on the caller's thread.
    let load: @Sendable () -> StoredEntry?

    /// A variant whose body is at hand.
    init(_ entry: StoredEntry, from layer: CacheLayer) {
        metadata = entry.metadata
        bodyLength = entry.body.count
        self.layer = layer
        self.entry = entry
        load = { entry }
    }

    /// A variant whose body is still to be read.
    init(
        _ metadata: EntryMetadata, bodyLength: Int, from layer: CacheLayer,
        load: @escaping @Sendable () -> StoredEntry?
    ) {
        self.metadata = metadata
        self.bodyLength = bodyLength
        self.layer = layer
        entry = nil
        self.load = load
    }

    /// The same variant as another layer's.
    func from(_ layer: CacheLayer) -> StoredVariant {
        if let entry { return StoredVariant(entry, from: layer) }
        return StoredVariant(metadata, bodyLength: bodyLength, from: layer, load: load)
    }

    func answers(_ request: RequestFacts) -> Bool {
        metadata.answers(request.fields)
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

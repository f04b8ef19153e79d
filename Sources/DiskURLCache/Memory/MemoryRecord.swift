import Foundation

/// The variants of a key in memory.
struct MemoryRecord: MemoryValue {
    /// The variants, the most recent first. One without an entry is on disk: its body is too large for memory, or was
    /// not needed yet.
    private(set) var variants: [StoredVariant] = []
    /// Whether all stored variants are listed here, so that a lookup need not read the layers below.
    private(set) var isComplete: Bool

    init(variants: [StoredVariant] = [], isComplete: Bool) {
        self.variants = variants
        self.isComplete = isComplete
        keepToLimit()
    }

    private mutating func keepToLimit() {
        guard variants.count > StoredVariant.limit else { return }
        let dropped = variants[StoredVariant.limit...]
        // The disk drops the least recently used variant, so it may still have this one.
        if dropped.contains(where: { $0.metadata.placement == .memoryAndDisk }) { isComplete = false }
        variants.removeSubrange(StoredVariant.limit...)
    }

    var isEmpty: Bool { variants.isEmpty }

    /// The memory that the variants take, in bytes.
    var cost: Int { variants.reduce(0) { $0 + ($1.entry?.memoryCost ?? StoredEntry.headCost($1.metadata)) } }

    /// Drops variants until the others take no more than this many bytes: the oldest first, and of these first those
    /// that are on disk, too. The most recent one stays.
    mutating func keep(within limit: Int) {
        while variants.count > 1, cost > limit {
            let onDisk = variants.lastIndex { $0.metadata.placement == .memoryAndDisk } ?? 0
            let dropped = variants.remove(at: onDisk > 0 ? onDisk : variants.count - 1)
            if dropped.metadata.placement == .memoryAndDisk { isComplete = false }
        }
    }

    /// Replaces the entry of the same variant. The new entry is the most recent one.
    /// - Parameter entry: nil if memory does not keep the entry; lookups find it in the layers below.
    mutating func insert(_ entry: StoredEntry?, for varyKey: VaryKey) {
        removeAll { $0.metadata.varyKey == varyKey }
        if let entry { variants.insert(StoredVariant(entry, from: .memory), at: 0) }
        isComplete = isComplete && entry != nil
        keepToLimit()
    }

    /// Replaces the variant that has the metadata `old` by an entry, and sorts again. If the entry is nil,
    /// the variant is removed, and the next lookup reads the disk.
    mutating func replace(_ old: EntryMetadata, by entry: StoredEntry?) {
        guard let index = variants.firstIndex(where: { $0.metadata.isSameEntry(as: old) }) else { return }
        if let entry {
            variants[index] = StoredVariant(entry, from: .memory)
            variants.sort { $0.metadata.sequence > $1.metadata.sequence }
        } else {
            variants.remove(at: index)
            isComplete = false
        }
    }

    /// Replaces the metadata of the variant that has the metadata `old`; its body stays. If the body was not loaded
    /// yet, the variant is removed, since the closure that loads the body would look for the old number.
    mutating func replace(_ old: EntryMetadata, with metadata: EntryMetadata) {
        replace(old, by: variants.first { $0.metadata.isSameEntry(as: old) }?.entry?.with(metadata))
    }

    /// Marks variants as stale. Those that are on disk are read from there the next time.
    /// - Parameter isOnDisk: whether a variant may be on disk, too.
    mutating func markStale(
        at time: Date, where isConcerned: (StoredVariant) -> Bool, isOnDisk: (EntryMetadata) -> Bool
    ) {
        for variant in variants where isConcerned(variant) {
            var metadata = variant.metadata
            if isOnDisk(metadata) {
                replace(metadata, by: nil)
            } else if metadata.markStale(at: time) {
                replace(variant.metadata, with: metadata)
            }
        }
    }

    /// The disk has been emptied: what memory does not have is gone.
    mutating func leaveDisk() {
        variants = variants.compactMap { variant in variant.entry.map { StoredVariant($0.offDisk, from: .memory) } }
    }

    mutating func removeAll(where isRemoved: (StoredVariant) -> Bool) {
        variants.removeAll(where: isRemoved)
    }
}

/// A response that memory dropped when it ran short. Lookups find it as long as the app holds it.
struct WeakResponse: MemoryValue {
    let metadata: EntryMetadata
    weak var response: CachedURLResponse?

    /// See `EntryMetadata.offDisk`.
    var offDisk: WeakResponse { WeakResponse(metadata: metadata.offDisk, response: response) }

    var isEmpty: Bool {
        // Asked under a lock. The app may have let go of the response meanwhile, so that this was the last reference.
        guard let response = response.map(Unmanaged.passRetained) else { return true }
        CachedURLResponse.release(response)
        return false
    }
    var cost: Int { 0 }

    var entry: StoredEntry? {
        response.map { StoredEntry(metadata: metadata, body: $0.data, presented: $0) }
    }
}

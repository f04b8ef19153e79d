import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension RequestKey: MemoryKey {}

/// The variants of one key in memory.
struct MemoryRecord: MemoryValue {
    /// The most recent first. A variant without an entry is on disk: its body is too large for memory, or was not
    /// needed yet.
    private(set) var variants: [StoredVariant] = []
    /// True when no layer below has a variant that is not listed here, so that a lookup skips them.
    private(set) var isComplete: Bool

    init(variants: [StoredVariant] = [], isComplete: Bool) {
        self.variants = variants
        self.isComplete = isComplete
        keepToLimit()
    }

    private mutating func keepToLimit() {
        guard variants.count > StoredVariant.limit else { return }
        let dropped = variants[StoredVariant.limit...]
        // The disk drops the variant that was used least recently, so it may still have this one.
        if dropped.contains(where: { $0.metadata.placement == .memoryAndDisk }) { isComplete = false }
        variants.removeSubrange(StoredVariant.limit...)
    }

    var isEmpty: Bool { variants.isEmpty }

    /// The memory that the variants take, in bytes.
    var cost: Int { variants.reduce(0) { $0 + ($1.entry?.memoryCost ?? StoredEntry.headCost($1.metadata)) } }

    /// Replaces the entry of the same variant; the new entry is the most recent.
    /// - Parameter entry: nil for an entry that memory does not keep: lookups find it below.
    mutating func insert(_ entry: StoredEntry?, for varyKey: VaryKey) {
        removeAll { $0.metadata.varyKey == varyKey }
        if let entry { variants.insert(StoredVariant(entry, from: .memory), at: 0) }
        isComplete = isComplete && entry != nil
        keepToLimit()
    }

    /// Replaces the variant with a sequence number by an entry; the order follows the new numbers. Without an entry the
    /// variant goes, and the next lookup reads the disk.
    mutating func replace(_ sequence: UInt64, by entry: StoredEntry?) {
        guard let index = variants.firstIndex(where: { $0.metadata.sequence == sequence }) else { return }
        if let entry {
            variants[index] = StoredVariant(entry, from: .memory)
            variants.sort { $0.metadata.sequence > $1.metadata.sequence }
        } else {
            variants.remove(at: index)
            isComplete = false
        }
    }

    /// Replaces the metadata of the variant with a number; its body stays. If the body was not read yet, the variant
    /// goes: the closure that reads the body would look for the old number.
    mutating func replace(_ sequence: UInt64, with metadata: EntryMetadata) {
        let body = variants.first { $0.metadata.sequence == sequence }?.entry?.body
        replace(sequence, by: body.map { StoredEntry(metadata: metadata, body: $0) })
    }

    mutating func removeAll(where isRemoved: (StoredVariant) -> Bool) {
        variants.removeAll(where: isRemoved)
    }
}

/// A response that memory gave up under pressure: lookups find it as long as the app holds it.
struct WeakResponse: MemoryValue {
    let metadata: EntryMetadata
    weak var response: CachedURLResponse?

    var isEmpty: Bool { response == nil }
    var cost: Int { 0 }

    var entry: StoredEntry? {
        response.map { StoredEntry(metadata: metadata, body: $0.data, presented: $0) }
    }
}

/// The variants of one key in memory.
struct MemoryRecord: Sendable {
    /// The most recent first. A variant without an entry is on disk: its body is too large for memory, or was not needed yet.
    private(set) var variants: [StoredVariant]
    /// True when no layer below has a variant that is not listed here, so that a lookup skips them.
    private(set) var isComplete: Bool
    /// Every variant has its body in memory.
    private(set) var isAtHand = false

    init(_ variants: [StoredVariant], isComplete: Bool) {
        self.variants = variants
        self.isComplete = isComplete
        noteBodies()
    }

    private mutating func noteBodies() {
        isAtHand = variants.allSatisfy { $0.entry != nil }
    }

    /// Replaces the entry of the same variant; the new entry is the most recent.
    /// - Parameter entry: nil for an entry that is too large for memory: lookups find it below.
    mutating func insert(_ entry: StoredEntry?, for varyKey: VaryKey) {
        variants.removeAll { $0.metadata.varyKey == varyKey }
        if let entry { variants.insert(StoredVariant(entry, from: .memory), at: 0) }
        isComplete = isComplete && entry != nil
        noteBodies()
    }

    /// Replaces the entry with a sequence number, or removes it; the order follows the new numbers.
    mutating func replace(_ sequence: UInt64, by entry: StoredEntry?) {
        guard let index = variants.firstIndex(where: { $0.metadata.sequence == sequence }) else { return }
        if let entry {
            variants[index] = StoredVariant(entry, from: .memory)
            variants.sort { $0.metadata.sequence > $1.metadata.sequence }
        } else {
            variants.remove(at: index)
        }
        noteBodies()
    }

    /// Replaces the metadata of the variant with a number; its body stays. If the body was not read yet, the next lookup reads the disk.
    mutating func replace(_ sequence: UInt64, with metadata: EntryMetadata) {
        guard let variant = variants.first(where: { $0.metadata.sequence == sequence }) else { return }
        if let entry = variant.entry {
            replace(sequence, by: StoredEntry(metadata: metadata, body: entry.body))
        } else {
            // The closure that reads the body would look for the old number.
            replace(sequence, by: nil)
            isComplete = false
        }
    }

    mutating func removeAll(where isRemoved: (StoredVariant) -> Bool) {
        variants.removeAll(where: isRemoved)
        noteBodies()
    }

    /// The memory that the variants take, in bytes.
    var cost: Int { variants.reduce(0) { $0 + ($1.entry?.memoryCost ?? StoredEntry.headCost($1.metadata)) } }
}

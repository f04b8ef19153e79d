/// What memory knows of one key.
struct MemoryRecord: Sendable {
    /// The most recent first. A variant without an entry is on disk: its body is too large for memory, or was not asked for yet.
    private(set) var variants: [StoredVariant]
    /// True when no layer below has a variant that is not listed here: a lookup need not ask them.
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

    /// Puts an entry in place of that of its variant, as the most recent one.
    /// - Parameter entry: nil for an entry that is too large for memory: it is found below.
    mutating func insert(_ entry: StoredEntry?, for varyKey: VaryKey) {
        variants.removeAll { $0.metadata.varyKey == varyKey }
        if let entry { variants.insert(StoredVariant(entry, from: .memory), at: 0) }
        isComplete = isComplete && entry != nil
        noteBodies()
    }

    /// Puts an entry in place of the variant with a number, where it stands.
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

    /// Gives the variant with a number other metadata; its body stays. If the body was not read yet, the next lookup asks the disk.
    mutating func replace(_ sequence: UInt64, with metadata: EntryMetadata) {
        guard let variant = variants.first(where: { $0.metadata.sequence == sequence }) else { return }
        if let entry = variant.entry {
            replace(sequence, by: StoredEntry(metadata: metadata, body: entry.body))
        } else {
            // The reader of the old head would look for the old number.
            replace(sequence, by: nil)
            isComplete = false
        }
    }

    mutating func removeAll(where isRemoved: (StoredVariant) -> Bool) {
        variants.removeAll(where: isRemoved)
        noteBodies()
    }

    /// What it takes, in bytes.
    var cost: Int { variants.reduce(0) { $0 + ($1.entry?.memoryCost ?? StoredEntry.headCost($1.metadata)) } }
}

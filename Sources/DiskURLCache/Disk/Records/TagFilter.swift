/// A set of tags in 32 bits (a Bloom filter). It can say for certain only that a tag is not in the set.
struct TagFilter: Sendable, Hashable {
    var bits: UInt32 = 0

    /// Whether all tags of another set may be in this one.
    func mayContain(_ other: TagFilter) -> Bool { bits & other.bits == other.bits }

    // Two bits for each tag: an entry has few tags, and a wrong "yes" only means that the record has to be read.
    private static func mask(of tag: String) -> UInt32 {
        let hash = tag.withBytes { Checksum.of(UnsafeRawBufferPointer($0)) }
        return 1 << UInt32(hash & 31) | 1 << UInt32(hash >> 32 & 31)
    }
}

extension TagFilter {
    init(_ tags: [String]) {
        var bits: UInt32 = 0
        for tag in tags { bits |= Self.mask(of: tag) }
        self.init(bits: bits)
    }
}

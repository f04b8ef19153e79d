/// A set of tags folded into 32 bits (a Bloom filter). It is certain only that a tag is not in the set.
struct TagFilter: Sendable, Hashable {
    var bits: UInt32 = 0

    func mayContain(_ tag: String) -> Bool {
        let mask = Self.mask(of: tag)
        return bits & mask == mask
    }

    // Two bits of each tag: an entry has few tags, and a false hit costs one look into the record.
    private static func mask(of tag: String) -> UInt32 {
        var tag = tag
        let hash = tag.withUTF8 { Checksum.of(UnsafeRawBufferPointer($0)) }
        return 1 << UInt32(hash & 31) | 1 << UInt32(hash >> 32 & 31)
    }
}

extension TagFilter {
    init(_ tags: [String]) { self.init(bits: tags.reduce(0) { $0 | Self.mask(of: $1) }) }
}

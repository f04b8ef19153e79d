/// What the index knows of one record: 62 bytes, the same in memory, in the index file and in the journal.
struct IndexRow: Sendable, Hashable {
    // Four words instead of a `KeyDigest`, whose alignment would make a row a third larger.
    private var word0: UInt64
    private var word1: UInt64
    private var word2: UInt64
    private var word3: UInt64
    var uriHash: UInt32 = 0
    var hostHash: UInt32 = 0
    var tagFilter = TagFilter(bits: 0)
    var varyHash: UInt32 = 0
    /// What the file takes, in blocks of 512 bytes as `stat` counts them.
    var blocks: UInt32
    /// Seconds since 1970.
    var accessedAt: UInt32
    var storedAt: UInt32 = 0
    var slot: UInt8
    var flags: Flags

    struct Flags: OptionSet, Sendable, Hashable {
        let rawValue: UInt8

        static let pinned = Flags(rawValue: 1)
        /// Known by its name and size alone: the record's header was not read yet.
        static let partial = Flags(rawValue: 2)
        /// Used since the journal was last written.
        static let touched = Flags(rawValue: 4)
        /// Found by the listing that is under way.
        static let seen = Flags(rawValue: 8)
        /// The text of the key is the URL in the record.
        static let keyedByURL = Flags(rawValue: 16)

        static let saved: Flags = [.pinned, .partial, .keyedByURL]
    }

    static let blockSize = 512

    var digest: KeyDigest { KeyDigest(words: SIMD4(word0, word1, word2, word3)) }
    var bytes: Int { Int(blocks) * Self.blockSize }
    var isPinned: Bool { flags.contains(.pinned) }
    var isPartial: Bool { flags.contains(.partial) }

    @inline(__always)
    func hasDigest(_ digest: KeyDigest) -> Bool {
        word0 == digest.words[0] && word1 == digest.words[1] && word2 == digest.words[2] && word3 == digest.words[3]
    }

    /// A digest is uniform already: its first word is the hash.
    @inline(__always) var hash: UInt64 { word0 }

    /// A record of which only name and size are known.
    init(digest: KeyDigest, slot: UInt8, allocated: Int, accessedAt: UInt32) {
        (word0, word1, word2, word3) = (digest.words[0], digest.words[1], digest.words[2], digest.words[3])
        self.slot = slot
        self.accessedAt = accessedAt
        blocks = Self.blocks(allocated)
        flags = .partial
    }

    /// The same of a file that was only looked at: when it was written counts as its last use.
    init(_ name: RecordName, _ status: FileStatus) {
        self.init(
            digest: name.digest, slot: name.slot, allocated: status.allocated, accessedAt: status.modifiedSeconds)
    }

    init(_ header: RecordHeader, allocated: Int, accessedAt: UInt32) {
        self.init(digest: header.digest, slot: header.slot, allocated: allocated, accessedAt: accessedAt)
        uriHash = header.uriHash
        hostHash = header.hostHash
        tagFilter = header.tagFilter
        varyHash = UInt32(truncatingIfNeeded: header.varyHash)
        storedAt = header.storedAt
        flags = header.isPinned ? .pinned : []
        if header.isKeyedByURL { flags.insert(.keyedByURL) }
    }

    /// Whether nothing but the time of use differs.
    func isSameRecord(as other: IndexRow) -> Bool {
        slot == other.slot && blocks == other.blocks && storedAt == other.storedAt && varyHash == other.varyHash
            && hasDigest(other.digest)
    }

    private static func blocks(_ allocated: Int) -> UInt32 {
        UInt32(clamping: max(0, allocated) / blockSize + (allocated % blockSize > 0 ? 1 : 0))
    }
}

/// What the index knows of one record: 50 bytes in the index file, and in memory the exact time of the last use besides.
struct IndexRow: Sendable, Hashable {
    var key: KeyName
    /// The first 32 bits of the key's digest: tells keys apart that share a name, as far as it matters without their records.
    var keyCheck: UInt32 = 0
    var uriHash: UInt32 = 0
    var hostHash: UInt32 = 0
    var tagFilter = TagFilter(bits: 0)
    var varyHash: UInt32 = 0
    /// What the file takes, in blocks of 512 bytes as `stat` counts them.
    var blocks: UInt32
    /// Seconds since 1970, for age limits and for the inspector. Eviction uses the order of the rows.
    var accessedAt: UInt32
    var storedAt: UInt32 = 0
    var slot: UInt8
    var flags: Flags
    /// The last use by the monotonic clock (nanoseconds); 0 for a row that was not used since this process opened the index.
    var lastUse: UInt64 = 0

    struct Flags: OptionSet, Sendable, Hashable {
        let rawValue: UInt8

        static let pinned = Flags(rawValue: 1)
        /// Known by its name and size alone: the record's header was not read yet.
        static let partial = Flags(rawValue: 2)
        /// Changed or used since the index was last saved.
        static let dirty = Flags(rawValue: 4)
        /// Found by the listing that is under way.
        static let seen = Flags(rawValue: 8)

        static let saved: Flags = [.pinned, .partial]
    }

    static let blockSize = 512

    var name: RecordName { RecordName(key: key, slot: slot) }
    var bytes: Int { Int(blocks) * Self.blockSize }
    var isPinned: Bool { flags.contains(.pinned) }
    var isPartial: Bool { flags.contains(.partial) }

    /// A name is uniform already: one of its words is the hash.
    @inline(__always) var hash: Int { Int(truncatingIfNeeded: key.low) }

    /// A record of which only name and size are known.
    init(_ name: RecordName, allocated: Int, accessedAt: UInt32) {
        key = name.key
        slot = name.slot
        self.accessedAt = accessedAt
        blocks = Self.blocks(allocated)
        flags = .partial
    }

    /// A row of a file whose header was not read: the time of its writing counts as its last use.
    init(_ name: RecordName, _ status: FileStatus) {
        self.init(name, allocated: status.allocated, accessedAt: status.modifiedSeconds)
    }

    init(_ header: RecordHeader, allocated: Int, accessedAt: UInt32) {
        self.init(header.name, allocated: allocated, accessedAt: accessedAt)
        keyCheck = Self.check(of: header.digest)
        uriHash = header.uriHash
        hostHash = header.hostHash
        tagFilter = header.tagFilter
        varyHash = UInt32(truncatingIfNeeded: header.varyHash)
        storedAt = header.storedAt
        flags = header.isPinned ? .pinned : []
    }

    static func check(of digest: KeyDigest) -> UInt32 {
        UInt32(truncatingIfNeeded: digest.words[0] >> 32)
    }

    /// Whether nothing but the time of use differs.
    func isSameRecord(as other: IndexRow) -> Bool {
        slot == other.slot && blocks == other.blocks && storedAt == other.storedAt && varyHash == other.varyHash
            && keyCheck == other.keyCheck && key == other.key && tagFilter == other.tagFilter
            && uriHash == other.uriHash && hostHash == other.hostHash && isPinned == other.isPinned
    }

    private static func blocks(_ allocated: Int) -> UInt32 {
        UInt32(clamping: max(0, allocated) / blockSize + (allocated % blockSize > 0 ? 1 : 0))
    }
}

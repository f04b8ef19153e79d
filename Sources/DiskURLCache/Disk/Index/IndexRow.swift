/// What the index knows about a record. Everything except `lastUse` is saved.
package struct IndexRow: Sendable, Hashable {
    var key: KeyName
    var hostHash: UInt32 = 0
    var tagFilter = TagFilter()
    var varyHash: UInt32 = 0
    /// The space that the file takes on disk, in blocks of 512 bytes as in `stat`; at least its length.
    var blocks: UInt32
    /// When the file was written, in nanoseconds since 1970; 0 if that is not known.
    var modified: Int64 = 0
    /// Seconds since 1970: for age limits, for the inspector, and for the position of a record about which nothing else
    /// is known.
    package var accessedAt: UInt32
    var storedAt: UInt32 = 0
    var slot: UInt8
    var flags: Flags
    var pathLevels = PathLevels(bits: 0)
    /// The last use by the monotonic clock (nanoseconds); 0 for a record that was not used since this process opened
    /// the index.
    var lastUse: UInt64 = 0

    struct Flags: OptionSet, Sendable, Hashable {
        let rawValue: UInt8

        static let pinned = Flags(rawValue: 1)
        /// The record is to be read, or read again. Mostly only name and size are known.
        static let partial = Flags(rawValue: 2)
    }

    static let blockSize = 512
    /// One terabyte. No record is that large; an index that says so would cause good records to be evicted. A sparse
    /// file, or a damaged file system, may claim more.
    static let maximumBlocks: UInt32 = 1 << 31

    package var name: RecordName { RecordName(key: key, slot: slot) }
    var bytes: Int { Int(clamping: Int64(blocks) * Int64(Self.blockSize)) }
    var isPinned: Bool { flags.contains(.pinned) }
    var isPartial: Bool { flags.contains(.partial) }
    /// A newer record of its variant was found when the record was read, and this one could not be removed.
    var isReplaced: Bool { isPartial && storedAt > 0 }

    /// Whether the file has the size and the time of writing in the row.
    func isAbout(_ status: FileStatus) -> Bool {
        modified == status.modified && blocks == Self.blocks(status)
    }

    /// Whether at most the times of use differ.
    func isSameRecord(as other: IndexRow) -> Bool {
        var other = other
        other.accessedAt = accessedAt
        other.lastUse = lastUse
        return self == other
    }

    fileprivate static func blocks(_ status: FileStatus) -> UInt32 {
        let taken = status.spaceTaken
        return min(UInt32(clamping: taken / blockSize + (taken % blockSize > 0 ? 1 : 0)), maximumBlocks)
    }
}

extension IndexRow {
    /// The row of a record that was not read. The time of writing counts as its last use.
    init(_ name: RecordName, _ status: FileStatus) {
        self.init(
            key: name.key, blocks: Self.blocks(status), modified: status.modified,
            accessedAt: status.modifiedSeconds, slot: name.slot, flags: .partial)
    }

    init(_ footer: RecordFooter, _ status: FileStatus, accessedAt: UInt32) {
        self.init(footer.name, status)
        self.accessedAt = accessedAt
        hostHash = footer.hostHash
        pathLevels = footer.pathLevels
        tagFilter = footer.tagFilter
        varyHash = UInt32(truncatingIfNeeded: footer.varyHash)
        storedAt = footer.storedAt
        flags = footer.isPinned ? .pinned : []
    }
}

import Foundation

/// An open pack. Closed when nobody reads from it any more.
final class PackFile: Sendable {
    let descriptor: Int32
    private let files: any FileSystem

    init(_ descriptor: Int32, _ files: any FileSystem) {
        self.descriptor = descriptor
        self.files = files
    }

    deinit { files.closeQuietly(descriptor) }
}

/// The packs of a directory, and the rows of their records: what lookups need, guarded by one lock that is never held across a file
/// operation. Rows say in which pack a record lies by the pack's place in `packs`.
struct PackTable {
    struct Pack {
        var number: UInt64
        var secret: UInt64
        /// With what is gathered for it and not written yet.
        var length: Int
        /// Bytes of its living records.
        var live = 0
        /// Nil while it is closed.
        var file: PackFile?
        var usedAt: UInt64 = 0
        /// Another process has it, or it cannot be read: left alone.
        var isLeftAlone = false

        var dead: Int { length - PackHead.length - live }

        func seed(_ row: IndexRow) -> UInt64 { secret &+ UInt64(row.offset) &* 0x9E37_79B9_7F4A_7C15 }
    }

    var index = DiskIndex()
    var capacity: Int
    /// The index knows every record.
    var isOpen = false
    private(set) var packs: [Pack?] = []
    /// What all packs take, in whole blocks.
    private(set) var packBytes = 0
    /// Folders and index, in bytes.
    var overhead = 0
    /// The pack that is appended to.
    var current: Int?
    /// Bytes of it that are in its file; the rest is in `tail`.
    var flushed = 0
    var tail = PackTail()
    /// Rows whose records proved dead or damaged.
    var suspects: [IndexRow] = []
    private var tick: UInt64 = 0
    private var openCount = 0

    /// A descriptor for each 4 MB: enough for 256 MB, and few beside the 1,024 that a process may have.
    static let openLimit = 64

    init(capacity: Int) { self.capacity = capacity }

    var footprint: Int { packBytes + overhead }

    private static func blocks(_ length: Int) -> Int { (length + 4_095) & ~4_095 }

    // MARK: Packs

    mutating func add(_ pack: Pack) -> Int {
        packBytes += Self.blocks(pack.length)
        if pack.file != nil { openCount += 1 }
        if let free = packs.firstIndex(where: { $0 == nil }) {
            packs[free] = pack
            return free
        }
        packs.append(pack)
        return packs.count - 1
    }

    mutating func remove(_ place: Int) {
        guard let pack = packs[place] else { return }
        packBytes -= Self.blocks(pack.length)
        if pack.file != nil { openCount -= 1 }
        packs[place] = nil
        if current == place { current = nil }
    }

    mutating func setLength(_ length: Int, of place: Int) {
        packBytes += Self.blocks(length) - Self.blocks(packs[place]?.length ?? 0)
        packs[place]?.length = length
    }

    mutating func leaveAlone(_ place: Int) { packs[place]?.isLeftAlone = true }

    /// The pack's file where it is open. Counts as a use.
    mutating func file(_ place: Int) -> PackFile? {
        tick += 1
        packs[place]?.usedAt = tick
        return packs[place]?.file
    }

    /// Keeps the file open, and lets go of the one that was not used for longest.
    mutating func keep(_ file: PackFile, of place: Int) {
        guard packs.indices.contains(place), let pack = packs[place], pack.file == nil else { return }
        packs[place]?.file = file
        openCount += 1
        guard openCount > Self.openLimit else { return }
        var oldest: (place: Int, usedAt: UInt64)?
        for (other, pack) in packs.enumerated() where other != current && other != place {
            guard let pack, pack.file != nil, pack.usedAt < oldest?.usedAt ?? .max else { continue }
            oldest = (other, pack.usedAt)
        }
        guard let oldest else { return }
        packs[oldest.place]?.file = nil
        openCount -= 1
    }

    // MARK: Rows

    mutating func put(_ row: IndexRow, usedAt time: UInt64) {
        drop(row.name)
        index.put(row, usedAt: time)
        packs[Int(row.pack)]?.live += row.bytes
    }

    /// As the most recent row, as the index is loaded.
    mutating func append(_ row: IndexRow) {
        index.append(row)
        packs[Int(row.pack)]?.live += row.bytes
    }

    /// In place of the row of its name, whose place in the order of use it takes.
    mutating func move(_ row: IndexRow) {
        if let old = index.row(row.name) { packs[Int(old.pack)]?.live -= old.bytes }
        index.put(row)
        packs[Int(row.pack)]?.live += row.bytes
    }

    @discardableResult
    mutating func drop(_ name: RecordName) -> IndexRow? {
        guard let row = index.remove(name) else { return nil }
        packs[Int(row.pack)]?.live -= row.bytes
        return row
    }

    /// Where the record is still the one that the row was read from.
    func isCurrent(_ row: IndexRow) -> Bool { index.row(row.name)?.isSameRecord(as: row) == true }

    /// The bytes of a row's record where they are not in the file yet.
    func gathered(_ row: IndexRow) -> UnsafeMutableRawPointer? {
        guard current == Int(row.pack), row.start >= flushed else { return nil }
        return tail.memory + (row.start - flushed)
    }
}

extension IndexRow {
    var start: Int { Int(offset) * PackRecord.unit }

    init(_ record: PackRecord, slot: UInt8, pack: Int, start: Int, storedAt: UInt32, accessedAt: UInt32) {
        self.init(RecordName(key: record.key, slot: slot), allocated: 0, accessedAt: accessedAt)
        keyCheck = Self.check(of: record.digest)
        uriHash = record.uriHash
        hostHash = record.hostHash
        tagFilter = TagFilter(bits: record.tags)
        varyHash = record.varyHash
        blocks = UInt32(record.length / PackRecord.unit)
        self.storedAt = storedAt
        flags = record.isPinned ? [.pinned, .packed] : .packed
        self.pack = UInt16(pack)
        offset = UInt32(start / PackRecord.unit)
    }
}

/// Records that are gathered for one write. Reached only while the lock around its table is held.
final class PackTail: @unchecked Sendable {
    static let capacity = 256 << 10
    /// Made when something is written for the first time.
    private(set) lazy var memory: UnsafeMutableRawPointer = {
        isMade = true
        return .allocate(byteCount: Self.capacity, alignment: 16)
    }()
    private var isMade = false
    var count = 0

    deinit { if isMade { memory.deallocate() } }
}

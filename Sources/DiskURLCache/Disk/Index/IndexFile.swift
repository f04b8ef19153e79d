import Foundation

/// The file `index.plist`: what the index knows of each record, as a binary property list (`OnDiskFormat.md`). It is a hint. A row counts
/// only where the record's file is provably the file that the row is about: see `DiskIndex.init(_:listing:)`.
///
/// Rows lie in the order of use, the least recent first.
package struct IndexFile {
    let files: any FileSystem
    let paths: DiskPaths
    /// The user whose file is read.
    var owner: FileOwner

    package init(files: any FileSystem, paths: DiskPaths, owner: FileOwner = .process) {
        self.files = files
        self.paths = paths
        self.owner = owner
    }

    struct Column: Sendable {
        var name: String
        /// Bytes that a row takes.
        var width: Int
        var value: @Sendable (IndexRow) -> UInt64
        var set: @Sendable (inout IndexRow, UInt64) -> Void
    }

    /// Each column of the file, and the field of the row that it holds. Numbers are little-endian.
    static let columns: [Column] = [
        Column(name: "resources", width: 8, value: { $0.key.resource }, set: { $0.key.resource = $1 }),
        Column(name: "keys", width: 8, value: { $0.key.low }, set: { $0.key.low = $1 }),
        column("keyChecks", \.keyCheck), column("hostHashes", \.hostHash),
        Column(
            name: "tags", width: 4, value: { UInt64($0.tagFilter.bits) },
            set: { $0.tagFilter = TagFilter(bits: UInt32(truncatingIfNeeded: $1)) }),
        column("varyHashes", \.varyHash), column("blocks", \.blocks),
        Column(
            name: "modifiedAt", width: 8, value: { UInt64(bitPattern: $0.modified) },
            set: { $0.modified = Int64(bitPattern: $1) }),
        column("accessedAt", \.accessedAt), column("storedAt", \.storedAt),
        Column(
            name: "slots", width: 1, value: { UInt64($0.slot) }, set: { $0.slot = UInt8(truncatingIfNeeded: $1) }),
        Column(
            name: "flags", width: 1, value: { UInt64($0.flags.intersection(.saved).rawValue) },
            set: { $0.flags = IndexRow.Flags(rawValue: UInt8(truncatingIfNeeded: $1)).intersection(.saved) }),
    ]

    private static func column(_ name: String, _ field: WritableKeyPath<IndexRow, UInt32> & Sendable) -> Column {
        Column(
            name: name, width: 4, value: { UInt64($0[keyPath: field]) },
            set: { $0[keyPath: field] = UInt32(truncatingIfNeeded: $1) })
    }

    // One terabyte: no record is that large, and an index that says so would have good records evicted.
    private static let maximumBlocks: UInt32 = 1 << 31

    // MARK: Bytes

    /// - Parameter rows: in the order of use, the least recent first.
    static func encode(_ rows: [IndexRow]) -> [UInt8] {
        let layout = IndexFileLayout(count: rows.count)
        return [UInt8](unsafeUninitializedCapacity: layout.length) { buffer, initializedCount in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            for piece in layout.pieces {
                UnsafeMutableRawBufferPointer(rebasing: bytes[piece.offset...]).copyBytes(from: piece.bytes)
            }
            bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
            for (column, start) in zip(columns, layout.columnOffsets) {
                for (number, row) in rows.enumerated() {
                    withUnsafeBytes(of: column.value(row).littleEndian) {
                        let field = bytes[(start + number * column.width)...].prefix(column.width)
                        UnsafeMutableRawBufferPointer(rebasing: field).copyBytes(from: $0.prefix(column.width))
                    }
                }
            }
            let sum = Checksum.of(UnsafeRawBufferPointer(bytes))
            bytes.storeBytes(of: sum.littleEndian, toByteOffset: layout.checksumOffset, as: UInt64.self)
            initializedCount = layout.length
        }
    }

    /// The rows in the order of use, the least recent first; nil for anything but bytes that `encode` wrote. Uses `bytes` as scratch.
    static func decode(_ bytes: UnsafeMutableRawBufferPointer) -> [IndexRow]? {
        guard let count = IndexFileLayout.count(forLength: bytes.count) else { return nil }
        let layout = IndexFileLayout(count: count)
        for piece in layout.pieces {
            guard bytes[piece.offset..<piece.offset + piece.bytes.count].elementsEqual(piece.bytes) else { return nil }
        }
        let stored = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: layout.checksumOffset, as: UInt64.self))
        bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
        guard Checksum.of(UnsafeRawBufferPointer(bytes)) == stored else { return nil }
        let none = RecordName(key: KeyName(resource: 0, low: 0), slot: 0)
        var rows = [IndexRow](repeating: IndexRow(none, allocated: 0, accessedAt: 0), count: count)
        for (column, start) in zip(columns, layout.columnOffsets) {
            for number in 0..<count {
                var value: UInt64 = 0
                withUnsafeMutableBytes(of: &value) {
                    $0.copyBytes(from: bytes[(start + number * column.width)...].prefix(column.width))
                }
                column.set(&rows[number], UInt64(littleEndian: value))
            }
        }
        return rows.allSatisfy { $0.slot < RecordName.slots && $0.blocks <= maximumBlocks } ? rows : nil
    }

    // MARK: The file

    package enum Loading {
        /// - Parameter savedAt: when the file was written, in nanoseconds since 1970.
        case loaded([IndexRow], savedAt: Int)
        case missing
        case rejected
        /// The file is there, and the system does not let it be read now: nothing is known of it.
        case unreadable
    }

    package func load() -> Loading {
        do throws(Errno) {
            let (file, status) = try files.openRegular(paths.index, O_RDONLY, owner: owner)
            defer { files.closeQuietly(file) }
            // The first bytes show whether the rest, however long, is worth reading.
            guard let count = IndexFileLayout.count(forLength: status.size),
                let first = IndexFileLayout(count: count).pieces.first,
                try files.bytes(of: file, at: 0, count: first.bytes.count) == first.bytes
            else { return .rejected }
            var bytes = try files.bytes(of: file, at: 0, count: status.size)
            guard let rows = bytes.withUnsafeMutableBytes({ Self.decode($0) }) else { return .rejected }
            return .loaded(rows, savedAt: status.modified)
        } catch {
            if error.isMissing { return .missing }
            return error.isNotPermitted ? .unreadable : .rejected
        }
    }

    /// Writes the whole index under another name, and renames it.
    /// - Parameter rows: in the order of use, the least recent first.
    func save(_ rows: [IndexRow]) throws(Errno) {
        let bytes = Self.encode(rows)
        try? files.unlink(paths.newIndex)
        let file = try files.openRegular(paths.newIndex, O_WRONLY | O_CREAT | O_EXCL).file
        do throws(Errno) {
            do throws(Errno) {
                try files.writeFully(file, bytes)
            } catch {
                files.closeQuietly(file)
                throw error
            }
            try files.close(file)
            try files.rename(paths.newIndex, to: paths.index)
        } catch {
            try? files.unlink(paths.newIndex)
            throw error
        }
    }
}

import Foundation

/// The file `index.plist`: the rows of the index as a binary property list (`OnDiskFormat.md`). It is a hint: a row
/// counts only if the record's file proves that the row describes it. See `DiskIndex.fill`.
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

    // MARK: Bytes

    /// - Parameter forEachRow: calls its argument with each row in the order of use, the least recent first.
    static func encode(count: Int, _ forEachRow: (_ put: (IndexRow) -> Void) -> Void) -> [UInt8] {
        let layout = IndexFileLayout(count: count)
        return [UInt8](unsafeUninitializedCapacity: layout.length) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            var index = 0
            forEachRow { row in
                row.write(to: bytes, layout, at: index)
                index += 1
            }
            for piece in layout.fixed {
                UnsafeMutableRawBufferPointer(rebasing: bytes[piece.offset...]).copyBytes(from: piece.bytes)
            }
            layout.writeReferences(to: bytes)
            bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
            let sum = Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<layout.length]))
            bytes.storeBytes(of: sum.littleEndian, toByteOffset: layout.checksumOffset, as: UInt64.self)
            count = layout.length
        }
    }

    /// The rows in the order of use, the least recent first; nil unless they are the bytes of such a file. Changes
    /// `bytes` while it works.
    ///
    /// References and offsets of the numbers are not read, since the places of the numbers are known.
    static func decode(_ bytes: UnsafeMutableRawBufferPointer) -> [IndexRow]? {
        guard let count = IndexFileLayout.count(forLength: bytes.count) else { return nil }
        let layout = IndexFileLayout(count: count)
        guard layout.fixed.allSatisfy({ bytes[$0.offset...].starts(with: $0.bytes) }) else { return nil }
        let stored = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: layout.checksumOffset, as: UInt64.self))
        bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
        guard Checksum.of(UnsafeRawBufferPointer(bytes)) == stored else { return nil }
        var packed = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[layout.rowsOffset..<layout.timesOffset]))
        var rows: [IndexRow] = []
        rows.reserveCapacity(count)
        for index in 0..<count {
            guard let row = IndexRow(&packed, UnsafeRawBufferPointer(bytes), layout, at: index) else { return nil }
            rows.append(row)
        }
        return rows
    }

    // MARK: The file

    package enum Loading {
        /// - Parameter savedAt: when the file was written, in nanoseconds since 1970.
        case loaded([IndexRow], savedAt: Int64)
        case missing
        case rejected
        /// The file exists, but the process has too little to read it now.
        case unreadable
        /// The file may not be read: its mode forbids it, or the device is locked.
        case notPermitted
    }

    package func load() -> Loading {
        do throws(Errno) {
            let (file, status) = try files.openRegular(paths.index, O_RDONLY, owner: owner)
            defer { files.closeQuietly(file) }
            // The first bytes show whether it is worth reading the rest, which may be long.
            guard let count = IndexFileLayout.count(forLength: status.size),
                case let start = IndexFileLayout(count: count).start,
                try files.bytes(of: file, at: 0, count: start.count) == start
            else { return .rejected }
            var bytes = try files.bytes(of: file, at: 0, count: status.size)
            guard let rows = bytes.withUnsafeMutableBytes({ Self.decode($0) }) else { return .rejected }
            return .loaded(rows, savedAt: status.modified)
        } catch {
            if error.isMissing { return .missing }
            if error.isNotPermitted { return .notPermitted }
            return error.isOutOfResources ? .unreadable : .rejected
        }
    }

    /// Writes the whole index to a new file, which then replaces the old one.
    func save(_ bytes: [UInt8]) throws(Errno) {
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

extension IndexRow {
    @inline(__always)
    fileprivate func write(to bytes: UnsafeMutableRawBufferPointer, _ layout: IndexFileLayout, at index: Int) {
        var offset = layout.rowsOffset + index * IndexFileLayout.packedLength
        func append<Number: FixedWidthInteger>(_ number: Number) {
            bytes.storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
            offset += MemoryLayout<Number>.size
        }
        append(key.resource)
        append(key.low)
        append(hostHash)
        append(pathLevels.bits)
        append(tagFilter.bits)
        append(varyHash)
        append(modified)
        append(storedAt)
        append(slot)
        append(flags.rawValue)
        // Integers of four and of eight bytes.
        let time = layout.timesOffset + index * IndexFileLayout.timeLength
        bytes.storeBytes(of: 0x12, toByteOffset: time, as: UInt8.self)
        bytes.storeBytes(of: accessedAt.bigEndian, toByteOffset: time + 1, as: UInt32.self)
        let size = layout.sizesOffset + index * IndexFileLayout.sizeLength
        bytes.storeBytes(of: 0x13, toByteOffset: size, as: UInt8.self)
        let length = UInt64(blocks) * UInt64(Self.blockSize)
        bytes.storeBytes(of: length.bigEndian, toByteOffset: size + 1, as: UInt64.self)
    }

    /// Nil if the bytes are not a valid row.
    fileprivate init?(
        _ packed: inout ByteReader, _ bytes: UnsafeRawBufferPointer, _ layout: IndexFileLayout, at index: Int
    ) {
        guard
            let resource = packed.number(UInt64.self),
            let low = packed.number(UInt64.self),
            let hostHash = packed.number(UInt32.self),
            let levels = packed.number(UInt32.self),
            let tags = packed.number(UInt32.self),
            let varyHash = packed.number(UInt32.self),
            let modified = packed.number(Int64.self),
            let storedAt = packed.number(UInt32.self),
            let slot = packed.number(UInt8.self),
            let flags = packed.number(UInt8.self)
        else { return nil }
        let time = layout.timesOffset + index * IndexFileLayout.timeLength + 1
        let size = layout.sizesOffset + index * IndexFileLayout.sizeLength + 1
        let accessedAt = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: time, as: UInt32.self))
        let length = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: size, as: UInt64.self))
        let (blocks, rest) = length.quotientAndRemainder(dividingBy: UInt64(Self.blockSize))
        guard slot < RecordName.slots, rest == 0, blocks <= UInt64(Self.maximumBlocks) else { return nil }
        self.init(
            key: KeyName(resource: resource, low: low),
            hostHash: hostHash,
            tagFilter: TagFilter(bits: tags),
            varyHash: varyHash,
            blocks: UInt32(blocks),
            modified: modified,
            accessedAt: accessedAt,
            storedAt: storedAt,
            slot: slot,
            flags: Flags(rawValue: flags),
            pathLevels: PathLevels(bits: levels))
    }
}

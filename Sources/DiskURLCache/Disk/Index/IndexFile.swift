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

    /// The bytes of a file without its checksum: whoever calls this holds the lock of the rows.
    /// - Parameter forEachRow: calls its argument with each row in the order of use, the least recent first.
    @inline(__always)
    static func unsealed(count: Int, _ forEachRow: (_ put: (IndexRow) -> Void) -> Void) -> [UInt8] {
        let layout = IndexFileLayout(count: count)
        return [UInt8](unsafeUninitializedCapacity: layout.length) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            func put(_ piece: [UInt8], at offset: Int) {
                UnsafeMutableRawBufferPointer(rebasing: bytes[offset...]).copyBytes(from: piece)
            }
            put(layout.start, at: 0)
            bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
            put(layout.middle, at: layout.checksumOffset + 8)
            var offset = layout.rowsOffset
            forEachRow { $0.write(to: bytes, at: &offset) }
            put(layout.end, at: layout.endOffset)
            count = layout.length
        }
    }

    /// Adds the checksum.
    static func seal(_ bytes: inout [UInt8]) {
        let offset = IndexFileLayout(count: 0).checksumOffset
        bytes.withUnsafeMutableBytes { bytes in
            let sum = Checksum.of(UnsafeRawBufferPointer(bytes))
            bytes.storeBytes(of: sum.littleEndian, toByteOffset: offset, as: UInt64.self)
        }
    }

    /// The rows in the order of use, the least recent first; nil unless they are the bytes of such a file. Changes
    /// `bytes` while it works.
    static func decode(_ bytes: UnsafeMutableRawBufferPointer) -> [IndexRow]? {
        guard let count = IndexFileLayout.count(forLength: bytes.count) else { return nil }
        let layout = IndexFileLayout(count: count)
        // The eight bytes of the checksum lie between start and middle.
        guard bytes.starts(with: layout.start) else { return nil }
        guard bytes[(layout.start.count + 8)...].starts(with: layout.middle) else { return nil }
        guard bytes[layout.endOffset...].elementsEqual(layout.end) else { return nil }
        let stored = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: layout.checksumOffset, as: UInt64.self))
        bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
        guard Checksum.of(UnsafeRawBufferPointer(bytes)) == stored else { return nil }
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[layout.rowsOffset..<layout.endOffset]))
        var rows: [IndexRow] = []
        rows.reserveCapacity(count)
        while let row = IndexRow(&reader) { rows.append(row) }
        return rows.count == count ? rows : nil
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
    /// - Parameter unsealed: its bytes without the checksum.
    func save(_ unsealed: consuming [UInt8]) throws(Errno) {
        var bytes = unsealed
        Self.seal(&bytes)
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
    fileprivate func write(to bytes: UnsafeMutableRawBufferPointer, at offset: inout Int) {
        func append<Number: FixedWidthInteger>(_ number: Number) {
            bytes.storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
            offset += MemoryLayout<Number>.size
        }
        append(key.resource)
        append(key.low)
        append(hostHash)
        append(tagFilter.bits)
        append(varyHash)
        append(blocks)
        append(modified)
        append(accessedAt)
        append(storedAt)
        append(slot)
        append(flags.rawValue)
    }

    /// Nil at the end, and if the bytes are not a valid row.
    fileprivate init?(_ reader: inout ByteReader) {
        guard
            let resource = reader.number(UInt64.self),
            let low = reader.number(UInt64.self),
            let hostHash = reader.number(UInt32.self),
            let tags = reader.number(UInt32.self),
            let varyHash = reader.number(UInt32.self),
            let blocks = reader.number(UInt32.self),
            let modified = reader.number(Int64.self),
            let accessedAt = reader.number(UInt32.self),
            let storedAt = reader.number(UInt32.self),
            let slot = reader.number(UInt8.self),
            let flags = reader.number(UInt8.self)
        else { return nil }
        guard slot < RecordName.slots, blocks <= IndexRow.maximumBlocks else { return nil }
        self.init(
            key: KeyName(resource: resource, low: low),
            hostHash: hostHash,
            tagFilter: TagFilter(bits: tags),
            varyHash: varyHash,
            blocks: blocks,
            modified: modified,
            accessedAt: accessedAt,
            storedAt: storedAt,
            slot: slot,
            flags: Flags(rawValue: flags))
    }
}

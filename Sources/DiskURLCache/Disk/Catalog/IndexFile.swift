/// The index as bytes of a binary property list; see `IndexFileLayout` and `OnDiskFormat.md`.
///
/// Rows lie in the order of use, the least recent first.
enum IndexFile {
    static func encode(_ index: DiskIndex, snapshot: UInt64) -> [UInt8] {
        let layout = IndexFileLayout(count: index.count)
        return [UInt8](unsafeUninitializedCapacity: layout.length) { buffer, initializedCount in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            for piece in layout.pieces {
                UnsafeMutableRawBufferPointer(rebasing: bytes[piece.offset...]).copyBytes(from: piece.bytes)
            }
            bytes.storeBytes(of: snapshot.bigEndian, toByteOffset: layout.snapshotOffset, as: UInt64.self)
            bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
            let starts = layout.columnOffsets
            var number = 0
            index.forEachLeastRecentFirst { row in
                let name = starts[0] + number * 16
                bytes.storeBytes(of: row.key.high.bigEndian, toByteOffset: name, as: UInt64.self)
                bytes.storeBytes(of: row.key.low.bigEndian, toByteOffset: name + 8, as: UInt64.self)
                func store(_ value: UInt32, _ column: Int) {
                    bytes.storeBytes(of: value.littleEndian, toByteOffset: starts[column] + number * 4, as: UInt32.self)
                }
                store(row.keyCheck, 1)
                store(row.uriHash, 2)
                store(row.hostHash, 3)
                store(row.tagFilter.bits, 4)
                store(row.varyHash, 5)
                store(row.blocks, 6)
                store(row.accessedAt, 7)
                store(row.storedAt, 8)
                bytes[starts[9] + number] = row.slot
                bytes[starts[10] + number] = row.flags.intersection(.saved).rawValue
                number += 1
                return true
            }
            let sum = Checksum.of(UnsafeRawBufferPointer(bytes))
            bytes.storeBytes(of: sum.littleEndian, toByteOffset: layout.checksumOffset, as: UInt64.self)
            initializedCount = layout.length
        }
    }

    /// Whether a file may be an index of ours, by its length and its first bytes: asked before the rest is read.
    static func mayBeIndex(_ start: UnsafeRawBufferPointer, length: Int) -> Bool {
        guard let count = IndexFileLayout.count(forLength: length),
            let first = IndexFileLayout(count: count).pieces.first
        else { return false }
        return start.starts(with: first.bytes)
    }

    // One terabyte: no record is that large, and an index that says so would have good records evicted.
    static let maximumBlocks: UInt32 = 1 << 31

    /// Nil for anything but bytes that `encode` wrote. Uses `bytes` as scratch.
    static func decode(_ bytes: UnsafeMutableRawBufferPointer) -> (index: DiskIndex, snapshot: UInt64)? {
        guard let count = IndexFileLayout.count(forLength: bytes.count) else { return nil }
        let layout = IndexFileLayout(count: count)
        for piece in layout.pieces {
            guard bytes[piece.offset..<piece.offset + piece.bytes.count].elementsEqual(piece.bytes) else { return nil }
        }
        let stored = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: layout.checksumOffset, as: UInt64.self))
        bytes.storeBytes(of: 0, toByteOffset: layout.checksumOffset, as: UInt64.self)
        guard Checksum.of(UnsafeRawBufferPointer(bytes)) == stored else { return nil }
        let snapshot = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: layout.snapshotOffset, as: UInt64.self))

        var index = DiskIndex()
        index.prepare(for: count)
        let starts = layout.columnOffsets
        for number in 0..<count {
            func word(_ place: Int) -> UInt64 {
                UInt64(
                    bigEndian: bytes.loadUnaligned(fromByteOffset: starts[0] + number * 16 + place * 8, as: UInt64.self)
                )
            }
            func value(_ column: Int) -> UInt32 {
                UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: starts[column] + number * 4, as: UInt32.self))
            }
            let slot = bytes[starts[9] + number]
            guard slot < RecordName.slots else { return nil }
            let name = RecordName(key: KeyName(high: word(0), low: word(1)), slot: slot)
            var row = IndexRow(name, allocated: 0, accessedAt: value(7))
            row.keyCheck = value(1)
            row.uriHash = value(2)
            row.hostHash = value(3)
            row.tagFilter = TagFilter(bits: value(4))
            row.varyHash = value(5)
            row.blocks = value(6)
            guard row.blocks <= maximumBlocks else { return nil }
            row.storedAt = value(8)
            row.flags = IndexRow.Flags(rawValue: bytes[starts[10] + number]).intersection(.saved)
            index.append(row)
        }
        return (index, snapshot)
    }
}

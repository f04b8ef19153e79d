/// The index of a directory of packs as bytes: a hint, made again from the packs when it is missing or damaged. It says how far it
/// covers each pack; what was appended later is read from the pack itself, so no journal of stores is needed.
///
/// A first version: 32 bytes of header, 24 for each pack, 56 for each row, the least recently used row first.
enum PackIndexFile {
    struct Pack {
        var number: UInt64
        var secret: UInt64
        /// Bytes of the pack whose records the rows list.
        var covered: Int
    }

    private static let magic: UInt64 = 0x3158_4449_4B41_5044
    private static let headLength = 32
    private static let packLength = 24
    static let rowLength = 56

    /// - Parameter place: a pack's place in the list, by that in the rows.
    static func encode(_ index: DiskIndex, _ packs: [Pack], place: (UInt16) -> UInt16) -> [UInt8] {
        let length = headLength + packs.count * packLength + index.count * rowLength
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, initializedCount in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            var end = 0
            func put<Number: FixedWidthInteger>(_ number: Number) {
                bytes.storeBytes(of: number.littleEndian, toByteOffset: end, as: Number.self)
                end += MemoryLayout<Number>.size
            }
            put(magic)
            put(UInt64(index.count))
            put(UInt64(packs.count))
            put(UInt64(0))
            for pack in packs {
                put(pack.number)
                put(pack.secret)
                put(UInt64(pack.covered))
            }
            index.forEachLeastRecentFirst { row in
                put(row.key.high)
                put(row.key.low)
                put(row.keyCheck)
                put(row.uriHash)
                put(row.hostHash)
                put(row.tagFilter.bits)
                put(row.varyHash)
                put(row.blocks)
                put(row.accessedAt)
                put(row.storedAt)
                put(row.slot)
                put(row.flags.intersection([.pinned, .packed]).rawValue)
                put(place(row.pack))
                put(row.offset)
                return true
            }
            let sum = Checksum.of(UnsafeRawBufferPointer(bytes))
            bytes.storeBytes(of: sum.littleEndian, toByteOffset: 24, as: UInt64.self)
            initializedCount = length
        }
    }

    /// Nil for anything but bytes that `encode` wrote. A row's pack is its place in the list of packs.
    static func decode(_ bytes: UnsafeMutableRawBufferPointer) -> (rows: Int, packs: [Pack], row: (Int) -> IndexRow)? {
        guard bytes.count >= headLength else { return nil }
        func number<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Number {
            Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
        }
        let (rows, count) = (number(8, UInt64.self), number(16, UInt64.self))
        guard number(0, UInt64.self) == magic, rows <= 1 << 26, count <= UInt64(UInt16.max),
            bytes.count == headLength + Int(count) * packLength + Int(rows) * rowLength
        else { return nil }
        let stored = number(24, UInt64.self)
        bytes.storeBytes(of: 0, toByteOffset: 24, as: UInt64.self)
        guard Checksum.of(UnsafeRawBufferPointer(bytes)) == stored else { return nil }
        let packs = (0..<Int(count)).map { index in
            let start = headLength + index * packLength
            return Pack(
                number: number(start, UInt64.self), secret: number(start + 8, UInt64.self),
                covered: Int(truncatingIfNeeded: number(start + 16, UInt64.self)))
        }
        let start = headLength + Int(count) * packLength
        return (
            Int(rows), packs,
            { index in
                let place = start + index * rowLength
                let key = KeyName(high: number(place, UInt64.self), low: number(place + 8, UInt64.self))
                var row = IndexRow(
                    RecordName(key: key, slot: number(place + 48, UInt8.self) & 7), allocated: 0,
                    accessedAt: number(place + 40, UInt32.self))
                row.keyCheck = number(place + 16, UInt32.self)
                row.uriHash = number(place + 20, UInt32.self)
                row.hostHash = number(place + 24, UInt32.self)
                row.tagFilter = TagFilter(bits: number(place + 28, UInt32.self))
                row.varyHash = number(place + 32, UInt32.self)
                row.blocks = number(place + 36, UInt32.self)
                row.storedAt = number(place + 44, UInt32.self)
                row.flags = IndexRow.Flags(rawValue: number(place + 49, UInt8.self)).intersection([.pinned, .packed])
                row.pack = number(place + 50, UInt16.self)
                row.offset = number(place + 52, UInt32.self)
                return row
            }
        )
    }
}

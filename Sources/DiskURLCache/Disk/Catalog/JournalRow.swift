/// One change of the index, as the journal and the file of secondary processes hold it: 68 bytes with a check of their own.
struct JournalRow: Sendable, Hashable {
    enum Kind: UInt8, Sendable {
        /// The row was added, changed or used: it is now this one, and the most recently used one.
        case put = 1
        case remove = 2
        /// Everything was removed; the row itself has no meaning.
        case clear = 3
    }

    var kind: Kind
    var row: IndexRow

    static let length = 68

    static let clear = JournalRow(
        kind: .clear,
        row: IndexRow(RecordName(key: KeyName(high: 0, low: 0), slot: 0), allocated: 0, accessedAt: 0))

    /// `seed` binds the row to the snapshot that it continues, so that rows of an older journal are not taken for it.
    func encode(to writer: inout ByteWriter, seed: UInt64) {
        let start = writer.count
        writer.append(kind.rawValue)
        writer.append(UInt8(0))
        writer.append(row.key.high.bigEndian)
        writer.append(row.key.low.bigEndian)
        writer.append(row.keyCheck)
        writer.append(row.uriHash)
        writer.append(row.hostHash)
        writer.append(row.tagFilter.bits)
        writer.append(row.varyHash)
        writer.append(row.blocks)
        writer.append(row.accessedAt)
        writer.append(row.storedAt)
        writer.append(row.slot)
        writer.append(row.flags.intersection(.saved).rawValue)
        writer.append(row.lastUse)
        let sum = writer.withUnsafeBytes(from: start) { Checksum.of($0, seed: seed) }
        writer.append(sum)
    }

    static func decode(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> JournalRow? {
        var reader = ByteReader(bytes)
        guard bytes.count == length,
            let kind = reader.number(UInt8.self).flatMap(Kind.init(rawValue:)), reader.number(UInt8.self) == 0,
            let high = reader.number(UInt64.self), let low = reader.number(UInt64.self),
            let keyCheck = reader.number(UInt32.self), let uriHash = reader.number(UInt32.self),
            let hostHash = reader.number(UInt32.self), let tags = reader.number(UInt32.self),
            let varyHash = reader.number(UInt32.self), let blocks = reader.number(UInt32.self),
            blocks <= IndexFile.maximumBlocks,
            let accessedAt = reader.number(UInt32.self), let storedAt = reader.number(UInt32.self),
            let slot = reader.number(UInt8.self), slot < RecordName.slots, let flags = reader.number(UInt8.self),
            let lastUse = reader.number(UInt64.self), let sum = reader.number(UInt64.self),
            sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<(length - 8)]), seed: seed)
        else { return nil }
        let name = RecordName(key: KeyName(high: high.bigEndian, low: low.bigEndian), slot: slot)
        var row = IndexRow(name, allocated: 0, accessedAt: accessedAt)
        row.keyCheck = keyCheck
        row.uriHash = uriHash
        row.hostHash = hostHash
        row.tagFilter = TagFilter(bits: tags)
        row.varyHash = varyHash
        row.blocks = blocks
        row.storedAt = storedAt
        row.flags = IndexRow.Flags(rawValue: flags).intersection(.saved)
        row.lastUse = lastUse
        return JournalRow(kind: kind, row: row)
    }

    /// Makes the change in an index that is being loaded.
    func apply(to index: inout DiskIndex) {
        switch kind {
        case .put: index.append(row)
        case .remove: index.remove(row.name)
        case .clear: index = DiskIndex()
        }
    }

    /// The rows up to the first that is not whole, and how many bytes they take.
    static func decodeAll(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> (rows: [JournalRow], length: Int) {
        var rows: [JournalRow] = []
        var position = 0
        while position + length <= bytes.count,
            let row = decode(UnsafeRawBufferPointer(rebasing: bytes[position..<position + length]), seed: seed)
        {
            rows.append(row)
            position += length
        }
        return (rows, position)
    }
}

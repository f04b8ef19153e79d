/// One change of the index, as the journal and the guests' file hold it: 72 bytes with a check of their own.
struct JournalRow: Sendable, Hashable {
    enum Kind: UInt8, Sendable {
        case store = 1
        case remove = 2
        case touch = 3
        case clear = 4
    }

    var kind: Kind
    var row: IndexRow

    static let length = 72

    /// Everything went: the row says nothing.
    static let clear = JournalRow(
        kind: .clear, row: IndexRow(digest: KeyDigest(words: .zero), slot: 0, allocated: 0, accessedAt: 0))

    /// `seed` binds the row to the snapshot that it continues, so that rows of an older journal are not taken for it.
    func encode(to writer: inout ByteWriter, seed: UInt64) {
        let start = writer.count
        writer.append(kind.rawValue)
        writer.append(UInt8(0))
        writer.append(row.digest)
        writer.append(row.uriHash)
        writer.append(row.hostHash)
        writer.append(row.tagFilter.bits)
        writer.append(row.varyHash)
        writer.append(row.blocks)
        writer.append(row.accessedAt)
        writer.append(row.storedAt)
        writer.append(row.slot)
        writer.append(row.flags.intersection(.saved).rawValue)
        let sum = writer.withUnsafeBytes(from: start) { Checksum.of($0, seed: seed) }
        writer.append(sum)
    }

    static func decode(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> JournalRow? {
        var reader = ByteReader(bytes)
        guard bytes.count == length,
            let kind = reader.number(UInt8.self).flatMap(Kind.init(rawValue:)), reader.number(UInt8.self) == 0,
            let digest = reader.digest(), let uriHash = reader.number(UInt32.self),
            let hostHash = reader.number(UInt32.self), let tags = reader.number(UInt32.self),
            let varyHash = reader.number(UInt32.self), let blocks = reader.number(UInt32.self),
            blocks <= IndexFile.maximumBlocks,
            let accessedAt = reader.number(UInt32.self), let storedAt = reader.number(UInt32.self),
            let slot = reader.number(UInt8.self), slot < RecordName.slots, let flags = reader.number(UInt8.self),
            let sum = reader.number(UInt64.self),
            sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<(length - 8)]), seed: seed)
        else { return nil }
        var row = IndexRow(digest: digest, slot: slot, allocated: 0, accessedAt: accessedAt)
        row.uriHash = uriHash
        row.hostHash = hostHash
        row.tagFilter = TagFilter(bits: tags)
        row.varyHash = varyHash
        row.blocks = blocks
        row.storedAt = storedAt
        row.flags = IndexRow.Flags(rawValue: flags).intersection(.saved)
        return JournalRow(kind: kind, row: row)
    }

    /// Makes the change in an index.
    func apply(to index: inout DiskIndex) {
        switch kind {
        case .store: index.insert(row)
        case .remove: index.remove(row.digest, row.slot)
        case .touch:
            // Of this row only: the others of its key have rows of their own.
            guard var known = index.row(row.digest, row.slot) else { return }
            known.accessedAt = row.accessedAt
            index.insert(known)
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

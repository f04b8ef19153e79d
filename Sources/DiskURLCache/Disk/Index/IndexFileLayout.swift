/// Where everything lies in an index file of a given number of rows.
///
/// The file is a binary property list, readable by any tool for those: a dictionary of three numbers and twelve columns
/// of packed data. All its numbers are written in full width, so the count of rows alone decides every byte but the columns and
/// the checksum. A reader need not parse: it compares.
package struct IndexFileLayout {
    package static let rowLength = IndexFile.columns.reduce(0) { $0 + $1.width }
    static let version: UInt64 = 1
    /// 200 MB: more than a cache of small files on any disk of ours; bounds what a hostile file can make us allocate.
    static let maximumCount = 4 << 20

    /// Everything that the count decides, each piece with its place.
    private(set) var pieces: [(offset: Int, bytes: [UInt8])] = []
    /// Where each column's data starts.
    private(set) var columnOffsets: [Int] = []
    private(set) var checksumOffset = 0
    private(set) var length = 0

    private static let names = ["version", "count", "checksum"] + IndexFile.columns.map(\.name)
    private static let emptyLength = IndexFileLayout(count: 0).length

    /// The count of rows that gives a file its length; nil when none does.
    static func count(forLength length: Int) -> Int? {
        let rows = length - emptyLength
        guard rows >= 0, rows % rowLength == 0, rows / rowLength <= maximumCount else { return nil }
        return rows / rowLength
    }

    init(count: Int) {
        var objectOffsets: [Int] = []
        var fixed: [UInt8] = Array("bplist00".utf8)
        var fixedStart = 0
        func place() -> Int { fixedStart + fixed.count }
        func appendInteger(_ value: UInt64) {
            fixed.append(0x13)
            appendBigEndian(value, to: &fixed)
        }
        func skip(_ bytes: Int) {
            pieces.append((fixedStart, fixed))
            fixedStart += fixed.count + bytes
            fixed = []
        }

        // The dictionary, with one byte per reference: keys are objects 1 to 15, values 16 to 30.
        objectOffsets.append(place())
        // Fifteen pairs and more have their count in an integer of its own.
        fixed.append(contentsOf: [0xDF, 0x10, UInt8(Self.names.count)])
        fixed.append(contentsOf: (1...Self.names.count * 2).map { UInt8($0) })
        for name in Self.names {
            objectOffsets.append(place())
            fixed.append(0x50 | UInt8(name.utf8.count))
            fixed.append(contentsOf: name.utf8)
        }
        objectOffsets.append(place())
        appendInteger(Self.version)
        objectOffsets.append(place())
        appendInteger(UInt64(count))
        objectOffsets.append(place())
        fixed.append(0x48)
        checksumOffset = place()
        skip(8)
        for column in IndexFile.columns {
            objectOffsets.append(place())
            fixed.append(0x4F)
            appendInteger(UInt64(count * column.width))
            columnOffsets.append(place())
            skip(count * column.width)
        }
        let tableOffset = place()
        for offset in objectOffsets { appendBigEndian(UInt64(offset), to: &fixed) }
        // The trailer: six unused bytes, the widths of an offset and of a reference, and three numbers.
        fixed.append(contentsOf: [0, 0, 0, 0, 0, 0, 8, 1])
        for number in [objectOffsets.count, 0, tableOffset] { appendBigEndian(UInt64(number), to: &fixed) }
        length = place()
        pieces.append((fixedStart, fixed))
    }
}

private func appendBigEndian(_ value: UInt64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
}

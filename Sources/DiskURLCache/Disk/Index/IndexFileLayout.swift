/// The positions of everything in an index file with a given number of rows.
///
/// The file is a binary property list, readable by any tool for those: a dictionary of three numbers and the packed
/// rows. All its numbers have full width, so that the number of rows determines every byte except the rows and the
/// checksum. A reader does not have to parse; it compares.
package struct IndexFileLayout {
    /// The length of a row as `IndexRow.append` writes it.
    package static let rowLength = 50
    static let version: UInt64 = 1
    /// The limit of rows, which take 200 MB: more than any real cache has. It limits the memory that a hostile file can
    /// make the reader allocate.
    static let maximumCount = 4 << 20

    /// The fixed bytes before the checksum, between it and the rows, and after the rows.
    let start: [UInt8]
    let middle: [UInt8]
    let end: [UInt8]
    let rowsOffset: Int
    let endOffset: Int

    var checksumOffset: Int { start.count }
    var length: Int { endOffset + end.count }

    private static let emptyLength = IndexFileLayout(count: 0).length

    /// The number of rows in a file of this length; nil if no number gives this length.
    static func count(forLength length: Int) -> Int? {
        let rows = length - emptyLength
        guard rows >= 0, rows % rowLength == 0, rows / rowLength <= maximumCount else { return nil }
        return rows / rowLength
    }

    init(count: Int) {
        func bigEndian(_ number: Int) -> [UInt8] {
            let bytes = UInt64(number).bigEndian
            return withUnsafeBytes(of: bytes) { Array($0) }
        }
        var start = Array("bplist00".utf8)
        // The dictionary, with one byte per reference: keys are objects 1 to 4, values 5 to 8.
        var offsets = [start.count]
        start += [0xD4] + Array(1...8)
        for name in ["version", "count", "checksum", "rows"] {
            offsets.append(start.count)
            start += [0x50 | UInt8(name.utf8.count)] + Array(name.utf8)
        }
        for number in [Int(Self.version), count] {
            offsets.append(start.count)
            start += [0x13] + bigEndian(number)
        }
        // Data of 8 bytes, and data whose length follows.
        offsets += [start.count, start.count + 9]
        start.append(0x48)
        middle = [0x4F, 0x13] + bigEndian(count * Self.rowLength)
        rowsOffset = start.count + 8 + middle.count
        endOffset = rowsOffset + count * Self.rowLength
        // The trailer: six unused bytes, the widths of an offset and of a reference, and three numbers.
        let trailer: [UInt8] = [0, 0, 0, 0, 0, 0, 8, 1]
        end = offsets.flatMap(bigEndian) + trailer + [offsets.count, 0, endOffset].flatMap(bigEndian)
        self.start = start
    }
}

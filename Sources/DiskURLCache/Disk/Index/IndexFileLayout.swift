/// The positions of everything in an index file with a given number of rows.
///
/// The file is a binary property list, readable by any tool for those: a dictionary of three numbers, the array of the
/// times of use, the array of the sizes, and the packed rest of the rows. All its numbers have full width, so that the
/// number of rows determines where each byte lies. A reader does not have to parse.
package struct IndexFileLayout {
    /// The length of the packed part of a row, as `IndexFile` writes it.
    static let packedLength = 46
    /// The two numbers of a row, with the byte that tells the width of each.
    static let timeLength = 5
    static let sizeLength = 9
    /// All bytes that a row takes: for each number also its reference in the array and its place in the table of
    /// offsets, in four bytes each.
    package static let rowLength = packedLength + timeLength + sizeLength + 2 * (4 + 4)
    static let version: UInt64 = 3
    /// The limit of rows, which take 320 MB: more than any real cache has. It limits the memory that a hostile file can
    /// make the reader allocate.
    static let maximumCount = 4 << 20

    let count: Int
    /// The bytes before the checksum.
    let start: [UInt8]
    /// Everything else that does not depend on what is in the rows, but for the references and offsets of their
    /// numbers.
    let fixed: [(offset: Int, bytes: [UInt8])]
    /// Where the references to the times and to the sizes lie, and the offsets of both.
    private let references: (times: Int, sizes: Int)
    private let offsetsOfNumbers: Int
    /// The objects before the numbers of the arrays.
    private let objectCount: Int
    let rowsOffset: Int
    let timesOffset: Int
    let sizesOffset: Int
    let length: Int

    var checksumOffset: Int { start.count }

    private static let emptyLength = IndexFileLayout(count: 0).length

    /// The number of rows in a file of this length; nil if no number gives this length.
    static func count(forLength length: Int) -> Int? {
        let rows = length - emptyLength
        guard rows >= 0, rows % rowLength == 0, rows / rowLength <= maximumCount else { return nil }
        return rows / rowLength
    }

    init(count: Int) {
        func bigEndian<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
            withUnsafeBytes(of: number.bigEndian) { Array($0) }
        }
        func short(_ number: Int) -> [UInt8] { bigEndian(UInt32(truncatingIfNeeded: number)) }
        func long(_ number: Int) -> [UInt8] { bigEndian(UInt64(number)) }
        let names = ["version", "count", "checksum", "accessTimes", "sizes", "rows"]
        // The dictionary is object 0; then come the names, their values, and the numbers of the arrays.
        var start = Array("bplist00".utf8)
        var offsets = [start.count]
        start += [0xD0 | UInt8(names.count)] + (1...2 * names.count).flatMap(short)
        for name in names {
            offsets.append(start.count)
            start += [0x50 | UInt8(name.utf8.count)] + Array(name.utf8)
        }
        for number in [Int(Self.version), count] {
            offsets.append(start.count)
            start += [0x13] + long(number)
        }
        // Data of 8 bytes.
        offsets.append(start.count)
        start.append(0x48)

        // Two arrays and data, whose lengths follow.
        let array = [0xAF, 0x12] + short(count)
        let data = [0x4F, 0x13] + long(count * Self.packedLength)
        let times = start.count + 8
        let sizes = times + array.count + 4 * count
        let rows = sizes + array.count + 4 * count
        offsets += [times, sizes, rows]
        references = (times + array.count, sizes + array.count)
        rowsOffset = rows + data.count
        timesOffset = rowsOffset + count * Self.packedLength
        sizesOffset = timesOffset + count * Self.timeLength
        let table = sizesOffset + count * Self.sizeLength
        let offsetsOfObjects = offsets.flatMap(short)
        offsetsOfNumbers = table + offsetsOfObjects.count
        // The trailer: six unused bytes, the widths of an offset and of a reference, and three numbers.
        let trailer: [UInt8] =
            [0, 0, 0, 0, 0, 0, 4, 4] + [offsets.count + 2 * count, 0, table].flatMap(long)
        let end = offsetsOfNumbers + 2 * 4 * count
        fixed = [
            (0, start), (times, array), (sizes, array), (rows, data), (table, offsetsOfObjects), (end, trailer),
        ]
        length = end + trailer.count
        self.count = count
        self.start = start
        objectCount = offsets.count
    }

    /// Writes the references to the numbers of the arrays, and their offsets.
    func writeReferences(to bytes: UnsafeMutableRawBufferPointer) {
        func write(at offset: Int, from first: Int, by step: Int) {
            var number = UInt32(truncatingIfNeeded: first)
            for index in 0..<count {
                bytes.storeBytes(of: number.bigEndian, toByteOffset: offset + 4 * index, as: UInt32.self)
                number &+= UInt32(truncatingIfNeeded: step)
            }
        }
        write(at: references.times, from: objectCount, by: 1)
        write(at: references.sizes, from: objectCount + count, by: 1)
        write(at: offsetsOfNumbers, from: timesOffset, by: Self.timeLength)
        write(at: offsetsOfNumbers + 4 * count, from: sizesOffset, by: Self.sizeLength)
    }
}

import Foundation

/// Encodes and decodes the values of `userInfo`: a byte for the type, then the value. Depth and number of values are
/// limited, so that neither a caller nor a file can exhaust the stack or the memory.
enum PropertyValueCodec {
    static let maximumDepth = 32
    static let maximumCount = 65_536

    private enum Tag {
        static let string: UInt8 = 1
        static let integer: UInt8 = 2
        static let real: UInt8 = 3
        static let no: UInt8 = 4
        static let yes: UInt8 = 5
        static let date: UInt8 = 6
        static let data: UInt8 = 7
        static let array: UInt8 = 8
        static let dictionary: UInt8 = 9
    }

    /// False if the value exceeds the limits; then the bytes written so far are useless.
    static func write(_ dictionary: [String: PropertyValue], to writer: inout ByteWriter) -> Bool {
        var budget = maximumCount
        return write(dictionary, to: &writer, depth: 0, &budget)
    }

    static func readDictionary(from reader: inout ByteReader) -> [String: PropertyValue]? {
        var budget = maximumCount
        return readDictionary(from: &reader, depth: 0, &budget)
    }

    private static func write(
        _ dictionary: [String: PropertyValue], to writer: inout ByteWriter, depth: Int, _ budget: inout Int
    ) -> Bool {
        writer.append(UInt32(clamping: dictionary.count))
        // Sorted, so that equal entries have equal bytes.
        for (name, value) in dictionary.sorted(by: { $0.key < $1.key }) {
            writer.append(name)
            guard write(value, to: &writer, depth: depth + 1, &budget) else { return false }
        }
        return true
    }

    private static func write(
        _ value: PropertyValue, to writer: inout ByteWriter, depth: Int, _ budget: inout Int
    ) -> Bool {
        budget -= 1
        guard depth <= maximumDepth, budget >= 0, writer.count <= MetadataCodec.maximumLength else {
            return false
        }
        switch value {
        case .string(let string):
            writer.append(Tag.string)
            writer.append(string)
        case .integer(let integer):
            writer.append(Tag.integer)
            writer.append(integer)
        case .real(let real):
            writer.append(Tag.real)
            writer.append(real)
        case .boolean(let boolean):
            writer.append(boolean ? Tag.yes : Tag.no)
        case .date(let date):
            writer.append(Tag.date)
            writer.append(date.timeIntervalSinceReferenceDate)
        case .data(let data):
            writer.append(Tag.data)
            writer.append(UInt32(clamping: data.count))
            data.withUnsafeBytes { writer.append($0) }
        case .array(let values):
            writer.append(Tag.array)
            writer.append(UInt32(clamping: values.count))
            for value in values {
                guard write(value, to: &writer, depth: depth + 1, &budget) else { return false }
            }
        case .dictionary(let dictionary):
            writer.append(Tag.dictionary)
            return write(dictionary, to: &writer, depth: depth, &budget)
        }
        return true
    }

    private static func readDictionary(
        from reader: inout ByteReader, depth: Int, _ budget: inout Int
    ) -> [String: PropertyValue]? {
        let pairs = reader.list(5) { reader -> (String, PropertyValue)? in
            guard let name = reader.string() else { return nil }
            return read(from: &reader, depth: depth + 1, &budget).map { (name, $0) }
        }
        return pairs.map { Dictionary($0) { $1 } }
    }

    private static func read(from reader: inout ByteReader, depth: Int, _ budget: inout Int) -> PropertyValue? {
        budget -= 1
        guard depth <= maximumDepth, budget >= 0, let tag = reader.number(UInt8.self) else { return nil }
        switch tag {
        case Tag.string: return reader.string().map(PropertyValue.string)
        case Tag.integer: return reader.number(Int64.self).map(PropertyValue.integer)
        case Tag.real: return reader.double().map(PropertyValue.real)
        case Tag.no: return .boolean(false)
        case Tag.yes: return .boolean(true)
        case Tag.date: return reader.double().map { .date(Date(timeIntervalSinceReferenceDate: $0)) }
        case Tag.data: return reader.stringBytes().map { .data(Data($0)) }
        case Tag.array:
            return reader.list(1) { read(from: &$0, depth: depth + 1, &budget) }.map(PropertyValue.array)
        case Tag.dictionary: return readDictionary(from: &reader, depth: depth, &budget).map(PropertyValue.dictionary)
        default: return nil
        }
    }
}

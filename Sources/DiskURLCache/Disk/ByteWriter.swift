import Foundation

/// Appends numbers and strings in the format's form: little-endian, lengths before contents.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    init(capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
    }

    mutating func append<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ number: Double) {
        append(number.bitPattern)
    }

    mutating func append(_ raw: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: raw)
    }

    /// A 32-bit length, then UTF-8.
    mutating func append(_ string: String) {
        var string = string
        string.withUTF8 {
            append(UInt32(clamping: $0.count))
            bytes.append(contentsOf: $0)
        }
    }

    mutating func append(optional string: String?) {
        append(UInt8(string == nil ? 0 : 1))
        if let string { append(string) }
    }

    mutating func append(_ digest: KeyDigest) {
        for word in 0..<4 { append(digest.words[word].bigEndian) }
    }

    mutating func replace<Number: FixedWidthInteger>(at offset: Int, with number: Number) {
        withUnsafeBytes(of: number.littleEndian) {
            bytes.replaceSubrange(offset..<offset + MemoryLayout<Number>.size, with: $0)
        }
    }
}

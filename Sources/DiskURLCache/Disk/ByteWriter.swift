import Foundation

/// Appends numbers and strings in the format's form: little-endian, lengths before contents.
///
/// An array that is appended to piece by piece spends ten times as long on each piece as the piece takes: here the bytes go to
/// their place in room that was made before.
struct ByteWriter {
    private var room: [UInt8]
    private(set) var count = 0

    /// - Parameter start: how many bytes of zero to begin with.
    init(capacity: Int = 0, leaving start: Int = 0) {
        room = [UInt8](repeating: 0, count: max(capacity, start))
        count = start
    }

    /// What was written, without a copy.
    consuming func finish() -> [UInt8] {
        room.removeLast(room.count - count)
        return room
    }

    func withUnsafeBytes<Result>(from start: Int = 0, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        room.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start..<count])) }
    }

    /// Calls with the place of the next bytes.
    @inline(__always)
    private mutating func place(_ length: Int, _ body: (UnsafeMutableRawBufferPointer) -> Void) {
        if count + length > room.count { grow(length) }
        room.withUnsafeMutableBytes { body(UnsafeMutableRawBufferPointer(rebasing: $0[count..<count + length])) }
        count += length
    }

    @inline(never)
    private mutating func grow(_ length: Int) {
        let larger = max(count + length, room.count * 2)
        room.append(contentsOf: repeatElement(0, count: larger - room.count))
    }

    mutating func append<Number: FixedWidthInteger>(_ number: Number) {
        place(MemoryLayout<Number>.size) { $0.storeBytes(of: number.littleEndian, as: Number.self) }
    }

    mutating func append(_ number: Double) {
        append(number.bitPattern)
    }

    mutating func append(_ raw: UnsafeRawBufferPointer) {
        place(raw.count) { $0.copyMemory(from: raw) }
    }

    /// A 32-bit length, then UTF-8.
    mutating func append(_ string: String) {
        var string = string
        string.withUTF8 {
            append(UInt32(clamping: $0.count))
            append(UnsafeRawBufferPointer($0))
        }
    }

    /// The same for a string whose bytes are wanted; false, and nothing written, for another.
    mutating func append(_ string: String, where isWanted: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        var string = string
        return string.withUTF8 {
            let bytes = UnsafeRawBufferPointer($0)
            guard isWanted(bytes) else { return false }
            append(UInt32(clamping: bytes.count))
            append(bytes)
            return true
        }
    }

    mutating func append(optional string: String?) {
        append(UInt8(string == nil ? 0 : 1))
        if let string { append(string) }
    }

    mutating func append(_ digest: KeyDigest) {
        for word in 0..<4 { append(digest.words[word].bigEndian) }
    }
}

import Foundation

/// Appends numbers and strings in the format's form: little-endian, lengths before contents.
///
/// Appending to an array piece by piece takes ten times as long as copying the bytes. So the room is made first, and
/// the bytes are copied into it.
struct ByteWriter {
    private var room: [UInt8]
    /// How many bytes were written.
    private(set) var count = 0

    init(capacity: Int = 0) {
        // `repeating` finds out the type of the array at run time, which takes 500 instructions.
        room = [UInt8](unsafeUninitializedCapacity: capacity) { bytes, count in
            bytes.initialize(repeating: 0)
            count = capacity
        }
    }

    /// The written bytes, without a copy.
    consuming func finish() -> [UInt8] {
        room.removeLast(room.count - count)
        return room
    }

    /// The written bytes from `offset` on.
    func withUnsafeBytes<Result>(from offset: Int = 0, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        room.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[offset..<count])) }
    }

    /// The written bytes, in place.
    mutating func withUnsafeMutableBytes<Result>(_ body: (UnsafeMutableRawBufferPointer) -> Result) -> Result {
        room.withUnsafeMutableBytes { body(UnsafeMutableRawBufferPointer(rebasing: $0[..<count])) }
    }

    /// Appends zeros, which the caller fills in later.
    mutating func skip(_ length: Int) {
        extend(length) { _ in }
    }

    /// Calls `body` with the room for the next `length` bytes.
    @inline(__always)
    private mutating func extend(_ length: Int, _ body: (UnsafeMutableRawBufferPointer) -> Void) {
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
        extend(MemoryLayout<Number>.size) { $0.storeBytes(of: number.littleEndian, as: Number.self) }
    }

    mutating func append(_ number: Double) {
        append(number.bitPattern)
    }

    mutating func append(_ raw: UnsafeRawBufferPointer) {
        extend(raw.count) { $0.copyMemory(from: raw) }
    }

    /// A 32-bit length, then UTF-8.
    mutating func append(_ string: String) {
        _ = append(string) { _ in true }
    }

    /// The same, but only if `isWanted` returns true for the string's bytes; otherwise nothing is written and the
    /// result is false.
    mutating func append(_ string: String, where isWanted: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        string.withBytes {
            let bytes = UnsafeRawBufferPointer($0)
            guard isWanted(bytes) else { return false }
            extend(4 + bytes.count) {
                $0.storeBytes(of: UInt32(clamping: bytes.count).littleEndian, as: UInt32.self)
                UnsafeMutableRawBufferPointer(rebasing: $0[4...]).copyMemory(from: bytes)
            }
            return true
        }
    }

    /// Appends strings in one piece: a record has some two dozen, and making room for each takes longer than copying.
    /// - Parameters:
    ///   - length: how many bytes `body` writes.
    ///   - body: writes through the cursor; gives false if it stopped.
    mutating func append(_ length: Int, _ body: (inout Cursor) -> Bool) -> Bool {
        var isDone = false
        extend(length) { room in
            var cursor = Cursor(room: room)
            isDone = body(&cursor)
        }
        return isDone
    }

    /// Where the next string or number is written. Traps if it does not fit.
    struct Cursor {
        private var room: UnsafeMutableRawBufferPointer

        init(room: UnsafeMutableRawBufferPointer) { self.room = room }

        mutating func append<Number: FixedWidthInteger>(_ number: Number) {
            room.storeBytes(of: number.littleEndian, as: Number.self)
            room = UnsafeMutableRawBufferPointer(rebasing: room[MemoryLayout<Number>.size...])
        }

        mutating func append(_ digest: KeyDigest) {
            digest.forEachWord { append($0.bigEndian) }
        }

        /// A 32-bit length, then UTF-8. Writes nothing, and gives false, unless `isWanted`.
        @inline(__always)
        mutating func append(_ string: String, where isWanted: (UnsafeRawBufferPointer) -> Bool) -> Bool {
            string.withBytes {
                let bytes = UnsafeRawBufferPointer($0)
                guard isWanted(bytes) else { return false }
                room.storeBytes(of: UInt32(clamping: bytes.count).littleEndian, as: UInt32.self)
                UnsafeMutableRawBufferPointer(rebasing: room[4..<4 + bytes.count]).copyMemory(from: bytes)
                room = UnsafeMutableRawBufferPointer(rebasing: room[(4 + bytes.count)...])
                return true
            }
        }
    }

    mutating func append(optional string: String?) {
        append(UInt8(string == nil ? 0 : 1))
        if let string { append(string) }
    }

    mutating func append(_ digest: KeyDigest) {
        digest.forEachWord { append($0.bigEndian) }
    }
}

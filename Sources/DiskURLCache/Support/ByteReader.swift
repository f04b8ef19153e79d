import Foundation

/// Reads what `ByteWriter` wrote, and trusts no length: the result is nil if a length exceeds the bytes that are left.
struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    private(set) var position = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    var remaining: Int { bytes.count - position }

    @inline(__always)
    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        guard remaining >= MemoryLayout<Number>.size else { return nil }
        defer { position += MemoryLayout<Number>.size }
        return Number(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: type))
    }

    mutating func double() -> Double? {
        number(UInt64.self).map(Double.init(bitPattern:))
    }

    /// A time in Foundation's seconds; nil if the value is not a number, or so large that no calendar can show it.
    mutating func date() -> Date? {
        guard let seconds = double(), abs(seconds) < 1e15 else { return nil }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    mutating func boolean() -> Bool? {
        switch number(UInt8.self) {
        case 0: false
        case 1: true
        default: nil
        }
    }

    mutating func raw(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, remaining >= count else { return nil }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    /// The number of values that follow. Nil if they would need more bytes than are left: then nothing is allocated for
    /// them.
    /// - Parameter shortest: the length of the shortest possible value, in bytes.
    @inline(__always)
    mutating func count(_ shortest: Int) -> Int? {
        guard let count = number(UInt32.self), count <= remaining / shortest else { return nil }
        return Int(count)
    }

    /// The bytes of a string, in place.
    @inline(__always)
    mutating func stringBytes() -> UnsafeRawBufferPointer? { count(1).flatMap { raw($0) } }

    mutating func string() -> String? {
        stringBytes().map { String(decoding: $0, as: UTF8.self) }
    }

    mutating func optionalString() -> String?? {
        guard let isThere = boolean() else { return nil }
        guard isThere else { return .some(nil) }
        return string().map(Optional.some)
    }

    /// A list of values, preceded by their number.
    mutating func list<Value>(_ shortest: Int, _ read: (inout ByteReader) -> Value?) -> [Value]? {
        guard let count = count(shortest) else { return nil }
        var values: [Value] = []
        for _ in 0..<count {
            guard let value = read(&self) else { return nil }
            values.append(value)
        }
        return values
    }

    mutating func digest() -> KeyDigest? {
        raw(32).map { KeyDigest(bytes: $0) }
    }
}

import Foundation

extension VaryKey {
    /// A hash that distinguishes the variants of a key without their metadata.
    package var recordHash: UInt64 {
        if fields.isEmpty && !matchesNothing { return 0 }
        let length = fields.reduce(1) { $0 + 5 + $1.name.utf8.count + ($1.value == nil ? 0 : 32) }
        return withUnsafeTemporaryAllocation(byteCount: length, alignment: 8) { bytes in
            var cursor = ByteWriter.Cursor(room: bytes)
            cursor.append(UInt8(matchesNothing ? 1 : 0))
            for field in fields {
                _ = cursor.append(field.name) { _ in true }
                cursor.append(UInt8(field.value == nil ? 0 : 1))
                if let value = field.value { cursor.append(value) }
            }
            return Checksum.of(UnsafeRawBufferPointer(bytes), seed: 1)
        }
    }
}

extension Date {
    /// Whole seconds since 1970 in the format's range, 1970 to 2106. Times outside become the nearest end of the range.
    var recordSeconds: UInt32 {
        let seconds = timeIntervalSince1970
        if !(seconds > 0) { return 0 }
        return seconds >= Double(UInt32.max) ? .max : UInt32(seconds)
    }

    package init(recordSeconds: UInt32) {
        self.init(timeIntervalSince1970: Double(recordSeconds))
    }
}

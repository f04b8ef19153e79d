import Foundation

extension VaryKey {
    /// Tells variants of one key apart without their metadata at hand.
    var recordHash: UInt64 {
        if fields.isEmpty && !matchesNothing { return 0 }
        var writer = ByteWriter(capacity: 64)
        writer.append(UInt8(matchesNothing ? 1 : 0))
        for field in fields {
            writer.append(field.name)
            writer.append(UInt8(field.value == nil ? 0 : 1))
            if let value = field.value { writer.append(value) }
        }
        return writer.withUnsafeBytes { Checksum.of($0, seed: 1) }
    }
}

extension Date {
    /// Whole seconds since 1970 as the format keeps them, held at the ends of its range: 1970 to 2106.
    var recordSeconds: UInt32 {
        let seconds = timeIntervalSince1970
        if !(seconds > 0) { return 0 }
        return seconds >= Double(UInt32.max) ? .max : UInt32(seconds)
    }

    package init(recordSeconds: UInt32) {
        self.init(timeIntervalSince1970: Double(recordSeconds))
    }
}

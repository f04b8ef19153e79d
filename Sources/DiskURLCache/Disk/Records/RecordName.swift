/// The name of a record's file: the 32 hexadecimal digits of its key's name, and one digit for the slot.
///
/// A name has eight slots, for the variants of the key, and so that a new record can be written beside the one that it
/// replaces: that needs no rename, which costs ten times as much as creating a file. Keys with the same name share its
/// slots.
package struct RecordName: Sendable, Hashable {
    var key: KeyName
    var slot: UInt8

    static let length = KeyName.length + 1
    package static let slots: UInt8 = 8

    package init(key: KeyName, slot: UInt8) {
        self.key = key
        self.slot = slot
    }

    /// Nil if the name is not that of a record; then the file does not belong to the cache.
    package init?(_ name: UnsafePointer<CChar>) {
        var count = 0
        while count <= Self.length, name[count] != 0 { count += 1 }
        guard count == Self.length else { return nil }
        let bytes = UnsafeRawBufferPointer(start: name, count: count)
        guard let key = KeyName(hex: .init(rebasing: bytes[..<KeyName.length])) else { return nil }
        let digit = bytes[KeyName.length]
        guard case 48..<56 = digit else { return nil }
        self.key = key
        slot = digit - 48
    }

    /// The digits.
    package var text: String { key.hex + String(slot) }

    /// Writes the digits and a NUL.
    @inline(__always)
    func write(to destination: UnsafeMutablePointer<CChar>) {
        key.writeHex(to: UnsafeMutableRawPointer(destination))
        destination[KeyName.length] = CChar(48 + slot)
        destination[Self.length] = 0
    }
}

/// Some of the slots of a name.
struct Slots: OptionSet, Sendable {
    /// One bit for each.
    let rawValue: UInt8

    static let all = Slots(rawValue: .max)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init(_ slot: UInt8) { rawValue = 1 << slot }

    func contains(_ slot: UInt8) -> Bool { contains(Slots(slot)) }
}

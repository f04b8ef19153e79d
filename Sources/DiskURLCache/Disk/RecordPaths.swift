/// The name of a record's file: 64 hexadecimal digits of the key's digest, and one of the slot.
///
/// A key has eight slots. They hold its variants, and let a new record be written beside the one it replaces: no rename,
/// which costs ten times a create.
struct RecordName: Sendable, Hashable {
    var digest: KeyDigest
    var slot: UInt8

    static let length = 65
    static let slots: UInt8 = 8

    init(digest: KeyDigest, slot: UInt8) {
        self.digest = digest
        self.slot = slot
    }

    /// Nil for a name that is not a record's: that file is somebody else's.
    init?(_ name: UnsafePointer<CChar>) {
        var count = 0
        while count <= Self.length, name[count] != 0 { count += 1 }
        guard count == Self.length else { return nil }
        let bytes = UnsafeRawBufferPointer(start: name, count: count)
        guard let digest = KeyDigest(hex: .init(rebasing: bytes[..<64])), case 48..<56 = bytes[64] else { return nil }
        self.digest = digest
        slot = bytes[64] - 48
    }
}

/// The paths in a cache directory. Each is resolved anew whenever it is used: no directory is kept open, so a directory
/// that was replaced, or cleared by another process, is seen at once.
struct DiskPaths: Sendable {
    let directory: String
    var records: String { directory + "/records" }
    var index: String { directory + "/index.plist" }
    var newIndex: String { directory + "/index.plist.new" }
    var journal: String { directory + "/index.journal" }
    var guests: String { directory + "/guests" }
    var lock: String { directory + "/lock" }

    /// The bytes before a record's name.
    private let prefix: [CChar]

    init(directory: String) {
        var directory = directory
        while directory.count > 1, directory.hasSuffix("/") { directory.removeLast() }
        self.directory = directory
        prefix = Array((directory + "/records/").utf8CString.dropLast())
    }

    static let trashPrefix = "trash-"

    /// A name that no other clearing chose.
    func newTrash() -> String {
        let number = String(UInt64.random(in: 0 ... .max), radix: 16)
        return directory + "/" + Self.trashPrefix + String(repeating: "0", count: 16 - number.count) + number
    }

    /// Whether a name in the directory is that of a folder of cleared records.
    static func isTrash(_ name: String) -> Bool {
        name.utf8.count == 22 && name.hasPrefix(trashPrefix)
            && name.utf8.dropFirst(6).allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// Calls with the path of a record, without allocating.
    @inline(__always)
    func withRecord<Result>(
        _ digest: KeyDigest, _ slot: UInt8, _ body: (UnsafePointer<CChar>) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: prefix.count + RecordName.length + 1) { buffer in
            guard let base = buffer.baseAddress else { return body("") }
            prefix.withUnsafeBufferPointer { source in
                if let start = source.baseAddress { base.update(from: start, count: source.count) }
            }
            Self.writeName(digest, slot, to: base + prefix.count)
            return body(base)
        }
    }

    /// Calls with the name of a record in the folder of records.
    @inline(__always)
    static func withName<Result>(
        _ digest: KeyDigest, _ slot: UInt8, _ body: (UnsafePointer<CChar>) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: RecordName.length + 1) { buffer in
            guard let base = buffer.baseAddress else { return body("") }
            writeName(digest, slot, to: base)
            return body(base)
        }
    }

    @inline(__always)
    private static func writeName(_ digest: KeyDigest, _ slot: UInt8, to name: UnsafeMutablePointer<CChar>) {
        digest.writeHex(to: UnsafeMutableRawPointer(name))
        name[64] = CChar(48 + slot)
        name[65] = 0
    }
}

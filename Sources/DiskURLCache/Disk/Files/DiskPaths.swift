/// The paths in a cache directory. Each is resolved whenever it is used: no directory is kept open, so a directory
/// that was replaced, or cleared by another process, is seen at once.
package struct DiskPaths: Sendable {
    package let directory: String
    package var records: String { directory + "/records" }
    var index: String { directory + "/index.plist" }
    var newIndex: String { directory + "/index.plist.new" }
    var changes: String { directory + "/changes" }
    var lock: String { directory + "/lock" }
    var salt: String { directory + "/salt" }

    /// Whether a cache may be there. Not if the path depends on the working directory, and not in the root folder, which
    /// belongs to the system: nothing is made or removed there.
    var canBeUsed: Bool { directory.hasPrefix("/") && directory != "/" && !directory.utf8.contains(0) }

    /// The bytes before a record's name.
    private let prefix: [CChar]

    package init(directory: String) {
        var directory = directory
        while directory.count > 1, directory.hasSuffix("/") { directory.removeLast() }
        self.directory = directory
        prefix = Array((directory + "/records/").utf8CString.dropLast())
    }

    static let trashPrefix = "trash-"
    static let incomingPrefix = "incoming-"

    /// A name that no other clearing chose.
    func newTrash() -> String { newName(Self.trashPrefix) }

    /// A name that no other body that arrives has.
    func newIncoming() -> String { newName(Self.incomingPrefix) }

    private func newName(_ prefix: String) -> String {
        let number = String(UInt64.random(in: 0 ... .max), radix: 16)
        return directory + "/" + prefix + String(repeating: "0", count: 16 - number.count) + number
    }

    /// Whether a name in the directory is the name of a folder of cleared records.
    static func isTrash(_ name: String) -> Bool { isName(name, trashPrefix) }

    /// Whether a name in the directory is the name of a body that arrives, or did.
    static func isIncoming(_ name: String) -> Bool { isName(name, incomingPrefix) }

    private static func isName(_ name: String, _ prefix: String) -> Bool {
        name.utf8.count == prefix.utf8.count + 16 && name.hasPrefix(prefix)
            && name.utf8.dropFirst(prefix.utf8.count).allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// Calls with the path of a record, without allocating.
    @inline(__always)
    package func withRecord<Result>(_ name: RecordName, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: prefix.count + RecordName.length + 1) { buffer in
            guard let base = buffer.baseAddress else { return body("") }
            prefix.withUnsafeBufferPointer { source in
                if let start = source.baseAddress { base.update(from: start, count: source.count) }
            }
            name.write(to: base + prefix.count)
            return body(base)
        }
    }

    /// Everything besides the records that counts towards the capacity.
    package var besidesRecords: [String] { [directory + "/.", records, index, changes, salt] }
}

/// The paths in a cache directory. They are resolved at each use, and no directory is kept open, so that a directory
/// that another process replaced or cleared is noticed at once.
package struct DiskPaths: Sendable {
    package let directory: String
    package let records: String
    var index: String { directory + "/index.plist" }
    var newIndex: String { directory + "/index.plist.new" }
    let changes: String
    var lock: String { directory + "/lock" }
    var fetches: String { directory + "/fetches" }
    var salt: String { directory + "/salt" }
    var tag: String { directory + "/CACHEDIR.TAG" }
    /// The same paths as C strings, for the system calls of each store: a `String` would be measured and copied each
    /// time.
    let directoryBytes: [CChar]
    let recordsBytes: [CChar]
    let changesBytes: [CChar]

    /// Whether a cache may use this directory: not if the path depends on the working directory, and not if it is the
    /// root folder, which belongs to the system.
    let canBeUsed: Bool

    /// The bytes before a record's name.
    private let prefix: [CChar]

    package init(directory: String) {
        var directory = directory
        while directory.count > 1, directory.hasSuffix("/") { directory.removeLast() }
        self.directory = directory
        records = directory + "/records"
        changes = directory + "/changes"
        // The directory may be a link, which the user gave: the link is followed.
        directoryBytes = Array((directory + "/.").utf8CString)
        recordsBytes = Array(records.utf8CString)
        changesBytes = Array(changes.utf8CString)
        canBeUsed = directory.hasPrefix("/") && directory != "/" && !directory.utf8.contains(0)
        prefix = Array((directory + "/records/").utf8CString.dropLast())
    }

    /// The beginning of a name that ends with 16 hexadecimal digits.
    enum Temporary: String {
        /// A folder of cleared records.
        case trash = "trash-"
        /// A body that is arriving, or was.
        case incoming = "incoming-"
    }

    /// A new, unique path of this kind.
    func new(_ kind: Temporary) -> String {
        let number = String(UInt64.random(in: 0 ... .max), radix: 16)
        return directory + "/" + kind.rawValue + String(repeating: "0", count: 16 - number.count) + number
    }

    /// All paths of this kind in the directory.
    func all(_ kind: Temporary, in files: any FileSystem) -> [String] {
        var names: [String] = []
        try? files.list(directory) {
            names.append(String(cString: $0))
            return true
        }
        return names.filter { Self.isName($0, of: kind) }.map { directory + "/" + $0 }
    }

    static func isName(_ name: String, of kind: Temporary) -> Bool {
        let length = kind.rawValue.utf8.count
        guard name.utf8.count == length + 16, name.hasPrefix(kind.rawValue) else { return false }
        let digits = Set("0123456789abcdef".utf8)
        return name.utf8.dropFirst(length).allSatisfy { digits.contains($0) }
    }

    /// Calls `body` with the path of a record, without allocating.
    @inline(__always)
    package func withRecord<Value, Failure>(
        _ name: RecordName, _ body: (UnsafePointer<CChar>) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: prefix.count + RecordName.length + 1) { buffer in
            guard let base = buffer.baseAddress else { return Result { () throws(Failure) in try body("") } }
            prefix.withUnsafeBufferPointer { source in
                if let start = source.baseAddress { base.update(from: start, count: source.count) }
            }
            name.write(to: base + prefix.count)
            return Result { () throws(Failure) in try body(base) }
        }.get()
    }

    /// The files and folders besides the records that count towards the capacity.
    package var besidesRecords: [String] { [directory + "/.", records, index, changes, salt, tag] }
}

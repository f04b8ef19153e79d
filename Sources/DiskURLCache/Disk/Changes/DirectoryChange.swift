/// What a cache changed in a directory: one row of the file `changes`, for the other caches on that directory.
enum DirectoryChange: Sendable, Hashable {
    /// The records of a key are other ones. The row comes after the change.
    case stored(KeyName)
    /// The records of a key are removed. One row comes before the removal, and one after it.
    case removed(KeyName)
    /// The records of all keys of a resource are removed: see `KeyName.resource`.
    case removedResource(UInt64)
    /// Every record may be removed.
    case removedAll

    /// Whether the records of a key are removed.
    func removes(_ key: KeyName) -> Bool {
        switch self {
        case .stored: false
        case .removed(let name): name == key
        case .removedResource(let resource): key.resource == resource
        case .removedAll: true
        }
    }

    /// Bytes of a row.
    static let length = 32

    private var kind: UInt64 {
        switch self {
        case .stored: 1
        case .removed: 2
        case .removedResource: 3
        case .removedAll: 4
        }
    }

    private var name: KeyName {
        switch self {
        case .stored(let name), .removed(let name): name
        case .removedResource(let resource): KeyName(resource: resource, low: 0)
        case .removedAll: KeyName(resource: 0, low: 0)
        }
    }

    /// - Parameter writer: the number of the cache, whose last byte is 0.
    func row(by writer: UInt64) -> [UInt8] {
        var row = ByteWriter(capacity: Self.length)
        row.append(name.resource.bigEndian)
        row.append(name.low.bigEndian)
        row.append(writer | kind)
        let sum = row.withUnsafeBytes { Checksum.of($0) }
        row.append(sum)
        return row.finish()
    }

    /// Nil for bytes that `row(by:)` did not make.
    static func decode(_ bytes: UnsafeRawBufferPointer) -> (change: DirectoryChange, writer: UInt64)? {
        var reader = ByteReader(bytes)
        guard bytes.count == length, let resource = reader.number(UInt64.self), let low = reader.number(UInt64.self),
            let mark = reader.number(UInt64.self), let sum = reader.number(UInt64.self),
            sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<(length - 8)]))
        else { return nil }
        let name = KeyName(resource: resource.bigEndian, low: low.bigEndian)
        let change: DirectoryChange
        switch mark & 0xFF {
        case 1: change = .stored(name)
        case 2: change = .removed(name)
        case 3: change = .removedResource(name.resource)
        case 4: change = .removedAll
        default: return nil
        }
        return (change, mark & ~0xFF)
    }
}

/// A change that a cache made in a directory: a row of the file `changes`, for the other caches of the directory.
package enum DirectoryChange: Sendable, Hashable {
    /// The records of a key are about to change, or are changing. From this row on, the owner looks at the files of
    /// that key instead of its index.
    case storing(KeyName)
    /// The records of a key have changed. Written after the change.
    case stored(KeyName)
    /// The records of a key are removed. Written before the removal, and again after it.
    case removed(KeyName)
    /// The records of all keys of a resource are removed: see `KeyName.resource`.
    case removedResource(UInt64)
    /// Every record may have been removed.
    case removedAll
    /// The owner knows the file, and reports each removal from now on.
    case noticed

    var isRemoval: Bool {
        switch self {
        case .removed, .removedResource, .removedAll: true
        case .storing, .stored, .noticed: false
        }
    }

    /// The key whose records have changed or are about to; nil if the change is not about a single key.
    var key: KeyName? {
        switch self {
        case .storing(let name), .stored(let name), .removed(let name): name
        case .removedResource, .removedAll, .noticed: nil
        }
    }

    /// The resource whose records have changed; nil for all.
    var resource: UInt64? {
        if case .removedResource(let resource) = self { return resource }
        return key?.resource
    }

    /// Whether the records of a key may have changed.
    package func concerns(_ key: KeyName) -> Bool {
        switch self {
        case .storing(let name), .stored(let name), .removed(let name): name == key
        case .removedResource(let resource): key.resource == resource
        case .removedAll: true
        case .noticed: false
        }
    }
}

extension DirectoryChange {
    /// The length of a row in bytes.
    static let rowLength = 32

    /// - Parameter writer: the number of the cache, whose last byte is 0.
    func row(by writer: UInt64) -> [UInt8] {
        let (resource, low, kind): (UInt64, UInt64, UInt64) =
            switch self {
            case .stored(let name): (name.resource, name.low, 1)
            case .removed(let name): (name.resource, name.low, 2)
            case .removedResource(let resource): (resource, 0, 3)
            case .removedAll: (0, 0, 4)
            case .storing(let name): (name.resource, name.low, 5)
            case .noticed: (0, 0, 6)
            }
        var row = ByteWriter(capacity: Self.rowLength)
        row.append(resource.bigEndian)
        row.append(low.bigEndian)
        row.append(writer | kind)
        let sum = row.withUnsafeBytes { Checksum.of($0) }
        row.append(sum)
        return row.finish()
    }

    /// Nil if the bytes are not a row.
    static func decode(_ bytes: UnsafeRawBufferPointer) -> (change: DirectoryChange, writer: UInt64)? {
        var reader = ByteReader(bytes)
        guard bytes.count == rowLength, let resource = reader.number(UInt64.self)?.bigEndian,
            let low = reader.number(UInt64.self)?.bigEndian, let mark = reader.number(UInt64.self),
            let sum = reader.number(UInt64.self),
            sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<(rowLength - 8)]))
        else { return nil }
        let change: DirectoryChange
        switch mark & 0xFF {
        case 1: change = .stored(KeyName(resource: resource, low: low))
        case 2: change = .removed(KeyName(resource: resource, low: low))
        case 3: change = .removedResource(resource)
        case 4: change = .removedAll
        case 5: change = .storing(KeyName(resource: resource, low: low))
        case 6: change = .noticed
        default: return nil
        }
        return (change, mark & ~0xFF)
    }
}

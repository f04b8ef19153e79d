/// What a cache changed in a directory: one row of the file `changes`, for the other caches on that directory.
package enum DirectoryChange: Sendable, Hashable {
    /// The records of a key are other ones. The row comes after the change.
    case stored(KeyName)
    /// The records of a key are removed. One row comes before the removal, and one after it.
    case removed(KeyName)
    /// The records of all keys of a resource are removed: see `KeyName.resource`.
    case removedResource(UInt64)
    /// Every record may be removed.
    case removedAll

    var isRemoval: Bool { if case .stored = self { false } else { true } }

    /// The resource whose records changed; nil for all.
    var resource: UInt64? {
        switch self {
        case .stored(let name), .removed(let name): name.resource
        case .removedResource(let resource): resource
        case .removedAll: nil
        }
    }

    /// Whether records of a key changed.
    package func concerns(_ key: KeyName) -> Bool {
        switch self {
        case .stored(let name), .removed(let name): name == key
        case .removedResource(let resource): key.resource == resource
        case .removedAll: true
        }
    }
}

/// A row of the file `changes`: what its bytes are.
enum ChangeRow: Sendable, Hashable {
    /// The first row of a file. Numbers are random, and not 0.
    struct Start: Sendable, Hashable {
        var number: UInt64
        /// The number of the file that this one replaced; 0 where the cache that began it knew of none.
        var predecessor: UInt64
    }

    case start(Start)
    /// - Parameter writer: the number of the cache, whose last byte is 0.
    case change(DirectoryChange, writer: UInt64)

    /// Bytes of a row.
    static let length = 32

    var bytes: [UInt8] {
        let (high, low, mark) = numbers
        var row = ByteWriter(capacity: Self.length)
        row.append(high.bigEndian)
        row.append(low.bigEndian)
        row.append(mark)
        let sum = row.withUnsafeBytes { Checksum.of($0) }
        row.append(sum)
        return row.finish()
    }

    private var numbers: (high: UInt64, low: UInt64, mark: UInt64) {
        switch self {
        case .start(let start): (start.number, start.predecessor, 0)
        case .change(.stored(let name), let writer): (name.resource, name.low, writer | 1)
        case .change(.removed(let name), let writer): (name.resource, name.low, writer | 2)
        case .change(.removedResource(let resource), let writer): (resource, 0, writer | 3)
        case .change(.removedAll, let writer): (0, 0, writer | 4)
        }
    }

    /// Nil for bytes that are none of a row.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard bytes.count == Self.length, let high = reader.number(UInt64.self)?.bigEndian,
            let low = reader.number(UInt64.self)?.bigEndian, let mark = reader.number(UInt64.self),
            let sum = reader.number(UInt64.self),
            sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<(Self.length - 8)]))
        else { return nil }
        let writer = mark & ~0xFF
        switch mark & 0xFF {
        case 0: self = .start(Start(number: high, predecessor: low))
        case 1: self = .change(.stored(KeyName(resource: high, low: low)), writer: writer)
        case 2: self = .change(.removed(KeyName(resource: high, low: low)), writer: writer)
        case 3: self = .change(.removedResource(high), writer: writer)
        case 4: self = .change(.removedAll, writer: writer)
        default: return nil
        }
    }
}

import Foundation

/// What one cache removed, as the other caches of its directory are told. It names no URL and no tag: hashes only.
enum SharedRemoval: Sendable, Hashable {
    /// All that is stored of a key.
    case key(KeyName)
    /// One variant of a key: what others know of the key may be that one.
    case variant(KeyName)
    case matching(SharedCriteria)
    case everything
}

/// `DiskCriteria` with hashes in place of texts. It matches all that those match, and hardly ever more.
struct SharedCriteria: Sendable, Hashable {
    var uriHash: UInt32?
    var hostHash: UInt32?
    var tag: UInt64?
    var storedAfter: Date?
    var storedBefore: Date?
    var accessedBefore: Date?
    /// Of the prefix, and how many bytes of UTF-8 the prefix has.
    var urlPrefix: UInt64?
    var prefixLength: UInt64 = 0

    // Part of the format.
    private static let seed: UInt64 = 3

    init() {}

    init(_ criteria: DiskCriteria) {
        uriHash = criteria.uriHash
        hostHash = criteria.hostHash
        tag = criteria.tag.map { Self.hash($0, length: nil) } ?? nil
        storedAfter = criteria.storedAfter
        storedBefore = criteria.storedBefore
        accessedBefore = criteria.accessedBefore
        urlPrefix = criteria.urlPrefix.map { Self.hash($0, length: nil) } ?? nil
        prefixLength = UInt64(criteria.urlPrefix?.utf8.count ?? 0)
    }

    /// Nil when the text is shorter than that.
    private static func hash(_ text: String, length: UInt64?) -> UInt64? {
        var text = text
        return text.withUTF8 { bytes in
            guard let count = Int(exactly: length ?? UInt64(bytes.count)), count <= bytes.count else { return nil }
            return TextHash.hash(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<count]), seed: seed)
        }
    }

    /// Whether an entry matches that is in memory. Its storing counts as its last use.
    func matches(_ metadata: EntryMetadata, uriHash: @autoclosure () -> UInt32, hostHash: @autoclosure () -> UInt32)
        -> Bool
    {
        if let hash = self.uriHash, hash != uriHash() { return false }
        if let hash = self.hostHash, hash != hostHash() { return false }
        if let accessedBefore, metadata.storedAt >= accessedBefore { return false }
        if let storedAfter, metadata.storedAt < storedAfter { return false }
        if let storedBefore, metadata.storedAt >= storedBefore { return false }
        if let tag, !metadata.tags.contains(where: { Self.hash($0, length: nil) == tag }) { return false }
        if let urlPrefix, let url = metadata.url.flatMap(URLCanonicalizer.canonical) {
            guard Self.hash(url, length: prefixLength) == urlPrefix else { return false }
        }
        return true
    }
}

extension SharedRemoval {
    /// Whether an entry of that name and with these metadata was removed, or may have been.
    func concerns(
        _ name: KeyName, _ metadata: EntryMetadata, uriHash: @autoclosure () -> UInt32,
        hostHash: @autoclosure () -> UInt32
    ) -> Bool {
        switch self {
        case .key(let removed), .variant(let removed): removed == name
        case .matching(let criteria): criteria.matches(metadata, uriHash: uriHash(), hostHash: hostHash())
        case .everything: true
        }
    }
}

/// A removal as it stands in the file `removals`: 96 bytes with a check of their own (`OnDiskFormat.md`).
struct RemovalRow: Sendable, Hashable {
    var removal: SharedRemoval
    /// The cache that removed: it need not be told.
    var writer: UInt64

    static let length = 96

    func encode(to output: inout ByteWriter) {
        let start = output.count
        var (kind, name, criteria) = (UInt8(4), KeyName(high: 0, low: 0), SharedCriteria())
        switch removal {
        case .key(let key): (kind, name) = (1, key)
        case .variant(let key): (kind, name) = (2, key)
        case .matching(let given): (kind, criteria) = (3, given)
        case .everything: break
        }
        let isThere = [
            criteria.uriHash != nil, criteria.hostHash != nil, criteria.tag != nil, criteria.storedAfter != nil,
            criteria.storedBefore != nil, criteria.accessedBefore != nil, criteria.urlPrefix != nil,
        ]
        output.append(kind)
        output.append(isThere.enumerated().reduce(UInt8(0)) { $0 | ($1.element ? 1 << $1.offset : 0) })
        output.append(UInt16(0))
        output.append(UInt32(0))
        output.append(writer)
        output.append(name.high.bigEndian)
        output.append(name.low.bigEndian)
        output.append(criteria.uriHash ?? 0)
        output.append(criteria.hostHash ?? 0)
        output.append(criteria.tag ?? 0)
        for date in [criteria.storedAfter, criteria.storedBefore, criteria.accessedBefore] {
            output.append(date?.timeIntervalSinceReferenceDate ?? 0)
        }
        output.append(criteria.urlPrefix ?? 0)
        output.append(criteria.prefixLength)
        let sum = output.withUnsafeBytes(from: start) { Checksum.of($0) }
        output.append(sum)
    }

    /// Nil for what this version did not write.
    static func decode(_ bytes: UnsafeRawBufferPointer) -> RemovalRow? {
        var reader = ByteReader(bytes)
        guard bytes.count == length,
            let kind = reader.number(UInt8.self), let flags = reader.number(UInt8.self), flags < 0x80,
            reader.number(UInt16.self) == 0, reader.number(UInt32.self) == 0,
            let writer = reader.number(UInt64.self),
            let high = reader.number(UInt64.self), let low = reader.number(UInt64.self),
            let uriHash = reader.number(UInt32.self), let hostHash = reader.number(UInt32.self),
            let tag = reader.number(UInt64.self), let storedAfter = reader.date(),
            let storedBefore = reader.date(), let accessedBefore = reader.date(),
            let urlPrefix = reader.number(UInt64.self), let prefixLength = reader.number(UInt64.self),
            let sum = reader.number(UInt64.self),
            sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<(length - 8)]))
        else { return nil }
        let name = KeyName(high: high.bigEndian, low: low.bigEndian)
        func given<Value>(_ bit: UInt8, _ value: Value) -> Value? { flags & 1 << bit != 0 ? value : nil }
        var criteria = SharedCriteria()
        criteria.uriHash = given(0, uriHash)
        criteria.hostHash = given(1, hostHash)
        criteria.tag = given(2, tag)
        criteria.storedAfter = given(3, storedAfter)
        criteria.storedBefore = given(4, storedBefore)
        criteria.accessedBefore = given(5, accessedBefore)
        criteria.urlPrefix = given(6, urlPrefix)
        criteria.prefixLength = prefixLength
        switch kind {
        case 1: return RemovalRow(removal: .key(name), writer: writer)
        case 2: return RemovalRow(removal: .variant(name), writer: writer)
        case 3: return RemovalRow(removal: .matching(criteria), writer: writer)
        case 4: return RemovalRow(removal: .everything, writer: writer)
        default: return nil
        }
    }
}

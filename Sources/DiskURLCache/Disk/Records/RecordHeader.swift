/// The fixed part at the start of each head of a record. `OnDiskFormat.md` shows it byte by byte.
///
/// It repeats what the index holds of the record, so that the index can be made again from the files.
package struct RecordHeader: Sendable, Hashable {
    var name: RecordName
    /// SHA-256 of the key: proves whose record this is.
    package var digest: KeyDigest
    package var isPinned: Bool
    package var sequence: UInt64
    var hostHash: UInt32
    var tagFilter: TagFilter
    /// Whole seconds since 1970.
    var storedAt: UInt32
    var varyHash: UInt64
    package var metadataLength: Int
    package var bodyLength: Int
    package var bodyChecksum: UInt64

    package static let length = 116
    static let version: UInt16 = 1
    /// "DURC": read as a little-endian number.
    static let magic: UInt32 = 0x4352_5544
    private static let checksumOffset = 108

    /// The length of this head: header and metadata.
    var headLength: Int { Self.length + metadataLength }

    /// The length of a record with this as its only head; nil when the lengths cannot be added.
    package var recordLength: Int? {
        let (sum, overflow) = headLength.addingReportingOverflow(bodyLength)
        return overflow ? nil : sum
    }

    /// Writes the header into the space that `head` begins with, before the metadata; its checksum covers both.
    func write(into head: UnsafeMutableRawBufferPointer) {
        var end = 0
        func append<Number: FixedWidthInteger>(_ number: Number) {
            head.storeBytes(of: number.littleEndian, toByteOffset: end, as: Number.self)
            end += MemoryLayout<Number>.size
        }
        append(Self.magic)
        append(Self.version)
        append(name.slot)
        append(UInt8(isPinned ? 1 : 0))
        append(name.key.resource.bigEndian)
        append(name.key.low.bigEndian)
        for word in 0..<4 { append(digest.words[word].bigEndian) }
        append(sequence)
        append(hostHash)
        append(tagFilter.bits)
        append(storedAt)
        append(varyHash)
        append(UInt64(metadataLength))
        append(UInt64(bodyLength))
        append(bodyChecksum)
        let seed = Checksum.of(UnsafeRawBufferPointer(rebasing: head[..<end]))
        append(Checksum.of(UnsafeRawBufferPointer(rebasing: head[Self.length...]), seed: seed))
    }

    package enum Decoded {
        case header(RecordHeader)
        /// Another version of the format, or no record at all: not ours to judge.
        case foreign
        case damaged
    }

    /// Reads the header alone; its checksum also covers the metadata, so `isIntact` decides.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> Decoded {
        var reader = ByteReader(bytes)
        guard bytes.count >= length, let magic = reader.number(UInt32.self), let version = reader.number(UInt16.self)
        else { return .damaged }
        guard magic == Self.magic else { return .damaged }
        guard version == Self.version else { return .foreign }
        guard let slot = reader.number(UInt8.self), let flags = reader.number(UInt8.self),
            let resource = reader.number(UInt64.self), let low = reader.number(UInt64.self),
            let digest = reader.digest(), let sequence = reader.number(UInt64.self),
            let hostHash = reader.number(UInt32.self),
            let tags = reader.number(UInt32.self), let storedAt = reader.number(UInt32.self),
            let varyHash = reader.number(UInt64.self), let metadataLength = reader.number(UInt64.self),
            let bodyLength = reader.number(UInt64.self), let bodyChecksum = reader.number(UInt64.self),
            metadataLength <= UInt64(MetadataCodec.maximumLength), bodyLength <= UInt64(Int.max >> 1), flags <= 1
        else { return .damaged }
        return .header(
            RecordHeader(
                name: RecordName(key: KeyName(resource: resource.bigEndian, low: low.bigEndian), slot: slot),
                digest: digest,
                isPinned: flags & 1 != 0, sequence: sequence, hostHash: hostHash,
                tagFilter: TagFilter(bits: tags), storedAt: storedAt, varyHash: varyHash,
                metadataLength: Int(metadataLength), bodyLength: Int(bodyLength), bodyChecksum: bodyChecksum))
    }

    /// Whether header and metadata are as they were written; `bytes` must hold both.
    package static func isIntact(_ bytes: UnsafeRawBufferPointer, metadataLength: Int) -> Bool {
        guard bytes.count >= length + metadataLength else { return false }
        let stored = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: checksumOffset, as: UInt64.self))
        let header = UnsafeRawBufferPointer(rebasing: bytes[..<checksumOffset])
        let metadata = UnsafeRawBufferPointer(rebasing: bytes[length..<length + metadataLength])
        return stored == Checksum.of(metadata, seed: Checksum.of(header))
    }

    /// Whether this may follow another head in the chain of one record: all that is about the body is the same, and the
    /// sequence grows.
    func follows(_ other: RecordHeader) -> Bool {
        name == other.name && digest == other.digest && bodyLength == other.bodyLength
            && bodyChecksum == other.bodyChecksum && sequence > other.sequence
    }
}

extension DiskKey {
    /// The key of the record with this header.
    package init(_ header: RecordHeader) {
        self.init(
            name: header.name.key, digest: header.digest, hostHash: header.hostHash)
    }
}

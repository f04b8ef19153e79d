import Foundation

/// The fixed part at the start of a record. `OnDiskFormat.md` shows it byte by byte.
///
/// It repeats what the index holds of the record, so that the index can be made again from the files.
struct RecordHeader: Sendable, Hashable {
    var digest: KeyDigest
    var slot: UInt8
    var isPinned: Bool
    /// The text of the key is the URL in the metadata: who asks for that URL needs no digest to know the record.
    var isKeyedByURL: Bool
    var keyCheck: UInt64
    var sequence: UInt64
    var uriHash: UInt32
    var hostHash: UInt32
    var tagFilter: TagFilter
    /// Whole seconds since 1970.
    var storedAt: UInt32
    var varyHash: UInt64
    var metadataLength: Int
    var bodyLength: Int
    var bodyChecksum: UInt64

    static let length = 112
    static let version: UInt16 = 1
    /// "DURC": read as a little-endian number.
    static let magic: UInt32 = 0x4352_5544
    private static let checksumOffset = 104

    /// The length of the whole file; nil when the lengths cannot be added.
    var recordLength: Int? {
        let (sum, overflow) = (Self.length + metadataLength).addingReportingOverflow(bodyLength)
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
        append(slot)
        append(UInt8((isPinned ? 1 : 0) | (isKeyedByURL ? 2 : 0)))
        for word in 0..<4 { append(digest.words[word].bigEndian) }
        append(keyCheck)
        append(sequence)
        append(uriHash)
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

    enum Decoded {
        case header(RecordHeader)
        /// Another version of the format, or no record at all: not ours to judge.
        case foreign
        case damaged
    }

    /// Reads the header alone; its checksum also covers the metadata, so `isIntact` decides.
    static func decode(_ bytes: UnsafeRawBufferPointer) -> Decoded {
        var reader = ByteReader(bytes)
        guard bytes.count >= length, let magic = reader.number(UInt32.self), let version = reader.number(UInt16.self)
        else { return .damaged }
        guard magic == Self.magic else { return .damaged }
        guard version == Self.version else { return .foreign }
        guard let slot = reader.number(UInt8.self), let flags = reader.number(UInt8.self),
            let digest = reader.digest(), let keyCheck = reader.number(UInt64.self),
            let sequence = reader.number(UInt64.self), let uriHash = reader.number(UInt32.self),
            let hostHash = reader.number(UInt32.self), let tags = reader.number(UInt32.self),
            let storedAt = reader.number(UInt32.self), let varyHash = reader.number(UInt64.self),
            let metadataLength = reader.number(UInt64.self), let bodyLength = reader.number(UInt64.self),
            let bodyChecksum = reader.number(UInt64.self),
            metadataLength <= UInt64(MetadataCodec.maximumLength), bodyLength <= UInt64(Int.max >> 1), flags <= 3
        else { return .damaged }
        return .header(
            RecordHeader(
                digest: digest, slot: slot, isPinned: flags & 1 != 0, isKeyedByURL: flags & 2 != 0, keyCheck: keyCheck,
                sequence: sequence,
                uriHash: uriHash, hostHash: hostHash, tagFilter: TagFilter(bits: tags), storedAt: storedAt,
                varyHash: varyHash, metadataLength: Int(metadataLength), bodyLength: Int(bodyLength),
                bodyChecksum: bodyChecksum))
    }

    /// Whether header and metadata are as they were written; `bytes` must hold both.
    static func isIntact(_ bytes: UnsafeRawBufferPointer, metadataLength: Int) -> Bool {
        guard bytes.count >= length + metadataLength else { return false }
        let stored = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: checksumOffset, as: UInt64.self))
        let header = UnsafeRawBufferPointer(rebasing: bytes[..<checksumOffset])
        let metadata = UnsafeRawBufferPointer(rebasing: bytes[length..<length + metadataLength])
        return stored == Checksum.of(metadata, seed: Checksum.of(header))
    }
}

extension DiskKey {
    /// The key of the record with this header.
    init(_ header: RecordHeader) {
        self.init(
            digest: header.digest, check: header.keyCheck, uriHash: header.uriHash, hostHash: header.hostHash,
            isURL: header.isKeyedByURL)
    }
}

/// A set of tags folded into 32 bits: tells for certain that a tag is not there.
struct TagFilter: Sendable, Hashable {
    var bits: UInt32

    init(bits: UInt32) {
        self.bits = bits
    }

    init(_ tags: [String]) {
        bits = tags.reduce(0) { $0 | Self.mask(of: $1) }
    }

    func mayContain(_ tag: String) -> Bool {
        let mask = Self.mask(of: tag)
        return bits & mask == mask
    }

    // Two bits of each tag: an entry has few tags, and a false hit costs one look into the record.
    private static func mask(of tag: String) -> UInt32 {
        var tag = tag
        let hash = tag.withUTF8 { Checksum.of(UnsafeRawBufferPointer($0)) }
        return 1 << UInt32(hash & 31) | 1 << UInt32(hash >> 32 & 31)
    }
}

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

    init(recordSeconds: UInt32) {
        self.init(timeIntervalSince1970: Double(recordSeconds))
    }
}

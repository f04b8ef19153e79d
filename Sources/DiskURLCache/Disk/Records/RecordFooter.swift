/// The part of fixed length at the end of a record. It follows the metadata; together they are a tail.
/// `OnDiskFormat.md` describes every byte.
///
/// It contains everything that the index knows about the record, so that the index can be rebuilt from the files.
package struct RecordFooter: Sendable, Hashable {
    var name: RecordName
    /// The digest of the key, which proves that the record belongs to it. Zero if `isOfURL`.
    package var digest: KeyDigest
    /// Whether the key is just the URL, so that the URL in the metadata proves that the record belongs to it.
    var isOfURL = false
    package var isPinned: Bool
    package var sequence: UInt64
    var hostHash: UInt32
    var pathLevels: PathLevels
    var tagFilter: TagFilter
    /// In whole seconds since 1970.
    var storedAt: UInt32
    var varyHash: UInt64
    package var metadataLength: Int
    package var bodyLength: Int
    package var bodyChecksum: UInt64

    package static let length = 120
    static let version: UInt16 = 1
    /// "DURC": read as a little-endian number.
    static let magic: UInt32 = 0x4352_5544
    private static let checksumOffset = 112

    /// The length of this tail: metadata and footer.
    var tailLength: Int { metadataLength + Self.length }

    /// The length of a record with only this tail. All lengths are limited, so that the sum does not overflow.
    package var recordLength: Int { bodyLength + tailLength }

    /// Writes the footer into the space at the end of `tail`, after the metadata. Its checksum covers both.
    func write(into tail: UnsafeMutableRawBufferPointer) {
        let start = tail.count - Self.length
        var cursor = ByteWriter.Cursor(room: UnsafeMutableRawBufferPointer(rebasing: tail[start...]))
        cursor.append(Self.magic)
        cursor.append(Self.version)
        cursor.append(name.slot)
        cursor.append(UInt8(isPinned ? 1 : 0) | UInt8(isOfURL ? 2 : 0))
        cursor.append(name.key.resource.bigEndian)
        cursor.append(name.key.low.bigEndian)
        cursor.append(digest)
        cursor.append(sequence)
        cursor.append(hostHash)
        cursor.append(pathLevels.bits)
        cursor.append(tagFilter.bits)
        cursor.append(storedAt)
        cursor.append(varyHash)
        cursor.append(UInt64(metadataLength))
        cursor.append(UInt64(bodyLength))
        cursor.append(bodyChecksum)
        let seed = Checksum.of(UnsafeRawBufferPointer(rebasing: tail[start..<start + Self.checksumOffset]))
        cursor.append(Checksum.of(UnsafeRawBufferPointer(rebasing: tail[..<start]), seed: seed))
    }

    package enum Decoded {
        case footer(RecordFooter)
        /// A file of a later version of the format, or not a record at all: it is left alone.
        case foreign
        case damaged
    }

    /// Reads the footer at the end of the bytes. Its checksum also covers the metadata, and is compared by
    /// `metadata(in:)`.
    package static func decode(endOf bytes: UnsafeRawBufferPointer) -> Decoded {
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes.suffix(length)))
        guard bytes.count >= length, reader.number(UInt32.self) == Self.magic else { return .damaged }
        guard let version = reader.number(UInt16.self), version == Self.version else { return .foreign }
        guard
            let slot = reader.number(UInt8.self),
            let flags = reader.number(UInt8.self),
            let resource = reader.number(UInt64.self),
            let low = reader.number(UInt64.self),
            let digest = reader.digest(),
            let sequence = reader.number(UInt64.self),
            let hostHash = reader.number(UInt32.self),
            let levels = reader.number(UInt32.self),
            let tags = reader.number(UInt32.self),
            let storedAt = reader.number(UInt32.self),
            let varyHash = reader.number(UInt64.self),
            let metadataLength = reader.number(UInt64.self),
            let bodyLength = reader.number(UInt64.self),
            let bodyChecksum = reader.number(UInt64.self)
        else { return .damaged }
        guard flags <= 3 else { return .damaged }
        guard metadataLength <= UInt64(MetadataCodec.maximumLength) else { return .damaged }
        guard bodyLength <= UInt64(Int.max >> 1) else { return .damaged }
        let key = KeyName(resource: resource.bigEndian, low: low.bigEndian)
        return .footer(
            RecordFooter(
                name: RecordName(key: key, slot: slot),
                digest: digest,
                isOfURL: flags & 2 != 0,
                isPinned: flags & 1 != 0,
                sequence: sequence,
                hostHash: hostHash,
                pathLevels: PathLevels(bits: levels),
                tagFilter: TagFilter(bits: tags),
                storedAt: storedAt,
                varyHash: varyHash,
                metadataLength: Int(metadataLength),
                bodyLength: Int(bodyLength),
                bodyChecksum: bodyChecksum))
    }

    /// The metadata before the footer at the end of the bytes. Nil if either is not as it was written.
    package func metadata(in bytes: UnsafeRawBufferPointer) -> EntryMetadata? {
        let start = bytes.count - Self.length
        guard start >= metadataLength else { return nil }
        let footer = UnsafeRawBufferPointer(rebasing: bytes[start..<start + Self.checksumOffset])
        let metadata = UnsafeRawBufferPointer(rebasing: bytes[start - metadataLength..<start])
        let stored = bytes.loadUnaligned(fromByteOffset: start + Self.checksumOffset, as: UInt64.self)
        guard UInt64(littleEndian: stored) == Checksum.of(metadata, seed: Checksum.of(footer)) else { return nil }
        return MetadataCodec.decode(metadata, sequence: sequence, isPinned: isPinned)
    }
}

extension DiskKey {
    /// The key of the record with this footer.
    package init(_ footer: RecordFooter) {
        self.init(
            name: footer.name.key, digest: footer.digest, hostHash: footer.hostHash, isItsURL: footer.isOfURL)
    }
}

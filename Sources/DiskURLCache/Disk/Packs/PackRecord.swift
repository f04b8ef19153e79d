import Foundation

/// One record in a pack: a head of 96 bytes, metadata, body, and zeros up to a multiple of 8 bytes.
///
/// | Offset | Bytes | Field |
/// |---|---|---|
/// | 0 | 8 | state: living, or dead. The one thing that is ever written over, and no checksum covers it |
/// | 8 | 4 | length of the body |
/// | 12 | 4 | length of the metadata, and 1 in the highest bit where the entry is pinned |
/// | 16 | 16 | name of the key, both words big-endian |
/// | 32 | 32 | SHA-256 of the key's text |
/// | 64 | 8 | sequence |
/// | 72 | 4 | hash of the canonical URL |
/// | 76 | 4 | hash of the host |
/// | 80 | 4 | hash of the fields that `Vary` names |
/// | 84 | 4 | tags |
/// | 88 | 8 | checksum of bytes 8 to 87, metadata and body, seeded with the pack's secret and the record's place in it |
///
/// The secret is random and is told to nobody: a server that could guess it might send a body that contains a record, and a reader that
/// looks for the next record behind a damaged one would take it for one of ours.
struct PackRecord {
    var key: KeyName
    var digest: KeyDigest
    var sequence: UInt64
    var uriHash: UInt32
    var hostHash: UInt32
    var varyHash: UInt32
    var tags: UInt32
    var isPinned: Bool
    var metadataLength: Int
    var bodyLength: Int

    static let headLength = 96
    static let unit = 8
    /// Complements: no few flipped bits make a dead record a living one.
    static let living: UInt64 = 0x4756_494C_4B41_5044
    static let dead: UInt64 = ~living
    /// What a pack takes: larger bodies have a file of their own.
    static let maximumBody = 16 << 10
    static let maximumMetadata = 64 << 10

    var length: Int { (Self.headLength + metadataLength + bodyLength + 7) & ~7 }

    init(_ entry: EntryMetadata, _ key: DiskKey, metadataLength: Int, bodyLength: Int) {
        self.key = key.name
        digest = key.digest
        sequence = entry.sequence
        uriHash = key.uriHash
        hostHash = key.hostHash
        varyHash = entry.rowVaryHash
        tags = TagFilter(entry.tags).bits
        isPinned = entry.isPinned
        self.metadataLength = metadataLength
        self.bodyLength = bodyLength
    }

    /// The head that these bytes begin with, living or dead; nil for anything else. Whether it is intact is `isIntact`'s to say.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headLength else { return nil }
        func word<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Number {
            Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
        }
        let state = word(0, UInt64.self)
        guard state == Self.living || state == Self.dead else { return nil }
        bodyLength = Int(word(8, UInt32.self))
        let lengthAndPin = word(12, UInt32.self)
        metadataLength = Int(lengthAndPin & 0x7FFF_FFFF)
        isPinned = lengthAndPin >> 31 != 0
        guard bodyLength <= Self.maximumBody, metadataLength <= Self.maximumMetadata else { return nil }
        key = KeyName(high: word(16, UInt64.self).bigEndian, low: word(24, UInt64.self).bigEndian)
        var words = SIMD4<UInt64>()
        for index in 0..<4 { words[index] = word(32 + index * 8, UInt64.self).bigEndian }
        digest = KeyDigest(words: words)
        sequence = word(64, UInt64.self)
        uriHash = word(72, UInt32.self)
        hostHash = word(76, UInt32.self)
        varyHash = word(80, UInt32.self)
        tags = word(84, UInt32.self)
    }

    static func isLiving(_ bytes: UnsafeRawBufferPointer) -> Bool {
        UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)) == living
    }

    /// Writes head, metadata and body; `bytes` has room for `length`.
    func write(to bytes: UnsafeMutableRawPointer, _ metadata: UnsafeRawBufferPointer, _ body: Data, seed: UInt64) {
        func store<Number: FixedWidthInteger>(_ number: Number, _ offset: Int) {
            bytes.storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
        }
        store(Self.living, 0)
        store(UInt32(bodyLength), 8)
        store(UInt32(metadataLength) | (isPinned ? 1 << 31 : 0), 12)
        store(key.high.bigEndian, 16)
        store(key.low.bigEndian, 24)
        for index in 0..<4 { store(digest.words[index].bigEndian, 32 + index * 8) }
        store(sequence, 64)
        store(uriHash, 72)
        store(hostHash, 76)
        store(varyHash, 80)
        store(tags, 84)
        let end = Self.headLength + metadataLength + bodyLength
        UnsafeMutableRawBufferPointer(start: bytes + Self.headLength, count: metadataLength).copyMemory(from: metadata)
        body.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(start: bytes + Self.headLength + metadataLength, count: bodyLength)
                .copyMemory(from: $0)
        }
        memset(bytes + end, 0, length - end)
        store(Self.checksum(.init(start: bytes, count: end), seed: seed), 88)
    }

    /// Sums a record that moved to another place anew.
    func reseal(_ bytes: UnsafeMutableRawPointer, seed: UInt64) {
        let sum = Self.checksum(
            .init(start: bytes, count: Self.headLength + metadataLength + bodyLength), seed: seed)
        bytes.storeBytes(of: sum.littleEndian, toByteOffset: 88, as: UInt64.self)
    }

    /// Whether these bytes hold the record as it was written to that place.
    func isIntact(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> Bool {
        let end = Self.headLength + metadataLength + bodyLength
        guard bytes.count >= end else { return false }
        let stored = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 88, as: UInt64.self))
        return stored == Self.checksum(.init(rebasing: bytes[..<end]), seed: seed)
    }

    private static func checksum(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        let head = Checksum.of(.init(rebasing: bytes[8..<88]), seed: seed)
        return Checksum.of(.init(rebasing: bytes[headLength...]), seed: head)
    }
}

/// The first bytes of a pack: "DURCPACK", the pack's number, its secret, and a checksum of these.
struct PackHead {
    var number: UInt64
    var secret: UInt64

    static let length = 32
    private static let magic: UInt64 = 0x4B43_4150_4352_5544

    init(number: UInt64) {
        self.number = number
        secret = .random(in: 0 ... .max)
    }

    /// Nil for anything but a pack of that number: a file that was renamed is not ours.
    init?(_ bytes: UnsafeRawBufferPointer, number: UInt64) {
        guard bytes.count >= Self.length else { return nil }
        func word(_ index: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        guard word(0) == Self.magic, word(1) == number, word(3) == Checksum.of(.init(rebasing: bytes[..<24]))
        else { return nil }
        self.number = number
        secret = word(2)
    }

    var bytes: [UInt8] {
        var writer = ByteWriter(capacity: Self.length)
        writer.append(Self.magic)
        writer.append(number)
        writer.append(secret)
        let sum = writer.withUnsafeBytes { Checksum.of($0) }
        writer.append(sum)
        return writer.finish()
    }
}

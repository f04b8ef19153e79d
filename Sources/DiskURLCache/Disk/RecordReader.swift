import Foundation

/// One record as read from its file.
struct LoadedRecord: Sendable {
    var header: RecordHeader
    var metadata: EntryMetadata
    /// Nil when only the head was asked for.
    var body: Data?
    /// Bytes on disk.
    var allocated: Int
}

/// What reading a record's file came to.
enum RecordReading {
    case record(LoadedRecord)
    case missing
    /// The system did not let us read it: says nothing about the record.
    case unreadable(Errno)
    /// Not a regular file of ours, or of an unknown version: never touched.
    case foreign
    /// Its bytes are not those that were written, or not all of them.
    case damaged
}

/// Reads and verifies records. Nothing is mapped: a file cut by somebody else must not kill the reader.
struct RecordReader: Sendable {
    let files: any FileSystem
    let paths: DiskPaths

    /// The largest record that a lookup reads whole with its first open: up to here a second open would cost more than
    /// reading a body that may not be wanted.
    static let wholeLimit = 256 << 10
    /// Most heads fit; measured: reading 8 KB costs what 1 KB costs.
    private static let headLength = 8 << 10
    /// Pieces that stay in the processor's cache between being read and being summed.
    private static let pieceLength = 128 << 10

    enum Extent {
        case whole
        /// Without the body, unless the first read brings it along.
        case head
        /// Whole when no larger than `wholeLimit`.
        case lookup
    }

    /// `limit` bounds what is allocated: a file longer than that is not one that we would have written.
    func read(_ digest: KeyDigest, slot: UInt8, _ extent: Extent, limit: Int) -> RecordReading {
        paths.withRecord(digest, slot) { path in
            let file: Int32
            do throws(Errno) {
                file = try files.openFile(path, O_RDONLY)
            } catch {
                switch error.code {
                case ENOENT, ENOTDIR: return .missing
                case ELOOP, ENXIO: return .foreign
                default: return .unreadable(error)
                }
            }
            defer { files.closeQuietly(file) }
            do throws(Errno) {
                return try read(file, digest, slot, extent, limit)
            } catch {
                return .unreadable(error)
            }
        }
    }

    private func read(
        _ file: Int32, _ digest: KeyDigest, _ slot: UInt8, _ extent: Extent, _ limit: Int
    ) throws(Errno) -> RecordReading {
        let status = try files.status(file)
        // A second name means that somebody linked a file of theirs here, or ours elsewhere.
        guard status.kind == .regular, status.links == 1 else { return .foreign }
        guard status.size >= RecordHeader.length else { return .damaged }
        guard status.size <= max(limit, RecordHeader.length) else { return .foreign }
        let isWhole =
            switch extent {
            case .whole: true
            case .head: status.size <= Self.headLength
            case .lookup: status.size <= Self.wholeLimit
            }
        let capacity = isWhole ? status.size : min(status.size, Self.headLength)
        guard var memory = malloc(capacity) else { throw Errno(ENOMEM) }
        var isGivenAway = false
        defer { if !isGivenAway { free(memory) } }

        var filled = try files.readFully(
            file, UnsafeMutableRawBufferPointer(start: memory, count: min(capacity, Self.pieceLength)))
        let header: RecordHeader
        switch RecordHeader.decode(UnsafeRawBufferPointer(start: memory, count: filled)) {
        case .header(let value): header = value
        case .foreign: return .foreign
        case .damaged: return .damaged
        }
        guard header.recordLength == status.size else { return .damaged }
        let bodyStart = RecordHeader.length + header.metadataLength
        if filled < bodyStart {
            if !isWhole {
                guard let larger = realloc(memory, bodyStart) else { throw Errno(ENOMEM) }
                memory = larger
            }
            filled += try files.readFully(
                file, UnsafeMutableRawBufferPointer(start: memory + filled, count: bodyStart - filled))
        }
        guard RecordHeader.isIntact(.init(start: memory, count: filled), metadataLength: header.metadataLength)
        else { return .damaged }
        // Intact, but under a name that is not its own: somebody moved it.
        guard header.digest == digest, header.slot == slot else { return .foreign }
        guard
            let metadata = MetadataCodec.decode(
                .init(start: memory + RecordHeader.length, count: header.metadataLength),
                sequence: header.sequence, isPinned: header.isPinned)
        else { return .damaged }
        var record = LoadedRecord(header: header, metadata: metadata, body: nil, allocated: status.allocated)
        guard isWhole else { return .record(record) }

        // The rest comes in pieces, each summed while the processor's cache still holds it.
        var checksum = Checksum()
        var summed = bodyStart
        while filled < status.size {
            let whole = (filled - summed) / Checksum.blockSize * Checksum.blockSize
            checksum.update(.init(start: memory + summed, count: whole))
            summed += whole
            let piece = min(Self.pieceLength, status.size - filled)
            let count = try files.readFully(file, .init(start: memory + filled, count: piece))
            filled += count
            if count < piece { return .damaged }
        }
        guard checksum.finish(.init(start: memory + summed, count: filled - summed)) == header.bodyChecksum
        else { return .damaged }
        if header.bodyLength < status.size / 4 {
            record.body = Data(bytes: memory + bodyStart, count: header.bodyLength)
        } else {
            // The body stays where it was read to, and takes the memory with it.
            isGivenAway = true
            let whole = OwnedMemory(start: memory)
            record.body = Data(
                bytesNoCopy: memory + bodyStart, count: header.bodyLength,
                deallocator: .custom { _, _ in whole.release() })
        }
        return .record(record)
    }
}

/// `@unchecked Sendable`: one owner, the body's `Data`, which releases it once.
private struct OwnedMemory: @unchecked Sendable {
    let start: UnsafeMutableRawPointer

    func release() {
        free(start)
    }
}

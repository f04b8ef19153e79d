import Foundation

/// One record as read from its file.
package struct LoadedRecord: Sendable {
    /// The last head of the record.
    package var header: RecordHeader
    package var metadata: EntryMetadata
    /// Nil when only the head was asked for.
    package var body: Data?
    var status: FileStatus
    /// Bytes of the heads that follow the body.
    var chainLength: Int
}

/// The result of reading a record's file.
package enum RecordReading {
    case record(LoadedRecord)
    case missing
    /// The system did not let us read the file. The record may be good.
    case unreadable(Errno)
    /// Not a regular file of ours, or of an unknown version: never touched.
    case foreign
    /// Its bytes are not those that were written, or not all of them.
    case damaged
}

/// Reads and verifies records: a head, the body, and the heads that updates appended, of which the last one counts.
/// Nothing is mapped: a file cut by somebody else must not kill the reader.
package struct RecordReader: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    /// A record of another user is foreign.
    var owner: FileOwner

    package init(files: any FileSystem, paths: DiskPaths, owner: FileOwner = .process) {
        self.files = files
        self.paths = paths
        self.owner = owner
    }

    /// The largest record that a lookup reads whole with its first open: up to here a second open would cost more than
    /// reading a body that may not be wanted.
    static let wholeLimit = 256 << 10
    /// Most heads fit; measured: reading 8 KB costs what 1 KB costs.
    private static let headLength = 8 << 10
    /// Pieces that stay in the processor's cache between being read and being summed.
    private static let pieceLength = 128 << 10

    package enum Extent {
        case whole
        /// Without the body, unless the first read brings it along.
        case head
        /// Whole when no larger than `wholeLimit`.
        case lookup
    }

    /// `limit` bounds what is allocated: a file longer than that is not one that we would have written.
    package func read(_ name: RecordName, _ extent: Extent, limit: Int) -> RecordReading {
        paths.withRecord(name) { path in
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
            return read(file, name, extent, limit: limit)
        }
    }

    /// The same of a file that is open.
    func read(_ file: Int32, _ name: RecordName, _ extent: Extent, limit: Int) -> RecordReading {
        do throws(Errno) {
            return try readThrowing(file, name, extent, limit)
        } catch {
            return .unreadable(error)
        }
    }

    private func readThrowing(
        _ file: Int32, _ name: RecordName, _ extent: Extent, _ limit: Int
    ) throws(Errno) -> RecordReading {
        let status = try files.status(file)
        // A second name means that somebody linked a file of theirs here, or ours elsewhere.
        guard status.kind == .regular, status.links == 1, owner.owns(status) else { return .foreign }
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
            file, UnsafeMutableRawBufferPointer(start: memory, count: min(capacity, Self.pieceLength)), at: 0)
        let first: RecordHeader
        switch RecordHeader.decode(UnsafeRawBufferPointer(start: memory, count: filled)) {
        case .header(let value): first = value
        case .foreign: return .foreign
        case .damaged: return .damaged
        }
        guard let base = first.recordLength, base <= status.size else { return .damaged }
        let bodyStart = first.headLength
        if filled < bodyStart {
            if !isWhole {
                guard let larger = realloc(memory, bodyStart) else { throw Errno(ENOMEM) }
                memory = larger
            }
            filled += try files.readFully(
                file, UnsafeMutableRawBufferPointer(start: memory + filled, count: bodyStart - filled), at: filled)
        }
        guard RecordHeader.isIntact(.init(start: memory, count: filled), metadataLength: first.metadataLength)
        else { return .damaged }
        // Intact, but under a name that is not its own: somebody moved it.
        guard first.name == name else { return .foreign }
        var checksum = Checksum()
        var summed = bodyStart
        if isWhole {
            // The rest comes in pieces, each summed while the processor's cache still holds it.
            while filled < status.size {
                let whole = max(0, (min(filled, base) - summed) / Checksum.blockSize * Checksum.blockSize)
                checksum.update(.init(start: memory + summed, count: whole))
                summed += whole
                let piece = min(Self.pieceLength, status.size - filled)
                let count = try files.readFully(file, .init(start: memory + filled, count: piece), at: filled)
                filled += count
                if count < piece { return .damaged }
            }
            guard checksum.finish(.init(start: memory + summed, count: base - summed)) == first.bodyChecksum
            else { return .damaged }
        }
        var last: (header: RecordHeader, metadata: EntryMetadata)?
        let chainLength = status.size - base
        if chainLength == 0 {
            last = Self.head(first, .init(start: memory, count: bodyStart))
        } else if isWhole {
            last = Self.lastHead(after: first, in: .init(start: memory + base, count: chainLength))
        } else {
            last = try readChain(file, after: first, at: base, length: chainLength)
        }
        guard let last else { return .damaged }
        var record = LoadedRecord(
            header: last.header, metadata: last.metadata, body: nil, status: status, chainLength: chainLength)
        guard isWhole else { return .record(record) }
        if first.bodyLength < status.size / 4 {
            record.body = Data(bytes: memory + bodyStart, count: first.bodyLength)
        } else {
            // The body stays where it was read to, and takes the memory with it.
            isGivenAway = true
            let whole = OwnedMemory(start: memory)
            record.body = Data(
                bytesNoCopy: memory + bodyStart, count: first.bodyLength,
                deallocator: .custom { _, _ in whole.release() })
        }
        return .record(record)
    }

    /// Reads the heads after a body that is not wanted.
    private func readChain(
        _ file: Int32, after first: RecordHeader, at offset: Int, length: Int
    ) throws(Errno) -> (header: RecordHeader, metadata: EntryMetadata)? {
        // We never write more.
        guard length <= RecordWriter.chainLimit(bodyLength: first.bodyLength), let memory = malloc(length)
        else { return nil }
        defer { free(memory) }
        let count = try files.readFully(file, .init(start: memory, count: length), at: offset)
        return count < length ? nil : Self.lastHead(after: first, in: .init(start: memory, count: length))
    }

    /// The last of the heads that fill these bytes; nil where they are anything else.
    private static func lastHead(
        after first: RecordHeader, in bytes: UnsafeRawBufferPointer
    ) -> (header: RecordHeader, metadata: EntryMetadata)? {
        var (header, start, position) = (first, 0, 0)
        while position < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
            guard case .header(let next) = RecordHeader.decode(rest), next.follows(header),
                RecordHeader.isIntact(rest, metadataLength: next.metadataLength)
            else { return nil }
            (header, start) = (next, position)
            position += next.headLength
        }
        return head(header, UnsafeRawBufferPointer(rebasing: bytes[start..<position]))
    }

    private static func head(
        _ header: RecordHeader, _ bytes: UnsafeRawBufferPointer
    ) -> (header: RecordHeader, metadata: EntryMetadata)? {
        let metadata = UnsafeRawBufferPointer(rebasing: bytes[RecordHeader.length..<header.headLength])
        return MetadataCodec.decode(metadata, sequence: header.sequence, isPinned: header.isPinned).map { (header, $0) }
    }
}

/// `@unchecked Sendable`: one owner, the body's `Data`, which releases it once.
private struct OwnedMemory: @unchecked Sendable {
    let start: UnsafeMutableRawPointer

    func release() {
        free(start)
    }
}

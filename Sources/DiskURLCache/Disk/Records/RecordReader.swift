import Foundation

/// One record as read from its file.
package struct LoadedRecord: Sendable {
    /// That of the last tail.
    package var footer: RecordFooter
    package var metadata: EntryMetadata
    /// Nil when only the tail was asked for.
    package var body: Data?
    /// The body in its file, if it was asked for.
    var opening: OpenBody?
    var status: FileStatus

    /// Different keys may share a name.
    func isOfSameVariant(as other: LoadedRecord) -> Bool {
        guard footer.varyHash == other.footer.varyHash, footer.isOfURL == other.footer.isOfURL else { return false }
        return footer.isOfURL ? metadata.url == other.metadata.url : footer.digest == other.footer.digest
    }

    var entry: StoredEntry? { body.map { StoredEntry(metadata: metadata, body: $0) } }
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

/// Reads and verifies records: the body, and the tails that follow it, of which the last one counts and is read.
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
    /// Most tails fit; measured: reading 8 KB costs what 1 KB costs.
    private static let tailLength = 8 << 10
    /// Pieces that stay in the processor's cache between being read and being summed. Whole blocks of the checksum.
    private static let pieceLength = 128 << 10

    package enum Extent {
        case whole
        /// Without the body, unless the first read brings it along.
        case tail
        /// Whole when no larger than `wholeLimit`.
        case lookup
        /// The body is verified and stays in its file, which stays open. Later reads use the same file, whose bytes are
        /// never changed by anybody who keeps to the format.
        case opened
    }

    /// `limit` bounds what is allocated: a file longer than that is not one that we would have written.
    package func read(_ name: RecordName, _ extent: Extent, limit: Int) -> RecordReading {
        paths.withRecord(name) { path in
            do throws(Errno) {
                return try read(OpenFile(try files.openFile(path, O_RDONLY), files), name, extent, limit: limit)
            } catch {
                switch error.code {
                case ENOENT, ENOTDIR: return .missing
                case ELOOP, ENXIO: return .foreign
                default: return .unreadable(error)
                }
            }
        }
    }

    /// The same of a file that is open.
    func read(_ opened: OpenFile, _ name: RecordName, _ extent: Extent, limit: Int) throws(Errno) -> RecordReading {
        let file = opened.file
        let status = try files.status(file)
        guard owner.isTrustedFile(status) else { return .foreign }
        guard status.size >= RecordFooter.length else { return .damaged }
        guard status.size <= max(limit, RecordFooter.length) else { return .foreign }
        let wantsBody = extent == .whole || extent == .lookup && status.size <= Self.wholeLimit
        // The end of the file says what is before it: of a small record one read brings all.
        let isShort = status.size <= Self.pieceLength
        var count = min(status.size, wantsBody && isShort ? Self.pieceLength : Self.tailLength)
        guard var memory = malloc(count) else { throw Errno(ENOMEM) }
        var isGivenAway = false
        defer { if !isGivenAway { free(memory) } }
        guard try readEnd(of: file, status, memory, count) else { return .damaged }
        let footer: RecordFooter
        switch RecordFooter.decode(endOf: UnsafeRawBufferPointer(start: memory, count: count)) {
        case .footer(let value): footer = value
        case .foreign: return .foreign
        case .damaged: return .damaged
        }
        guard footer.recordLength <= status.size else { return .damaged }
        if footer.tailLength > count {
            count = footer.tailLength
            guard let larger = realloc(memory, count) else { throw Errno(ENOMEM) }
            memory = larger
            guard try readEnd(of: file, status, memory, count) else { return .damaged }
        }
        guard let metadata = footer.metadata(in: UnsafeRawBufferPointer(start: memory, count: count))
        else { return .damaged }
        // Intact, but under a name that is not its own: somebody moved it.
        guard footer.name == name else { return .foreign }
        var record = LoadedRecord(footer: footer, metadata: metadata, status: status)
        let length = footer.bodyLength
        if extent == .opened {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceLength, alignment: 16)
            defer { buffer.deallocate() }
            guard try checksum(ofBody: length, in: file, through: buffer) == footer.bodyChecksum
            else { return .damaged }
            record.opening = OpenBody(count: length, read: opened.bytes)
        } else if count == status.size {
            let body = UnsafeRawBufferPointer(start: memory, count: length)
            guard Checksum.of(body) == footer.bodyChecksum else { return .damaged }
            // A body that is most of the memory keeps it.
            isGivenAway = length >= count / 4
            record.body = isGivenAway ? Data(bytesNoCopy: memory, count: length, deallocator: .free) : Data(body)
        } else if wantsBody {
            guard let body = malloc(max(1, length)) else { throw Errno(ENOMEM) }
            record.body = Data(bytesNoCopy: body, count: length, deallocator: .free)
            let buffer = UnsafeMutableRawBufferPointer(start: body, count: length)
            guard try checksum(ofBody: length, in: file, through: buffer) == footer.bodyChecksum
            else { return .damaged }
        }
        return .record(record)
    }

    /// False if the file ends earlier than its status said.
    private func readEnd(
        of file: Int32, _ status: FileStatus, _ memory: UnsafeMutableRawPointer, _ count: Int
    ) throws(Errno) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer(start: memory, count: count)
        return try files.readFully(file, buffer, at: status.size - count) == count
    }

    /// The checksum of a body that is read in pieces, each summed while the processor's cache still holds it: into the
    /// buffer, or, where the buffer is smaller than the body, through it. The checksum of other bytes if the file ends
    /// early.
    private func checksum(
        ofBody length: Int, in file: Int32, through buffer: UnsafeMutableRawBufferPointer
    ) throws(Errno) -> UInt64 {
        var checksum = Checksum()
        var done = 0
        while true {
            let start = buffer.count < length ? 0 : done
            let count = min(Self.pieceLength, length - done)
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<start + count])
            let read = try files.readFully(file, piece, at: done)
            done += read
            let bytes = UnsafeRawBufferPointer(rebasing: piece[..<read])
            if done == length || read < count { return checksum.finish(bytes) }
            checksum.update(bytes)
        }
    }
}

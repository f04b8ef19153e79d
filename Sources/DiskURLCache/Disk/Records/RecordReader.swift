import Foundation

/// A record that was read from its file.
package struct LoadedRecord: Sendable {
    /// The footer of the last tail.
    package var footer: RecordFooter
    package var metadata: EntryMetadata
    /// Nil if only the tail was requested.
    package var body: Data?
    /// The body in its open file, if that was requested.
    var opening: OpenBody?
    var status: FileStatus

    /// Different keys may share a name.
    func isOfSameVariant(as other: LoadedRecord) -> Bool {
        guard footer.varyHash == other.footer.varyHash, footer.isOfURL == other.footer.isOfURL else { return false }
        return footer.isOfURL ? metadata.url == other.metadata.url : footer.digest == other.footer.digest
    }

    var entry: StoredEntry? { body.map { StoredEntry(metadata: metadata, body: $0) } }
}

extension [LoadedRecord] {
    /// A crash may leave two records of a variant; then the more recent one counts.
    func newestOfEachVariant() -> [LoadedRecord] {
        var newest: [LoadedRecord] = []
        for record in sorted(by: { $0.footer.sequence > $1.footer.sequence })
        where !newest.contains(where: { $0.footer.varyHash == record.footer.varyHash }) {
            newest.append(record)
        }
        return newest
    }
}

/// The result of reading a record's file.
package enum RecordReading {
    case record(LoadedRecord)
    case missing
    /// The system did not allow to read the file. The record may be intact.
    case unreadable(Errno)
    /// Not a regular file of this cache, or of an unknown version. It is never touched.
    case foreign
    /// Its bytes are not those that were written, or some are missing.
    case damaged
}

/// Reads and verifies records: the body and the last of the tails that follow it. Files are not mapped into memory,
/// since truncating a mapped file would crash the reader.
package struct RecordReader: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    /// The owner whose records are trusted; those of other users are foreign.
    var owner: FileOwner

    package init(files: any FileSystem, paths: DiskPaths, owner: FileOwner = .process) {
        self.files = files
        self.paths = paths
        self.owner = owner
    }

    /// The size up to which a lookup reads the whole record at once. Up to here, opening the file a second time would
    /// cost more than reading a body that may not be needed.
    static let wholeLimit = 256 << 10
    /// The bytes that are read at the end of the file first. Most tails fit, and reading 8 KB takes no longer than
    /// reading 1 KB (measured).
    private static let tailLength = 8 << 10
    /// The size of pieces, which stay in the processor's cache between being read and being summed. A multiple of the
    /// checksum's block.
    private static let pieceLength = 128 << 10

    package enum Extent {
        case whole
        /// The tail; the body only if it was read together with the tail.
        case tail
        /// The whole record if it is not larger than `wholeLimit`, otherwise the tail.
        case lookup
        /// The tail, and the body verified but left in its file, which stays open. Later reads use the same file, whose
        /// bytes no cache ever changes.
        case opened
    }

    /// Reads a record. `limit` bounds the memory that is allocated: the cache would not have written a longer file.
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

    /// The same for an open file.
    func read(_ opened: OpenFile, _ name: RecordName, _ extent: Extent, limit: Int) throws(Errno) -> RecordReading {
        let file = opened.file
        let status = try files.status(file)
        guard owner.isTrustedFile(status) else { return .foreign }
        guard status.size >= RecordFooter.length else { return .damaged }
        guard status.size <= max(limit, RecordFooter.length) else { return .foreign }
        let wantsBody = extent == .whole || extent == .lookup && status.size <= Self.wholeLimit
        // The end of the file describes what is before it. A small record is read as a whole.
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
        // The record is intact, but has the wrong name: somebody moved it.
        guard footer.name == name else { return .foreign }
        var record = LoadedRecord(footer: footer, metadata: metadata, status: status)
        let length = footer.bodyLength
        if extent == .opened {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceLength, alignment: 16)
            defer { buffer.deallocate() }
            guard try checksum(ofBody: length, in: file, through: buffer) == footer.bodyChecksum
            else { return .damaged }
            record.opening = OpenBody(count: length, read: opened.bytes(_:followedBy:))
        } else if count == status.size {
            let body = UnsafeRawBufferPointer(start: memory, count: length)
            guard Checksum.of(body) == footer.bodyChecksum else { return .damaged }
            // If the body is a large part of the memory, it takes over the memory instead of being copied.
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

    /// False if the file is shorter than its status said.
    private func readEnd(
        of file: Int32, _ status: FileStatus, _ memory: UnsafeMutableRawPointer, _ count: Int
    ) throws(Errno) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer(start: memory, count: count)
        return try files.readFully(file, buffer, at: status.size - count) == count
    }

    /// Reads a body in pieces, and computes its checksum while each piece is still in the processor's cache. If the
    /// buffer is smaller than the body, all pieces are read into the same place. If the file ends early, the checksum
    /// is wrong.
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

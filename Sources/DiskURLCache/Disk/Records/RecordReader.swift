import Foundation

/// A record that was read from its file.
package struct LoadedRecord: Sendable {
    /// The footer of the last tail.
    package var footer: RecordFooter
    package var metadata: EntryMetadata
    var content: Content
    var status: FileStatus

    /// How the body is at hand. Except for `.unread` it was verified.
    enum Content: Sendable {
        /// Only the tail was requested. Its file, if that was to stay open.
        case unread(OpenFile?)
        case bytes(Data)
        /// In its file, which stays open.
        case file(OpenBody)
    }

    /// The body; nil if it was not read into memory.
    package var body: Data? { if case .bytes(let body) = content { body } else { nil } }

    /// The body in its open file, if that was requested.
    var opening: OpenBody? { if case .file(let body) = content { body } else { nil } }

    /// The file of a record that was read as `.held`.
    var file: OpenFile? { if case .unread(let file) = content { file } else { nil } }

    /// Whether the record is of this key: different keys may share a name. The digest of a key takes time, so it is
    /// computed only to be compared.
    package func isOf(_ key: RequestKey) -> Bool {
        if footer.isOfURL { return metadata.url.map(key.isURL) ?? false }
        return footer.digest == key.digest
    }

    /// Different keys may share a name. And one key may have a record that proves it by its URL, and another one that
    /// proves it by a digest: of a request whose URL is spelled otherwise, or of a time with other settings.
    func isOfSameVariant(as other: LoadedRecord) -> Bool {
        guard footer.varyHash == other.footer.varyHash else { return false }
        if footer.isOfURL, other.footer.isOfURL { return metadata.url == other.metadata.url }
        return keyDigest == other.keyDigest
    }

    /// The digest of the key, also of a record whose URL is its key.
    private var keyDigest: KeyDigest {
        guard footer.isOfURL else { return footer.digest }
        let url = metadata.url ?? ""
        return KeyDigest(ofKey: url, host: URLCanonicalizer.host(ofNormal: url))
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
        /// The tail; the file stays open, so that no other file can have its identity.
        case held
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
                let file = try files.openFile(path, O_RDONLY)
                if extent == .opened || extent == .held {
                    return try read(file, name, extent, limit: limit, for: OpenFile(file, files))
                }
                defer { files.closeQuietly(file) }
                return try read(file, name, extent, limit: limit)
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
    /// - Parameter opened: the same file, if it stays open.
    func read(
        _ file: Int32, _ name: RecordName, _ extent: Extent, limit: Int, for opened: OpenFile? = nil
    ) throws(Errno) -> RecordReading {
        switch try readTail(of: file, extent, limit: limit) {
        case .foreign: return .foreign
        case .damaged: return .damaged
        case .tail(let tail):
            // The body takes over the memory of the tail.
            let footer = tail.footer
            let metadata = tail.metadata
            let status = tail.status
            // The record is intact, but has the wrong name: somebody moved it.
            guard footer.name == name else { return .foreign }
            guard let content = try content(after: tail, of: file, extent, opened) else { return .damaged }
            return .record(LoadedRecord(footer: footer, metadata: metadata, content: content, status: status))
        }
    }

    // MARK: The tail

    /// The last tail of a record, and the bytes at the end of its file, of which the tail is a part.
    private struct Tail: ~Copyable {
        let footer: RecordFooter
        let metadata: EntryMetadata
        let status: FileStatus
        let end: HeapBytes

        /// A short record is read by one call, body and all.
        var hasWholeRecord: Bool { end.count == status.size }
    }

    private enum TailReading: ~Copyable {
        case tail(Tail)
        case foreign
        case damaged
    }

    private func readTail(of file: Int32, _ extent: Extent, limit: Int) throws(Errno) -> TailReading {
        let status = try files.status(file)
        guard owner.isTrustedFile(status) else { return .foreign }
        guard status.size >= RecordFooter.length else { return .damaged }
        guard status.size <= max(limit, RecordFooter.length) else { return .foreign }
        let isReadWhole = status.size <= Self.pieceLength && wantsBytes(extent, of: status)
        let length = isReadWhole ? status.size : min(status.size, Self.tailLength)
        guard var end = try readEnd(of: file, status, length) else { return .damaged }
        let footer: RecordFooter
        switch end.withBytes({ RecordFooter.decode(endOf: $0) }) {
        case .footer(let value): footer = value
        case .foreign: return .foreign
        case .damaged: return .damaged
        }
        guard footer.recordLength <= status.size else { return .damaged }
        if footer.tailLength > end.count {
            guard let longer = try readEnd(of: file, status, footer.tailLength) else { return .damaged }
            end = longer
        }
        guard let metadata = end.withBytes({ footer.metadata(in: $0) }) else { return .damaged }
        return .tail(Tail(footer: footer, metadata: metadata, status: status, end: end))
    }

    /// The last bytes of the file; nil if the file is shorter than its status said.
    private func readEnd(of file: Int32, _ status: FileStatus, _ count: Int) throws(Errno) -> HeapBytes? {
        let end = try HeapBytes(count)
        let read = try end.fill { buffer throws(Errno) in
            try files.readFully(file, buffer, at: status.size - count)
        }
        guard read == count else { return nil }
        return end
    }

    // MARK: The body

    private func wantsBytes(_ extent: Extent, of status: FileStatus) -> Bool {
        switch extent {
        case .whole: true
        case .lookup: status.size <= Self.wholeLimit
        case .tail, .held, .opened: false
        }
    }

    /// The body as it was requested; nil if it is not the body that was written.
    private func content(
        after tail: consuming Tail, of file: Int32, _ extent: Extent, _ opened: OpenFile?
    ) throws(Errno) -> LoadedRecord.Content? {
        let footer = tail.footer
        let length = footer.bodyLength
        if extent == .opened, let opened {
            let piece = try HeapBytes(Self.pieceLength)
            guard try checksum(ofBody: length, in: file, through: piece) == footer.bodyChecksum else { return nil }
            return .file(opened.body(count: length))
        }
        if tail.hasWholeRecord {
            let sum = tail.end.withBytes { Checksum.of(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
            guard sum == footer.bodyChecksum else { return nil }
            if extent == .held { return .unread(opened) }
            // If the body is a large part of the memory, it takes over the memory instead of being copied.
            if length >= tail.end.count / 4 { return .bytes(tail.end.data(count: length)) }
            return .bytes(tail.end.withBytes { Data($0[..<length]) })
        }
        guard wantsBytes(extent, of: tail.status) else { return .unread(opened) }
        let body = try HeapBytes(length)
        guard try checksum(ofBody: length, in: file, through: body) == footer.bodyChecksum else { return nil }
        return .bytes(body.data(count: length))
    }

    private func checksum(
        ofBody length: Int, in file: Int32, through memory: borrowing HeapBytes
    ) throws(Errno) -> UInt64 {
        try memory.fill { buffer throws(Errno) in try checksum(ofBody: length, in: file, through: buffer) }
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

/// Memory from `malloc`, which is not filled with zeros first, and which a `Data` can take over.
private struct HeapBytes: ~Copyable {
    private let start: UnsafeMutableRawPointer
    let count: Int

    init(_ count: Int) throws(Errno) {
        guard let start = malloc(max(1, count)) else { throw Errno(ENOMEM) }
        self.start = start
        self.count = count
    }

    deinit { free(start) }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(start: start, count: count))
    }

    func fill<Result>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> Result
    ) throws(Errno) -> Result {
        try body(UnsafeMutableRawBufferPointer(start: start, count: count))
    }

    /// The first bytes, without a copy.
    consuming func data(count: Int) -> Data {
        let start = start
        discard self
        return Data(bytesNoCopy: start, count: count, deallocator: .free)
    }
}

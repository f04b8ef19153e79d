import Foundation

/// A record ready to be written but for its slot.
package struct PreparedRecord: Sendable {
    var header: RecordHeader
    /// Space for the header, then the metadata.
    private var head: ByteWriter
    package var body: Data

    /// Nil when the entry cannot be kept as it is: a record has no place for "memory only", for example.
    package init?(_ entry: StoredEntry, for key: DiskKey, keepsURL: Bool) {
        self.init(
            entry.metadata, entry.body, for: key, keepsURL: keepsURL,
            bodyChecksum: entry.body.withUnsafeBytes { Checksum.of($0) })
    }

    /// The next head of a record whose body stays as it is.
    init?(_ metadata: EntryMetadata, updating old: RecordHeader, keepsURL: Bool) {
        self.init(metadata, Data(), for: DiskKey(old), keepsURL: keepsURL, bodyChecksum: old.bodyChecksum)
        header.name = old.name
        header.bodyLength = old.bodyLength
    }

    /// The head that ends a record whose body is in its file already.
    init?(_ metadata: EntryMetadata, bodyOf sum: (length: Int, checksum: UInt64), for key: DiskKey, keepsURL: Bool) {
        self.init(metadata, Data(), for: key, keepsURL: keepsURL, bodyChecksum: sum.checksum)
        header.bodyLength = sum.length
    }

    /// The head that begins such a record: of one length, whatever the response, since it is written around before that is known.
    /// The one at the end counts.
    init?(beginning last: RecordHeader) {
        self.init(Self.nothing(sequence: last.sequence &- 1), updating: last, keepsURL: false)
    }

    private static func nothing(sequence: UInt64) -> EntryMetadata {
        EntryMetadata(
            sequence: sequence, url: nil,
            response: .other(mimeType: nil, expectedContentLength: 0, textEncodingName: nil),
            storedAt: Date(timeIntervalSinceReferenceDate: 0), placement: .memoryAndDisk, userInfo: [:], tags: [],
            isPinned: false)
    }

    /// What the first head of such a record takes.
    static let firstHeadLength: Int = {
        var writer = ByteWriter(capacity: 64, leaving: RecordHeader.length)
        _ = MetadataCodec.write(nothing(sequence: 0), to: &writer, keepsURL: false)
        return RecordHeader.length + writer.count
    }()

    private init?(
        _ metadata: EntryMetadata, _ body: Data, for key: DiskKey, keepsURL: Bool,
        bodyChecksum: @autoclosure () -> UInt64
    ) {
        // Most metadata fit, and so does the whole into what the allocator has at hand (1,032 bytes).
        head = ByteWriter(capacity: 800, leaving: RecordHeader.length)
        guard metadata.placement == .memoryAndDisk, MetadataCodec.write(metadata, to: &head, keepsURL: keepsURL)
        else { return nil }
        self.body = body
        header = RecordHeader(
            name: RecordName(key: key.name, slot: 0), digest: key.digest, isPinned: metadata.isPinned,
            sequence: metadata.sequence, hostHash: key.hostHash,
            tagFilter: TagFilter(metadata.tags), storedAt: metadata.storedAt.recordSeconds,
            varyHash: metadata.varyHash, metadataLength: head.count, bodyLength: body.count,
            bodyChecksum: bodyChecksum())
    }

    /// Brings the header's bytes up to date; calls with all that is written before the body.
    package mutating func withHead<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        head.withUnsafeMutableBytes {
            header.write(into: $0)
            return body(UnsafeRawBufferPointer($0))
        }
    }
}

extension EntryMetadata {
    package var varyHash: UInt64 { http?.vary.recordHash ?? 0 }
}

/// Creates records and appends heads to them. Bytes that were written are never changed: a record is whole, or its checksums show
/// that it is not.
struct RecordWriter: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    /// False while the process may be suspended. A record that is unlocked and unfinished may look torn to another process, which
    /// removes it: a miss.
    var locks: @Sendable () -> Bool = { true }
    var mayLock: Bool { locks() }

    // MARK: Creating

    /// Writes the record into its slot, which must be free; returns the status of its file. After a failure the unfinished
    /// file is removed, except where the slot was not free (`EEXIST`).
    func create(_ record: inout PreparedRecord) throws(Errno) -> FileStatus {
        let (name, body) = (record.header.name, record.body)
        return try record.withHead { head in
            paths.withRecord(name) { path in Result { () throws(Errno) in try create(head, body, at: path) } }
        }.get()
    }

    private func create(
        _ head: UnsafeRawBufferPointer, _ body: Data, at path: UnsafePointer<CChar>
    ) throws(Errno) -> FileStatus {
        let file = try files.openFile(path, O_WRONLY | O_CREAT | O_EXCL)
        // Tells other processes that this unfinished record has a writer who lives. One that already looks at the file,
        // empty as it is, takes it for a torn one and is about to remove it: the slot is as good as taken.
        if mayLock, (try? files.lockFile(file, exclusively: true)) == false {
            files.closeQuietly(file)
            throw Errno(EEXIST)
        }
        var isOpen = true
        var hasName = true
        do throws(Errno) {
            try body.withUnsafeBytes { body in
                Result { () throws(Errno) in try files.writeFully(file, head, body) }
            }.get()
            let status = try files.status(file)
            // A process that looked at it before it was locked has removed it. The name may be another file's by now.
            hasName = status.links > 0
            guard hasName else { throw Errno(EEXIST) }
            // The umask may have removed permissions that we need ourselves.
            if status.permissions != 0o600 { try files.setPermissions(file, 0o600) }
            isOpen = false
            try files.close(file)
            return status
        } catch {
            if hasName, !isOpen || files.isStill(file, at: path) { try? files.unlink(path) }
            if isOpen { files.closeQuietly(file) }
            throw error
        }
    }

    /// Gives a body that has arrived its heads and the slot's name; returns the status of the file. The slot is taken first,
    /// as `create` does it, so that no record of another process is replaced. After a failure the slot is free again.
    func adopt(_ body: IncomingBody, _ record: inout PreparedRecord) throws(Errno) -> FileStatus {
        let name = record.header.name
        guard var first = PreparedRecord(beginning: record.header) else { throw Errno(EINVAL) }
        return try first.withHead { first in
            record.withHead { last in
                paths.withRecord(name) { path in
                    Result { () throws(Errno) in try adopt(body, first, last, at: path) }
                }
            }
        }.get()
    }

    private func adopt(
        _ body: IncomingBody, _ first: UnsafeRawBufferPointer, _ last: UnsafeRawBufferPointer,
        at path: UnsafePointer<CChar>
    ) throws(Errno) -> FileStatus {
        let slot = try files.openFile(path, O_WRONLY | O_CREAT | O_EXCL)
        defer { files.closeQuietly(slot) }
        if mayLock, (try? files.lockFile(slot, exclusively: true)) == false { throw Errno(EEXIST) }
        var hasName = true
        do throws(Errno) {
            hasName = try files.status(slot).links > 0
            guard hasName else { throw Errno(EEXIST) }
            let status = try body.close(first: first, last: last)
            try files.rename(body.path, to: path)
            return status
        } catch {
            if hasName, files.isStill(slot, at: path) { try? files.unlink(path) }
            throw error
        }
    }

    // MARK: Updating

    /// How long the heads after a body may grow: a sixteenth of the body, so that writing it anew once in a while costs less
    /// than the updates. 64 KB at least, since a small body is soon written; 1 MB at most, since each lookup reads them.
    static func chainLimit(bodyLength: Int) -> Int {
        min(max(64 << 10, bodyLength / 16), 1 << 20)
    }

    enum Update {
        /// The record as it is now.
        case appended(RecordHeader, FileStatus)
        /// The file has another record by now, or none.
        case notFound
        /// The record is to be written whole, elsewhere: it has too many heads, or another process holds its lock.
        case mustRewrite
        /// The metadata cannot be kept as they are.
        case notRepresentable
    }

    /// Appends a head to the record that has this sequence, by one write under the file's lock. Until that write is
    /// complete the last head does not count: a reader takes the file for damaged, which is a miss.
    func append(
        _ metadata: EntryMetadata, to name: RecordName, of digest: KeyDigest, replacing sequence: UInt64,
        keepsURL: Bool, limit: Int
    ) throws(Errno) -> Update {
        do throws(Errno) {
            let file = try paths.withRecord(name) { path in
                Result { () throws(Errno) in try files.openFile(path, O_RDWR | O_APPEND) }
            }.get()
            defer { files.closeQuietly(file) }
            guard mayLock, try files.lockFile(file, exclusively: true) else { return .mustRewrite }
            // Read under the lock: from here on the file does not change.
            let reader = RecordReader(files: files, paths: paths, owner: .process)
            guard case .record(let record) = reader.read(file, name, .head, limit: limit),
                record.header.digest == digest, record.header.sequence == sequence
            else { return .notFound }
            return try append(metadata, to: file, record, keepsURL: keepsURL, limit: limit)
        } catch {
            if error.isMissing { return .notFound }
            throw error
        }
    }

    private func append(
        _ metadata: EntryMetadata, to file: Int32, _ record: LoadedRecord, keepsURL: Bool, limit: Int
    ) throws(Errno) -> Update {
        guard var next = PreparedRecord(metadata, updating: record.header, keepsURL: keepsURL)
        else { return .notRepresentable }
        let chain = record.chainLength + next.header.headLength
        guard next.header.follows(record.header), chain <= Self.chainLimit(bodyLength: next.header.bodyLength),
            record.status.size + next.header.headLength <= limit
        else { return .mustRewrite }
        do throws(Errno) {
            try next.withHead { head in Result { () throws(Errno) in try files.writeFully(file, head) } }.get()
            return .appended(next.header, try files.status(file))
        } catch {
            // The part that was written is cut off, and the record is as before.
            try? files.truncate(file, record.status.size)
            throw error
        }
    }
}

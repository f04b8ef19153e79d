import Foundation

/// A record ready to be written but for its slot.
package struct PreparedRecord: Sendable {
    var footer: RecordFooter
    /// The metadata, then room for the footer.
    private var tail: ByteWriter
    /// The bytes before the tail; none if they are in the file already.
    package let body: Data

    /// Nil when the entry cannot be kept as it is: a record has no place for "memory only", for example.
    package init?(_ entry: StoredEntry, for key: DiskKey, keepsURL: Bool) {
        let checksum = entry.body.withUnsafeBytes { Checksum.of($0) }
        self.init(
            entry.metadata, bodyOf: (entry.body.count, checksum), for: key, keepsURL: keepsURL, body: entry.body)
    }

    /// - Parameter sum: of the body, which is in the file already.
    init?(
        _ metadata: EntryMetadata, bodyOf sum: (length: Int, checksum: UInt64), for key: DiskKey, keepsURL: Bool,
        body: Data = Data()
    ) {
        // Most metadata fit, and the whole fits into the memory that the allocator has ready (1,032 bytes).
        tail = ByteWriter(capacity: 800 + RecordFooter.length)
        guard metadata.placement == .memoryAndDisk, MetadataCodec.write(metadata, to: &tail, keepsURL: keepsURL)
        else { return nil }
        self.body = body
        footer = RecordFooter(
            name: RecordName(key: key.name, slot: 0), digest: key.digest, isOfURL: key.isItsURL,
            isPinned: metadata.isPinned,
            sequence: metadata.sequence, hostHash: key.hostHash,
            tagFilter: TagFilter(metadata.tags), storedAt: metadata.storedAt.recordSeconds,
            varyHash: metadata.varyHash, metadataLength: tail.count, bodyLength: sum.length, bodyChecksum: sum.checksum)
        tail.skip(RecordFooter.length)
    }

    /// Brings the footer's bytes up to date; calls with all that is written after the body.
    package mutating func withTail<Value, Failure>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try tail.withUnsafeMutableBytes { bytes in
            footer.write(into: bytes)
            return Result { () throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
        }.get()
    }
}

extension EntryMetadata {
    package var varyHash: UInt64 { http?.vary.recordHash ?? 0 }
}

/// Creates records and appends tails to them. Bytes that were written are never changed: a record is whole, or its
/// checksums show that it is not.
struct RecordWriter: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    /// False while the process may be suspended. A record that is unlocked and unfinished may look torn to another
    /// process, which removes it: a miss.
    let mayLock: @Sendable () -> Bool
    /// Whether no other cache is there that would see an unfinished record.
    let isAlone: @Sendable () -> Bool

    // MARK: Creating

    /// Writes the record into its slot, which must be free; returns the status of its file. After a failure the slot is
    /// free again, except if it was not free before (`EEXIST`).
    /// - Parameter arrived: the body that has arrived in a separate file, which gets the slot's name.
    func create(_ record: inout PreparedRecord, of arrived: IncomingBody? = nil) throws(Errno) -> FileStatus {
        let (name, body) = (record.footer.name, record.body)
        return try record.withTail { tail throws(Errno) in
            try paths.withRecord(name) { path throws(Errno) in
                try fill(path) { slot throws(Errno) in
                    if let arrived {
                        // Another cache that looked at the empty slot before it was locked has removed it. The name
                        // may be another file's by now, which the renaming would remove.
                        guard try files.status(slot).links > 0 else { throw Errno(EEXIST) }
                        return try arrived.finish(tail, at: path)
                    }
                    try files.writeFully(slot, body, tail)
                    return try files.status(slot)
                }
            }
        }
    }

    private func fill(
        _ path: UnsafePointer<CChar>, _ write: (_ slot: Int32) throws(Errno) -> FileStatus
    ) throws(Errno) -> FileStatus {
        let slot = try files.openFile(path, O_WRONLY | O_CREAT | O_EXCL)
        var isOpen = true
        defer { if isOpen { files.closeQuietly(slot) } }
        // Tells other processes that this unfinished record has a writer who lives. One that already looks at the file,
        // empty as it is, takes it for a torn one and is about to remove it: the slot is as good as taken.
        if !isAlone(), mayLock(), (try? files.lockFile(slot)) == false { throw Errno(EEXIST) }
        do throws(Errno) {
            let status = try write(slot)
            // One that looked at it before it was locked has removed it. The name may be another file's by now.
            guard status.links > 0 else { throw Errno(EEXIST) }
            // The umask may have removed permissions that we need ourselves.
            if status.permissions != 0o600 { try files.setPermissions(slot, 0o600) }
            isOpen = false
            try files.close(slot)
            return status
        } catch {
            // After `EEXIST` the name may be that of another process's record.
            if error.code != EEXIST, !isOpen || files.isStill(slot, at: path) { try? files.unlink(path) }
            throw error
        }
    }

    // MARK: Updating

    /// How long all tails of a record may grow: a sixteenth of the body, so that writing it again once in a while costs
    /// less than the updates. 64 KB at least, since a small body is soon written.
    static func tailsLimit(bodyLength: Int) -> Int { max(64 << 10, bodyLength / 16) }

    enum Update {
        /// The record as it is now.
        case appended(RecordFooter, FileStatus)
        /// The file has another record by now, or none.
        case notFound
        /// The record is to be written whole, elsewhere: it has too many tails, or another process holds its lock.
        case mustRewrite
        /// The metadata cannot be kept as they are.
        case notRepresentable
    }

    /// Appends a tail to the record that has this sequence, by one write under the file's lock. Until that write is
    /// complete a reader takes the file for damaged, which is a miss.
    func append(
        _ metadata: EntryMetadata, to name: RecordName, of digest: KeyDigest, replacing sequence: UInt64,
        keepsURL: Bool, limit: Int
    ) throws(Errno) -> Update {
        do throws(Errno) {
            let opened = try paths.withRecord(name) { path throws(Errno) in
                OpenFile(try files.openFile(path, O_RDWR | O_APPEND), files)
            }
            if !isAlone() {
                guard mayLock(), try files.lockFile(opened.file) else { return .mustRewrite }
            }
            // Read under the lock: from here on the file does not change.
            let reader = RecordReader(files: files, paths: paths, owner: .process)
            guard case .record(let record) = try? reader.read(opened, name, .tail, limit: limit),
                record.footer.digest == digest, record.footer.sequence == sequence
            else { return .notFound }
            return try append(metadata, to: opened, record, keepsURL: keepsURL, limit: limit)
        } catch {
            if error.isMissing { return .notFound }
            throw error
        }
    }

    private func append(
        _ metadata: EntryMetadata, to opened: OpenFile, _ record: LoadedRecord, keepsURL: Bool, limit: Int
    ) throws(Errno) -> Update {
        let old = record.footer
        let sum = (old.bodyLength, old.bodyChecksum)
        guard var next = PreparedRecord(metadata, bodyOf: sum, for: DiskKey(old), keepsURL: keepsURL)
        else { return .notRepresentable }
        next.footer.name = old.name
        let length = record.status.size + next.footer.tailLength
        guard next.footer.sequence > old.sequence,
            length - old.bodyLength <= Self.tailsLimit(bodyLength: old.bodyLength), length <= limit
        else { return .mustRewrite }
        do throws(Errno) {
            try next.withTail { tail throws(Errno) in try files.writeFully(opened.file, tail) }
            let status = try files.status(opened.file)
            // Another cache has removed it meanwhile.
            return status.links > 0 ? .appended(next.footer, status) : .notFound
        } catch {
            // The part that was written is cut off, and the record is as before.
            try? files.truncate(opened.file, record.status.size)
            throw error
        }
    }
}

import Foundation

/// A record that is ready to be written, except for its slot.
package struct PreparedRecord: Sendable {
    var footer: RecordFooter
    let metadata: EntryMetadata
    /// The metadata, followed by space for the footer.
    private var tail: ByteWriter
    /// The bytes before the tail; empty if only a file has them.
    package let body: Data

    /// Nil if the entry cannot be written as a record, for example one that is for memory only.
    /// - Parameter checksum: of the body, if it is known.
    package init?(_ entry: StoredEntry, checksum: UInt64? = nil, for key: DiskKey, keepsURL: Bool) {
        let checksum = checksum ?? entry.body.withUnsafeBytes { Checksum.of($0) }
        self.init(
            entry.metadata, bodyOf: (entry.body.count, checksum), for: key, keepsURL: keepsURL, body: entry.body)
    }

    /// - Parameter sum: the length and checksum of the body, which is in the file already.
    init?(
        _ metadata: EntryMetadata, bodyOf sum: (length: Int, checksum: UInt64), for key: DiskKey, keepsURL: Bool,
        body: Data = Data()
    ) {
        // Most metadata fit, and the total is within the size that the allocator keeps ready (1,032 bytes).
        var tail = ByteWriter(capacity: 800 + RecordFooter.length)
        guard metadata.placement == .memoryAndDisk, MetadataCodec.write(metadata, to: &tail, keepsURL: keepsURL)
        else { return nil }
        self.body = body
        self.metadata = metadata
        footer = RecordFooter(
            name: RecordName(key: key.name, slot: 0), digest: key.digest, isOfURL: key.isItsURL,
            isPinned: metadata.isPinned,
            sequence: metadata.sequence, hostHash: key.hostHash,
            pathLevels: PathLevels(keepsURL ? metadata.url : nil), tagFilter: TagFilter(metadata.tags),
            storedAt: metadata.storedAt.recordSeconds,
            varyHash: metadata.varyHash, metadataLength: tail.count, bodyLength: sum.length, bodyChecksum: sum.checksum)
        tail.skip(RecordFooter.length)
        self.tail = tail
    }

    /// Updates the bytes of the footer, and calls `body` with everything that is written after the body.
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
    var varyHash: UInt64 { http?.vary.recordHash ?? 0 }
}

/// Creates records and appends tails to them. Written bytes are never changed: a record is complete, or its checksums
/// show that it is not.
struct RecordWriter: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    /// Whether files may be locked; false while the process may be suspended. Another process may take an unfinished
    /// record that is not locked for a damaged one and remove it, which leads to a miss.
    let mayLock: @Sendable () -> Bool
    /// Whether there is no other cache that could see an unfinished record.
    let isAlone: @Sendable () -> Bool

    // MARK: Creating

    /// Makes an empty file in a slot, which must be free: otherwise throws `EEXIST`.
    func makeSlot(
        _ name: RecordName, beside rows: [IndexRow], in folder: FileIdentity?
    ) throws(Errno) -> ReservedSlot {
        let file = try paths.withRecord(name) { path throws(Errno) in
            try files.openFile(path, O_WRONLY | O_CREAT | O_EXCL)
        }
        let slot = ReservedSlot(name, file, beside: rows, in: folder, files)
        // The lock shows other processes that the writer of this unfinished record is alive. If it cannot be had,
        // another process has taken the empty file for a damaged record and is about to remove it, so the slot cannot
        // be used.
        if !isAlone(), mayLock(), (try? files.lockFile(file)) == false { throw Errno(EEXIST) }
        return slot
    }

    /// Writes the record into its slot, or completes the file that has its body, and returns the status of the file.
    /// Throws `EEXIST` if another cache has taken the slot.
    /// - Parameter place: where the body is: only the tail is added to a file that has it.
    func fill(
        _ slot: ReservedSlot, with record: inout PreparedRecord, _ place: BodyPlace
    ) throws(Errno) -> FileStatus {
        let body = record.body
        return try record.withTail { tail throws(Errno) in
            switch place {
            case .file(let arrived): return try arrived.finish(tail)
            case .memory: try files.writeFully(slot.file, body, tail)
            }
            let status = try files.status(slot.file)
            // Another process has removed it before it was locked. There may be a different file with this name by now.
            guard status.links > 0 else { throw Errno(EEXIST) }
            // The umask may have removed permissions that the cache itself needs.
            if status.permissions != 0o600 { try files.setPermissions(slot.file, 0o600) }
            try slot.close()
            return status
        }
    }

    /// Gives a body that is whole, with its tail, the name of the slot.
    func rename(_ arrived: IncomingBody, into slot: ReservedSlot) throws(Errno) {
        // Another cache has removed the empty slot before it was locked. There may be a different file with this name
        // by now, which the renaming would remove.
        guard try files.status(slot.file).links > 0 else { throw Errno(EEXIST) }
        try paths.withRecord(slot.name) { path throws(Errno) in try arrived.rename(to: path) }
    }

    /// Removes a slot whose record could not be written. After `EEXIST` the file with this name may be a record of
    /// another process.
    func removeSlot(_ slot: ReservedSlot, after error: Errno) {
        guard error.code != EEXIST else { return }
        paths.withRecord(slot.name) { path in
            if slot.isClosed || files.isStill(slot.file, at: path) { try? files.unlink(path) }
        }
    }

    // MARK: Updating

    /// The length that all tails of a record together may reach: a sixteenth of the body, so that rewriting the record
    /// now and then costs less than the updates; but at least 64 KB, since a small body is quickly written.
    static func tailsLimit(bodyLength: Int) -> Int { max(64 << 10, bodyLength / 16) }

    enum Update {
        /// The updated record.
        case appended(RecordFooter, FileStatus)
        /// The record is gone, or was replaced.
        case notFound
        /// The record has to be written as a whole into a different slot: it has too many tails, or another process
        /// holds its lock.
        case mustRewrite
        /// The metadata cannot be written.
        case notRepresentable
    }

    /// Appends a tail to the record that has the metadata `old`, by one write under the file's lock. Until the write is
    /// complete, a reader takes the file for damaged, which is a miss.
    func append(
        _ metadata: EntryMetadata, to name: RecordName, of digest: KeyDigest, replacing old: EntryMetadata,
        keepsURL: Bool, limit: Int
    ) throws(Errno) -> Update {
        do throws(Errno) {
            let opened = try paths.withRecord(name) { path throws(Errno) in
                OpenFile(try files.openFile(path, O_RDWR | O_APPEND), files)
            }
            if !isAlone() {
                guard mayLock(), try files.lockFile(opened.file) else { return .mustRewrite }
            }
            // Read under the lock, so that the file does not change from now on.
            let reader = RecordReader(files: files, paths: paths, owner: .process)
            guard case .record(let record) = try? reader.read(opened.file, name, .tail, limit: limit),
                record.footer.digest == digest, record.metadata.isSameEntry(as: old)
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
            // Another cache has removed the record meanwhile.
            return status.links > 0 ? .appended(next.footer, status) : .notFound
        } catch {
            // The incomplete tail is cut off, and the record is as before.
            try? files.truncate(opened.file, record.status.size)
            throw error
        }
    }
}

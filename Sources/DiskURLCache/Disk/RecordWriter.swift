import Foundation

/// A record ready to be written but for its slot.
struct PreparedRecord: Sendable {
    var header: RecordHeader
    /// Space for the header, then the metadata.
    private var head: ByteWriter
    var body: Data

    /// Nil when the entry cannot be kept as it is.
    init?(_ entry: StoredEntry, for key: DiskKey, keepsURL: Bool) {
        // Most metadata fit, and so does the whole into what the allocator has at hand (1,032 bytes).
        head = ByteWriter(capacity: 800, leaving: RecordHeader.length)
        guard MetadataCodec.write(entry.metadata, to: &head, keepsURL: keepsURL) else { return nil }
        body = entry.body
        header = RecordHeader(
            digest: key.digest, slot: 0, isPinned: entry.metadata.isPinned,
            isKeyedByURL: keepsURL && key.isURL, keyCheck: key.check,
            sequence: entry.metadata.sequence, uriHash: key.uriHash, hostHash: key.hostHash,
            tagFilter: TagFilter(entry.metadata.tags), storedAt: entry.metadata.storedAt.recordSeconds,
            varyHash: entry.metadata.varyHash, metadataLength: head.count,
            bodyLength: entry.body.count,
            bodyChecksum: entry.body.withUnsafeBytes { Checksum.of($0) })
    }

    /// Brings the header's bytes up to date; calls with all that is written before the body.
    mutating func withHead<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        head.withUnsafeMutableBytes {
            header.write(into: $0)
            return body(UnsafeRawBufferPointer($0))
        }
    }
}

extension EntryMetadata {
    var varyHash: UInt64 { http?.vary.recordHash ?? 0 }
}

/// Creates records. A record is written once, under its own name, and never changed: the file that has the name is whole,
/// or its checksum says that it is not.
struct RecordWriter: Sendable {
    let files: any FileSystem
    let paths: DiskPaths

    /// Writes the record into its slot, which must be free; gives the bytes it takes on disk. What a failure leaves is
    /// removed again, except for a slot that was not free (`EEXIST`).
    func write(_ record: inout PreparedRecord) throws(Errno) -> Int {
        let body = record.body
        let name = RecordName(digest: record.header.digest, slot: record.header.slot)
        let result: Result<Int, Errno> = record.withHead { head in
            paths.withRecord(name.digest, name.slot) { path in
                do throws(Errno) {
                    return .success(try write(head, body, to: path))
                } catch {
                    return .failure(error)
                }
            }
        }
        return try result.get()
    }

    private func write(
        _ head: UnsafeRawBufferPointer, _ body: Data, to path: UnsafePointer<CChar>
    ) throws(Errno) -> Int {
        let file = try files.openFile(path, O_WRONLY | O_CREAT | O_EXCL)
        // Tells other processes that this unfinished record has a writer who lives. One that already looks at the file,
        // empty as it is, takes it for a torn one and is about to remove it: the slot is as good as taken.
        if (try? files.lockFile(file, exclusively: true)) == false {
            files.closeQuietly(file)
            throw Errno(EEXIST)
        }
        var isOpen = true
        var hasName = true
        do throws(Errno) {
            let failure: Errno? = body.withUnsafeBytes { body in
                do throws(Errno) {
                    try files.writeFully(file, head, body)
                    return nil
                } catch {
                    return error
                }
            }
            if let failure { throw failure }
            let status = try files.status(file)
            // Removed as a torn one by who looked at it before it was locked. The name may be another file's by now.
            hasName = status.links > 0
            guard hasName else { throw Errno(EEXIST) }
            // The umask may have taken what we need ourselves.
            if status.permissions != 0o600 { try files.setPermissions(file, 0o600) }
            isOpen = false
            try files.close(file)
            return status.allocated
        } catch {
            if isOpen { files.closeQuietly(file) }
            if hasName { try? files.unlink(path) }
            throw error
        }
    }
}

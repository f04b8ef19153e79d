import Foundation

/// The index on disk: a snapshot of the whole (`index.plist`), and what changed since (`index.journal`).
///
/// Order of writes: the new snapshot is made under another name, renamed, and only then the journal is begun anew. A journal
/// names the snapshot that it continues; between the two steps it continues an older one, whose changes the new snapshot
/// has already, and is passed over.
struct IndexStorage {
    private let files: any FileSystem
    private let paths: DiskPaths
    /// The snapshot that the journal continues; nil when there is none to append to.
    private(set) var snapshot: UInt64?
    /// Bytes in the journal.
    private(set) var journalLength = 0

    static let journalHeaderLength = 16
    /// "DURCJRN1".
    private static let magic: UInt64 = 0x314E_524A_4352_5544

    init(_ files: any FileSystem, _ paths: DiskPaths) {
        self.files = files
        self.paths = paths
    }

    enum Loading {
        case loaded(DiskIndex)
        case missing
        case rejected
        /// It is there, and the system does not let us read it now: says nothing about it.
        case unreadable
    }

    // MARK: Loading

    mutating func load() -> Loading {
        snapshot = nil
        journalLength = 0
        var index: DiskIndex
        do throws(Errno) {
            guard let file = try openRegular(paths.index, O_RDONLY) else { return .rejected }
            defer { files.closeQuietly(file.descriptor) }
            guard let bytes = try readIndex(file.descriptor, length: file.length) else { return .rejected }
            defer { bytes.deallocate() }
            guard let decoded = IndexFile.decode(bytes) else { return .rejected }
            index = decoded.index
            snapshot = decoded.snapshot
        } catch {
            if error.isMissing { return .missing }
            return error.isNotPermitted ? .unreadable : .rejected
        }
        do throws(Errno) {
            try replayJournal(into: &index)
        } catch {
            // Changes that are not known would be written over.
            if error.isNotPermitted { return .unreadable }
        }
        return .loaded(index)
    }

    /// Nil when the first bytes show that it is no index: the rest, however long, is not read then.
    private func readIndex(_ file: Int32, length: Int) throws(Errno) -> UnsafeMutableRawBufferPointer? {
        var head = [UInt8](repeating: 0, count: min(length, 512))
        guard try fill(&head, from: file, at: 0), head.withUnsafeBytes({ IndexFile.mayBeIndex($0, length: length) })
        else { return nil }
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 16)
        bytes.copyBytes(from: head)
        do throws(Errno) {
            let rest = try files.readFully(
                file, UnsafeMutableRawBufferPointer(rebasing: bytes[head.count...]), at: head.count)
            if head.count + rest == length { return bytes }
        } catch {
            bytes.deallocate()
            throw error
        }
        bytes.deallocate()
        return nil
    }

    private func fill(_ bytes: inout [UInt8], from file: Int32, at offset: Int) throws(Errno) -> Bool {
        let result: Result<Int, Errno> = bytes.withUnsafeMutableBytes { buffer in
            do throws(Errno) {
                return .success(try files.readFully(file, buffer, at: offset))
            } catch {
                return .failure(error)
            }
        }
        let count = try result.get()
        defer { bytes.removeSubrange(count...) }
        return count == bytes.count
    }

    private mutating func replayJournal(into index: inout DiskIndex) throws(Errno) {
        guard let snapshot, let file = try openRegular(paths.journal, O_RDONLY) else { return }
        defer { files.closeQuietly(file.descriptor) }
        var header = [UInt8](repeating: 0, count: Self.journalHeaderLength)
        guard try fill(&header, from: file.descriptor, at: 0), header == Self.header(snapshot) else {
            self.snapshot = nil
            return
        }
        journalLength = Self.journalHeaderLength
        // In pieces, up to the first row that is not whole: a long file of garbage costs no memory.
        while true {
            var piece = [UInt8](repeating: 0, count: JournalRow.length * 4096)
            _ = try fill(&piece, from: file.descriptor, at: journalLength)
            let (rows, length) = piece.withUnsafeBytes { JournalRow.decodeAll($0, seed: snapshot) }
            for row in rows { row.apply(to: &index) }
            journalLength += length
            if rows.count < 4096 { break }
        }
        // A torn end: appending after it would be lost, so the next save starts anew.
        if journalLength != file.length { self.snapshot = nil }
    }

    private static func header(_ snapshot: UInt64) -> [UInt8] {
        var writer = ByteWriter(capacity: journalHeaderLength)
        writer.append(magic)
        writer.append(snapshot)
        return writer.finish()
    }

    /// Nil for what is not a regular file with one name: it is not ours.
    private func openRegular(
        _ path: String, _ flags: Int32
    ) throws(Errno) -> (descriptor: Int32, length: Int)? {
        let file = try files.openFile(path, flags)
        do throws(Errno) {
            let status = try files.status(file)
            if status.kind == .regular, status.links == 1 {
                if flags & O_CREAT != 0, status.permissions != 0o600 { try files.setPermissions(file, 0o600) }
                return (file, status.size)
            }
        } catch {
            files.closeQuietly(file)
            throw error
        }
        files.closeQuietly(file)
        return nil
    }

    // MARK: Saving

    /// The journal is no longer complete: the next save writes the whole index.
    mutating func invalidate() {
        snapshot = nil
    }

    /// Appends rows to the journal. When that fails nothing of them is kept, and `save` is needed.
    mutating func append(_ rows: [JournalRow]) throws(Errno) {
        guard let snapshot else { throw Errno(ENOENT) }
        if rows.isEmpty { return }
        var writer = ByteWriter(capacity: rows.count * JournalRow.length)
        for row in rows { row.encode(to: &writer, seed: snapshot) }
        let bytes = writer.finish()
        self.snapshot = nil
        guard let file = try openRegular(paths.journal, O_WRONLY | O_APPEND) else { throw Errno(ELOOP) }
        defer { files.closeQuietly(file.descriptor) }
        guard file.length == journalLength else { throw Errno(EIO) }
        do throws(Errno) {
            try write(bytes, to: file.descriptor)
        } catch {
            try? files.truncate(file.descriptor, journalLength)
            throw error
        }
        self.snapshot = snapshot
        journalLength += bytes.count
    }

    /// Writes the whole index, and begins a new journal.
    mutating func save(_ index: DiskIndex) throws(Errno) {
        let next = UInt64.random(in: 1...UInt64(Int64.max))
        let bytes = IndexFile.encode(index, snapshot: next)
        try? files.unlink(paths.newIndex)
        guard let file = try openRegular(paths.newIndex, O_WRONLY | O_CREAT | O_EXCL) else { throw Errno(ELOOP) }
        do throws(Errno) {
            do throws(Errno) {
                try write(bytes, to: file.descriptor)
            } catch {
                files.closeQuietly(file.descriptor)
                throw error
            }
            try files.close(file.descriptor)
            try files.rename(paths.newIndex, to: paths.index)
        } catch {
            try? files.unlink(paths.newIndex)
            throw error
        }
        snapshot = nil
        guard let journal = try openRegular(paths.journal, O_WRONLY | O_CREAT) else { throw Errno(ELOOP) }
        defer { files.closeQuietly(journal.descriptor) }
        try files.truncate(journal.descriptor, 0)
        try write(Self.header(next), to: journal.descriptor)
        snapshot = next
        journalLength = Self.journalHeaderLength
    }

    private func write(_ bytes: [UInt8], to file: Int32) throws(Errno) {
        let failure: Errno? = bytes.withUnsafeBytes { buffer in
            do throws(Errno) {
                try files.writeFully(file, buffer)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }
}

import Foundation

/// The file `changes`, the one message between the caches on a directory: each cache appends what it changed, and reads what
/// the others appended.
///
/// No cache locks the file or waits for another. The order of the steps does it: a remover appends a row, removes, and appends the row
/// again. A writer writes its record, and then reads the rows. So either the writer reads the remover's first row, and removes its own
/// record; or the record was whole before that row, and the remover finds it. A reader that read a record before the removal finds the
/// second row after it.
///
/// A writer that is not the owner appends a row before it writes its record, and again after it. From the first row on the owner
/// looks at the files of that key, not at the index: a record of a writer that was killed is found, too.
///
/// A row that cannot be appended becomes a file that is begun anew, an empty one, or no file. A reader that finds another file, a shorter one, or
/// bytes that it does not understand takes every record for removed.
final class ChangeFile: Sendable {
    /// Up to where the file was read. Guarded by the lock around it; no file operation while it is held.
    private struct Position {
        /// The file was looked at.
        var isKnown = false
        /// The file at that time; nil when there was none.
        var status: FileStatus?
        /// The number of the file; nil when there was none, or it had no header.
        var token: UInt64?
        var offset = 0
    }

    private let files: any FileSystem
    private let paths: DiskPaths
    /// Tells this cache's own rows from those of others. Its last byte is the row's kind.
    private let writer = UInt64.random(in: .min ... .max) & ~0xFF
    private let position = Mutex(Position())
    /// Held while changes are read and applied: a caller that comes meanwhile finds them applied.
    private let reading = Mutex(())

    /// "DURCCHG1", then the file's number, then zeros. As long as a row: no row lies across two pages, so a reader sees it whole or not at
    /// all while it is appended.
    private static let headerLength = DirectoryChange.length
    private static let magic: UInt64 = 0x4455_5243_4348_4731
    /// A bit of the number: the file was begun in place of another one, whose rows a reader may have missed.
    private static let continues: UInt64 = 1
    /// More than this is not read: then every record counts as removed.
    private static let maximumLength = 1 << 20

    init(_ files: any FileSystem, _ paths: DiskPaths) {
        self.files = files
        self.paths = paths
    }

    /// The largest file, in bytes: a small share of the capacity, towards which it counts. One block costs nothing.
    static func limit(capacity: Int) -> Int {
        // An inspector does not know the capacity, and is to leave the directory no larger than it was.
        capacity == .max ? 4_096 : max(4_096, min(64 << 10, capacity / 64))
    }

    // MARK: Reading

    /// Hands over what other caches changed since the last call. One system call when nothing changed.
    func read(_ apply: ([DirectoryChange]) -> Void) {
        reading.withLock { _ in
            // Before the file: this cache may begin the file meanwhile, and is not to take it for gone.
            let before = position.withLock { $0 }
            var status: FileStatus?
            do throws(Errno) {
                status = try files.status(at: paths.changes)
            } catch {
                // A directory that cannot be searched now says nothing.
                if !error.isMissing { return }
            }
            guard !before.isKnown || status != before.status else { return }
            let (changes, after) = changes(since: before, status)
            position.withLock { $0 = after }
            if !changes.isEmpty { apply(changes) }
        }
    }

    private func changes(since before: Position, _ status: FileStatus?) -> ([DirectoryChange], Position) {
        var position = Position(isKnown: true, status: status)
        guard status != nil else { return (before.status == nil ? [] : [.removedAll], position) }
        guard let opened = try? files.openRegular(paths.changes, O_RDONLY) else {
            // What is there is no file of this cache, and may hide any removal: each call says so.
            position.status = nil
            return (before.isKnown ? [.removedAll] : [], position)
        }
        defer { files.closeQuietly(opened.file) }
        // What is appended from now on is for the next call.
        position.offset = opened.status.size
        position.token = token(of: opened.file)
        // Where there was none: a file that is being begun, whose header comes at any moment. The next call looks at it anew.
        if before.isKnown, before.status == nil, position.token == nil, opened.status.size < Self.headerLength {
            return ([], before)
        }
        // What was before the first look is in no memory.
        guard before.isKnown else { return ([], position) }
        var start: Int?
        if let token = position.token {
            if token == before.token { start = before.offset }
            if before.token == nil, token & Self.continues == 0 { start = Self.headerLength }
        }
        guard let start, let rows = rows(of: opened.file, from: start, to: opened.status.size) else {
            return ([.removedAll], position)
        }
        return (rows, position)
    }

    private func token(of file: Int32) -> UInt64? {
        guard let header = try? files.bytes(of: file, at: 0, count: Self.headerLength) else { return nil }
        return header.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.number(UInt64.self)?.bigEndian == Self.magic else { return nil }
            return reader.number(UInt64.self)
        }
    }

    /// The rows of other caches; nil where the bytes are not whole rows.
    private func rows(of file: Int32, from start: Int, to end: Int) -> [DirectoryChange]? {
        let length = end - start
        guard length >= 0, length <= Self.maximumLength, length % DirectoryChange.length == 0,
            let bytes = try? files.bytes(of: file, at: start, count: length), bytes.count == length
        else { return nil }
        return bytes.withUnsafeBytes { bytes in
            var changes: [DirectoryChange] = []
            for start in stride(from: 0, to: length, by: DirectoryChange.length) {
                let row = UnsafeRawBufferPointer(rebasing: bytes[start..<start + DirectoryChange.length])
                guard let (change, writer) = DirectoryChange.decode(row) else { return nil }
                if writer != self.writer { changes.append(change) }
            }
            return changes
        }
    }

    // MARK: Writing

    /// Tells the other caches. Never fails: where a row cannot be written, they take every record for removed.
    func tell(_ change: DirectoryChange, capacity: Int) {
        let row = change.row(by: writer)
        for _ in 0..<3 {
            do throws(Errno) {
                if try append(row, limit: Self.limit(capacity: capacity)) { return }
            } catch {
                break
            }
        }
        // No room, or no right to write. An empty file needs no room, and is another one each time. This cache, too, finds it the
        // next time: it may have missed a row of another cache.
        try? files.unlink(paths.changes)
        if let file = try? files.openRegular(paths.changes, O_WRONLY | O_CREAT | O_EXCL).file {
            files.closeQuietly(file)
        }
    }

    /// Makes the file where there is none, so that on a disk that is full by then there is one to append to, or to remove.
    func prepare() {
        let status = try? files.status(at: paths.changes)
        // A link, or whatever else is no file of this cache's, is replaced: it would be a removal of everything at each look.
        // One without a name was replaced by another cache just now.
        if status?.kind != .regular || (status?.links ?? 0) > 1 { _ = try? begin(with: [], isNew: status == nil) }
    }

    /// False where the file was replaced meanwhile: the row is lost.
    private func append(_ row: [UInt8], limit: Int) throws(Errno) -> Bool {
        let opened: (file: Int32, status: FileStatus)
        do throws(Errno) {
            opened = try files.openRegular(paths.changes, O_WRONLY | O_APPEND)
        } catch {
            return try begin(with: row, isNew: error.isMissing)
        }
        defer { files.closeQuietly(opened.file) }
        let size = opened.status.size
        guard size >= Self.headerLength, size + row.count <= limit else { return try begin(with: row, isNew: false) }
        try files.writeFully(opened.file, row)
        let after = try files.status(opened.file)
        guard after.links > 0 else { return false }
        // Nothing but this cache's row was appended since it read the file.
        position.withLock { position in
            if position.status?.identity == after.identity, after.size == position.offset + row.count {
                position.offset = after.size
                position.status = after
            }
        }
        return true
    }

    /// Begins the file anew with one row.
    /// - Parameter isNew: whether there is none.
    private func begin(with row: [UInt8], isNew: Bool) throws(Errno) -> Bool {
        let token = UInt64.random(in: .min ... .max) & ~Self.continues | (isNew ? 0 : Self.continues)
        var bytes = ByteWriter(capacity: Self.headerLength)
        for number in [Self.magic.bigEndian, token, 0, 0] { bytes.append(number) }
        let path = isNew ? paths.changes : paths.newChanges
        if !isNew { try? files.unlink(path) }
        let file: Int32
        do throws(Errno) {
            file = try files.openRegular(path, O_WRONLY | O_CREAT | O_EXCL).file
        } catch {
            // Another cache was faster.
            if error.code == EEXIST { return false }
            throw error
        }
        defer { files.closeQuietly(file) }
        try files.writeFully(file, bytes.finish() + row)
        if !isNew { try files.rename(path, to: paths.changes) }
        let status = try files.status(file)
        guard status.links > 0 else { return false }
        // What other caches appended to the file before is still to be read.
        position.withLock { position in
            guard position.token == nil else { return }
            position = Position(isKnown: true, status: status, token: token, offset: status.size)
        }
        return true
    }
}

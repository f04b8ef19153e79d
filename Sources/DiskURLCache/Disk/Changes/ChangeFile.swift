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
/// Each file begins with a row that has a number, and the number of the file that it replaced because that one was full; only the owner of
/// the directory replaces files. A reader holds its file open: so it reads that file to the end, though it was replaced, and no other file can
/// be taken for it. A reader that finds a file with another predecessor than its own file, or bytes that are not rows, takes every record for
/// removed.
final class ChangeFile: Sendable {
    /// A file that is open for reading, up to where it was read.
    private final class Opened: Sendable {
        let descriptor: Int32
        let identity: FileIdentity
        /// Whether the cache knew of no file before it.
        let isFirst: Bool
        private let files: any FileSystem

        init(_ descriptor: Int32, _ status: FileStatus, isFirst: Bool, _ files: any FileSystem) {
            self.descriptor = descriptor
            identity = status.identity
            self.isFirst = isFirst
            self.files = files
        }

        deinit { files.closeQuietly(descriptor) }
    }

    private enum Position {
        /// No look yet: no record is in memory.
        case unknown
        /// There is no file, and no folder of records that another cache may change.
        case missing
        case at(Opened, offset: Int)
        /// There is no file to read, and none can be made: any change may be missed, at any time.
        case lost

        /// Whether a file that is empty is the first one that the cache knows of.
        func isFirst(of file: FileStatus) -> Bool {
            switch self {
            case .unknown, .missing: true
            case .at(let known, 0): known.isFirst && known.identity == file.identity
            case .at, .lost: false
            }
        }
    }

    private let files: any FileSystem
    private let paths: DiskPaths
    /// Tells this cache's own rows from those of others. Its last byte is the row's kind.
    private let writer = UInt64.random(in: .min ... .max) & ~0xFF
    /// Set while `reading` is held. No file operation while its own lock is held.
    private let position = Mutex(Position.unknown)
    /// Held while changes are read and applied: a caller that comes meanwhile finds them applied.
    private let reading = Mutex(())

    /// Without an owner the file grows to this, in bytes. More is not read: then every record counts as removed.
    private static let maximumLength = 1 << 20

    init(_ files: any FileSystem, _ paths: DiskPaths) {
        self.files = files
        self.paths = paths
    }

    /// The length at which the owner replaces the file, in bytes: a small share of the capacity, towards which it counts. One block costs
    /// nothing.
    static func limit(capacity: Int) -> Int { max(4_096, min(64 << 10, capacity / 64)) }

    // MARK: Reading

    /// Hands over what other caches changed since the last call. One system call when nothing changed.
    /// - Parameter mayMake: whether there is a folder of records. Then a file that is missing is made, so that there is one on a disk that
    ///   is full later.
    func read(mayMake: Bool, _ apply: ([DirectoryChange]) -> Void) {
        reading.withLock { _ in
            let before = position.withLock { $0 }
            var status: FileStatus?
            do throws(Errno) {
                status = try files.status(at: paths.changes)
            } catch {
                // A directory that cannot be searched now says nothing.
                if !error.isMissing { return }
            }
            let changes: [DirectoryChange]?
            let after: Position
            if case .at(let file, let offset) = before, let status, status.identity == file.identity {
                if status.size == offset { return }
                changes = rows(of: file, from: offset, to: status.size)
                after = .at(file, offset: status.size)
            } else {
                (changes, after) = next(after: before, mayMake: mayMake)
            }
            position.withLock { $0 = after }
            guard let changes else { return apply([.removedAll]) }
            if !changes.isEmpty { apply(changes) }
        }
    }

    /// Goes on to the file that is at the path now, from the end of the one before. Nil for the changes where any may have been missed.
    private func next(after before: Position, mayMake: Bool) -> (changes: [DirectoryChange]?, Position) {
        let file: Opened
        let size: Int
        do throws(Errno) {
            (file, size) = try open(after: before, mayMake: mayMake)
        } catch {
            guard error.isMissing else { return (nil, .lost) }
            switch before {
            case .unknown, .missing: return ([], .missing)
            case .at, .lost: return (nil, .missing)
            }
        }
        var changes: [DirectoryChange]? = []
        switch before {
        case .unknown: break
        case .lost: changes = nil
        case .missing:
            // An empty one is being begun.
            if size > 0 { changes = start(of: file)?.predecessor == 0 ? rows(of: file, from: 0, to: size) : nil }
        case .at(let old, let offset):
            let number = start(of: old)?.number
            if let number, start(of: file)?.predecessor == number, let end = (try? files.status(old.descriptor))?.size,
                let last = rows(of: old, from: offset, to: end), let first = rows(of: file, from: 0, to: size)
            {
                changes = last + first
            } else {
                changes = nil
            }
        }
        return (changes, .at(file, offset: size))
    }

    /// The file at the path. One that is no file of a cache is replaced: it would be a removal of everything at each look.
    private func open(after before: Position, mayMake: Bool) throws(Errno) -> (Opened, size: Int) {
        do throws(Errno) {
            return try openAsIs(after: before)
        } catch {
            guard mayMake, error.isMissing || error.code == ELOOP else { throw error }
            do throws(Errno) {
                if error.code == ELOOP { try files.unlink(paths.changes) }
                _ = try append([])
            } catch let other {
                // Where this cache may not make a file, there is none.
                throw error.isMissing && (other.isNotPermitted || other.code == EROFS) ? error : other
            }
            return try openAsIs(after: before)
        }
    }

    private func openAsIs(after before: Position) throws(Errno) -> (Opened, size: Int) {
        let (file, status) = try files.openRegular(paths.changes, O_RDONLY)
        return (Opened(file, status, isFirst: before.isFirst(of: status), files), status.size)
    }

    private func start(of file: Opened) -> ChangeRow.Start? { start(of: file.descriptor) }

    private func start(of file: Int32) -> ChangeRow.Start? {
        guard let bytes = try? files.bytes(of: file, at: 0, count: ChangeRow.length),
            case .start(let start)? = bytes.withUnsafeBytes({ ChangeRow($0) })
        else { return nil }
        return start
    }

    /// The changes by other caches; nil where the bytes are not whole rows.
    private func rows(of file: Opened, from start: Int, to end: Int) -> [DirectoryChange]? {
        let length = end - start
        guard length >= 0, length <= Self.maximumLength, length % ChangeRow.length == 0,
            let bytes = try? files.bytes(of: file.descriptor, at: start, count: length), bytes.count == length
        else { return nil }
        return bytes.withUnsafeBytes { bytes in
            var changes: [DirectoryChange] = []
            for start in stride(from: 0, to: length, by: ChangeRow.length) {
                switch ChangeRow(UnsafeRawBufferPointer(rebasing: bytes[start..<start + ChangeRow.length])) {
                case .change(let change, let writer): if writer != self.writer { changes.append(change) }
                // Two caches that begin an empty file at once append one each: the first one counts.
                case .start: break
                case nil: return nil
                }
            }
            return changes
        }
    }

    // MARK: Writing

    /// Tells the other caches. Never fails: where a row cannot be appended, they take every record for removed.
    func tell(_ change: DirectoryChange) {
        let row = ChangeRow.change(change, writer: writer).bytes
        // The owner may have replaced the file meanwhile, but not again and again.
        for _ in 0..<8 {
            guard let isDone = try? append(row) else { break }
            if isDone { return }
        }
        // No room, or no right to write. An empty file needs no room, and is another one each time, since readers hold theirs open.
        try? files.unlink(paths.changes)
        if let file = try? files.openRegular(paths.changes, O_WRONLY | O_CREAT | O_EXCL).file {
            files.closeQuietly(file)
        }
    }

    /// Appends a row, or nothing but the row with which a file begins. A row never lies across two pages, so a reader sees it whole or not at all.
    /// - Returns: false where the file was replaced meanwhile: the row is lost.
    private func append(_ row: [UInt8]) throws(Errno) -> Bool {
        let before = position.withLock { $0 }
        let opened = try files.openRegular(paths.changes, O_WRONLY | O_APPEND | O_CREAT)
        defer { files.closeQuietly(opened.file) }
        let size = opened.status.size
        guard size % ChangeRow.length == 0, size < Self.maximumLength else { throw Errno(EFBIG) }
        // A reader of another file takes everything for removed, but not a reader that knew of none.
        let start = size == 0 ? newStart(after: before.isFirst(of: opened.status) ? 0 : .random(in: 1 ... .max)) : []
        try files.writeFully(opened.file, start + row)
        return try files.status(at: paths.changes).identity == opened.status.identity
    }

    private func newStart(after predecessor: UInt64) -> [UInt8] {
        ChangeRow.start(ChangeRow.Start(number: .random(in: 1 ... .max), predecessor: predecessor)).bytes
    }

    /// Puts another file in the place of one that is full. For the owner of the directory alone, which does not lose the ownership meanwhile:
    /// a reader of the full file would not notice that two caches had replaced it.
    func replaceIfFull(capacity: Int) {
        guard let size = (try? files.status(at: paths.changes))?.size, size > Self.limit(capacity: capacity),
            let old = try? files.openRegular(paths.changes, O_RDONLY).file
        else { return }
        defer { files.closeQuietly(old) }
        try? files.unlink(paths.newChanges)
        guard let start = start(of: old),
            let new = try? files.openRegular(paths.newChanges, O_WRONLY | O_CREAT | O_EXCL).file
        else { return }
        defer { files.closeQuietly(new) }
        // Where there is no room, the full file stays.
        guard (try? files.writeFully(new, newStart(after: start.number))) != nil else { return }
        try? files.rename(paths.newChanges, to: paths.changes)
    }
}

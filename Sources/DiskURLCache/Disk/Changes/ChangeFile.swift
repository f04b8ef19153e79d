import Foundation

/// The file `changes`, the one message between the caches on a directory: each cache appends what it changed, and reads
/// what the others appended.
///
/// No cache locks the file or waits for another. The order of the steps does it: a remover appends a row, removes, and
/// appends the row again. A writer writes its record, and then reads the rows. So either the writer reads the remover's
/// first row, and removes its own record; or the record was whole before that row, and the remover finds it. A reader
/// that read a record before the removal finds the second row after it.
///
/// A writer that is not the owner appends a row before it writes its record, and again after it. From the first row on
/// the owner looks at the files of that key, not at the index: a record of a writer that was killed is found, too.
///
/// A reader holds its file open: so no other file can be taken for it. A reader that finds another file than its own,
/// or bytes that are not rows, takes every record for removed. So a file that is full, or cannot be written, is
/// replaced by a new one. The cache that replaces it reads the old one to its end, and misses nothing.
final class ChangeFile: Sendable {
    /// The end of the changes that a cache has read.
    private enum Position {
        /// No look yet: no record is in memory.
        case unknown
        /// There was no file that could be read: the next one is read from its first row on.
        case noFile
        case at(OpenFile, FileIdentity, offset: Int)
    }

    private let files: any FileSystem
    private let paths: DiskPaths
    private var path: String { paths.changes }
    /// The length from which on the file is replaced, in bytes.
    private let limit: Int
    /// Tells this cache's own rows from those of others. Its last byte is the row's kind.
    private let writer = UInt64.random(in: .min ... .max) & ~0xFF
    private struct Reading {
        var position = Position.unknown
        /// Changes that were read when this cache replaced the file, and that nobody was told of yet.
        var rest: [DirectoryChange] = []
    }

    /// Held while changes are read and applied: a caller that comes meanwhile finds them applied.
    private let reading = Mutex(Reading())

    /// - Parameter capacity: the directory's, in bytes.
    init(_ files: any FileSystem, _ paths: DiskPaths, capacity: Int) {
        self.files = files
        self.paths = paths
        limit = Self.limit(capacity: capacity)
    }

    /// All forget what they have in memory once in some thousand changes.
    private static let largestLimit = 256 << 10

    /// The file counts towards the capacity, and takes a small share of it. One block costs nothing.
    static func limit(capacity: Int) -> Int {
        max(4_096, min(largestLimit, capacity / 64)) / DirectoryChange.rowLength * DirectoryChange.rowLength
    }

    // MARK: Reading

    /// Hands over what other caches changed since the last call. One system call when nothing changed.
    /// - Parameter mayMake: whether there is a folder of records. Then a file that is missing is made, so that there is
    ///   one on a disk that is full later.
    func read(mayMake: Bool, _ apply: ([DirectoryChange]) -> Void) {
        reading.withLock { reading in
            if !reading.rest.isEmpty { apply(reading.rest) }
            reading.rest = []
            var status: FileStatus?
            do throws(Errno) {
                status = try files.status(at: paths.changesBytes)
            } catch {
                // A directory that cannot be searched now says nothing.
                if !error.isMissing { return }
            }
            let changes: [DirectoryChange]?
            if case .at(let file, let identity, let offset) = reading.position, let status, status.identity == identity
            {
                if status.size == offset { return }
                changes = rows(of: file, from: offset, to: status.size)
                reading.position = .at(file, identity, offset: status.size)
            } else {
                changes = goOn(from: &reading.position, isThere: status != nil, mayMake: mayMake)
            }
            // Any change may have been missed.
            guard let changes else { return apply([.removedAll]) }
            if !changes.isEmpty { apply(changes) }
        }
    }

    /// To the end of the file that is at the path now. Nil for the changes where any may have been missed.
    private func goOn(from position: inout Position, isThere: Bool, mayMake: Bool) -> [DirectoryChange]? {
        let before = position
        position = .noFile
        do throws(Errno) {
            let (file, status) = try open(mayMake: mayMake)
            position = .at(file, status.identity, offset: status.size)
            switch before {
            case .unknown: return []
            case .noFile: return rows(of: file, from: 0, to: status.size)
            case .at: return nil
            }
        } catch {
            // Where this cache may not make a file, there is none.
            let isNone = error.isMissing || !isThere && (error.isNotPermitted || error.code == EROFS)
            if case .at = before { return nil }
            return isNone ? [] : nil
        }
    }

    /// The file at the path. One that is no file of a cache is replaced: it would be a removal of everything at each
    /// look.
    private func open(mayMake: Bool) throws(Errno) -> (OpenFile, FileStatus) {
        do throws(Errno) {
            let (file, status) = try files.openRegular(path, mayMake ? O_RDONLY | O_CREAT : O_RDONLY)
            return (OpenFile(file, files), status)
        } catch {
            guard mayMake, error.code == ELOOP else { throw error }
            try? files.unlink(path)
            _ = try? append(.removedAll, O_CREAT | O_EXCL)
            let (file, status) = try files.openRegular(path, O_RDONLY)
            return (OpenFile(file, files), status)
        }
    }

    /// The changes by other caches; nil if the bytes are not whole rows.
    private func rows(of file: OpenFile, from start: Int, to end: Int) -> [DirectoryChange]? {
        let length = end - start
        guard length >= 0, length <= Self.largestLimit, length % DirectoryChange.rowLength == 0,
            let bytes = try? files.bytes(of: file.file, at: start, count: length), bytes.count == length
        else { return nil }
        return bytes.withUnsafeBytes { bytes in
            var changes: [DirectoryChange] = []
            for start in stride(from: 0, to: length, by: DirectoryChange.rowLength) {
                let row = UnsafeRawBufferPointer(rebasing: bytes[start..<start + DirectoryChange.rowLength])
                guard let (change, writer) = DirectoryChange.decode(row) else { return nil }
                if writer != self.writer { changes.append(change) }
            }
            return changes
        }
    }

    // MARK: Writing

    /// Tells the other caches. Never fails: if a row cannot be appended, they take every record for removed.
    func append(_ change: DirectoryChange) {
        // A different cache may replace the file meanwhile, but not again and again.
        for _ in 0..<8 {
            guard let isDone = try? append(change, O_CREAT) else { break }
            if isDone { return }
        }
        replace()
    }

    /// Replaces the file when it is full or cannot be written. The other readers keep the old file open, find another
    /// one at the path, and take every record for removed. This cache reads the old file to its end, and goes on with
    /// the new one.
    private func replace() {
        reading.withLock { reading in
            // First it loses its name: a cache that appends to it later notices, and appends to the new file again.
            let old = paths.new(.incoming)
            let moved = (try? files.rename(path, to: old)).flatMap { try? files.status(at: old) }
            try? files.unlink(moved == nil ? path : old)
            // For a reader that knew of no file. On a full disk the file stays empty, which needs no room.
            _ = try? append(.removedAll, O_CREAT | O_EXCL)
            // Another cache has replaced the file before: its rows are not known here, and the next look says so.
            guard case .at(let file, let identity, let offset) = reading.position, moved?.identity == identity,
                let end = try? files.status(file.file).size, let (new, status) = try? files.openRegular(path, O_RDONLY)
            else { return }
            reading.rest += rows(of: file, from: offset, to: end) ?? [.removedAll]
            reading.position = .at(OpenFile(new, files), status.identity, offset: 0)
        }
    }

    /// A row never lies across two pages, so a reader sees it whole or not at all.
    /// - Returns: false if the file was replaced meanwhile: the row is lost.
    private func append(_ change: DirectoryChange, _ flags: Int32) throws(Errno) -> Bool {
        let (file, status) = try files.openRegular(path, O_WRONLY | O_APPEND | flags)
        defer { files.closeQuietly(file) }
        guard status.size % DirectoryChange.rowLength == 0, status.size < limit else { throw Errno(EFBIG) }
        try files.writeFully(file, change.row(by: writer))
        return try files.status(at: path).identity == status.identity
    }
}

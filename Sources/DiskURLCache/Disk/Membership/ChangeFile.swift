import Foundation

/// The open file `changes`, by which the caches of a directory tell each other about changes, one row for each. A cache
/// appends its rows and reads those of the others. Used only under the lock of `Membership`, which says when the file
/// exists.
///
/// The file stays open, so that its inode number is not reused. A cache that finds a different file at the path, or
/// bytes that are not rows, assumes that every record may have been removed. So a file that is full or cannot be
/// written can simply be replaced by a new one.
final class ChangeFile {
    /// Where the file is, and which rows are this cache's own.
    struct Place: Sendable {
        let files: any FileSystem
        let paths: DiskPaths
        /// The length in bytes at which the file is replaced.
        let limit: Int
        /// Identifies this cache's own rows. The last byte is 0: in a row it is the kind of the change.
        let writer = UInt64.random(in: .min ... .max) & ~0xFF
        /// Whether guests hold a shared lock on the file, which shows the owner that they exist. Not on systems that
        /// suspend processes, since these kill a suspended process that holds a lock on a file of a shared container.
        let isHeld: Bool
    }

    private let place: Place
    private let opened: OpenFile
    let identity: FileIdentity
    /// The position up to which this cache has read.
    private(set) var offset: Int

    private var files: any FileSystem { place.files }

    private init(_ place: Place, _ opened: OpenFile, _ status: FileStatus) {
        self.place = place
        self.opened = opened
        identity = status.identity
        offset = status.size
    }

    /// The largest limit. When the file is replaced, all caches empty their memory; at this length that happens once in
    /// some thousand changes.
    private static let largestLimit = 256 << 10

    /// The file counts towards the capacity, so it may take only a small share of it; but at least a block, which it
    /// takes anyway.
    static func limit(capacity: Int) -> Int {
        max(4_096, min(largestLimit, capacity / 64)) / DirectoryChange.rowLength * DirectoryChange.rowLength
    }

    // MARK: Opening

    /// Opens the file at its end; makes it if it does not exist.
    /// - Parameter holds: whether this cache locks the file, so that the owner does not delete it.
    static func open(_ place: Place, holds: Bool) throws(Errno) -> ChangeFile {
        for _ in 0..<100 {
            guard let (file, status) = try openOnce(place) else { continue }
            let opened = OpenFile(file, place.files)
            // The owner is just deleting the file. On a busy machine its thread may have to wait for a processor.
            guard !holds || !place.isHeld || hold(file, place.files) else {
                usleep(1_000)
                continue
            }
            // Between opening and locking it, the owner may have deleted the file, or another cache may have replaced
            // it.
            guard (try? place.files.status(at: place.paths.changesBytes))?.identity == status.identity else { continue }
            return ChangeFile(place, opened, status)
        }
        throw Errno(EAGAIN)
    }

    /// On a file system without locks nothing is locked; then no cache gets an exclusive lock either, and the file is
    /// never deleted.
    private static func hold(_ file: Int32, _ files: any FileSystem) -> Bool {
        do throws(Errno) {
            return try files.lockFile(file, isShared: true)
        } catch {
            return true
        }
    }

    /// Nil if the owner has deleted the file after it was opened.
    private static func openOnce(_ place: Place) throws(Errno) -> (Int32, FileStatus)? {
        let path = place.paths.changes
        do throws(Errno) {
            return try place.files.openRegular(path, O_RDWR | O_APPEND | O_CREAT)
        } catch {
            // In a directory that cannot be written, the file may exist and can be read.
            if error.isNotPermitted || error.code == EROFS,
                let found = try? place.files.openRegular(path, O_RDONLY)
            {
                return found
            }
            guard error.code == ELOOP else { throw error }
            do throws(Errno) {
                if FileOwner.process.isTrustedFile(try place.files.status(at: path)) { return nil }
            } catch {
                if error.isMissing { return nil }
            }
            // Something else has this name. It would mean a removal of everything at each look, so it is replaced.
            try? place.files.unlink(path)
            return try make(place, at: path)
        }
    }

    /// Makes a new file, whose first row says that every record may have been removed. On a full disk it stays empty.
    private static func make(_ place: Place, at path: String) throws(Errno) -> (Int32, FileStatus) {
        let (file, status) = try place.files.openRegular(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL)
        try? place.files.writeFully(file, DirectoryChange.removedAll.row(by: place.writer))
        return (file, status)
    }

    // MARK: Reading

    /// The length of the file now, which shows whether another cache has appended a row; nil if there is a different
    /// file, or none, at the path.
    func hasNews() throws(Errno) -> Int? {
        do throws(Errno) {
            let status = try files.status(at: place.paths.changesBytes)
            return status.identity == identity ? status.size : nil
        } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    /// The changes by other caches since the last reading; nil if the bytes are not complete rows, so that any change
    /// may have been missed.
    func read(to end: Int) -> [DirectoryChange]? {
        let start = offset
        let length = end - start
        offset = end
        // The file may exceed the limit a little, since several caches append at once.
        guard (0...2 * Self.largestLimit).contains(length) else { return nil }
        guard length % DirectoryChange.rowLength == 0 else { return nil }
        let bytes = try? files.bytes(of: opened.file, at: start, count: length)
        guard let bytes, bytes.count == length else { return nil }
        return bytes.withUnsafeBytes { bytes in
            var changes: [DirectoryChange] = []
            for start in stride(from: 0, to: length, by: DirectoryChange.rowLength) {
                let row = UnsafeRawBufferPointer(rebasing: bytes[start..<start + DirectoryChange.rowLength])
                guard let (change, writer) = DirectoryChange.decode(row) else { return nil }
                if writer != place.writer { changes.append(change) }
            }
            return changes
        }
    }

    /// Whether an owner has reported that it knows the file.
    var isNoticed: Bool {
        guard let size = try? files.status(opened.file).size, size <= 2 * Self.largestLimit,
            let bytes = try? files.bytes(of: opened.file, at: 0, count: size)
        else { return false }
        let length = DirectoryChange.rowLength
        // A row that is not whole yet is left out.
        for start in stride(from: 0, through: bytes.count - length, by: length) {
            let row = bytes[start..<start + length].withUnsafeBytes { DirectoryChange.decode($0) }
            if row?.change == .noticed { return true }
        }
        return false
    }

    /// Reads all rows again, from the first one on.
    func readAll() -> [DirectoryChange]? {
        guard let size = try? files.status(opened.file).size else { return nil }
        offset = 0
        return read(to: size)
    }

    /// The rows of other caches that were read before, and those that were not; nil if some cannot be read.
    func readAgain() -> (known: [DirectoryChange], news: [DirectoryChange])? {
        let end = offset
        offset = 0
        guard let known = read(to: end), let size = try? files.status(opened.file).size, let news = read(to: size)
        else { return nil }
        return (known, news)
    }

    /// The keys that other caches have named in any row. Rows that were not read yet are still to be read.
    var announcedKeys: Set<KeyName> {
        let known = offset
        defer { offset = known }
        return Set((readAll() ?? []).compactMap(\.key))
    }

    // MARK: Writing

    /// Appends a row. A row never crosses a page boundary, so a reader sees all of it or nothing.
    /// - Returns: the length of the file; nil if there is a different file, or none, at the path by now, so that nobody
    ///   reads the row.
    func append(_ change: DirectoryChange) throws(Errno) -> Int? {
        try files.writeFully(opened.file, change.row(by: place.writer))
        guard let size = try hasNews() else { return nil }
        // A cache does not have to read its own row.
        if size == offset + DirectoryChange.rowLength { offset = size }
        return size
    }

    /// Whether the file has to be replaced: it is full, or a row of another cache is incomplete.
    func isWorn(_ size: Int) -> Bool { size >= place.limit || size % DirectoryChange.rowLength != 0 }

    /// Replaces the file. The other caches keep the old one open, notice that there is a different file at the path,
    /// and assume that every record may have been removed.
    /// - Returns: the new file, and the changes in the old one that this cache had not read yet; nil if it may have
    ///   missed some.
    /// - Throws: `EAGAIN` if another cache replaces or deletes the file at this moment. It reads this one to its end.
    func replaced() throws(Errno) -> (file: ChangeFile, rest: [DirectoryChange]?) {
        let exclusion = try exclusion()
        let isCertain = exclusion != nil && (try? hasNews()) != nil
        defer { withExtendedLifetime(exclusion) {} }
        let path = place.paths.new(.incoming)
        let (new, status) = try Self.make(place, at: path)
        let opened = OpenFile(new, files)
        if place.isHeld { _ = Self.hold(new, files) }
        do throws(Errno) {
            try rename(path)
        } catch {
            try? files.unlink(path)
            throw error
        }
        // A cache that appends to the old file from now on looks at the path, and appends to the new file as well.
        var rest: [DirectoryChange]?
        if isCertain, let status = try? files.status(self.opened.file) {
            rest = read(to: status.size)
        }
        let file = ChangeFile(place, opened, status)
        file.offset = 0
        return (file, rest)
    }

    /// If there is a folder at the path, which no cache made, it cannot be replaced.
    private func rename(_ new: String) throws(Errno) {
        do throws(Errno) {
            try files.rename(new, to: place.paths.changes)
        } catch {
            try? files.unlink(place.paths.changes)
            try files.rename(new, to: place.paths.changes)
        }
    }

    /// Deletes the file if no other cache holds it. Before that, calls `apply` with the changes that this cache has not
    /// read yet.
    func deleteIfUnheld(_ apply: ([DirectoryChange]?) -> Void) -> Bool {
        guard place.isHeld, let exclusion = try? exclusion() else { return false }
        defer { withExtendedLifetime(exclusion) {} }
        guard (try? files.lockFile(opened.file)) == true else { return false }
        // From now on no cache can begin to hold the file, or replace it.
        guard let size = try? hasNews() else {
            try? files.unlockFile(opened.file)
            return false
        }
        if size != offset { apply(read(to: size)) }
        do throws(Errno) {
            try files.unlink(place.paths.changes)
            return true
        } catch {
            try? files.unlockFile(opened.file)
            return false
        }
    }

    /// Locks the directory, so that only one cache at a time replaces or deletes the file. Nil if there are no locks.
    /// - Throws: `EAGAIN` if another cache holds the lock. If this one replaced the file all the same, the other would
    ///   put its own over it, and never read the rows between.
    private func exclusion() throws(Errno) -> OpenFile? {
        guard place.isHeld, let file = try? files.openFile(place.paths.directoryBytes, O_RDONLY | O_DIRECTORY)
        else { return nil }
        let opened = OpenFile(file, files)
        guard let isLocked = try? files.lockFile(file) else { return nil }
        guard isLocked else { throw Errno(EAGAIN) }
        return opened
    }
}

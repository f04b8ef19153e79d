import Foundation

/// The open file `changes`: what the caches on a directory tell each other, one row for each change. Each cache appends
/// its rows, and reads those of the others. Confined to the lock of `Membership`, which says when the file exists.
///
/// The file stays open, so no other file can be taken for it. A cache that finds another file at the path, or bytes
/// that are not rows, takes every record for removed: so a file that is full, or cannot be written, is replaced by a
/// new one.
struct ChangeFile {
    /// Where the file is, and whose rows are this cache's own.
    struct Place: Sendable {
        let files: any FileSystem
        let paths: DiskPaths
        /// The length from which on the file is replaced, in bytes.
        let limit: Int
        /// Tells this cache's own rows from those of others. Its last byte is the row's kind.
        let writer = UInt64.random(in: .min ... .max) & ~0xFF
        /// Whether caches hold the file by a shared lock, so that its owner knows whether anybody does. Not where the
        /// system suspends processes: it kills one that sleeps with a lock on a file of a shared container.
        let isHeld: Bool
    }

    private let place: Place
    private let opened: OpenFile
    let identity: FileIdentity
    /// Up to where this cache has read.
    private(set) var offset: Int

    private var files: any FileSystem { place.files }

    private init(_ place: Place, _ opened: OpenFile, _ status: FileStatus) {
        self.place = place
        self.opened = opened
        identity = status.identity
        offset = status.size
    }

    /// All forget what they have in memory once in some thousand changes.
    private static let largestLimit = 256 << 10

    /// The file counts towards the capacity, and takes a small share of it. One block costs nothing.
    static func limit(capacity: Int) -> Int {
        max(4_096, min(largestLimit, capacity / 64)) / DirectoryChange.rowLength * DirectoryChange.rowLength
    }

    // MARK: Opening

    /// Opens the file at its end, and makes it if it is missing.
    /// - Parameter holds: whether this cache is to hold the file, so that the owner does not delete it.
    static func open(_ place: Place, holds: Bool) throws(Errno) -> ChangeFile {
        for _ in 0..<100 {
            let (file, status) = try openOnce(place)
            let opened = OpenFile(file, place.files)
            // The owner is deleting the file at this moment.
            guard !holds || !place.isHeld || hold(file, place.files) else {
                usleep(100)
                continue
            }
            // Between the opening and the lock the owner may have deleted it, or another cache may have replaced it.
            guard (try? place.files.status(at: place.paths.changesBytes))?.identity == status.identity else { continue }
            return ChangeFile(place, opened, status)
        }
        throw Errno(EAGAIN)
    }

    /// A file system without locks holds nothing: then nobody gets an exclusive lock, and the file is never deleted.
    private static func hold(_ file: Int32, _ files: any FileSystem) -> Bool {
        do throws(Errno) {
            return try files.lockFile(file, isShared: true)
        } catch {
            return true
        }
    }

    private static func openOnce(_ place: Place) throws(Errno) -> (Int32, FileStatus) {
        let path = place.paths.changes
        do throws(Errno) {
            return try place.files.openRegular(path, O_RDWR | O_APPEND | O_CREAT)
        } catch {
            // In a directory that cannot be written, the file may be there and can be read.
            if error.isNotPermitted || error.code == EROFS,
                let found = try? place.files.openRegular(path, O_RDONLY)
            {
                return found
            }
            // Something else has the name: it would be a removal of everything at each look.
            guard error.code == ELOOP else { throw error }
            try? place.files.unlink(path)
            return try make(place, at: path)
        }
    }

    /// A new file, which begins with a row that says that every record may be removed. On a full disk it stays empty,
    /// which needs no room.
    private static func make(_ place: Place, at path: String) throws(Errno) -> (Int32, FileStatus) {
        let (file, status) = try place.files.openRegular(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL)
        try? place.files.writeFully(file, DirectoryChange.removedAll.row(by: place.writer))
        return (file, status)
    }

    // MARK: Reading

    /// Whether another cache has appended a row; nil if another file, or none, is at the path.
    func hasNews() throws(Errno) -> Int? {
        do throws(Errno) {
            let status = try files.status(at: place.paths.changesBytes)
            return status.identity == identity ? status.size : nil
        } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    /// The changes by other caches since the last reading; nil if the bytes are not whole rows: then any change may
    /// have been missed.
    mutating func read(to end: Int) -> [DirectoryChange]? {
        let start = offset
        let length = end - start
        offset = end
        // A little longer than the limit: rows come from several caches at once.
        guard length >= 0, length <= 2 * Self.largestLimit, length % DirectoryChange.rowLength == 0,
            let bytes = try? files.bytes(of: opened.file, at: start, count: length), bytes.count == length
        else { return nil }
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

    /// Whether an owner has told that it knows of the file.
    var isNoticed: Bool {
        guard let size = try? files.status(opened.file).size, size <= 2 * Self.largestLimit,
            let bytes = try? files.bytes(of: opened.file, at: 0, count: size)
        else { return false }
        return stride(
            from: 0, to: bytes.count / DirectoryChange.rowLength * DirectoryChange.rowLength,
            by: DirectoryChange.rowLength
        )
        .contains { start in
            bytes[start..<start + DirectoryChange.rowLength].withUnsafeBytes { DirectoryChange.decode($0) }?.change
                == .noticed
        }
    }

    /// Reads all rows again, from the first one on.
    mutating func readAll() -> [DirectoryChange]? {
        guard let size = try? files.status(opened.file).size else { return nil }
        offset = 0
        return read(to: size)
    }

    // MARK: Writing

    /// Appends a row. A row never lies across two pages, so a reader sees it whole or not at all.
    /// - Returns: the length of the file; nil if another file, or none, is at the path by now: the row is lost.
    mutating func append(_ change: DirectoryChange) throws(Errno) -> Int? {
        try files.writeFully(opened.file, change.row(by: place.writer))
        guard let size = try hasNews() else { return nil }
        // Its own row is no news.
        if size == offset + DirectoryChange.rowLength { offset = size }
        return size
    }

    /// Whether the file is to be replaced: it is full, or a row of another cache is torn.
    func isWorn(_ size: Int) -> Bool { size >= place.limit || size % DirectoryChange.rowLength != 0 }

    /// Replaces the file. The other caches find another one at the path, and take every record for removed.
    /// - Returns: the new file, and the changes of the old one that this cache had not read; nil if it may have missed
    ///   some.
    func replaced() throws(Errno) -> (file: ChangeFile, rest: [DirectoryChange]?) {
        let exclusion = exclusion()
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
        var old = self
        // A cache that appends to the old file from now on looks at the path, and appends to the new file as well.
        let rest = isCertain ? (try? files.status(self.opened.file)).flatMap { old.read(to: $0.size) } : nil
        var file = ChangeFile(place, opened, status)
        file.offset = 0
        return (file, rest)
    }

    /// A folder, which nobody of us made, cannot be replaced.
    private func rename(_ new: String) throws(Errno) {
        do throws(Errno) {
            try files.rename(new, to: place.paths.changes)
        } catch {
            try? files.unlink(place.paths.changes)
            try files.rename(new, to: place.paths.changes)
        }
    }

    /// Deletes the file if no other cache holds it. Before that, calls with the changes that this cache had not read.
    func deleteIfUnheld(_ apply: ([DirectoryChange]?) -> Void) -> Bool {
        guard place.isHeld, let exclusion = exclusion() else { return false }
        defer { withExtendedLifetime(exclusion) {} }
        guard (try? files.lockFile(opened.file)) == true else { return false }
        // From here on nobody begins to hold it, and nobody replaces it.
        guard let size = try? hasNews() else {
            try? files.unlockFile(opened.file)
            return false
        }
        var old = self
        if size != offset { apply(old.read(to: size)) }
        do throws(Errno) {
            try files.unlink(place.paths.changes)
            return true
        } catch {
            try? files.unlockFile(opened.file)
            return false
        }
    }

    /// One cache at a time replaces or deletes the file: a lock of the directory. Nil if another one does, or if there
    /// are no locks.
    private func exclusion() -> OpenFile? {
        guard place.isHeld, let file = try? files.openFile(place.paths.directoryBytes, O_RDONLY | O_DIRECTORY)
        else { return nil }
        let opened = OpenFile(file, files)
        return (try? files.lockFile(file)) == true ? opened : nil
    }
}

import Foundation

/// The directory and its folder of records: whether they exist and belong to this user, and the space that they take
/// besides the records. Used only while `DiskStore.io` is held.
struct CacheDirectory {
    private let files: any FileSystem
    private let paths: DiskPaths
    private let owner: FileOwner
    /// See `DiskConfiguration.enclosure`.
    private let enclosure: String?
    struct Identity: Hashable {
        var directory: FileIdentity
        var folder: FileIdentity
    }

    /// The identity of the directory and its folder of records when they were opened; nil before that, and after the
    /// directory was removed. The folder may be gone.
    private(set) var identity: Identity?
    private(set) var error: DiskURLCache.Error?
    private(set) var wasOpened = false
    /// Whether a folder cannot be searched or listed by its own user, when it was looked at last.
    private(set) var lacksModes = false
    /// Whether a clearing could not move the folder away. It is tried again, and nothing is read until it succeeds, or
    /// until the folder is gone.
    private(set) var mustClear = false
    /// The folder that is to be cleared, if that is known.
    private var folderToClear: FileIdentity?
    /// The size of folders and index files on disk, in bytes.
    private(set) var overhead = 0

    init(_ files: any FileSystem, _ paths: DiskPaths, owner: FileOwner, enclosure: String? = nil) {
        self.files = files
        self.paths = paths
        self.owner = owner
        self.enclosure = enclosure
    }

    // MARK: Opening

    enum Opening {
        /// The directory and the folder are those that were open.
        case same
        case otherFolder
        case otherDirectory
    }

    /// Makes sure that the directory and its folder of records exist, are directories, and that only their owner can
    /// write to them. Two system calls if all is well. Nil if one of them does not exist and `mayMake` is false.
    mutating func open(mayMake: Bool) throws(DiskURLCache.Error) -> Opening? {
        let before = identity
        identity = nil
        lacksModes = false
        if let enclosure { try checkEnclosure(enclosure, mayMake: mayMake) }
        // If the directory is a link, it is followed, since the user gave the path. A link in place of the folder of
        // records is not.
        let directory = try status(
            of: paths.directory, at: paths.directoryBytes, before?.directory, mayMake: mayMake)
        guard let directory,
            let folder = try status(of: paths.records, at: paths.recordsBytes, before?.folder, mayMake: mayMake)
        else {
            mustClear = false
            // Without its folder of records it is still this directory: another cache may be clearing it.
            if let before, before.directory == directory?.identity { identity = before }
            return nil
        }
        identity = Identity(directory: directory.identity, folder: folder.identity)
        // Another folder has taken the place of the one to clear.
        let toClear = folderToClear ?? before?.folder
        if folder.isNew || toClear.map({ $0 != folder.identity }) == true { mustClear = false }
        // A directory that was just made is a new one, even if the file system reused the inode number.
        if directory.isNew || directory.identity != before?.directory {
            if directory.isNew { tag(O_EXCL) }
            return .otherDirectory
        }
        return folder.isNew || folder.identity != before?.folder ? .otherFolder : .same
    }

    /// Tells programs that make backups that the directory is a cache (https://bford.info/cachedir/).
    /// - Parameter flag: that there is no such file (`O_EXCL`), or that what is in it goes (`O_TRUNC`).
    private func tag(_ flag: Int32) {
        guard let file = try? files.openRegular(paths.tag, O_WRONLY | O_CREAT | flag).file else { return }
        try? files.writeFully(file, Self.tagText)
        files.closeQuietly(file)
    }

    private static let tagText = Array(
        "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of DiskURLCache.\n".utf8)

    /// Gives a file that the cache wrote itself its length again: it counts towards the capacity.
    /// - Returns: false if it had that length.
    private func restoreLength(_ path: String, _ status: FileStatus) -> Bool {
        guard owner.isTrustedFile(status) else { return false }
        if path == paths.tag, status.size != Self.tagText.count {
            tag(O_TRUNC)
            return true
        }
        // Caches that made the file at once have written several salts, of which the first counts.
        guard path == paths.salt, status.size > CredentialSalt.length,
            let file = try? files.openRegular(path, O_WRONLY, owner: owner).file
        else { return false }
        defer { files.closeQuietly(file) }
        return (try? files.truncate(file, CredentialSalt.length)) != nil
    }

    /// - Parameter error: why the directory cannot be used; nil if it can.
    /// - Returns: whether that was not known before.
    mutating func note(_ error: DiskURLCache.Error?) -> Bool {
        defer { self.error = error }
        wasOpened = true
        return self.error != error
    }

    private typealias Found = (identity: FileIdentity, isNew: Bool)

    /// Nil if it does not exist and may not be made.
    /// - Parameter other: a second path to the same folder.
    private mutating func status(
        of path: String, at other: [CChar], _ known: FileIdentity?, mayMake: Bool
    ) throws(DiskURLCache.Error) -> Found? {
        guard paths.canBeUsed else { throw .init(.notWritable, path: path, errno: EINVAL) }
        for isNew in [false, true] {
            var found: FileStatus
            do throws(Errno) {
                found = try files.status(at: other)
            } catch {
                switch error.code {
                case ENOENT where isNew: throw .init(.notWritable, path: path, errno: error.code)
                case ENOENT:
                    guard mayMake else { return nil }
                    try makeDirectories(path)
                    continue
                case ENOTDIR: throw .init(.obstructed, path: path)
                default: throw .init(.notReadable, path: path, errno: error.code)
                }
            }
            if found.kind != .directory { throw .init(.obstructed, path: path) }
            // It is opened before it is compared, since the path could lead somewhere else a moment later.
            if found.identity != known, let file = try? files.openFile(other, O_RDONLY | O_DIRECTORY) {
                defer { files.closeQuietly(file) }
                found = (try? files.status(file)) ?? found
            }
            try owner.check(found, at: path)
            if found.permissions & 0o500 != 0o500 { lacksModes = true }
            return (found.identity, isNew)
        }
        return nil
    }

    /// It must be a folder, of this user, into which no other user may write. It is made with mode 0700, so that nobody
    /// else could have put anything there before it was looked at.
    private func checkEnclosure(_ path: String, mayMake: Bool) throws(DiskURLCache.Error) {
        if mayMake { try? files.makeDirectory(path) }
        // Without it there is no directory either.
        guard let found = try? files.status(at: path) else { return }
        if found.kind != .directory { throw .init(.obstructed, path: path) }
        try owner.check(found, at: path)
    }

    private func makeDirectories(_ path: String) throws(DiskURLCache.Error) {
        // Mostly the parents exist, although a sandbox may not let us see them.
        if (try? files.makeDirectory(path)) != nil { return }
        var partial = ""
        for component in path.split(separator: "/") {
            partial += "/" + component
            do throws(Errno) {
                try files.makeDirectory(partial)
            } catch {
                // An existing parent is not an error. At the end it is checked whether the path leads to a directory.
                let isThere = (try? files.status(at: partial + "/.")) != nil
                if !isThere {
                    if error.code == EEXIST || error.code == ENOTDIR { throw .init(.obstructed, path: partial) }
                    throw .init(.notWritable, path: partial, errno: error.code)
                }
            }
        }
    }

    /// Why a read-only directory cannot be read; nil if it can.
    mutating func readingError(_ reader: RecordReader) -> DiskURLCache.Error? {
        var first: RecordName?
        do throws(DiskURLCache.Error) {
            guard try open(mayMake: false) != nil else {
                let isThere = (try? files.status(at: paths.directory + "/.")) != nil
                return .init(.notACache, path: paths.directory, errno: isThere ? 0 : ENOENT)
            }
        } catch {
            return error
        }
        do throws(Errno) {
            try files.list(paths.records) { name in
                first = RecordName(name)
                return first == nil
            }
        } catch {
            return .init(.notReadable, path: paths.records, errno: error.code)
        }
        // The mode of the first record is taken for that of all, since the same program filled the directory.
        guard let first else { return nil }
        guard case .unreadable(let error) = reader.read(first, .tail, limit: .max) else { return nil }
        return .init(.notReadable, path: paths.records + "/" + first.text, errno: error.code)
    }

    // MARK: The folder of records

    /// Whether there is something to clear, and the path still leads to it.
    var canClear: Bool {
        guard mustClear, let status = try? files.status(at: paths.records) else { return false }
        return status.identity == folderToClear ?? identity?.folder
    }

    /// Renames the folder of records, which takes the same time however many there are. From then on no lookup of any
    /// process finds them. The renamed folder is deleted later.
    /// - Throws: if the folder cannot be renamed; then the records still have to be cleared.
    mutating func clear() throws(Errno) {
        folderToClear = identity?.folder
        do throws(Errno) {
            let status = try files.status(at: paths.records)
            folderToClear = status.identity
            guard status.kind == .directory else { throw Errno(ELOOP) }
            try files.rename(paths.records, to: paths.new(.trash))
        } catch {
            // There is no folder of this cache, so there is nothing to clear.
            if !error.isMissing, error.code != ELOOP, error.code != ENOTDIR, !unlinkRecords() {
                mustClear = true
                throw error
            }
        }
        mustClear = false
        if (try? files.status(at: paths.directory + "/.")) != nil { remakeFolder() }
    }

    /// Replaces an empty folder of records by a new one, since a folder does not shrink when its files are removed.
    /// Only if it is empty, so that no record of another process is lost.
    mutating func replaceEmptyFolder() -> Bool {
        guard (try? files.removeDirectory(paths.records)) != nil else { return false }
        remakeFolder()
        return true
    }

    /// Makes the folder again, and notes its identity.
    private mutating func remakeFolder() {
        try? files.makeDirectory(paths.records)
        guard let status = try? files.status(at: paths.records), owner.trusts(status) else { return }
        identity?.folder = status.identity
    }

    /// Removes the records one by one, if the folder cannot be renamed, for example on a full disk. False if a record
    /// is left.
    private func unlinkRecords() -> Bool {
        guard let listing = try? FolderListing(files, paths, owner: owner) else { return false }
        var isAnyLeft = false
        for record in listing.records {
            do throws(Errno) {
                try files.unlink(paths.records + "/" + record.name.text)
            } catch {
                if !error.isMissing { isAnyLeft = true }
            }
        }
        return !isAnyLeft
    }

    // MARK: Cleared folders

    /// Deletes the folders of cleared records, up to `limit` files; true when no more can be deleted. What could not be
    /// deleted is left for the next call. Files in them that are not records do not belong to the cache and are moved
    /// back to the folder of records. It needs no lock, since no cache uses these folders.
    static func sweepTrash(_ files: any FileSystem, _ paths: DiskPaths, limit: Int) -> Bool {
        var budget = limit
        var isDone = true
        for folder in paths.all(.trash, in: files) {
            guard let status = try? files.status(at: folder), status.kind == .directory else { continue }
            var records: [String] = []
            var others: [String] = []
            try? files.list(folder) { name in
                if RecordName(name) == nil {
                    others.append(String(cString: name))
                } else {
                    records.append(String(cString: name))
                }
                return records.count < budget
            }
            let isCut = records.count >= budget
            var deleted = 0
            for name in records {
                // A folder or a link with the name of a record does not belong to the cache either. If its kind cannot
                // be found out, it is not deleted.
                guard let status = try? files.status(at: folder + "/" + name) else { continue }
                if status.kind == .regular {
                    if (try? files.unlink(folder + "/" + name)) != nil { deleted += 1 }
                } else {
                    others.append(name)
                }
            }
            if isCut, deleted > 0 { isDone = false }
            budget -= deleted
            if budget <= 0 { return false }
            for name in others { try? files.rename(folder + "/" + name, to: paths.records + "/" + name) }
            try? files.removeDirectory(folder)
        }
        return isDone
    }

    // MARK: Size

    mutating func updateOverhead() {
        overhead = 0
        for path in paths.besidesRecords {
            guard var status = try? files.status(at: path) else { continue }
            if restoreLength(path, status), let restored = try? files.status(at: path) { status = restored }
            overhead += status.allocated
        }
    }
}

extension DiskURLCache.Error {
    /// Whether nothing in the directory may be read, written or removed.
    var isForeign: Bool { [.obstructed, .otherOwner, .writableByOthers].contains(code) }
}

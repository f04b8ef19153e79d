import Foundation

/// The directory and its folder of records: whether they are there and ours, and what they take besides the records.
/// Confined to `DiskStore.io`.
struct CacheDirectory {
    private let files: any FileSystem
    private let paths: DiskPaths
    private let owner: FileOwner
    struct Identity: Hashable {
        var directory: FileIdentity
        var folder: FileIdentity
    }

    /// The directory and its folder of records as they were opened; nil before, and when they are gone.
    private(set) var identity: Identity?
    private(set) var error: DiskURLCache.Error?
    private(set) var wasOpened = false
    /// This cache made the directory: nobody used it before.
    private(set) var wasMadeHere = false
    /// A clearing could not move the folder away. It is tried again, and nothing is read until it succeeds.
    private(set) var mustClear = false
    /// The size of folders and index files on disk, in bytes.
    private(set) var overhead = 0

    init(_ files: any FileSystem, _ paths: DiskPaths, owner: FileOwner) {
        self.files = files
        self.paths = paths
        self.owner = owner
    }

    // MARK: Opening

    enum Opening {
        /// The directory and the folder are those that were open.
        case same
        case otherFolder
        case otherDirectory
    }

    /// Makes sure that the directory and its folder of records are there, are directories, and belong to the owner
    /// alone; two system calls when they do. Nil when they are gone and `mayMake` is false.
    mutating func open(mayMake: Bool) throws(DiskURLCache.Error) -> Opening? {
        let before = identity
        identity = nil
        // A link to a directory is followed, since the user gave the path. A link to the folder of records is not.
        guard
            let directory = try status(
                of: paths.directory, at: paths.directoryBytes, before?.directory, mayMake: mayMake),
            let folder = try status(of: paths.records, at: paths.recordsBytes, before?.folder, mayMake: mayMake)
        else { return nil }
        identity = Identity(directory: directory.identity, folder: folder.identity)
        // A directory that was made just now is a new one, even if the file system gave it the same number again.
        if directory.isNew || directory.identity != before?.directory {
            wasMadeHere = directory.isNew
            if directory.isNew { tag() }
            return .otherDirectory
        }
        return folder.isNew || folder.identity != before?.folder ? .otherFolder : .same
    }

    /// Tells programs that make backups that the directory is a cache (https://bford.info/cachedir/).
    private func tag() {
        guard let file = try? files.openRegular(paths.tag, O_WRONLY | O_CREAT | O_EXCL).file else { return }
        try? files.writeFully(
            file, Array("Signature: 8a477f597d28d172789f06886806bc55\n# A cache of DiskURLCache.\n".utf8))
        files.closeQuietly(file)
    }

    /// - Parameter error: why the directory cannot be used; nil if it can.
    /// - Returns: whether that was not known before.
    mutating func note(_ error: DiskURLCache.Error?) -> Bool {
        defer { self.error = error }
        wasOpened = true
        return self.error != error
    }

    private typealias Found = (identity: FileIdentity, isNew: Bool)

    /// Nil if it is missing and may not be made.
    /// - Parameter other: a path that leads to it, too.
    private func status(
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
            // The directory is checked once it is open: its path could lead to a third one.
            if found.identity != known, let file = try? files.openFile(other, O_RDONLY | O_DIRECTORY) {
                defer { files.closeQuietly(file) }
                found = (try? files.status(file)) ?? found
            }
            try owner.check(found, at: path)
            return (found.identity, isNew)
        }
        return nil
    }

    private func makeDirectories(_ path: String) throws(DiskURLCache.Error) {
        // Mostly its parents are there, which a sandbox may not let us see.
        if (try? files.makeDirectory(path)) != nil { return }
        var partial = ""
        for component in path.split(separator: "/") {
            partial += "/" + component
            do throws(Errno) {
                try files.makeDirectory(partial)
            } catch {
                // A parent that exists already is fine. Whether the path leads to a directory is checked at the end.
                let isThere = (try? files.status(at: partial + "/.")) != nil
                if !isThere {
                    if error.code == EEXIST || error.code == ENOTDIR { throw .init(.obstructed, path: partial) }
                    throw .init(.notWritable, path: partial, errno: error.code)
                }
            }
        }
    }

    /// Why a directory that is only read cannot be read.
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
        // The modes of the first record are those of all: whoever filled the directory wrote them.
        guard let first, case .unreadable(let error) = reader.read(first, .tail, limit: .max >> 1) else { return nil }
        return .init(.notReadable, path: paths.records + "/" + first.text, errno: error.code)
    }

    // MARK: The folder of records

    /// Moves the records' folder away, which takes the same time at any number of records; it is deleted later. Once
    /// moved, no lookup of any process finds them.
    /// - Throws: if that cannot be done: the records are still to be cleared.
    mutating func clear() throws(Errno) {
        do throws(Errno) {
            let status = try files.status(at: paths.records)
            guard status.kind == .directory else { throw Errno(ELOOP) }
            try files.rename(paths.records, to: paths.new(.trash))
        } catch {
            // There is no folder of ours, so there is nothing to clear.
            if !error.isMissing, error.code != ELOOP, error.code != ENOTDIR, !unlinkRecords() {
                mustClear = true
                throw error
            }
        }
        mustClear = false
        if (try? files.status(at: paths.directory + "/.")) != nil { remakeFolder() }
    }

    /// A folder does not shrink when its files go. Puts another one in its place if it is empty: no record of another
    /// process goes.
    mutating func replaceEmptyFolder() -> Bool {
        guard (try? files.removeDirectory(paths.records)) != nil else { return false }
        remakeFolder()
        return true
    }

    /// The folder is another one, and this cache knows it.
    private mutating func remakeFolder() {
        try? files.makeDirectory(paths.records)
        guard let status = try? files.status(at: paths.records), owner.trusts(status) else { return }
        identity?.folder = status.identity
    }

    /// Where the folder cannot be moved away, on a full disk say: its records go one by one, so that no other process
    /// serves them. False if a record is left.
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

    /// Deletes the folders of cleared records, up to `limit` files; true when none is left. Files in them that are not
    /// records are not ours: they are moved back to the records' folder. Needs no lock: no cache uses these folders.
    static func sweepTrash(_ files: any FileSystem, _ paths: DiskPaths, limit: Int) -> Bool {
        var budget = limit
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
            for name in records {
                // A folder or a link under a record's name is not ours either. Of what cannot be looked at nothing is
                // known: it stays.
                guard let status = try? files.status(at: folder + "/" + name) else { continue }
                if status.kind == .regular {
                    try? files.unlink(folder + "/" + name)
                } else {
                    others.append(name)
                }
            }
            budget -= records.count
            if budget <= 0 { return false }
            for name in others { try? files.rename(folder + "/" + name, to: paths.records + "/" + name) }
            try? files.removeDirectory(folder)
        }
        return true
    }

    // MARK: Size

    mutating func updateOverhead() {
        overhead = paths.besidesRecords.reduce(0) { $0 + ((try? files.status(at: $1))?.allocated ?? 0) }
    }
}

extension DiskURLCache.Error {
    /// Nothing in the directory is read, written or removed.
    var isForeign: Bool { [.obstructed, .otherOwner, .writableByOthers].contains(code) }
}

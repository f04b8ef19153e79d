import Foundation

/// The error number of a failed system call.
package struct Errno: Error, Hashable, Sendable {
    package let code: Int32

    package init(_ code: Int32) {
        self.code = code
    }

    static var last: Errno { Errno(errno) }

    /// Whether there is nothing with that name.
    var isMissing: Bool { code == ENOENT }

    /// Whether the system refuses, for example because files are protected while the device is locked.
    var isNotPermitted: Bool { code == EPERM || code == EACCES }

    /// Whether the process, or the system, has no more files or memory at this moment.
    var isOutOfResources: Bool { [EMFILE, ENFILE, ENOMEM].contains(code) }

    /// Whether the file system has no locks.
    var isWithoutLocks: Bool { code == ENOLCK || code == ENOTSUP || code == ENOSYS }
}

/// The part of the result of `stat` that the disk layer needs.
package struct FileStatus: Sendable, Hashable {
    package enum Kind: Sendable { case regular, directory, symbolicLink, other }

    package var kind: Kind
    package var permissions: UInt32
    /// The user who owns the file.
    package var owner: UInt32
    /// In bytes; not negative, and at most a terabyte.
    package var size: Int
    /// The space that the file takes on disk, in bytes of whole blocks. Not its length. In the same bounds.
    package var allocated: Int
    package var links: Int
    /// The space that a file counts for: at least its length, since some file systems allocate its blocks only seconds
    /// after it was written (ZFS).
    package var spaceTaken: Int { max(0, allocated, size) }
    package var identity: FileIdentity
    /// Nanoseconds since 1970. On watchOS `Int` may have 32 bits.
    var modified: Int64

    package var modifiedSeconds: UInt32 { UInt32(clamping: modified / 1_000_000_000) }
}

/// The identity of a file: two paths lead to the same file if and only if these are equal.
package struct FileIdentity: Sendable, Hashable {
    var device: UInt64
    var inode: UInt64
}

/// The few file operations that the disk layer uses. Tests replace them, to make the k-th one fail, to shorten, log or
/// repeat it.
///
/// Each method is a single system call, with its errors and short counts. Functions that loop until all is done are in
/// the extension.
package protocol FileSystem: Sendable {
    func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32
    func close(_ file: Int32) throws(Errno)
    func status(_ file: Int32) throws(Errno) -> FileStatus
    /// The status of the name itself, even if it is a symbolic link.
    func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus
    /// Reads from a position in the file, independent of earlier reads.
    func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int
    /// Writes both pieces by one call, as if they were one.
    func write(_ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno) -> Int
    func truncate(_ file: Int32, _ length: Int) throws(Errno)
    func setPermissions(_ file: Int32, _ permissions: UInt32) throws(Errno)
    /// The same for a path, which must not be a symbolic link: a folder that may not be opened has no descriptor.
    func setPermissions(at path: UnsafePointer<CChar>, _ permissions: UInt32) throws(Errno)
    func unlink(_ path: UnsafePointer<CChar>) throws(Errno)
    func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno)
    /// Makes a directory with mode 0700, whatever the umask is.
    func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno)
    func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno)
    /// Calls `body` with the names in a directory, without `.` and `..`, until it returns false. The directory must not
    /// be a symbolic link.
    func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Bool) throws(Errno)
    /// Calls `body` with the names in a directory, as `list` does, and with a function that gives the status of each.
    /// Of thousands of files that takes half as long as to look up the path of each.
    func listWithStatus(
        _ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>, _ status: () -> FileStatus?) -> Void
    ) throws(Errno)
    /// Locks the open file (`flock`) without waiting; false if it is locked already. A shared lock excludes only
    /// exclusive ones.
    func lockFile(_ file: Int32, isShared: Bool) throws(Errno) -> Bool
    func unlockFile(_ file: Int32) throws(Errno)
    /// Locks the file for the process (`fcntl`) without waiting. A forked child does not inherit the lock, and it is
    /// released when the process dies.
    func lockProcess(_ file: Int32) throws(Errno) -> Bool
}

extension FileSystem {
    /// By the path of each file, for file systems of tests.
    package func listWithStatus(
        _ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>, _ status: () -> FileStatus?) -> Void
    ) throws(Errno) {
        let folder = String(cString: path) + "/"
        try list(path) { name in
            body(name) { try? status(at: folder + String(cString: name)) }
            return true
        }
    }

    /// Gives the folders of the cache the modes back that they were made with, if they belong to this user: for a
    /// removal, which has to be final when it returns. Without the right to search a folder it would find nothing, and
    /// what it was to remove would be there again with the modes.
    /// - Returns: whether any folder has other modes now.
    @discardableResult
    func restoreModes(_ paths: DiskPaths, owner: FileOwner) -> Bool {
        var isAny = false
        for path in [paths.directory, paths.records] {
            guard let status = try? status(at: path), status.kind == .directory, owner.owns(status),
                status.permissions & 0o700 != 0o700
            else { continue }
            if (try? setPermissions(at: path, 0o700)) != nil { isAny = true }
        }
        return isAny
    }

    /// Locks the open file exclusively.
    func lockFile(_ file: Int32) throws(Errno) -> Bool { try lockFile(file, isShared: false) }

    /// Opens a file with these flags. It does not follow a symbolic link at the end of the path, does not pass the
    /// descriptor on to other programs, and does not hang on a FIFO.
    package func openFile(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 {
        while true {
            do throws(Errno) {
                return try open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            } catch {
                if error.code != EINTR { throw error }
            }
        }
    }

    /// Opens or makes a file of the cache: a regular file of this user with a single name and mode 0600. Throws `ELOOP`
    /// for anything else.
    package func openRegular(
        _ path: String, _ flags: Int32, owner: FileOwner = .process
    ) throws(Errno) -> (file: Int32, status: FileStatus) {
        let file = try openFile(path, flags)
        do throws(Errno) {
            let status = try status(file)
            guard owner.isTrustedFile(status) else { throw Errno(ELOOP) }
            // The umask may have removed permissions that the cache needs. A file that has lost this name meanwhile
            // does not belong to the cache.
            if flags & O_CREAT != 0, status.permissions != 0o600 {
                guard try self.status(at: path).identity == status.identity else { throw Errno(ELOOP) }
                try setPermissions(file, 0o600)
            }
            return (file, status)
        } catch {
            closeQuietly(file)
            throw error
        }
    }

    /// Fills the buffer from that position in the file. The count is less than the buffer's only at the end of the
    /// file.
    func readFully(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int {
        var done = 0
        while done < buffer.count {
            do throws(Errno) {
                let count = try read(
                    file, UnsafeMutableRawBufferPointer(rebasing: buffer[done...]), at: offset + done)
                if count <= 0 { break }
                done += count
            } catch {
                if error.code != EINTR { throw error }
            }
        }
        return done
    }

    /// Writes both pieces completely, or throws.
    package func writeFully(
        _ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer = .init(start: nil, count: 0)
    ) throws(Errno) {
        let total = first.count + second.count
        var done = 0
        while done < total {
            do throws(Errno) {
                let head = UnsafeRawBufferPointer(rebasing: first[min(done, first.count)...])
                let tail = UnsafeRawBufferPointer(rebasing: second[max(0, done - first.count)...])
                let count = try write(file, head, tail)
                if count <= 0 { throw Errno(EIO) }
                done += count
            } catch {
                if error.code != EINTR { throw error }
            }
        }
    }

    package func writeFully(
        _ file: Int32, _ bytes: some ContiguousBytes, _ second: UnsafeRawBufferPointer = .init(start: nil, count: 0)
    ) throws(Errno) {
        try bytes.withUnsafeBytes { first in
            Result { () throws(Errno) in try writeFully(file, first, second) }
        }.get()
    }

    /// Reads this many bytes from a position in the file, or fewer at its end.
    func bytes(of file: Int32, at offset: Int, count: Int) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let length = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(Errno) in try readFully(file, buffer, at: offset) }
        }.get()
        bytes.removeSubrange(length...)
        return bytes
    }

    /// Whether a path still leads to an open file. Another process may have moved the folder away and made a file with
    /// the same name in a new folder.
    func isStill(_ file: Int32, at path: UnsafePointer<CChar>) -> Bool {
        guard let named = try? status(at: path), let opened = try? status(file) else { return true }
        return named.identity == opened.identity
    }

    /// Closes the file and ignores an error: the descriptor is closed either way.
    package func closeQuietly(_ file: Int32) {
        try? close(file)
    }
}

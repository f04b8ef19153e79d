import Foundation

/// The number that a failed system call left.
package struct Errno: Error, Hashable, Sendable {
    package let code: Int32

    package init(_ code: Int32) {
        self.code = code
    }

    static var last: Errno { Errno(errno) }

    /// Nothing has that name.
    var isMissing: Bool { code == ENOENT }

    /// The system refuses for now, say because files are protected while the device is locked.
    var isNotPermitted: Bool { code == EPERM || code == EACCES }

    /// The file system has no locks.
    var isWithoutLocks: Bool { code == ENOLCK || code == ENOTSUP || code == ENOSYS }
}

/// The facts of `stat` about a file, as far as the disk layer needs them.
package struct FileStatus: Sendable, Hashable {
    package enum Kind: Sendable { case regular, directory, symbolicLink, other }

    package var kind: Kind
    package var permissions: UInt32
    /// The user that the file belongs to.
    package var owner: UInt32
    package var size: Int
    /// The size of the file on disk, in bytes: allocated blocks, not its length.
    package var allocated: Int
    package var links: Int
    package var identity: FileIdentity
    /// Nanoseconds since 1970.
    var modified: Int

    package var modifiedSeconds: UInt32 { UInt32(clamping: modified / 1_000_000_000) }
}

/// Two paths lead to the same file exactly when these are equal.
package struct FileIdentity: Sendable, Hashable {
    var device: UInt64
    var inode: UInt64
}

/// The few file operations that the disk layer uses: a seam for tests, which fail, shorten, log or replay the k-th of
/// them.
///
/// Each method is one system call, its errors and its short counts included; what loops until done is in the extension.
package protocol FileSystem: Sendable {
    func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32
    func close(_ file: Int32) throws(Errno)
    func status(_ file: Int32) throws(Errno) -> FileStatus
    /// Of the name itself, should it be a symbolic link.
    func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus
    /// From a place in the file, whatever was read before.
    func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int
    /// Both pieces by one call, as if they were one.
    func write(_ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno) -> Int
    func truncate(_ file: Int32, _ length: Int) throws(Errno)
    func setPermissions(_ file: Int32, _ permissions: UInt32) throws(Errno)
    func unlink(_ path: UnsafePointer<CChar>) throws(Errno)
    func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno)
    /// With mode 0700, whatever the umask.
    func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno)
    func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno)
    /// The names in a directory that is not a symbolic link, `.` and `..` left out, until `body` gives false.
    func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Bool) throws(Errno)
    /// Lock of the open file (`flock`), without waiting: false when somebody else holds it. A shared one excludes only
    /// those that are not shared.
    func lockFile(_ file: Int32, isShared: Bool) throws(Errno) -> Bool
    func unlockFile(_ file: Int32) throws(Errno)
    /// Lock of the process (`fcntl`), without waiting: not inherited by a forked child, gone when the process dies.
    func lockProcess(_ file: Int32) throws(Errno) -> Bool
}

extension FileSystem {
    /// Lock of the open file for this one alone.
    func lockFile(_ file: Int32) throws(Errno) -> Bool { try lockFile(file, isShared: false) }

    /// Opens for reading or writing as asked; never follows a symbolic link in the last place, never leaks over exec,
    /// never hangs on a FIFO.
    package func openFile(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 {
        while true {
            do throws(Errno) {
                return try open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            } catch {
                if error.code != EINTR { throw error }
            }
        }
    }

    /// Opens or makes a file of the cache: a regular file of the user with one name and mode 0600. `ELOOP` for anything
    /// else.
    package func openRegular(
        _ path: String, _ flags: Int32, owner: FileOwner = .process
    ) throws(Errno) -> (file: Int32, status: FileStatus) {
        let file = try openFile(path, flags)
        do throws(Errno) {
            let status = try status(file)
            guard owner.isTrustedFile(status) else { throw Errno(ELOOP) }
            // The umask may have taken permissions that the cache needs. A file that lost this name meanwhile is not
            // the cache's.
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

    /// Fills the buffer from that place of the file on; the count is short only at the end of the file.
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

    /// Writes all of both pieces, or throws.
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

    /// So many bytes from that place of the file on, or fewer at its end.
    func bytes(of file: Int32, at offset: Int, count: Int) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let length = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(Errno) in try readFully(file, buffer, at: offset) }
        }.get()
        bytes.removeSubrange(length...)
        return bytes
    }

    /// Whether a name still leads to a file that is open, as far as can be seen. A different process may have moved the
    /// folder away, and made a file of that name in the new one.
    func isStill(_ file: Int32, at path: UnsafePointer<CChar>) -> Bool {
        guard let named = try? status(at: path), let opened = try? status(file) else { return true }
        return named.identity == opened.identity
    }

    /// Closes, the error told or not: the descriptor is gone either way.
    package func closeQuietly(_ file: Int32) {
        try? close(file)
    }
}

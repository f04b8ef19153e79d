import Foundation

// Within the type its own method hides the function.
private func closeFile(_ file: Int32) -> Int32 { close(file) }

/// The operating system's files. New files get mode 0600 less what the umask takes, new directories 0700.
package struct SystemFiles: FileSystem {

    package init() {
    }

    package func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 {
        let file = openat(AT_FDCWD, path, flags, 0o600)
        if file < 0 { throw .last }
        return file
    }

    package func close(_ file: Int32) throws(Errno) {
        if closeFile(file) != 0 { throw .last }
    }

    package func status(_ file: Int32) throws(Errno) -> FileStatus {
        var value = stat()
        if fstat(file, &value) != 0 { throw .last }
        return FileStatus(value)
    }

    package func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus {
        var value = stat()
        if lstat(path, &value) != 0 { throw .last }
        return FileStatus(value)
    }

    package func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int {
        // Android takes no null.
        guard let start = buffer.baseAddress else { return 0 }
        let count = pread(file, start, buffer.count, off_t(offset))
        if count < 0 { throw .last }
        return count
    }

    package func write(_ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno)
        -> Int
    {
        let count = withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { pieces in
            pieces.initializeElement(
                at: 0, to: iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count))
            pieces.initializeElement(
                at: 1, to: iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
            )
            // Two of them are there: never nil.
            return pieces.baseAddress.map { writev(file, $0, second.isEmpty ? 1 : 2) } ?? 0
        }
        if count < 0 { throw .last }
        return count
    }

    package func truncate(_ file: Int32, _ length: Int) throws(Errno) {
        if ftruncate(file, off_t(length)) != 0 { throw .last }
    }

    package func setPermissions(_ file: Int32, _ permissions: UInt32) throws(Errno) {
        if fchmod(file, mode_t(permissions)) != 0 { throw .last }
    }

    package func setPermissions(at path: UnsafePointer<CChar>, _ permissions: UInt32) throws(Errno) {
        if fchmodat(AT_FDCWD, path, mode_t(permissions), AT_SYMLINK_NOFOLLOW) != 0 { throw .last }
    }

    package func unlink(_ path: UnsafePointer<CChar>) throws(Errno) {
        if unlinkat(AT_FDCWD, path, 0) != 0 { throw .last }
    }

    package func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno) {
        if renameat(AT_FDCWD, path, AT_FDCWD, newPath) != 0 { throw .last }
    }

    package func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) {
        if mkdir(path, 0o700) != 0 { throw .last }
        // A umask may have taken rights of the owner. Never by the path: another user may have put a link there by now.
        guard let file = try? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) else { return }
        defer { try? close(file) }
        guard let status = try? status(file), status.permissions != 0o700, FileOwner.process.owns(status) else {
            return
        }
        try? setPermissions(file, 0o700)
    }

    package func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) {
        if rmdir(path) != 0 { throw .last }
    }

    package func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Bool) throws(Errno) {
        try list(path) { name, _ in body(name) }
    }

    package func listWithStatus(
        _ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>, _ status: () -> FileStatus?) -> Void
    ) throws(Errno) {
        try list(path) { name, directory in
            body(name) {
                var value = stat()
                return fstatat(directory, name, &value, AT_SYMLINK_NOFOLLOW) == 0 ? FileStatus(value) : nil
            }
            return true
        }
    }

    private func list(
        _ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>, _ directory: Int32) -> Bool
    ) throws(Errno) {
        let file = try open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard let directory = fdopendir(file) else {
            let error = Errno.last
            try? close(file)
            throw error
        }
        defer { closedir(directory) }
        let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                let error = Errno.last
                if error.code != 0 { throw error }
                return
            }
            let name = (UnsafeRawPointer(entry) + nameOffset).assumingMemoryBound(to: CChar.self)
            // "." and ".." are in each folder.
            let dot = CChar(46)
            let isDot = name[0] == dot && name[1] == 0
            let isDotDot = name[0] == dot && name[1] == dot && name[2] == 0
            if !isDot, !isDotDot, !body(name, file) { return }
        }
    }

    package func lockFile(_ file: Int32, isShared: Bool) throws(Errno) -> Bool {
        if flock(file, (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 { return true }
        let error = Errno.last
        if error.code == EWOULDBLOCK { return false }
        throw error
    }

    package func unlockFile(_ file: Int32) throws(Errno) {
        if flock(file, LOCK_UN) != 0 { throw .last }
    }

    package func lockProcess(_ file: Int32) throws(Errno) -> Bool {
        var request = flock()
        request.l_type = Int16(F_WRLCK)
        request.l_whence = Int16(SEEK_SET)
        if fcntl(file, F_SETLK, &request) == 0 { return true }
        let error = Errno.last
        if error.code == EACCES || error.code == EAGAIN { return false }
        throw error
    }
}

extension FileStatus {
    init(_ value: stat) {
        kind =
            switch value.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .directory
            case S_IFLNK: .symbolicLink
            default: .other
            }
        permissions = UInt32(value.st_mode) & 0o777
        owner = value.st_uid
        size = Int(clamping: Self.upToTerabyte(Int64(value.st_size)))
        allocated = Int(clamping: Self.upToTerabyte(512 * Self.upToTerabyte(Int64(value.st_blocks))))
        links = Int(value.st_nlink)
        identity = FileIdentity(
            device: UInt64(truncatingIfNeeded: value.st_dev), inode: UInt64(truncatingIfNeeded: value.st_ino))
        let time = value.modificationTime
        // A time beyond 2262, or before 1678, comes from a damaged file system.
        let (seconds, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        modified = overflow ? 0 : seconds &+ Int64(time.tv_nsec)
    }

    /// A sparse file, or a damaged file system, may claim any size. No file of the cache is larger than this, and sums
    /// of sizes fit into a number.
    private static func upToTerabyte(_ claimed: Int64) -> Int64 { max(0, min(claimed, 1 << 40)) }
}

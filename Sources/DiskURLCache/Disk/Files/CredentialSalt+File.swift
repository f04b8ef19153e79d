import Foundation

/// The file `salt`: its first bytes are the directory's salt. Of several caches that begin it at once the first one's bytes count.
extension CredentialSalt {
    static func bytes(_ files: any FileSystem, _ paths: DiskPaths, adding new: [UInt8]) throws(Errno) -> [UInt8] {
        let (file, status): (Int32, FileStatus)
        do throws(Errno) {
            (file, status) = try files.openRegular(paths.salt, O_RDWR | O_APPEND | O_CREAT)
        } catch {
            // The file is not one of a cache. Records with credentials are not found any more.
            guard error.code == ELOOP else { throw error }
            try files.unlink(paths.salt)
            (file, status) = try files.openRegular(paths.salt, O_RDWR | O_APPEND | O_CREAT)
        }
        defer { files.closeQuietly(file) }
        if status.size < length { try files.writeFully(file, new) }
        let bytes = try files.bytes(of: file, at: 0, count: length)
        if bytes.count < length { throw Errno(EIO) }
        return bytes
    }

    /// The salt of a directory that is only read; nil if it has none.
    package static func reading(_ files: any FileSystem, _ paths: DiskPaths, owner: FileOwner) -> CredentialSalt? {
        guard let file = try? files.openRegular(paths.salt, O_RDONLY, owner: owner).file else { return nil }
        defer { files.closeQuietly(file) }
        guard let bytes = try? files.bytes(of: file, at: 0, count: length), bytes.count == length else { return nil }
        return CredentialSalt(bytes)
    }
}

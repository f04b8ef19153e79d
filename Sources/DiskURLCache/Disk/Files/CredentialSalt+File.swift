import Foundation

extension CredentialSalt {
    /// The salt of a directory: the first bytes of the file `salt`. If several caches write it at the same time, the
    /// bytes of the first one count.
    /// - Parameter new: the bytes to store if there is no salt; nil for a read-only directory.
    package static func bytes(
        _ files: any FileSystem, _ paths: DiskPaths, owner: FileOwner = .process, adding new: [UInt8]?
    ) throws(Errno) -> [UInt8] {
        let flags = new == nil ? O_RDONLY : O_RDWR | O_APPEND | O_CREAT
        let (file, status): (Int32, FileStatus)
        do throws(Errno) {
            (file, status) = try files.openRegular(paths.salt, flags, owner: owner)
        } catch {
            // The file was not made by a cache. Records whose keys have credentials cannot be found any more.
            guard error.code == ELOOP, new != nil else { throw error }
            try files.unlink(paths.salt)
            (file, status) = try files.openRegular(paths.salt, flags, owner: owner)
        }
        defer { files.closeQuietly(file) }
        if let new, status.size < length { try files.writeFully(file, new) }
        let bytes = try files.bytes(of: file, at: 0, count: length)
        if bytes.count < length { throw Errno(EIO) }
        return bytes
    }
}

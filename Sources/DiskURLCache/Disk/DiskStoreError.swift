/// Why a directory cannot be used; the cache then works from memory alone.
package enum DiskStoreError: Error, Sendable, Hashable {
    /// The directory, or a folder on the way to it, cannot be made.
    case cannotMakeDirectory(path: String, errno: Int32)
    /// Something that is not a directory has the name. It is left alone: it is the user's.
    case notADirectory(path: String)
    /// The records' folder is a symbolic link; what it points to is left alone.
    case symbolicLink(path: String)
    case notReadable(path: String, errno: Int32)
    case notWritable(path: String, errno: Int32)
    /// The directory, or its records' folder, belongs to another user; it is left alone.
    case otherOwner(path: String, user: UInt32)
    /// Other users may put files into the directory or its records' folder; it is left alone.
    case writableByOthers(path: String, permissions: UInt32)
    /// A directory that is only read is not there, or has no folder of records.
    case notACache(path: String, errno: Int32)

    /// Nothing in the directory is read, written or removed.
    var isForeign: Bool {
        switch self {
        case .symbolicLink, .otherOwner, .writableByOthers: true
        case .cannotMakeDirectory, .notADirectory, .notReadable, .notWritable, .notACache: false
        }
    }
}

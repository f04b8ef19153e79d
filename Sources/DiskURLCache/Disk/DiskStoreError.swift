/// Why a directory cannot be used; the cache then works from memory alone.
enum DiskStoreError: Error, Sendable, Hashable {
    /// The directory, or a folder on the way to it, cannot be made.
    case cannotMakeDirectory(path: String, errno: Int32)
    /// Something that is not a directory has the name. It is left alone: it is the user's.
    case notADirectory(path: String)
    /// The records' folder is a symbolic link; what it points to is left alone.
    case symbolicLink(path: String)
    case notReadable(path: String, errno: Int32)
    case notWritable(path: String, errno: Int32)
}

/// Something that happened in the disk layer. Every failure that is not in the result of a call is reported by such an
/// event.
///
/// Sent by the thread that did the work, when it holds no lock.
package enum DiskEvent: Sendable, Hashable {
    case evicted(key: KeyName, bytes: Int)
    /// The new metadata of a record could not be written.
    case notUpdated(key: KeyName, DiskURLCache.Reason)
    case removedCorruptRecord(key: KeyName)
    /// The index file was damaged, of an unknown version, or not written by a cache. The index was rebuilt.
    case rejectedIndex
    case becameOwner
    /// A clearing or an eviction could not delete files. That is tried again later.
    case cannotDelete(errno: Int32)
    /// A removal could not list the folder, so that it removed everything.
    case cannotList(errno: Int32)
    /// The directory became unusable.
    case unavailable(DiskURLCache.Error)
}

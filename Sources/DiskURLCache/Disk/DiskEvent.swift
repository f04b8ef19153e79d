/// An event in the disk layer. Each failure that no result of a call says is such an event.
///
/// Sent on the thread that did the work, with no lock held.
package enum DiskEvent: Sendable, Hashable {
    case evicted(key: KeyName, bytes: Int)
    /// A record did not get its new metadata.
    case notUpdated(key: KeyName, DiskURLCache.Reason)
    case removedCorruptRecord(key: KeyName)
    /// The index file was not written by us, or is damaged, or of a version that we do not know: the index was made
    /// again.
    case rejectedIndex
    case becameMaintainer
    /// Clearing or evicting could not delete files; it is tried again later.
    case cannotDelete(errno: Int32)
    /// The directory became unusable.
    case unavailable(DiskURLCache.Error)
}

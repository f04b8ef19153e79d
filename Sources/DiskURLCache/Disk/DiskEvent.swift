/// An event in the disk layer. Each failure that is not thrown is such an event.
///
/// Sent on the thread that did the work, with no lock held.
package enum DiskEvent: Sendable, Hashable {
    /// Why an entry is not on the disk.
    package enum DropReason: Sendable, Hashable {
        /// Larger than `maximumEntryFraction` of the capacity, or the capacity is 0.
        case tooLarge(bytes: Int, limit: Int)
        /// A header field holds CR, LF or NUL, or the metadata exceed the limits of the format.
        case notRepresentable
        /// The system refused: disk full, no permission, too many files, a failing device.
        case failed(errno: Int32)
        /// The directory cannot be used at all.
        case unavailable
    }

    package enum RebuildReason: Sendable, Hashable {
        case missing
        /// Not written by us, or damaged, or of a version that we do not know.
        case rejected
    }

    case stored(key: KeyName, bytes: Int)
    case evicted(key: KeyName, bytes: Int)
    /// The result of the write says so, too.
    case dropped(key: KeyName, DropReason)
    /// A record did not get its new metadata.
    case notUpdated(key: KeyName, DropReason)
    case removedCorruptRecord(key: KeyName)
    case rebuiltIndex(RebuildReason)
    case becameMaintainer
    /// Clearing or evicting could not delete files; it is tried again later.
    case cannotDelete(errno: Int32)
    /// The directory became unusable.
    case unavailable(DiskStoreError)
}

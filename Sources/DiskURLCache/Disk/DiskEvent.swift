/// What happened in the disk layer, told as it happens: nothing that is swallowed goes unsaid.
///
/// Told on the thread that did the work, no lock held.
enum DiskEvent: Sendable, Hashable {
    /// Why an entry is not on the disk.
    enum DropReason: Sendable, Hashable {
        /// Larger than `maximumEntryShare` of the capacity, or the capacity is 0.
        case tooLarge
        /// A header field holds CR, LF or NUL, or the metadata exceed the limits of the format.
        case notRepresentable
        /// More was stored than the disk took within the time a caller waits.
        case backlog
        /// The system refused: disk full, no permission, too many files, a failing device.
        case failed(errno: Int32)
        /// The directory cannot be used at all.
        case unavailable
    }

    enum RebuildReason: Sendable, Hashable {
        case missing
        /// Not written by us, or damaged, or of a version that we do not know.
        case rejected
    }

    case stored(key: KeyDigest, bytes: Int)
    case evicted(key: KeyDigest, bytes: Int)
    case dropped(key: KeyDigest, DropReason)
    case removedCorruptRecord(key: KeyDigest)
    case rebuiltIndex(RebuildReason)
    case remadeDirectory
    case becameMaintainer
    /// Clearing or evicting could not delete files; it is tried again later.
    case cannotDelete(errno: Int32)
    /// The directory became unusable.
    case unavailable(DiskStoreError)
}

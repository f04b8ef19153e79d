/// The relation of a cache to its directory. `DiskStore.become` is the one function that changes it, and all other code
/// asks it.
enum DiskState: Sendable {
    /// Ended: records are read and removed, none is written.
    case closed
    /// The directory cannot be used: no record is written.
    /// - Parameter isReadable: false for a folder that belongs to somebody else, or that was cleared and could not be
    ///   moved away: no record is read from it.
    case unusable(isReadable: Bool)
    /// A different process owns the directory, or this cache has not asked yet. There is no index: slots are probed.
    case guest
    /// This cache holds the directory's lock, keeps the index and evicts.
    /// - Parameter folder: the folder of which the index knows every record; nil until the folder was listed: slots are
    ///   probed.
    case owner(OwnerLock, folder: FileIdentity?)

    var isOwner: Bool {
        if case .owner = self { true } else { false }
    }

    var isCurrent: Bool {
        folder != nil
    }

    /// The folder of which the index knows every record.
    var folder: FileIdentity? {
        if case .owner(_, let folder) = self { folder } else { nil }
    }

    var isClosed: Bool {
        if case .closed = self { true } else { false }
    }

    var isReadable: Bool {
        if case .unusable(isReadable: false) = self { false } else { true }
    }
}

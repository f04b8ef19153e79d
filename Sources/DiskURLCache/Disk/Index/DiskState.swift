/// The relation of a cache to its directory. `Catalog.move` is the one function that changes it, by one of the steps
/// below, and all other code asks it.
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

    /// What happens to a cache. Each step says in `after` from which states it leads to which.
    enum Step {
        case close
        case refuse(isReadable: Bool)
        /// The directory can be used again.
        case accept
        /// The path leads to another directory, or the lock was given up.
        case leave
        case own(OwnerLock)
        /// The index knows every record of the folder.
        case list(OwnerLock, FileIdentity)
        /// The owner has replaced the folder itself: what it knows of the records holds for the new one.
        case replaceFolder(FileIdentity?)
        /// The index may lack records.
        case distrust
    }

    func after(_ step: Step) -> DiskState {
        switch (self, step) {
        case (.closed, _), (_, .close): .closed
        case (_, .refuse(let isReadable)): .unusable(isReadable: isReadable)
        case (.unusable, .accept), (_, .leave): .guest
        case (.guest, .own(let lock)): .owner(lock, folder: nil)
        case (.owner(let lock, nil), .list(let listed, let folder)) where lock === listed: .owner(lock, folder: folder)
        case (.owner(let lock, .some), .replaceFolder(let folder)): .owner(lock, folder: folder)
        case (.owner(let lock, _), .distrust): .owner(lock, folder: nil)
        default: self
        }
    }

    var isOwner: Bool {
        if case .owner = self { true } else { false }
    }

    /// Whether no other process can own the directory.
    var isCertainOwner: Bool {
        if case .owner(let lock, _) = self { lock.isCertain } else { false }
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

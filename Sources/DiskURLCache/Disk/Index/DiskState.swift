/// What a cache is to its directory. Only `Catalog.move` changes it, by one of the steps below.
enum DiskState: Sendable {
    /// The cache was closed: records are still read and removed, but not written.
    case closed
    /// The directory cannot be used, so that no record is written.
    /// - Parameter isReadable: whether records may be read. Not from a folder that belongs to somebody else, or one
    ///   that was cleared and could not be moved away.
    case unusable(isReadable: Bool)
    /// Another cache owns the directory, or this one has not asked yet. There is no index, so slots are probed.
    case guest
    /// This cache holds the directory's lock, keeps the index, and evicts.
    /// - Parameter folder: the folder whose records the index knows completely. Nil until the folder was listed; until
    ///   then slots are probed.
    case owner(OwnerLock, folder: FileIdentity?)

    /// An event that changes the state. `after` says from which state each step leads to which.
    enum Step {
        case close
        case refuse(isReadable: Bool)
        /// The directory can be used again.
        case accept
        /// The path leads to a different directory, or the lock was given up.
        case leave
        case own(OwnerLock)
        /// The index knows every record of the folder.
        case list(OwnerLock, FileIdentity)
        /// The owner has replaced the folder itself, and its index is right for the new one.
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
        case (.owner(let lock, nil), .list(let listed, let folder)) where lock === listed:
            .owner(lock, folder: folder)
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

    /// Whether no cache owned the directory before this one.
    var isFirstOwner: Bool {
        if case .owner(let lock, _) = self { lock.isFirst } else { false }
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

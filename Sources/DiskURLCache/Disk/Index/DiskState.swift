/// What a cache is to its directory. Only `Catalog.move` changes it, by one of the steps below.
enum DiskState: Sendable {
    /// The cache was closed: records are still read and removed, but not written.
    case closed
    /// The directory cannot be used, so that no record is written.
    /// - Parameter isReadable: whether records may be read. Not from a folder that belongs to somebody else, or one
    ///   that was cleared and could not be moved away.
    case unusable(isReadable: Bool)
    /// Another cache owns the directory, or this one has not asked yet. There is no index, so slots are probed. There
    /// may be other caches.
    case guest
    /// This cache holds the directory's lock, keeps the index, and evicts.
    /// - Parameters:
    ///   - folder: the folder whose records the index knows completely. Nil until the folder was listed; until then
    ///     slots are probed.
    ///   - isAlone: whether the last look found no other cache: see `Membership`.
    case owner(OwnerLock, folder: FileIdentity?, isAlone: Bool)

    /// An event that changes the state. `after` says from which state each step leads to which.
    enum Step {
        case close
        case refuse(isReadable: Bool)
        /// The directory can be used again.
        case accept
        /// The path leads to a different directory, or the lock was given up.
        case leave
        case own(OwnerLock)
        /// The owner has looked for other caches, and there is none.
        case findNobody
        /// There may be other caches.
        case expectOthers
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
        case (.guest, .own(let lock)): .owner(lock, folder: nil, isAlone: false)
        case (.owner(let lock, let folder, _), .findNobody): .owner(lock, folder: folder, isAlone: true)
        case (.owner(let lock, let folder, _), .expectOthers): .owner(lock, folder: folder, isAlone: false)
        case (.owner(let lock, nil, let isAlone), .list(let listed, let folder)) where lock === listed:
            .owner(lock, folder: folder, isAlone: isAlone)
        case (.owner(let lock, .some, let isAlone), .replaceFolder(let folder)):
            .owner(lock, folder: folder, isAlone: isAlone)
        case (.owner(let lock, _, let isAlone), .distrust): .owner(lock, folder: nil, isAlone: isAlone)
        default: self
        }
    }

    var isOwner: Bool {
        if case .owner = self { true } else { false }
    }

    /// Whether no other process can own the directory.
    var isCertainOwner: Bool {
        if case .owner(let lock, _, _) = self { lock.isCertain } else { false }
    }

    /// Whether no cache owned the directory before this one.
    var isFirstOwner: Bool {
        if case .owner(let lock, _, _) = self { lock.isFirst } else { false }
    }

    /// Whether this cache owns the directory and found no other cache at its last look.
    var isAlone: Bool {
        if case .owner(_, _, isAlone: true) = self { true } else { false }
    }

    var isCurrent: Bool {
        folder != nil
    }

    /// The folder of which the index knows every record.
    var folder: FileIdentity? {
        if case .owner(_, let folder, _) = self { folder } else { nil }
    }

    var isClosed: Bool {
        if case .closed = self { true } else { false }
    }

    var isReadable: Bool {
        if case .unusable(isReadable: false) = self { false } else { true }
    }
}

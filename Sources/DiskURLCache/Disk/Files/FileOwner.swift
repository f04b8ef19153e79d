import Foundation

/// The user whose folders and records a store trusts. Another user could forge responses in theirs.
package enum FileOwner: Sendable, Hashable {
    /// The user that the process runs as now.
    case process
    /// That user, or root: a read-only folder may belong to the system or its administrator.
    case processOrRoot
    /// A given user: tools may look into the cache of any user.
    case user(UInt32)

    /// The user of the process. Read once a second, since it is compared with the owner of each record that is read.
    private static let user = Mutex(geteuid(), isContended: true)

    static func userMayHaveChanged() { user.withLock { $0 = geteuid() } }

    package func owns(_ status: FileStatus) -> Bool {
        switch self {
        case .process: status.owner == Self.user.withLock { $0 }
        case .processOrRoot: status.owner == 0 || status.owner == Self.user.withLock { $0 }
        case .user(let user): status.owner == user
        }
    }

    /// - Throws: if the folder belongs to a different user, or if other users may put files into it.
    func check(_ folder: FileStatus, at path: String) throws(DiskURLCache.Error) {
        if !owns(folder) { throw .init(.otherOwner, path: path, userID: folder.owner) }
        if folder.permissions & 0o022 != 0 { throw .init(.writableByOthers, path: path) }
    }

    /// Whether it is a folder whose files a store may read.
    func trusts(_ folder: FileStatus) -> Bool {
        folder.kind == .directory && owns(folder) && folder.permissions & 0o022 == 0
    }

    /// Whether it is a file that a store may read. A file with a second name may also be in a different folder, where
    /// another user could change it.
    func isTrustedFile(_ file: FileStatus) -> Bool {
        file.kind == .regular && file.links == 1 && owns(file) && file.permissions & 0o022 == 0
    }
}

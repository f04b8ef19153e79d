import Foundation

/// The user whose folders and records a store believes: another user could forge responses in them.
package enum FileOwner: Sendable, Hashable {
    /// The user that the process runs as now.
    case process
    /// That user, or root: a folder that is only read may come with the system, or from its administrator.
    case processOrRoot
    /// Tools look into the cache of any user.
    case user(UInt32)

    /// The user of the process. Asked once a second, since each record that is read is compared with it.
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

    /// Whether it is a file that a store may read: a second name would mean that the file lies elsewhere, too, and
    /// another user could change what he may write.
    func isTrustedFile(_ file: FileStatus) -> Bool {
        file.kind == .regular && file.links == 1 && owns(file) && file.permissions & 0o022 == 0
    }
}

import Foundation

/// The ownership of a directory: among all caches of all processes, one holds this lock as long as it is open.
///
/// Between processes it is a POSIX lock on the file `lock`, which a forked child does not inherit, and which is
/// released when the process dies. Such a lock belongs to the whole process and is released as soon as any descriptor
/// of the file is closed there. So within a process a registry lets only one cache open the file.
final class OwnerLock: Sendable {
    private let files: any FileSystem
    private let path: String
    /// Of the file `lock`, which stays open, so that no other file gets its number.
    private let identity: FileIdentity
    /// Nil after the release. The directory is kept open so that no other directory gets its inode number.
    private let opened: Mutex<(lock: Int32, directory: OpenFile)?>
    private let directory: FileIdentity
    private let process = getpid()
    /// False on a file system without locks: then other processes may believe that they own the directory, too.
    let isCertain: Bool
    /// Whether no cache owned the directory before: then the file `lock` is empty.
    let isFirst: Bool

    /// The directories that a cache of this process owns.
    private static let registry = Mutex<Set<FileIdentity>>([])

    private init(
        _ files: any FileSystem, _ paths: DiskPaths, _ locked: LockedFile, _ opened: OpenFile,
        _ directory: FileIdentity
    ) {
        self.files = files
        path = paths.lock
        identity = locked.identity
        isCertain = locked.isCertain
        isFirst = locked.isFirst
        self.opened = Mutex((locked.file, opened))
        self.directory = directory
    }

    /// Nil if another cache owns the directory, or if it cannot be locked.
    static func acquire(_ files: any FileSystem, _ paths: DiskPaths, directory: FileIdentity) -> OwnerLock? {
        guard registry.withLock({ $0.insert(directory).inserted }) else { return nil }
        guard let file = try? files.openFile(paths.directory + "/.", O_RDONLY | O_DIRECTORY) else {
            giveUp(directory)
            return nil
        }
        let opened = OpenFile(file, files)
        if let locked = lockedFile(files, paths) { return OwnerLock(files, paths, locked, opened, directory) }
        withExtendedLifetime(opened) { giveUp(directory) }
        return nil
    }

    private struct LockedFile {
        let file: Int32
        let identity: FileIdentity
        let isCertain: Bool
        let isFirst: Bool
    }

    private static func lockedFile(_ files: any FileSystem, _ paths: DiskPaths) -> LockedFile? {
        guard let (file, status) = try? files.openRegular(paths.lock, O_RDWR | O_CREAT) else { return nil }
        let identity = status.identity
        do throws(Errno) {
            if try files.lockProcess(file) {
                return LockedFile(file: file, identity: identity, isCertain: true, isFirst: isFirst(file, files))
            }
        } catch {
            // On a file system without locks only the registry decides.
            if error.isWithoutLocks {
                return LockedFile(file: file, identity: identity, isCertain: false, isFirst: false)
            }
        }
        files.closeQuietly(file)
        return nil
    }

    /// The first owner gives the file a length, while it holds the lock. That takes no space, so that a full disk does
    /// not prevent it.
    private static func isFirst(_ file: Int32, _ files: any FileSystem) -> Bool {
        do throws(Errno) {
            guard try files.status(file).size == 0 else { return false }
            try files.truncate(file, 1)
            return true
        } catch {
            return false
        }
    }

    /// Whether the file was deleted or replaced while it was locked, as cleaners of old files do it: then another
    /// process can lock the new one.
    var isGone: Bool {
        do throws(Errno) {
            return try files.status(at: path).identity != identity
        } catch {
            return error.isMissing
        }
    }

    /// Gives up the ownership. In a forked child this does nothing, since the lock belongs to the parent.
    func release() {
        guard process == getpid() else { return }
        let before = opened.withLock { opened in
            defer { opened = nil }
            return opened
        }
        guard let before else { return }
        // The directory is closed last. If it was deleted, a new one may get its inode number from then on, and must
        // not be taken for owned.
        withExtendedLifetime(before.directory) {
            files.closeQuietly(before.lock)
            Self.giveUp(directory)
        }
    }

    deinit { release() }

    private static func giveUp(_ directory: FileIdentity) { registry.withLock { _ = $0.remove(directory) } }
}

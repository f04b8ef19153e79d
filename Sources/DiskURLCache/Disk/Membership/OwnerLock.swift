import Foundation

/// Makes one cache, among all processes and all caches of a process, the owner of a directory, for as long as it lives.
///
/// Between processes by a POSIX lock on the file `lock`: not inherited by a forked child, and gone when its process
/// dies. Such a lock belongs to the process, and goes when any descriptor of the file is closed there; so within the
/// process a registry lets only one cache open the file at all.
final class OwnerLock: Sendable {
    private let files: any FileSystem
    /// Nil once it is released. While the directory is open, no other one gets its number.
    private let opened: Mutex<(lock: Int32, directory: OpenFile)?>
    private let directory: FileIdentity
    private let process = getpid()
    /// False on a file system without locks: then other processes may believe that they own the directory, too.
    let isCertain: Bool

    /// Directories that a cache of this process owns.
    private static let registry = Mutex<Set<FileIdentity>>([])

    private init(
        _ files: any FileSystem, _ lock: Int32, _ opened: OpenFile, _ directory: FileIdentity, isCertain: Bool
    ) {
        self.files = files
        self.isCertain = isCertain
        self.opened = Mutex((lock, opened))
        self.directory = directory
    }

    /// Nil where another cache owns the directory, or the lock cannot be had.
    static func acquire(_ files: any FileSystem, _ paths: DiskPaths, directory: FileIdentity) -> OwnerLock? {
        guard registry.withLock({ $0.insert(directory).inserted }) else { return nil }
        if let file = try? files.openFile(paths.directory + "/.", O_RDONLY | O_DIRECTORY) {
            let opened = OpenFile(file, files)
            if let (lock, isCertain) = lockedFile(files, paths) {
                return OwnerLock(files, lock, opened, directory, isCertain: isCertain)
            }
        }
        giveUp(directory)
        return nil
    }

    private static func lockedFile(_ files: any FileSystem, _ paths: DiskPaths) -> (file: Int32, isCertain: Bool)? {
        guard let file = try? files.openRegular(paths.lock, O_RDWR | O_CREAT).file else { return nil }
        do throws(Errno) {
            if try files.lockProcess(file) { return (file, true) }
        } catch {
            // A file system without locks: then the registry alone decides.
            if error.isWithoutLocks { return (file, false) }
        }
        files.closeQuietly(file)
        return nil
    }

    /// Leaves the directory to the next cache that asks. In a forked child nothing happens: the lock is the parent's.
    func release() {
        guard process == getpid() else { return }
        let before = opened.withLock { opened in
            defer { opened = nil }
            return opened
        }
        guard let before else { return }
        files.closeQuietly(before.lock)
        Self.giveUp(directory)
    }

    deinit { release() }

    private static func giveUp(_ directory: FileIdentity) { registry.withLock { _ = $0.remove(directory) } }
}

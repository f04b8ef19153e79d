import Foundation

/// Makes one cache, among all processes and all caches of a process, the owner of a directory, for as long as it lives.
///
/// Between processes by a POSIX lock on the file `lock`: not inherited by a forked child, and gone when its process dies.
/// Such a lock belongs to the process, and goes when any descriptor of the file is closed there; so within the process a
/// registry lets only one cache open the file at all.
final class OwnerLock: Sendable {
    private let files: any FileSystem
    /// Nil once it is released.
    private let file: Mutex<Int32?>
    private let paths: DiskPaths
    private let directory: FileIdentity
    private let process = getpid()

    /// Directories that a cache of this process owns, and by which path.
    private static let registry = Mutex<[FileIdentity: String]>([:])

    private init(_ files: any FileSystem, _ paths: DiskPaths, _ file: Int32, directory: FileIdentity) {
        self.files = files
        self.paths = paths
        self.file = Mutex(file)
        self.directory = directory
    }

    /// Nil where another cache owns the directory, or the lock cannot be had.
    static func acquire(_ files: any FileSystem, _ paths: DiskPaths, directory: FileIdentity) -> OwnerLock? {
        if let other = registry.withLock({ $0[directory] }),
            (try? files.status(at: other + "/."))?.identity != directory
        {
            // The number of a directory that is gone, given to a new one.
            registry.withLock { if $0[directory] == other { $0[directory] = nil } }
        }
        let isFirst = registry.withLock { registry in
            guard registry[directory] == nil else { return false }
            registry[directory] = paths.directory
            return true
        }
        guard isFirst else { return nil }
        if let file = lockedFile(files, paths) { return OwnerLock(files, paths, file, directory: directory) }
        giveUp(directory, paths)
        return nil
    }

    private static func lockedFile(_ files: any FileSystem, _ paths: DiskPaths) -> Int32? {
        guard let (file, status) = try? files.openRegular(paths.lock, O_RDWR | O_CREAT) else { return nil }
        do throws(Errno) {
            if try files.lockProcess(file) {
                // What somebody put into it would count towards the capacity for ever.
                if status.size > 0 { try? files.truncate(file, 0) }
                return file
            }
        } catch {
            // A file system without locks: then the registry alone decides.
            if error.isWithoutLocks { return file }
        }
        files.closeQuietly(file)
        return nil
    }

    /// Leaves the directory to the next cache that asks. In a forked child nothing happens: the lock is the parent's.
    func release() {
        guard process == getpid() else { return }
        let file = file.withLock { file in
            defer { file = nil }
            return file
        }
        guard let file else { return }
        files.closeQuietly(file)
        Self.giveUp(directory, paths)
    }

    deinit { release() }

    /// Only where the entry is still this cache's: the directory may have been moved meanwhile, and another cache have it there.
    private static func giveUp(_ directory: FileIdentity, _ paths: DiskPaths) {
        registry.withLock { if $0[directory] == paths.directory { $0[directory] = nil } }
    }
}

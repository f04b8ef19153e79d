import Foundation

/// Makes one cache, among all processes and all caches of a process, the maintainer of a directory.
///
/// Between processes by a POSIX lock on the file `lock`: not inherited by a forked child, and gone when its process dies.
/// Such a lock belongs to the process, and goes when any descriptor of the file is closed there; so within the process a
/// registry lets only one cache open the file at all.
struct MaintainerLock {
    private let file: Int32
    private let identity: FileIdentity
    private let owner: pid_t
    private let reference: WeakReference<DiskStore>

    /// Directories that a cache of this process maintains, and which.
    private static let registry = Mutex<[FileIdentity: WeakReference<DiskStore>]>([:])

    /// Who maintains a directory, as far as this process can tell.
    enum Neighbour {
        case maintainer(DiskStore)
        /// A cache that is just being let go.
        case leaving
        /// Nobody, or another process.
        case none
    }

    static func neighbour(in directory: FileIdentity) -> Neighbour {
        guard let reference = registry.withLock({ $0[directory] }) else { return .none }
        return reference.object.map { .maintainer($0) } ?? .leaving
    }

    enum Outcome {
        case acquired(MaintainerLock)
        /// Somebody else maintains the directory.
        case taken
        case failed(Errno)
    }

    /// `identity` is that of the directory.
    static func acquire(
        _ files: any FileSystem, _ paths: DiskPaths, identity: FileIdentity, for store: DiskStore
    ) -> Outcome {
        let reference = WeakReference<DiskStore>()
        reference.object = store
        if let other = registry.withLock({ $0[identity] }), let cache = other.object, cache !== store,
            (try? files.status(at: cache.paths.directory + "/."))?.identity != identity
        {
            // The number of a directory that is gone, given to a new one: that cache does not maintain this one.
            unregister(identity, other)
        }
        let isFirst = registry.withLock { registry in
            guard registry[identity] == nil else { return false }
            registry[identity] = reference
            return true
        }
        guard isFirst else { return .taken }
        var file: Int32 = -1
        do throws(Errno) {
            file = try files.openFile(paths.lock, O_RDWR | O_CREAT)
            let status = try files.status(file)
            guard status.kind == .regular, status.links == 1 else { throw Errno(ELOOP) }
            if status.permissions != 0o600 { try? files.setPermissions(file, 0o600) }
            do throws(Errno) {
                if try files.lockProcess(file) {
                    // What somebody put into it would count towards the capacity for ever.
                    if status.size > 0 { try? files.truncate(file, 0) }
                    return .acquired(
                        MaintainerLock(file: file, identity: identity, owner: getpid(), reference: reference))
                }
            } catch {
                // A file system without locks: then the registry alone decides.
                guard error.code == ENOLCK || error.code == ENOTSUP || error.code == ENOSYS else { throw error }
                return .acquired(MaintainerLock(file: file, identity: identity, owner: getpid(), reference: reference))
            }
        } catch {
            if file >= 0 { files.closeQuietly(file) }
            unregister(identity, reference)
            return .failed(error)
        }
        files.closeQuietly(file)
        unregister(identity, reference)
        return .taken
    }

    /// Gives the directory to whoever wants it next. In a forked child nothing happens: the lock is the parent's.
    func release(_ files: any FileSystem) {
        guard owner == getpid() else { return }
        files.closeQuietly(file)
        Self.unregister(identity, reference)
    }

    /// Takes a cache off the registry, unless another one has its place by now.
    private static func unregister(_ identity: FileIdentity, _ reference: WeakReference<DiskStore>) {
        registry.withLock { if $0[identity] === reference { $0[identity] = nil } }
    }
}

import Foundation

/// A body that is written to a file of its own while it arrives. The file is a record without its tail; when the body
/// is whole, it gets the tail and becomes the record.
///
/// It has one writer and any number of readers, which go on reading after the file was renamed or deleted. A lock on
/// the file tells other processes that its writer is alive.
package final class IncomingBody: Sendable {
    /// Guarded by the lock around it, which is never held during a file operation.
    private struct State {
        var count = 0
        var hasName = true
        /// The part of the disk capacity, in bytes, that is reserved for this body.
        var reserved = 0
    }

    let path: String
    private let opened: OpenFile
    private let files: any FileSystem
    private let space: IncomingSpace
    private let state = Mutex(State())
    /// Of the bytes that are written. By itself, since a long piece takes a while, and others ask for `reserved`.
    private let checksum = Mutex(PiecewiseChecksum())
    private let processID = getpid()

    /// Space is reserved in steps of this many bytes.
    private static let step = 1 << 20

    /// Makes the file.
    /// - Parameter locks: whether the file may be locked while it is written.
    init(_ files: any FileSystem, _ paths: DiskPaths, space: IncomingSpace, locks: Bool) throws(Errno) {
        path = paths.new(.incoming)
        self.files = files
        self.space = space
        // Registered before the file exists, so that this cache's sweep does not delete it.
        let reference = space.add(path)
        do throws(Errno) {
            opened = OpenFile(try files.openFile(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND), files)
        } catch {
            space.remove(path)
            throw error
        }
        reference.object = self
        // If this throws, `deinit` deletes the file.
        if locks, try !files.lockFile(opened.file) { throw Errno(EAGAIN) }
        let status = try files.status(opened.file)
        // The sweep of another process has deleted the file before it was locked.
        if status.links != 1 { throw Errno(EAGAIN) }
        // The umask may have removed permissions that the cache itself needs.
        if status.permissions != 0o600 { try files.setPermissions(opened.file, 0o600) }
    }

    deinit { discard() }

    /// How many bytes are written.
    var count: Int { state.withLock { $0.count } }

    /// False once the file has become a record, or this cache has discarded it.
    var hasName: Bool { state.withLock { $0.hasName } }

    fileprivate var reserved: Int { state.withLock { $0.reserved } }

    // MARK: Writing

    /// Reserves space for further bytes. True if more is reserved now than before: then the caller makes room on disk.
    /// - Parameter isAll: whether no more follow. Otherwise it is reserved in steps.
    func reserve(_ bytes: Int, isAll: Bool = false) -> Bool {
        state.withLock { state in
            let needed = state.count + bytes
            guard state.hasName, needed > state.reserved else { return false }
            let step = isAll ? 1 : Self.step
            state.reserved += (needed - state.reserved + step - 1) / step * step
            return true
        }
    }

    /// Called by one thread at a time.
    func append(_ data: Data) throws(Errno) {
        try files.writeFully(opened.file, data)
        checksum.withLock { checksum in data.withUnsafeBytes { checksum.update($0) } }
        state.withLock { $0.count += data.count }
    }

    /// Length and checksum of the bytes that are written.
    var sum: (length: Int, checksum: UInt64) { (count, checksum.withLock { $0.finished }) }

    /// Appends a tail. If the body does not become a record after that, a further tail may be appended: the last one
    /// counts.
    /// - Returns: the status of the file.
    func finish(_ tail: UnsafeRawBufferPointer) throws(Errno) -> FileStatus {
        try files.writeFully(opened.file, tail)
        let status = try files.status(opened.file)
        // Everything was removed meanwhile, here or by another process.
        guard status.links > 0 else { throw Errno(ENOENT) }
        return status
    }

    /// Gives the file the name of a record.
    func rename(to path: UnsafePointer<CChar>) throws(Errno) {
        try files.rename(self.path, to: path)
        // A record is locked only while it is changed.
        try? files.unlockFile(opened.file)
    }

    /// The file is a record now, and its row counts the space that it takes, so the reservation ends.
    func becameRecord() { letGo() }

    /// Deletes the file; readers can go on reading. Does nothing if the file has become a record.
    func discard() {
        // A forked child has its parent's memory, not its files.
        guard letGo(), getpid() == processID else { return }
        try? files.unlink(path)
    }

    @discardableResult
    private func letGo() -> Bool {
        let hadName = state.withLock { state in
            defer { (state.hasName, state.reserved) = (false, 0) }
            return state.hasName
        }
        if hadName { space.remove(path) }
        return hadName
    }

    // MARK: Reading

    /// The bytes that are written so far, to be read in pieces.
    var opening: OpenBody { opened.body(count: count) }
}

/// The bodies that are arriving in one store: their files, and the space that is reserved for them.
final class IncomingSpace: Sendable {
    /// The bodies by the paths of their files. Empty references are those whose file does not exist yet.
    private let bodies = Mutex([String: WeakReference<IncomingBody>]())

    private var living: [IncomingBody] {
        // None mostly, and each store asks.
        bodies.withLock { $0.isEmpty ? [] : Array($0.values) }.compactMap(\.object)
    }

    var bytes: Int { living.reduce(0) { $0 + $1.reserved } }

    /// Deletes the files of processes that died. A writer that is alive holds the lock of its file.
    /// - Parameter date: on systems where writers hold no lock, files that were written after this date are kept. Nil
    ///   elsewhere.
    func sweep(_ files: any FileSystem, _ paths: DiskPaths, olderThan date: Date?) {
        for path in paths.all(.incoming, in: files) where bodies.withLock({ $0[path] == nil }) {
            guard let (file, status) = try? files.openRegular(path, O_RDONLY) else { continue }
            if let date, Double(status.modified) / 1e9 > date.timeIntervalSince1970 {
                files.closeQuietly(file)
                continue
            }
            if (try? files.lockFile(file)) == true { try? files.unlink(path) }
            files.closeQuietly(file)
        }
    }

    /// Deletes the files of all arriving bodies, of every process, so that none of them becomes a record.
    func unlinkAll(_ files: any FileSystem, _ paths: DiskPaths) {
        for path in paths.all(.incoming, in: files) {
            guard let status = try? files.status(at: path), status.kind == .regular else { continue }
            try? files.unlink(path)
        }
    }

    /// Registers the path of a file that is about to be made. The caller puts the body into the reference.
    fileprivate func add(_ path: String) -> WeakReference<IncomingBody> {
        let reference = WeakReference<IncomingBody>()
        bodies.withLock { $0[path] = reference }
        return reference
    }

    fileprivate func remove(_ path: String) { bodies.withLock { $0[path] = nil } }
}

/// A checksum of bytes that come in pieces of any length.
struct PiecewiseChecksum {
    private var checksum = Checksum()
    private var buffer = BlockBuffer(blockLength: Checksum.blockSize)

    mutating func update(_ bytes: UnsafeRawBufferPointer) { buffer.append(bytes) { checksum.update($0) } }

    var finished: UInt64 {
        var checksum = checksum
        return buffer.rest.withUnsafeBytes { checksum.finish($0) }
    }
}

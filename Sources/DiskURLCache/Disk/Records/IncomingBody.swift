import Foundation

/// A body that is written to a separate file while it arrives: a record without its tail, which takes its place among
/// the records when it is whole.
///
/// One writer, any number of readers. The file has a name until it became a record or was given up; readers go on after
/// that. A lock on it tells other processes that the writer lives.
package final class IncomingBody: Sendable {
    /// Guarded by the lock around it; no file operation while it is held.
    private struct State {
        var count = 0
        var checksum = PiecewiseChecksum()
        var hasName = true
        /// Bytes of the capacity that are set aside for it.
        var reserved = 0
    }

    let path: String
    private let opened: OpenFile
    private let files: any FileSystem
    private let space: IncomingSpace
    private let state = Mutex(State())
    private let processID = getpid()

    /// Room is asked for in steps of so many bytes.
    private static let step = 1 << 20

    /// Makes the file.
    /// - Parameter locks: whether the file may be locked while it is written.
    init(_ files: any FileSystem, _ paths: DiskPaths, space: IncomingSpace, locks: Bool) throws(Errno) {
        path = paths.new(.incoming)
        self.files = files
        self.space = space
        // Before there is a file, so that this cache does not sweep it.
        let reference = space.add(path)
        do throws(Errno) {
            opened = OpenFile(try files.openFile(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND), files)
        } catch {
            space.remove(path)
            throw error
        }
        reference.object = self
        // Where this throws, the file goes with the body.
        if locks, try !files.lockFile(opened.file) { throw Errno(EAGAIN) }
        let status = try files.status(opened.file)
        // Somebody who sweeps saw it before it was locked.
        if status.links != 1 { throw Errno(EAGAIN) }
        // The umask may have removed permissions that we need ourselves.
        if status.permissions != 0o600 { try files.setPermissions(opened.file, 0o600) }
    }

    deinit { discard() }

    /// The bytes that are written.
    var count: Int { state.withLock { $0.count } }

    fileprivate var reserved: Int { state.withLock { $0.reserved } }

    // MARK: Writing

    /// True where more room is set aside than before: it has to be made.
    func reserve(_ bytes: Int) -> Bool {
        state.withLock { state in
            let needed = state.count + bytes
            guard state.hasName, needed > state.reserved else { return false }
            state.reserved += (needed - state.reserved + Self.step - 1) / Self.step * Self.step
            return true
        }
    }

    /// From one thread at a time.
    func append(_ data: Data) throws(Errno) {
        try files.writeFully(opened.file, data)
        state.withLock { state in
            data.withUnsafeBytes { state.checksum.update($0) }
            state.count += data.count
        }
    }

    /// Length and checksum of what is written.
    var sum: (length: Int, checksum: UInt64) { state.withLock { ($0.count, $0.checksum.finished) } }

    /// Adds that tail. Where the body does not become a record then, it may be tried again: the last tail counts.
    /// - Returns: the status of the file.
    func finish(_ tail: UnsafeRawBufferPointer) throws(Errno) -> FileStatus {
        try files.writeFully(opened.file, tail)
        let status = try files.status(opened.file)
        // Everything was removed meanwhile, here or by another process.
        guard status.links > 0 else { throw Errno(ENOENT) }
        return status
    }

    /// Makes a record of it, at that path.
    func rename(to path: UnsafePointer<CChar>) throws(Errno) {
        try files.rename(self.path, to: path)
        // A record is locked only while it is changed.
        try? files.unlockFile(opened.file)
    }

    /// The file has a record's name, and a row tells of what it takes.
    func becameRecord() { letGo() }

    /// The file goes; its readers can go on. If it became a record, nothing happens.
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

    /// The bytes that are written by now, to be read in pieces.
    var opening: OpenBody {
        OpenBody(count: count, read: opened.bytes(_:followedBy:), copy: opened.copy(_:to:))
    }
}

/// The share of the capacity that bodies take while they arrive, and their files.
final class IncomingSpace: Sendable {
    /// By the paths of their files.
    private let bodies = Mutex([String: WeakReference<IncomingBody>]())

    private var living: [IncomingBody] { bodies.withLock { Array($0.values) }.compactMap(\.object) }

    var bytes: Int { living.reduce(0) { $0 + $1.reserved } }

    /// Deletes what processes that died left behind: a writer that lives holds its file's lock.
    /// - Parameter date: where no writer holds a lock: a file that was written later is spared.
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

    /// No body that is arriving, in any process, is to become a record.
    func unlinkAll(_ files: any FileSystem, _ paths: DiskPaths) {
        for path in paths.all(.incoming, in: files) {
            guard let status = try? files.status(at: path), status.kind == .regular else { continue }
            try? files.unlink(path)
        }
    }

    /// For the body that is about to have a file of that path.
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
    /// Less than a block.
    private var rest: [UInt8] = []

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var bytes = bytes[...]
        if !rest.isEmpty {
            let missing = bytes.prefix(Checksum.blockSize - rest.count)
            rest += missing
            bytes = bytes.dropFirst(missing.count)
            guard rest.count == Checksum.blockSize else { return }
            rest.withUnsafeBytes { checksum.update($0) }
            rest.removeAll(keepingCapacity: true)
        }
        let whole = bytes.prefix(bytes.count / Checksum.blockSize * Checksum.blockSize)
        checksum.update(UnsafeRawBufferPointer(rebasing: whole))
        rest += bytes.dropFirst(whole.count)
    }

    var finished: UInt64 {
        var checksum = checksum
        return rest.withUnsafeBytes { checksum.finish($0) }
    }
}

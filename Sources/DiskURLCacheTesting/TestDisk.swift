import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A folder for a cache under test, on a disk that fails when the test says so: to see what an app does on a full
    /// or a broken disk. It works as any disk as long as ``fault`` is nil.
    ///
    /// ```swift no-check
    /// let disk = DiskURLCache.TestDisk()
    /// let cache = DiskURLCache.forTesting(disk: disk)
    /// disk.fault = .full
    /// ```
    ///
    /// The folder is removed when neither the test nor a cache has the disk any more.
    ///
    /// Can be used from any thread.
    public final class TestDisk: @unchecked Sendable {
        /// How a disk fails.
        @nonexhaustive
        public enum Fault: Sendable, Hashable, CaseIterable {
            /// Nothing can be written, as on a full disk (`ENOSPC`). What is there can be read and removed.
            case full
            /// Nothing can be read, as from a broken disk (`EIO`).
            case unreadable
            /// Nothing can be opened, made, moved or removed, as in a folder of another user (`EACCES`).
            case notPermitted
        }

        /// The folder, which nothing else uses.
        public let folder: URL
        // `@unchecked`: it is read and written under `lock` only.
        private let lock = NSLock()
        private var current: Fault?
        private let system = SystemFiles()

        /// Names a folder in the temporary directory, which a cache makes.
        public init() {
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("TestDisk-\(UUID().uuidString)", isDirectory: true)
        }

        deinit {
            try? FileManager.default.removeItem(at: folder)
        }

        /// How the disk fails from now on; nil if it works. Where it is full or unreadable, files that a cache has open
        /// are, too.
        public var fault: Fault? {
            get { lock.withLock { current } }
            set { lock.withLock { current = newValue } }
        }

        private func fail(_ faults: Set<Fault>) throws(Errno) {
            guard let fault, faults.contains(fault) else { return }
            switch fault {
            case .full: throw Errno(ENOSPC)
            case .unreadable: throw Errno(EIO)
            case .notPermitted: throw Errno(EACCES)
            }
        }
    }
}

extension DiskURLCache.TestDisk: FileSystem {
    package func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 {
        try fail([.notPermitted])
        return try system.open(path, flags)
    }
    package func close(_ file: Int32) throws(Errno) { try system.close(file) }
    package func status(_ file: Int32) throws(Errno) -> FileStatus { try system.status(file) }
    package func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus { try system.status(at: path) }
    package func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int {
        try fail([.unreadable])
        return try system.read(file, buffer, at: offset)
    }
    package func write(
        _ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
    ) throws(Errno) -> Int {
        try fail([.full])
        return try system.write(file, first, second)
    }
    package func truncate(_ file: Int32, _ length: Int) throws(Errno) { try system.truncate(file, length) }
    package func setPermissions(_ file: Int32, _ permissions: UInt32) throws(Errno) {
        try system.setPermissions(file, permissions)
    }
    package func setPermissions(at path: UnsafePointer<CChar>, _ permissions: UInt32) throws(Errno) {
        try fail([.notPermitted])
        try system.setPermissions(at: path, permissions)
    }
    package func unlink(_ path: UnsafePointer<CChar>) throws(Errno) {
        try fail([.notPermitted])
        try system.unlink(path)
    }
    package func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno) {
        try fail([.notPermitted])
        try system.rename(path, to: newPath)
    }
    package func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) {
        try fail([.full, .notPermitted])
        try system.makeDirectory(path)
    }
    package func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) {
        try fail([.notPermitted])
        try system.removeDirectory(path)
    }
    package func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Bool) throws(Errno) {
        try fail([.unreadable, .notPermitted])
        try system.list(path, body)
    }
    package func lockFile(_ file: Int32, isShared: Bool) throws(Errno) -> Bool {
        try system.lockFile(file, isShared: isShared)
    }
    package func unlockFile(_ file: Int32) throws(Errno) { try system.unlockFile(file) }
    package func lockProcess(_ file: Int32) throws(Errno) -> Bool { try system.lockProcess(file) }
}

import Foundation

@testable import DiskURLCache

/// What several caches did with the files of their directory, in the order in which it happened: each call of the
/// system is made and noted in one step.
final class ProtocolTrace: Sendable {
    enum Operation: Sendable { case store, pin, remove, lookup }

    enum Step: Sendable {
        /// - Parameter key: which the operation is about; nil for a removal of more than one.
        case begin(Operation, key: KeyName?)
        case end
        /// The cache got the lock of the directory.
        case own
        /// It looked for the file `changes`.
        case look(isThere: Bool)
        case row(DirectoryChange, RowPlace)
        case read([RowPlace])
        /// An empty file for a record, and the lock on it; a whole record; a new tail of one.
        case make(RecordName)
        case lock(RecordName)
        case publish(RecordName)
        case update(RecordName)
        case unlink(RecordName)
        case clear
    }

    /// Where a row is.
    struct RowPlace: Hashable {
        var file: FileIdentity
        var offset: Int
    }

    struct Event: Sendable {
        var cache: Int
        /// Whether it was made by the thread of an operation. Passes have one of their own.
        var isOfOperation: Bool
        var step: Step
    }

    fileprivate struct State {
        var events: [Event] = []
        /// The threads that are in an operation.
        var threads: [Int: pthread_t] = [:]

        mutating func note(_ step: Step, by cache: Int) {
            let isOfOperation = threads[cache] == pthread_self()
            events.append(Event(cache: cache, isOfOperation: isOfOperation, step: step))
        }
    }

    fileprivate let state = Mutex(State())

    var events: [Event] { state.withLock { $0.events } }

    func perform(_ operation: Operation, of key: KeyName?, by cache: Int, _ body: () -> Void) {
        state.withLock { state in
            state.threads[cache] = pthread_self()
            state.note(.begin(operation, key: key), by: cache)
        }
        body()
        state.withLock { state in
            state.note(.end, by: cache)
            state.threads[cache] = nil
        }
    }
}

/// The system's files for one cache, which notes what it does.
final class TracedFiles: FileSystem {
    private let trace: ProtocolTrace
    private let cache: Int
    private let system = SystemFiles()
    private let paths = Mutex<[Int32: String]>([:])

    init(_ trace: ProtocolTrace, cache: Int) {
        self.trace = trace
        self.cache = cache
    }

    /// Makes the call, and notes the steps that it was, as one.
    private func noting<Value>(
        _ steps: (Value) -> [ProtocolTrace.Step], _ call: () throws(Errno) -> Value
    ) throws(Errno) -> Value {
        try trace.state.withLock { state in
            Result { () throws(Errno) in
                let value = try call()
                for step in steps(value) { state.note(step, by: cache) }
                return value
            }
        }.get()
    }

    /// Empty for a file that was cleared away.
    private func name(_ path: UnsafePointer<CChar>) -> String {
        let parts = String(cString: path).split(separator: "/").suffix(2)
        return parts.first?.hasPrefix("trash-") == true ? "" : String(parts.last ?? "")
    }

    private func path(_ file: Int32) -> String { paths.withLock { $0[file] ?? "" } }

    private func record(_ name: String) -> RecordName? { name.withCString { RecordName($0) } }

    func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 {
        let name = name(path)
        let made = flags & O_EXCL == 0 ? nil : record(name)
        func steps(_ file: Int32) -> [ProtocolTrace.Step] { made.map { [.make($0)] } ?? [] }
        let file = try noting(steps) { () throws(Errno) in try system.open(path, flags) }
        paths.withLock { $0[file] = String(cString: path) }
        return file
    }

    func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus {
        guard name(path) == "changes" else { return try system.status(at: path) }
        func steps(_ found: Result<FileStatus, Errno>) -> [ProtocolTrace.Step] {
            [.look(isThere: (try? found.get()) != nil)]
        }
        return try noting(steps) { Result { () throws(Errno) in try system.status(at: path) } }.get()
    }

    func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int {
        guard name(path(file)) == "changes" else { return try system.read(file, buffer, at: offset) }
        let identity = try system.status(file).identity
        func steps(_ count: Int) -> [ProtocolTrace.Step] {
            let offsets = stride(from: offset, to: offset + count, by: DirectoryChange.rowLength)
            return [.read(offsets.map { ProtocolTrace.RowPlace(file: identity, offset: $0) })]
        }
        return try noting(steps) { () throws(Errno) in try system.read(file, buffer, at: offset) }
    }

    func write(_ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno) -> Int {
        let path = path(file)
        let name = name(path)
        func steps(_ written: (count: Int, before: FileStatus)) -> [ProtocolTrace.Step] {
            // A file that was removed, or cleared away, is nobody's record.
            guard (try? system.status(at: path))?.identity == written.before.identity else { return [] }
            if let record = record(name) { return [written.before.size == 0 ? .publish(record) : .update(record)] }
            guard name == "changes", let change = DirectoryChange.decode(first)?.change else { return [] }
            return [.row(change, ProtocolTrace.RowPlace(file: written.before.identity, offset: written.before.size))]
        }
        return try noting(steps) { () throws(Errno) in
            let before = try system.status(file)
            return (try system.write(file, first, second), before)
        }.count
    }

    func unlink(_ path: UnsafePointer<CChar>) throws(Errno) {
        let name = record(name(path))
        func steps() -> [ProtocolTrace.Step] { name.map { [.unlink($0)] } ?? [] }
        try noting(steps) { () throws(Errno) in try system.unlink(path) }
    }

    func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno) {
        let (old, new) = (name(path), record(name(newPath)))
        func steps() -> [ProtocolTrace.Step] {
            if let new { return [.publish(new)] }
            return old == "records" ? [.clear] : []
        }
        try noting(steps) { () throws(Errno) in try system.rename(path, to: newPath) }
    }

    func lockProcess(_ file: Int32) throws(Errno) -> Bool {
        func steps(_ isLocked: Bool) -> [ProtocolTrace.Step] { isLocked ? [.own] : [] }
        return try noting(steps) { () throws(Errno) in try system.lockProcess(file) }
    }

    func close(_ file: Int32) throws(Errno) {
        paths.withLock { _ = $0.removeValue(forKey: file) }
        try system.close(file)
    }

    func status(_ file: Int32) throws(Errno) -> FileStatus { try system.status(file) }
    func truncate(_ file: Int32, _ length: Int) throws(Errno) { try system.truncate(file, length) }
    func setPermissions(_ file: Int32, _ mode: UInt32) throws(Errno) { try system.setPermissions(file, mode) }
    func setPermissions(at path: UnsafePointer<CChar>, _ mode: UInt32) throws(Errno) {
        try system.setPermissions(at: path, mode)
    }
    func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) { try system.makeDirectory(path) }
    func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) { try system.removeDirectory(path) }
    func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Bool) throws(Errno) {
        try system.list(path, body)
    }
    func lockFile(_ file: Int32, isShared: Bool) throws(Errno) -> Bool {
        let name = record(name(path(file)))
        func steps(_ isLocked: Bool) -> [ProtocolTrace.Step] { name.map { isLocked ? [.lock($0)] : [] } ?? [] }
        return try noting(steps) { () throws(Errno) in try system.lockFile(file, isShared: isShared) }
    }
    func unlockFile(_ file: Int32) throws(Errno) { try system.unlockFile(file) }
}

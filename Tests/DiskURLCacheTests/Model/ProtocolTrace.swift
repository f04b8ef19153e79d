import Foundation

@testable import DiskURLCache

/// What several caches did with the files of their directory, in the order in which it happened: each call of the
/// system is made and noted in one step.
final class ProtocolTrace: Sendable {
    enum Operation: String, Sendable { case store, pin, remove, lookup }

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
        /// Its process was killed.
        case die
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

    /// A file that several processes write, so that a trace has what all of them did.
    fileprivate struct Log {
        var file: Int32
        /// Before which step this process is killed.
        var lastStep: Int
    }

    fileprivate struct State {
        var events: [Event] = []
        /// The threads that are in an operation.
        var threads: [Int: pthread_t] = [:]
        var log: Log?
        var steps = 0

        mutating func note(_ step: Step, by cache: Int) {
            let isOfOperation = threads[cache] == pthread_self()
            let event = Event(cache: cache, isOfOperation: isOfOperation, step: step)
            guard let log else { return events.append(event) }
            let line = Array((event.text + "\n").utf8)
            _ = line.withUnsafeBytes { write(log.file, $0.baseAddress, $0.count) }
        }
    }

    private let state: Mutex<State>

    init() { state = Mutex(State()) }

    /// For a process of several that write the same file.
    /// - Parameter lastStep: before which step this process kills itself.
    init(log path: String, lastStep: Int) {
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        state = Mutex(State(log: Log(file: file, lastStep: lastStep)))
    }

    var events: [Event] { state.withLock { $0.events } }

    /// The events in a file that several processes wrote; nil if a line is none.
    static func events(of path: String) throws -> [Event]? {
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        let events = lines.compactMap { Event($0) }
        return events.count == lines.count ? events : nil
    }

    /// Nothing else is noted meanwhile, in no process of the trace. Nobody is killed in the middle of it.
    fileprivate func inOneStep<Value>(
        by cache: Int, _ body: (inout State) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        try state.withLock { state in
            if let log = state.log {
                flock(log.file, LOCK_EX)
                state.steps += 1
                if state.steps == log.lastStep {
                    state.note(.die, by: cache)
                    kill(getpid(), SIGKILL)
                }
            }
            defer { if let log = state.log { flock(log.file, LOCK_UN) } }
            return Result { () throws(Errno) in try body(&state) }
        }.get()
    }

    func perform(_ operation: Operation, of key: KeyName?, by cache: Int, _ body: () -> Void) {
        try? inOneStep(by: cache) { state in
            state.threads[cache] = pthread_self()
            state.note(.begin(operation, key: key), by: cache)
        }
        body()
        try? inOneStep(by: cache) { state in
            state.note(.end, by: cache)
            state.threads[cache] = nil
        }
    }
}

/// An event as a line of a file.
extension ProtocolTrace.Event {
    fileprivate var text: String { "\(cache) \(isOfOperation) \(step.text)" }

    fileprivate init?(_ line: Substring) {
        let words = line.split(separator: " ")
        guard words.count > 2, let cache = Int(words[0]), let isOfOperation = Bool(String(words[1])),
            let step = ProtocolTrace.Step(words[2], Array(words.dropFirst(3)))
        else { return nil }
        self.init(cache: cache, isOfOperation: isOfOperation, step: step)
    }
}

extension ProtocolTrace.Step {
    fileprivate var text: String {
        switch self {
        case .begin(let operation, let key): "begin \(operation.rawValue) \(key?.hex ?? "-")"
        case .end: "end"
        case .own: "own"
        case .look(let isThere): "look \(isThere)"
        case .row(let change, let place):
            "row \(change.row(by: 0).map(String.init).joined(separator: ",")) \(place.text)"
        case .read(let places): "read " + places.map(\.text).joined(separator: " ")
        case .make(let name): "make \(name.text)"
        case .lock(let name): "lock \(name.text)"
        case .publish(let name): "publish \(name.text)"
        case .update(let name): "update \(name.text)"
        case .unlink(let name): "unlink \(name.text)"
        case .clear: "clear"
        case .die: "die"
        }
    }

    fileprivate init?(_ kind: Substring, _ words: [Substring]) {
        func name() -> RecordName? { words.first.flatMap { String($0).withCString { RecordName($0) } } }
        func named(_ step: (RecordName) -> Self) -> Self? { name().map(step) }
        let step: Self?
        switch kind {
        case "begin":
            let operation = words.first.flatMap { ProtocolTrace.Operation(rawValue: String($0)) }
            let key = words.last.flatMap { String($0 + "0").withCString { RecordName($0) } }?.key
            step = operation.map { .begin($0, key: key) }
        case "end": step = .end
        case "own": step = .own
        case "look": step = words.first.flatMap { Bool(String($0)) }.map { .look(isThere: $0) }
        case "row":
            let bytes = words.first?.split(separator: ",").compactMap { UInt8($0) } ?? []
            let change = bytes.withUnsafeBytes { DirectoryChange.decode($0) }?.change
            guard let change, let place = words.last.flatMap(ProtocolTrace.RowPlace.init) else { return nil }
            step = .row(change, place)
        case "read": step = .read(words.compactMap(ProtocolTrace.RowPlace.init))
        case "make": step = named { .make($0) }
        case "lock": step = named { .lock($0) }
        case "publish": step = named { .publish($0) }
        case "update": step = named { .update($0) }
        case "unlink": step = named { .unlink($0) }
        case "clear": step = .clear
        case "die": step = .die
        default: step = nil
        }
        guard let step else { return nil }
        self = step
    }
}

extension ProtocolTrace.RowPlace {
    fileprivate var text: String { "\(file.device):\(file.inode):\(offset)" }

    fileprivate init?(_ text: Substring) {
        let numbers = text.split(separator: ":").compactMap { UInt64($0) }
        guard numbers.count == 3 else { return nil }
        self.init(file: FileIdentity(device: numbers[0], inode: numbers[1]), offset: Int(numbers[2]))
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
        try trace.inOneStep(by: cache) { state throws(Errno) in
            let value = try call()
            for step in steps(value) { state.note(step, by: cache) }
            return value
        }
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
        let name = name(path)
        func steps() -> [ProtocolTrace.Step] {
            // An owner deletes it when nobody else is there.
            if name == "changes" { return [.look(isThere: false)] }
            return record(name).map { [.unlink($0)] } ?? []
        }
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

import Foundation

@testable import DiskURLCache

/// The system's files, with faults put in between, and a log of what was changed.
final class FaultyFileSystem: FileSystem {
    enum Operation: Sendable, Hashable {
        case open, close, status, statusAt, read, write, truncate, setPermissions, unlink, rename, makeDirectory
        case removeDirectory, list, lockFile, lockProcess
    }

    struct Call: Sendable {
        var operation: Operation
        /// Of open files too.
        var path: String
        /// Counts all calls from 1.
        var number: Int
        /// Of an opening: `O_RDONLY` and the like; 0 for other calls.
        var flags: Int32 = 0

        var name: String { String(path.split(separator: "/").last ?? "") }
        var isRecord: Bool { name.utf8.count == RecordName.length }
    }

    enum Fault: Sendable {
        case error(Int32)
        /// Reads or writes no more than so many bytes.
        case short(Int)
    }

    /// What was read of the files with one name.
    struct Reading: Sendable {
        var bytes = 0
        /// The largest buffer that was to be filled: a lower bound of what was allocated.
        var largestBuffer = 0
    }

    /// A change of the directory, to be made again elsewhere.
    enum Change: Sendable {
        case create(String)
        case write(String, offset: Int, bytes: Data)
        case truncate(String, length: Int)
        case unlink(String)
        case rename(String, String)
        case makeDirectory(String)
        case removeDirectory(String)
    }

    private struct State {
        var count = 0
        var paths: [Int32: String] = [:]
        var offsets: [Int32: Int] = [:]
        var rule: @Sendable (Call) -> Fault? = { _ in nil }
        var onListed: @Sendable (String) -> Void = { _ in }
        var onCreated: @Sendable (Int32) -> Void = { _ in }
        var claimedSizes: [String: Int] = [:]
        var onStatus: @Sendable (String, inout FileStatus) -> Void = { _, _ in }
        var calls: [Call] = []
        var changes: [Change] = []
        var openFlags: [Int32] = []
        var faults = 0
        var readings: [String: Reading] = [:]
        var logsCalls = false
        var logsChanges = false
    }

    private let system = SystemFiles()
    private let state = Mutex(State())

    init(_ rule: @escaping @Sendable (Call) -> Fault? = { _ in nil }) {
        self.rule = rule
    }

    var rule: @Sendable (Call) -> Fault? {
        get { state.withLock { $0.rule } }
        set { state.withLock { $0.rule = newValue } }
    }

    /// Called after each name that a listing gave.
    var onListed: @Sendable (String) -> Void {
        get { state.withLock { $0.onListed } }
        set { state.withLock { $0.onListed = newValue } }
    }

    /// Called with each file that is open for the first time.
    var onCreated: @Sendable (Int32) -> Void {
        get { state.withLock { $0.onCreated } }
        set { state.withLock { $0.onCreated = newValue } }
    }

    /// What `status(at:)` says of files with such names, to pass for larger ones.
    var claimedSizes: [String: Int] {
        get { state.withLock { $0.claimedSizes } }
        set { state.withLock { $0.claimedSizes = newValue } }
    }

    /// Changes what any `status` says of the file with such a path.
    var onStatus: @Sendable (String, inout FileStatus) -> Void {
        get { state.withLock { $0.onStatus } }
        set { state.withLock { $0.onStatus = newValue } }
    }

    private func seen(_ status: FileStatus, _ path: String) -> FileStatus {
        var status = status
        onStatus(path, &status)
        return status
    }

    /// The calls since the last time; from then on they are logged.
    func takeCalls() -> [Call] {
        state.withLock { state in
            defer { state.calls = [] }
            state.logsCalls = true
            return state.calls
        }
    }

    /// What was asked of each `open`.
    var openFlags: [Int32] { state.withLock { $0.openFlags } }

    /// By name, since the last time.
    func takeReadings() -> [String: Reading] {
        state.withLock { state in
            defer { state.readings = [:] }
            return state.readings
        }
    }

    func logChanges() {
        state.withLock { $0.logsChanges = true }
    }

    var changes: [Change] { state.withLock { $0.changes } }

    /// How many calls the rule has made fail, or cut short.
    var faults: Int { state.withLock { $0.faults } }

    private func fault(_ operation: Operation, _ path: String, flags: Int32 = 0) -> Fault? {
        let (rule, call) = state.withLock { state in
            state.count += 1
            let call = Call(operation: operation, path: path, number: state.count, flags: flags)
            if state.logsCalls { state.calls.append(call) }
            return (state.rule, call)
        }
        let fault = rule(call)
        if fault != nil { state.withLock { $0.faults += 1 } }
        return fault
    }

    private func fault(_ operation: Operation, _ path: UnsafePointer<CChar>) throws(Errno) {
        if case .error(let code) = fault(operation, String(cString: path)) { throw Errno(code) }
    }

    private func path(_ file: Int32) -> String {
        state.withLock { $0.paths[file] ?? "?" }
    }

    private func log(_ change: Change) {
        state.withLock { state in
            if state.logsChanges { state.changes.append(change) }
        }
    }

    // MARK: The seam

    func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 {
        let name = String(cString: path)
        if case .error(let code) = fault(.open, name, flags: flags) { throw Errno(code) }
        state.withLock { $0.openFlags.append(flags) }
        let isNew = flags & O_CREAT != 0 && (try? system.status(at: path)) == nil
        let file = try system.open(path, flags)
        let length = flags & O_APPEND != 0 ? (try? system.status(file))?.size ?? 0 : 0
        state.withLock { state in
            state.paths[file] = name
            state.offsets[file] = length
        }
        if isNew {
            log(.create(name))
            onCreated(file)
        }
        return file
    }

    func close(_ file: Int32) throws(Errno) {
        let fault = fault(.close, path(file))
        state.withLock { _ = $0.paths.removeValue(forKey: file) }
        try system.close(file)
        // As the system does it: the descriptor is gone, and the error is told.
        if case .error(let code) = fault { throw Errno(code) }
    }

    func status(_ file: Int32) throws(Errno) -> FileStatus {
        if case .error(let code) = fault(.status, path(file)) { throw Errno(code) }
        return seen(try system.status(file), path(file))
    }

    func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus {
        try fault(.statusAt, path)
        var status = try system.status(at: path)
        let name = String(cString: path).split(separator: "/").last.map(String.init) ?? ""
        status.size = state.withLock { $0.claimedSizes[name] } ?? status.size
        return seen(status, String(cString: path))
    }

    func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int {
        let path = path(file)
        let count: Int
        switch fault(.read, path) {
        case .error(let code): throw Errno(code)
        case .short(let limit):
            count = try system.read(file, UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit)), at: offset)
        case nil: count = try system.read(file, buffer, at: offset)
        }
        let name = String(path.split(separator: "/").last ?? "")
        state.withLock { state in
            state.readings[name, default: Reading()].bytes += count
            let largest = max(state.readings[name]?.largestBuffer ?? 0, buffer.count)
            state.readings[name]?.largestBuffer = largest
        }
        return count
    }

    func write(_ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno) -> Int {
        let path = path(file)
        let count: Int
        switch fault(.write, path) {
        case .error(let code): throw Errno(code)
        case .short(let limit):
            let piece = first.isEmpty ? second.prefix(limit) : first.prefix(limit)
            count = try system.write(file, UnsafeRawBufferPointer(rebasing: piece), .init(start: nil, count: 0))
        case nil: count = try system.write(file, first, second)
        }
        let bytes = Data((Array(first) + Array(second)).prefix(count))
        let offset = state.withLock { state in
            defer { state.offsets[file, default: 0] += count }
            return state.offsets[file, default: 0]
        }
        log(.write(path, offset: offset, bytes: bytes))
        return count
    }

    func truncate(_ file: Int32, _ length: Int) throws(Errno) {
        let path = path(file)
        if case .error(let code) = fault(.truncate, path) { throw Errno(code) }
        try system.truncate(file, length)
        log(.truncate(path, length: length))
    }

    func setPermissions(_ file: Int32, _ permissions: UInt32) throws(Errno) {
        if case .error(let code) = fault(.setPermissions, path(file)) { throw Errno(code) }
        try system.setPermissions(file, permissions)
    }

    func setPermissions(at path: UnsafePointer<CChar>, _ permissions: UInt32) throws(Errno) {
        try fault(.setPermissions, path)
        try system.setPermissions(at: path, permissions)
    }

    func unlink(_ path: UnsafePointer<CChar>) throws(Errno) {
        try fault(.unlink, path)
        try system.unlink(path)
        log(.unlink(String(cString: path)))
    }

    func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno) {
        try fault(.rename, path)
        try system.rename(path, to: newPath)
        log(.rename(String(cString: path), String(cString: newPath)))
    }

    func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) {
        try fault(.makeDirectory, path)
        try system.makeDirectory(path)
        log(.makeDirectory(String(cString: path)))
    }

    func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) {
        try fault(.removeDirectory, path)
        try system.removeDirectory(path)
        log(.removeDirectory(String(cString: path)))
    }

    func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Bool) throws(Errno) {
        try fault(.list, path)
        try system.list(path) { name in
            let goesOn = body(name)
            onListed(String(cString: name))
            return goesOn
        }
    }

    func lockFile(_ file: Int32, isShared: Bool) throws(Errno) -> Bool {
        if case .error(let code) = fault(.lockFile, path(file)) { throw Errno(code) }
        return try system.lockFile(file, isShared: isShared)
    }

    func unlockFile(_ file: Int32) throws(Errno) {
        try system.unlockFile(file)
    }

    func lockProcess(_ file: Int32) throws(Errno) -> Bool {
        if case .error(let code) = fault(.lockProcess, path(file)) { throw Errno(code) }
        return try system.lockProcess(file)
    }
}

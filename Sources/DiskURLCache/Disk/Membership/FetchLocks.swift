import Foundation

/// The fetches of all processes that use a directory: one at a time for a key, each marked by a POSIX lock on a byte of
/// the file `fetches`. The system frees the locks of a process that dies, and a forked child does not inherit them.
///
/// Keys share a byte by their hash, which costs waiting only: who gets the lock looks up its own key again. Such a lock
/// belongs to the process, so loads of one process do not exclude each other here; `LoadTable` sees to those.
final class FetchLocks: Sendable {
    enum Answer {
        /// The caller fetches, and must call `release`. Also where the file system has no locks, or the file cannot be
        /// opened: then loads of this process wait for each other, and no others do.
        case taken
        /// Another process fetches.
        case held
        /// The last answer could not be shared: the caller fetches for itself.
        case unshared
    }

    /// Guarded by the lock around it, which is held across calls for one byte only.
    private struct State {
        /// Nil before the first fetch, and if the file cannot be opened.
        var file: OpenFile?
        /// How many loads of this process hold each byte.
        var holders: [UInt64: Int] = [:]
    }

    private let files: any FileSystem
    private let path: String
    private let state = Mutex(State())

    /// The seconds for which the loads of a key do not wait for each other after an answer that could not be shared (in
    /// Varnish: hit-for-miss).
    static let unsharedTime: TimeInterval = 10

    /// The first bytes of the file are times, in seconds since 1970: when an answer to a key of that place could not be
    /// shared. The bytes that are locked lie behind them.
    private static let places: UInt64 = 8_192
    private static let width = MemoryLayout<UInt64>.size

    init(_ files: any FileSystem, _ paths: DiskPaths) {
        self.files = files
        path = paths.fetches
    }

    private static func byte(of key: KeyName) -> UInt64 { (key.resource ^ key.low) >> 2 | 1 << 20 }

    /// Does not wait.
    func take(_ key: KeyName, now: Date) -> Answer {
        let byte = Self.byte(of: key)
        return state.withLock { state in
            guard let file = opened(&state) else { return .taken }
            if lock(file, byte, F_WRLCK) {
                state.holders[byte, default: 0] += 1
                return .taken
            }
            guard [EACCES, EAGAIN].contains(errno) else { return .taken }
            return isUnshared(file, byte, now: now) ? .unshared : .held
        }
    }

    /// - Parameter isShared: false if the answer does not serve other processes. For a while their loads of the key do
    ///   not wait for each other, as those of one process.
    func release(_ key: KeyName, isShared: Bool, now: Date) {
        let byte = Self.byte(of: key)
        state.withLock { state in
            guard let file = state.file?.file, let holders = state.holders[byte] else { return }
            state.holders[byte] = holders > 1 ? holders - 1 : nil
            if !isShared {
                withUnsafeBytes(of: UInt64(max(0, now.timeIntervalSince1970))) {
                    _ = pwrite(file, $0.baseAddress, $0.count, Self.position(of: byte))
                }
            }
            if holders == 1 { _ = lock(file, byte, F_UNLCK) }
        }
    }

    private func opened(_ state: inout State) -> Int32? {
        if let file = state.file?.file { return file }
        guard let (file, _) = try? files.openRegular(path, O_RDWR | O_CREAT) else { return nil }
        state.file = OpenFile(file, files)
        return file
    }

    private func lock(_ file: Int32, _ byte: UInt64, _ kind: Int32) -> Bool {
        var request = flock()
        request.l_type = Int16(kind)
        request.l_whence = Int16(SEEK_SET)
        request.l_start = off_t(byte)
        request.l_len = 1
        return fcntl(file, F_SETLK, &request) == 0
    }

    private static func position(of byte: UInt64) -> off_t { off_t(byte % places) * off_t(width) }

    private func isUnshared(_ file: Int32, _ byte: UInt64, now: Date) -> Bool {
        var time: UInt64 = 0
        let count = withUnsafeMutableBytes(of: &time) { pread(file, $0.baseAddress, $0.count, Self.position(of: byte)) }
        let passed = now.timeIntervalSince1970 - Double(time)
        // A longer time means that the clock was set back.
        return count == Self.width && passed >= -1 && passed <= Self.unsharedTime
    }
}

#if DEBUG && os(Linux)
    import Foundation
    import Synchronization
    import Testing

    @testable import DiskURLCache

    /// Several threads of which one goes on at a time. At each lock of the library and each call of the file system a
    /// seed says who goes on, so one seed gives one order of all that they do.
    final class Schedule: Sendable {
        private struct State {
            var random: TestRandom
            /// Of so many times at which another thread could go on, one may do so once.
            let stay: Int
            /// The threads that have not ended.
            var alive: [Int] = []
            /// How often another thread could go on, or something was noted.
            var time = 0
            /// Of the order of the threads.
            var hash = 0
        }

        // The library's own lock asks the schedule.
        private let state: Synchronization.Mutex<State>
        private let turns: [DispatchSemaphore]

        init(seed: Int, threads: Int) {
            let stay = [20, 100, 300, 1_000][seed % 4]
            state = Synchronization.Mutex(State(random: TestRandom(seed), stay: stay, alive: Array(0..<threads)))
            turns = (0..<threads).map { _ in DispatchSemaphore(value: 0) }
        }

        /// Of the order in which the threads went on.
        var hash: Int { state.withLock { $0.hash } }

        /// A time of its own for each call, in the order of the schedule.
        func now() -> Int {
            state.withLock { state in
                state.time += 1
                return state.time
            }
        }

        /// Runs the threads to their ends.
        func run(_ work: @escaping @Sendable (Int) -> Void) async {
            await onThreads(turns.count) { [self] number in
                // One of them says who begins.
                if number == 0 { goOn() }
                turns[number].wait()
                let turn = LockTurn { [self] in
                    if goOn(from: number) != number { turns[number].wait() }
                }
                LockTurn.ofThread = turn
                withExtendedLifetime(turn) { work(number) }
                LockTurn.ofThread = nil
                state.withLock { $0.alive.removeAll { $0 == number } }
                goOn()
            }
        }

        /// Says which thread is the next one. Also to that one, if it is not this one, which then has to wait.
        @discardableResult
        private func goOn(from number: Int? = nil) -> Int? {
            let next: Int? = state.withLock { state in
                // Faults need a thread that others overtake by much more often than many turns.
                if let number, Int.random(in: 0..<state.stay, using: &state.random) > 0 { return number }
                guard let next = state.alive.randomElement(using: &state.random) else { return nil }
                state.time += 1
                state.hash = (state.hash &* 31 &+ next) &* 0x9E37_79B9_7F4A_7C1
                return next
            }
            if let next, next != number { turns[next].signal() }
            return next
        }
    }

    /// The system's files, at which threads of a schedule take turns.
    struct ScheduledFiles: FileSystem {
        private let system = SystemFiles()

        private var inTurn: SystemFiles {
            LockTurn.ofThread?.wait()
            return system
        }

        func open(_ path: UnsafePointer<CChar>, _ flags: Int32) throws(Errno) -> Int32 { try inTurn.open(path, flags) }
        func status(at path: UnsafePointer<CChar>) throws(Errno) -> FileStatus { try inTurn.status(at: path) }
        func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Errno) -> Int {
            try inTurn.read(file, buffer, at: offset)
        }
        func write(_ file: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno)
            -> Int
        {
            try inTurn.write(file, first, second)
        }
        func truncate(_ file: Int32, _ length: Int) throws(Errno) { try inTurn.truncate(file, length) }
        func setPermissions(_ file: Int32, _ mode: UInt32) throws(Errno) { try inTurn.setPermissions(file, mode) }
        func setPermissions(at path: UnsafePointer<CChar>, _ mode: UInt32) throws(Errno) {
            try inTurn.setPermissions(at: path, mode)
        }
        func unlink(_ path: UnsafePointer<CChar>) throws(Errno) { try inTurn.unlink(path) }
        func rename(_ path: UnsafePointer<CChar>, to newPath: UnsafePointer<CChar>) throws(Errno) {
            try inTurn.rename(path, to: newPath)
        }
        func makeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) { try inTurn.makeDirectory(path) }
        func removeDirectory(_ path: UnsafePointer<CChar>) throws(Errno) { try inTurn.removeDirectory(path) }
        func list(_ path: UnsafePointer<CChar>, _ body: (UnsafePointer<CChar>) -> Bool) throws(Errno) {
            try inTurn.list(path, body)
        }
        func lockFile(_ file: Int32, isShared: Bool) throws(Errno) -> Bool {
            try inTurn.lockFile(file, isShared: isShared)
        }
        func unlockFile(_ file: Int32) throws(Errno) { try inTurn.unlockFile(file) }
        func lockProcess(_ file: Int32) throws(Errno) -> Bool { try inTurn.lockProcess(file) }
        func close(_ file: Int32) throws(Errno) { try inTurn.close(file) }
        func status(_ file: Int32) throws(Errno) -> FileStatus { try inTurn.status(file) }
    }
#endif

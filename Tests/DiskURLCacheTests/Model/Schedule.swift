#if DEBUG && os(Linux)
    import Foundation
    import Synchronization
    import Testing

    @testable import DiskURLCache

    /// Several threads of which one goes on at a time. At each lock of the library and each call of the file system a
    /// seed says who goes on, so one seed gives one order of all that they do. What they put on the queues of loads is
    /// done by further threads.
    final class Schedule: Sendable {
        private struct State {
            var random: TestRandom
            /// Of so many times at which another thread could go on, one may do so once.
            let stay: Int
            /// Tells each thread that it is the next one.
            var turns: [DispatchSemaphore]
            /// The threads that have not ended.
            var alive: [Int]
            /// What a serial queue has still to do; nil if it has no thread.
            var queued: [ObjectIdentifier: [@Sendable () -> Void]] = [:]
            /// How often another thread could go on, or something was noted.
            var time = 0
            /// Of the order of the threads.
            var hash = 0
        }

        // The library's own lock asks the schedule.
        private let state: Synchronization.Mutex<State>
        private let threads: Int

        init(seed: Int, threads: Int) {
            self.threads = threads
            state = Synchronization.Mutex(
                State(
                    random: TestRandom(seed), stay: [20, 100, 300, 1_000][seed % 4],
                    turns: (0..<threads).map { _ in DispatchSemaphore(value: 0) }, alive: Array(0..<threads)))
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

        /// Runs the threads, and those of the queues, to their ends.
        func run(_ work: @escaping @Sendable (Int) -> Void) async {
            await onThreads(threads) { [self] number in
                // One of them says who begins.
                if number == 0 { goOn() }
                inTurn(number) { work(number) }
            }
            await eventually("the threads of queues to end") { state.withLock { $0.alive.isEmpty } }
        }

        /// Runs a thread to its end.
        private func inTurn(_ number: Int, _ work: () -> Void) {
            let own = state.withLock { $0.turns[number] }
            own.wait()
            let turn = ThreadTurn(
                wait: { [self] in if goOn(from: number) != number { own.wait() } },
                take: { [self] queue, work in take(queue, work) })
            ThreadTurn.ofThread = turn
            withExtendedLifetime(turn) { work() }
            ThreadTurn.ofThread = nil
            state.withLock { $0.alive.removeAll { $0 == number } }
            goOn()
        }

        private func take(_ queue: DispatchQueue, _ work: @escaping @Sendable () -> Void) -> Bool {
            switch queue.label {
            case "DiskURLCache.lookup": begin { work() }
            // Serial ones.
            case "DiskURLCache.answer", "DiskURLCache.body":
                let id = ObjectIdentifier(queue)
                let hasThread = state.withLock { state in
                    defer { state.queued[id, default: []].append(work) }
                    return state.queued[id] != nil
                }
                if hasThread { return true }
                begin { [self] in
                    // No other queue has its address meanwhile.
                    withExtendedLifetime(queue) { while let next = next(of: id) { next() } }
                }
            default: return false
            }
            return true
        }

        private func next(of queue: ObjectIdentifier) -> (@Sendable () -> Void)? {
            state.withLock { state in
                guard state.queued[queue]?.isEmpty == false else {
                    state.queued[queue] = nil
                    return nil
                }
                return state.queued[queue]?.removeFirst()
            }
        }

        private func begin(_ work: @escaping @Sendable () -> Void) {
            let number = state.withLock { state in
                state.alive.append(state.turns.count)
                state.turns.append(DispatchSemaphore(value: 0))
                return state.turns.count - 1
            }
            // What the work alone keeps is released in its turn.
            let held = Synchronization.Mutex<(@Sendable () -> Void)?>(work)
            Thread.detachNewThread { [self] in
                inTurn(number) {
                    held.withLock { held in
                        defer { held = nil }
                        return held
                    }?()
                }
            }
        }

        /// Says which thread is the next one. Also to that one, if it is not this one, which then has to wait.
        @discardableResult
        private func goOn(from number: Int? = nil) -> Int? {
            let (next, turn) = state.withLock { state -> (Int?, DispatchSemaphore?) in
                // Faults need a thread that others overtake by much more often than many turns.
                if let number, Int.random(in: 0..<state.stay, using: &state.random) > 0 { return (number, nil) }
                guard let next = state.alive.randomElement(using: &state.random) else { return (nil, nil) }
                state.time += 1
                state.hash = (state.hash &* 31 &+ next) &* 0x9E37_79B9_7F4A_7C1
                return (next, state.turns[next])
            }
            if next != number { turn?.signal() }
            return next
        }
    }

    /// The system's files, at which threads of a schedule take turns.
    struct ScheduledFiles: FileSystem {
        private let system = SystemFiles()

        private var inTurn: SystemFiles {
            ThreadTurn.ofThread?.wait()
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

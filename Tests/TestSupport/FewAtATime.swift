import DiskURLCache
import Foundation
import Testing

/// For suites whose tests work, wait, or have servers: a few of them run at a time, on threads of their own.
///
/// By default all tests begin at once on the threads of Swift's pool, of which there is one a core. A test that waits
/// there holds up the library's tasks, so that each test takes as long as the whole run. And each test with a server
/// has dozens of open files, and a shell allows a process 1,024 (256 on macOS).
public struct FewAtATime: SuiteTrait, TestTrait, TestScoping {
    private struct Slots {
        var free = min(ProcessInfo.processInfo.activeProcessorCount + 4, 12)
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private static let slots = Guarded(Slots())

    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // It would count the wait for a turn, and cancel a test that has not begun. `Standstill` ends one that hangs.
        if test.timeLimit != nil { Issue.record("a time limit beside .fewAtATime") }
        await withCheckedContinuation { turn in
            let isFree = Self.slots.withLock { slots in
                guard slots.free > 0 else {
                    slots.waiting.append(turn)
                    return false
                }
                slots.free -= 1
                return true
            }
            if isFree { turn.resume() }
        }
        let number = Standstill.begin(test.name)
        defer {
            Standstill.end(number)
            let next: CheckedContinuation<Void, Never>? = Self.slots.withLock { slots in
                guard slots.waiting.isEmpty else { return slots.waiting.removeFirst() }
                slots.free += 1
                return nil
            }
            next?.resume()
        }
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return try await function() }
        try await withTaskExecutorPreference(TestThreads.shared, operation: function)
    }
}

extension Trait where Self == FewAtATime {
    public static var fewAtATime: FewAtATime { FewAtATime() }
}

/// Threads for tests, which may wait as long as they like. A test that begins a thousand tasks gets no thousand
/// threads.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
private final class TestThreads: TaskExecutor {
    static let shared = TestThreads()

    private struct State {
        var jobs: [UnownedJob] = []
        var threads = 0
        var idle = 0
    }

    private let state = Guarded(State())
    private let hasJob = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let needsThread = state.withLock { state in
            state.jobs.append(job)
            guard state.jobs.count > state.idle, state.threads < 100 else { return false }
            state.threads += 1
            state.idle += 1
            return true
        }
        if needsThread { Thread.detachNewThread { self.work() } }
        hasJob.signal()
    }

    private func work() {
        while true {
            hasJob.wait()
            let job = state.withLock { state in
                state.idle -= 1
                return state.jobs.removeFirst()
            }
            job.runSynchronously(on: asUnownedTaskExecutor())
            state.withLock { $0.idle += 1 }
        }
    }
}

/// A test that never ends would hang the run, and it cannot be left. So the process ends when nothing moves any more,
/// and says which tests have not ended, and what the loads wait for.
///
/// What counts is what the process does, not the time that a test takes: on a busy machine that may be any.
private enum Standstill {
    private struct Running {
        var names: [Int: String] = [:]
        var begun = 0
    }

    private static let running = Guarded(Running())
    private static let watching: Void = Thread.detachNewThread { watch() }

    static func begin(_ name: String) -> Int {
        _ = watching
        return running.withLock { running in
            running.begun += 1
            running.names[running.begun] = name
            return running.begun
        }
    }

    static func end(_ number: Int) { _ = running.withLock { $0.names.removeValue(forKey: number) } }

    /// Seconds that the process had of the processors.
    private static var used: Int { Int(clock()) / 1_000_000 }

    /// Nothing moves if no test begins or ends, and the process does nothing for two minutes; or if it does something
    /// for ever.
    private static func watch() {
        let isLong = TestLength.isLong || TestLength.modelSeconds != nil
        let times = isLong ? 200 : 6
        var (seen, seenAt) = ((0, 0), used)
        var (patience, countedFrom) = (Patience(times: times), used)
        while true {
            usleep(100_000)
            let now = running.withLock { ($0.begun, $0.names.count) }
            if now != seen || now.1 == 0 {
                (seen, seenAt) = (now, used)
                patience = Patience(times: times)
            } else if used - countedFrom > 1 {
                (patience, countedFrom) = (Patience(times: times), used)
            }
            if patience.isOver() || used - seenAt > times * Patience.seconds { end(after: times * Patience.seconds) }
        }
    }

    private static func end(after seconds: Int) {
        let names = running.withLock { $0.names.sorted { $0.key < $1.key }.map(\.value) }
        for name in names { say("✘ Test \(name) hangs: nothing moved for \(seconds) s.") }
        // A load whose lock is held for ever cannot be asked.
        let isSaid = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            #if DEBUG
                DiskURLCache.forEachLoad(say)
            #endif
            isSaid.signal()
        }
        _ = isSaid.wait(timeout: .now() + 10)
        fatalError("\(names.joined(separator: ", ")) hangs")
    }

    private static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = write(1, bytes, bytes.count)
    }
}

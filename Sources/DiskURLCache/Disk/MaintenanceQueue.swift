import Dispatch

/// The serial queue on which a cache writes, evicts and saves its index; a timer starts it, and suspends itself when there
/// is nothing left to do.
///
/// Tests pause it, and then run a pass or a flush as one step.
final class MaintenanceQueue: Sendable {
    private struct State {
        /// When the timer is to fire; nil while it is suspended.
        var deadline: Double?
        var isPaused = false
        /// Keeps the store alive until what it staged is written.
        var kept: DiskStore?
    }

    private let queue: DispatchQueue
    private let mark = DispatchSpecificKey<Bool>()
    private let state = Mutex(State())
    private let timer: SuspendableTimer

    /// `pass` does all there is to do, and asks for its next run by `schedule`.
    init(pass: @escaping @Sendable () -> Void) {
        queue = DispatchQueue(label: "DiskURLCache.maintenance", qos: .utility)
        queue.setSpecific(key: mark, value: true)
        timer = SuspendableTimer(queue: queue, handler: pass)
    }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }

    /// Asks for a pass within that many seconds. `keeping` lives until the pass is over.
    func schedule(after seconds: Double, keeping owner: DiskStore? = nil) {
        let now = MonotonicTime.seconds
        state.withLock { state in
            if let owner { state.kept = owner }
            if let deadline = state.deadline, deadline <= now + seconds { return }
            state.deadline = now + seconds
            if !state.isPaused { timer.start(after: seconds) }
        }
    }

    /// To be called by the pass first: what is scheduled from now on starts the timer again.
    func beginPass() -> Bool {
        state.withLock { state in
            guard !state.isPaused else { return false }
            state.deadline = nil
            return true
        }
    }

    /// To be called by the pass last.
    func endPass() {
        // Released outside the lock: it may be the store's last owner.
        let kept = state.withLock { state -> DiskStore? in
            guard state.deadline == nil else { return nil }
            timer.suspend()
            defer { state.kept = nil }
            return state.kept
        }
        _ = kept
    }

    func pause() {
        state.withLock { state in
            state.isPaused = true
            timer.suspend()
        }
        // A pass under way ends first.
        perform {}
    }

    func resume() {
        state.withLock { state in
            state.isPaused = false
            if state.deadline != nil { timer.start(after: 0) }
        }
    }

    /// Lets go of a store that was to be kept until a pass that never came.
    func forget() {
        let kept = state.withLock { state in
            defer { state.kept = nil }
            return state.kept
        }
        _ = kept
    }

    /// Runs work on the queue and waits for it; at once when called there.
    func perform<Result>(_ work: () -> Result) -> Result {
        isCurrent ? work() : queue.sync(execute: work)
    }
}

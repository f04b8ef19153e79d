import Dispatch

/// The serial queue on which a cache maintains its directory; a timer starts it, and suspends itself when there is
/// nothing left to do.
///
/// Tests pause it, and then run a pass or a flush as one step.
package final class MaintenanceQueue: Sendable {
    private struct State {
        /// When the timer is to fire; nil while it is suspended.
        var deadline: Double?
        var isPaused = false
        var work: @Sendable () -> Void = {}
    }

    private let queue: DispatchQueue
    private let mark = DispatchSpecificKey<Bool>()
    private let state = Mutex(State())
    private let timer: SuspendableTimer

    init() {
        let reference = WeakReference<MaintenanceQueue>()
        queue = DispatchQueue(label: "DiskURLCache.maintenance", qos: .utility)
        queue.setSpecific(key: mark, value: true)
        timer = SuspendableTimer(queue: queue) { reference.object?.run() }
        reference.object = self
    }

    /// The work of a pass: all there is to do, asking for its next run by `schedule`. Set once, before the first pass
    /// is asked for.
    func setWork(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.work = work }
    }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }

    /// Traps elsewhere.
    func assertCurrent() {
        dispatchPrecondition(condition: .onQueue(queue))
    }

    /// Asks for a pass within that many seconds.
    func schedule(after seconds: Double) {
        let now = MonotonicTime.seconds
        state.withLock { state in
            if let deadline = state.deadline, deadline <= now + seconds { return }
            state.deadline = now + seconds
            if !state.isPaused { timer.start(after: seconds) }
        }
    }

    /// The timer's handler: one pass.
    private func run() {
        let work: (@Sendable () -> Void)? = state.withLock { state in
            guard !state.isPaused else { return nil }
            // A pass that is scheduled from now on starts the timer again.
            state.deadline = nil
            return state.work
        }
        guard let work else { return }
        work()
        state.withLock { state in
            if state.deadline == nil { timer.suspend() }
        }
    }

    func pause() {
        state.withLock { state in
            state.isPaused = true
            timer.suspend()
        }
        // A pass that runs now ends first.
        perform {}
    }

    func resume() {
        state.withLock { state in
            state.isPaused = false
            if state.deadline != nil { timer.start(after: 0) }
        }
    }

    /// Runs work on the queue and waits for it; at once when called there.
    func perform<Result>(_ work: () -> Result) -> Result {
        isCurrent ? work() : queue.sync(execute: work)
    }
}

/// A reference that does not keep its object, and can be made before the object exists.
final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    private struct Box {
        weak var object: Object?
    }

    private let box = Mutex(Box())

    var object: Object? {
        get { box.withLock { $0.object } }
        set { box.withLock { $0.object = newValue } }
    }
}

import Dispatch

/// The serial queue on which a cache maintains its directory. A timer starts each pass; when nothing is left to do, the
/// timer is suspended.
///
/// Tests pause it, and then run a pass or a flush as one step.
package final class MaintenanceQueue: Sendable {
    private struct State {
        /// The time when the timer fires; nil while it is suspended.
        var deadline: Double?
        /// When the last pass began.
        var lastPass = -Double.infinity
        var isPaused = false
        var work: @Sendable () -> Void = {}
    }

    private let queue: DispatchQueue
    private let mark = DispatchSpecificKey<Bool>()
    private let state = Mutex(State())
    private let timer: SuspendableTimer
    #if DEBUG
        private let performing = Mutex(())
    #endif

    init() {
        let reference = WeakReference<MaintenanceQueue>()
        queue = DispatchQueue(label: "DiskURLCache.maintenance", qos: .utility)
        queue.setSpecific(key: mark, value: true)
        timer = SuspendableTimer(queue: queue) { reference.object?.run() }
        reference.object = self
    }

    /// Sets the work of a pass, which calls `schedule` if there is more to do. Called once, before the first pass is
    /// scheduled.
    func setWork(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.work = work }
    }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }

    /// Traps if it is not called on the queue.
    func assertCurrent() {
        dispatchPrecondition(condition: .onQueue(queue))
    }

    /// Schedules a pass within this many seconds.
    /// - Parameter interval: the seconds that must have passed since the last pass, for one that is not urgent.
    func schedule(after seconds: Double, sinceLastPass interval: Double = 0) {
        let now = MonotonicTime.seconds
        state.withLock { state in
            let next = max(now + seconds, state.lastPass + interval)
            if let deadline = state.deadline, deadline <= next { return }
            state.deadline = next
            if !state.isPaused { timer.start(after: next - now) }
        }
    }

    /// The timer's handler: one pass.
    private func run() {
        let work: (@Sendable () -> Void)? = state.withLock { state in
            guard !state.isPaused else { return nil }
            // Scheduling a pass from now on starts the timer again.
            state.deadline = nil
            state.lastPass = MonotonicTime.seconds
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
        // Waits for a pass that is running now.
        perform {}
    }

    func resume() {
        state.withLock { state in
            state.isPaused = false
            if state.deadline != nil { timer.start(after: 0) }
        }
    }

    /// Runs work on the queue later, also while passes are paused.
    func enqueue(_ work: @escaping @Sendable () -> Void) {
        queue.async(execute: work)
    }

    /// Runs work on the queue and waits for it. If called on the queue, runs it at once.
    func perform<Result>(_ work: () -> Result) -> Result {
        if isCurrent { return work() }
        #if DEBUG
            // A test that orders threads sees who waits for a lock, and not who waits for a queue.
            return performing.withLock { _ in queue.sync(execute: work) }
        #else
            return queue.sync(execute: work)
        #endif
    }
}

/// A weak reference, which can be made before its object exists.
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

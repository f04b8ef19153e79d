import Dispatch

/// A dispatch timer that may be started, suspended and let go in every order.
///
/// Dispatch crashes the process when a source is released while it is suspended, and when it is resumed once too often.
/// Invariant: `isRunning` tells whether the source is resumed, and changes together with it under the lock.
///
/// `@unchecked Sendable`: `source` is used only while the lock is held, or in `deinit`, when nobody else has it.
final class SuspendableTimer: @unchecked Sendable {
    private let source: any DispatchSourceTimer
    private let isRunning = Mutex(false)

    init(queue: DispatchQueue, handler: @escaping @Sendable () -> Void) {
        source = DispatchSource.makeTimerSource(queue: queue)
        source.setEventHandler(handler: handler)
    }

    deinit {
        source.setEventHandler(handler: nil)
        source.cancel()
        isRunning.withLock { isRunning in
            if !isRunning { source.resume() }
            isRunning = true
        }
    }

    /// Fires once after that many seconds; an earlier start is forgotten.
    func start(after seconds: Double) {
        isRunning.withLock { isRunning in
            source.schedule(deadline: .now() + max(0, seconds))
            if !isRunning { source.resume() }
            isRunning = true
        }
    }

    func suspend() {
        isRunning.withLock { isRunning in
            if isRunning { source.suspend() }
            isRunning = false
        }
    }
}

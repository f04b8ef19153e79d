import Dispatch

/// A timer on a queue. It may be started, suspended and released in any order, at any moment.
///
/// Suspended it has no dispatch source at all: each start makes one, which fires once. One source that is suspended and
/// scheduled again as it fires loses that firing: 1 of about 100,000 by `MaintenanceTests.timerOrders` (Linux, Swift
/// 6.3); a repeating one loses all later firings, and to release a suspended source crashes the process.
final class SuspendableTimer: Sendable {
    private struct State {
        /// Nil while the timer is suspended, and after it has fired.
        var source: (any DispatchSourceTimer)?
        /// Counts starts and suspensions, so that a source that was cancelled while it fired has no effect.
        var number = 0
    }

    private let queue: DispatchQueue
    private let handler: @Sendable () -> Void
    /// The sources' handlers hold it too, instead of the timer itself.
    private let state = Mutex(State())

    init(queue: DispatchQueue, handler: @escaping @Sendable () -> Void) {
        self.queue = queue
        self.handler = handler
    }

    deinit {
        suspend()
    }

    /// Fires once after this many seconds. Replaces an earlier start.
    func start(after seconds: Double) {
        state.withLock { current in
            current.source?.cancel()
            current.number += 1
            let source = DispatchSource.makeTimerSource(queue: queue)
            source.setEventHandler { [handler, state, number = current.number] in
                let isDue = state.withLock { current in
                    guard current.number == number else { return false }
                    // A source and its handler hold each other until the source is cancelled.
                    current.source?.cancel()
                    current.source = nil
                    return true
                }
                if isDue { handler() }
            }
            source.schedule(deadline: .now() + max(0, seconds))
            source.activate()
            current.source = source
        }
    }

    /// The timer does not fire before the next start, unless it is firing already.
    func suspend() {
        state.withLock { current in
            current.source?.cancel()
            current.source = nil
            current.number += 1
        }
    }
}

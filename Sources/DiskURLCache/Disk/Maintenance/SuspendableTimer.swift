import Dispatch

/// A timer on a queue that may be started, suspended and let go in every order, at any moment.
///
/// Each start makes a new dispatch source, which is scheduled once and never suspended. One source for all starts is
/// not safe: when it is suspended and scheduled again in the moment it fires, that firing is lost (once in some 100,000
/// times, measured on Linux; with a repeating one all later firings are lost too). And dispatch crashes the process
/// when a source is released while it is suspended, or resumed once too often.
final class SuspendableTimer: Sendable {
    private struct State {
        /// Nil while the timer is suspended, and once it has fired.
        var source: (any DispatchSourceTimer)?
        /// Counts starts and suspensions: a source that is cancelled as it fires may still call its handler.
        var number = 0
    }

    private let queue: DispatchQueue
    private let handler: @Sendable () -> Void
    /// Held by the sources' handlers too, which do not keep the timer.
    private let state = Mutex(State())

    init(queue: DispatchQueue, handler: @escaping @Sendable () -> Void) {
        self.queue = queue
        self.handler = handler
    }

    deinit {
        suspend()
    }

    /// Fires once after that many seconds; an earlier start is forgotten.
    func start(after seconds: Double) {
        state.withLock { current in
            current.source?.cancel()
            current.number += 1
            let source = DispatchSource.makeTimerSource(queue: queue)
            source.setEventHandler { [handler, state, number = current.number] in
                let isDue = state.withLock { current in
                    guard current.number == number else { return false }
                    // A source holds its handler, and the handler the source, until it is cancelled.
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

    /// Nothing fires before the next start, except a firing that has begun.
    func suspend() {
        state.withLock { current in
            current.source?.cancel()
            current.source = nil
            current.number += 1
        }
    }
}

import Dispatch

/// Time for passes, on systems that suspend an app in the background. In the foreground a pass may begin at once. In
/// the background the system is asked for time, also for a pass that is running when the app leaves the foreground: if
/// the system grants none, that pass ends.
final class ExpiringTime: Sendable {
    private struct Pass {
        let handler: @Sendable (_ isExpired: Bool) -> Void
        let isOver = DispatchSemaphore(value: 0)
    }

    private struct State {
        /// Not known before the first notification: an app may be launched in the background.
        var maySuspend = true
        var passes: [Int: Pass] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())
    private let system: PassTime.Activity

    /// - Parameter system: asks the system, as `PassTime.Activity`.
    init(system: @escaping PassTime.Activity) {
        self.system = system
    }

    /// A `PassTime.Activity`.
    func request(_ handler: @escaping @Sendable (_ isExpired: Bool) -> Void) {
        let pass = Pass(handler: handler)
        let number: Int? = state.withLock { state in
            guard !state.maySuspend else { return nil }
            state.lastNumber += 1
            state.passes[state.lastNumber] = pass
            return state.lastNumber
        }
        guard let number else { return system(handler) }
        DispatchQueue.global(qos: .utility).async { [self] in
            // Returns when the pass is over.
            handler(false)
            state.withLock { $0.passes[number] = nil }
            pass.isOver.signal()
        }
    }

    /// The app is in the foreground, or is about to be terminated: it is not suspended.
    func endsSuspension() {
        state.withLock { $0.maySuspend = false }
    }

    /// The app is in the background: it may be suspended.
    func allowsSuspension() {
        let passes = state.withLock { state in
            state.maySuspend = true
            return Array(state.passes.values)
        }
        for pass in passes {
            system { isExpired in
                if isExpired { return pass.handler(true) }
                pass.isOver.wait()
                // The app may have been in the background twice.
                pass.isOver.signal()
            }
        }
    }
}

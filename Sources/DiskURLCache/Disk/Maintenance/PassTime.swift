import Dispatch

/// Whether files may be locked now, if the system may suspend the process: within a maintenance pass that the system
/// granted time for. A process that is suspended with a lock on a file of a shared container is killed (0xdead10cc).
final class PassTime: Sendable {
    /// Asks the system for time, as `ProcessInfo.performExpiringActivity` does: calls the handler with false on another
    /// thread, and keeps the process running until the handler returns; calls it with true when there is no time, or no
    /// more.
    typealias Activity = @Sendable (@escaping @Sendable (_ isExpired: Bool) -> Void) -> Void

    private enum Phase {
        case asked, granted, over
    }

    /// One request for time.
    private final class Grant: Sendable {
        let phase = Mutex(Phase.asked)
        let isDecided = DispatchSemaphore(value: 0)
        let isOver = DispatchSemaphore(value: 0)
    }

    private let activity: Activity
    private let current = Mutex<Grant?>(nil)
    /// The system answers at once. If it does not, the pass continues without locks.
    private let patience: DispatchTimeInterval

    init(activity: @escaping Activity, patience: DispatchTimeInterval = .seconds(2)) {
        self.activity = activity
        self.patience = patience
    }

    var isGranted: Bool {
        current.withLock { $0?.phase.withLock { $0 == .granted } ?? false }
    }

    /// Asks for time, and waits for the answer. One pass at a time.
    /// - Parameter onExpiry: gives up the locks that are held; none is to be taken after it. From another thread.
    func begin(onExpiry: @escaping @Sendable () -> Void) {
        let grant = Grant()
        current.withLock { $0 = grant }
        activity { isExpired in
            let before = grant.phase.withLock { phase in
                defer { phase = isExpired || phase == .over ? .over : .granted }
                return phase
            }
            grant.isDecided.signal()
            switch (isExpired, before) {
            case (false, .asked): grant.isOver.wait()
            case (true, .granted):
                onExpiry()
                grant.isOver.signal()
            case (true, .asked), (_, .over), (false, .granted): break
            }
        }
        if grant.isDecided.wait(timeout: .now() + patience) == .timedOut {
            grant.phase.withLock { if $0 == .asked { $0 = .over } }
        }
    }

    /// The pass is over: the process may be suspended once its locks are given up. No lock can be taken meanwhile.
    func end(givingUpLocks giveUp: () -> Void) {
        let grant = current.withLock { current in
            defer { current = nil }
            return current
        }
        grant?.phase.withLock { $0 = .over }
        giveUp()
        grant?.isOver.signal()
    }
}

import Dispatch

/// Keeps the locks of a directory to maintenance passes, each inside an activity that the system granted, and gives them up when
/// the system wants to suspend the process: one that is suspended with a lock on a file of a shared container is killed.
///
/// Between passes, and in a pass that was granted no time, the cache is a secondary one: it writes records, which needs no
/// lock, and tells of them later.
final class PassLock: Sendable {
    /// Asks the system for time, as `ProcessInfo.performExpiringActivity` does: calls the handler with false on another thread, and
    /// keeps the process running until the handler returns; calls it with true when there is no time, or no more.
    typealias Activity = @Sendable (@escaping @Sendable (_ isExpired: Bool) -> Void) -> Void

    private enum Phase {
        case asked, granted, expired, ended
    }

    /// One request for time.
    private final class Grant: Sendable {
        let phase = Mutex(Phase.asked)
        let isDecided = DispatchSemaphore(value: 0)
        let isOver = DispatchSemaphore(value: 0)
    }

    private let activity: Activity
    private let current = Mutex<Grant?>(nil)
    /// Held while a file other than the maintainer's is locked for longer than one call.
    private let section = Mutex(())
    /// The system answers at once. Should it not, the pass goes on without locks.
    private static let patience = DispatchTimeInterval.seconds(2)

    init(activity: @escaping Activity) {
        self.activity = activity
    }

    /// Whether files may be locked.
    var isGranted: Bool {
        current.withLock { $0?.phase.withLock { $0 == .granted } ?? false }
    }

    /// Asks for time, and waits for the answer. One pass at a time.
    /// - Parameter onExpiry: gives up the locks that are held; none is to be taken after it. From another thread.
    func begin(onExpiry: @escaping @Sendable () -> Void) {
        let grant = Grant()
        current.withLock { $0 = grant }
        activity { [self] isExpired in
            guard isExpired else {
                let isWanted = grant.phase.withLock { phase in
                    guard phase == .asked else { return false }
                    phase = .granted
                    return true
                }
                grant.isDecided.signal()
                if isWanted { grant.isOver.wait() }
                return
            }
            let before = grant.phase.withLock { phase in
                defer { if phase != .ended { phase = .expired } }
                return phase
            }
            grant.isDecided.signal()
            guard before == .granted else { return }
            // What holds the lock of another file ends first; what comes after it sees that time is up.
            section.withLock { _ in }
            onExpiry()
            grant.isOver.signal()
        }
        if grant.isDecided.wait(timeout: .now() + Self.patience) == .timedOut {
            grant.phase.withLock { if $0 == .asked { $0 = .expired } }
        }
    }

    /// The pass is over, and has given up its locks: the process may be suspended.
    func end() {
        let grant = current.withLock { current in
            defer { current = nil }
            return current
        }
        guard let grant else { return }
        grant.phase.withLock { $0 = .ended }
        grant.isOver.signal()
    }

    /// Runs what locks a file meanwhile. Nil where no file may be locked.
    func whileGranted<Result>(_ body: () -> Result) -> Result? {
        section.withLock { _ in isGranted ? body() : nil }
    }
}

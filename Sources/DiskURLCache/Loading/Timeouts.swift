import Dispatch
import Foundation

/// Calls back after a time, for many loads. Nearly all end before that, so one is only a row in a table: the system has one timer, which
/// is set anew for what is due earlier.
final class Timeouts: Sendable {
    static let shared = Timeouts()

    struct ID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    private struct State {
        var calls: [ID: (due: DispatchTime, call: @Sendable () -> Void)] = [:]
        var count: UInt64 = 0
        /// The earliest time for which the system's timer is set.
        var wakesAt: DispatchTime?
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "DiskURLCache.timeouts")

    /// Nil for a time that never comes.
    func after(_ seconds: TimeInterval, _ call: @escaping @Sendable () -> Void) -> ID? {
        let due = DispatchTime.now() + max(0, seconds)
        guard seconds < 1e9 else { return nil }
        let (id, isEarlier) = state.withLock { state in
            state.count += 1
            let id = ID(number: state.count)
            state.calls[id] = (due, call)
            let isEarlier = state.wakesAt.map { due < $0 } ?? true
            if isEarlier { state.wakesAt = due }
            return (id, isEarlier)
        }
        if isEarlier { wake(at: due) }
        return id
    }

    func cancel(_ id: ID?) {
        guard let id else { return }
        // What the call holds is let go outside the lock.
        _ = state.withLock { $0.calls.removeValue(forKey: id) }
    }

    private func wake(at time: DispatchTime) {
        queue.asyncAfter(deadline: time) { self.callWhatIsDue() }
    }

    private func callWhatIsDue() {
        let now = DispatchTime.now()
        let (due, next) = state.withLock { state in
            let due = state.calls.filter { $0.value.due <= now }
            for id in due.keys { state.calls[id] = nil }
            // A timer that was set for later than another one finds that one's work done.
            if let wakesAt = state.wakesAt, wakesAt > now { return (due, DispatchTime?.none) }
            state.wakesAt = state.calls.values.map(\.due).min()
            return (due, state.wakesAt)
        }
        if let next { wake(at: next) }
        for (_, entry) in due { entry.call() }
    }
}

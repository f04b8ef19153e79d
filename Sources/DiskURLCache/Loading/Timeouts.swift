import Dispatch
import Foundation

/// Calls back after a time, for many loads. Nearly all loads end before that, so each is only a row in a table, and
/// there is one timer of the system, which is set for the earliest call.
///
/// The calls are made on one queue, one after the other. So none of them may use a file, or wait: they come in time
/// however slow the disk is, on whose queues the loads wait for their lookups. A deadline does not end a load whose
/// answer is there, and which changes the store in front of its head: that waits for the disk.
package final class Timeouts: Sendable {
    package static let shared = Timeouts()

    package struct ID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    private struct State {
        var calls: [ID: (due: DispatchTime, call: @Sendable () -> Void)] = [:]
        var count: UInt64 = 0
        var timer: SuspendableTimer?
        /// The time for which the timer is set, not later than any call's.
        var wakesAt: DispatchTime?

        mutating func wake(at time: DispatchTime) {
            wakesAt = time
            let now = DispatchTime.now()
            timer?.start(after: time > now ? Double(time.uptimeNanoseconds - now.uptimeNanoseconds) / 1e9 : 0)
        }
    }

    private let state = Mutex(State())

    init() {
        let timer = SuspendableTimer(queue: DispatchQueue(label: "DiskURLCache.timeouts")) { [weak self] in
            self?.callWhatIsDue()
        }
        state.withLock { $0.timer = timer }
    }

    /// Nil for an infinite time.
    /// - Parameter call: as the class says, it uses no file, and does not wait.
    package func after(_ seconds: TimeInterval, _ call: @escaping @Sendable () -> Void) -> ID? {
        guard seconds < 1e9 else { return nil }
        let due = DispatchTime.now() + max(0, seconds)
        return state.withLock { state in
            state.count += 1
            let id = ID(number: state.count)
            state.calls[id] = (due, call)
            if state.wakesAt.map({ due < $0 }) ?? true { state.wake(at: due) }
            return id
        }
    }

    package func cancel(_ id: ID?) {
        guard let id else { return }
        // Objects that the call holds are released outside of the lock.
        _ = state.withLock { $0.calls.removeValue(forKey: id) }
    }

    private func callWhatIsDue() {
        let now = DispatchTime.now()
        let due = state.withLock { state in
            let due = state.calls.filter { $0.value.due <= now }
            for id in due.keys { state.calls[id] = nil }
            state.wakesAt = nil
            if let next = state.calls.values.map(\.due).min() { state.wake(at: next) }
            return due
        }
        for entry in due.values.sorted(by: { $0.due < $1.due }) { entry.call() }
    }
}

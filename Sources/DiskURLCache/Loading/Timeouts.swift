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

    private struct Due: Comparable {
        let time: DispatchTime
        let id: ID

        static func < (left: Due, right: Due) -> Bool {
            (left.time.uptimeNanoseconds, left.id.number) < (right.time.uptimeNanoseconds, right.id.number)
        }
    }

    private struct State {
        var calls: [ID: @Sendable () -> Void] = [:]
        /// When they are due, so that nobody looks at the others. Those of cancelled calls stay until they come first,
        /// or are most of them.
        var order = Heap<Due>()
        var count: UInt64 = 0
        var timer: SuspendableTimer?
        /// The time for which the timer is set, not later than any call's.
        var wakesAt: DispatchTime?

        mutating func wake(at time: DispatchTime) {
            wakesAt = time
            let now = DispatchTime.now()
            timer?.start(after: time > now ? Double(time.uptimeNanoseconds - now.uptimeNanoseconds) / 1e9 : 0)
        }

        /// The next call that was not cancelled.
        mutating func next() -> Due? {
            while let next = order.smallest, calls[next.id] == nil { order.removeSmallest() }
            return order.smallest
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
            state.calls[id] = call
            state.order.insert(Due(time: due, id: id))
            if state.wakesAt.map({ due < $0 }) ?? true { state.wake(at: due) }
            return id
        }
    }

    package func cancel(_ id: ID?) {
        guard let id else { return }
        // Objects that the call holds are released outside of the lock.
        _ = state.withLock { state in
            let call = state.calls.removeValue(forKey: id)
            if state.order.count > 64 + 2 * state.calls.count {
                state.order.removeAll { [calls = state.calls] in calls[$0.id] == nil }
            }
            return call
        }
    }

    private func callWhatIsDue() {
        let now = DispatchTime.now()
        let due = state.withLock { state in
            var due: [@Sendable () -> Void] = []
            while let next = state.next(), next.time <= now {
                if let call = state.calls.removeValue(forKey: next.id) { due.append(call) }
            }
            state.wakesAt = nil
            if let next = state.next() { state.wake(at: next.time) }
            return due
        }
        for call in due { call() }
    }
}

import Foundation

/// Stores that were asked for and not carried out yet, so that the caller need not wait while Foundation's objects are
/// taken apart. Whoever looks at a key carries out what is pending for it first, so nobody can tell the difference.
///
/// Bounded: what does not fit is the caller's to do at once.
final class PendingStores: Sendable {
    private struct Item {
        var weight: Int
        var number: Int
        /// Nil while it is being carried out.
        var work: (@Sendable () -> Void)?
    }

    private struct State {
        var items: [RequestKey: Item] = [:]
        /// What the queue has still to see, in order; a key may have been settled since.
        var order: [RequestKey] = []
        var weight = 0
        var lastNumber = 0
        var isScheduled = false
    }

    private static let weightLimit = 4 << 20
    private static let countLimit = 512

    private let state = Mutex(State())
    /// Held while an item is carried out, so that others can wait for it. Taken before all locks of the layers, never
    /// inside of them. Recursive: the work itself looks at its key.
    private let running = NSRecursiveLock()
    private let queue = DispatchQueue(label: "DiskURLCache.pending-stores", qos: .utility)
    private let mark: @Sendable (_ key: RequestKey, _ isPending: Bool) -> Void

    /// `mark` is told when something comes to be pending for a key, before it can be carried out, and when it was.
    init(mark: @escaping @Sendable (_ key: RequestKey, _ isPending: Bool) -> Void) {
        self.mark = mark
    }

    /// Keeps the work for soon; false when there is no room.
    func add(_ key: RequestKey, weight: Int, _ work: @escaping @Sendable () -> Void) -> Bool {
        while true {
            let outcome: (isKept: Bool, isOccupied: Bool, isFirst: Bool) = state.withLock { state in
                // Two stores of one key may be two variants: neither stands for the other.
                if state.items[key] != nil { return (false, true, false) }
                guard state.weight + weight <= Self.weightLimit, state.items.count < Self.countLimit else {
                    return (false, false, false)
                }
                state.lastNumber += 1
                state.items[key] = Item(weight: weight, number: state.lastNumber, work: work)
                state.order.append(key)
                state.weight += weight
                mark(key, true)
                defer { state.isScheduled = true }
                return (true, false, !state.isScheduled)
            }
            if outcome.isOccupied {
                settle(key)
                continue
            }
            if outcome.isFirst { queue.async { self.settleInOrder() } }
            return outcome.isKept
        }
    }

    /// Returns when nothing is pending for a key; true when something was.
    @discardableResult
    func settle(_ key: RequestKey) -> Bool {
        guard state.withLock({ !$0.items.isEmpty && $0.items[key] != nil }) else { return false }
        carryOut(key)
        return true
    }

    /// Returns when nothing is pending that was added before.
    func settleAll() {
        let items = state.withLock { $0.items }
        if items.isEmpty { return }
        for (key, _) in items.sorted(by: { $0.value.number < $1.value.number }) { carryOut(key) }
    }

    /// Forgets what is pending, since all of it is to be removed anyway; waits for what is being carried out.
    func discardAll() {
        let discarded = state.withLock { state in
            let discarded = state.items.filter { $0.value.work != nil }
            for (key, item) in discarded {
                state.items[key] = nil
                state.weight -= item.weight
            }
            return discarded
        }
        // Let go outside of the state's lock: an item may be the last to hold its cache.
        _ = discarded
        running.lock()
        running.unlock()
    }

    private func carryOut(_ key: RequestKey) {
        running.lock()
        defer { running.unlock() }
        let work = state.withLock { state in
            defer { state.items[key]?.work = nil }
            return state.items[key]?.work
        }
        guard let work else { return }
        work()
        mark(key, false)
        state.withLock { state in
            if let item = state.items.removeValue(forKey: key) { state.weight -= item.weight }
        }
    }

    private func settleInOrder() {
        while true {
            let keys = state.withLock { state in
                let keys = state.order
                state.order.removeAll(keepingCapacity: true)
                if keys.isEmpty { state.isScheduled = false }
                return keys
            }
            if keys.isEmpty { return }
            for key in keys { carryOut(key) }
        }
    }
}

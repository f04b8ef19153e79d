import Foundation

/// Stores that were asked for and not carried out yet, so that the caller need not wait while Foundation's objects are
/// taken apart. Whoever looks at a key carries out what is pending for it first, so nobody can tell the difference.
///
/// Bounded: what does not fit is the caller's to do at once.
final class PendingStores: Sendable {
    private struct Item {
        var number: Int
        var weight: Int
        /// In order: two stores of one key may be two variants, so neither stands for the other.
        var works: [@Sendable () -> Void]
        var isRunning = false

        mutating func append(_ work: @escaping @Sendable () -> Void, weight: Int) {
            works.append(work)
            self.weight += weight
        }
    }

    private struct State {
        var items: [RequestKey: Item] = [:]
        /// What the queue has still to see, in order; a key may have been settled since.
        var order: [RequestKey] = []
        var weight = 0
        var count = 0
        var lastNumber = 0
        var isScheduled = false

        /// What is to be done next for a key; nil when there is no more, and then the key is done.
        mutating func next(_ key: RequestKey, _ mark: (RequestKey, Bool) -> Void) -> (@Sendable () -> Void)? {
            guard let work = items[key]?.works.first else {
                finish(key, mark)
                return nil
            }
            items[key]?.isRunning = true
            items[key]?.works.removeFirst()
            count -= 1
            return work
        }

        mutating func finish(_ key: RequestKey, _ mark: (RequestKey, Bool) -> Void) {
            guard let item = items.removeValue(forKey: key) else { return }
            weight -= item.weight
            mark(key, false)
        }
    }

    private static let weightLimit = 4 << 20
    private static let countLimit = 512

    private let state = Mutex(State())
    /// Held while an item is carried out, so that others can wait for it. Taken before all locks of the layers, never
    /// inside of them. Recursive: the work itself looks at its key.
    private let running = NSRecursiveLock()
    private let queue = DispatchQueue(label: "DiskURLCache.pending-stores", qos: .utility)
    private let mark: @Sendable (_ key: RequestKey, _ isPending: Bool) -> Void
    private let awaitRoom: @Sendable () -> Void

    /// - Parameters:
    ///   - mark: told when something comes to be pending for a key, before it can be carried out, and when it was.
    ///   - awaitRoom: returns when the layers below can take more. Nobody waits for it but the queue.
    init(
        mark: @escaping @Sendable (_ key: RequestKey, _ isPending: Bool) -> Void,
        awaitRoom: @escaping @Sendable () -> Void = {}
    ) {
        self.mark = mark
        self.awaitRoom = awaitRoom
    }

    /// Keeps the work for soon; false when there is no room.
    func add(_ key: RequestKey, weight: Int, _ work: @escaping @Sendable () -> Void) -> Bool {
        let (isKept, isFirst) = state.withLock { state in
            guard state.weight + weight <= Self.weightLimit, state.count < Self.countLimit else {
                return (false, false)
            }
            state.count += 1
            state.weight += weight
            if state.items[key]?.append(work, weight: weight) == nil {
                state.items[key] = Item(number: state.lastNumber, weight: weight, works: [work])
                state.lastNumber += 1
                state.order.append(key)
                mark(key, true)
            }
            defer { state.isScheduled = true }
            return (true, !state.isScheduled)
        }
        if isFirst { queue.async { self.settleInOrder() } }
        // What is stored later comes later.
        if !isKept { settle(key) }
        return isKept
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
            let discarded = state.items
            for (key, item) in discarded {
                state.count -= item.works.count
                state.items[key]?.works = []
                if !item.isRunning { state.finish(key, mark) }
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
        // The work itself looks at its key: what follows comes after it.
        guard state.withLock({ $0.items[key]?.isRunning == false }) else { return }
        while let work = state.withLock({ $0.next(key, mark) }) { work() }
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
            for key in keys {
                awaitRoom()
                carryOut(key)
            }
        }
    }
}

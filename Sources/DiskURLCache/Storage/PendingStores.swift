/// Stores that were accepted but are in no layer yet: all that a caller waits for is that they are here.
///
/// Each takes the place of all that is stored for its key, so one for each key is enough. It stays here until the layers have
/// it: at every moment it is found in one place or the other. Bounded; what finds no room is stored at once.
final class PendingStores: Sendable {
    struct Store {
        var call: StoreCall
        /// Tells the store apart from one that replaced it.
        var number: UInt64
        /// Calls that it stands for: itself, and those that it replaced.
        var count: Int
    }

    private struct State {
        var stores: [RequestKey: Store] = [:]
        var lastNumber: UInt64 = 0
        var bytes = 0
    }

    static let countLimit = 1_024
    private let byteLimit: Int
    private let state = Mutex(State(), isContended: true)

    /// - Parameter byteLimit: of bodies, about.
    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    enum Addition {
        case refused
        /// Whether it is time to begin, and to hurry.
        case accepted(isFirst: Bool, isPressing: Bool)
    }

    func add(_ call: StoreCall) -> Addition {
        let weight = Self.weight(of: call)
        // Freed outside the lock.
        var replaced: Store?
        return state.withLock { state in
            guard state.stores.count < Self.countLimit, state.bytes + weight <= byteLimit else { return .refused }
            state.lastNumber += 1
            let isFirst = state.stores.isEmpty
            replaced = state.stores.updateValue(
                Store(call: call, number: state.lastNumber, count: 1), forKey: call.key)
            state.bytes += weight
            if let replaced {
                state.stores[call.key]?.count += replaced.count
                state.bytes -= Self.weight(of: replaced.call)
            }
            return .accepted(
                isFirst: isFirst,
                isPressing: state.stores.count * 2 > Self.countLimit || state.bytes > byteLimit / 2)
        }
    }

    subscript(key: RequestKey) -> Store? {
        state.withLock { $0.stores[key] }
    }

    func contains(_ key: RequestKey) -> Bool {
        state.withLock { !$0.stores.isEmpty && $0.stores[key] != nil }
    }

    var keys: [RequestKey] {
        state.withLock { Array($0.stores.keys) }
    }

    /// Ends a store that the layers have now, unless another one of its key came meanwhile.
    func remove(_ store: Store) {
        state.withLock { state in
            let key = store.call.key
            guard let index = state.stores.index(forKey: key) else { return }
            if state.stores.values[index].number == store.number {
                state.stores.remove(at: index)
                state.bytes -= Self.weight(of: store.call)
            } else {
                // Those that it stood for are done.
                state.stores.values[index].count -= store.count
            }
        }
    }

    func removeAll() {
        let stores = state.withLock { state in
            defer {
                state.stores = [:]
                state.bytes = 0
            }
            return state.stores
        }
        _ = stores
    }

    /// As `StagedWrites` weighs it.
    private static func weight(of call: StoreCall) -> Int { call.response.data.count + 1_024 }
}

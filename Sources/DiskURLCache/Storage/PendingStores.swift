/// Stores that were accepted but are in no layer yet: all that a caller waits for is that they are here.
///
/// One for each key: a second one has to take the place of the first as a whole. It stays here until the layers have it: at
/// every moment it is found in one place or the other. Bounded; what finds no room is stored at once.
final class PendingStores: Sendable {
    /// A class, so that the table moves one word for each.
    final class Store: Sendable {
        let call: StoreCall
        /// Calls that it stands for: itself, and those that it replaced.
        let count: Int

        init(_ call: StoreCall, count: Int) {
            self.call = call
            self.count = count
        }
    }

    private struct State {
        var stores: [RequestKey: Store] = [:]
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
        /// Whether it is time to begin, and to hurry. What was replaced is to be freed when no lock is held any more: with its
        /// body go objects of the app's.
        case accepted(isFirst: Bool, isPressing: Bool, replaced: Store?)
    }

    func add(_ call: StoreCall) -> Addition {
        let weight = Self.weight(of: call)
        let store = Store(call, count: 1)
        return state.withLock { state in
            guard state.stores.count < Self.countLimit, state.bytes + weight <= byteLimit else { return .refused }
            let isFirst = state.stores.isEmpty
            let older = state.stores.updateValue(store, forKey: call.key)
            if let older {
                guard call.isOnlyVariant else {
                    state.stores[call.key] = older
                    return .refused
                }
                state.stores[call.key] = Store(call, count: older.count + 1)
                state.bytes -= Self.weight(of: older.call)
            }
            state.bytes += weight
            return .accepted(
                isFirst: isFirst,
                isPressing: state.stores.count * 2 > Self.countLimit || state.bytes > byteLimit / 2, replaced: older)
        }
    }

    subscript(key: RequestKey) -> Store? {
        state.withLock { $0.stores[key] }
    }

    func contains(_ key: RequestKey) -> Bool { self[key] != nil }

    var isEmpty: Bool { state.withLock { $0.stores.isEmpty } }

    /// In the order of their calls, by which the layers tell which was used last.
    var keys: [RequestKey] {
        let stores = state.withLock { Array($0.stores.values) }
        return stores.sorted { $0.call.sequence < $1.call.sequence }.map(\.call.key)
    }

    /// Ends a store that the layers have now, unless another one of its key came meanwhile.
    func remove(_ store: Store) {
        state.withLock { state in
            let key = store.call.key
            guard let index = state.stores.index(forKey: key) else { return }
            let current = state.stores.values[index]
            if current === store {
                state.stores.remove(at: index)
                state.bytes -= Self.weight(of: store.call)
            } else {
                // Those that it stood for are done.
                state.stores.values[index] = Store(current.call, count: current.count - store.count)
            }
        }
    }

    /// To be freed when no lock is held any more.
    func removeAll() -> [Store] {
        state.withLock { state in
            defer {
                state.stores = [:]
                state.bytes = 0
            }
            return Array(state.stores.values)
        }
    }

    /// As `StagedWrites` weighs it.
    private static func weight(of call: StoreCall) -> Int { call.response.data.count + 1_024 }
}

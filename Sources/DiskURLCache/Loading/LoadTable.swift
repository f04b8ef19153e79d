import Dispatch
import Foundation

/// The fetches in progress: equal requests share one, and no response is refreshed twice at once.
///
/// A waiting load gets no data from the other load: when that load has ended, it looks up its key again, and finds the
/// answer if it could be stored.
package final class LoadTable: Sendable {
    enum Role {
        /// The caller fetches for all later loads, and must call `finish` or `release`.
        case leads
        /// The caller's `wake` is called once, unless it leaves before.
        case waits
        /// The caller fetches for itself only: the last answer to the key could not be shared.
        case alone
    }

    /// - Parameter mayWaitAgain: the other load was cancelled, so one of the waiting loads is to lead.
    typealias Wake = @Sendable (_ mayWaitAgain: Bool) -> Void

    private struct State {
        var fetches: [FetchIdentity: Waiters] = [:]
        /// Until when the loads of a key do not wait for each other.
        var unshared: [RequestKey: Date] = [:]
        var refreshing: Set<RequestKey> = []
    }

    /// The loads that wait for a fetch: each joins and leaves in constant time.
    private struct Waiters {
        private var wakes: [ObjectIdentifier: (place: Int, wake: Wake)] = [:]
        private var joined = 0

        var count: Int { wakes.count }
        /// In the order in which they joined.
        var inOrder: [Wake] { wakes.values.sorted { $0.place < $1.place }.map(\.wake) }

        mutating func add(_ load: ObjectIdentifier, _ wake: @escaping Wake) {
            joined += 1
            wakes[load] = (joined, wake)
        }

        mutating func remove(_ load: ObjectIdentifier) -> Bool { wakes.removeValue(forKey: load) != nil }
    }

    private let state = Mutex(State())

    /// Seconds for which a key counts as one whose answers cannot be shared (Varnish: hit-for-miss).
    static let unsharedTime: TimeInterval = 10
    /// The greatest number of such keys. Above it all are forgotten: the next answer to a key notes it again.
    static let unsharedLimit = 4_096

    /// - Parameter wake: called on `LoadDriver.lookupQueue`.
    func join(_ identity: FetchIdentity, as load: ObjectIdentifier, now: Date, wake: @escaping Wake) -> Role {
        state.withLock { state in
            if state.fetches[identity]?.add(load, wake) != nil { return .waits }
            if let until = state.unshared[identity.key] {
                let left = until.timeIntervalSince(now)
                // A clock that was set back does not count.
                if left > 0, left <= Self.unsharedTime { return .alone }
                state.unshared[identity.key] = nil
            }
            state.fetches[identity] = Waiters()
            return .leads
        }
    }

    /// Called for a load that leads, once, when its fetch has ended.
    /// - Parameter wasCancelled: if false, the waiting loads do not wait for each other again, and all continue at
    ///   once.
    func finish(_ identity: FetchIdentity, wasCancelled: Bool = false) {
        for wake in state.withLock({ $0.fetches.removeValue(forKey: identity) })?.inOrder ?? [] {
            LoadDriver.lookupQueue.async { wake(wasCancelled) }
        }
    }

    /// Called instead of `finish`: the answer cannot be shared, and for a while no load of the key waits for another.
    func release(_ identity: FetchIdentity, now: Date) {
        state.withLock { state in
            if state.unshared.count >= Self.unsharedLimit { state.unshared = [:] }
            state.unshared[identity.key] = now + Self.unsharedTime
        }
        finish(identity)
    }

    /// Called for a load that waits no more. False if it was woken, or is about to be.
    @discardableResult
    func leave(_ identity: FetchIdentity, _ load: ObjectIdentifier) -> Bool {
        state.withLock { $0.fetches[identity]?.remove(load) == true }
    }

    var waiterCount: Int { state.withLock { $0.fetches.values.reduce(0) { $0 + $1.count } } }

    // MARK: Refreshes

    /// False if a refresh of the key is in progress.
    func beginRefresh(_ key: RequestKey) -> Bool {
        state.withLock { $0.refreshing.insert(key).inserted }
    }

    package var isRefreshing: Bool { state.withLock { !$0.refreshing.isEmpty } }

    func endRefresh(_ key: RequestKey) {
        state.withLock { _ = $0.refreshing.remove(key) }
    }
}

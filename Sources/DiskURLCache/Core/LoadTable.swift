import Dispatch
import Foundation

/// The fetches in progress. Equal requests share one, and a response is not refreshed twice at the same time.
///
/// A waiting load does not get data from the other load. When that one has ended, it looks up its key again, and finds
/// the answer if it was stored.
package final class LoadTable: Sendable {
    enum Role {
        /// The caller fetches for all loads that come later, and must call `finish` or `release`.
        case leads
        /// The caller waits. Its `wake` is called once, unless it leaves before.
        case waits
        /// An answer to the key may have been stored since the caller's lookup. Its `wake` is called at once.
        case looksAgain
        /// The caller fetches for itself only, since the last answer to the key could not be shared.
        case alone
    }

    /// - Parameter mayWaitAgain: whether the other load was cancelled, so that one of the waiting loads has to lead.
    typealias Wake = @Sendable (_ mayWaitAgain: Bool) -> Void

    private struct State {
        /// The loads that wait for each fetch.
        var fetches: [FetchIdentity: Waiters<ObjectIdentifier>] = [:]
        /// Keys whose loads do not wait for each other.
        var unshared = PassingKeys()
        /// The keys whose responses are being refreshed, and since when.
        var refreshing: [RequestKey: Date] = [:]
        /// Keys whose last refresh brought nothing.
        var unrefreshed = PassingKeys()
        /// Keys whose server answered a condition by a 304 that fits nothing: it is asked without a condition, one
        /// request for each load instead of two.
        var distrusted = PassingKeys()
        /// How many fetches have ended. Keys share these counts by their hash.
        var ended = [UInt64](repeating: 0, count: 256)

        func place(of key: RequestKey) -> Int { key.hashValue & (ended.count - 1) }
    }

    /// The loads that wait for a fetch: each joins and leaves in constant time. A class, so that the list is never
    /// copied, however many wait. Used only under the table's lock.
    final class Waiters<Load: Hashable> {
        private var wakes: [Load: (place: Int, wake: Wake)] = [:]
        private var joined = 0

        var count: Int { wakes.count }
        /// In the order in which they joined.
        var inOrder: [Wake] {
            // Nearly all loads are alone, and to sort nothing takes two arrays.
            wakes.isEmpty ? [] : wakes.values.sorted { $0.place < $1.place }.map(\.wake)
        }

        func add(_ load: Load, _ wake: @escaping Wake) {
            joined += 1
            wakes[load] = (joined, wake)
        }

        func remove(_ load: Load) -> Bool { wakes.removeValue(forKey: load) != nil }
    }

    /// Keys of which something holds for some seconds after each time that it is noted.
    private struct PassingKeys {
        private var spans: [RequestKey: (start: Date, length: TimeInterval)] = [:]

        mutating func insert(_ key: RequestKey, for seconds: TimeInterval, now: Date) {
            if spans.count >= LoadTable.keyLimit { spans = [:] }
            spans[key] = (now, seconds)
        }

        mutating func contains(_ key: RequestKey, now: Date) -> Bool {
            guard !spans.isEmpty, let span = spans[key] else { return false }
            let elapsed = now.timeIntervalSince(span.start)
            // A negative time means that the clock was set back.
            if elapsed >= 0, elapsed < span.length { return true }
            spans[key] = nil
            return false
        }
    }

    private let state = Mutex(State())

    /// The seconds for which a server is asked without a condition after a 304 that fitted nothing.
    private static let distrustedTime: TimeInterval = 3_600
    /// The seconds for which a response is not refreshed after a refresh that brought nothing: as many as that one
    /// took, within these limits. A server that fails at once would be asked by each load.
    private static let unrefreshedTime: ClosedRange<TimeInterval> = 1...600
    /// The largest number of keys of which something is noted. Above it all are forgotten; the next answer to a key
    /// notes it again.
    static let keyLimit = 4_096

    /// How many fetches of a key have ended; asked before the key is looked up.
    func endedFetches(of key: RequestKey) -> UInt64 { state.withLock { $0.ended[$0.place(of: key)] } }

    /// - Parameters:
    ///   - ended: `endedFetches` before the lookup. If a fetch has ended since, its answer may be stored by now, so the
    ///     load looks up again. Nil if it has done so.
    ///   - wake: called on `CacheCore.lookupQueue`.
    func join(
        _ identity: FetchIdentity, as load: ObjectIdentifier, ended: UInt64?, now: Date, wake: @escaping Wake
    ) -> Role {
        state.withLock { state in
            if state.fetches[identity]?.add(load, wake) != nil { return .waits }
            if state.unshared.contains(identity.key, now: now) { return .alone }
            if let ended, state.ended[state.place(of: identity.key)] != ended {
                CacheCore.lookupQueue.async { wake(true) }
                return .looksAgain
            }
            state.fetches[identity] = Waiters()
            return .leads
        }
    }

    /// Called for a load that leads, once, when its fetch has ended.
    /// - Parameter wasCancelled: whether the fetch was cancelled. If not, the waiting loads do not wait again, and all
    ///   continue at once.
    func finish(_ identity: FetchIdentity, wasCancelled: Bool = false) {
        let waiters = state.withLock { state in
            state.ended[state.place(of: identity.key)] += 1
            return state.fetches.removeValue(forKey: identity)
        }
        for wake in waiters?.inOrder ?? [] {
            CacheCore.lookupQueue.async { wake(wasCancelled) }
        }
    }

    /// Called instead of `finish` if the answer cannot be shared. For a while no load of the key waits for another
    /// load.
    func release(_ identity: FetchIdentity, now: Date) {
        state.withLock { $0.unshared.insert(identity.key, for: FetchLocks.unsharedTime, now: now) }
        finish(identity)
    }

    /// Called for a load that no longer waits. False if it was woken already, or is about to be.
    @discardableResult
    func leave(_ identity: FetchIdentity, _ load: ObjectIdentifier) -> Bool {
        state.withLock { $0.fetches[identity]?.remove(load) == true }
    }

    package var waiterCount: Int { state.withLock { $0.fetches.values.reduce(0) { $0 + $1.count } } }

    // MARK: Servers whose 304 fits nothing

    func distrust(_ key: RequestKey, now: Date) {
        state.withLock { $0.distrusted.insert(key, for: Self.distrustedTime, now: now) }
    }

    func isDistrusted(_ key: RequestKey, now: Date) -> Bool {
        state.withLock { $0.distrusted.contains(key, now: now) }
    }

    // MARK: Refreshes

    /// False if a refresh of the key is in progress, or the last one brought nothing just now.
    func beginRefresh(_ key: RequestKey, now: Date) -> Bool {
        state.withLock { state in
            guard state.refreshing[key] == nil, !state.unrefreshed.contains(key, now: now) else { return false }
            state.refreshing[key] = now
            return true
        }
    }

    package var isRefreshing: Bool { state.withLock { !$0.refreshing.isEmpty } }

    /// - Parameter hasRefreshed: whether a stored response was confirmed or replaced.
    func endRefresh(_ key: RequestKey, hasRefreshed: Bool, now: Date) {
        state.withLock { state in
            guard let start = state.refreshing.removeValue(forKey: key), !hasRefreshed else { return }
            let limits = Self.unrefreshedTime
            let time = min(max(now.timeIntervalSince(start), limits.lowerBound), limits.upperBound)
            state.unrefreshed.insert(key, for: time, now: now)
        }
    }
}

/// What fetches must have in common to be shared. An object: the load that leads finds its own fetch by reference.
final class FetchIdentity: Hashable, Sendable {
    let key: RequestKey
    /// See `LoadTransport.owner`.
    private let owner: ObjectIdentifier?
    /// The number of the last removal that concerned the key. A load that begins after a removal does not wait for one
    /// that began before it, which may get the removed response.
    private let lastRemoval: UInt64
    private let fields: HeaderFields
    private let hash: Int

    init(key: RequestKey, owner: ObjectIdentifier?, lastRemoval: UInt64, fields: HeaderFields) {
        self.key = key
        self.owner = owner
        self.lastRemoval = lastRemoval
        self.fields = fields
        // A sum, since the fields may come in any order. Name and value count differently: one that is its own name
        // would otherwise add nothing.
        var hash = key.hashValue
        fields.forEachField { hash &+= TextHash.hash(ignoringCaseOf: $0) ^ TextHash.hash($1) &* 3 }
        self.hash = hash
    }

    static func == (left: FetchIdentity, right: FetchIdentity) -> Bool {
        left === right
            || left.hash == right.hash && left.key == right.key && left.owner == right.owner
                && left.lastRemoval == right.lastRemoval && left.fields == right.fields
    }

    /// That of the key and the fields: the loads of one URL may each send a field of its own, such as an identifier of
    /// the request, and none is compared with all others.
    func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

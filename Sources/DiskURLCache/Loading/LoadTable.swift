/// Which loads are under way: identical requests share one fetch, and nothing is refreshed twice at once.
final class LoadTable: Sendable {
    /// How a fetch ended that others waited for.
    enum Outcome: Sendable {
        /// Look again: what was fetched is stored, or it may not be shared and each must ask for itself.
        case ended
        /// The network failed; the others would only wait for the same.
        case failed(Swift.Error)
        /// The load was cancelled: one of the others takes its place.
        case abandoned
    }

    private struct State {
        var followers: [String: [@Sendable (Outcome) -> Void]] = [:]
        var refreshing: Set<String> = []
    }

    private let state = Mutex(State())

    /// True: the caller leads and must call `finish`. False: `follower` is called once the leader has finished.
    func join(_ identity: String, follower: @escaping @Sendable (Outcome) -> Void) -> Bool {
        state.withLock { state in
            guard state.followers[identity] != nil else {
                state.followers[identity] = []
                return true
            }
            state.followers[identity]?.append(follower)
            return false
        }
    }

    func finish(_ identity: String, _ outcome: Outcome) {
        let followers = state.withLock { $0.followers.removeValue(forKey: identity) } ?? []
        for follower in followers { follower(outcome) }
    }

    /// Loads that wait for another one.
    var followerCount: Int { state.withLock { $0.followers.values.reduce(0) { $0 + $1.count } } }

    /// False while a refresh of the key is under way.
    func beginRefresh(_ key: String) -> Bool {
        state.withLock { $0.refreshing.insert(key).inserted }
    }

    func endRefresh(_ key: String) {
        state.withLock { _ = $0.refreshing.remove(key) }
    }
}

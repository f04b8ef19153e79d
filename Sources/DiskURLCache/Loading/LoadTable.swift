import Dispatch
import Foundation

/// A load that waits for another one that fetches the same.
protocol LoadFollower: AnyObject, Sendable {
    /// Whether pieces of the body are of use to it before the end.
    var takesPieces: Bool { get }
    /// From 0 to 1, as `URLSessionTask.priority`.
    var priority: Float { get }
    /// To a leader: a load of this priority waits for it.
    func raise(to priority: Float)
    /// One call at a time, in order.
    func follow(_ news: LoadTable.News)
}

/// Which loads are under way: identical requests share one fetch, and nothing is refreshed twice at once.
final class LoadTable: Sendable {
    /// What a load hears of the one that it follows.
    enum News: Sendable {
        /// The answer as it is about to be stored; its pieces come next.
        case head(StoredResponse)
        /// - Parameters:
        ///   - offset: of the piece in the body.
        ///   - bodySoFar: with the piece, perhaps in a file; nil where it is not kept.
        case piece(Data, offset: Int, bodySoFar: (@Sendable () -> StoredBody?)? = nil)
        /// The first piece, where it is in a file: the body so far.
        case opened(OpenBody)
        /// Nothing more comes: for one that heard the head.
        case end((any Error)?)
        /// Look again: what was fetched is stored, or may not be shared, and each must ask for itself. For one that did not
        /// hear the head.
        case finished
        /// Look again, and one of those who do leads: the leader was cancelled, or failed.
        case abandoned
    }

    /// How a fetch ended that others follow.
    enum Outcome: Sendable {
        case ended
        /// What failed is the leader's request: others may have more patience.
        case failed(any Error)
    }

    enum Place {
        /// The caller leads and must call `finish`.
        case leads
        /// The caller hears how the leader fares.
        case follows
        /// The caller fetches for itself: it is too late to get what the leader got.
        case alone
    }

    /// A follower, and what it has not read yet: news come from several threads.
    private final class Seat: Sendable {
        let follower: any LoadFollower
        private let inbox = Mutex((news: [News](), isReading: false))
        /// It has the head. Guarded by the table's lock.
        nonisolated(unsafe) var hasHead = false

        init(_ follower: any LoadFollower) {
            self.follower = follower
        }

        func put(_ news: News) {
            inbox.withLock { $0.news.append(news) }
        }

        /// Not under the table's lock: the follower acts.
        func read() {
            while true {
                let news: News? = inbox.withLock { inbox in
                    guard !inbox.isReading, !inbox.news.isEmpty else { return nil }
                    inbox.isReading = true
                    return inbox.news.removeFirst()
                }
                guard let news else { return }
                follower.follow(news)
                inbox.withLock { $0.isReading = false }
            }
        }
    }

    /// A load that leads, and those that follow it.
    private struct Flight {
        weak var leader: (any LoadFollower)?
        var seats: [Seat] = []
        /// Set once the answer is known to be one that others may have.
        var head: StoredResponse?
        /// The body so far; nil where it is not kept.
        var bodySoFar: (@Sendable () -> StoredBody?)?
        /// What still comes serves only those that have the head.
        var isClosed = false
        /// When something came last.
        var lastNews = DispatchTime.now()
        /// The leader's own client has gone; this ends the load once no follower is left.
        var abandon: (@Sendable () -> Void)?
    }

    private struct State {
        var flights: [String: Flight] = [:]
        var refreshing: Set<String> = []
    }

    private let state = Mutex(State())

    /// - Parameter patience: seconds. Where nothing of a body has come for as long, it may never end, and whoever joined now would wait
    ///   for it as all before: it fetches for itself, and what it gets ends that for those that come later.
    func join(_ identity: String, _ follower: any LoadFollower, patience: TimeInterval) -> Place {
        let seat = Seat(follower)
        var leader: (any LoadFollower)?
        let place: Place = state.withLock { state in
            guard let flight = state.flights[identity] else {
                state.flights[identity] = Flight(leader: follower)
                return .leads
            }
            if flight.isClosed { return .alone }
            // Before the head the leader has a timeout of its own.
            if flight.head != nil, flight.lastNews + max(0, patience) <= .now() { return .alone }
            if follower.takesPieces, let head = flight.head {
                guard let body = flight.bodySoFar?() else { return .alone }
                seat.hasHead = true
                seat.put(.head(head))
                switch body {
                case .whole(let data): if !data.isEmpty { seat.put(.piece(data, offset: 0)) }
                case .open(let body): if !body.isEmpty { seat.put(.opened(body)) }
                }
            }
            state.flights[identity]?.seats.append(seat)
            leader = flight.leader
            return .follows
        }
        leader?.raise(to: follower.priority)
        seat.read()
        return place
    }

    /// From a leader: its answer is one that others may have.
    /// - Parameter bodySoFar: for those that join later; nil once the body is not kept.
    func share(_ identity: String, _ head: StoredResponse, bodySoFar: @escaping @Sendable () -> StoredBody?) {
        tell(identity) { flight in
            flight.head = head
            flight.lastNews = .now()
            flight.bodySoFar = bodySoFar
            for seat in flight.seats where seat.follower.takesPieces {
                seat.hasHead = true
                seat.put(.head(head))
            }
            return false
        }
    }

    func share(_ identity: String, _ piece: Data, offset: Int) {
        tell(identity) { flight in
            flight.lastNews = .now()
            for seat in flight.seats where seat.hasHead {
                seat.put(.piece(piece, offset: offset, bodySoFar: flight.bodySoFar))
            }
            return false
        }
    }

    /// From a leader whose answer can be stored by nobody: those that wait need not. True where nobody follows any more:
    /// then the caller leads no longer.
    func release(_ identity: String) -> Bool {
        var isOver = false
        tell(identity) { flight in
            for seat in flight.seats where !seat.hasHead { seat.put(.finished) }
            flight.seats.removeAll { !$0.hasHead }
            flight.isClosed = true
            isOver = flight.seats.isEmpty
            return isOver
        }
        return isOver
    }

    /// From a leader, once.
    func finish(_ identity: String, _ outcome: Outcome) {
        tell(identity) { flight in
            for seat in flight.seats {
                switch (outcome, seat.hasHead) {
                case (.ended, true): seat.put(.end(nil))
                case (.failed(let error), true): seat.put(.end(error))
                case (.ended, false): seat.put(.finished)
                case (.failed, false): seat.put(.abandoned)
                }
            }
            return true
        }
    }

    /// From a leader whose client has gone. True where others have heard the head: then the load goes on for them, and
    /// `abandon` is called when none is left.
    func goesOn(_ identity: String, abandon: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.flights[identity]?.seats.contains(where: \.hasHead) == true else { return false }
            state.flights[identity]?.abandon = abandon
            return true
        }
    }

    /// From a follower that has ended by itself.
    func leave(_ identity: String, _ follower: any LoadFollower) {
        let abandon: (@Sendable () -> Void)? = state.withLock { state in
            guard var flight = state.flights[identity] else { return nil }
            flight.seats.removeAll { $0.follower === follower }
            state.flights[identity] = flight
            return flight.seats.isEmpty ? flight.abandon : nil
        }
        abandon?()
    }

    /// - Parameter change: returns whether the flight is over.
    private func tell(_ identity: String, _ change: (inout Flight) -> Bool) {
        let seats: [Seat] = state.withLock { state in
            guard var flight = state.flights[identity] else { return [] }
            let seats = flight.seats
            state.flights[identity] = change(&flight) ? nil : flight
            return seats
        }
        for seat in seats { seat.read() }
    }

    /// Whether other loads want what a leader gets.
    func isWaitedFor(_ identity: String) -> Bool {
        state.withLock { state in
            guard let flight = state.flights[identity] else { return false }
            return !flight.seats.isEmpty
        }
    }

    /// Loads that wait for another one.
    var followerCount: Int { state.withLock { $0.flights.values.reduce(0) { $0 + $1.seats.count } } }

    // MARK: Refreshes

    /// False while a refresh of the key is under way.
    func beginRefresh(_ key: String) -> Bool {
        state.withLock { $0.refreshing.insert(key).inserted }
    }

    var isRefreshing: Bool { state.withLock { !$0.refreshing.isEmpty } }

    func endRefresh(_ key: String) {
        state.withLock { _ = $0.refreshing.remove(key) }
    }
}

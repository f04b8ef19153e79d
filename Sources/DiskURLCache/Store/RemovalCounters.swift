import Foundation

/// Knows whether something was removed since a load sent its request: the answer is then not stored (RFC 9111 §4.4).
///
/// Removals and the tickets of loads are numbered together. A table of fixed size has the number of the last removal of
/// each resource. If several resources share a place in the table, an answer may not be stored although it was not
/// removed, which leads to a miss later. No removal is forgotten.
final class RemovalCounters: Sendable {
    /// The removals of the resources that share a place in the table.
    private struct Place {
        /// The resource that was removed last, and the number of the removal.
        var resource: UInt64 = 0
        var last: UInt64 = 0
        /// The last removal of the other resources of the place.
        var others: UInt64 = 0
    }

    /// A removal, or a mark, of many entries.
    private struct Group {
        let number: UInt64
        let criteria: EntryCriteria
        /// If it marks the entries as stale instead of removing them: since when they are.
        var staleSince: Date?
    }

    /// Guarded by the lock around it.
    private struct State {
        var number: UInt64 = 0
        /// Made at the first removal.
        var places: [Place] = []
        /// The last store of another cache of those that share a place. Made at the first one.
        var storesElsewhere: [UInt64] = []
        /// The last removal of everything, or of a group that is no longer in `groups`.
        var everything: UInt64 = 0
        /// The last mark that is no longer in `groups`.
        var mark: UInt64 = 0
        var groups: [Group] = []
        /// Removals and marks that are in progress.
        var groupsUnderWay: [Group] = []
        var own = RecentRemovals()

        mutating func next() -> UInt64 {
            number += 1
            return number
        }
    }

    private static let placeCount = 2_048
    private static let groupLimit = 16
    private let state = Mutex(State(), isContended: true)

    /// Taken when a request is sent, or when a store begins.
    func ticket(at now: Date) -> StoreTicket {
        let number = state.withLock { $0.next() }
        return StoreTicket(number: number, askedAt: now)
    }

    // MARK: Removals

    /// Notes that the entries of a resource are removed, including those of other resources with the same hash.
    /// - Parameters:
    ///   - key: the only key of the resource of which this process removes what is on disk; nil if it removes all.
    ///   - uri: the URL whose keys it removes, then; another one may have the same hash.
    ///   - now: if this process removes them.
    func note(resource: UInt64, of key: KeyName? = nil, uri: String? = nil, at now: Date? = nil) {
        state.withLock { state in
            if let now { state.own.note(RecentRemovals.Removal(key: key, uri: uri, at: now)) }
            let number = state.next()
            note(number, of: resource, &state)
        }
    }

    /// Notes that an answer forbids storing the resource, so that older answers are not stored either. Answers to later
    /// requests may be.
    func note(resource: UInt64, asOf ticket: StoreTicket) {
        state.withLock { note(ticket.number, of: resource, &$0) }
    }

    private func note(_ number: UInt64, of resource: UInt64, _ state: inout State) {
        if state.places.isEmpty { state.places = Array(repeating: Place(), count: Self.placeCount) }
        let index = Self.index(of: resource)
        if state.places[index].resource != resource {
            let old = state.places[index]
            state.places[index] = Place(resource: resource, others: max(old.last, old.others))
        }
        state.places[index].last = max(state.places[index].last, number)
    }

    /// Notes that the matching entries are being removed, which takes a while. None of them may be changed before
    /// `end`.
    /// - Returns: the number of the removal.
    func begin(matching criteria: EntryCriteria, at now: Date) -> UInt64 {
        state.withLock { state in
            state.own.note(criteria, at: now)
            return begin(Group(number: state.next(), criteria: criteria), &state)
        }
    }

    /// Notes that the matching entries are being marked as stale, which takes a while. An answer to an older request is
    /// not stored any more, and a change that is made before `end` brings the mark itself.
    /// - Returns: the number of the mark.
    func begin(markingStale criteria: EntryCriteria, since time: Date) -> UInt64 {
        state.withLock { state in
            begin(Group(number: state.next(), criteria: criteria, staleSince: time), &state)
        }
    }

    private func begin(_ group: Group, _ state: inout State) -> UInt64 {
        if state.groups.count == Self.groupLimit {
            let oldest = state.groups.removeFirst()
            if oldest.staleSince == nil { state.everything = oldest.number } else { state.mark = oldest.number }
        }
        state.groups.append(group)
        state.groupsUnderWay.append(group)
        return group.number
    }

    func end(_ number: UInt64) { state.withLock { $0.groupsUnderWay.removeAll { $0.number == number } } }

    /// What is being done to an entry by a removal or a mark that is in progress.
    enum UnderWay: Equatable {
        case nothing
        case removal
        case mark(since: Date)
    }

    func underWay(_ key: RequestKey, _ metadata: EntryMetadata) -> UnderWay {
        state.withLock { state in
            var mark: Date?
            for group in state.groupsUnderWay where group.criteria.matches(key, metadata) {
                guard let staleSince = group.staleSince else { return .removal }
                mark = staleSince
            }
            return mark.map { .mark(since: $0) } ?? .nothing
        }
    }

    /// - Parameter now: if this process removes it.
    func noteEverything(at now: Date? = nil) {
        state.withLock { state in
            if let now { state.own.noteEverything(at: now) }
            state.everything = state.next()
            state.groups = []
        }
    }

    /// Notes what another cache has reported.
    func note(_ change: DirectoryChange) {
        guard let resource = change.resource else { return change.isRemoval ? noteEverything() : () }
        if change.isRemoval { return note(resource: resource) }
        state.withLock { state in
            if state.storesElsewhere.isEmpty {
                state.storesElsewhere = Array(repeating: 0, count: Self.placeCount)
            }
            state.storesElsewhere[Self.index(of: resource)] = state.next()
        }
    }

    // MARK: Questions

    /// What has happened to an entry since its load sent the request.
    enum Change {
        case none
        /// It was marked as stale. What is stored already has the mark.
        case mark
        case removal
    }

    func change(of key: RequestKey, _ metadata: EntryMetadata, since ticket: StoreTicket) -> Change {
        state.withLock { Self.change(of: key, metadata, since: ticket, $0) }
    }

    private static func change(
        of key: RequestKey, _ metadata: EntryMetadata, since ticket: StoreTicket, _ state: State
    ) -> Change {
        let place = place(of: key.resource, state)
        if max(state.everything, place.others, place.last) > ticket.number { return .removal }
        var change = state.mark > ticket.number ? Change.mark : .none
        for group in state.groups where group.number > ticket.number && group.criteria.matches(key, metadata) {
            if group.staleSince == nil { return .removal }
            change = .mark
        }
        return change
    }

    /// Whether an entry that was just stored was removed since its store began, and whether another cache has stored
    /// something for its key; sometimes true although none has.
    func afterStore(
        of key: RequestKey, _ metadata: EntryMetadata, since ticket: StoreTicket
    ) -> (isRemoved: Bool, isStoredElsewhere: Bool) {
        state.withLock { state in
            let stores = state.storesElsewhere
            return (
                Self.change(of: key, metadata, since: ticket, state) == .removal,
                !stores.isEmpty && stores[Self.index(of: key.resource)] > ticket.number
            )
        }
    }

    /// Whether an entry of a key was removed since its load sent the request.
    func wasRemoved(_ key: RequestKey, _ metadata: EntryMetadata, since ticket: StoreTicket) -> Bool {
        change(of: key, metadata, since: ticket) == .removal
    }

    /// Whether a record that was found on disk was removed by this process: another process that was writing it at that
    /// moment has not noticed the removal yet, and will remove it soon.
    /// - Parameter now: the time of the clock that gives responses their times.
    func wasRemovedHere(_ key: RequestKey, _ metadata: EntryMetadata, now: Date) -> Bool {
        state.withLock { $0.own.concern(key, metadata, now: now) }
    }

    /// The number of the last removal that may have concerned an entry of a key; sometimes that of a later one.
    func last(concerning key: RequestKey) -> UInt64 {
        state.withLock { state in
            let place = Self.place(of: key.resource, state)
            let ofPlace = max(place.last, place.others)
            let ofAll = max(state.everything, state.mark, state.groups.last?.number ?? 0)
            return max(ofPlace, ofAll)
        }
    }

    /// If a different resource of the place was removed last, the number of the others is used.
    private static func place(of resource: UInt64, _ state: State) -> Place {
        guard !state.places.isEmpty else { return Place() }
        let place = state.places[index(of: resource)]
        return place.resource == resource ? place : Place(others: place.others)
    }

    private static func index(of resource: UInt64) -> Int { Int(resource % UInt64(placeCount)) }
}

/// What this process itself has removed in the last seconds, exactly: a record that is taken for removed is deleted, so
/// that a removal of something else must not be taken for one of it.
private struct RecentRemovals {
    /// The seconds within which another process that has written a record checks whether the record was removed.
    private static let patience = 2.0

    struct Removal {
        /// Nil if all keys of a URL were removed.
        let key: KeyName?
        let uri: String?
        let at: Date
    }

    /// A list, since each removal adds to it, and only lookups among other caches ask it.
    private var resources: [Removal] = []
    private var groups: [(criteria: EntryCriteria, at: Date)] = []
    private var everything = Date.distantPast
    /// The number of resources above which those are dropped that were removed long ago.
    private var limit = 64

    mutating func note(_ removal: Removal) {
        if let last = resources.last, !Self.isRecent(last.at, removal.at) { resources = [] }
        resources.append(removal)
        guard resources.count > limit else { return }
        resources.removeAll { !Self.isRecent($0.at, removal.at) }
        limit = max(64, 2 * resources.count)
    }

    mutating func note(_ criteria: EntryCriteria, at now: Date) {
        groups.removeAll { !Self.isRecent($0.at, now) }
        groups.append((criteria, now))
    }

    mutating func noteEverything(at now: Date) { everything = now }

    func concern(_ key: RequestKey, _ metadata: EntryMetadata, now: Date) -> Bool {
        let asked = metadata.http?.requestTime ?? metadata.storedAt
        func isAfter(_ removedAt: Date) -> Bool { asked < removedAt && Self.isRecent(removedAt, now) }
        if isAfter(everything) { return true }
        for removal in resources.reversed() {
            // Those before it are older.
            guard Self.isRecent(removal.at, now) else { break }
            let isConcerned = removal.key.map { $0 == key.name } ?? (removal.uri == key.uri)
            if isConcerned, isAfter(removal.at) { return true }
        }
        return groups.contains { isAfter($0.at) && $0.criteria.matches(key, metadata) }
    }

    /// The clock may have been set back since.
    private static func isRecent(_ time: Date, _ now: Date) -> Bool {
        abs(now.timeIntervalSince(time)) < patience
    }
}

/// Taken by a load when it asks the network, and kept until it stores the answer.
package struct StoreTicket: Sendable {
    /// Tickets and removals are numbered together, from 1 on.
    let number: UInt64
    let askedAt: Date
}

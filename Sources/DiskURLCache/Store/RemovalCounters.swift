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
        /// The ticket of the load whose answer caused the last removal, and the removal before that: the answer itself
        /// may be stored.
        var remover: UInt64 = 0
        var before: UInt64 = 0
        /// The last removal of the other resources of the place.
        var others: UInt64 = 0
        /// When this process last removed entries of the place; needed for some seconds.
        var removedAt = Date.distantPast
    }

    /// A removal of many entries.
    private struct Group {
        let number: UInt64
        let criteria: EntryCriteria
        var removedAt = Date.distantPast
    }

    /// Guarded by the lock around it.
    private struct State {
        var number: UInt64 = 0
        /// Made at the first removal.
        var places: [Place] = []
        /// The last removal of everything, or of a group that is no longer in `groups`.
        var everything: UInt64 = 0
        var everythingRemovedAt = Date.distantPast
        var groups: [Group] = []
        /// Removals that are in progress.
        var groupsUnderWay: [Group] = []

        mutating func next() -> UInt64 {
            number += 1
            return number
        }
    }

    private static let placeCount = 2_048
    private static let groupLimit = 16
    /// The seconds within which another process that has written a record checks whether the record was removed.
    private static let patience = 2.0
    private let state = Mutex(State(), isContended: true)

    /// Taken when a request is sent, or when a store begins.
    func ticket(at now: Date) -> StoreTicket {
        let number = state.withLock { $0.next() }
        return StoreTicket(number: number, askedAt: now)
    }

    // MARK: Removals

    /// Notes that the entries of a resource are removed, including those of other resources with the same hash.
    /// - Parameters:
    ///   - remover: the load whose answer removes them; nil if there is none.
    ///   - now: if this process removes them.
    func note(resource: UInt64, by remover: StoreTicket? = nil, at now: Date = .distantPast) {
        state.withLock { state in
            let number = state.next()
            change(resource, &state) { place in
                if place.remover != remover?.number { place.before = place.last }
                place.remover = remover?.number ?? 0
                place.last = number
                place.removedAt = max(place.removedAt, now)
            }
        }
    }

    /// Notes that an answer forbids storing the resource, so that older answers are not stored either. Answers to later
    /// requests may be.
    func note(resource: UInt64, asOf ticket: StoreTicket) {
        state.withLock { state in
            change(resource, &state) { place in
                guard place.last < ticket.number else { return }
                place.remover = 0
                place.before = place.last
                place.last = ticket.number
            }
        }
    }

    private func change(_ resource: UInt64, _ state: inout State, _ change: (inout Place) -> Void) {
        if state.places.isEmpty { state.places = Array(repeating: Place(), count: Self.placeCount) }
        let index = Self.index(of: resource)
        if state.places[index].resource != resource {
            let old = state.places[index]
            state.places[index] = Place(
                resource: resource, others: max(old.last, old.others), removedAt: old.removedAt)
        }
        change(&state.places[index])
    }

    /// Notes that the matching entries are being removed, which takes a while. None of them may be changed before
    /// `end`.
    /// - Returns: the number of the removal.
    func begin(matching criteria: EntryCriteria, at now: Date) -> UInt64 {
        state.withLock { state in
            let group = add(Group(number: state.next(), criteria: criteria, removedAt: now), to: &state)
            state.groupsUnderWay.append(group)
            return group.number
        }
    }

    /// Notes that the matching entries are stale from now on: an answer to an older request is not stored any more.
    func note(staleMatching criteria: EntryCriteria) {
        state.withLock { state in
            let group = Group(number: state.next(), criteria: criteria)
            _ = add(group, to: &state)
        }
    }

    private func add(_ group: Group, to state: inout State) -> Group {
        if state.groups.count == Self.groupLimit {
            let oldest = state.groups.removeFirst()
            state.everything = oldest.number
            state.everythingRemovedAt = max(state.everythingRemovedAt, oldest.removedAt)
        }
        state.groups.append(group)
        return group
    }

    func end(_ number: UInt64) { state.withLock { $0.groupsUnderWay.removeAll { $0.number == number } } }

    func isBeingRemoved(_ key: RequestKey, _ metadata: EntryMetadata) -> Bool {
        state.withLock { $0.groupsUnderWay.contains { $0.criteria.matches(key, metadata) } }
    }

    func noteEverything(at now: Date = .distantPast) {
        state.withLock { state in
            state.everything = state.next()
            let times = state.groups.map(\.removedAt) + [state.everythingRemovedAt, now]
            state.everythingRemovedAt = times.max() ?? now
            state.groups = []
        }
    }

    /// Notes a removal that another cache has reported.
    func note(_ change: DirectoryChange) {
        if let resource = change.resource { note(resource: resource) } else { noteEverything() }
    }

    // MARK: Questions

    /// Whether an entry of a key was removed since its load sent the request.
    func wasRemoved(_ key: RequestKey, _ metadata: EntryMetadata, since ticket: StoreTicket) -> Bool {
        state.withLock { state in
            let place = Self.place(of: key.resource, state)
            if max(state.everything, place.others) > ticket.number { return true }
            let last = place.remover == ticket.number ? place.before : place.last
            if last > ticket.number { return true }
            return state.groups.contains { $0.number > ticket.number && $0.criteria.matches(key, metadata) }
        }
    }

    /// Whether a record that was found on disk was removed by this process: another process that was writing it at that
    /// moment has not noticed the removal yet, and will remove it soon.
    /// - Parameter now: the time of the clock that gives responses their times.
    func wasRemovedHere(_ key: RequestKey, _ metadata: EntryMetadata, now: Date) -> Bool {
        let asked = metadata.http?.requestTime ?? metadata.storedAt
        func isOlder(_ removedAt: Date) -> Bool {
            asked < removedAt && abs(now.timeIntervalSince(removedAt)) < Self.patience
        }
        return state.withLock { state in
            if isOlder(state.everythingRemovedAt) { return true }
            if !state.places.isEmpty {
                let place = state.places[Self.index(of: key.resource)]
                if isOlder(place.removedAt) { return true }
            }
            return state.groups.contains { isOlder($0.removedAt) && $0.criteria.matches(key, metadata) }
        }
    }

    /// The number of the last removal that may have concerned an entry of a key; sometimes that of a later one.
    func last(concerning key: RequestKey) -> UInt64 {
        state.withLock { state in
            let place = Self.place(of: key.resource, state)
            let ofPlace = max(place.last, place.others)
            let ofAll = max(state.everything, state.groups.last?.number ?? 0)
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

/// Taken by a load when it asks the network, and kept until it stores the answer.
package struct StoreTicket: Sendable {
    /// Tickets and removals are numbered together, from 1 on.
    let number: UInt64
    let askedAt: Date
}

import Foundation

/// Recent removals, so that an answer that was under way during a removal is not stored after it (RFC 9111 §4.4).
///
/// A load takes a ticket when it asks the network, and hands it over with the answer.
final class RemovalHistory: Sendable {
    enum Removal: Sendable {
        case key(RequestKey)
        /// - Parameter by: the ticket of the load whose answer removed: that answer is not concerned.
        case matching(EntryCriteria, by: UInt64?)
        /// By another cache of the directory.
        case changed(DirectoryChange)
        case everything
        /// By an answer that took the place of what was stored and is not stored itself: what was asked for before it is older,
        /// and is not to come back.
        case superseded(RequestKey, asked: UInt64)
    }

    /// Guarded by the lock around it.
    private struct State {
        /// The number of the first one in the list.
        var start: UInt64 = 0
        var removals: [Removal] = []
        var last = LastRemovals()
        var lastTicket: UInt64 = 0
    }

    /// More removals are not remembered. An answer with an older ticket is not stored.
    private static let limit = 1_024
    private let state = Mutex(State())

    /// The number of the next removal.
    var next: UInt64 { state.withLock { $0.start + UInt64($0.removals.count) } }

    func ticket(at now: Date) -> StoreTicket {
        state.withLock { state in
            state.lastTicket += 1
            return StoreTicket(
                number: state.lastTicket, askedAt: now, removal: state.start + UInt64(state.removals.count))
        }
    }

    func note(_ removal: Removal) {
        state.withLock { state in
            if case .everything = removal {
                state.start += UInt64(state.removals.count)
                state.removals = []
            } else if state.removals.count == Self.limit {
                state.removals.removeFirst(Self.limit / 2)
                state.start += UInt64(Self.limit / 2)
            }
            state.removals.append(removal)
            state.last.note(removal, number: state.start + UInt64(state.removals.count))
        }
    }

    /// The number of the last removal that may have concerned an entry of a key, whatever its metadata. Now and then it is a later one.
    func last(concerning key: RequestKey) -> UInt64 {
        let resource = key.resource
        return state.withLock { $0.last.number(resource: resource) }
    }

    /// Whether an entry of a key was removed since that number was the next.
    /// - Parameter ticket: the number of the ticket of the entry's load; nil where no load brings it.
    func concerns(_ key: RequestKey, _ metadata: EntryMetadata, since number: UInt64, ticket: UInt64? = nil) -> Bool {
        state.withLock { state in
            guard number >= state.start else { return true }
            return state.removals.dropFirst(Int(number - state.start)).contains { removal in
                switch removal {
                case .key(let removed): removed == key
                case .matching(let criteria, let own): (own == nil || own != ticket) && criteria.matches(key, metadata)
                case .changed(let change): change.removes(key.name)
                case .everything: true
                case .superseded(let removed, let asked):
                    removed == key && ticket.map { $0 < asked } == true
                }
            }
        }
    }
}

/// When something was removed last, in little memory: many resources share a number.
private struct LastRemovals {
    private static let count: UInt64 = 256
    private var ofAll: UInt64 = 0
    private var byResource = [UInt64](repeating: 0, count: Int(count))

    mutating func note(_ removal: RemovalHistory.Removal, number: UInt64) {
        let resource: UInt64? =
            switch removal {
            case .key(let key), .superseded(let key, _): key.resource
            case .changed(.removed(let name)), .changed(.stored(let name)): name.resource
            case .changed(.removedResource(let resource)): resource
            case .matching(let criteria, _): criteria.resource
            case .everything, .changed(.removedAll): nil
            }
        if let resource { byResource[Int(resource % Self.count)] = number } else { ofAll = number }
    }

    func number(resource: UInt64) -> UInt64 { max(ofAll, byResource[Int(resource % Self.count)]) }
}

/// Taken by a load when it asks the network, and kept until it stores the answer.
package struct StoreTicket: Sendable {
    /// Tickets are numbered in the order in which they were taken.
    let number: UInt64
    let askedAt: Date
    /// The number of the first removal after the ticket was taken.
    let removal: UInt64
}

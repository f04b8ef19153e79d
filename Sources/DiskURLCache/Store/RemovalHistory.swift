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
        case shared(SharedRemoval)
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
        let (resource, name) = (key.uriHash, key.name)
        return state.withLock { $0.last.number(resource: resource, name: name) }
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
                case .shared(let removal):
                    removal.concerns(key.name, metadata, uriHash: key.uriHash, hostHash: key.hostHash)
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
    private static let count = 256
    private var ofAll: UInt64 = 0
    private var byResource = [UInt64](repeating: 0, count: count)
    private var byName = [UInt64](repeating: 0, count: count)

    mutating func note(_ removal: RemovalHistory.Removal, number: UInt64) {
        switch removal {
        case .key(let key), .superseded(let key, _): byResource[Self.place(key.uriHash)] = number
        case .shared(.key(let name)), .shared(.variant(let name)): byName[Self.place(name.low)] = number
        case .matching(let criteria, _): note(resource: criteria.uriHash, number)
        case .shared(.matching(let criteria)): note(resource: criteria.uriHash, number)
        case .everything, .shared(.everything): ofAll = number
        }
    }

    private mutating func note(resource: UInt32?, _ number: UInt64) {
        if let resource { byResource[Self.place(resource)] = number } else { ofAll = number }
    }

    func number(resource: UInt32, name: KeyName) -> UInt64 {
        max(ofAll, byResource[Self.place(resource)], byName[Self.place(name.low)])
    }

    private static func place(_ hash: some BinaryInteger) -> Int { Int(hash % .init(count)) }
}

/// Taken by a load when it asks the network, and kept until it stores the answer.
struct StoreTicket: Sendable {
    /// Tickets are numbered in the order in which they were taken.
    let number: UInt64
    let askedAt: Date
    /// The number of the first removal after the ticket was taken.
    let removal: UInt64
}

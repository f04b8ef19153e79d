import Foundation

/// Recent removals, so that an answer that arrives after a removal, and was asked for before, is not stored (RFC 9111
/// §4.4).
///
/// A load takes a ticket when it asks the network, and hands it over with the answer.
final class RemovalHistory: Sendable {
    enum Removal: Sendable {
        /// - Parameter before: the ticket of the load whose answer removed it: what was asked for later may be stored.
        case key(RequestKey, before: UInt64 = .max)
        /// All responses of a URL, in its canonical spelling.
        /// - Parameter by: the ticket of the load whose answer removed it: that answer may be stored.
        case uri(String, by: UInt64?)
        case matching(EntryCriteria)
        case changed(DirectoryChange)

        /// - Parameter metadata: nil for any.
        func concerns(_ key: RequestKey, _ metadata: EntryMetadata?, ticket: UInt64) -> Bool {
            switch self {
            case .key(let removed, let before): removed == key && ticket < before
            case .uri(let removed, let remover): removed == key.uri && ticket != remover
            case .matching(let criteria): metadata.map { criteria.matches(key, $0) } ?? true
            case .changed(let change): change.concerns(key.name)
            }
        }
    }

    /// Guarded by the lock around it.
    private struct State {
        /// The number of the first one in the list.
        var start: UInt64 = 0
        var removals: [Removal] = []
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
            if state.removals.count == Self.limit {
                state.removals.removeFirst(Self.limit / 2)
                state.start += UInt64(Self.limit / 2)
            }
            state.removals.append(removal)
        }
    }

    /// The number after the last removal that may have concerned an entry of a key, whatever its metadata. Now and then
    /// it is a later one.
    func last(concerning key: RequestKey) -> UInt64 {
        state.withLock { state in
            let last = state.removals.lastIndex { $0.concerns(key, nil, ticket: 0) }
            return state.start + UInt64(last.map { $0 + 1 } ?? 0)
        }
    }

    /// Whether an entry of a key was removed since that number was the next.
    /// - Parameter ticket: the number of the ticket of the entry's load; 0 if no load brings it.
    func concerns(_ key: RequestKey, _ metadata: EntryMetadata, since number: UInt64, ticket: UInt64) -> Bool {
        state.withLock { state in
            guard number >= state.start else { return true }
            return state.removals.dropFirst(Int(number - state.start)).contains {
                $0.concerns(key, metadata, ticket: ticket)
            }
        }
    }
}

/// Taken by a load when it asks the network, and kept until it stores the answer.
package struct StoreTicket: Sendable {
    /// Tickets are numbered from 1 in the order in which they were taken.
    let number: UInt64
    let askedAt: Date
    /// The number of the first removal after the ticket was taken.
    let removal: UInt64
}

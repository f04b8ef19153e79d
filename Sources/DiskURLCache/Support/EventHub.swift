import Foundation

/// Hands events to whoever listens, and counts. An event is not even made while nobody listens.
final class EventHub: Sendable {
    private struct State {
        var listeners: [UInt64: @Sendable (DiskURLCache.Event) -> Void] = [:]
        var nextListener: UInt64 = 0
    }

    private let state = Mutex(State())
    /// Counted apart and added up when asked: threads that look up different keys do not wait for each other.
    private let counts = (0..<8).map { _ in Mutex(DiskURLCache.Statistics(), isContended: true) }

    var statistics: DiskURLCache.Statistics {
        counts.reduce(into: DiskURLCache.Statistics()) { sum, count in count.withLock { sum.add($0) } }
    }

    func count(_ change: (inout DiskURLCache.Statistics) -> Void) {
        counts[0].withLock(change)
    }

    func count(for key: RequestKey, _ change: (inout DiskURLCache.Statistics) -> Void) {
        counts[key.stripe(of: counts.count)].withLock(change)
    }

    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    func emit(_ event: @autoclosure () -> DiskURLCache.Event) {
        let listeners = state.withLock { $0.listeners }
        guard !listeners.isEmpty else { return }
        let event = event()
        for listener in listeners.values { listener(event) }
    }

    func addListener(_ listener: @escaping @Sendable (DiskURLCache.Event) -> Void) -> UInt64 {
        state.withLock { state in
            state.nextListener += 1
            state.listeners[state.nextListener] = listener
            return state.nextListener
        }
    }

    func removeListener(_ id: UInt64) {
        state.withLock { _ = $0.listeners.removeValue(forKey: id) }
    }

    /// The newest 1,000 events wait for a slow reader; older ones are dropped rather than held without bound.
    func stream() -> AsyncStream<DiskURLCache.Event> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1_000)) { continuation in
            let id = addListener { continuation.yield($0) }
            continuation.onTermination = { [weak self] _ in self?.removeListener(id) }
        }
    }
}

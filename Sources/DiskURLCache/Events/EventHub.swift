import Foundation

/// Sends events to listeners, and counts. Without a listener no events are made.
package final class EventHub: Sendable {
    private struct Listener {
        var receive: @Sendable (DiskURLCache.Event) -> Void
        /// Called when there are no more events.
        var end: @Sendable () -> Void
    }

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var nextListener: UInt64 = 0
        /// The problems that were logged, and those that were sent to a listener.
        var logged: Set<DiskURLCache.Error> = []
        var sent: Set<DiskURLCache.Error> = []
    }

    private let state = Mutex(State())
    private let log: @Sendable (String) -> Void
    /// Several sets of counters, which are added up when they are read, so that threads that look up different keys do
    /// not wait for each other.
    private let counts = (0..<8).map { _ in Mutex(DiskURLCache.Statistics(), isContended: true) }

    init(log: @escaping @Sendable (String) -> Void = SystemLog.warn) {
        self.log = log
    }

    var statistics: DiskURLCache.Statistics {
        counts.reduce(into: DiskURLCache.Statistics()) { sum, count in count.withLock { sum.add($0) } }
    }

    func count(for key: RequestKey? = nil, _ change: (inout DiskURLCache.Statistics) -> Void) {
        counts[(key?.hashValue ?? 0) & (counts.count - 1)].withLock(change)
    }

    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    func emit(_ event: @autoclosure () -> DiskURLCache.Event) {
        let listeners = state.withLock { $0.listeners }
        guard !listeners.isEmpty else { return }
        let event = event()
        for listener in listeners.values { listener.receive(event) }
    }

    /// Logs a problem once, and sends it once, when it occurs while there is a listener.
    func report(once problem: DiskURLCache.Error) {
        let occasion = problem.occasion
        let mustLog = state.withLock { $0.logged.insert(occasion).inserted }
        let mustSend = state.withLock { !$0.listeners.isEmpty && $0.sent.insert(occasion).inserted }
        // The path of a URL may say who the user is.
        if mustLog { log(occasion.description) }
        if mustSend { emit(.problem(problem)) }
    }

    package func addListener(
        _ receive: @escaping @Sendable (DiskURLCache.Event) -> Void, end: @escaping @Sendable () -> Void = {}
    ) -> UInt64 {
        state.withLock { state in
            state.nextListener += 1
            state.listeners[state.nextListener] = Listener(receive: receive, end: end)
            return state.nextListener
        }
    }

    package func removeListener(_ id: UInt64) {
        // The listener is released outside of the lock, since it may hold the last reference to an object.
        _ = state.withLock { $0.listeners.removeValue(forKey: id) }
    }

    /// Ends the streams: a loop over one would otherwise wait for ever.
    deinit {
        for listener in state.withLock({ $0.listeners.values }) { listener.end() }
    }

    /// For a slow reader the newest 1,000 events are kept. Older ones are dropped and counted, so that memory stays
    /// bounded.
    func stream() -> AsyncStream<DiskURLCache.Event> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1_000)) { continuation in
            let id = addListener(
                { [weak self] event in
                    if case .dropped = continuation.yield(event) { self?.count { $0.droppedEvents += 1 } }
                }, end: { continuation.finish() })
            continuation.onTermination = { [weak self] _ in self?.removeListener(id) }
        }
    }
}

import AsyncHTTPClient
import NIOConcurrencyHelpers

/// The requests that still need the client: those whose responses are neither read to the end nor dropped.
final class OpenRequests: Sendable {
    private struct State {
        var count = 0
        var isClosed = false
        var waiting: [AsyncStream<Void>.Continuation] = []
    }

    /// One request. It ends at the latest when its last reference is released.
    final class Request: Sendable {
        private let owner: OpenRequests
        private let isOpen = NIOLockedValueBox(true)

        fileprivate init(_ owner: OpenRequests) { self.owner = owner }

        deinit { end() }

        func end() {
            let ends = isOpen.withLockedValue { isOpen in
                defer { isOpen = false }
                return isOpen
            }
            if ends { owner.end() }
        }
    }

    private let state = NIOLockedValueBox(State())

    /// - Throws: `HTTPClientError.alreadyShutdown` after `close()`.
    func begin() throws -> Request {
        try state.withLockedValue { state in
            if state.isClosed { throw HTTPClientError.alreadyShutdown }
            state.count += 1
        }
        return Request(self)
    }

    private func end() {
        let waiting = state.withLockedValue { state in
            state.count -= 1
            guard state.count == 0 else { return [AsyncStream<Void>.Continuation]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.finish() }
    }

    /// From now on `begin()` throws.
    func close() { state.withLockedValue { $0.isClosed = true } }

    /// Returns when all requests have ended, or the task is cancelled.
    func waitForEnd() async {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let waits = state.withLockedValue { state in
            if state.count > 0 { state.waiting.append(continuation) }
            return state.count > 0
        }
        guard waits else { return }
        for await _ in stream {}
    }
}

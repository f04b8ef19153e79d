import AsyncHTTPClient
import NIOConcurrencyHelpers

/// Which requests still need the client: those whose responses are not read to the end and not dropped.
final class OpenRequests: Sendable {
    private struct State {
        var count = 0
        var isClosed = false
        var waiting: [AsyncStream<Void>.Continuation] = []
    }

    /// One request. It ends with its last reference, if not before.
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

    /// - Throws: `HTTPClientError.alreadyShutdown` once no more are taken.
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

    /// No request is taken any more.
    func close() { state.withLockedValue { $0.isClosed = true } }

    /// Returns when all have ended, or the task is cancelled.
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

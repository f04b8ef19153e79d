import DiskURLCache
import Foundation

extension DiskURLCache {
    /// An HTTP client that the cache uses instead of `URLSession`; see
    /// `DiskURLCache.load(_:through:variant:progress:redirect:)`.
    ///
    /// ```swift
    /// struct Canned: DiskURLCache.Transport {
    ///     func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
    ///         receiver.receive(DiskURLCache.Head(status: 200, fields: [("Cache-Control", "max-age=60")]))
    ///         await receiver.receive(Data("Hello".utf8))
    ///     }
    /// }
    /// ```
    public protocol Transport: Sendable {
        /// Sends a request and delivers the answer: one head, then the pieces of the body in order. The answer ends
        /// when this returns, and fails when it throws.
        ///
        /// - Do not follow redirects: deliver them like any other head. The cache requests the next URL itself.
        /// - The cache may have added its own conditions (`If-None-Match`, `Range`) to the request. A 304 is a head
        ///   like any other.
        /// - The Swift task is cancelled when no load needs the answer any more.
        /// - If the head has not arrived after `request.timeoutInterval` seconds, redirects included, the task is
        ///   cancelled. In a session of `makeSession(configuration:delegate:delegateQueue:through:variant:)` its
        ///   timeouts say when.
        /// - There may be several calls at a time, one for each request. Some are refreshes in the background, for
        ///   which no reader waits; they are cancelled at the latest after ten times as many seconds.
        func send(_ request: Request, to receiver: Receiver) async throws
    }
}

extension DiskURLCache {
    /// Receives the answer to one request from a `DiskURLCache.Transport`. Call it from one task at a time.
    public final class Receiver: Sendable {
        private struct State {
            var hasHead = false
            /// Nothing more is received.
            var hasEnded = false
            /// The task is to be cancelled, since nobody needs what it would still receive.
            var isStopped = false
            var isPaused = false
            var waiting: [CheckedContinuation<Void, Never>] = []
            /// The task that sends the request.
            var task: Task<Void, Never>?
        }

        private let state = Mutex(State())
        let request: Request
        private let receiver: any FetchReceiver
        private let token: FetchToken

        init(_ receiver: any FetchReceiver, of request: Request, _ token: FetchToken) {
            self.receiver = receiver
            self.request = request
            self.token = token
        }

        /// Receives the head, once. Interim responses (1xx) may come before it. With an invalid status the request
        /// fails.
        public func receive(_ head: Head) {
            receive(DeliveredHead(to: request, status: head.status, fields: HeaderFields(head.fields)))
        }

        /// The same for Foundation's object, which is slower to make than a `DiskURLCache.Head`.
        public func receive(_ response: HTTPURLResponse) {
            receive(DeliveredHead(response))
        }

        private func receive(_ head: DeliveredHead) {
            guard (100...999).contains(head.status) else { return end(URLError(.badServerResponse), stops: true) }
            let isWanted = state.withLock { state in
                defer { state.hasHead = state.hasHead || head.status >= 200 }
                return !state.hasEnded && !state.hasHead
            }
            if isWanted { receiver.fetchReceived(head, of: token) }
        }

        /// Receives a piece of the body, of any length. Returns when the next piece may come, so that a slow reader
        /// slows the transfer down. Pieces before the head or after the end are dropped.
        public func receive(_ data: Data) async {
            guard !data.isEmpty, state.withLock({ $0.hasHead && !$0.hasEnded }) else { return }
            receiver.fetchReceived(data, of: token)
            guard state.withLock({ $0.isPaused }) else { return }
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    if state.isPaused { state.waiting.append(continuation) }
                    return state.isPaused
                }
                if !waits { continuation.resume() }
            }
        }

        /// - Parameter stops: whether the transport is still sending. If it is not, its task is not cancelled: the
        ///   answer is stored in that task, by code of the app, too, which may ask `Task.isCancelled`.
        private func end(_ error: (any Swift.Error)?, stops: Bool) {
            if close(stops: stops) { receiver.fetchEnded(error, of: token) }
        }

        fileprivate func cancel() { close(stops: true) }

        /// - Returns: false if this had ended before.
        @discardableResult
        private func close(stops: Bool) -> Bool {
            let (task, isEnd) = state.withLock { state in
                let before = (state.task, !state.hasEnded)
                state.task = nil
                state.hasEnded = true
                state.isStopped = state.isStopped || stops
                return before
            }
            setPaused(false)
            if stops { task?.cancel() }
            return isEnd
        }

        fileprivate func start(_ transport: some Transport) {
            let task = Task {
                do {
                    try await transport.send(request, to: self)
                    end(nil, stops: false)
                } catch {
                    end(error, stops: false)
                }
            }
            let isStoppedAlready = state.withLock { state in
                if !state.hasEnded { state.task = task }
                return state.isStopped
            }
            if isStoppedAlready { task.cancel() }
        }

        fileprivate func setPaused(_ isPaused: Bool) {
            let waiting = state.withLock { state in
                state.isPaused = isPaused && !state.hasEnded
                guard !state.isPaused else { return [CheckedContinuation<Void, Never>]() }
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }
}

/// The adapter that makes a `DiskURLCache.Transport` usable for the engine.
struct OpenTransport: LoadTransport {
    let transport: any DiskURLCache.Transport
    let keyVariant: String?

    func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        let exchange = DiskURLCache.Receiver(receiver, of: request, token)
        // Cancelling the Swift task calls code of the transport, which must not run on the caller's queue: on Linux
        // that may be the one that all sessions share, and a transport over a `URLSession` would wait for itself there.
        let isWanted = token.didStart(
            cancel: { DispatchQueue.global().async { exchange.cancel() } }, setPaused: exchange.setPaused)
        if isWanted { exchange.start(transport) }
    }
}

extension HeaderFields {
    init(_ fields: [(name: String, value: String)]) {
        self.init(fields.map { Field(name: $0.name, value: $0.value) })
    }
}

import DiskURLCache
import Foundation

extension DiskURLCache {
    /// An HTTP client that the cache uses instead of `URLSession`, and that is awaited; see
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
    public protocol Transport: CallbackTransport {
        /// Sends a request and delivers the answer: one head, then the pieces of the body in order. The answer ends
        /// when this returns, and fails when it throws.
        ///
        /// - Do not follow redirects: deliver them like any other head. The cache requests the next URL itself.
        /// - The cache may have added its own conditions (`If-None-Match`, `Range`) to the request. A 304 is a head
        ///   like any other.
        /// - The Swift task is cancelled when no load needs the answer any more. So on Linux do not await
        ///   `URLSession.data(for:)` here: Foundation may stand still at such a cancellation ("Limits"). A task with
        ///   a handler or a delegate may be cancelled.
        /// - If the head has not arrived after `request.timeoutInterval` seconds, redirects included, the task is
        ///   cancelled. In a session of `makeSession(configuration:delegate:delegateQueue:through:variant:)` its
        ///   timeouts say when.
        /// - There may be several calls at a time, one for each request. Some are refreshes in the background, for
        ///   which no reader waits; their body is cancelled after ten times as many seconds, or ten minutes.
        func send(_ request: Request, to receiver: Receiver) async throws
    }
}

extension DiskURLCache {
    /// An HTTP client that the cache uses instead of `URLSession`, and that calls back instead of being awaited, as one
    /// on an event loop does.
    ///
    /// No Swift task is made for a request, so that no thread is woken before the one that has the answer. A client
    /// that is awaited is a ``Transport``, which is easier to write.
    public protocol CallbackTransport: Sendable {
        /// Sends a request, and returns at once. The answer is delivered to the receiver, also inside this call: one
        /// head, then the pieces of the body by ``Receiver/receive(_:then:)``, then one ``Receiver/finish(throwing:)``,
        /// also after an error: a load whose answer never ends waits for its timeout.
        ///
        /// The calls may come on any thread, one at a time, so an event loop may make them. They decide about the
        /// answer, and ask the rules of the app; no file is used in them.
        ///
        /// Redirects, conditions and time are as for ``Transport/send(_:to:)``.
        /// - Returns: a closure that cancels the request. It is called at most once, from any thread, when no load
        ///   needs the answer any more: before the end of the answer, or just after it.
        func start(_ request: Request, to receiver: Receiver) -> @Sendable () -> Void
    }
}

extension DiskURLCache.Transport {
    /// Sends a request in a Swift task, see ``DiskURLCache/Transport/send(_:to:)``.
    public func start(
        _ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver
    ) -> @Sendable () -> Void {
        let task = Task {
            do {
                try await send(request, to: receiver)
                receiver.finish()
            } catch {
                receiver.finish(throwing: error)
            }
        }
        return { task.cancel() }
    }
}

extension DiskURLCache {
    /// Receives the answer to one request from a transport. Call it from one task or thread at a time.
    public final class Receiver: Sendable {
        private struct State {
            var hasHead = false
            /// Nothing more is received.
            var hasEnded = false
            /// The request is to be cancelled, since nobody needs what it would still receive.
            var isStopped = false
            var isPaused = false
            /// Called when the pause is over.
            var waiting: [@Sendable () -> Void] = []
            /// Cancels the request.
            var cancel: (@Sendable () -> Void)?
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
            guard take(data) else { return }
            await withCheckedContinuation { continuation in
                wait { continuation.resume() }
            }
        }

        /// Receives a piece of the body, of any length, and returns at once. Pieces before the head or after the end
        /// are dropped.
        /// - Parameters:
        ///   - data: the piece.
        ///   - proceed: called once, when the next piece may come, so that a slow reader slows the transfer down:
        ///     mostly inside this call, else on any thread.
        public func receive(_ data: Data, then proceed: @escaping @Sendable () -> Void) {
            guard take(data) else { return proceed() }
            // The pause ends under a lock of the load, which the client must not meet.
            wait { DispatchQueue.global().async(execute: proceed) }
        }

        /// - Returns: whether the next piece has to wait.
        private func take(_ data: Data) -> Bool {
            guard !data.isEmpty, state.withLock({ $0.hasHead && !$0.hasEnded }) else { return false }
            // A fresh `Data`: a slice's indices would not start at 0.
            receiver.fetchReceived(data.startIndex == 0 ? data : Data(data), of: token)
            return state.withLock { $0.isPaused }
        }

        private func wait(_ proceed: @escaping @Sendable () -> Void) {
            let waits = state.withLock { state in
                if state.isPaused { state.waiting.append(proceed) }
                return state.isPaused
            }
            if !waits { proceed() }
        }

        /// Ends the answer: complete without an error, else failed. Only the first call counts. A ``Transport`` does
        /// not call it, since the end of its `send(_:to:)` is the end of the answer.
        public func finish(throwing error: (any Swift.Error)? = nil) {
            end(error, stops: false)
        }

        /// - Parameter stops: whether the transport is still sending. If it is not, it is not cancelled: the answer is
        ///   stored in its Swift task, by code of the app, too, which may ask `Task.isCancelled`.
        private func end(_ error: (any Swift.Error)?, stops: Bool) {
            if close(stops: stops) { receiver.fetchEnded(error, of: token) }
        }

        fileprivate func cancel() { close(stops: true) }

        /// - Returns: false if this had ended before.
        @discardableResult
        private func close(stops: Bool) -> Bool {
            let (cancel, isEnd) = state.withLock { state in
                let before = (state.cancel, !state.hasEnded)
                state.cancel = nil
                state.hasEnded = true
                state.isStopped = state.isStopped || stops
                return before
            }
            setPaused(false)
            if stops { cancel?() }
            return isEnd
        }

        fileprivate func start(_ transport: some CallbackTransport) {
            let cancel = transport.start(request, to: self)
            let isStoppedAlready = state.withLock { state in
                if !state.hasEnded { state.cancel = cancel }
                return state.isStopped
            }
            if isStoppedAlready { cancel() }
        }

        fileprivate func setPaused(_ isPaused: Bool) {
            let waiting = state.withLock { state in
                state.isPaused = isPaused && !state.hasEnded
                guard !state.isPaused else { return [@Sendable () -> Void]() }
                defer { state.waiting = [] }
                return state.waiting
            }
            for proceed in waiting { proceed() }
        }
    }
}

/// The adapter that makes a transport of the app usable for the engine.
///
/// A class, so that passing it on costs one reference.
final class OpenTransport: LoadTransport {
    private let transport: any DiskURLCache.CallbackTransport
    let keyVariant: String?
    /// A transport that is awaited has a task for each request. One that calls back has perhaps one event loop for all.
    let sharesItsQueue: Bool

    init<Transport: DiskURLCache.CallbackTransport>(_ transport: Transport, keyVariant: String?) {
        self.transport = transport
        self.keyVariant = keyVariant
        // The type is asked, which takes half as long as to ask the value.
        sharesItsQueue = !(Transport.self is any DiskURLCache.Transport.Type)
    }

    func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        let exchange = DiskURLCache.Receiver(receiver, of: request, token)
        // Cancelling calls code of the transport, which must not run on the caller's queue: on Linux that may be the
        // one that all sessions share, and a transport over a `URLSession` would wait for itself there.
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

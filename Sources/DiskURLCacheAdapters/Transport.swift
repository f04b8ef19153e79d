import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// An HTTP client that the cache uses instead of `URLSession`; see `DiskURLCache.load(_:through:variant:redirect:)`.
    ///
    /// ```swift
    /// struct Canned: DiskURLCache.Transport {
    ///     func send(_ request: URLRequest, to receiver: DiskURLCache.Receiver) async throws {
    ///         receiver.receive(DiskURLCache.Head(status: 200, fields: [("Cache-Control", "max-age=60")]))
    ///         await receiver.receive(Data("Hello".utf8))
    ///     }
    /// }
    /// ```
    public protocol Transport: Sendable {
        /// Sends one request, and passes the answer on: one head, then the pieces of the body in order. Returning ends the
        /// answer; throwing fails it.
        ///
        /// - Redirects are not followed here: each is a head like any other, and the cache sends a request to the next URL.
        /// - The cache added its own conditions (`If-None-Match`, `Range`) to the request. A 304 is a head like any other.
        /// - The Swift task is cancelled when no load needs the answer any more.
        /// - Without a head after `request.timeoutInterval` seconds the task is cancelled, and the request counts as failed.
        /// - The cache sends several requests at a time, one call for each; a refresh in the background is one, too. No reader waits for a
        ///   refresh, so it also fails when no piece of its body has arrived for `request.timeoutInterval` seconds.
        func send(_ request: URLRequest, to receiver: Receiver) async throws
    }
}

extension DiskURLCache {
    /// Takes the answer to one request that a `DiskURLCache.Transport` has sent. To be called by one task at a time.
    public final class Receiver: Sendable {
        private struct State {
            var hasHead = false
            var hasEnded = false
            var isPaused = false
            var waiting: [CheckedContinuation<Void, Never>] = []
            /// The task that sends the request.
            var task: Task<Void, Never>?
            /// Ends the request if no head arrives, and in the background also if no piece of the body does.
            var timeout: Timeouts.ID?
        }

        private let state = Mutex(State())
        private let url: URL
        private let receiver: any FetchReceiver
        /// Seconds in which a piece of the body must arrive; nil if the reader of the body has its own timeout.
        private let patience: TimeInterval?

        init(_ receiver: any FetchReceiver, url: URL, patience: TimeInterval?) {
            self.receiver = receiver
            self.url = url
            self.patience = patience
        }

        /// Takes the head, once. Interim responses (1xx) may come before it. An invalid status fails the request.
        public func receive(_ head: Head) {
            receive(DeliveredHead(url: url, status: head.status, fields: HeaderFields(head)))
        }

        /// The same with Foundation's object. Making such an object takes some time; see `DiskURLCache.Head`.
        public func receive(_ response: HTTPURLResponse) {
            receive(DeliveredHead(response))
        }

        private func receive(_ head: DeliveredHead) {
            guard (100...999).contains(head.status) else { return end(URLError(.badServerResponse)) }
            let isFinal = head.status >= 200
            let (isWanted, timeout) = state.withLock { state -> (Bool, Timeouts.ID?) in
                guard !state.hasEnded, !state.hasHead else { return (false, nil) }
                state.hasHead = isFinal
                return (true, isFinal ? state.timeout : nil)
            }
            Timeouts.shared.cancel(timeout)
            if isWanted, isFinal { waitForPiece() }
            if isWanted { receiver.fetchReceived(head) }
        }

        /// A refresh has no reader that would end it when its body stops.
        private func waitForPiece() {
            guard let patience else { return }
            let next = Timeouts.shared.after(patience) { self.end(URLError(.timedOut)) }
            let (last, isLate) = state.withLock { state in
                defer { state.timeout = next }
                return (state.timeout, state.hasEnded)
            }
            Timeouts.shared.cancel(last)
            if isLate { stop() }
        }

        /// Takes a piece of the body, of any length. Returns when the next one may come: a slow reader delays the transfer
        /// here. Pieces before the head, or after the end, are dropped.
        public func receive(_ data: Data) async {
            guard !data.isEmpty, state.withLock({ $0.hasHead && !$0.hasEnded }) else { return }
            waitForPiece()
            receiver.fetchReceived(data)
            guard state.withLock({ $0.isPaused }) else { return }
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    if state.isPaused { state.waiting.append(continuation) }
                    return state.isPaused
                }
                if !waits { continuation.resume() }
            }
        }

        /// - Parameter isTimeout: then the call has no effect after the head.
        fileprivate func end(_ error: (any Swift.Error)?, isTimeout: Bool = false) {
            let isEnd = state.withLock { state in
                guard !state.hasEnded, !(isTimeout && state.hasHead) else { return false }
                state.hasEnded = true
                return true
            }
            guard isEnd else { return }
            stop()
            receiver.fetchEnded(error)
        }

        fileprivate func cancel() {
            state.withLock { $0.hasEnded = true }
            stop()
        }

        private func stop() {
            let (task, timeout) = state.withLock { state in
                defer { (state.task, state.timeout) = (nil, nil) }
                return (state.task, state.timeout)
            }
            Timeouts.shared.cancel(timeout)
            resume()
            task?.cancel()
        }

        fileprivate func start(
            within seconds: TimeInterval, _ send: @escaping @Sendable (Receiver) async throws -> Void
        ) {
            // A refresh in the background has no reader that would end it, and no other refresh begins until it ends.
            let timeout = Timeouts.shared.after(seconds) { self.end(URLError(.timedOut), isTimeout: true) }
            let task = Task {
                do {
                    try await send(self)
                    end(nil)
                } catch {
                    end(error)
                }
            }
            let (unused, isLate) = state.withLock { state in
                state.task = task
                // The timer for the pieces may have been set already, after the head.
                guard !state.hasHead else { return (timeout, state.hasEnded) }
                state.timeout = timeout
                return (nil, state.hasEnded)
            }
            Timeouts.shared.cancel(unused)
            if isLate { stop() }
        }

        fileprivate func pause() {
            state.withLock { $0.isPaused = !$0.hasEnded }
        }

        fileprivate func resume() {
            let waiting = state.withLock { state in
                state.isPaused = false
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }
}

/// A `DiskURLCache.Transport` as the engine uses transports.
struct OpenTransport: LoadTransport {
    let transport: any DiskURLCache.Transport
    let keyVariant: String?
    /// Whether its requests are refreshes in the background, whose bodies no client reads.
    private var isInBackground = false

    init(transport: any DiskURLCache.Transport, keyVariant: String?) {
        self.transport = transport
        self.keyVariant = keyVariant
    }

    func send(_ request: URLRequest, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        guard let url = request.url else { return receiver.fetchEnded(URLError(.badURL)) }
        let exchange = DiskURLCache.Receiver(
            receiver, url: url, patience: isInBackground ? request.timeoutInterval : nil)
        let controls = FetchControls(cancel: exchange.cancel, pause: exchange.pause, resume: exchange.resume)
        guard token.didStart(controls) else { return }
        exchange.start(within: request.timeoutInterval) { [transport] in try await transport.send(request, to: $0) }
    }

    var inBackground: any LoadTransport {
        var transport = self
        transport.isInBackground = true
        return transport
    }
}

extension HeaderFields {
    init(_ head: DiskURLCache.Head) {
        self.init(head.fields.map { Field(name: $0.name, value: $0.value) })
    }
}

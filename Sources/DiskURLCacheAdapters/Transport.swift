import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// An HTTP client that the cache uses instead of `URLSession`; see
    /// `DiskURLCache.load(_:through:variant:redirect:)`.
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
        /// Sends one request, and passes the answer on: one head, then the pieces of the body in order. Returning ends
        /// the answer; throwing fails it.
        ///
        /// - Redirects are not followed here: each is a head like any other, and the cache sends a request to the next
        ///   URL.
        /// - The cache added its own conditions (`If-None-Match`, `Range`) to the request. A 304 is a head like any
        ///   other.
        /// - The Swift task is cancelled when no load needs the answer any more.
        /// - The load has `request.timeoutInterval` seconds for the head of its answer, redirects included. Then the
        ///   task is cancelled.
        /// - The cache sends several requests at a time, one call for each; a refresh in the background is one, too. No
        ///   reader waits for a refresh, so it is cancelled ten times as many seconds after its head at the latest.
        func send(_ request: Request, to receiver: Receiver) async throws
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
        }

        private let state = Mutex(State())
        private let request: Request
        private let receiver: any FetchReceiver

        init(_ receiver: any FetchReceiver, of request: Request) {
            self.receiver = receiver
            self.request = request
        }

        /// Takes the head, once. Interim responses (1xx) may come before it. An invalid status fails the request.
        public func receive(_ head: Head) {
            receive(DeliveredHead(to: request, status: head.status, fields: HeaderFields(head.fields)))
        }

        /// The same with Foundation's object. Making such an object takes some time; see `DiskURLCache.Head`.
        public func receive(_ response: HTTPURLResponse) {
            receive(DeliveredHead(response))
        }

        private func receive(_ head: DeliveredHead) {
            guard (100...999).contains(head.status) else { return end(URLError(.badServerResponse)) }
            let isWanted = state.withLock { state in
                defer { state.hasHead = state.hasHead || head.status >= 200 }
                return !state.hasEnded && !state.hasHead
            }
            if isWanted { receiver.fetchReceived(head) }
        }

        /// Takes a piece of the body, of any length. Returns when the next one may come: a slow reader delays the
        /// transfer here. Pieces before the head, or after the end, are dropped.
        public func receive(_ data: Data) async {
            guard !data.isEmpty, state.withLock({ $0.hasHead && !$0.hasEnded }) else { return }
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

        private func end(_ error: (any Swift.Error)?) {
            let isEnd = state.withLock { state in
                defer { state.hasEnded = true }
                return !state.hasEnded
            }
            guard isEnd else { return }
            cancel()
            receiver.fetchEnded(error)
        }

        fileprivate func cancel() {
            let task = state.withLock { state in
                defer { (state.task, state.hasEnded) = (nil, true) }
                return state.task
            }
            setPaused(false)
            task?.cancel()
        }

        fileprivate func start(_ transport: some Transport) {
            let task = Task {
                do {
                    try await transport.send(request, to: self)
                    end(nil)
                } catch {
                    end(error)
                }
            }
            let isLate = state.withLock { state in
                if !state.hasEnded { state.task = task }
                return state.hasEnded
            }
            if isLate { task.cancel() }
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

/// A `DiskURLCache.Transport` as the engine uses transports.
struct OpenTransport: LoadTransport {
    let transport: any DiskURLCache.Transport
    let keyVariant: String?

    func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        let exchange = DiskURLCache.Receiver(receiver, of: request)
        if token.didStart(cancel: exchange.cancel, setPaused: exchange.setPaused) { exchange.start(transport) }
    }
}

extension HeaderFields {
    init(_ fields: [(name: String, value: String)]) {
        self.init(fields.map { Field(name: $0.name, value: $0.value) })
    }
}

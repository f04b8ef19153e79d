import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The network as a load sees it: a request goes out; a head, the pieces of a body and an end come back.
///
/// `URLSession` is one implementation (`SessionLink`), an app's ``CacheTransport`` another (`OpenTransport`).
protocol Transport: Sendable {
    /// Sends a request. The receiver hears, from any thread but one call at a time: one head, then pieces in order, then one
    /// end. Redirects are not followed: each is a head like any other. Once the token is cancelled nothing more need come.
    ///
    /// Calling the receiver inside `send` is allowed. A transport that can be cancelled or paused says how by
    /// ``FetchToken/didStart(_:)``, before the first call of the receiver.
    func send(_ request: URLRequest, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver)

    /// Loads share an answer only where they have the same owner: what it adds to requests, such as cookies, is then the same.
    var owner: ObjectIdentifier? { get }

    /// A request that follows a redirect, with what the owner adds to each request.
    func prepare(_ request: URLRequest) -> URLRequest

    /// Seconds for which a load waits for another one that fetches the same: half of the time that its request has, so that there is
    /// time left to send it.
    func patience(of request: URLRequest) -> TimeInterval

    /// Part of the key of everything loaded: what this transport makes of an answer is not for others.
    var keyVariant: String? { get }

    /// What sends the requests that nobody waits for.
    var inBackground: any Transport { get }
}

extension Transport {
    var owner: ObjectIdentifier? { nil }
    func prepare(_ request: URLRequest) -> URLRequest { request }
    func patience(of request: URLRequest) -> TimeInterval { request.timeoutInterval / 2 }
    var keyVariant: String? { nil }
    var inBackground: any Transport { self }
}

/// What becomes of a request that was sent.
protocol FetchReceiver: AnyObject, Sendable {
    /// Before the head: the answer is given to credentials that are no part of the request. It must not be stored, since its
    /// key does not tell whose it is.
    func fetchUsedCredentials()
    func fetchReceived(_ head: DeliveredHead)
    func fetchReceived(_ data: Data)
    /// - Parameter error: nil when the answer is complete.
    func fetchEnded(_ error: (any Error)?)
}

extension FetchReceiver {
    func fetchUsedCredentials() {}
    func fetchReceived(_ response: URLResponse) { fetchReceived(DeliveredHead(response)) }
}

/// How a request that was sent is stopped. Each closure may be called from any thread. `pause` and `resume` are called one at a time,
/// under the token's lock: they may take locks of their own, and call nobody.
struct FetchControls: Sendable {
    var cancel: @Sendable () -> Void
    /// Holds the transfer up where the reader does not keep up: no more than what is under way may still come. Nil where that
    /// cannot be done.
    var pause: (@Sendable () -> Void)?
    var resume: (@Sendable () -> Void)?
}

/// Stands for a request that is sent, or about to be. Cancelling it twice, or after the end, does nothing.
final class FetchToken: Sendable {
    private struct State {
        var isCancelled = false
        var isPaused = false
        var controls: FetchControls?
    }

    private let state = Mutex(State())
    /// Of the load, from 0 to 1, as `URLSessionTask.priority`.
    let priority: Float

    init(priority: Float = URLSessionTask.defaultPriority) {
        self.priority = priority
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// From the transport, once the request can be stopped. False when it was cancelled meanwhile: then nothing is sent.
    func didStart(_ controls: FetchControls) -> Bool {
        state.withLock { state in
            if !state.isCancelled {
                state.controls = controls
                if state.isPaused { controls.pause?() }
            }
            return !state.isCancelled
        }
    }

    /// The receiver hears nothing any more.
    func cancel() {
        let controls = state.withLock { state in
            state.isCancelled = true
            defer { state.controls = nil }
            return state.controls
        }
        controls?.cancel()
    }

    func pause() { setPaused(true) }

    func resume() { setPaused(false) }

    /// The controls are told under the lock: a pause that came to them after the resumption that followed it would hold the transfer up for
    /// ever, and one that came late would hold up nothing.
    private func setPaused(_ isPaused: Bool) {
        state.withLock { state in
            guard state.isPaused != isPaused else { return }
            state.isPaused = isPaused
            if isPaused { state.controls?.pause?() } else { state.controls?.resume?() }
        }
    }
}

import Dispatch
import Foundation

/// The network for a load: it sends a request, and receives a head, the pieces of a body and an end.
///
/// `URLSession` is one implementation (`SessionLink`), an app's `DiskURLCache.CallbackTransport` another
/// (`OpenTransport`).
package protocol LoadTransport: Sendable {
    /// Sends a request. The receiver is called, from any thread but one call at a time, with one head, then pieces in
    /// order, then one end. Redirects are not followed: each is a head like any other. After the token is cancelled,
    /// calls may stop; those that still come are ignored.
    ///
    /// Calling the receiver inside `send` is allowed. A transport that can be cancelled or paused says how by
    /// ``FetchToken/didStart(cancel:setPaused:)``, before the first call of the receiver.
    func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver)

    /// Loads share an answer only if they have the same owner: its additions to requests, such as cookies, are then the
    /// same.
    var owner: ObjectIdentifier? { get }

    /// The request that follows a redirect, with the owner's additions.
    /// - Parameter last: the request that was redirected.
    func prepare(_ request: DiskURLCache.Request, after last: DiskURLCache.Request) -> DiskURLCache.Request

    /// Seconds for which the caller of a request waits for an answer; perhaps without end.
    func timeout(of request: DiskURLCache.Request) -> TimeInterval

    /// Bodies arrive without the content codings that their heads name.
    var decodesBodies: Bool { get }

    /// Whether the receiver is called on a queue that other answers wait for: no file is read or written there.
    var sharesItsQueue: Bool { get }

    /// Whether requests can be sent on the client's queue. Foundation on Linux traps if a task is made there.
    var sendsOnClientQueue: Bool { get }

    /// Part of the key of every answer: this transport may change answers in a way that is not for other transports.
    var keyVariant: String? { get }
}

extension LoadTransport {
    package var owner: ObjectIdentifier? { nil }
    package func prepare(_ request: DiskURLCache.Request, after last: DiskURLCache.Request) -> DiskURLCache.Request {
        request
    }
    package func timeout(of request: DiskURLCache.Request) -> TimeInterval { request.timeout }
    /// Seconds for which other loads depend on a request: they wait for it, or it is the only refresh of what they get.
    /// It has no more than a usual one, even if its own caller would wait for ever.
    func timeoutForOthers(of request: DiskURLCache.Request) -> TimeInterval { min(timeout(of: request), 60) }
    package var decodesBodies: Bool { false }
    package var keyVariant: String? { nil }
    package var sharesItsQueue: Bool { false }
    package var sendsOnClientQueue: Bool { true }
}

/// Receives the answers to the requests that it had sent. Each call names its request: a load may have cancelled that
/// one, and sent another request, while the call was on its way.
package protocol FetchReceiver: AnyObject, Sendable {
    /// Called before the head if the answer depends on credentials that are no part of the request. It must not be
    /// stored, since its key does not tell which user it is for.
    func fetchUsedCredentials(_ token: FetchToken)
    func fetchReceived(_ head: DeliveredHead, of token: FetchToken)
    func fetchReceived(_ data: Data, of token: FetchToken)
    /// - Parameter error: nil when the answer is complete.
    func fetchEnded(_ error: (any Error)?, of token: FetchToken)
    /// The same for an answer that did not come in time. Called on the queue of all deadlines: no file is used there.
    func fetchTimedOut(_ error: any Error, of token: FetchToken)
}

extension FetchReceiver {
    package func fetchUsedCredentials(_ token: FetchToken) {}
    package func fetchTimedOut(_ error: any Error, of token: FetchToken) { fetchEnded(error, of: token) }
    package func fetchReceived(_ response: URLResponse, of token: FetchToken) {
        fetchReceived(DeliveredHead(response), of: token)
    }
}

/// A request that is sent, or about to be, and the means to stop it. Cancelling it twice, or after the end, does
/// nothing.
package final class FetchToken: Sendable {
    private struct State {
        var isCancelled = false
        var isPaused = false
        var resumedAt = DispatchTime(uptimeNanoseconds: 0)
        var cancel: (@Sendable () -> Void)?
        var setPaused: (@Sendable (_ isPaused: Bool) -> Void)?
    }

    private let state = Mutex(State())
    /// The load's priority, from 0 to 1, as `URLSessionTask.priority`.
    let priority: Float

    init(priority: Float = URLSessionTask.defaultPriority) {
        self.priority = priority
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }
    var isPaused: Bool { state.withLock { $0.isPaused } }
    /// When the last pause ended.
    var resumedAt: DispatchTime { state.withLock { $0.resumedAt } }
    /// Whether the transport can pause the transfer.
    var canPause: Bool { state.withLock { $0.setPaused != nil } }

    /// Called by the transport once the request can be stopped. False if it was cancelled meanwhile: then it is not
    /// sent.
    /// - Parameters:
    ///   - cancel: called from any thread.
    ///   - setPaused: pauses the transfer for a slow reader: only bytes that were sent already may still arrive. Called
    ///     one at a time, under this token's lock: it may take other locks, but call no client. Nil if the transport
    ///     cannot pause.
    package func didStart(
        cancel: @escaping @Sendable () -> Void, setPaused: (@Sendable (_ isPaused: Bool) -> Void)? = nil
    ) -> Bool {
        state.withLock { state in
            guard !state.isCancelled else { return false }
            state.cancel = cancel
            state.setPaused = setPaused
            if state.isPaused { setPaused?(true) }
            return true
        }
    }

    /// After this, the transport need not call the receiver any more.
    func cancel() {
        let cancel = state.withLock { state in
            let cancel = state.cancel
            state.isCancelled = true
            state.cancel = nil
            state.setPaused = nil
            return cancel
        }
        cancel?()
    }

    /// The answer has ended. What stops the request holds its sender, and is released.
    func end() {
        state.withLock { state in
            state.cancel = nil
            state.setPaused = nil
        }
    }

    /// The transport is told under the lock: a pause that reached it after its resumption would stop the transfer for
    /// ever, and a late pause would have no effect.
    func setPaused(_ isPaused: Bool) {
        state.withLock { state in
            guard state.isPaused != isPaused else { return }
            state.isPaused = isPaused
            if !isPaused { state.resumedAt = .now() }
            state.setPaused?(isPaused)
        }
    }
}

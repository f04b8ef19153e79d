import Foundation

/// A session of the app, and what all its loads have in common: found once a session, not once a load.
///
/// `@unchecked Sendable`: constant, but for what is behind the lock.
final class OuterSession: @unchecked Sendable {
    /// The session that sends the requests, and its delegate.
    struct Inner {
        let session: URLSession
        let delegate: NetworkDelegate
    }

    /// Not kept alive. A task keeps its session alive.
    private(set) weak var session: URLSession?
    /// The queue on which Foundation calls the clients of the session's protocols; nil on Apple platforms, and if it
    /// cannot be read.
    let workQueue: DispatchQueue?
    /// Sends the requests instead of Foundation; nil for nearly all sessions. Kept until `releaseAbandoned` is called
    /// after the end of the session.
    let transport: SessionTransport?
    /// Of a session of this library, if nobody changes it, without its cache.
    let knownConfiguration: URLSessionConfiguration?
    private let inner = Mutex<Inner?>(nil)

    /// - Parameter configuration: of the session, if that never changes.
    init(_ session: URLSession, transport: SessionTransport? = nil, configuration: URLSessionConfiguration? = nil) {
        self.session = session
        self.transport = transport
        knownConfiguration = configuration
        workQueue = LoadingSystem.workQueue(of: session)
    }

    /// - Parameter session: this session, which the caller has.
    func configuration(of session: URLSession) -> URLSessionConfiguration {
        knownConfiguration ?? session.configuration
    }

    /// The inner session, which is made when it is first needed.
    /// - Parameter session: this session, which the caller has.
    func inner(for session: URLSession) -> Inner {
        inner.withLock { inner in
            if let inner { return inner }
            let made = Self.makeInner(for: session)
            inner = made
            return made
        }
    }

    /// Ends what the session left behind when it was released.
    func end() {
        inner.withLock { $0 }?.session.finishTasksAndInvalidate()
    }

    private static func makeInner(for outer: URLSession) -> Inner {
        let configuration = (outer.configuration.copy() as? URLSessionConfiguration) ?? .default
        configuration.urlCache = nil
        configuration.protocolClasses = NetworkSessions.otherClasses(of: outer)
        // Both are part of each request already. If they were added again here, a redirect to another
        // origin would send credentials that the key of that hop does not have.
        configuration.httpAdditionalHeaders = nil
        configuration.httpShouldSetCookies = false
        let delegate = NetworkDelegate()
        // Not the outer session's queue, which a client may block.
        let session = URLSession(
            configuration: configuration, delegate: delegate, delegateQueue: LoadingSystem.makeDelegateQueue())
        return Inner(session: session, delegate: delegate)
    }
}

import Foundation

/// The network part of loads: one inner session for each outer session, with the outer one's configuration (timeouts,
/// cookie storage, credentials, proxies, connection limits, the user's own protocol classes) but without the library's
/// loader and without a cache. The outer session's additions to requests are part of them already, see `SessionLink`.
///
/// Redirects are not followed: each comes back as a response, for the load to decide about.
final class NetworkSessions: Sendable {
    static let shared = NetworkSessions()

    /// By the identity of the app's session.
    let sessions = Mutex<[ObjectIdentifier: OuterSession]>([:])

    /// What the loads of a session have in common.
    func outer(of session: URLSession) -> OuterSession {
        if let known = sessions.withLock({ $0[ObjectIdentifier(session)] }), known.session === session { return known }
        return add(OuterSession(session), for: session)
    }

    /// Called before the session has a task; or by each of several threads that load for the first time, of which one
    /// wins.
    @discardableResult func add(_ outer: OuterSession, for session: URLSession) -> OuterSession {
        // A session that was released leaves its inner one behind, until the next one is made.
        releaseAbandoned()
        return sessions.withLock { sessions in
            let id = ObjectIdentifier(session)
            if let known = sessions[id], known.session === session { return known }
            sessions[id] = outer
            return outer
        }
    }

    /// Ends the inner sessions, and releases the transports, of sessions that were released. Called whenever a session
    /// is made.
    func releaseAbandoned() {
        // Ended outside of the lock: a transport may be a client that closes its connections. The sessions, too, are
        // released there: the app may have released one meanwhile, and its delegate may make a session as it goes.
        let (abandoned, living) = sessions.withLock { sessions in
            let living = sessions.mapValues(\.session)
            let abandoned = living.compactMap { $0.value == nil ? sessions.removeValue(forKey: $0.key) : nil }
            return (abandoned, living)
        }
        for outer in abandoned { outer.end() }
        withExtendedLifetime(living) {}
    }

    /// Sends a request; the receiver gets the answer until the end or until the token is cancelled. Not to be called on
    /// the queue that calls protocols: there libdispatch would trap when a task is made or resumed.
    static func start(
        _ request: URLRequest, outer: OuterSession, session: URLSession, task outerTask: URLSessionTask?,
        token: FetchToken, receiver: any FetchReceiver
    ) {
        guard !token.isCancelled else { return }
        let inner = outer.inner(for: session)
        let task = inner.session.dataTask(with: request)
        let exchange = NetworkDelegate.Exchange(receiver: receiver, token: token, session: session, task: outerTask)
        inner.delegate.add(exchange, for: task)
        let isWanted = token.didStart(cancel: { [delegate = inner.delegate, session = inner.session] in
            delegate.remove(task)
            // The task's end is reported on this queue, too, so that the two do not cross: Foundation crashes at a
            // cancellation that comes while it forgets the task.
            session.delegateQueue.addOperation { LoadingSystem.cancel(task) }
        })
        LoadingSystem.setPriority(token.priority, of: task)
        // A task that is never resumed gets no calls and holds no object.
        if isWanted { task.resume() } else { inner.delegate.remove(task) }
    }

    /// The classes that Foundation would use without the loader: the user's first, then its own.
    static func otherClasses(of outer: URLSession?) -> [AnyClass] {
        let custom = outer.map { classes(of: $0.configuration) } ?? []
        return custom + classes(of: .default).filter { candidate in !custom.contains { $0 == candidate } }
    }

    /// The protocol classes of a configuration, without the loader.
    static func classes(of configuration: URLSessionConfiguration) -> [AnyClass] {
        (configuration.protocolClasses ?? []).filter { !CachingURLProtocol.isLoader($0) }
    }
}

/// Passes the calls of an inner session on to the receiver of each task.
///
/// Handlers are not `@Sendable` here: they are in newer SDKs and not in older ones, and these declarations fit both.
final class NetworkDelegate: NSObject, URLSessionDataDelegate, Sendable {
    struct Exchange {
        let receiver: any FetchReceiver
        let token: FetchToken
        /// The outer session and task of the load: their delegates decide about challenges.
        let session: URLSession
        let task: URLSessionTask?
        var hasHead = false
    }

    private let exchanges = Mutex<[Int: Exchange]>([:])
    /// Hosts that got credentials in this session: the system may send them again without a challenge. On Linux no
    /// credentials are given here.
    private let hostsWithCredentials = Mutex<Set<String>>([])

    func add(_ exchange: Exchange, for task: URLSessionTask) {
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    func exchange(of task: URLSessionTask) -> Exchange? {
        exchanges.withLock { $0[task.taskIdentifier] }
    }

    func remove(_ task: URLSessionTask) {
        exchanges.withLock { _ = $0.removeValue(forKey: task.taskIdentifier) }
    }

    /// - Parameter error: nil when the answer is complete.
    func end(_ task: URLSessionTask, _ error: (any Error)?) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        // Foundation on Linux reports a redirect without a Location to no delegate, but the task has it.
        if error == nil, !exchange.hasHead, let response = task.response {
            exchange.receiver.fetchReceived(response, of: exchange.token)
        }
        exchange.receiver.fetchEnded(error, of: exchange.token)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        let exchange = exchanges.withLock { exchanges in
            exchanges[dataTask.taskIdentifier]?.hasHead = true
            return exchanges[dataTask.taskIdentifier]
        }
        if let exchange {
            if usedCredentials(for: response.url) { exchange.receiver.fetchUsedCredentials(exchange.token) }
            exchange.receiver.fetchReceived(response, of: exchange.token)
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if let exchange = exchange(of: dataTask) { exchange.receiver.fetchReceived(data, of: exchange.token) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Swift.Error?) {
        end(task, error)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        if LoadingSystem.mayAnswerRedirect(of: task) { completionHandler(nil) }
    }

    // MARK: Credentials

    func noteCredentials(for url: URL?) {
        if let host = url?.host { hostsWithCredentials.withLock { _ = $0.insert(host) } }
    }

    private func usedCredentials(for url: URL?) -> Bool {
        hostsWithCredentials.withLock { hosts in
            guard !hosts.isEmpty, let host = url?.host else { return false }
            return hosts.contains(host)
        }
    }
}

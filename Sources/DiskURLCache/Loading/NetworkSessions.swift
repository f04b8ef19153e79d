import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What becomes of a request that was sent.
protocol FetchReceiver: AnyObject, Sendable {
    func fetchReceived(_ response: URLResponse)
    func fetchReceived(_ data: Data)
    func fetchEnded(_ error: Swift.Error?)
}

/// The network part of loads: one inner session for each outer session, with the outer one's configuration (timeouts,
/// cookie storage, credentials, proxies, connection limits, the user's own protocol classes) but without our loader and
/// without a cache. What the outer session adds to requests is part of them already, see `SessionLink`.
///
/// Redirects are not followed: each comes back as a response, for the load to decide about.
final class NetworkSessions: Sendable {
    static let shared = NetworkSessions()

    private struct Inner {
        weak var outer: URLSession?
        let session: URLSession
        let delegate: NetworkDelegate
    }

    private let sessions = Mutex<[ObjectIdentifier?: Inner]>([:])
    /// Tasks are made and resumed here: doing so on the queue that calls protocols traps in libdispatch.
    private let queue = DispatchQueue(label: "DiskURLCache.network", qos: .userInitiated)

    /// Sends a request; the receiver hears of it until the end or until the token is cancelled.
    func start(_ request: URLRequest, outer: URLSession?, token: FetchToken, receiver: any FetchReceiver) {
        queue.async {
            guard !token.isCancelled else { return }
            let inner = self.inner(for: outer)
            let task = inner.session.dataTask(with: request)
            inner.delegate.add(receiver, for: task)
            let isWanted = token.didStart(task) { [delegate = inner.delegate, session = inner.session] task in
                delegate.remove(task)
                // There the task's end is told too, so that the two do not cross: a cancellation that comes while
                // Foundation forgets the task ends the process.
                session.delegateQueue.addOperation { task.cancel() }
            }
            // A task that is never resumed hears nothing and holds nothing.
            if isWanted { task.resume() } else { inner.delegate.remove(task) }
        }
    }

    private func inner(for outer: URLSession?) -> Inner {
        let (inner, abandoned) = sessions.withLock { sessions in
            let id = outer.map { ObjectIdentifier($0) }
            if let inner = sessions[id], inner.outer === outer { return (inner, [URLSession]()) }
            // An outer session that is gone left its inner one behind.
            var abandoned = sessions.filter { $0.key != nil && $0.value.outer == nil }
            if let stale = sessions[id] { abandoned[id] = stale }
            for key in abandoned.keys { sessions[key] = nil }
            let inner = Self.makeInner(for: outer)
            sessions[id] = inner
            return (inner, abandoned.values.map(\.session))
        }
        for session in abandoned { session.finishTasksAndInvalidate() }
        return inner
    }

    private static func makeInner(for outer: URLSession?) -> Inner {
        let configuration =
            (outer?.configuration.copy() as? URLSessionConfiguration) ?? URLSessionConfiguration.default
        configuration.urlCache = nil
        configuration.protocolClasses = otherClasses(of: outer)
        if outer != nil {
            // Both are part of each request already. Adding them again here would send, after a redirect to another
            // origin, credentials that the key of that hop does not know of.
            configuration.httpAdditionalHeaders = nil
            configuration.httpShouldSetCookies = false
        }
        let delegate = NetworkDelegate()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.qualityOfService = .userInitiated
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
        return Inner(outer: outer, session: session, delegate: delegate)
    }

    /// The classes that would be asked if the loader were not there: the user's first, then Foundation's.
    static func otherClasses(of outer: URLSession?) -> [AnyClass] {
        let own = (outer?.configuration.protocolClasses ?? []).filter { $0 != CachingURLProtocol.self }
        let standard = (URLSessionConfiguration.default.protocolClasses ?? []).filter { candidate in
            candidate != CachingURLProtocol.self && !own.contains { $0 == candidate }
        }
        return own + standard
    }
}

/// Stands for a request that is sent, or about to be. Cancelling it twice, or after the end, does nothing.
final class FetchToken: Sendable {
    private struct State {
        var isCancelled = false
        var cancel: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// False when it was cancelled meanwhile.
    func didStart(_ task: URLSessionTask, cancel: @escaping @Sendable (URLSessionTask) -> Void) -> Bool {
        state.withLock { state in
            if !state.isCancelled { state.cancel = { cancel(task) } }
            return !state.isCancelled
        }
    }

    /// The receiver hears nothing any more.
    func cancel() {
        let cancel = state.withLock { state in
            state.isCancelled = true
            defer { state.cancel = nil }
            return state.cancel
        }
        cancel?()
    }
}

/// Passes what an inner session says on to the receiver of each task.
final class NetworkDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private let receivers = Mutex<[Int: any FetchReceiver]>([:])

    func add(_ receiver: any FetchReceiver, for task: URLSessionTask) {
        receivers.withLock { $0[task.taskIdentifier] = receiver }
    }

    @discardableResult
    func remove(_ task: URLSessionTask) -> (any FetchReceiver)? {
        receivers.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    }

    private func receiver(of task: URLSessionTask) -> (any FetchReceiver)? {
        receivers.withLock { $0[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        receiver(of: dataTask)?.fetchReceived(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        receiver(of: dataTask)?.fetchReceived(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Swift.Error?) {
        remove(task)?.fetchEnded(error)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // Foundation ends the process when it hears this of a task that was cancelled meanwhile. Cancellations come on
        // this queue too, so none can come in between.
        guard task.state == .running else { return }
        completionHandler(nil)
    }

    /// A 401 is delivered as it is: the outer session then asks its own delegate and repeats the request by itself.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(Darwin)
            let method = challenge.protectionSpace.authenticationMethod
            guard method != NSURLAuthenticationMethodServerTrust, method != NSURLAuthenticationMethodClientCertificate
            else { return completionHandler(.performDefaultHandling, nil) }
        #endif
        remove(task)?.fetchEnded(nil)
        completionHandler(.cancelAuthenticationChallenge, nil)
    }
}

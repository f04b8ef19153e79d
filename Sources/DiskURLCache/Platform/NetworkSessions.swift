import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The network part of loads: one inner session for each outer session, with the outer one's configuration (timeouts,
/// cookie storage, credentials, proxies, connection limits, the user's own protocol classes) but without the library's
/// loader and without a cache. The outer session's additions to requests are part of them already, see `SessionLink`.
///
/// Redirects are not followed: each comes back as a response, for the load to decide about.
final class NetworkSessions: Sendable {
    static let shared = NetworkSessions()

    struct Inner {
        weak var outer: URLSession?
        let session: URLSession
        let delegate: NetworkDelegate
    }

    /// By the identity of the outer session.
    let sessions = Mutex<[ObjectIdentifier: Inner]>([:])
    /// Tasks are made and resumed on this queue: on the queue that calls protocols, libdispatch would trap.
    private let queue = DispatchQueue(label: "DiskURLCache.network", qos: .userInitiated)

    /// Sends a request; the receiver gets the answer until the end or until the token is cancelled.
    func start(
        _ request: URLRequest, outer: URLSession, task outerTask: URLSessionTask?, token: FetchToken,
        receiver: any FetchReceiver
    ) {
        queue.async {
            guard !token.isCancelled else { return }
            let inner = self.inner(for: outer)
            let task = inner.session.dataTask(with: request)
            inner.delegate.add(receiver, for: task, outer: outer, outerTask)
            let isWanted = token.didStart(cancel: { [delegate = inner.delegate, session = inner.session] in
                delegate.remove(task)
                // The task's end is reported on this queue, too, so that the two do not cross: Foundation crashes at a
                // cancellation that comes while it forgets the task.
                session.delegateQueue.addOperation { task.cancel() }
            })
            #if canImport(Darwin)
                task.priority = token.priority
            #endif
            // A task that is never resumed gets no calls and holds no object.
            if isWanted { task.resume() } else { inner.delegate.remove(task) }
        }
    }

    private func inner(for outer: URLSession) -> Inner {
        let (inner, abandoned) = sessions.withLock { sessions -> (Inner, [URLSession]) in
            let id = ObjectIdentifier(outer)
            if let inner = sessions[id], inner.outer === outer { return (inner, []) }
            // On Linux an outer session that was released leaves its inner one behind.
            let abandoned = sessions.filter { $0.value.outer == nil }
            for key in abandoned.keys { sessions[key] = nil }
            let inner = Self.makeInner(for: outer)
            sessions[id] = inner
            return (inner, abandoned.values.map(\.session))
        }
        for session in abandoned { session.finishTasksAndInvalidate() }
        return inner
    }

    private static func makeInner(for outer: URLSession) -> Inner {
        let configuration = (outer.configuration.copy() as? URLSessionConfiguration) ?? .default
        configuration.urlCache = nil
        configuration.protocolClasses = otherClasses(of: outer)
        // Both are part of each request already. If they were added again here, a redirect to another
        // origin would send credentials that the key of that hop does not have.
        configuration.httpAdditionalHeaders = nil
        configuration.httpShouldSetCookies = false
        let delegate = NetworkDelegate()
        // Not the outer session's queue, which a client may block.
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.qualityOfService = .userInitiated
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
        #if canImport(Darwin)
            outer.hold(SessionEnd(of: session), for: shared)
        #endif
        return Inner(outer: outer, session: session, delegate: delegate)
    }

    /// The classes that Foundation would use without the loader: the user's first, then its own.
    static func otherClasses(of outer: URLSession?) -> [AnyClass] {
        let custom = (outer?.configuration.protocolClasses ?? []).filter { !CachingURLProtocol.isLoader($0) }
        let standard = (URLSessionConfiguration.default.protocolClasses ?? []).filter { candidate in
            !CachingURLProtocol.isLoader(candidate) && !custom.contains { $0 == candidate }
        }
        return custom + standard
    }
}

/// Passes the calls of an inner session on to the receiver of each task.
///
/// Handlers are not `@Sendable` here: they are in newer SDKs and not in older ones, and these declarations fit both.
final class NetworkDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private struct Exchange {
        let receiver: any FetchReceiver
        /// The outer session and task of the load: their delegates decide about challenges.
        let session: URLSession
        let task: URLSessionTask?
        var hasHead = false
    }

    private let exchanges = Mutex<[Int: Exchange]>([:])

    func add(
        _ receiver: any FetchReceiver, for task: URLSessionTask, outer session: URLSession, _ outerTask: URLSessionTask?
    ) {
        let exchange = Exchange(receiver: receiver, session: session, task: outerTask)
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    func remove(_ task: URLSessionTask) {
        exchanges.withLock { _ = $0.removeValue(forKey: task.taskIdentifier) }
    }

    /// - Parameter error: nil when the answer is complete.
    private func end(_ task: URLSessionTask, _ error: (any Error)?) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        // Foundation on Linux reports a redirect without a Location to no delegate, but the task has it.
        if error == nil, !exchange.hasHead, let response = task.response { exchange.receiver.fetchReceived(response) }
        exchange.receiver.fetchEnded(error)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        let receiver = exchanges.withLock { exchanges in
            exchanges[dataTask.taskIdentifier]?.hasHead = true
            return exchanges[dataTask.taskIdentifier]?.receiver
        }
        #if canImport(Darwin)
            if usesCredentials(response.url) { receiver?.fetchUsedCredentials() }
        #endif
        receiver?.fetchReceived(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchanges.withLock { $0[dataTask.taskIdentifier]?.receiver }?.fetchReceived(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Swift.Error?) {
        end(task, error)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        // Foundation crashes at this call for a task that was cancelled meanwhile. Cancellations come on
        // this queue, too, so none can come in between.
        #if canImport(FoundationNetworking)
            guard task.state == .running else { return }
        #endif
        completionHandler(nil)
    }

    #if canImport(Darwin)
        /// The inner session waits for a connection; the outer session's delegate may show that.
        func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
            guard let exchange = exchanges.withLock({ $0[task.taskIdentifier] }), let outerTask = exchange.task
            else { return }
            let outer = exchange.session
            let delegates = [outerTask.delegate, outer.delegate as? any URLSessionTaskDelegate]
            outer.delegateQueue.addOperation {
                for delegate in delegates
                where delegate?.urlSession?(outer, taskIsWaitingForConnectivity: outerTask) != nil { break }
            }
        }

        /// Hosts that got credentials in this session: the system may send them again without a challenge.
        private let hostsWithCredentials = Mutex<Set<String>>([])

        private func noteCredentials(for url: URL?) {
            if let host = url?.host { hostsWithCredentials.withLock { _ = $0.insert(host) } }
        }

        private func usesCredentials(_ url: URL?) -> Bool {
            guard let host = url?.host else { return false }
            return hostsWithCredentials.withLock { $0.contains(host) }
        }

        /// The app's delegate answers, as in its own session: see `ChallengeRoute`.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let exchange = exchanges.withLock { $0[task.taskIdentifier] }
            // A load that ended meanwhile needs no connection.
            guard let exchange else { return completionHandler(.cancelAuthenticationChallenge, nil) }
            let subject = ChallengeRoute.Subject(method: challenge.protectionSpace.authenticationMethod)
            let hasProposed = challenge.proposedCredential != nil
            // The handler may be called once, from any thread.
            nonisolated(unsafe) let completionHandler = completionHandler
            let answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = { [self] in
                if ChallengeRoute.addsCredentials(subject, disposition: $0, hasProposed: hasProposed) {
                    noteCredentials(for: task.currentRequest?.url)
                }
                completionHandler($0, $1)
            }
            let (outer, outerTask) = (exchange.session, exchange.task)
            let ofTask = outerTask?.delegate
            let ofSession = outer.delegate
            outer.delegateQueue.addOperation {
                let route = ChallengeRoute(subject, .init(ofTask, ofSession))
                switch (route, outerTask) {
                case (.session, _):
                    ofSession?.urlSession?(outer, didReceive: challenge, completionHandler: answer)
                case (.task, let outerTask?):
                    ofTask?.urlSession?(outer, task: outerTask, didReceive: challenge, completionHandler: answer)
                case (.sessionForTask, let outerTask?):
                    (ofSession as? any URLSessionTaskDelegate)?.urlSession?(
                        outer, task: outerTask, didReceive: challenge, completionHandler: answer)
                default: answer(.performDefaultHandling, nil)
                }
            }
        }
    #else
        /// A 401 is delivered as it is: the outer session then asks its delegate for credentials and repeats the
        /// request.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            end(task, nil)
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    #endif
}

#if canImport(Darwin)
    /// Ends an inner session, and forgets it, when its outer session, which holds this object, is released.
    private final class SessionEnd: Sendable {
        private let session: URLSession

        init(of session: URLSession) {
            self.session = session
        }

        deinit {
            NetworkSessions.shared.sessions.withLock { sessions in
                sessions = sessions.filter { $0.value.session !== session }
            }
            session.finishTasksAndInvalidate()
        }
    }

    extension ChallengeRoute.Methods {
        init(_ ofTask: (any URLSessionTaskDelegate)?, _ ofSession: (any URLSessionDelegate)?) {
            session = ofSession?.urlSession(_:didReceive:completionHandler:) != nil
            task = ofTask?.urlSession(_:task:didReceive:completionHandler:) != nil
            let other = ofSession as? any URLSessionTaskDelegate
            sessionForTask = other?.urlSession(_:task:didReceive:completionHandler:) != nil
        }
    }
#endif

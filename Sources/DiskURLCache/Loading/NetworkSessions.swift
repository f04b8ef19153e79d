import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What becomes of a request that was sent.
protocol FetchReceiver: AnyObject, Sendable {
    func fetchReceived(_ response: HTTPURLResponse)
    func fetchReceived(_ data: Data)
    func fetchEnded(_ error: Swift.Error?)
}

/// The network part of loads: one inner session for each outer session, with the outer one's configuration (timeouts,
/// header fields, cookies, credentials, proxies, connection limits, the user's own protocol classes) but without our
/// loader and without a cache.
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
    /// Tasks are made, resumed and cancelled here: doing so on the queue that calls protocols traps in libdispatch.
    private let queue = DispatchQueue(label: "DiskURLCache.network")

    /// Sends a request; the receiver hears of it until the end or until the token is cancelled.
    func fetch(_ request: URLRequest, outer: URLSession?, receiver: any FetchReceiver) -> FetchToken {
        let token = FetchToken(queue: queue)
        queue.async {
            guard !token.isCancelled else { return }
            let inner = self.inner(for: outer)
            let task = inner.session.dataTask(with: request)
            inner.delegate.add(receiver, for: task)
            token.didStart(task, delegate: inner.delegate)
            task.resume()
        }
        return token
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
        configuration.protocolClasses?.removeAll { $0 == CachingURLProtocol.self }
        let delegate = NetworkDelegate()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.qualityOfService = .userInitiated
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
        return Inner(outer: outer, session: session, delegate: delegate)
    }
}

/// Stands for a request under way. Cancelling it twice, or after the end, does nothing.
final class FetchToken: Sendable {
    private struct State {
        var isCancelled = false
        var task: URLSessionTask?
        var delegate: NetworkDelegate?
    }

    private let state = Mutex(State())
    private let queue: DispatchQueue

    init(queue: DispatchQueue) {
        self.queue = queue
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func didStart(_ task: URLSessionTask, delegate: NetworkDelegate) {
        state.withLock { state in
            state.task = task
            state.delegate = delegate
        }
    }

    /// The receiver hears nothing any more.
    func cancel() {
        let (task, delegate) = state.withLock { state in
            state.isCancelled = true
            defer { (state.task, state.delegate) = (nil, nil) }
            return (state.task, state.delegate)
        }
        guard let task else { return }
        delegate?.remove(task)
        queue.async { task.cancel() }
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
        if let response = response as? HTTPURLResponse {
            receiver(of: dataTask)?.fetchReceived(response)
        }
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

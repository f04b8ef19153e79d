import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The one way to a protocol's client: in order, on the queue that Foundation expects, and never after the end.
///
/// Foundation on Linux crashes at a call to the client of a stopped task, so every call first checks the
/// state, on the very queue that stops. A suspended task's calls wait until it is resumed.
///
/// `@unchecked Sendable`: the state is behind the lock or confined to `queue`; the task is passed to its delegate and
/// otherwise not used.
final class ClientPort: LoadClient, @unchecked Sendable {
    /// With completion handlers, each `didLoad` replaces the data before it.
    let acceptsPieces: Bool
    var confirmsStorage: Bool { acceptsPieces }
    #if canImport(Darwin)
        // Foundation on Linux does not use the priority, and crashes when it is read on `queue`.
        var priority: Float { task.priority }
    #endif

    private weak var urlProtocol: URLProtocol?
    private let task: URLSessionTask
    private let session: URLSession
    private let queue: any ClientQueue
    /// The first one that has a method decides.
    private let delegates: [any URLSessionTaskDelegate]
    #if canImport(FoundationNetworking)
        /// The delegate of `data(for:delegate:)`. The client reports the head to it and keeps the body to itself.
        private let taskDelegate: (any URLSessionDataDelegate)?
    #endif
    /// The delegate has a piece of a body in a file: the next one is read when the delegate is done with it.
    private var awaitsDelegate = false
    private let calls = Mutex(CallQueue())
    /// The client knows that the task has ended. Not so after a 401: Foundation may ask for credentials then, and a
    /// refusal ends the task through the client.
    private(set) var hasEnded = false
    private var isUnauthorized = false

    /// To be called inside `startLoading`. Nil for a task whose client can be called on an unknown queue only.
    init?(_ urlProtocol: URLProtocol, task: URLSessionTask, link: SessionLink) {
        self.urlProtocol = urlProtocol
        self.task = task
        session = link.session
        #if canImport(FoundationNetworking)
            guard let workQueue = link.workQueue else { return nil }
            queue = workQueue
            delegates = task.delegate.map { [$0] } ?? []
            switch TaskSession.audience(of: task, in: session) {
            case .delegate?: (acceptsPieces, taskDelegate) = (session.delegate is any URLSessionDataDelegate, nil)
            case .completionHandler(let delegate)?: (acceptsPieces, taskDelegate) = (false, delegate)
            case nil: (acceptsPieces, taskDelegate) = (false, nil)
            }
        #else
            queue = ClientThread.current()
            delegates = [task.delegate, session.delegate as? any URLSessionTaskDelegate].compactMap { $0 }
            acceptsPieces = true
        #endif
    }

    /// Called from any thread except `queue`.
    func send(_ calls: [LoadCall]) {
        if !calls.isEmpty { queue.enqueue { self.perform(calls) } }
    }

    /// On `queue`.
    func perform(_ calls: [LoadCall]) {
        self.calls.withLock { queue in
            for call in calls { queue.append(call) }
        }
        deliverAll()
    }

    private func deliverAll() {
        while !awaitsDelegate, let call = calls.withLock({ $0.next() }) { deliver(call) }
    }

    /// On `queue`: the task was suspended.
    func pause() {
        calls.withLock { $0.isPaused = true }
    }

    /// On `queue`: the task was resumed.
    func resume() {
        calls.withLock { $0.isPaused = false }
        deliverAll()
    }

    /// No call comes after this one. On `queue`; on Apple platforms from any thread, since the system may stop a
    /// protocol on another thread than it started it on.
    func close() {
        calls.withLock { $0.close() }
    }

    private func deliver(_ call: LoadCall) {
        guard let urlProtocol, let client = urlProtocol.client else { return }
        switch call {
        case .receive(let head):
            isUnauthorized = head.status == 401
            client.urlProtocol(urlProtocol, didReceive: head.response, cacheStoragePolicy: .notAllowed)
        case .load(let data):
            #if canImport(FoundationNetworking)
                if let taskDelegate, let dataTask = task as? URLSessionDataTask, !data.isEmpty {
                    session.delegateQueue.addOperation { [session] in
                        taskDelegate.urlSession(session, dataTask: dataTask, didReceive: data)
                    }
                }
            #endif
            client.urlProtocol(urlProtocol, didLoad: data)
        case .read(let body):
            guard let piece = body.contents else { return deliver(.fail(URLError(.resourceUnavailable), nil)) }
            awaitsDelegate = true
            client.urlProtocol(urlProtocol, didLoad: piece)
            session.delegateQueue.addOperation { [self] in
                queue.enqueue {
                    self.awaitsDelegate = false
                    self.deliverAll()
                }
            }
        case .finish:
            close()
            client.urlProtocolDidFinishLoading(urlProtocol)
            hasEnded = !isUnauthorized
        case .fail(let error, _):
            close()
            client.urlProtocol(urlProtocol, didFailWithError: error)
            hasEnded = true
        }
    }

    // MARK: The delegates' decisions

    func confirmStorage(
        of response: CachedURLResponse, completion: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard acceptsPieces, let dataTask = task as? URLSessionDataTask else { return completion(response) }
        // The delegate does not confirm a response for a cancelled task.
        guard !calls.withLock({ $0.isClosed }) else { return completion(nil) }
        session.delegateQueue.addOperation { [session, delegates] in
            for case let delegate as any URLSessionDataDelegate in delegates {
                #if canImport(Darwin)
                    let answer: Void? = delegate.urlSession?(
                        session, dataTask: dataTask, willCacheResponse: response, completionHandler: completion)
                    if answer != nil { return }
                #else
                    return delegate.urlSession(
                        session, dataTask: dataTask, willCacheResponse: response, completionHandler: completion)
                #endif
            }
            completion(response)
        }
    }

    func confirmRedirect(
        _ head: ResponseHead, of request: DiskURLCache.Request, to following: DiskURLCache.Request,
        completion proceed: @escaping @Sendable (DiskURLCache.Request?) -> Void
    ) {
        let head = DeliveredHead(to: request, status: head.status, fields: head.fields)
        guard !delegates.isEmpty, let response = head.response as? HTTPURLResponse else { return proceed(following) }
        let next = following.urlRequest
        let completion: @Sendable (URLRequest?) -> Void = { proceed($0.map { DiskURLCache.Request($0) }) }
        session.delegateQueue.addOperation { [session, task, delegates] in
            for delegate in delegates {
                #if canImport(Darwin)
                    let answer: Void? = delegate.urlSession?(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                        completionHandler: completion)
                    if answer != nil { return }
                #else
                    return delegate.urlSession(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                        completionHandler: completion)
                #endif
            }
            completion(next)
        }
    }
}

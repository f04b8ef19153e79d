import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The one way to a protocol's client: in order, on the queue that Foundation expects, and never after the end.
///
/// Foundation on Linux crashes at a call to the client of a stopped task, so every call first checks the
/// state, on the very queue that stops. A suspended task's calls wait until it is resumed.
///
/// The pieces of a task with a delegate go to the delegate as with Foundation's own class, on the delegate queue and
/// without the client: on the one queue that all sessions share, the pieces of a fast answer would accumulate.
///
/// `@unchecked Sendable`: the state is confined to `queue`; the task is passed to its delegate and otherwise not used.
final class ClientPort: LoadClient, @unchecked Sendable {
    /// The calls after the head of an answer that streams.
    private struct Stream {
        var calls = CallQueue()
        /// The head is on its way: later calls must wait for it.
        var hasHead = false
        /// The delegate has got the head.
        var isOpen = false
    }

    var undeliveredBytes: Int { stream.withLock { $0.calls.undeliveredBytes } }

    /// With completion handlers, each `didLoad` replaces the data before it.
    let takesPieces: Bool
    var confirmsStorage: Bool { takesPieces }
    var confirmsRedirects: Bool { delegate != nil }
    #if canImport(Darwin)
        // Foundation on Linux does not use the priority, and crashes when it is read on `queue`.
        var priority: Float { task.priority }
    #endif

    private weak var urlProtocol: URLProtocol?
    private let task: URLSessionTask
    private let session: URLSession?
    private let delegate: (any URLSessionTaskDelegate)?
    private let queue: (any ClientQueue)?
    /// The delegate that takes pieces directly; nil if they go through the client.
    private let dataDelegate: (any URLSessionDataDelegate)?
    #if canImport(FoundationNetworking)
        /// The delegate of `data(for:delegate:)`. The client reports the head to it and keeps the body to itself.
        private let taskDelegate: (any URLSessionDataDelegate)?
    #endif
    private let stream = Mutex(Stream())
    /// The calls that go through the client.
    private var calls = CallQueue()
    /// The client knows that the task has ended. Not so after a 401: Foundation may ask for credentials then, and a
    /// refusal ends the task through the client.
    private(set) var hasEnded = false
    private var isUnauthorized = false
    private var hasToldHead = false

    /// To be called inside `startLoading`.
    init(_ urlProtocol: URLProtocol, task: URLSessionTask, link: SessionLink) {
        self.urlProtocol = urlProtocol
        self.task = task
        session = link.session
        #if canImport(FoundationNetworking)
            queue = link.workQueue
        #elseif canImport(Darwin)
            queue = ClientThread.current()
        #else
            queue = nil
        #endif
        #if canImport(FoundationNetworking)
            delegate = task.delegate
            switch link.audience(of: task) {
            case .delegate?: (takesPieces, taskDelegate) = (link.session?.delegate is any URLSessionDataDelegate, nil)
            case .completionHandler(let delegate)?: (takesPieces, taskDelegate) = (false, delegate)
            case nil: (takesPieces, taskDelegate) = (false, nil)
            }
        #else
            // If the task has no delegate, the session's delegate decides about redirects and storage.
            delegate = task.delegate ?? link.session?.delegate as? any URLSessionTaskDelegate
            takesPieces = true
        #endif
        dataDelegate =
            takesPieces && link.hasSerialDelegateQueue ? link.session?.delegate as? any URLSessionDataDelegate : nil
    }

    /// Called from any thread except `queue`.
    func send(_ calls: [LoadCall]) {
        guard !calls.isEmpty else { return }
        guard let queue else { return perform(calls) }
        guard dataDelegate != nil else { return queue.enqueue { self.perform(calls) } }
        let (direct, hasMore) = stream.withLock { stream -> ([LoadCall], Bool) in
            defer { if calls.contains(where: \.isHead) { stream.hasHead = true } }
            if stream.hasHead {
                for call in calls { stream.calls.append(call) }
                return ([], true)
            }
            // A body in a file is read at the delegate's pace.
            guard let head = calls.firstIndex(where: \.isHead), calls.contains(where: \.isRead) else {
                return (calls, false)
            }
            for call in calls[(head + 1)...] { stream.calls.append(call) }
            return (Array(calls[...head]), false)
        }
        if hasMore { return passOnSoon() }
        queue.enqueue { self.perform(direct) }
    }

    /// On `queue`.
    func perform(_ calls: [LoadCall]) {
        for call in calls { self.calls.append(call) }
        deliverAll()
    }

    private func deliverAll() {
        while let call = calls.next() {
            #if canImport(Darwin)
                if stream.withLock({ $0.calls.isClosed }) { return }
            #endif
            deliver(call)
        }
    }

    /// On `queue`: the task was suspended.
    func pause() {
        calls.isPaused = true
        stream.withLock { $0.calls.isPaused = true }
    }

    /// On `queue`: the task was resumed.
    func resume() {
        guard calls.isPaused else { return }
        calls.isPaused = false
        stream.withLock { $0.calls.isPaused = false }
        deliverAll()
        openStream()
    }

    /// No call comes after this one. On `queue`; on Apple platforms from any thread, since the system may stop a protocol on another
    /// thread than it started it on: so only the state behind the lock may be changed.
    func close() {
        stream.withLock { $0.calls.close() }
        #if !canImport(Darwin)
            calls.close()
            urlProtocol = nil
        #endif
    }

    private func deliver(_ call: LoadCall) {
        guard let urlProtocol, let client = urlProtocol.client else { return }
        switch call {
        case .receive(let head):
            isUnauthorized = head.status == 401
            client.urlProtocol(urlProtocol, didReceive: head.response, cacheStoragePolicy: .notAllowed)
            hasToldHead = true
            openStream()
        case .load(let data):
            #if canImport(FoundationNetworking)
                if let taskDelegate, let session, let dataTask = task as? URLSessionDataTask, !data.isEmpty {
                    session.delegateQueue.addOperation {
                        taskDelegate.urlSession(session, dataTask: dataTask, didReceive: data)
                    }
                }
            #endif
            client.urlProtocol(urlProtocol, didLoad: data)
        case .read(let body):
            guard let piece = body.contents else { return deliver(.unreadable) }
            client.urlProtocol(urlProtocol, didLoad: piece)
        case .finish:
            calls.close()
            client.urlProtocolDidFinishLoading(urlProtocol)
            hasEnded = !isUnauthorized
        case .fail(let error, _):
            calls.close()
            client.urlProtocol(urlProtocol, didFailWithError: error)
            hasEnded = true
        }
    }

    // MARK: Streaming

    private func passOnSoon() {
        guard let delegateQueue = session?.delegateQueue else { return }
        // Pieces from the network come on the delegate queue already: see `NetworkSessions`.
        if OperationQueue.current === delegateQueue { passOn() } else { delegateQueue.addOperation(passOn) }
    }

    /// On `queue`, once the delegate queue has the head. Opens the stream after the head: an earlier operation must not overtake it.
    private func openStream() {
        guard dataDelegate != nil, hasToldHead else { return }
        session?.delegateQueue.addOperation { [self] in
            stream.withLock { $0.isOpen = true }
            passOn()
        }
    }

    /// On the delegate queue, which is serial, so that the delegate gets all calls in order.
    @Sendable private func passOn() {
        guard let dataDelegate, let session, let dataTask = task as? URLSessionDataTask else { return }
        func deliver(_ data: Data) {
            #if canImport(Darwin)
                dataDelegate.urlSession?(session, dataTask: dataTask, didReceive: data)
            #else
                dataDelegate.urlSession(session, dataTask: dataTask, didReceive: data)
            #endif
        }
        while true {
            switch stream.withLock({ $0.isOpen ? $0.calls.next() : nil }) {
            case nil: return
            case .load(let data): deliver(data)
            case .read(let body):
                guard let piece = body.contents else {
                    stream.withLock { $0.calls.close() }
                    queue?.enqueue { self.perform([.unreadable]) }
                    return
                }
                deliver(piece)
                // The session's other tasks get their turn in between.
                return session.delegateQueue.addOperation(passOn)
            case let call?: queue?.enqueue { self.perform([call]) }
            }
        }
    }

    // MARK: The delegate's decisions

    func confirmStorage(
        of response: CachedURLResponse, completion: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard takesPieces, let session, let dataTask = task as? URLSessionDataTask,
            let delegate = delegate as? any URLSessionDataDelegate
        else { return completion(response) }
        // The delegate does not confirm a response for a cancelled task.
        guard !stream.withLock({ $0.calls.isClosed }) else { return completion(nil) }
        session.delegateQueue.addOperation {
            #if canImport(Darwin)
                if delegate.urlSession?(
                    session, dataTask: dataTask, willCacheResponse: response, completionHandler: completion) != nil
                {
                    return
                }
                // If the task's delegate has no such method, the session's delegate decides.
                guard let other = session.delegate as? any URLSessionDataDelegate,
                    other.urlSession?(
                        session, dataTask: dataTask, willCacheResponse: response, completionHandler: completion) != nil
                else { return completion(response) }
            #else
                delegate.urlSession(
                    session, dataTask: dataTask, willCacheResponse: response, completionHandler: completion)
            #endif
        }
    }

    func confirmRedirect(
        _ head: ResponseHead, of request: DiskURLCache.Request, to following: DiskURLCache.Request,
        completion proceed: @escaping @Sendable (DiskURLCache.Request?) -> Void
    ) {
        let head = DeliveredHead(to: request, status: head.status, fields: head.fields)
        guard let session, let delegate, let response = head.response as? HTTPURLResponse else {
            return proceed(following)
        }
        let task = task
        let next = following.urlRequest
        let completion: @Sendable (URLRequest?) -> Void = { proceed($0.map { DiskURLCache.Request($0) }) }
        session.delegateQueue.addOperation {
            #if canImport(Darwin)
                if delegate.urlSession?(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                    completionHandler: completion) != nil
                {
                    return
                }
                guard let other = session.delegate as? any URLSessionTaskDelegate,
                    other.urlSession?(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                        completionHandler: completion) != nil
                else { return completion(next) }
            #else
                delegate.urlSession(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                    completionHandler: completion)
            #endif
        }
    }
}

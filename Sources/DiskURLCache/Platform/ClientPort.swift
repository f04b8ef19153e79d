import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The one way to a protocol's client: in order, on the queue where Foundation expects it, and never after the end.
///
/// Calling the client of a task that was stopped ends the process on Linux, so every call is checked against the
/// state on the very queue that stops. A suspended task's calls wait until it is resumed.
///
/// The pieces of a delegate's task go to the delegate as Foundation's own class hands them over, on the delegate queue and
/// without the client: a detour for each over the one queue that all sessions share would let a fast answer pile up before it.
///
/// `@unchecked Sendable`: the state is confined to `queue`; the task is handed to its delegate and not used else.
final class ClientPort: LoadClient, @unchecked Sendable {
    /// What follows the head of an answer that streams.
    private struct Stream {
        var calls = CallQueue()
        /// The head is on its way: what comes now comes after it.
        var hasHead = false
        /// The delegate has heard the head.
        var isOpen = false
    }

    var undeliveredBytes: Int { stream.withLock { $0.calls.undeliveredBytes } }

    var wantsSummary: Bool { false }
    /// For completion handlers each `didLoad` replaces the data before it.
    let takesPieces: Bool
    var confirmsStorage: Bool { takesPieces }
    var confirmsRedirects: Bool { delegate != nil }
    #if canImport(Darwin)
        // Foundation on Linux makes no use of it, and reading it on `queue` ends the process there.
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
    /// What goes through the client.
    private var calls = CallQueue()
    /// The client knows that the task is over. Not so after a 401: Foundation may ask for credentials then, and it is
    /// through the client that a refusal ends the task.
    private(set) var hasEnded = false
    private var isUnauthorized = false
    private var hasToldHead = false

    /// Where `startLoading` was called.
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
            // What only the session's delegate hears of, it is asked about where the task has no delegate of its own.
            delegate = task.delegate ?? link.session?.delegate as? any URLSessionTaskDelegate
            takesPieces = true
        #endif
        dataDelegate =
            takesPieces && link.hasSerialDelegateQueue ? link.session?.delegate as? any URLSessionDataDelegate : nil
    }

    /// From any thread but `queue`.
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
            // A body in a file is read as fast as the delegate takes it.
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

    /// On `queue`: the task goes on.
    func resume() {
        guard calls.isPaused else { return }
        calls.isPaused = false
        stream.withLock { $0.calls.isPaused = false }
        deliverAll()
        openStream()
    }

    /// No call comes after this one. On `queue`; on Apple platforms, where the system stops a protocol on another thread than it
    /// started it on, from any thread, so that only what is behind the lock may be changed.
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
        case .read(var body):
            while !body.isEmpty {
                guard let piece = body.next() else { return deliver(.unreadable) }
                client.urlProtocol(urlProtocol, didLoad: piece)
            }
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
        // What comes from the network comes on the delegate queue already: see `NetworkSessions`.
        if OperationQueue.current === delegateQueue { passOn() } else { delegateQueue.addOperation(passOn) }
    }

    /// On `queue`, once the delegate queue has the head. Opened behind it there: an earlier operation must not overtake it.
    private func openStream() {
        guard dataDelegate != nil, hasToldHead else { return }
        session?.delegateQueue.addOperation { [self] in
            stream.withLock { $0.isOpen = true }
            passOn()
        }
    }

    /// On the delegate queue, which is serial: so the delegate gets everything in order.
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
            case .read(var body):
                guard let piece = body.next() else {
                    stream.withLock { $0.calls.close() }
                    queue?.enqueue { self.perform([.unreadable]) }
                    return
                }
                stream.withLock { $0.calls.putBack(body) }
                deliver(piece)
                // The session's other tasks have their turn in between.
                return session.delegateQueue.addOperation(passOn)
            case let call?: queue?.enqueue { self.perform([call]) }
            }
        }
    }

    // MARK: The delegate's say

    func confirmStorage(
        of response: CachedURLResponse, completion: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard takesPieces, let session, let dataTask = task as? URLSessionDataTask,
            let delegate = delegate as? any URLSessionDataDelegate
        else { return completion(response) }
        // Of a task that was cancelled the delegate is not asked any more.
        guard !stream.withLock({ $0.calls.isClosed }) else { return completion(nil) }
        session.delegateQueue.addOperation {
            #if canImport(Darwin)
                if delegate.urlSession?(
                    session, dataTask: dataTask, willCacheResponse: response, completionHandler: completion) != nil
                {
                    return
                }
                // The task's own delegate has no such method: then the session's is asked.
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
        _ response: HTTPURLResponse, to next: URLRequest, completion: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard let session, let delegate else { return completion(next) }
        let task = task
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

#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking

    /// The network for a task with a completion handler. What the load asks first is Foundation's own load of the task, with this
    /// object as its client: no second task, and timeouts, cookies and progress are Foundation's. All else goes by the
    /// inner session.
    ///
    /// Foundation follows the redirects of such a task by itself. So a request with credentials is not sent so, since Foundation
    /// passes them on to other origins; nor is one of a URL that is known to redirect.
    ///
    /// `@unchecked Sendable`: what changes is used on the queue on which Foundation calls protocols, only; `wasAsked` is behind its
    /// lock.
    final class OwnLoad: NSObject, Transport, URLProtocolClient, @unchecked Sendable {
        private let link: SessionLink
        private let task: URLSessionTask
        private let nativeClass: URLProtocol.Type
        /// As the load begins with it.
        private let first: URLRequest
        private let redirects: KnownRedirects
        private let workQueue: DispatchQueue
        private let wasAsked = Mutex(false)
        /// The thread that runs `starting`: what is sent from it is sent on the work queue.
        private let startingThread = Mutex<pthread_t?>(nil)

        /// Holds this object as its client, so it is let go at the end.
        private var native: URLProtocol?
        private var receiver: (any FetchReceiver)?
        /// As Foundation sent it.
        private var sent: URLRequest?
        private var body = Data()

        /// Nil where Foundation is not to load the task by itself. On the queue on which Foundation calls protocols.
        init?(
            _ outer: URLProtocol, task: URLSessionTask, link: SessionLink, request: URLRequest,
            redirects: KnownRedirects
        ) {
            guard let session = link.session, session.delegate == nil, task.delegate == nil,
                let workQueue = link.workQueue, let url = request.url, request.httpMethod == "GET",
                ["Authorization", "Cookie", "Range"].allSatisfy({ request.value(forHTTPHeaderField: $0) == nil }),
                url.user == nil, url.password == nil,
                // Without a handler Foundation's class drops the body.
                TaskSession(session: session, workQueue: workQueue).audience(of: task) == .completionHandler,
                let nativeClass = Self.nativeClass(for: outer.request, session: session)
            else { return nil }
            self.link = link
            self.task = task
            self.nativeClass = nativeClass
            self.redirects = redirects
            self.workQueue = workQueue
            first = request
            super.init()
        }

        /// Foundation's class, unless a class of the app's would be asked before it: of that one nothing is known.
        private static func nativeClass(for request: URLRequest, session: URLSession) -> URLProtocol.Type? {
            for case let candidate as URLProtocol.Type in NetworkSessions.otherClasses(of: session)
            where candidate.canInit(with: request) {
                return String(reflecting: candidate).hasPrefix("FoundationNetworking.") ? candidate : nil
            }
            return nil
        }

        // MARK: Transport

        func send(_ request: URLRequest, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
            let isOwn = isOwn(request)
            wasAsked.withLock { $0 = true }
            guard isOwn else { return link.send(request, inPieces: inPieces, token: token, receiver: receiver) }
            if startingThread.withLock({ $0.map { pthread_equal($0, pthread_self()) != 0 } == true }) {
                start(request, token, receiver)
            } else {
                workQueue.async { [self] in start(request, token, receiver) }
            }
        }

        /// Runs work on the work queue that may send the request.
        func starting(_ work: () -> Void) {
            startingThread.withLock { $0 = pthread_self() }
            work()
            startingThread.withLock { $0 = nil }
        }

        private func start(_ request: URLRequest, _ token: FetchToken, _ receiver: any FetchReceiver) {
            guard !token.isCancelled else { return }
            guard task.state == .running else {
                // Foundation's class does not begin for a task that rests.
                return link.send(request, inPieces: false, token: token, receiver: receiver)
            }
            guard token.didStart(FetchControls(cancel: {})) else { return }
            self.receiver = receiver
            let native = nativeClass.init(task: task, cachedResponse: nil, client: self)
            self.native = native
            native.startLoading()
            sent = task.currentRequest
        }

        var owner: ObjectIdentifier? { link.owner }
        func prepare(_ request: URLRequest) -> URLRequest { link.prepare(request) }
        func timeout(of request: URLRequest) -> TimeInterval? { link.timeout(of: request) }
        var inBackground: any Transport { link }

        /// True for the first request, without conditions of the cache's.
        private func isOwn(_ request: URLRequest) -> Bool {
            guard !wasAsked.withLock({ $0 }), let url = first.url, request.url == url else { return false }
            return request.allHTTPHeaderFields == first.allHTTPHeaderFields && !redirects.contains(url)
        }

        // MARK: The end

        /// The task was cancelled.
        func stop() {
            guard let native else { return }
            // Foundation's class tells its client of the end, which has heard of it.
            end()
            native.stopLoading()
        }

        private var hasMoved: Bool {
            guard let now = task.currentRequest, let sent else { return false }
            return now.url != sent.url || now.allHTTPHeaderFields != sent.allHTTPHeaderFields
        }

        @discardableResult
        private func end() -> (any FetchReceiver)? {
            defer { (native, receiver) = (nil, nil) }
            return receiver
        }

        // MARK: URLProtocolClient

        func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
            if body.isEmpty { body = data } else { body.append(data) }
        }

        func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
            let (body, hasMoved) = (body, hasMoved)
            self.body = Data()
            guard let receiver = end() else { return }
            guard let response = task.response else { return receiver.fetchEnded(URLError(.badServerResponse)) }
            if hasMoved, let now = task.currentRequest {
                if let url = first.url { redirects.note(url) }
                // The session's own fields went there, too, and may have selected the answer.
                receiver.fetchMoved(to: link.effectiveRequest(now))
            }
            receiver.fetchReceived(response)
            if !body.isEmpty { receiver.fetchReceived(body) }
            receiver.fetchEnded(nil)
        }

        func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
            end()?.fetchEnded(error)
        }

        // Foundation's class tells of these only where there is a delegate.
        func urlProtocol(
            _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
        ) {}
        func urlProtocol(
            _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
        ) {}
        func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}
        func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {}
        func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
    }
#endif

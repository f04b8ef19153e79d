import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session of a task and its settings, as far as they can be read: on Linux from the task, see `TaskSession`; on Apple platforms from
/// the class of its protocol, see `SessionClasses`.
struct SessionLink: Sendable {
    let session: URLSession?
    /// Nil for a load without a task.
    let task: URLSessionTask?
    /// On Linux the queue on which Foundation calls protocols, and on which it expects a protocol to call its client.
    let workQueue: DispatchQueue?
    /// False if the loader must leave a task to Foundation's own class: its client can be called on one queue only.
    let servesTasks: Bool
    /// The app gave the request a `Cookie` field: a redirect does not replace that field by the session's.
    private var hasOwnCookie = false

    /// For a load without a task.
    init(session: URLSession) {
        self.session = session
        task = nil
        workQueue = nil
        servesTasks = false
    }

    /// - Parameter loader: the class of the task's protocol, if one was made.
    init(_ task: URLSessionTask, loader: CachingURLProtocol.Type? = nil) {
        self.task = task
        #if canImport(FoundationNetworking)
            let found = TaskSession(of: task)
            session = found?.session
            workQueue = found?.workQueue
            servesTasks = found != nil
        #else
            session = loader.flatMap { SessionClasses.shared.session(of: $0) }
            workQueue = nil
            servesTasks = session != nil
        #endif
    }

    /// The cache of the session that a task belongs to.
    static func cache(for task: URLSessionTask, link: SessionLink? = nil) -> (any LoadHost)? {
        let link = link ?? SessionLink(task)
        #if canImport(FoundationNetworking)
            if let session = link.session { return session.configuration.urlCache as? any LoadHost }
            return URLCache.shared as? any LoadHost
        #else
            return link.session.flatMap { SessionClasses.shared.cache(of: $0) }
        #endif
    }

    /// The request as Foundation will send it: policy and fields of the configuration are added if the request has none. A task
    /// has the session's cookies since it was made.
    func effectiveRequest(_ request: URLRequest) -> URLRequest {
        guard let configuration = session?.configuration else { return request }
        var request = request
        // Compared first, since a request that is changed is copied.
        let policy = configuration.requestCachePolicy
        if request.cachePolicy == .useProtocolCachePolicy, policy != .useProtocolCachePolicy {
            request.cachePolicy = policy
        }
        guard let additional = configuration.httpAdditionalHeaders, !additional.isEmpty else { return request }
        for (name, value) in additional {
            guard let name = name.base as? String, request.value(forHTTPHeaderField: name) == nil else { continue }
            request.setValue(value as? String ?? "\(value)", forHTTPHeaderField: name)
        }
        return request
    }

    /// The request with the session's cookies, unless it has its own or wants none. On Linux a task has them since it was
    /// made; a load without a task does not, nor does a protocol on Apple platforms.
    mutating func withCookies(_ request: URLRequest) -> URLRequest {
        guard let own = request.value(forHTTPHeaderField: "Cookie") else {
            return servesTasks && workQueue != nil ? request : withSessionCookie(request)
        }
        hasOwnCookie = own != sessionCookie(for: request)
        return request
    }

    private func sessionCookie(for request: URLRequest) -> String? {
        guard request.httpShouldHandleCookies, let configuration = session?.configuration,
            configuration.httpShouldSetCookies, let url = request.url,
            let cookies = configuration.httpCookieStorage?.cookies(for: url), !cookies.isEmpty,
            let value = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"], !value.isEmpty
        else { return nil }
        return value
    }

    /// Whether the loader handles tasks of this session. `URLSession.shared` takes registered classes.
    var hasLoader: Bool {
        guard let session else { return false }
        return session.configuration.protocolClasses?.contains(where: CachingURLProtocol.isLoader) == true
    }

    /// Whether pieces may go to the session's delegate without the protocol's client, in order. On Apple platforms everything goes
    /// through the client, which handles completion handlers and tasks' own delegates.
    var hasSerialDelegateQueue: Bool {
        #if canImport(FoundationNetworking)
            return session?.delegateQueue.maxConcurrentOperationCount == 1
        #else
            return false
        #endif
    }

    #if canImport(FoundationNetworking)
        /// The recipient of a task's body; nil if it is not known. To be called on `workQueue`.
        func audience(of task: URLSessionTask) -> TaskSession.Audience? {
            guard let session, let workQueue else { return nil }
            return TaskSession(session: session, workQueue: workQueue).audience(of: task)
        }

        /// True when it is certain that each piece reaches a delegate: a completion handler would get the last piece only.
        /// To be called on `workQueue`.
        func deliversPieces(of task: URLSessionTask) -> Bool {
            guard session?.delegate is any URLSessionDataDelegate, case .delegate? = audience(of: task) else {
                return false
            }
            return true
        }
    #endif
}

extension SessionLink: LoadTransport {
    func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        let delegateQueue = inPieces && hasSerialDelegateQueue ? session?.delegateQueue : nil
        var request = request.urlRequest
        // The load has decided already. The inner session has no cache, but a policy may forbid the network.
        if request.cachePolicy != .useProtocolCachePolicy { request.cachePolicy = .reloadIgnoringLocalCacheData }
        NetworkSessions.shared.start(
            request, outer: session, task: task, delegateQueue: delegateQueue, token: token, receiver: receiver)
    }

    var owner: ObjectIdentifier? { session.map { ObjectIdentifier($0) } }

    /// The request with the session's current cookies, as Foundation does it, unless the app gave the request its own.
    func prepare(_ request: DiskURLCache.Request) -> DiskURLCache.Request {
        if hasOwnCookie, request.headerFields["Cookie"] != nil { return request }
        guard let cookie = sessionCookie(for: request.urlRequest) else { return request }
        var request = request
        request.headerFields.set("Cookie", cookie)
        return request
    }

    private func withSessionCookie(_ request: URLRequest) -> URLRequest {
        guard let cookie = sessionCookie(for: request) else { return request }
        var request = request
        request.setValue(cookie, forHTTPHeaderField: "Cookie")
        return request
    }

    /// Half of the request's own timeout, or of the session's: a request does not tell whether its 60 seconds were set.
    func patience(of request: DiskURLCache.Request) -> TimeInterval {
        guard request.timeoutInterval == 60, let session else { return request.timeoutInterval / 2 }
        return session.configuration.timeoutIntervalForRequest / 2
    }
}

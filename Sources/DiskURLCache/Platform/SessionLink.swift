import Foundation

/// The session of a task and its settings: on Linux known since the session made the task, or read from the task, see
/// `NotedTasks` and `TaskSession`; on Apple platforms known by the class of the task's protocol, see `SessionClasses`.
struct SessionLink: Sendable {
    let session: URLSession
    let outer: OuterSession
    /// Nil for a load without a task.
    let task: URLSessionTask?
    /// Whether a completion handler gets the body; nil if that is not known.
    let hasHandler: Bool?
    /// The `Cookie` field that the app gave the task's request; nil also if nobody noted how the task was made.
    private let givenCookie: String?
    /// Whether an async method made the task; nil if that was not read.
    let isAsync: Bool?
    /// Of the whole load, if a transport sends its requests; Foundation sees to it otherwise.
    private let deadline: DispatchTime
    /// The cookies of the first request are the app's: no request of the load gets the session's.
    private var hasSetCookie = false

    /// - Parameter task: nil for a load without a task.
    init(
        session: URLSession, task: URLSessionTask? = nil, hasHandler: Bool? = nil, cookie: String? = nil,
        isAsync: Bool? = nil, outer known: OuterSession? = nil
    ) {
        outer = known ?? NetworkSessions.shared.outer(of: session)
        self.session = session
        self.task = task
        self.hasHandler = hasHandler
        givenCookie = cookie
        self.isAsync = isAsync
        deadline = outer.transport.map { .now() + $0.configuration.timeoutIntervalForResource } ?? .distantFuture
    }

    var configuration: URLSessionConfiguration { outer.configuration(of: session) }

    /// The queue on which Foundation expects a protocol to call its client. Nil for a load without a task, and on Apple
    /// platforms.
    var workQueue: DispatchQueue? { task == nil ? nil : outer.workQueue }

    /// The request as Foundation will send it: policy and fields of the configuration are added if the request has
    /// none.
    func effectiveRequest(_ request: URLRequest) -> URLRequest {
        let configuration = configuration
        var request = request
        // Compared first, since a request that is changed is copied.
        let policy = configuration.requestCachePolicy
        if request.cachePolicy == .useProtocolCachePolicy, policy != .useProtocolCachePolicy {
            request.cachePolicy = policy
        }
        guard let additional = configuration.httpAdditionalHeaders, !additional.isEmpty else { return request }
        // Together, since `setValue(_:forHTTPHeaderField:)` of Foundation on Linux changes the case of letters.
        var fields = request.allHTTPHeaderFields ?? [:]
        for (name, value) in additional {
            guard let name = name.base as? String, request.value(forHTTPHeaderField: name) == nil else { continue }
            fields[name] = value as? String ?? "\(value)"
        }
        request.allHTTPHeaderFields = fields
        return request
    }

    /// The first request of a load, with the session's cookies unless it has its own or wants none. On Linux a task has
    /// the session's since it was made.
    mutating func withCookies(_ request: DiskURLCache.Request) -> DiskURLCache.Request {
        hasSetCookie = request.headerFields["Cookie"].map { isOwn($0, of: request) } ?? false
        return workQueue == nil ? withSessionCookie(request) : request
    }

    /// Whether the cookies of a load's first request are the app's.
    private func isOwn(_ cookie: String, of request: DiskURLCache.Request) -> Bool {
        if workQueue == nil { return true }
        // Foundation replaces a field of the app by the session's cookies, if there are any for the URL. Those that it
        // has now cannot be told from equal ones of the app.
        guard cookie != sessionCookie(for: request) else { return false }
        // A task that nobody noted was mostly made just now, by an async method, with the cookies of this moment.
        return hasHandler == nil || cookie == givenCookie || cookie == additionalCookie
    }

    /// The `Cookie` field that the configuration adds to each request which has none.
    private var additionalCookie: String? {
        let field = configuration.httpAdditionalHeaders?.first { ($0.key.base as? String)?.lowercased() == "cookie" }
        return field.map { $0.value as? String ?? "\($0.value)" }
    }

    /// With the cookies that the session has now: those of an earlier request may have been deleted meanwhile.
    private func withSessionCookie(_ request: DiskURLCache.Request) -> DiskURLCache.Request {
        guard !hasSetCookie, let storage = cookieStorage(for: request) else { return request }
        let cookie = Self.cookie(in: storage, for: request)
        guard cookie != request.headerFields["Cookie"] else { return request }
        var request = request
        if let cookie { request.headerFields.set("Cookie", cookie) } else { request.headerFields.remove("Cookie") }
        return request
    }

    private func sessionCookie(for request: DiskURLCache.Request) -> String? {
        cookieStorage(for: request).flatMap { Self.cookie(in: $0, for: request) }
    }

    /// Nil if the session adds no cookies to the request.
    private func cookieStorage(for request: DiskURLCache.Request) -> HTTPCookieStorage? {
        guard request.handlesCookies else { return nil }
        let configuration = configuration
        return configuration.httpShouldSetCookies ? configuration.httpCookieStorage : nil
    }

    private static func cookie(in storage: HTTPCookieStorage, for request: DiskURLCache.Request) -> String? {
        // Most caches of an app load what needs no cookie: to find none for a URL takes Foundation much longer.
        guard storage.cookies?.isEmpty == false, let url = request.foundationURL,
            let cookies = storage.cookies(for: url), !cookies.isEmpty,
            let value = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"], !value.isEmpty
        else { return nil }
        return value
    }

    /// Whether the loader handles tasks of this session, as always where it is known who made the task.
    /// `URLSession.shared` takes registered classes.
    var hasLoader: Bool {
        hasHandler != nil || configuration.protocolClasses?.contains(where: CachingURLProtocol.isLoader) == true
    }
}

extension SessionLink: LoadTransport {
    func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        if let transport = outer.transport {
            return transport.send(request, by: deadline, inPieces: inPieces, token: token, receiver: receiver)
        }
        var request = request.urlRequest
        // The load has decided already. The inner session has no cache, but a policy may forbid the network.
        if request.cachePolicy != .useProtocolCachePolicy { request.cachePolicy = .reloadIgnoringLocalCacheData }
        NetworkSessions.start(
            request, outer: outer, session: session, task: task, token: token, receiver: receiver)
    }

    // As URLSession does.
    var decodesBodies: Bool { true }
    // An inner session calls its delegate on one serial queue.
    var sharesItsQueue: Bool { outer.transport?.transport.sharesItsQueue ?? true }
    var sendsOnClientQueue: Bool { outer.transport != nil }
    var keyVariant: String? { outer.transport?.transport.keyVariant }
    /// A transport sends requests of every kind, and an inner session those that may be cached.
    var sendsEveryRequest: Bool { outer.transport != nil }
    var owner: ObjectIdentifier? { ObjectIdentifier(session) }

    /// The request with the session's current cookies, unless the app gave the load its own, or its delegate gave them
    /// to this request.
    func prepare(_ request: DiskURLCache.Request, after last: DiskURLCache.Request) -> DiskURLCache.Request {
        let cookie = request.headerFields["Cookie"]
        let isOfDelegate = cookie != nil && cookie != last.headerFields["Cookie"]
        return isOfDelegate ? request : withSessionCookie(request)
    }

    /// The request's own, or the session's.
    func timeout(of request: DiskURLCache.Request) -> TimeInterval {
        request.timeout(ofSession: configuration.timeoutIntervalForRequest)
    }
}

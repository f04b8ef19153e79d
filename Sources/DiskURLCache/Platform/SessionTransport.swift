import Foundation

/// The network of a session whose requests a transport sends instead of Foundation: see
/// `DiskURLCache.makeSession(configuration:delegate:delegateQueue:through:)`.
///
/// It adds what `URLSession` does besides sending a request: the fields of every request, the timeouts of the
/// configuration, cookies, and errors that are `URLError`s.
final class SessionTransport: Sendable {
    let transport: any LoadTransport
    /// The session has a copy of its own, and nobody changes this one.
    let configuration: URLSessionConfiguration

    init(_ transport: any LoadTransport, _ configuration: URLSessionConfiguration) {
        self.transport = transport
        self.configuration = configuration
    }

    /// - Parameter deadline: of the whole load, with all its redirects (`timeoutIntervalForResource`).
    func send(
        _ request: DiskURLCache.Request, by deadline: DispatchTime, inPieces: Bool, token: FetchToken,
        receiver: any FetchReceiver
    ) {
        func refuse(_ code: URLError.Code, _ text: String) {
            var userInfo: [String: Any] = [NSLocalizedDescriptionKey: text]
            if let url = request.foundationURL { userInfo.setFailingURL(url) }
            receiver.fetchEnded(URLError(code, userInfo: userInfo), of: token)
        }
        // Clients end the process at a port that does not exist.
        guard let url = request.foundationURL, url.host?.isEmpty == false, (0...65_535).contains(url.port ?? 0) else {
            return refuse(.badURL, "The URL has no host, or a port that does not exist.")
        }
        // It could end the first line of the request, and be read as a second one (RFC 9110 §9.1).
        guard FieldSyntax.isToken(request.method) else {
            return refuse(.badURL, "The method is no token, such as GET (RFC 9110 §9.1).")
        }
        // The delegate of a redirect may have given the request one, which a transport has no way to read.
        if request.hasBodyStream {
            return refuse(.requestBodyStreamExhausted, "The body of a redirected request must not be a stream.")
        }
        // As Foundation's own loader does.
        if request.method == "GET", request.body?.isEmpty == false {
            return refuse(.dataLengthExceedsMaximum, "A GET must not have a body. Use QUERY or POST.")
        }
        let exchange = SessionExchange(
            url: url, cookies: cookieStorage(for: request), sharesItsQueue: transport.sharesItsQueue,
            limits: ExchangeLimits(silence: timeout(of: request), deadline: deadline), token: token, receiver: receiver)
        exchange.watch()
        transport.send(completed(request), inPieces: inPieces, token: token, receiver: exchange)
    }

    /// Seconds without a sign of the server after which a request fails.
    private func timeout(of request: DiskURLCache.Request) -> TimeInterval {
        request.timeout(ofSession: configuration.timeoutIntervalForRequest)
    }

    /// The request with the fields that `URLSession` adds to those of the app. They are no part of a key, as those that
    /// Foundation adds. What `Accept-Encoding` says is up to the transport, which decodes.
    private func completed(_ request: DiskURLCache.Request) -> DiskURLCache.Request {
        var additions = [
            HeaderFields.Field(name: "Accept", value: "*/*"), .init(name: "User-Agent", value: Self.userAgent),
        ]
        if let language = Self.language { additions.append(.init(name: "Accept-Language", value: language)) }
        if let authorization = Self.authorization(of: request) {
            additions.append(.init(name: "Authorization", value: authorization))
        }
        if request.method == "POST", request.body?.isEmpty == false {
            additions.append(.init(name: "Content-Type", value: "application/x-www-form-urlencoded"))
        }
        let fields = request.headerFields
        additions.removeAll { fields[$0.name] != nil }
        guard !additions.isEmpty else { return request }
        var request = request
        request.headerFields = HeaderFields(fields.fields + additions)
        return request
    }

    /// User name and password of the URL, which are part of the key: as Foundation on Linux, without waiting for a
    /// challenge (RFC 7617).
    private static func authorization(of request: DiskURLCache.Request) -> String? {
        guard request.url.contains(byte: UInt8(ascii: "@")), let components = URLComponents(string: request.url) else {
            return nil
        }
        let user = components.user ?? ""
        let password = components.password ?? ""
        guard !user.isEmpty || !password.isEmpty else { return nil }
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    private static let userAgent = "\(ProcessInfo.processInfo.processName) (unknown version) DiskURLCache"

    private static let language: String? = {
        #if canImport(FoundationNetworking)
            NSLocale.current.languageCode
        #else
            Locale.preferredLanguages.first
        #endif
    }()

    /// Where the cookies of an answer are kept; nil if nowhere.
    private func cookieStorage(for request: DiskURLCache.Request) -> HTTPCookieStorage? {
        guard configuration.httpCookieAcceptPolicy != .never, request.handlesCookies else {
            return nil
        }
        return configuration.httpCookieStorage
    }

    // MARK: The settings of a session

    /// The settings of a configuration that a transport cannot follow, each with what to do instead. A setting that is
    /// as in the default configuration asks for nothing.
    static func settingsWithoutEffect(_ configuration: URLSessionConfiguration) -> [String] {
        let standard = URLSessionConfiguration.default
        var names: [String] = []
        func check(_ differs: Bool, _ text: String) {
            if differs { names.append(text) }
        }
        check(configuration.identifier != nil, "background(withIdentifier:) (the system loads in another process)")
        check(
            configuration.connectionProxyDictionary?.isEmpty == false,
            "connectionProxyDictionary (name the proxy in the settings of the client)")
        check(
            configuration.httpMaximumConnectionsPerHost != standard.httpMaximumConnectionsPerHost,
            "httpMaximumConnectionsPerHost (limit the connections in the settings of the client)")
        check(!configuration.allowsCellularAccess, "allowsCellularAccess")
        check(configuration.networkServiceType != standard.networkServiceType, "networkServiceType")
        check(configuration.isDiscretionary, "isDiscretionary")
        let known = NetworkSessions.classes(of: standard)
        let own = NetworkSessions.classes(of: configuration).filter { candidate in
            !known.contains { $0 == candidate }
        }
        check(!own.isEmpty, "protocolClasses (\(own.map { "\($0)" }.joined(separator: ", ")))")
        #if canImport(Darwin)
            check(configuration.waitsForConnectivity, "waitsForConnectivity")
            check(!configuration.allowsExpensiveNetworkAccess, "allowsExpensiveNetworkAccess")
            check(!configuration.allowsConstrainedNetworkAccess, "allowsConstrainedNetworkAccess")
            check(
                configuration.tlsMinimumSupportedProtocolVersion != standard.tlsMinimumSupportedProtocolVersion
                    || configuration.tlsMaximumSupportedProtocolVersion != standard.tlsMaximumSupportedProtocolVersion,
                "tlsMinimumSupportedProtocolVersion, tlsMaximumSupportedProtocolVersion (set them in the client)")
        #endif
        return names
    }
}

/// When a request that has no end yet is given up.
struct ExchangeLimits {
    /// Seconds without a sign of the server (`timeoutIntervalForRequest`).
    let silence: TimeInterval
    /// Of the whole load, with all its redirects (`timeoutIntervalForResource`).
    let deadline: DispatchTime

    /// - Parameters:
    ///   - lastSign: when the server last gave a sign, or the request was sent.
    ///   - isPaused: the transfer waits for a slow reader: the server is not expected to say anything.
    ///   - resumedAt: when the last pause ended.
    func end(lastSign: DispatchTime, isPaused: Bool, resumedAt: DispatchTime, now: DispatchTime) -> DispatchTime {
        let quietSince = isPaused ? now : max(lastSign, resumedAt)
        return min(quietSince + silence, deadline)
    }
}

/// One request of such a session: ends it when the server is silent for too long, keeps the cookies of its answer, and
/// makes every error a `URLError`.
///
/// The transport calls it, one call at a time; the time is looked at on the queue of all deadlines. An answer that sets
/// cookies goes on on a queue of its own from its head on, if other answers wait for the transport's: the storage
/// writes a file for each cookie, and the load may hear of the head only when they are kept, since a redirect sends
/// them.
private final class SessionExchange: FetchReceiver {
    private struct State {
        /// When the server last gave a sign, or the request was sent.
        var lastSign = DispatchTime.now()
        var timer: Timeouts.ID?
        /// The transport is inside a call to the receiver: the server has given a sign, and the end waits.
        var isReceiving = false
        var hasEnded = false
        /// Of an answer that sets cookies.
        var queue: DispatchQueue?
    }

    private let state = Mutex(State())
    private let url: URL
    private let cookies: HTTPCookieStorage?
    /// See `LoadTransport.sharesItsQueue`.
    private let sharesItsQueue: Bool
    private let limits: ExchangeLimits
    private let token: FetchToken
    private let receiver: any FetchReceiver

    init(
        url: URL, cookies: HTTPCookieStorage?, sharesItsQueue: Bool, limits: ExchangeLimits, token: FetchToken,
        receiver: any FetchReceiver
    ) {
        self.url = url
        self.cookies = cookies
        self.sharesItsQueue = sharesItsQueue
        self.limits = limits
        self.token = token
        self.receiver = receiver
    }

    // MARK: From the transport

    func fetchUsedCredentials(_ token: FetchToken) { receiver.fetchUsedCredentials(token) }

    func fetchReceived(_ head: DeliveredHead, of token: FetchToken) {
        guard let cookies, head.status >= 200, head.fields["Set-Cookie"] != nil else {
            return perform { $0.receive { $0.fetchReceived(head, of: token) } }
        }
        if sharesItsQueue {
            state.withLock { $0.queue = DispatchQueue(label: "DiskURLCache.answer") }
            // However many cookies a server sets: the transfer waits for them, and its pieces do not pile up.
            token.setPaused(true)
        }
        perform { exchange in
            exchange.receive { receiver in
                exchange.keep(head, in: cookies)
                token.setPaused(false)
                receiver.fetchReceived(head, of: token)
            }
        }
    }

    func fetchReceived(_ data: Data, of token: FetchToken) {
        perform { $0.receive { $0.fetchReceived(data, of: token) } }
    }

    func fetchEnded(_ error: (any Error)?, of token: FetchToken) {
        perform { exchange in
            if exchange.end() { exchange.receiver.fetchEnded(error.map(exchange.urlError), of: token) }
        }
    }

    /// Here, or on the answer's own queue.
    private func perform(_ call: @escaping @Sendable (SessionExchange) -> Void) {
        guard let queue = state.withLock({ $0.queue }) else { return call(self) }
        queue.async { call(self) }
    }

    /// Each field by itself: joined with commas, as in an `HTTPURLResponse`, cookies cannot always be told apart.
    private func keep(_ head: DeliveredHead, in cookies: HTTPCookieStorage) {
        head.fields.forEachField { name, value in
            guard name.equalsIgnoringASCIICase("Set-Cookie") else { return }
            let received = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url)
            if !received.isEmpty { cookies.setCookies(received, for: url, mainDocumentURL: nil) }
        }
    }

    private func urlError(_ error: any Error) -> URLError {
        var code = URLError.Code.unknown
        var userInfo: [String: Any] = [:]
        if let error = error as? URLError {
            code = error.code
            userInfo = error.errorUserInfo
        } else {
            if error is CancellationError { code = .cancelled }
            userInfo[NSUnderlyingErrorKey] = error
            userInfo[NSLocalizedDescriptionKey] = "\(error)"
        }
        userInfo.setFailingURL(url)
        return URLError(code, userInfo: userInfo)
    }

    // MARK: Time

    /// Begins to look at the time.
    func watch() {
        let now = DispatchTime.now()
        lookAgain(at: limits.end(lastSign: now, isPaused: false, resumedAt: now, now: now))
    }

    /// Passes a call on, unless this has ended. The receiver gets one call at a time, so the time is not up meanwhile.
    private func receive(_ call: (any FetchReceiver) -> Void) {
        let isWanted = state.withLock { state in
            guard !state.hasEnded else { return false }
            state.isReceiving = true
            return true
        }
        guard isWanted else { return }
        call(receiver)
        state.withLock { state in
            state.isReceiving = false
            state.lastSign = .now()
        }
    }

    /// False if this had ended before.
    private func end() -> Bool {
        let (isEnd, timer) = state.withLock { state in
            defer { state.hasEnded = true }
            return (!state.hasEnded, state.timer)
        }
        Timeouts.shared.cancel(timer)
        return isEnd
    }

    private func lookAgain(at time: DispatchTime) {
        let now = DispatchTime.now()
        let seconds = time > now ? Double(time.uptimeNanoseconds - now.uptimeNanoseconds) / 1e9 : 0
        // A load that was cancelled is not kept for it.
        let timer = Timeouts.shared.after(seconds) { [weak self] in self?.look() }
        let isLate = state.withLock { state in
            state.timer = timer
            return state.hasEnded
        }
        if isLate { Timeouts.shared.cancel(timer) }
    }

    private func look() {
        let now = DispatchTime.now()
        let isPaused = token.isPaused
        let resumedAt = token.resumedAt
        // When to look again; nil after the end.
        var next: DispatchTime?
        let isTime = state.withLock { state -> Bool in
            if state.hasEnded { return false }
            // A call is short. The time of the whole load may be over by its end.
            if state.isReceiving {
                next = now + 0.01
                return false
            }
            let end = limits.end(lastSign: state.lastSign, isPaused: isPaused, resumedAt: resumedAt, now: now)
            next = end
            state.hasEnded = now >= end
            return state.hasEnded
        }
        guard isTime else {
            if let next { lookAgain(at: next) }
            return
        }
        token.cancel()
        receiver.fetchTimedOut(urlError(URLError(.timedOut)), of: token)
    }
}

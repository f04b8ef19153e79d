import Foundation

// Direct calls, which need no session: answered from memory, disk or network, by the engine that serves URLSession.

extension DiskURLCache {
    /// Answers a request from memory, disk or network. The request's cache policy and options apply; a request that
    /// cannot be cached is sent. Can be called from any thread. The disk is not read on that thread, but for the salt
    /// of the directory: once, for a request with credentials.
    /// - Parameters:
    ///   - request: the request.
    ///   - fallback: sets ``Options/fallback`` of this request: `.anyStored` takes any stored response if the network
    ///     fails, also against the server's word.
    ///   - session: a session of the app, with whose additional header fields, cookies, proxies and timeouts requests
    ///     are sent. Its delegate receives the challenges (Apple platforms). Its loads and this one share responses.
    ///     Nil: a session with the default configuration.
    /// - Throws: the error that `URLSession` would throw, `CancellationError`, or ``Reason/wrongDigest`` if
    ///   ``Configuration/wrongDigest`` says so.
    public func data(
        for request: URLRequest, fallback: Options.Fallback? = nil, session: URLSession? = nil
    ) async throws -> Answer {
        var link = session.map { SessionLink(session: $0) }
        var beginning = try begin(request, fallback, &link, acceptsPieces: false)
        if let (head, body, report) = beginning.end() {
            return try Answer(head, body, report, isDecoded: true, in: core)
        }
        return try await LoadReader(beginning, over: link ?? directLink).answer()
    }

    /// The beginning of a load by a session.
    /// - Parameters:
    ///   - link: of the session that was given. Still nil at the end if the cache's own session goes on with the load
    ///     as it is.
    ///   - policy: in place of the request's.
    private func begin(
        _ request: URLRequest, _ fallback: Options.Fallback?, _ link: inout SessionLink?, acceptsPieces: Bool,
        policy: ReusePolicy? = nil
    ) throws -> LoadBeginning {
        try Task.checkCancellation()
        let url = try request.requireURL()
        var request = request
        if let fallback { request.accept(fallback) }
        // The session would add its fields and cookies to a task. A direct call has no task, so they are added here.
        // The cache's own session has no fields.
        let asked = Request(link?.effectiveRequest(request) ?? request, url: url, policy: policy)
        func beginning(of request: Request) -> LoadBeginning {
            LoadBeginning(core.resolve(request, variant: link?.keyVariant), in: core, streams: acceptsPieces)
        }
        func withCookies() -> Request {
            var sender = link ?? directLink
            defer { link = sender }
            return sender.withCookies(asked)
        }
        guard core.ignoresCookies(of: asked) else { return beginning(of: withCookies()) }
        // To say that there are no cookies takes Foundation as long as half of an answer from memory. Where no code of
        // the app is called, which is called once for each request, memory is looked at first.
        let early = beginning(of: asked)
        if early.isAnsweredForAllCookies { return early }
        let sent = withCookies()
        return sent.isIdentical(to: asked) ? early : beginning(of: sent)
    }

    /// Answers a request as ``data(for:fallback:session:)``, with the body in pieces: a body of any length takes little
    /// memory, whether it comes from the network or from disk. Returns when the head is known. Each piece of a stored
    /// body is read from disk when it is asked for, on the thread of the task that asks.
    ///
    /// ```swift
    /// let stream = try await cache.bytes(for: request)
    /// print(stream.response.statusCode, stream.report.outcome)
    /// for try await piece in stream { hash.update(data: piece) }
    /// ```
    ///
    /// Once there is a head, an error of the network in the middle of the body is thrown by the loop: no stored
    /// response replaces the answer then.
    /// - Parameters:
    ///   - request: the request.
    ///   - fallback: see ``data(for:fallback:session:)``.
    ///   - session: see ``data(for:fallback:session:)``.
    ///   - progress: counts the bytes that the reader of the stream has taken; its total is the length of the body, -1
    ///     until that is known. Cancelling it cancels the load: the cache sets its `cancellationHandler`.
    public func bytes(
        for request: URLRequest, fallback: Options.Fallback? = nil, session: URLSession? = nil,
        progress: Progress? = nil
    ) async throws -> ResponseStream {
        var link = session.map { SessionLink(session: $0) }
        let beginning = try begin(request, fallback, &link, acceptsPieces: true)
        return try await ResponseStream(LoadReader(beginning, over: link ?? directLink), progress: progress)
    }

    /// Answers a request as ``bytes(for:fallback:session:progress:)``, and writes the body to a new file, whether it is
    /// stored or not. The file is a copy: the app may change it. A stored body is copied by the system where it can do
    /// that: it takes no memory, and on some file systems no space.
    ///
    /// The file appears when the body is whole, and with any status: look at `response.statusCode`. But an answer with
    /// a status of 400 or more replaces no file. A process that is killed meanwhile leaves a hidden file beside it,
    /// whose name ends with `.partial`.
    ///
    /// **A download that broke off** goes on with `resuming`. What has come stays in two hidden files beside the
    /// target, `.NAME.partial` and `.NAME.partial.json`, also if the process is killed: at most 16 MB are lost then.
    /// The next call with the same URL and target asks for the rest by `Range` and `If-Range` (RFC 9110 §13.1.5). It
    /// begins anew if the response has changed, or if the origin does not send just that rest. Only responses with a
    /// strong `ETag` and without a content coding go on. The length of the whole, and a digest that the response states
    /// (RFC 9530), are compared. The whole is stored as after a load in one go, but not with
    /// ``Configuration/willCacheResponse``, which would be asked with the whole body. Its head is returned; the report
    /// is that of the request for the rest, which is a bypass. There is no effect on a request that has a body, a
    /// `Range` or a condition, and none while another download of the target is on its way.
    /// - Parameters:
    ///   - request: the request.
    ///   - url: where the file is made, in a folder that exists. It has the permissions that the process gives its new
    ///     files.
    ///   - replacingFile: a file that is there is replaced when the new one is whole, in one step; if the load fails,
    ///     or the status is 400 or more, it stays as it is. Otherwise it is an error.
    ///   - resuming: goes on where an earlier call broke off, and lets a later one go on.
    ///   - fallback: see ``data(for:fallback:session:)``.
    ///   - session: see ``data(for:fallback:session:)``.
    ///   - progress: see ``bytes(for:fallback:session:progress:)``.
    /// - Throws: what ``bytes(for:fallback:session:progress:)`` and its stream throw, and a `CocoaError` for the file:
    ///   `.fileWriteFileExists`, `.fileNoSuchFile` (of the folder), `.fileWriteNoPermission`, `.fileWriteOutOfSpace`…
    ///   If there is a file that is not to be replaced, or none can be made, no request is sent.
    @discardableResult
    public func file(
        for request: URLRequest, at url: URL, replacingFile: Bool = false, resuming: Bool = false,
        fallback: Options.Fallback? = nil, session: URLSession? = nil, progress: Progress? = nil
    ) async throws -> (response: HTTPURLResponse, report: Report) {
        // Foundation on Linux traps when a request without a URL is changed.
        try request.requireURL()
        var request = request
        if let fallback { request.accept(fallback) }
        let resuming = resuming && DownloadPart.mayContinue(request)
        let file = try DestinationFile(url, replacingFile: replacingFile, resuming: resuming)
        defer { file.close() }
        func begin(_ request: URLRequest) async throws -> ResponseStream {
            try await bytes(for: request, session: session, progress: progress)
        }
        if file.isResumable {
            return try await resume(request, file, by: session.map { SessionLink(session: $0) }, begin)
        }
        let stream = try await begin(request)
        try await file.take(stream)
        return (stream.response, stream.report)
    }

    /// The answer to a `GET` of a URL; see ``data(for:fallback:session:)``.
    public func data(from url: URL, session: URLSession? = nil) async throws -> Answer {
        try await data(for: URLRequest(url: url), session: session)
    }

    /// The stored answer at once, stale or not, then the answer of the network.
    ///
    /// The load begins with the call of this method, not with the first element. Yields one element when nothing is
    /// stored, or when a load of the request would ask the origin for nothing: the stored answer is fresh, or as stale
    /// as the request accepts (`max-stale`, `.returnCacheDataElseLoad`), or its URL is not to be asked again yet
    /// (``Options/minimumInterval``, ``Options/errorLifetime``), or ``isOffline`` is true. Otherwise it yields two,
    /// also when a load would use the stale answer and refresh it meanwhile (`stale-while-revalidate`), and when the
    /// request refuses a fresh answer by `max-age` or `min-fresh`. A request whose policy or `Cache-Control` wants the
    /// origin's answer (`no-cache`, `no-store`, `max-age=0`, a policy that reloads) gets only that; one that forbids
    /// the network (`.returnCacheDataDontLoad`, `only-if-cached`) gets only the stored answer. If the network fails
    /// after a stored answer was yielded, the sequence throws that error. An error of the origin (5xx) replaces no
    /// stored answer either: the sequence throws `URLError.badServerResponse`, whose failure reason names the status,
    /// and whose `errorUserInfo["status"]` is that number. Ending the loop early cancels the load.
    ///
    /// If the task of the loop is cancelled, the sequence ends without an error, as every `AsyncThrowingStream`: after
    /// the loop, `Task.isCancelled` tells whether an answer is missing.
    /// - Parameters:
    ///   - request: the request.
    ///   - alwaysRefreshing: sends a request even if the stored answer is fresh.
    ///   - session: see ``data(for:fallback:session:)``.
    public func answers(
        for request: URLRequest, alwaysRefreshing: Bool = false, session: URLSession? = nil
    ) -> AsyncThrowingStream<Answer, any Swift.Error> {
        // Foundation on Linux traps when a request without a URL is changed.
        let hasURL = request.url != nil
        let link = session.map { SessionLink(session: $0) }
        let request = hasURL ? link?.effectiveRequest(request) ?? request : request
        return AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    let url = try request.requireURL()
                    let hop = core.resolve(Request(request), variant: link?.keyVariant)
                    let policy = hop.request.policy
                    let directives = hop.facts.directives
                    let asksForBoth = directives.allowNetwork(policy) && !directives.wantOrigin(policy)
                    var stored = request
                    stored.cachePolicy = .returnCacheDataDontLoad
                    var reason: Reason?
                    if asksForBoth, let answer = try? await data(for: stored, session: session) {
                        continuation.yield(answer)
                        let asksOrigin = await perform { cache in
                            var link = link ?? cache.directLink
                            let sent = link.withCookies(hop.request)
                            return StoredResponses.leaveAQuestion(about: sent, over: link, in: cache.core)
                        }
                        guard alwaysRefreshing && !core.isOffline || asksOrigin else { return continuation.finish() }
                        reason = answer.isStale ? .stale : .newest
                    }
                    var sender = link
                    let beginning = try begin(
                        request, nil, &sender, acceptsPieces: false,
                        policy: reason.map { .revalidate(because: $0) })
                    let answer = try await LoadReader(beginning, over: sender ?? directLink).answer()
                    let status = answer.response.statusCode
                    if reason != nil, StatusCode.isServerTrouble(status) { throw URLError(originFailed: status, url) }
                    continuation.yield(answer)
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Stores data that the app made, as a response with status 200, in place of an earlier one. If it cannot be
    /// stored, an event says why. Does nothing for a request without a URL. Can be called from any thread.
    /// - Parameters:
    ///   - data: the body.
    ///   - request: the request that the response answers.
    ///   - contentType: the response's media type.
    ///   - lifetime: how long the response is fresh: `.days(7)`.
    public func store(
        _ data: Data, for request: URLRequest, contentType: String = "application/octet-stream",
        lifetime: TimeSpan
    ) {
        guard let url = request.url,
            let response = URLResponse.http(
                url: url, status: 200,
                fields: [
                    "Content-Type": contentType, "Content-Length": "\(data.count)",
                    "Cache-Control": "max-age=\(Int64(clampingSeconds: lifetime.seconds))",
                ]) as? HTTPURLResponse
        else { return }
        storeCachedResponse(CachedURLResponse(response: response, data: data), for: request)
    }

    /// Loads responses before they are needed. Those that are stored and fresh are not loaded again.
    ///
    /// - Parameters:
    ///   - requests: loaded in this order.
    ///   - maximumConcurrency: how many loads may run at a time; at least 1.
    ///   - session: see ``data(for:fallback:session:)``. The loads of that session find the responses.
    ///   - progress: counts the requests that have ended. Cancelling it prevents the loads that have not begun.
    ///     Cancelling the Swift task also ends those that are on their way.
    /// - Returns: the requests whose response is not stored now, and why: the error of the load, or a ``Reason`` for a
    ///   response that arrived and is not stored, such as an error of the origin or a response with `no-store`; and the
    ///   status of that response, nil if none arrived.
    @discardableResult
    public func prefetch(
        _ requests: [URLRequest], maximumConcurrency: Int = 4, session: URLSession? = nil,
        progress: Progress = Progress(totalUnitCount: 0)
    ) async -> [(request: URLRequest, error: any Swift.Error, status: Int?)] {
        progress.totalUnitCount = Int64(requests.count)
        var failed: [(request: URLRequest, error: any Swift.Error, status: Int?)] = []
        let waiting = await load(
            requests[...], maximumConcurrency, session, isCancelled: { progress.isCancelled },
            tell: { request, result in
                progress.completedUnitCount += 1
                switch result {
                case .success(let report):
                    if let reason = report.notStoredReason { failed.append((request, reason, report.status)) }
                case .failure(let error): failed.append((request, error, nil))
                }
            })
        return failed + waiting.map { ($0, CancellationError(), nil) }
    }

    /// Loads responses before they are needed, as
    /// ``prefetch(_:maximumConcurrency:session:progress:)``, and tells of each when it is there.
    ///
    /// ```swift
    /// for await (request, result) in cache.prefetchResults(of: requests) {
    ///     if case .success(let report) = result { print(report.status, report.bytes, report.outcome) }
    /// }
    /// ```
    ///
    /// The loads begin with the call of this method. Ending the loop early ends those that are on their way, and
    /// prevents those that have not begun.
    /// - Parameters:
    ///   - requests: loaded in this order.
    ///   - maximumConcurrency: how many loads may run at a time; at least 1.
    ///   - session: see ``data(for:fallback:session:)``.
    /// - Returns: of each request the report of its load, in the order in which they end, or the error.
    public func prefetchResults(
        of requests: [URLRequest], maximumConcurrency: Int = 4, session: URLSession? = nil
    ) -> AsyncStream<(request: URLRequest, result: Result<Report, any Swift.Error>)> {
        AsyncStream { continuation in
            let task = Task {
                _ = await load(
                    requests[...], maximumConcurrency, session, isCancelled: { Task.isCancelled },
                    tell: { continuation.yield(($0, $1)) })
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Loads requests, some at a time.
    /// - Parameters:
    ///   - isCancelled: asked before each load.
    ///   - tell: called with each result, one after the other.
    /// - Returns: the requests that were not loaded, since the caller cancelled.
    private func load(
        _ requests: ArraySlice<URLRequest>, _ maximumConcurrency: Int, _ session: URLSession?,
        isCancelled: () -> Bool, tell: (URLRequest, Result<Report, any Swift.Error>) -> Void
    ) async -> ArraySlice<URLRequest> {
        var waiting = requests
        await withTaskGroup(of: (URLRequest, Result<Report, any Swift.Error>).self) { group in
            func startNext() {
                guard !isCancelled(), let request = waiting.popFirst() else { return }
                group.addTask { [self] in
                    do {
                        return (request, .success(try await data(for: request, session: session).report))
                    } catch {
                        return (request, .failure(error))
                    }
                }
            }
            for _ in 0..<min(max(1, maximumConcurrency), requests.count) { startNext() }
            for await (request, result) in group {
                tell(request, result)
                startNext()
            }
        }
        return waiting
    }
}

extension DiskURLCache {
    /// A load through an app's HTTP client. The head must arrive within the request's timeout.
    package func reader(
        of request: Request, over transport: any LoadTransport, redirect: CacheRedirect? = nil
    ) -> LoadReader {
        LoadReader(
            core.resolve(request, variant: transport.keyVariant), from: core, over: transport, acceptsPieces: true,
            timeout: request.timeout, redirect: redirect)
    }
}

extension URLError {
    /// The error of an answer that replaces no stored one.
    fileprivate init(originFailed status: Int, _ url: URL) {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: "bad server response",
            NSLocalizedFailureReasonErrorKey: "The origin answered with status \(status).", "status": status,
        ]
        userInfo.setFailingURL(url)
        self.init(.badServerResponse, userInfo: userInfo)
    }
}

extension URLRequest {
    /// Foundation on Linux crashes if a request without a URL is changed.
    @discardableResult package func requireURL() throws -> URL {
        guard let url else { throw URLError(.badURL) }
        return url
    }
}

extension DiskURLCache {
    /// The session for direct calls that were not given one.
    var directLink: SessionLink {
        directLinkBox.withLock { box in
            if let link = box { return link }
            let settings = URLSessionConfiguration.default
            settings.urlCache = nil
            if core.configuration.isShared {
                // In a shared cache a response is for all users, so the request must not carry credentials of one.
                settings.httpCookieStorage = nil
                settings.httpShouldSetCookies = false
                settings.urlCredentialStorage = nil
            }
            let session = URLSession(configuration: settings)
            let outer = NetworkSessions.shared.add(OuterSession(session, configuration: settings), for: session)
            let link = SessionLink(session: session, outer: outer)
            box = link
            return link
        }
    }
}

extension URLRequest {
    /// Sets the option.
    fileprivate mutating func accept(_ fallback: DiskURLCache.Options.Fallback) {
        var options = cacheOptions ?? DiskURLCache.Options()
        options.fallback = fallback
        cacheOptions = options
    }
}

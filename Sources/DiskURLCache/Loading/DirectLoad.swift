import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A load that an app starts without a task: keeps the answer until it is read.
final class DirectLoad: LoadClient {
    fileprivate struct State {
        var head: DeliveredHead?
        var pieces = CallQueue()
        var end: Result<Void, any Error>?
        var summary: LoadSummary?
        /// Counts the changes, so that a reader misses none between its check and its wait.
        var changes = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    fileprivate let state = Mutex(State())
    let takesPieces: Bool
    private let redirect: CacheRedirect?

    fileprivate init(takesPieces: Bool, redirect: CacheRedirect?) {
        self.takesPieces = takesPieces
        self.redirect = redirect
    }

    /// Waits until the count of changes has grown.
    fileprivate func change(after count: Int) async {
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                if state.changes == count { state.waiting.append(continuation) }
                return state.changes == count
            }
            if !waits { continuation.resume() }
        }
    }

    /// Calls after the first end are ignored.
    private func hear(_ change: (inout State) -> Void) {
        let waiting = state.withLock { state in
            guard state.end == nil else { return [CheckedContinuation<Void, Never>]() }
            change(&state)
            state.changes += 1
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// The reader gets the error at once: unread pieces are dropped.
    fileprivate func fail(_ error: any Error) {
        hear { state in
            state.pieces.close()
            state.end = .failure(error)
        }
    }

    // MARK: LoadClient

    var wantsSummary: Bool { true }
    var confirmsRedirects: Bool { redirect != nil }
    var undeliveredBytes: Int { state.withLock { $0.pieces.undeliveredBytes } }

    func send(_ calls: [LoadCall]) { perform(calls) }

    func perform(_ calls: [LoadCall]) {
        guard !calls.isEmpty else { return }
        hear { state in
            for call in calls {
                switch call {
                case .receive(let head): state.head = head
                case .load, .read: state.pieces.append(call)
                case .finish(let summary): (state.summary, state.end) = (summary, .success(()))
                case .fail(let error, let summary): (state.summary, state.end) = (summary, .failure(error))
                }
            }
        }
    }

    func close() {}

    func confirmRedirect(
        _ response: HTTPURLResponse, to next: URLRequest, completion: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completion(redirect.map { $0(response, next) } ?? next)
    }
}

/// Decides about a redirect: the request that follows it, or nil for the redirect itself as the answer.
package typealias CacheRedirect = @Sendable (_ response: HTTPURLResponse, _ next: URLRequest) -> URLRequest?

/// Reads a load at its own pace. The load continues as long as there is a reader, and is cancelled with it.
package final class LoadReader: Sendable {
    private let load: DirectLoad
    let driver: LoadDriver
    private let timeout: TimeInterval?

    /// Begins the load.
    /// - Parameters:
    ///   - takesPieces: pieces can be read as they arrive. Otherwise the whole body comes at the end, so that a stored response can
    ///     replace an answer that fails on its way.
    ///   - lookup: of the request's key, if there was one.
    ///   - timeout: seconds after which there must be a head, if the transport has no timeout.
    package init(
        _ request: KeyedRequest, from cache: any LoadHost, over transport: any LoadTransport, lookup: Lookup? = nil,
        takesPieces: Bool = false, timeout: TimeInterval? = nil,
        redirect: CacheRedirect? = nil
    ) {
        load = DirectLoad(takesPieces: takesPieces, redirect: redirect)
        self.timeout = timeout
        driver = LoadDriver(cache: cache, request: request, transport: transport, client: load)
        driver.start(lookup, onClientQueue: false)
    }

    deinit {
        cancel()
    }

    private func cancel(_ error: any Error = CancellationError()) {
        guard load.state.withLock({ $0.end == nil }) else { return }
        load.fail(error)
        driver.cancel()
    }

    /// No head arrived in time. A stored response may replace the answer (RFC 5861 §4), as with a transport that fails.
    private func timeOut() {
        guard load.state.withLock({ $0.head == nil && $0.end == nil }) else { return }
        // After its head, a body may take its time.
        guard !driver.isCompleting, !driver.giveUpNetwork() else { return }
        cancel(URLError(.timedOut))
    }

    /// The head, as soon as it arrives.
    package func head() async throws -> DeliveredHead {
        let head = try await take(within: timeout) { state -> DeliveredHead? in
            if let head = state.head { return head }
            if let end = state.end { try end.get() }
            return nil
        }
        guard head.isHTTP else { throw URLError(.badServerResponse) }
        return head
    }

    /// The next piece of the body; nil at its end. For one reader at a time.
    package func next() async throws -> Data? {
        let (call, hasCaughtUp) = try await take { state -> (LoadCall?, Bool)? in
            let limit = LoadDriver.undeliveredLimit
            let wasBehind = state.pieces.undeliveredBytes > limit
            guard let call = state.pieces.next() else {
                try state.end?.get()
                return state.end == nil ? nil : (nil, false)
            }
            return (call, wasBehind && state.pieces.undeliveredBytes <= limit)
        }
        if hasCaughtUp { driver.clientCaughtUp() }
        switch call {
        case .load(let data)?: return data
        case .read(var body)?:
            guard let data = body.next() else {
                let error = URLError(.resourceUnavailable)
                cancel(error)
                throw error
            }
            let rest = body
            load.state.withLock { $0.pieces.putBack(rest) }
            return data
        case .receive?, .finish?, .fail?, nil: return nil
        }
    }

    /// The whole answer, at the end.
    func answer() async throws -> DiskURLCache.Answer {
        let (head, data, summary) = try await take { state -> (DeliveredHead?, Data, LoadSummary?)? in
            guard let end = state.end else { return nil }
            try end.get()
            // A body that does not come in pieces comes in one call.
            let body: Data = if case .load(let data)? = state.pieces.next() { data } else { Data() }
            return (state.head, body, state.summary)
        }
        guard let response = head?.response as? HTTPURLResponse, let summary else { throw URLError(.badServerResponse) }
        return DiskURLCache.Answer(data: data, response: response, summary: summary)
    }

    package var report: DiskURLCache.Report {
        (load.state.withLock { $0.summary } ?? driver.summarySoFar).loadReport
    }

    /// - Parameter part: picks the wanted part of the state; nil while it is missing.
    private func take<Part: Sendable>(
        within seconds: TimeInterval? = nil, _ part: @Sendable (inout DirectLoad.State) throws -> Part?
    ) async throws -> Part {
        // A response from memory is complete by now.
        if let part = try load.state.withLock(part) { return part }
        let timeout = seconds.flatMap { seconds in
            Timeouts.shared.after(seconds) { [weak self] in
                guard let self else { return }
                // A stored response may have to be read, which must not delay the thread of all timeouts.
                LoadDriver.lookupQueue.async { self.timeOut() }
            }
        }
        defer { Timeouts.shared.cancel(timeout) }
        return try await withTaskCancellationHandler {
            while true {
                let (part, count) = try load.state.withLock { (try part(&$0), $0.changes) }
                if let part { return part }
                await load.change(after: count)
            }
        } onCancel: {
            cancel()
        }
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A load that an app asks the cache for, with no task behind it: keeps what has come until it is read.
final class DirectLoad: LoadClient {
    fileprivate enum Piece {
        case data(Data)
        /// Left in its file until it is read.
        case open(OpenBody)

        var data: Data? { if case .data(let data) = self { data } else { nil } }
    }

    fileprivate struct State {
        var head: DeliveredHead?
        var pieces: ArraySlice<Piece> = []
        /// In memory.
        var unreadBytes = 0
        var end: Result<Void, any Error>?
        var summary: LoadSummary?
        /// Counts what was heard.
        var news = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    fileprivate let state = Mutex(State())
    let takesPieces: Bool
    private let redirect: CacheRedirect?

    fileprivate init(takesPieces: Bool, redirect: CacheRedirect?) {
        self.takesPieces = takesPieces
        self.redirect = redirect
    }

    /// Waits until there is something new to hear.
    fileprivate func news(after count: Int) async {
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                if state.news == count { state.waiting.append(continuation) }
                return state.news == count
            }
            if !waits { continuation.resume() }
        }
    }

    /// What comes after the first end is not heard.
    private func hear(_ change: (inout State) -> Void) {
        let waiting = state.withLock { state in
            guard state.end == nil else { return [CheckedContinuation<Void, Never>]() }
            change(&state)
            state.news += 1
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// For the reader this is over at once: what has not been read is dropped.
    fileprivate func fail(_ error: any Error) {
        hear { state in
            state.pieces = []
            state.unreadBytes = 0
            state.end = .failure(error)
        }
    }

    // MARK: LoadClient

    var wantsSummary: Bool { true }
    var confirmsRedirects: Bool { redirect != nil }
    var undeliveredBytes: Int { state.withLock { $0.unreadBytes } }

    func send(_ calls: [LoadCall]) { perform(calls) }

    func perform(_ calls: [LoadCall]) {
        guard !calls.isEmpty else { return }
        hear { state in
            for call in calls {
                switch call {
                case .receive(let head): state.head = head
                case .load(let piece):
                    state.pieces.append(.data(piece))
                    state.unreadBytes += piece.count
                case .read(let body):
                    if case .open(let last)? = state.pieces.last, let both = last.joined(body) {
                        state.pieces[state.pieces.endIndex - 1] = .open(both)
                    } else {
                        state.pieces.append(.open(body))
                    }
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
typealias CacheRedirect = @Sendable (_ response: HTTPURLResponse, _ next: URLRequest) -> URLRequest?

/// Reads a load at its own pace. The load goes on as long as there is a reader, and is cancelled with it.
final class LoadReader: Sendable {
    private let load: DirectLoad
    let driver: LoadDriver
    private let timeout: TimeInterval?

    /// Begins the load.
    /// - Parameters:
    ///   - takesPieces: pieces can be read as they come. Else all is there at the end, so that a stored answer can take the place of
    ///     one that fails on its way.
    ///   - lookup: of the request's key, where there was one.
    ///   - timeout: seconds after which there must be a head, where the transport does not see to that.
    init(
        _ request: KeyedRequest, from cache: any LoadHost, over transport: any Transport, lookup: Lookup? = nil,
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

    /// There is no head in time. A stored answer may stand in for it (RFC 5861 §4), as for a transport that fails.
    private func timeOut() {
        guard load.state.withLock({ $0.head == nil && $0.end == nil }) else { return }
        // From its head on, a body may take its time.
        guard !driver.isCompleting, !driver.giveUpNetwork() else { return }
        cancel(URLError(.timedOut))
    }

    /// The head, as soon as it is there.
    func head() async throws -> DeliveredHead {
        let head = try await take(within: timeout) { state -> DeliveredHead? in
            if let head = state.head { return head }
            if let end = state.end { try end.get() }
            return nil
        }
        guard head.isHTTP else { throw URLError(.badServerResponse) }
        return head
    }

    /// The next piece of the body; nil at its end. For one reader at a time.
    func next() async throws -> Data? {
        let (piece, hasCaughtUp) = try await take { state -> (DirectLoad.Piece?, Bool)? in
            guard let piece = state.pieces.popFirst() else {
                try state.end?.get()
                return state.end == nil ? nil : (nil, false)
            }
            let limit = LoadDriver.undeliveredLimit
            let wasBehind = state.unreadBytes > limit
            state.unreadBytes -= piece.data?.count ?? 0
            return (piece, wasBehind && state.unreadBytes <= limit)
        }
        if hasCaughtUp { driver.clientCaughtUp() }
        switch piece {
        case nil: return nil
        case .data(let data)?: return data
        case .open(var body)?:
            guard let data = body.next() else {
                let error = URLError(.resourceUnavailable)
                cancel(error)
                throw error
            }
            let rest = body
            load.state.withLock { state in
                if case .failure? = state.end { return }
                if !rest.isEmpty { state.pieces.insert(.open(rest), at: state.pieces.startIndex) }
            }
            return data
        }
    }

    /// All of it, at the end.
    func answer() async throws -> CacheAnswer {
        let (head, data, summary) = try await take { state -> (DeliveredHead?, Data, LoadSummary?)? in
            guard let end = state.end else { return nil }
            try end.get()
            // The one piece of a whole body is taken as it is.
            let pieces = state.pieces.compactMap(\.data)
            return (state.head, pieces.count == 1 ? pieces[0] : Data(pieces.joined()), state.summary)
        }
        guard let response = head?.response as? HTTPURLResponse, let summary else { throw URLError(.badServerResponse) }
        return CacheAnswer(data: data, response: response, summary: summary)
    }

    var report: CacheLoadReport {
        (load.state.withLock { $0.summary } ?? driver.summarySoFar).loadReport
    }

    /// - Parameter part: what is wanted, where it is there.
    private func take<Part: Sendable>(
        within seconds: TimeInterval? = nil, _ part: @Sendable (inout DirectLoad.State) throws -> Part?
    ) async throws -> Part {
        // What memory holds is there by now.
        if let part = try load.state.withLock(part) { return part }
        let timeout = seconds.flatMap { seconds in
            Timeouts.shared.after(seconds) { [weak self] in
                guard let self else { return }
                // A stored answer may have to be read, which is nothing for the thread of all timeouts.
                LoadDriver.lookupQueue.async { self.timeOut() }
            }
        }
        defer { Timeouts.shared.cancel(timeout) }
        return try await withTaskCancellationHandler {
            while true {
                let (part, count) = try load.state.withLock { (try part(&$0), $0.news) }
                if let part { return part }
                await load.news(after: count)
            }
        } onCancel: {
            cancel()
        }
    }
}

import Foundation

/// A load that an app starts without a task: keeps the answer until it is read.
final class DirectLoad: LoadClient {
    fileprivate struct State {
        var head: DeliveredHead?
        var pieces = CallQueue()
        var end: Result<Void, any Error>?
        var report: LoadReport?
        var waiting: [Waiting] = []
    }

    // A waiting reader is in the list once, and is taken out of it to be resumed. Debug builds check that. Release
    // builds do not, since a checked continuation costs a load 1,000 instructions. And the thread sanitizer, which runs
    // on debug builds, reports a race inside of `withUnsafeContinuation` (Swift 6.3) when one continuation was resumed
    // before its task waited for it, and the task makes the next one.
    #if DEBUG
        fileprivate typealias Waiting = CheckedContinuation<Void, Never>

        private static func wait(_ start: (Waiting) -> Void) async { await withCheckedContinuation { start($0) } }
    #else
        fileprivate typealias Waiting = UnsafeContinuation<Void, Never>

        private static func wait(_ start: (Waiting) -> Void) async { await withUnsafeContinuation { start($0) } }
    #endif

    fileprivate let state: Mutex<State>
    let acceptsPieces: Bool
    private let redirect: CacheRedirect?

    fileprivate init(acceptsPieces: Bool, redirect: CacheRedirect?) {
        self.acceptsPieces = acceptsPieces
        self.redirect = redirect
        state = Mutex(State())
    }

    /// Looks for a part of the state once. If it is missing, waits until the state has changed, and returns nil: the
    /// caller looks again then.
    fileprivate func next<Part>(_ part: (inout State) throws -> Part?) async throws -> Part? {
        var found: Result<Part?, any Error>?
        await Self.wait { continuation in
            let waits = state.withLock { state in
                found = Result { try part(&state) }
                guard case .success(nil)? = found else { return false }
                state.waiting.append(continuation)
                return true
            }
            if !waits { continuation.resume() }
        }
        return try found?.get()
    }

    /// Calls after the first end are ignored.
    /// - Parameter isOverEnd: also if the load has ended.
    private func hear(isOverEnd: Bool = false, _ change: (inout State) -> Void) {
        let waiting = state.withLock { state in
            guard isOverEnd || state.end == nil else { return [Waiting]() }
            change(&state)
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// The reader gets the error at once: unread pieces are dropped.
    /// - Parameter isOverEnd: also if the load itself has ended well: a piece cannot be read, so the body would have a
    ///   gap; or the reader wants no more of what has arrived.
    fileprivate func fail(_ error: any Error, isOverEnd: Bool = false) {
        hear(isOverEnd: isOverEnd) { state in
            state.pieces.close()
            state.end = .failure(error)
        }
    }

    /// The reader wants no more, also of what has arrived.
    fileprivate func cancel(_ driver: LoadDriver?, _ error: any Error) {
        guard state.withLock({ $0.end == nil || !$0.pieces.isEmpty }) else { return }
        fail(error, isOverEnd: true)
        driver?.cancel()
    }

    /// The reader is gone. A body that it has not read holds this load as its client, as this load holds the body, so
    /// it is let go, also if the load has ended.
    fileprivate func drop(_ driver: LoadDriver) {
        let hasEnded = state.withLock { state in
            state.pieces.close()
            return state.end != nil
        }
        if !hasEnded { driver.cancel() }
    }

    // MARK: LoadClient

    func send(_ calls: [LoadCall]) { perform(calls) }

    func perform(_ calls: [LoadCall]) {
        guard !calls.isEmpty else { return }
        hear { state in
            for call in calls {
                switch call {
                case .receive(let head): state.head = head
                case .load, .read, .stream: state.pieces.append(call)
                // It does not confirm responses, so it is not asked.
                case .confirmStorage: break
                case .finish(let report): (state.report, state.end) = (report, .success(()))
                case .fail(let error, let report): (state.report, state.end) = (report, .failure(error))
                }
            }
        }
    }

    var decidesRedirects: Bool { redirect != nil }

    func bodyArrived() { hear { _ in } }

    func close() {}

    func confirmRedirect(
        _ head: ResponseHead, of request: DiskURLCache.Request, to next: DiskURLCache.Request,
        completion: @escaping @Sendable (DiskURLCache.Request?) -> Void
    ) {
        completion(redirect.map { $0(head, request, next) } ?? next)
    }
}

/// Decides about a redirect: the request that follows it, or nil for the redirect itself as the answer.
package typealias CacheRedirect =
    @Sendable (
        _ head: ResponseHead, _ request: DiskURLCache.Request, _ next: DiskURLCache.Request
    ) -> DiskURLCache.Request?

/// Reads a load at its own pace. The load continues as long as there is a reader, and is cancelled with it.
package final class LoadReader: Sendable {
    private let load: DirectLoad
    private let cache: CacheCore
    private let transport: any LoadTransport
    /// Nil if memory had the answer.
    let driver: LoadDriver?
    /// Before the first step.
    private let begun: LoadReport
    private let timeout: TimeInterval?
    /// Those of the pieces that were read; nil if the configuration wants none to be compared, or the head states none.
    private let digests: Mutex<BodyDigests?>?

    /// Begins a load.
    /// - Parameters:
    ///   - acceptsPieces: pieces can be read as they arrive. Otherwise the whole body comes at the end, so that a
    ///     stored response can replace an answer that fails on its way.
    ///   - timeout: seconds after which there must be a head, if the transport has no timeout.
    convenience init(
        _ request: ResolvedRequest, from cache: CacheCore, over transport: any LoadTransport,
        acceptsPieces: Bool = false, timeout: TimeInterval? = nil,
        redirect: CacheRedirect? = nil
    ) {
        let beginning = LoadBeginning(request, in: cache, streams: acceptsPieces)
        self.init(beginning, over: transport, timeout: timeout, redirect: redirect)
    }

    /// Goes on with a load.
    init(
        _ beginning: consuming LoadBeginning, over transport: any LoadTransport, timeout: TimeInterval? = nil,
        redirect: CacheRedirect? = nil
    ) {
        cache = beginning.cache
        self.transport = transport
        self.timeout = timeout
        digests = cache.configuration.wrongDigest == .failed ? Mutex(nil) : nil
        begun = beginning.machine.report
        load = DirectLoad(acceptsPieces: beginning.machine.streams, redirect: redirect)
        driver = beginning.go(over: transport, to: load, at: .network)
    }

    deinit {
        if let driver { load.drop(driver) }
    }

    package func cancel(_ error: any Error = CancellationError()) { load.cancel(driver, error) }

    /// The head, as soon as it arrives.
    package func head() async throws -> DeliveredHead {
        let head = try await receive(within: timeout) { state -> DeliveredHead? in
            if let head = state.head { return head }
            if let end = state.end { try end.get() }
            return nil
        }
        guard head.isHTTP else { throw URLError(.badServerResponse) }
        digests?.withLock {
            $0 = BodyDigests(
                of: head, to: loadReport.request, isDecoded: transport.decodesBodies, comparedBy: cache)
        }
        return head
    }

    /// The next piece of the body; nil at its end. For one reader at a time.
    package func next() async throws -> Data? {
        switch try await nextPart() {
        case .memory(let data)?:
            digests?.withLock { $0?.update(data) }
            return data
        case .file(let body)?:
            guard let data = body.contents else { throw unreadable() }
            digests?.withLock { $0?.update(data) }
            return data
        case nil:
            if let field = digests?.withLock({ $0?.contradiction }) { throw DiskURLCache.Reason.wrongDigest(in: field) }
            return nil
        }
    }

    /// The next piece, perhaps still in its file; nil at the end of the body.
    private func nextPart() async throws -> Body? {
        let call = try await receive { state -> LoadCall?? in
            if let call = state.pieces.next() { return call }
            try state.end?.get()
            return state.end == nil ? nil : .some(nil)
        }
        switch call {
        case .load(let data)?: return .memory(data)
        case .read(let body)?: return .file(body)
        case .receive?, .stream?, .confirmStorage?, .finish?, .fail?, nil: return nil
        }
    }

    /// Appends the next piece of the body to a file. For one reader at a time.
    /// - Returns: the length of the piece; nil at the end of the body.
    func copyNext(to file: DestinationFile) async throws -> Int? {
        // A body whose digest is compared has to be read.
        guard digests?.withLock({ $0 == nil }) != false else {
            guard let data = try await next() else { return nil }
            return try await append(.memory(data), to: file)
        }
        guard let part = try await nextPart() else { return nil }
        return try await append(part, to: file)
    }

    private func append(_ part: Body, to file: DestinationFile) async throws -> Int {
        do {
            try await file.append(part)
            return part.count
        } catch {
            // Otherwise a reader that goes on would get a body with a gap.
            endReading(error)
            throw error
        }
    }

    private func unreadable() -> any Error {
        let error = URLError(.resourceUnavailable)
        endReading(error)
        return error
    }

    private func endReading(_ error: any Error) {
        load.fail(error, isOverEnd: true)
        driver?.cancel()
    }

    /// The length of the body as the store or the head of the answer gives it; nil if neither does.
    func expectedLength(_ head: DeliveredHead) -> Int? {
        let report = loadReport
        switch report.outcome {
        case .hit, .standIn, .revalidated: return report.bytes
        case .miss, .bypass, .notAllowed, .failed:
            return ResponseHead(status: head.status, fields: head.fields).bodyLength(to: report.request.method)
        }
    }

    /// The whole answer, at the end.
    func answer() async throws -> DiskURLCache.Answer {
        let (head, data, report) = try await receive { state -> (DeliveredHead?, Data, LoadReport?)? in
            guard let end = state.end else { return nil }
            try end.get()
            // A body that does not come in pieces comes in one call.
            let body: Data = if case .load(let data)? = state.pieces.next() { data } else { Data() }
            return (state.head, body, state.report)
        }
        guard let head, let report else { throw URLError(.badServerResponse) }
        return try DiskURLCache.Answer(head, data, report, isDecoded: transport.decodesBodies, in: cache)
    }

    package var report: DiskURLCache.Report { loadReport.publicReport(cacheName: cache.cacheStatusName) }

    /// The load so far.
    private var loadReport: LoadReport { load.state.withLock { $0.report } ?? driver?.report ?? begun }

    /// What the network has answered to the last request of the load: the request, as it was sent, with its key for a
    /// response that is stored, and whether the answer depends on credentials that it does not show. Nil if none was
    /// sent.
    func exchange(_ answer: DeliveredHead) -> (exchange: Exchange, request: DiskURLCache.Request, isPrivate: Bool)? {
        guard let driver else { return nil }
        let (hop, report, isPrivate) = driver.state.withLock { ($0.hop, $0.machine.report, $0.usedCredentials) }
        guard let requestTime = report.requestedAt, let responseTime = report.respondedAt else { return nil }
        let exchange = Exchange(
            request: hop.facts, variants: [], status: answer.status, fields: answer.fields, requestTime: requestTime,
            responseTime: responseTime)
        return (exchange, hop.request, isPrivate)
    }

    /// The key of the transport's loads: see `LoadTransport.keyVariant`.
    var keyVariant: String? { transport.keyVariant }

    /// - Parameter part: picks the wanted part of the state; nil while it is missing.
    private func receive<Part: Sendable>(
        within seconds: TimeInterval? = nil, _ part: (inout DirectLoad.State) throws -> Part?
    ) async throws -> Part {
        // A response from memory is complete by now.
        if let part = try load.state.withLock(part) { return part }
        let timeout = seconds.flatMap { seconds in
            // Held no longer than this call takes. A weak reference to the reader would cost more than all of this.
            Timeouts.shared.after(seconds) { [driver] in driver?.endTimeForHead(of: seconds) }
        }
        defer { Timeouts.shared.cancel(timeout) }
        return try await withTaskCancellationHandler {
            while true {
                if let part = try await load.next(part) { return part }
            }
        } onCancel: {
            cancel()
        }
    }
}

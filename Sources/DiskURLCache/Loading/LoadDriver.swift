import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Carries out what a `LoadMachine` decides for one task, one direct question, or one refresh in the background, and
/// reports back to it.
///
/// Events come from Foundation's protocol queue, from the transport, from the lookup queue and from a load that this one
/// follows, one at a time but for cancellation; the machine is behind a lock, and actions are performed outside it. An action that
/// asks something (look up, read, fetch, confirm) is the last of its list, so its answer cannot overtake the rest.
final class LoadDriver: FetchReceiver, LoadFollower, Sendable {
    /// Guarded by the lock around it.
    private struct State {
        var machine: LoadMachine
        /// What was read of them is at hand, so that a 304 does not read twice.
        var variants: [StoredVariant] = []
        var networkHead: DeliveredHead?
        var fetch: FetchToken?
        /// Of the key, from when the network was asked: what was removed since is not stored.
        var ticket: StoreTicket?
        /// The body so far, where it is gathered in a file.
        var incoming: IncomingBody?
        /// Identity under which this load leads others.
        var leading: String?
        /// What arrives is shared with those that follow.
        var isSharing = false
        var receivedBytes = 0
        /// The highest of those that follow.
        var followersPriority: Float = 0
        /// Identity under which this load follows another.
        var following: String?
        var lastNews = DispatchTime.now()
        /// Whoever asked has heard of the end.
        var isTold = false
        var report: LoadMachine.Report?
        var notStored: CacheNotStoredReason?
        /// The network's answer is given to credentials that the request does not show.
        var usedCredentials = false
        /// The answer of this hop went into the store.
        var isStored = false
        var deliveredBytes = 0
        var requestedAt: Date?
        var respondedAt: Date?
    }

    /// Decisions and disk reads of loads: apart from the queue that all sessions share, so that nobody else waits for them.
    static let lookupQueue = DispatchQueue(
        label: "DiskURLCache.lookup", qos: .userInitiated, attributes: .concurrent)

    private let cache: any LoadHost
    private let transport: any Transport
    /// Nil for a refresh in the background.
    private let client: (any LoadClient)?
    private let state: Mutex<State>
    private let startTime: Date
    private let initialURL: URL?
    /// Key of what is refreshed, for a refresh in the background.
    private let refreshKey: String?

    init(
        cache: any LoadHost, request: URLRequest, transport: any Transport, client: (any LoadClient)?,
        facts: RequestFacts? = nil, key: RequestKey? = nil, refreshKey: String? = nil
    ) {
        self.cache = cache
        self.transport = transport
        self.client = client
        self.refreshKey = refreshKey
        startTime = cache.now
        initialURL = request.url
        let settings = LoadMachine.Settings(
            key: { [cache, transport] in cache.key(for: $0)?.variant(transport.keyVariant) },
            options: { [cache] in cache.cachingOptions(for: $0, response: $1) },
            streams: client?.takesPieces == true,
            confirmsStorage: cache.hasAdmission || client?.confirmsStorage == true,
            confirmsRedirects: client?.confirmsRedirects == true,
            largestStorableBody: { [cache] in cache.largestStorableBody },
            prepare: { [transport] in transport.prepare($0) },
            gatheringLimit: { [cache] in cache.gatheringLimit(of: $0, for: $1) })
        state = Mutex(State(machine: LoadMachine(request: request, facts: facts, key: key, settings: settings)))
    }

    // MARK: From the client

    /// - Parameters:
    ///   - variants: what is stored, where that was looked up before.
    ///   - onClientQueue: whether the client may be called on this queue.
    func start(with variants: [StoredVariant]? = nil, onClientQueue: Bool = true) {
        if let variants { return found(variants, onClientQueue: onClientQueue) }
        perform(state.withLock { $0.machine.handle(.started(now: now)) }, onClientQueue: onClientQueue)
    }

    func cancel() {
        client?.close()
        if let identity = state.withLock({ $0.leading }),
            cache.loads.goesOn(identity, abandon: { [weak self] in self?.abandon() })
        {
            state.withLock { $0.report = LoadMachine.Report(outcome: .failed(.cancelled)) }
            _ = tellEnd(URLError(.cancelled))
        } else {
            abandon()
        }
    }

    /// Whether the head waits for the rest of a body: the network has sent one.
    var isCompleting: Bool { state.withLock { $0.machine.isCompleting } }

    /// From a client whose time for a head is over: as if the network had failed. False where the load has not come to an end by that,
    /// and no stored answer is on its way either.
    func giveUpNetwork() -> Bool {
        stopFollowing()
        state.withLock { $0.fetch }?.cancel()
        fetchEnded(state.withLock { $0.machine.loadError(.timedOut) })
        return state.withLock { $0.machine.hasEnded || $0.machine.isReading }
    }

    private func abandon() {
        let actions: [LoadMachine.Action]? = state.withLock { state in
            guard !state.machine.hasEnded else { return nil }
            if !state.isTold { state.report = LoadMachine.Report(outcome: .failed(.cancelled)) }
            return state.machine.handle(.cancelled)
        }
        guard let actions else { return }
        perform(actions, onClientQueue: true)
        _ = end(.failed(CancellationError()), URLError(.cancelled))
    }

    /// Starts a refresh of what is stored: the store is brought up to date, and nobody is told.
    private func refresh(_ variants: [StoredVariant], _ revalidation: Revalidation) {
        let actions = state.withLock { state in
            state.variants = variants
            return state.machine.handle(.refreshing(variants.compactMap(\.candidate), revalidation, now: now))
        }
        perform(actions, onClientQueue: false)
    }

    // MARK: From the network

    func fetchUsedCredentials() {
        state.withLock { $0.usedCredentials = true }
    }

    func fetchReceived(_ head: DeliveredHead) {
        let actions = state.withLock { state in
            let now = now
            state.networkHead = head
            state.respondedAt = now
            // Another protocol class of the user's may answer without HTTP: that is delivered, and stored by no rule.
            return state.machine.handle(.head(status: head.status, fields: head.fields, now: now))
        }
        perform(actions, onClientQueue: false)
    }

    func fetchReceived(_ data: Data) {
        let (actions, shared) = state.withLock { state in
            let offset = state.receivedBytes
            state.receivedBytes += data.count
            return (state.machine.handle(.data(data)), state.isSharing ? state.leading.map { ($0, offset) } : nil)
        }
        perform(actions, onClientQueue: false)
        if let (identity, offset) = shared { cache.loads.share(identity, data, offset: offset) }
    }

    func fetchEnded(_ error: Swift.Error?) {
        // The token's controls hold what sent the request, and that holds this load.
        let isSharing = state.withLock { state in
            state.fetch = nil
            return state.isSharing
        }
        // Those that have the head get the rest of nothing else, whatever this load does without it: a stored answer may stand in, and a
        // refresh just ends.
        if let error, isSharing { finishLeading(.failed(error)) }
        handle(.ended(error, now: now))
    }

    // MARK: Actions

    private var now: Date { cache.now }

    private func handle(_ event: LoadMachine.Event) {
        perform(state.withLock { $0.machine.handle(event) }, onClientQueue: false)
    }

    /// - Parameter leadersBody: of the load that this one follows, up to the end of what is delivered; nil where it is in no file.
    private func perform(
        _ actions: [LoadMachine.Action], onClientQueue: Bool, inFile leadersBody: (() -> OpenBody?)? = nil
    ) {
        var calls: [LoadCall] = []
        calls.reserveCapacity(actions.count)
        for action in actions {
            switch action {
            case .lookUp(let key):
                finishLeading(.ended)
                lookUp(key, onClientQueue: onClientQueue)
            case .readBody(let index): read(index, onClientQueue: onClientQueue)
            case .fetch(let request, let collapsible): fetch(request, collapsible: collapsible)
            case .cancelFetch:
                state.withLock { state in
                    defer { state.fetch = nil }
                    return state.fetch
                }?.cancel()
            case .releaseFollowers: releaseFollowers()
            case .share(let response): share(response)
            case .deliverNetworkHead:
                if let head = state.withLock({ $0.networkHead }) { calls.append(.receive(withCacheStatus(head))) }
            case .deliverStoredHead(let head, let url):
                let fields = withCacheStatus(head.fields)
                calls.append(.receive(DeliveredHead(url: url, status: head.status, fields: fields)))
            case .deliverReusedHead(let presentation, let stored, let age, let index, let url):
                calls.append(.receive(reusedHead(presentation, stored, age: age, index: index, url: url)))
            case .deliverData(let data):
                state.withLock { $0.deliveredBytes += data.count }
                calls.append(delivery(of: data, inFile: leadersBody))
            case .deliverOpenBody(let body):
                state.withLock { $0.deliveredBytes += body.count }
                calls.append(.read(body))
            case .keep(let data): keep(data)
            case .dropKept: takeIncoming()?.discard()
            case .finish: calls.append(.finish(end(.ended)))
            case .fail(let error): calls.append(.fail(error, end(.failed(error), error)))
            case .confirmStorage(let response, let data, let byDelegate):
                confirmStorage(response, data, byDelegate: byDelegate)
            case .store(let response, let data, let edited, let replaced, let basis, let target):
                store(response, edited: edited, replacing: replaced, basis: basis, target, .whole(data))
            case .storeKept(let response, let edited, let replaced, let basis, let target):
                guard let body = takeIncoming() else { break }
                store(response, edited: edited, replacing: replaced, basis: basis, target, .incoming(body))
                body.discard()
            case .giveUpStoring(let bytes, let target):
                cache.remove(target.key)
                setNotStored(.tooLarge(bytes: bytes, limit: cache.largestStorableBody))
            case .change(let change, let target): apply(change, target)
            case .invalidate(let urls):
                for url in urls { cache.invalidate(url, by: nil) }
            case .confirmRedirect(let head, let next): confirmRedirect(head, next)
            case .refreshInBackground(let revalidation, let target): refreshInBackground(revalidation, target)
            case .report(let report): state.withLock { $0.report = report }
            }
        }
        if onClientQueue { client?.perform(calls) } else { client?.send(calls) }
        holdUpIfBehind()
    }

    private func lookUp(_ key: RequestKey, onClientQueue: Bool) {
        let lookup = cache.lookUp(key)
        if let variants = lookup.known { return found(variants, onClientQueue: onClientQueue) }
        Self.lookupQueue.async { [self] in found(lookup.variants(), onClientQueue: false) }
    }

    private func found(_ variants: [StoredVariant], onClientQueue: Bool) {
        // Outside of the lock: candidates come from entries, which have one of their own.
        let candidates = variants.compactMap(\.candidate)
        let actions = state.withLock { state in
            // Only HTTP responses can answer a load; what else was stored by hand is for `cachedResponse(for:)`.
            state.variants =
                candidates.count == variants.count ? variants : variants.filter { $0.metadata.http != nil }
            state.notStored = nil
            state.isStored = false
            return state.machine.handle(.found(candidates, now: now))
        }
        perform(actions, onClientQueue: onClientQueue)
    }

    private func read(_ index: Int, onClientQueue: Bool) {
        let (variant, takesOpenBody) = state.withLock { ($0.variants[index], $0.machine.takesOpenBody) }
        if takesOpenBody, variant.entry == nil, let open = variant.open {
            let read: @Sendable () -> Void = { [self] in
                handle(open().map { .opened($0, now: now) } ?? .body(nil, now: now))
            }
            if onClientQueue { Self.lookupQueue.async(execute: read) } else { read() }
            return
        }
        if variant.entry != nil || !onClientQueue {
            didRead(variant.load(), at: index, onClientQueue: onClientQueue)
        } else {
            Self.lookupQueue.async { self.didRead(variant.load(), at: index, onClientQueue: false) }
        }
    }

    private func didRead(_ entry: StoredEntry?, at index: Int, onClientQueue: Bool) {
        let actions = state.withLock { state in
            if let entry { state.variants = state.variants.holding(entry, at: index) }
            return state.machine.handle(.body(entry?.body, now: now))
        }
        perform(actions, onClientQueue: onClientQueue)
    }

    private func fetch(_ request: URLRequest, collapsible: Bool) {
        let key = state.withLock { $0.machine.key }
        if collapsible {
            let lastRemoval = key.map(cache.lastRemoval) ?? 0
            let (identity, leads) = state.withLock { state in
                (state.machine.identity(owner: transport.owner, lastRemoval: lastRemoval), state.leading != nil)
            }
            // A load that asks again, after a 304 about nothing stored say, leads already: it must not wait for itself.
            guard leads || mayFetch(identity) else { return }
        }
        takeIncoming()?.discard()
        let ticket = key == nil ? nil : cache.beginFetch()
        let token = FetchToken(priority: priority)
        let isLate = state.withLock { state in
            state.fetch = token
            token.raise(to: state.followersPriority)
            state.ticket = ticket
            state.requestedAt = now
            state.isSharing = false
            state.usedCredentials = false
            state.receivedBytes = 0
            return state.machine.hasEnded
        }
        guard !isLate else { return }
        transport.send(request, inPieces: client?.takesPieces == true, token: token, receiver: self)
    }

    // MARK: With other loads

    var takesPieces: Bool { client?.takesPieces == true }

    /// That of a refresh is low: nobody waits for it.
    var priority: Float { client?.priority ?? URLSessionTask.lowPriority }

    func raise(to priority: Float) {
        let fetch = state.withLock { state in
            state.followersPriority = max(state.followersPriority, priority)
            return state.fetch
        }
        fetch?.raise(to: priority)
        // From now on somebody else reads along.
        fetch?.resume()
    }

    /// False where another load fetches the same: this one then follows that one.
    private func mayFetch(_ identity: String) -> Bool {
        let request = state.withLock { state in
            state.following = identity
            state.lastNews = .now()
            return state.machine.request
        }
        let patience = transport.timeout(of: request) ?? request.timeoutInterval
        // The table keeps a load that follows alive: a refresh in the background has no other owner.
        let place = cache.loads.join(identity, self, patience: patience)
        let isLate = state.withLock { state in
            if place != .follows { state.following = nil }
            if place == .leads { state.leading = identity }
            return state.machine.hasEnded
        }
        switch place {
        case .leads:
            // Cancelled meanwhile: that found nothing to hand over yet.
            if isLate { finishLeading(.failed(CancellationError())) }
        case .follows:
            if isLate { stopFollowing() } else { awaitNews() }
        case .alone: break
        }
        return place != .follows
    }

    func follow(_ news: LoadTable.News) {
        state.withLock { state in
            state.lastNews = .now()
            switch news {
            case .head, .piece, .opened: break
            case .end, .finished, .abandoned: state.following = nil
            }
        }
        switch news {
        case .head(let response): handle(.leaderShares(response, now: now))
        case .piece(let data, let offset, let bodySoFar):
            let end = offset + data.count
            perform(
                state.withLock { $0.machine.handle(.leaderSent(data, offset: offset)) }, onClientQueue: false,
                inFile: {
                    guard case .open(let body)? = bodySoFar?(), body.count >= end else { return nil }
                    return body.part(0..<end)
                })
        case .opened(let body): handle(.leaderOpened(body))
        case .end(let error): handle(.leaderEnded(error, now: now))
        case .finished: handle(.leaderFinished(mayWaitAgain: false, now: now))
        case .abandoned: handle(.leaderFinished(mayWaitAgain: true, now: now))
        }
    }

    /// A load that follows keeps its own timeout: the leader may have more patience.
    private func awaitNews() {
        guard let deadline = deadline() else { return }
        Self.lookupQueue.asyncAfter(deadline: deadline) { [weak self] in
            guard let self, let deadline = self.deadline() else { return }
            guard deadline <= .now() else { return awaitNews() }
            stopFollowing()
            fetchEnded(state.withLock { $0.machine.loadError(.timedOut) })
        }
    }

    /// Nil where this load follows none.
    private func deadline() -> DispatchTime? {
        let (request, lastNews) = state.withLock { state in
            (state.following == nil ? nil : state.machine.request, state.lastNews)
        }
        return request.flatMap(transport.timeout(of:)).map { lastNews + $0 }
    }

    private func stopFollowing() {
        let identity = state.withLock { state in
            defer { state.following = nil }
            return state.following
        }
        if let identity { cache.loads.leave(identity, self) }
    }

    private func share(_ response: StoredResponse) {
        let identity = state.withLock { state in
            state.isSharing = state.leading != nil
            return state.leading
        }
        guard let identity else { return }
        cache.loads.share(identity, response) { [weak self] in self?.bodySoFar }
    }

    private var bodySoFar: StoredBody? {
        state.withLock { state in
            if state.machine.isBodyInFile { return state.incoming.map { .open($0.opening) } }
            return state.machine.bodySoFar.map { .whole($0) }
        }
    }

    private func releaseFollowers() {
        guard let identity = state.withLock({ $0.leading }), cache.loads.release(identity) else { return }
        state.withLock { $0.leading = nil }
    }

    private func finishLeading(_ outcome: LoadTable.Outcome) {
        let identity = state.withLock { state in
            defer { state.leading = nil }
            return state.leading
        }
        if let identity { cache.loads.finish(identity, outcome) }
    }

    // MARK: The reader's pace

    /// Bytes that may wait for a client that does not keep up; above, the transfer is held up where the transport can.
    static let undeliveredLimit = 1 << 20

    private func holdUpIfBehind() {
        guard let client, client.undeliveredBytes > Self.undeliveredLimit else { return }
        let (fetch, leading) = state.withLock { ($0.fetch, $0.leading) }
        guard let fetch else { return }
        // One slow reader does not hold up others. The body is kept for them, within what may be stored.
        func isWaitedFor() -> Bool { leading.map(cache.loads.isWaitedFor) == true }
        guard !isWaitedFor() else { return }
        fetch.pause()
        // The client may have caught up in between, or another load have come.
        if client.undeliveredBytes <= Self.undeliveredLimit || isWaitedFor() { fetch.resume() }
    }

    /// From a client whose `undeliveredBytes` are within the limit again.
    func clientCaughtUp() {
        state.withLock { $0.fetch }?.resume()
    }

    // MARK: The end

    /// - Parameter error: what the client is told.
    private func end(_ outcome: LoadTable.Outcome, _ error: (any Swift.Error)? = nil) -> LoadSummary? {
        stopFollowing()
        finishLeading(outcome)
        takeIncoming()?.discard()
        if let refreshKey { cache.loads.endRefresh(refreshKey) }
        return tellEnd(error)
    }

    private func tellEnd(_ error: (any Swift.Error)? = nil) -> LoadSummary? {
        guard let client else { return nil }
        let duration = now.timeIntervalSince(startTime)
        let (hasReport, used, target) = state.withLock { state -> (Bool, StoredVariant?, LoadMachine.Target?) in
            guard !state.isTold, let outcome = state.report?.outcome else { return (false, nil, nil) }
            state.isTold = true
            cache.hub.count(outcome, bytes: state.deliveredBytes, duration: duration) { state.variants[$0].layer }
            return (true, outcome.index.map { state.variants[$0] }, state.machine.target)
        }
        if let used, let target { cache.addTags(to: used.metadata, of: target.key, for: target.request) }
        guard hasReport, client.wantsSummary || cache.hub.hasListeners, let summary = summary(duration: duration, error)
        else { return nil }
        cache.hub.emit(.load(summary.loadReport))
        return summary
    }

    private func summary(duration: TimeInterval, _ error: (any Swift.Error)?) -> LoadSummary? {
        state.withLock { state in
            state.report.map { summary(of: state, report: $0, duration: duration, error) }
        }
    }

    private func summary(
        of state: State, report: LoadMachine.Report, duration: TimeInterval, _ error: (any Swift.Error)? = nil
    ) -> LoadSummary {
        let load = LoadFacts(
            url: initialURL, method: state.machine.method, bytes: state.deliveredBytes, duration: duration,
            startedAt: startTime, requestedAt: state.requestedAt, respondedAt: state.respondedAt, error: error)
        return LoadSummary(
            report: report, load: load, layer: report.outcome.index.map { state.variants[$0].layer } ?? .memory,
            notStored: state.notStored, cacheName: cache.cacheStatusName)
    }

    /// What is known before the end.
    var summarySoFar: LoadSummary {
        let duration = now.timeIntervalSince(startTime)
        return state.withLock { state in
            var report = state.report ?? LoadMachine.Report(outcome: .miss(.notStored))
            // Only the end shows whether it will be.
            if case .store? = report.storage { report.storage = nil }
            return summary(of: state, report: report, duration: duration)
        }
    }

    // MARK: Storing

    private func setNotStored(_ reason: CacheNotStoredReason?) {
        state.withLock { $0.notStored = reason }
    }

    /// Where a body was gathered.
    private enum Gathered {
        case whole(Data)
        case incoming(IncomingBody)
    }

    private func takeIncoming() -> IncomingBody? {
        state.withLock { state in
            defer { state.incoming = nil }
            return state.incoming
        }
    }

    /// A piece that the client cannot take yet is read from the file later, where it is in one: so it need not wait in memory.
    private func delivery(of data: Data, inFile leadersBody: (() -> OpenBody?)?) -> LoadCall {
        guard let client, client.undeliveredBytes > Self.undeliveredLimit,
            let body = leadersBody?() ?? state.withLock({ $0.incoming })?.opening
        else { return .load(data) }
        return .read(body.part(body.count - data.count..<body.count))
    }

    /// Gathers the next piece in the file. Where the disk fails, a body that memory may keep goes on there.
    private func keep(_ data: Data) {
        // It stays where it is meanwhile, for those that begin to follow.
        var incoming = state.withLock { $0.incoming }
        let failure = cache.append(data, to: &incoming)
        let isWanted = state.withLock { state in
            // Cancelled meanwhile: that found nothing to discard.
            let isWanted = failure == nil && !state.machine.hasEnded
            state.incoming = isWanted ? incoming : nil
            return isWanted
        }
        if isWanted { return }
        defer { incoming?.discard() }
        guard let failure else { return }
        let limit = cache.largestMemoryEntry
        let before = incoming?.count ?? 0
        var body: Data?
        if before + data.count <= limit { body = before == 0 ? data : incoming?.opening.contents.map { $0 + data } }
        if body == nil {
            setNotStored(failure)
            cache.hub.emit(.notStored(url: initialURL?.removingCredentials, reason: failure))
        }
        handle(.notKept(body, limit: limit))
    }

    private func store(
        _ response: StoredResponse, edited: LoadMachine.EditedResponse?, replacing replaced: [Int], basis: Int?,
        _ target: LoadMachine.Target, _ body: Gathered
    ) {
        if state.withLock({ $0.usedCredentials }) { return setNotStored(.refused) }
        let (variants, ticket) = state.withLock { ($0.variants, $0.ticket) }
        if let basis, !isStored(variants[basis], of: target.key) { return setNotStored(.removedMeanwhile) }
        let reason =
            switch body {
            case .whole(let data):
                cache.insert(
                    response, body: data, edited: edited, for: target.request, key: target.key, ticket: ticket)
            case .incoming(let body):
                cache.insert(
                    response, body: body, edited: edited, for: target.request, key: target.key, ticket: ticket)
            }
        state.withLock { state in
            state.notStored = reason
            state.isStored = reason == nil
        }
        for index in replaced where variants[index].metadata.varyKey != response.vary {
            cache.remove(variants[index].metadata, of: target.key, by: ticket)
        }
    }

    /// Also where another process removed it.
    private func isStored(_ variant: StoredVariant, of key: RequestKey) -> Bool {
        cache.lookUp(key).variants().contains { $0.metadata.sequence == variant.metadata.sequence }
    }

    private func apply(_ change: StoreChange, _ target: LoadMachine.Target) {
        // What it says of what is stored, it says to somebody else.
        if state.withLock({ $0.usedCredentials }) { return }
        let (variants, ticket) = state.withLock { ($0.variants, $0.ticket) }
        switch change {
        case .update(let index, let response):
            _ = cache.freshen(
                variants[index].metadata.sequence, of: target.key, with: response, for: target.request)
        case .addVariant(let index, let response):
            guard isStored(variants[index], of: target.key), let entry = variants[index].load() else { return }
            _ = cache.insert(
                response, body: entry.body, edited: nil, for: target.request, key: target.key, ticket: ticket)
        case .remove(let index):
            cache.remove(variants[index].metadata, of: target.key, by: ticket)
        }
    }

    /// Asks the delegate, then the admission closure. Both may change what is stored, or refuse it.
    private func confirmStorage(_ response: StoredResponse, _ data: Data, byDelegate: Bool) {
        let (request, incoming) = state.withLock { ($0.machine.request, $0.incoming) }
        var data = data
        if let incoming {
            // In memory for as long as they look at it: a mapped file that is cut or cannot be read ends the process.
            guard let contents = incoming.opening.contents else {
                setNotStored(.diskFailed(errno: EIO))
                return handle(.storageConfirmed(nil, now: now))
            }
            data = contents
        }
        guard let url = request.url,
            let proposed = URLResponse.http(url: url, status: response.status, fields: response.fields)
                as? HTTPURLResponse
        else { return handle(.storageConfirmed(nil, now: now)) }
        let cached = CachedURLResponse(response: proposed, data: data, userInfo: nil, storagePolicy: .allowed)
        let finish: @Sendable (CachedURLResponse?) -> Void = { [self, isInFile = incoming != nil] confirmed in
            var edited = confirmed.flatMap { cache.admit($0, for: request, proposed: cached) }
            if edited == nil { setNotStored(.refused) }
            if isInFile { edited?.takeBody(from: cached.data, memoryLimit: cache.largestMemoryEntry) }
            handle(.storageConfirmed(edited, now: now))
        }
        guard byDelegate, let client else { return finish(cached) }
        client.confirmStorage(of: cached, completion: finish)
    }

    private func confirmRedirect(_ head: ResponseHead, _ next: URLRequest) {
        guard let client, let url = state.withLock({ $0.machine.request.url }),
            let response = URLResponse.http(url: url, status: head.status, fields: head.fields) as? HTTPURLResponse
        else { return handle(.redirectConfirmed(next, now: now)) }
        client.confirmRedirect(response, to: next) { [self] request in
            handle(.redirectConfirmed(request, now: now))
        }
    }

    private func refreshInBackground(_ revalidation: Revalidation, _ target: LoadMachine.Target) {
        guard cache.loads.beginRefresh(target.key.text) else { return }
        var request = target.request
        // The whole is refreshed, whatever part of it was asked for.
        for name in RequestFacts.partialFieldNames { request.setValue(nil, forHTTPHeaderField: name) }
        let variants = state.withLock { $0.variants }
        let driver = LoadDriver(
            cache: cache, request: request, transport: transport.inBackground, client: nil,
            refreshKey: target.key.text)
        driver.refresh(variants, revalidation)
    }

    // MARK: Heads

    private func reusedHead(
        _ presentation: Presentation, _ stored: StoredResponse, age: Int64, index: Int, url: URL
    ) -> DeliveredHead {
        stored.deliveredHead(
            presentation, age: age, url: url, cacheStatus: cacheStatus,
            madeBy: state.withLock { $0.variants[index].entry })
    }

    /// Nil where the configuration wants none.
    private var cacheStatus: CacheStatus? {
        guard let name = cache.cacheStatusName else { return nil }
        return state.withLock { $0.report?.cacheStatus(name: name, isStored: $0.isStored) }
    }

    private func withCacheStatus(_ fields: HeaderFields) -> HeaderFields {
        guard let cacheStatus else { return fields }
        var fields = fields
        cacheStatus.append(to: &fields)
        return fields
    }

    private func withCacheStatus(_ head: DeliveredHead) -> DeliveredHead {
        guard cache.cacheStatusName != nil, head.isHTTP, let url = head.url else { return head }
        return DeliveredHead(url: url, status: head.status, fields: withCacheStatus(head.fields))
    }
}

extension StoredVariant {
    var candidate: Candidate? {
        metadata.http.map {
            Candidate(response: $0, bodyLength: bodyLength, facts: entry?.reuseFacts, body: entry?.body)
        }
    }
}

extension LoadMachine.EditedResponse {
    /// Finds out whether the body is the one that was shown, by its place in memory: then the file is it already. A part of it
    /// that is to stay in memory is copied, so that the rest need not stay with it.
    mutating func takeBody(from shown: Data, memoryLimit: Int) {
        let (isSame, isPart) = data.withUnsafeBytes { new in
            shown.withUnsafeBytes { old in
                guard let start = new.baseAddress, let first = old.baseAddress else { return (false, false) }
                return (start == first && new.count == old.count, start >= first && start < first + old.count)
            }
        }
        let fits = data.count <= memoryLimit
        if isSame, !isMemoryOnly, presented == nil || !fits {
            isAsKept = true
        } else if isPart, fits || !isSame {
            data = data.withUnsafeBytes { Data($0) }
        }
    }
}

import Dispatch
import Foundation

/// Carries out the decisions of a `LoadMachine` for one task, one direct load, or one refresh in the background, and
/// reports back to it.
///
/// Events come from Foundation's protocol queue, from the transport, from the lookup queue and from the table of
/// fetches, one at a time except for cancellation; the machine is behind a lock, and actions are performed outside it.
/// An action that needs a reply (look up, read, fetch, confirm) is the last of its list, so its reply cannot overtake
/// the other actions.
final class LoadDriver: FetchReceiver, Sendable {
    /// Guarded by the lock around it.
    struct State {
        var machine: LoadMachine
        /// The stored responses of the hop's key. A response that was read stays in memory, so that a 304 does not read
        /// it twice.
        var variants: [StoredVariant] = []
        var networkHead: DeliveredHead?
        /// The request on the network. The answer to a cancelled one is ignored.
        var fetch: FetchToken?
        /// Of the key, taken before the request was sent: a response that was removed since is not stored.
        var ticket: StoreTicket?
        var body: ArrivingBody?
        /// Whether other loads wait for this one's fetch, or this one for another's.
        var sharing = Sharing.none
        /// The network's answer depends on credentials that the request does not show.
        var usedCredentials = false
        /// Ends a refresh in the background, or a wait for another load.
        var deadline: Timeouts.ID?

        var hop: KeyedRequest { machine.hop }

        var report: LoadReport {
            var report = machine.report
            if let index = report.usedIndex, variants.indices.contains(index) { report.layer = variants[index].layer }
            return report
        }
    }

    enum Sharing {
        case none
        case leads(FetchIdentity)
        case waits(FetchIdentity)
    }

    /// Decisions and disk reads of loads: not on the queue that all sessions share, so that other tasks do not wait for
    /// them.
    static let lookupQueue = DispatchQueue(
        label: "DiskURLCache.lookup", qos: .userInitiated, attributes: .concurrent)

    let cache: any LoadHost
    let transport: any LoadTransport
    /// Nil for a refresh in the background.
    let client: (any LoadClient)?
    let state: Mutex<State>
    /// The key of the refreshed response, for a refresh in the background.
    private let refreshKey: RequestKey?

    init(
        cache: any LoadHost, request: KeyedRequest, transport: any LoadTransport, client: (any LoadClient)?,
        refreshKey: RequestKey? = nil
    ) {
        self.cache = cache
        self.transport = transport
        self.client = client
        self.refreshKey = refreshKey
        state = Mutex(
            State(
                machine: LoadMachine(
                    request, streams: client?.acceptsPieces == true,
                    confirmsStorage: cache.editsResponses || client?.confirmsStorage == true, at: cache.now)))
    }

    /// The load so far.
    var report: LoadReport { state.withLock { $0.report } }

    // MARK: From the client

    func cancel() {
        client?.close()
        let actions: [LoadMachine.Action]? = state.withLock { state in
            guard !state.machine.hasEnded else { return nil }
            state.machine.report.note(.failed(code: "cancelled"))
            return state.machine.handle(.cancelled)
        }
        guard let actions else { return }
        perform(actions[...], at: .client)
        _ = end(URLError(.cancelled), wasCancelled: true)
    }

    /// Whether the head waits for the rest of a body: the network has sent its head.
    var isCompleting: Bool { state.withLock { $0.machine.isCompleting } }

    /// Called for a client that waited too long for a head: the network counts as failed. False if this does not end
    /// the load, and no stored response is on its way either.
    func giveUpNetwork() -> Bool {
        stopWaiting()
        let now = cache.now
        let (fetch, actions) = state.withLock { state -> (FetchToken?, [LoadMachine.Action]) in
            defer { state.fetch = nil }
            guard state.machine.isFetching else { return (state.fetch, []) }
            return (state.fetch, state.machine.handle(.ended(state.machine.loadError(.timedOut), now: now)))
        }
        fetch?.cancel()
        finishLeading()
        perform(actions[...], at: .files)
        return state.withLock { $0.machine.hasEnded || $0.machine.isReading }
    }

    // MARK: From the network

    func fetchUsedCredentials() {
        state.withLock { $0.usedCredentials = true }
    }

    func fetchReceived(_ head: DeliveredHead) {
        // Calls the app's rules, so not under the lock.
        let options = options(for: head.fields)
        let now = cache.now
        if client == nil, head.status >= 200 { limitRefresh(to: 10) }
        let actions: [LoadMachine.Action] = state.withLock { state in
            guard state.fetch != nil else { return [] }
            state.networkHead = head
            state.machine.report.respondedAt = now
            // A protocol class of the app may answer without HTTP: such an answer is delivered, and no rule stores it.
            return state.machine.handle(.head(status: head.status, fields: head.fields, options: options, now: now))
        }
        perform(actions[...], at: .network)
    }

    func fetchReceived(_ data: Data) {
        perform(state.withLock { $0.fetch == nil ? [] : $0.machine.handle(.data(data))[...] }, at: .network)
    }

    func fetchEnded(_ error: Swift.Error?) {
        let now = cache.now
        let actions: [LoadMachine.Action] = state.withLock { state in
            guard state.fetch != nil else { return [] }
            // The token's controls hold the sender of the request, which holds this load.
            state.fetch = nil
            state.body?.complete()
            return state.machine.handle(.ended(error, now: now))
        }
        // Without an answer to share, the waiting loads send their requests.
        if error != nil { finishLeading() }
        perform(actions[...], at: .network)
    }

    // MARK: Actions

    /// Where actions are performed.
    enum Place {
        /// On the client's queue, inside `startLoading`: the client may be called directly.
        case client
        /// Where an answer from the network is received, or a delegate has decided. Others may wait for that queue, so
        /// no file is read or written there.
        case network
        /// On `lookupQueue`, the queue of the load's body, or the thread that made a direct load.
        case files
    }

    func handle(_ event: LoadMachine.Event, at place: Place) {
        perform(state.withLock { $0.machine.handle(event) }[...], at: place)
    }

    private func perform(_ actions: ArraySlice<LoadMachine.Action>, at place: Place) {
        var calls: [LoadCall] = []
        calls.reserveCapacity(actions.count)
        for (index, action) in zip(actions.indices, actions) {
            if place == .network, action.usesFiles, let queue = queueForFiles {
                // No other event but a cancellation can come before the last action is done: the answer has ended.
                client?.send(calls)
                return queue.async { self.perform(actions[index...], at: .files) }
            }
            switch action {
            case .lookUp:
                finishLeading()
                start(at: place)
            case .readBody(let index): read(index, at: place)
            case .fetch(let fields, let collapsible):
                off(place) { self.fetch(fields, collapsible: collapsible) }
            case .cancelFetch:
                state.withLock { state in
                    defer { state.fetch = nil }
                    return state.fetch
                }?.cancel()
            case .release: release()
            case .beginBody(let plan): if let body = beginBody(plan) { calls.append(.stream(body)) }
            case .keep(let data): keep(data)
            case .deliverNetworkHead:
                if let head = state.withLock({ $0.networkHead }) { calls.append(.receive(withCacheStatus(head))) }
            case .deliverStoredHead(let head):
                let request = state.withLock { $0.hop.request }
                calls.append(
                    .receive(withCacheStatus(DeliveredHead(to: request, status: head.status, fields: head.fields))))
            case .deliverReusedHead(let reuse):
                calls.append(.receive(reusedHead(reuse)))
            case .deliverBody(let body): calls.append(delivery(body))
            case .deliverGathered:
                if let data = state.withLock({ $0.body })?.whole { calls.append(delivery(.whole(data))) }
            case .finish: calls.append(.finish(end()))
            case .fail(let error): calls.append(.fail(error, end(error)))
            case .confirmStorage(let response, let byDelegate): confirmStorage(response, byDelegate: byDelegate)
            case .store(let storing): store(storing)
            case .change(let change): apply(change)
            case .forget(let keys):
                for key in keys { cache.store.remove(key) }
            case .invalidate(let invalidation): cache.invalidate(invalidation, by: nil)
            case .redirect(let head, let next): off(place) { self.redirect(head, next) }
            case .refreshInBackground(let revalidation):
                if let refresh = refresh(revalidation) { off(place, refresh) }
            }
        }
        if place == .client { client?.perform(calls) } else { client?.send(calls) }
    }

    /// Does what may send a request: not on the client's queue, where Foundation on Linux traps when a task is made.
    private func off(_ place: Place, _ work: @escaping @Sendable () -> Void) {
        if place == .client { Self.lookupQueue.async(execute: work) } else { work() }
    }

    /// For actions that read or write files. Nil if they may do so where the answer is received.
    private var queueForFiles: DispatchQueue? {
        let body = state.withLock { $0.body }
        guard transport.sharesItsQueue && cache.store.disk != nil || body?.usesFile == true else { return nil }
        return body?.queue ?? Self.lookupQueue
    }

    private func delivery(_ body: StoredBody) -> LoadCall {
        state.withLock { $0.machine.report.bytes += body.count }
        return switch body {
        case .whole(let data): .load(data)
        case .open(let body): .read(body)
        }
    }

    /// The options for the hop by the rules. Calls the app.
    private func options(for fields: HeaderFields?) -> CachingOptions {
        cache.cachingOptions(for: state.withLock { $0.hop.target }, response: fields)
    }

    /// Begins the load, or its next hop.
    /// - Parameters:
    ///   - lookup: of the hop's key, if there was one.
    func start(_ lookup: Lookup? = nil, at place: Place = .client) {
        guard let key = state.withLock({ $0.hop.key }) else { return found([], at: place) }
        let lookup = lookup ?? cache.store.lookup(key)
        // On Linux all sessions share the client's queue: simultaneous first loads would wait for each other's
        // decisions there.
        if let known = lookup.known, place != .client || !known.isEmpty,
            !known.isEmpty || !cache.store.mayHaveEquivalent(of: key)
        {
            return found(known, at: place)
        }
        Self.lookupQueue.async { [self] in
            var variants = lookup.variants()
            if variants.isEmpty, let equivalent = cache.store.equivalent(of: key) {
                state.withLock { $0.machine.use(equivalent.key) }
                variants = equivalent.variants
            }
            found(variants, at: .files)
        }
    }

    private func found(_ variants: [StoredVariant], at place: Place) {
        // Only HTTP responses can answer a load; other stored responses are for `cachedResponse(for:)`.
        handle(variants.filter { $0.metadata.http != nil }, at: place) { .found($0, $1, now: $2) }
    }

    /// Gives the stored responses to the machine.
    func handle(
        _ variants: [StoredVariant], at place: Place,
        _ event: ([Candidate], CachingOptions, Date) -> LoadMachine.Event
    ) {
        // Not under the lock: candidates come from entries, which have a lock, and options from the app's rules.
        let candidates = variants.compactMap(\.candidate)
        let event = event(candidates, options(for: candidates.first?.response.fields), cache.now)
        let actions = state.withLock { state in
            state.variants = variants
            return state.machine.handle(event)
        }
        perform(actions[...], at: place)
    }

    private func read(_ index: Int, at place: Place) {
        if place == .client { return Self.lookupQueue.async { self.read(index, at: .files) } }
        let (variant, acceptsOpenBody) = state.withLock { ($0.variants[index], $0.machine.acceptsOpenBody) }
        var body: StoredBody?
        var entry: StoredEntry?
        if acceptsOpenBody, variant.entry == nil, let open = variant.open {
            body = open().map { .open($0) }
        } else {
            entry = variant.load()
            body = entry.map { .whole($0.body) }
        }
        let now = cache.now
        let actions = state.withLock { state in
            if let entry { state.variants = state.variants.holding(entry, at: index) }
            return state.machine.handle(.body(body, gathered: state.body?.whole ?? Data(), now: now))
        }
        perform(actions[...], at: place)
    }

    // MARK: The end

    /// Called once.
    /// - Parameter error: the error that the client gets.
    private func end(_ error: (any Swift.Error)? = nil, wasCancelled: Bool = false) -> LoadReport {
        stopWaiting()
        finishLeading(wasCancelled: wasCancelled)
        var (report, hop, used) = state.withLock { state in
            (state.report, state.hop, state.report.usedIndex.map { state.variants[$0].metadata })
        }
        let (body, deadline) = state.withLock { ($0.body, $0.deadline) }
        body?.complete()
        body?.discard()
        Timeouts.shared.cancel(deadline)
        if let refreshKey { cache.loads.endRefresh(refreshKey) }
        guard client != nil else { return report }
        if let used, let key = hop.key { cache.addTags(to: used, of: key, for: hop.target) }
        report.end(at: cache.now, error: error, in: cache)
        return report
    }

    private func reusedHead(_ reuse: Reuse) -> DeliveredHead {
        let name = cache.cacheStatusName
        let (stored, request, status, entry) = state.withLock { state in
            (
                state.machine.candidates[reuse.index].response, state.hop.request,
                state.machine.report.deliveredStatus(name: name), state.variants[reuse.index].entry
            )
        }
        return stored.deliveredHead(
            reuse.presentation, age: reuse.freshness.age, to: request, cacheStatus: status, madeBy: entry)
    }

    private func withCacheStatus(_ head: DeliveredHead) -> DeliveredHead {
        let report = state.withLock { $0.machine.report }
        guard head.isHTTP, let cacheStatus = report.deliveredStatus(name: cache.cacheStatusName) else { return head }
        var fields = head.fields
        cacheStatus.append(to: &fields)
        return DeliveredHead(head, fields: fields)
    }
}

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
        var networkHead: DeliveredHead?
        /// The request on the network. Calls about any other one, such as one that was cancelled, are ignored.
        var fetch: FetchToken?
        /// Where the answer is handled, if it removes stored responses: see `handlesOnOwnQueue`.
        var answerQueue: DispatchQueue?
        /// Of the key, taken before the request was sent: a response that was removed since is not stored.
        var ticket: StoreTicket?
        var body: ArrivingBody?
        /// Whether other loads wait for this one's fetch, or this one for another's.
        var sharing = Sharing.none
        /// The network's answer depends on credentials that the request does not show.
        var usedCredentials = false
        /// Ends a refresh in the background, or a wait for another load.
        var deadline: Timeouts.ID?

        var hop: ResolvedRequest { machine.hop }
    }

    enum Sharing {
        case none
        case leads(FetchIdentity)
        case waits(FetchIdentity)
    }

    let cache: CacheCore
    let transport: any LoadTransport
    /// Nil for a refresh in the background.
    let client: (any LoadClient)?
    let state: Mutex<State>
    /// The key of the refreshed response, for a refresh in the background.
    private let refreshKey: RequestKey?
    private let span: Trace.Span = Trace.begin("load")

    init(
        cache: CacheCore, request: ResolvedRequest, transport: any LoadTransport, client: (any LoadClient)?,
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
    var report: LoadReport { state.withLock { $0.machine.report } }

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

    /// Whether the client gets its head only after the rest of a body, which the network has begun to send.
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

    // MARK: Actions

    /// Where actions are performed.
    enum Place {
        /// On the client's queue, inside `startLoading`: the client may be called directly. On Linux all sessions share
        /// this queue, and Foundation traps if a task is made on it.
        case client
        /// Where an answer arrives from the network, or a delegate has decided. Other loads may wait for that queue.
        case network
        /// On the lookup queue, the queue of the load's body, or the thread of a direct load: files may be used.
        case files
    }

    func handle(_ event: LoadMachine.Event, at place: Place) {
        perform(state.withLock { $0.machine.handle(event) }[...], at: place)
    }

    func perform(_ actions: ArraySlice<LoadMachine.Action>, at place: Place) {
        var calls: [LoadCall] = []
        calls.reserveCapacity(actions.count)
        for index in actions.indices {
            let action = actions[index]
            if place != .files, let queue = queue(for: action, at: place) {
                // Until the last action is done, no event comes but a cancellation: the answer has ended.
                if place == .client { client?.perform(calls) } else { client?.send(calls) }
                return queue.async { self.perform(actions[index...], at: .files) }
            }
            switch action {
            case .lookUp:
                finishLeading()
                start(at: place)
            case .readBody(let variant): read(variant, at: place)
            case .fetch(let fields, let collapsible):
                // Among other caches, the ticket of the request is taken after a look at their file.
                if place != .files, cache.store.disk?.isShared == true {
                    CacheCore.lookupQueue.async { self.fetch(fields, collapsible: collapsible) }
                } else {
                    leaveClientQueue(place, unless: transport.sendsOnClientQueue) {
                        self.fetch(fields, collapsible: collapsible)
                    }
                }
            case .cancelFetch:
                state.withLock { state in
                    defer { state.fetch = nil }
                    return state.fetch
                }?.cancel()
            case .release: release()
            case .distrustValidators:
                if let key = state.withLock({ $0.hop.key }) { cache.loads.distrust(key, now: cache.now) }
            case .beginBody(let plan): if let body = beginBody(plan) { calls.append(.stream(body)) }
            case .keep(let data): keep(data)
            case .deliverNetworkHead:
                if let head = state.withLock({ $0.networkHead }) { calls.append(.receive(withCacheStatus(head))) }
            case .deliverStoredHead(let head):
                let request = state.withLock { $0.hop.request }
                calls.append(
                    .receive(withCacheStatus(DeliveredHead(to: request, status: head.status, fields: head.fields))))
            case .deliverReusedHead(let reuse, let variant):
                if let head = reusedHead(reuse, variant) { calls.append(.receive(head)) }
            case .deliverBody(let body): calls.append(delivery(body))
            case .deliverGathered:
                let body = state.withLock { $0.body }
                if let data = body?.gathered {
                    calls.append(delivery(.memory(data)))
                } else if body != nil {
                    calls.append(.fail(URLError(.resourceUnavailable), nil))
                }
            case .finish: calls.append(.finish(end()))
            case .fail(let error): calls.append(.fail(error, end(error)))
            case .confirmStorage(let response, let byDelegate): confirmStorage(response, byDelegate: byDelegate)
            case .store(let storing): store(storing)
            case .change(let change): apply(change)
            case .forget(let keys):
                for key in keys { cache.store.remove(key) }
            case .invalidate(let invalidation): cache.invalidate(invalidation)
            case .redirect(let head, let next): leaveClientQueue(place) { self.redirect(head, next) }
            case .refreshInBackground(let revalidation):
                if let refresh = refresh(revalidation) { leaveClientQueue(place, refresh) }
            }
        }
        if place == .client { client?.perform(calls) } else { client?.send(calls) }
    }

    /// Does work that is too long for the client's queue, or sends a request by a session, which cannot be done there.
    private func leaveClientQueue(
        _ place: Place, unless mayStay: Bool = false, _ work: @escaping @Sendable () -> Void
    ) {
        guard place == .client, !mayStay else { return work() }
        CacheCore.lookupQueue.async(execute: work)
    }

    /// The queue for an action that reads or writes files; nil if it may do so at this place, which is not `files`.
    private func queue(for action: LoadMachine.Action, at place: Place) -> DispatchQueue? {
        switch action {
        case .finish, .fail: return addsTags ? CacheCore.lookupQueue : nil
        default: break
        }
        guard place == .network, action.usesFiles else { return nil }
        if let queue = state.withLock({ $0.body })?.fileQueue { return queue }
        // Only the body's own file matters to it.
        if case .confirmStorage = action { return nil }
        return transport.sharesItsQueue && cache.store.disk != nil ? CacheCore.lookupQueue : nil
    }

    /// Whether the end of the load gives the stored response that it has used further tags.
    private var addsTags: Bool {
        let hop = state.withLock { $0.hop }
        guard client != nil, !hop.options.tags.isEmpty, let used = state.withLock({ $0.machine.used }) else {
            return false
        }
        return cache.lacksTags(used, of: hop)
    }

    private func delivery(_ body: Body) -> LoadCall {
        state.withLock { $0.machine.report.bytes += body.count }
        return switch body {
        case .memory(let data): .load(data)
        case .file(let body): .read(body)
        }
    }

    /// The options for the hop by the rules. Calls the app.
    func options(for fields: HeaderFields?) -> CachingOptions {
        cache.cachingOptions(for: state.withLock { $0.hop }, response: fields)
    }

    /// Begins the load, or its next hop.
    func start(at place: Place = .client) {
        let hop = state.withLock { $0.hop }
        guard let key = hop.key else { return found([], at: place) }
        if hop.mayRest {
            if let held = cache.restingAnswer(to: hop) { return found([held], at: place) }
            let failure = cache.restingFailure(of: hop)
            state.withLock { $0.machine.recentFailure = failure }
        }
        let lookup = cache.store.lookup(key)
        // Otherwise the request has to be sent from another queue, so the rest is done there at once.
        if let known = lookup.known, place != .client || !known.isEmpty || transport.sendsOnClientQueue,
            !known.isEmpty || !cache.store.mayHaveEquivalent(of: key)
        {
            return found(known, at: place)
        }
        CacheCore.lookupQueue.async { [self] in
            var variants = lookup.variants()
            if variants.isEmpty, let equivalent = cache.store.equivalent(of: key) {
                state.withLock { $0.machine.use(equivalent.key) }
                variants = equivalent.variants
            }
            found(variants, at: .files)
        }
    }

    private func found(_ variants: [StoredVariant], at place: Place) {
        handle(variants, at: place) { .found($0, $1, now: $2) }
    }

    /// Gives the stored responses to the machine.
    func handle(
        _ variants: [StoredVariant], at place: Place,
        _ event: ([FoundResponse], CachingOptions, Date) -> LoadMachine.Event
    ) {
        // Not under the lock: the facts of an entry have a lock of their own.
        let found = variants.compactMap { FoundResponse($0) }
        let event = event(found, options(for: found.first?.candidate.response.fields), cache.now)
        handle(event, at: place)
    }

    private func read(_ variant: StoredVariant, at place: Place) {
        if place == .client { return CacheCore.lookupQueue.async { self.read(variant, at: .files) } }
        let acceptsOpenBody = state.withLock { $0.machine.acceptsOpenBody }
        var body: Body?
        var entry: StoredEntry?
        if acceptsOpenBody, variant.entry == nil, let open = variant.open {
            body = open().map { .file($0) }
        } else {
            entry = variant.load()
            body = entry.map { .memory($0.body) }
        }
        let now = cache.now
        let arrived = state.withLock { $0.machine.readsForAnswer ? $0.body : nil }
        handle(.body(body, entry: entry, gathered: arrived?.gathered ?? Data(), now: now), at: place)
    }

    // MARK: The end

    /// Called once.
    /// - Parameter error: the error that the client gets.
    private func end(_ error: (any Swift.Error)? = nil, wasCancelled: Bool = false) -> LoadReport {
        stopWaiting()
        finishLeading(wasCancelled: wasCancelled)
        let now = cache.now
        let (report, body, deadline, hop, used, head) = state.withLock { state in
            state.machine.report.end(at: now, error: error)
            // A client that has not taken the body yet keeps it.
            defer { state.body = nil }
            return (
                state.machine.report, state.body, state.deadline, state.hop, state.machine.used, state.networkHead
            )
        }
        body?.complete()
        body?.discard()
        Timeouts.shared.cancel(deadline)
        if let refreshKey { cache.loads.endRefresh(refreshKey) }
        Trace.end("load", span, report.cacheStatus(name: nil).fieldValue)
        guard client != nil else { return report }
        if let used { cache.addTags(to: used, of: hop) }
        var tags = hop.tags(for: used?.metadata.http?.fields ?? head?.fields)
        if let used, !used.metadata.tags.isEmpty { tags.formUnion(used.metadata.tags.filter(CacheCore.isTagOfApp)) }
        report.publish(host: hop.host, tags: tags, in: cache)
        return report
    }

    /// Nil for a response that is not HTTP, which no load uses.
    private func reusedHead(_ reuse: Reuse, _ variant: StoredVariant) -> DeliveredHead? {
        let name = cache.cacheStatusName
        let (hop, status) = state.withLock { ($0.hop, $0.machine.report.deliveredStatus(name: name)) }
        return variant.metadata.http?.deliveredHead(
            reuse.presentation, age: reuse.freshness.age, to: hop.request, cacheStatus: status, madeBy: variant.entry)
    }

    private func withCacheStatus(_ head: DeliveredHead) -> DeliveredHead {
        let name = cache.cacheStatusName
        guard head.isHTTP, let status = state.withLock({ $0.machine.report.deliveredStatus(name: name) }) else {
            return head
        }
        var fields = head.fields
        status.append(to: &fields)
        return DeliveredHead(head, fields: fields)
    }
}

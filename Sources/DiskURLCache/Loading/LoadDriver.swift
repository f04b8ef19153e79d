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
        /// The key that this load fetches for all processes: see `FetchLocks`.
        var lockedKey: RequestKey?
        /// The key that was looked up again, since an equal load's answer may have been stored after the first lookup.
        var lookedAgainFor: RequestKey?
        /// The network's answer depends on credentials that the request does not show.
        var usedCredentials = false
        /// Ends a refresh in the background, or a wait for another load, or the further time of a head.
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

    /// Goes on with a load that has begun: with `start(with:at:)`.
    init(
        _ machine: LoadMachine, _ cache: CacheCore, _ transport: any LoadTransport, _ client: (any LoadClient)?,
        refreshKey: RequestKey? = nil
    ) {
        self.cache = cache
        self.transport = transport
        self.client = client
        self.refreshKey = refreshKey
        state = Mutex(State(machine: machine))
        #if DEBUG
            Self.all.withLock { $0[ObjectIdentifier(self)] = { [weak self] in self } }
        #endif
    }

    #if DEBUG
        /// For a test that never ends: it tells what the loads that are left wait for.
        static let all = Mutex<[ObjectIdentifier: @Sendable () -> LoadDriver?]>([:])

        deinit { _ = Self.all.withLock { $0.removeValue(forKey: ObjectIdentifier(self)) } }
    #endif

    /// Begins with `start`.
    convenience init(
        cache: CacheCore, request: ResolvedRequest, transport: any LoadTransport, client: (any LoadClient)?,
        refreshKey: RequestKey? = nil
    ) {
        let machine = LoadMachine(
            request, streams: client?.acceptsPieces == true,
            confirmsStorage: cache.editsResponses || client?.confirmsStorage == true, at: cache.now)
        self.init(machine, cache, transport, client, refreshKey: refreshKey)
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

    /// A client must have its head within so many seconds, which are over. A stored response may replace the answer of
    /// the network (RFC 5861 §4), as if that had failed.
    func endTimeForHead(of seconds: TimeInterval) {
        let now = cache.now
        let (actions, isOver, fetch) = state.withLock { state -> ([LoadMachine.Action], Bool, FetchToken?) in
            // What is still to be done, such as the change by a 304, comes before the loads that wait are woken.
            guard !state.machine.hasEnded else { return ([], false, nil) }
            let actions = state.machine.endTimeForHead(now: now)
            guard state.machine.isOffNetwork else { return (actions, false, nil) }
            defer { state.fetch = nil }
            return (actions, true, state.fetch)
        }
        // A stored response that replaces the answer of the network is being read. A time that is short for the network
        // would be too short for a disk, too.
        if state.withLock({ $0.machine.isReading }) {
            setDeadline(in: max(seconds, 1)) { [self] in endTimeForHead(of: seconds) }
        }
        guard isOver else { return }
        stopWaiting()
        fetch?.cancel()
        finishLeading()
        perform(actions[...], at: .deadline)
    }

    // MARK: Actions

    /// Where actions are performed.
    enum Place {
        /// On the client's queue, inside `startLoading`: the client may be called directly. On Linux all sessions share
        /// this queue, and Foundation traps if a task is made on it.
        case client
        /// Where an answer arrives from the network, where a delegate has decided, or on the thread of a direct load:
        /// other loads may wait for it.
        case network
        /// On the queue of all deadlines, which wait for it: no file is used there.
        case deadline
        /// On the lookup queue, or the queue of the load's body or of an answer that removes: files may be used.
        case files
    }

    func handle(_ event: LoadMachine.Event, at place: Place) {
        perform(state.withLock { $0.machine.handle(event) }[...], at: place)
    }

    func perform(_ actions: ArraySlice<LoadMachine.Action>, at place: Place) {
        var calls: [LoadCall] = []
        // A single action is mostly a request or a piece, of which the client hears nothing here.
        if actions.count > 1 { calls.reserveCapacity(actions.count) }
        for index in actions.indices {
            let action = actions[index]
            if place != .files, let queue = queue(for: action, at: place) {
                // Until the last action is done, nothing comes but a cancellation, or the end of the time for a head:
                // the answer has ended.
                deliver(calls, at: place)
                return queue.async { self.perform(actions[index...], at: .files) }
            }
            switch action {
            case .lookUp:
                // The lock for other processes is kept for the second look at the same key.
                if state.withLock({ $0.lockedKey == nil || $0.lockedKey != $0.hop.key }) { finishLeading() }
                start(at: place)
            case .readBody(let variant): read(variant, at: place)
            case .fetch(let fields, let collapsible):
                leaveClientQueue(place, unless: transport.sendsOnClientQueue) {
                    self.fetch(fields, collapsible: collapsible)
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
            case .answer(let answer):
                let (hop, report) = state.withLock { ($0.hop, $0.machine.report) }
                calls.append(.receive(answer.head(to: hop.request, report, in: cache)))
                if answer.body.count > 0 { calls.append(Self.delivery(answer.body)) }
                calls.append(.finish(end()))
            case .deliverBody(let body): calls.append(Self.delivery(body))
            case .deliverGathered: if let data = state.withLock({ $0.body })?.gathered { calls.append(.load(data)) }
            case .finish: calls.append(.finish(end()))
            case .fail(let error): calls.append(.fail(error, end(error)))
            case .confirmStorage(let response, let byDelegate):
                // The client is asked behind what it gets before that.
                deliver(calls, at: place)
                calls = []
                confirmStorage(response, byDelegate: byDelegate)
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
        deliver(calls, at: place)
    }

    private func deliver(_ calls: [LoadCall], at place: Place) {
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
        case .answer, .finish, .fail: return addsTags ? CacheCore.lookupQueue : nil
        // Among other caches, the ticket of the request is taken after a look at their file.
        case .fetch:
            let usesFiles = cache.store.disk?.isShared == true || cache.configuration.sharesFetches
            return usesFiles ? CacheCore.lookupQueue : nil
        default: break
        }
        guard place != .client, action.usesFiles else { return nil }
        if let queue = state.withLock({ $0.body })?.fileQueue { return queue }
        // Only the body's own file matters to it.
        if case .confirmStorage = action { return nil }
        return usesFilesElsewhere || place == .deadline ? CacheCore.lookupQueue : nil
    }

    /// Whether no files are used where an answer arrives. The built-in disk may be used in the task of a transport,
    /// since it takes microseconds. An app's storage may wait for a server, or for a task: on all threads of Swift's
    /// pool, of which there is one a core, it would stop every task of the process.
    var usesFilesElsewhere: Bool {
        cache.store.disk != nil && (transport.sharesItsQueue || cache.store.diskStore == nil)
    }

    /// Whether the end of the load gives the stored response that it has used further tags.
    private var addsTags: Bool {
        let hop = state.withLock { $0.hop }
        guard client != nil, !hop.options.tags.isEmpty, let used = state.withLock({ $0.machine.used }) else {
            return false
        }
        return cache.lacksTags(used, of: hop)
    }

    private static func delivery(_ body: Body) -> LoadCall {
        switch body {
        case .memory(let data): .load(data)
        case .file(let body): .read(body)
        }
    }

    /// Begins the load, or its next hop.
    func start(at place: Place = .client) {
        switch StoredResponses.find(for: state.withLock { $0.hop }, in: cache) {
        case .memory(let stored): handle(.found(stored, now: cache.now), at: place)
        case .disk(let read): lookUp(read)
        }
    }

    /// Goes on after the first step of the load.
    func start(with step: LoadBeginning.Step, at place: Place) {
        switch step {
        case .answer(let answer, _): perform([.answer(answer)], at: place)
        case .perform(let actions) where actions.contains(where: \.usesFiles):
            // Memory knows the response, but its body is on disk. The caller of a direct load does not wait for it.
            CacheCore.lookupQueue.async { self.perform(actions[...], at: .files) }
        case .perform(let actions): perform(actions[...], at: place)
        case .lookUp(let read): lookUp(read)
        }
    }

    private func lookUp(_ read: @escaping @Sendable () -> StoredResponses) {
        CacheCore.lookupQueue.async { [self] in
            let stored = read()
            handle(.found(stored, now: cache.now), at: .files)
        }
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
        handle(.body(body, entry: entry, now: cache.now), at: place)
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
        if let refreshKey { cache.loads.endRefresh(refreshKey, hasRefreshed: report.hasRefreshed, now: now) }
        Trace.end("load", span, report.cacheStatus(name: nil).fieldValue)
        guard client != nil else { return report }
        if let used { cache.addTags(to: used, of: hop) }
        report.publish(of: hop, using: used, fields: head?.fields, in: cache)
        return report
    }

    private func withCacheStatus(_ head: DeliveredHead) -> DeliveredHead {
        let name = cache.cacheStatusName
        guard head.isHTTP, let status = state.withLock({ $0.machine.report.deliveredStatus(name: name) }) else {
            return head
        }
        var fields = head.fields
        CacheStatus.append(status, to: &fields)
        return DeliveredHead(head, fields: fields)
    }
}

#if DEBUG
    extension DiskURLCache {
        /// For a test that never ends: calls `say` with a line for each load that has not ended.
        package static func forEachLoad(_ say: (String) -> Void) {
            for load in LoadDriver.all.withLock({ Array($0.values) }) {
                if let load = load() { say(load.waitsFor) }
            }
        }
    }

    extension LoadDriver {
        /// One line: the URL, the step of the load, and what it waits for.
        fileprivate var waitsFor: String {
            state.withLock { state in
                let what =
                    switch state.machine.state {
                    case .lookingUp: "looks up: waits for the lookup queue or the disk"
                    case .reading, .readingForAnswer: "reads a stored body: waits for the lookup queue or the disk"
                    case .fetching(let fetch):
                        switch (state.sharing, state.fetch, fetch.answer) {
                        case (.waits, _, _): "waits for another load that fetches the same"
                        case (_, nil, _): "waits for the lookup queue, to send its request"
                        case (_, _?, nil): "has sent its request, and waits for the head of the answer"
                        case (_, _?, _?): "waits for the rest of the answer, has \(state.machine.arrivedBytes) bytes"
                        }
                    case .confirmingStorage: "waits for the word of the app or its delegate on what is stored"
                    case .redirecting: "waits for the word of its client on a redirect"
                    case .ended: "has ended, and its client may not have heard of it"
                    }
                let client = client.map { "\(type(of: $0))\($0.isPaused ? ", paused" : "")" } ?? "a refresh"
                return "  \(state.hop.request.url): \(what) (\(client))"
            }
        }
    }
#endif

import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Carries out what a `LoadMachine` decides for one task, one direct question, or one refresh in the background, and
/// reports back to it.
///
/// Events come from Foundation's protocol queue, from the inner session's delegate queue and from the lookup queue, one
/// at a time but for cancellation; the machine is behind a lock, and actions are performed outside it. An action that
/// asks something (look up, read, fetch, confirm) is the last of its list, so its answer cannot overtake the rest.
///
/// `@unchecked Sendable`: the task is used for its delegate and identity only, which may be read anywhere.
final class LoadDriver: FetchReceiver, @unchecked Sendable {
    /// Guarded by the lock around it.
    private struct State {
        var machine: LoadMachine
        /// What was read of them is at hand, so that a 304 does not read twice.
        var variants: [StoredVariant] = []
        var networkResponse: URLResponse?
        var fetch: FetchToken?
        /// Identity under which this load leads others.
        var leading: String?
        var report: LoadMachine.Report?
        var notStored: DiskURLCache.NotStoredReason?
        var deliveredBytes = 0
        var requestedAt: Date?
        var respondedAt: Date?
    }

    /// Disk reads of loads: apart from the queue all sessions share, so that a large body holds up nobody else.
    static let lookupQueue = DispatchQueue(
        label: "DiskURLCache.lookup", qos: .userInitiated, attributes: .concurrent)

    private let cache: DiskURLCache
    private let task: URLSessionTask?
    private let link: SessionLink
    /// Nil for a refresh in the background.
    private let client: (any LoadClient)?
    private let delegate: (any URLSessionTaskDelegate)?
    private let isDelegateTask: Bool
    private let state: Mutex<State>
    private let startTime: Date
    private let initialURL: URL?
    /// Key of what is refreshed, for a refresh in the background.
    private let refreshKey: String?

    init(
        cache: DiskURLCache, request: URLRequest, task: URLSessionTask?, link: SessionLink,
        client: (any LoadClient)?, facts: RequestFacts? = nil, key: RequestKey? = nil, refreshKey: String? = nil
    ) {
        self.cache = cache
        self.task = task
        self.link = link
        self.client = client
        self.refreshKey = refreshKey
        startTime = cache.configuration.clock.now()
        initialURL = request.url
        #if canImport(FoundationNetworking)
            delegate = task?.delegate
        #else
            if #available(iOS 15, macOS 12, tvOS 15, watchOS 8, *) { delegate = task?.delegate } else { delegate = nil }
        #endif
        isDelegateTask = delegate != nil && task.map { link.deliversChunks(of: $0) } == true
        let settings = LoadMachine.Settings(
            key: { [cache] in cache.key(for: $0) }, options: { [cache] in cache.cachingOptions(for: $0, response: $1) },
            streams: isDelegateTask,
            confirmsStorage: cache.configuration.admission != nil || isDelegateTask,
            confirmsRedirects: delegate != nil, largestStorableBody: { [cache] in cache.store.largestStorableBody },
            prepare: { [link] in link.withCookies($0) })
        state = Mutex(State(machine: LoadMachine(request: request, facts: facts, key: key, settings: settings)))
    }

    // MARK: From the client: for a task on Foundation's queue

    /// - Parameter findings: of the lookup that Foundation did before it made the protocol.
    func start(with findings: LookupResult.Findings?) {
        if let findings { return found(findings.variants, onClientQueue: true) }
        perform(state.withLock { $0.machine.handle(.started(now: now)) }, onClientQueue: true)
    }

    func cancel() {
        client?.close()
        let actions: [LoadMachine.Action]? = state.withLock { state in
            guard !state.machine.hasEnded else { return nil }
            state.report = LoadMachine.Report(outcome: .failed("cancelled"))
            return state.machine.handle(.cancelled)
        }
        guard let actions else { return }
        perform(actions, onClientQueue: true)
        _ = end(.abandoned)
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

    func fetchReceived(_ response: URLResponse) {
        state.withLock { state in
            state.networkResponse = response
            state.respondedAt = now
        }
        // Another protocol class of the user's may answer without HTTP: that is delivered, and stored by no rule.
        let http = response as? HTTPURLResponse
        handle(.head(status: http?.statusCode ?? 0, fields: http.map { HeaderFields($0) } ?? [:], now: now))
    }

    func fetchReceived(_ data: Data) {
        handle(.data(data))
    }

    func fetchEnded(_ error: Swift.Error?) {
        handle(.ended(error, now: now))
    }

    // MARK: Actions

    private var now: Date { cache.configuration.clock.now() }

    private func handle(_ event: LoadMachine.Event) {
        perform(state.withLock { $0.machine.handle(event) }, onClientQueue: false)
    }

    private func perform(_ actions: [LoadMachine.Action], onClientQueue: Bool) {
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
            case .releaseFollowers: finishLeading(.ended)
            case .deliverNetworkHead:
                if let response = state.withLock({ $0.networkResponse }) {
                    calls.append(.receive(withCacheStatus(response)))
                }
            case .deliverStoredHead(let head, let url):
                let fields = withCacheStatus(head.fields)
                calls.append(.receive(.http(url: url, status: head.status, fields: fields)))
            case .deliverReusedHead(let presentation, let stored, let age, let index, let url):
                calls.append(.receive(reusedResponse(presentation, stored, age: age, index: index, url: url)))
            case .deliverData(let data):
                state.withLock { $0.deliveredBytes += data.count }
                calls.append(.load(data))
            case .finish: calls.append(.finish(end(.ended)))
            case .fail(let error): calls.append(.fail(error, end(.failed(error))))
            case .confirmStorage(let response, let data, let byDelegate):
                confirmStorage(response, data, byDelegate: byDelegate)
            case .store(let response, let data, let edited, let replaced, let target):
                store(response, data, edited: edited, replacing: replaced, target)
            case .giveUpStoring(let bytes, let target):
                cache.store.remove(target.key)
                setNotStored(.tooLarge(bytes: bytes, limit: cache.store.largestStorableBody))
            case .change(let change, let target): apply(change, target)
            case .invalidate(let urls):
                for url in urls { cache.invalidate(url) }
            case .confirmRedirect(let head, let next): confirmRedirect(head, next)
            case .refreshInBackground(let revalidation, let target): refreshInBackground(revalidation, target)
            case .report(let report): state.withLock { $0.report = report }
            }
        }
        if onClientQueue { client?.perform(calls) } else { client?.send(calls) }
    }

    private func lookUp(_ key: RequestKey, onClientQueue: Bool) {
        if let variants = cache.store.variantsInMemory(for: key) {
            return found(variants, onClientQueue: onClientQueue)
        }
        Self.lookupQueue.async { [self] in
            found(cache.store.variants(for: key), onClientQueue: false)
        }
    }

    private func found(_ variants: [StoredVariant], onClientQueue: Bool) {
        // Outside of the lock: candidates come from entries, which have one of their own.
        let candidates = variants.compactMap(\.candidate)
        let actions = state.withLock { state in
            // Only HTTP responses can answer a load; what else was stored by hand is for `cachedResponse(for:)`.
            state.variants =
                candidates.count == variants.count ? variants : variants.filter { $0.metadata.http != nil }
            state.notStored = nil
            return state.machine.handle(.found(candidates, now: now))
        }
        perform(actions, onClientQueue: onClientQueue)
    }

    private func read(_ index: Int, onClientQueue: Bool) {
        let variant = state.withLock { $0.variants[index] }
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
        if collapsible {
            let (identity, leading) = state.withLock { ($0.machine.identity(session: link.session), $0.leading) }
            // A load that asks again, after a 304 about nothing stored say, leads already: it must not wait for itself.
            guard leading == identity || lead(identity) else { return }
        }
        let token = FetchToken()
        let isLate = state.withLock { state in
            state.fetch = token
            state.requestedAt = now
            return state.machine.hasEnded
        }
        guard !isLate else { return }
        NetworkSessions.shared.start(request, outer: link.session, token: token, receiver: self)
    }

    /// False where another load fetches the same: this one goes on when that one has ended.
    private func lead(_ identity: String) -> Bool {
        // The table keeps a waiting load alive: a refresh in the background has no other owner.
        let isLeader = cache.loads.join(identity) { [self] outcome in
            switch outcome {
            case .failed(let error): fetchEnded(error)
            case .ended: handle(.leaderFinished(mayWaitAgain: false, now: now))
            case .abandoned: handle(.leaderFinished(mayWaitAgain: true, now: now))
            }
        }
        guard isLeader else { return false }
        let isLate = state.withLock { state in
            state.leading = identity
            return state.machine.hasEnded
        }
        // Cancelled meanwhile: that found nothing to hand over yet.
        if isLate { finishLeading(.abandoned) }
        return true
    }

    private func finishLeading(_ outcome: LoadTable.Outcome) {
        let identity = state.withLock { state in
            defer { state.leading = nil }
            return state.leading
        }
        if let identity { cache.loads.finish(identity, outcome) }
    }

    private func end(_ outcome: LoadTable.Outcome) -> DiskURLCache.LoadReport? {
        finishLeading(outcome)
        if let refreshKey { cache.loads.endRefresh(refreshKey) }
        guard let client else { return nil }
        let duration = now.timeIntervalSince(startTime)
        let hasReport = state.withLock { state in
            guard let outcome = state.report?.outcome else { return false }
            cache.hub.count(outcome, bytes: state.deliveredBytes, duration: duration) { state.variants[$0].layer }
            return true
        }
        guard hasReport, client.wantsReport || cache.hub.hasListeners else { return nil }
        return report(duration: duration)
    }

    private func report(duration: TimeInterval) -> DiskURLCache.LoadReport? {
        let (report, variants, notStored) = state.withLock { ($0.report, $0.variants, $0.notStored) }
        guard let report else { return nil }
        let load = state.withLock { state in
            LoadFacts(
                url: initialURL, method: state.machine.method, bytes: state.deliveredBytes, duration: duration,
                startedAt: startTime, requestedAt: state.requestedAt, respondedAt: state.respondedAt)
        }
        return cache.hub.tell(
            report, of: load, variants: variants, notStored: notStored,
            cacheName: cache.configuration.cacheStatusName)
    }

    // MARK: Storing

    private func setNotStored(_ reason: DiskURLCache.NotStoredReason?) {
        state.withLock { $0.notStored = reason }
    }

    private func store(
        _ response: StoredResponse, _ data: Data, edited: LoadMachine.EditedResponse?, replacing replaced: [Int],
        _ target: LoadMachine.Target
    ) {
        let reason = cache.insert(response, body: data, edited: edited, for: target.request, key: target.key)
        setNotStored(reason)
        let variants = state.withLock { $0.variants }
        for index in replaced where variants[index].metadata.varyKey != response.vary {
            cache.store.remove(target.key, sequence: variants[index].metadata.sequence)
        }
    }

    private func apply(_ change: StoreChange, _ target: LoadMachine.Target) {
        let variants = state.withLock { $0.variants }
        switch change {
        case .update(let index, let response), .addVariant(let index, let response):
            guard let entry = variants[index].load() else { return }
            var metadata = entry.metadata
            metadata.response = .http(response)
            metadata.storedAt = now
            metadata.sequence = cache.sequence.next(at: now)
            _ = cache.insert(StoredEntry(metadata: metadata, body: entry.body), for: target.key)
        case .remove(let index):
            cache.store.remove(target.key, sequence: variants[index].metadata.sequence)
        }
    }

    /// Asks the delegate, then the admission closure. Both may change what is stored, or refuse it.
    private func confirmStorage(_ response: StoredResponse, _ data: Data, byDelegate: Bool) {
        let request = state.withLock { $0.machine.request }
        guard let url = request.url,
            let proposed = URLResponse.http(url: url, status: response.status, fields: response.fields)
                as? HTTPURLResponse
        else { return handle(.storageConfirmed(nil, now: now)) }
        let cached = CachedURLResponse(response: proposed, data: data, userInfo: nil, storagePolicy: .allowed)
        let finish: @Sendable (CachedURLResponse?) -> Void = { [self] confirmed in
            let edited = confirmed.flatMap { cache.admit($0, for: request, proposed: cached) }
            if edited == nil { setNotStored(.refused) }
            handle(.storageConfirmed(edited, now: now))
        }
        guard byDelegate, isDelegateTask, let session = link.session, let dataTask = task as? URLSessionDataTask,
            let delegate = delegate as? any URLSessionDataDelegate
        else { return finish(cached) }
        session.delegateQueue.addOperation {
            #if canImport(Darwin)
                guard
                    delegate.urlSession?(
                        session, dataTask: dataTask, willCacheResponse: cached, completionHandler: finish) != nil
                else { return finish(cached) }
            #else
                delegate.urlSession(
                    session, dataTask: dataTask, willCacheResponse: cached, completionHandler: finish)
            #endif
        }
    }

    private func confirmRedirect(_ head: ResponseHead, _ next: URLRequest) {
        guard let session = link.session, let task, let delegate, let url = state.withLock({ $0.machine.request.url }),
            let response = URLResponse.http(url: url, status: head.status, fields: head.fields) as? HTTPURLResponse
        else { return handle(.redirectConfirmed(next, now: now)) }
        let finish: @Sendable (URLRequest?) -> Void = { [self] request in
            handle(.redirectConfirmed(request, now: now))
        }
        session.delegateQueue.addOperation {
            #if canImport(Darwin)
                guard
                    delegate.urlSession?(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                        completionHandler: finish) != nil
                else { return finish(next) }
            #else
                delegate.urlSession(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: next,
                    completionHandler: finish)
            #endif
        }
    }

    private func refreshInBackground(_ revalidation: Revalidation, _ target: LoadMachine.Target) {
        guard cache.loads.beginRefresh(target.key.text) else { return }
        var request = target.request
        // The whole is refreshed, whatever part of it was asked for.
        for name in RequestFacts.partialFieldNames { request.setValue(nil, forHTTPHeaderField: name) }
        let variants = state.withLock { $0.variants }
        let driver = LoadDriver(
            cache: cache, request: request, task: nil, link: link, client: nil, refreshKey: target.key.text)
        driver.refresh(variants, revalidation)
    }

    // MARK: Heads

    private func reusedResponse(
        _ presentation: Presentation, _ stored: StoredResponse, age: Int, index: Int, url: URL
    ) -> URLResponse {
        let cacheStatus = cacheStatus
        func make() -> URLResponse {
            var head = presentation.head(of: stored, age: age)
            cacheStatus?.append(to: &head.fields)
            return .http(url: url, status: head.status, fields: head.fields)
        }
        let form = StoredEntry.DeliveredForm(
            url: url, presentation: presentation, age: age, cacheStatus: cacheStatus?.fieldValue)
        return state.withLock { $0.variants[index].entry }?.urlResponse(form, make) ?? make()
    }

    /// Nil where the configuration wants none.
    private var cacheStatus: CacheStatus? {
        guard let name = cache.configuration.cacheStatusName else { return nil }
        return state.withLock { $0.report }?.cacheStatus(name: name)
    }

    private func withCacheStatus(_ fields: HeaderFields) -> HeaderFields {
        guard let cacheStatus else { return fields }
        var fields = fields
        cacheStatus.append(to: &fields)
        return fields
    }

    private func withCacheStatus(_ response: URLResponse) -> URLResponse {
        guard cache.configuration.cacheStatusName != nil, let response = response as? HTTPURLResponse,
            let url = response.url
        else { return response }
        return .http(url: url, status: response.statusCode, fields: withCacheStatus(HeaderFields(response)))
    }
}

extension StoredVariant {
    var candidate: Candidate? {
        metadata.http.map {
            Candidate(response: $0, bodyLength: bodyLength, facts: entry?.reuseFacts, body: entry?.body)
        }
    }
}

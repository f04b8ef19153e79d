import Foundation

// A load's request to the network: alone or shared with other loads.

extension LoadDriver {
    /// - Parameter fields: set in the hop's request.
    func fetch(_ fields: HeaderFields, collapsible: Bool) {
        let (hop, ended) = state.withLock { ($0.hop, $0.machine.stored.endedFetches) }
        if collapsible, let key = hop.key {
            switch takeRole(for: hop, key, ended: ended) {
            case .waits, .looksAgain: return
            case .leads, .alone: break
            }
        }
        let now = cache.now
        let ticket = hop.hasKey ? cache.store.ticket(at: now) : nil
        let token = FetchToken(priority: client?.priority ?? URLSessionTask.lowPriority)
        var request = hop.request
        var isDistrusted = false
        if !fields.isEmpty {
            let conditions = ["If-None-Match", "If-Modified-Since"]
            let isConditional = fields.fields.contains { conditions.contains($0.name) }
            isDistrusted = isConditional && hop.key.map { cache.loads.isDistrusted($0, now: now) } == true
            var all = request.headerFields
            for field in fields.fields where !isDistrusted || !conditions.contains(field.name) {
                all.set(field.name, field.value)
            }
            request.headerFields = all
        }
        let (body, isLate) = state.withLock { state -> (ArrivingBody?, Bool) in
            defer { state.body = nil }
            guard !state.machine.isOffNetwork else { return (state.body, true) }
            state.fetch = token
            state.answerQueue = nil
            state.ticket = ticket
            state.machine.report.requestedAt = now
            if isDistrusted { state.machine.dropConditions() }
            state.usedCredentials = false
            return (state.body, false)
        }
        body?.discard()
        guard !isLate else { return }
        cache.hub.countRequest(to: hop.host)
        transport.send(request, inPieces: client?.acceptsPieces == true, token: token, receiver: self)
    }

    // MARK: The answer

    func fetchUsedCredentials(_ token: FetchToken) {
        state.withLock { if $0.fetch === token { $0.usedCredentials = true } }
    }

    func fetchReceived(_ head: DeliveredHead, of token: FetchToken) {
        guard let (queue, invalidation) = handlesOnOwnQueue(head, of: token) else {
            _ = receive(head, of: token, at: .network)
            return
        }
        // The pieces behind the head do not pile up while the removal waits for the disk.
        if invalidation != nil { token.setPaused(true) }
        queue.async { [self] in
            let isWanted = receive(head, of: token, at: .files)
            if invalidation != nil { token.setPaused(false) }
            // The load was cancelled meanwhile. What the answer says of stored responses is true all the same.
            if !isWanted, let invalidation { cache.invalidate(invalidation) }
        }
    }

    func fetchReceived(_ data: Data, of token: FetchToken) {
        guard let queue = answerQueue(of: token) else { return receive(data, of: token, at: .network) }
        queue.async { self.receive(data, of: token, at: .files) }
    }

    func fetchEnded(_ error: Swift.Error?, of token: FetchToken) {
        fetchEnded(error, of: token, at: .network)
    }

    func fetchTimedOut(_ error: Swift.Error, of token: FetchToken) { fetchEnded(error, of: token, at: .deadline) }

    private func fetchEnded(_ error: Swift.Error?, of token: FetchToken, at place: Place) {
        guard let queue = answerQueue(of: token) else { return receiveEnd(error, of: token, at: place) }
        // Where the rest may be done, the body's own queue for one with a file, is decided as for other answers.
        queue.async { self.receiveEnd(error, of: token, at: .network) }
    }

    private func answerQueue(of token: FetchToken) -> DispatchQueue? {
        guard usesFilesElsewhere else { return nil }
        return state.withLock { $0.fetch === token ? $0.answerQueue : nil }
    }

    /// An answer that removes stored responses is handled on a queue of its own from its head on: its client may hear
    /// of the head only after the removal, which uses files, and other answers do not wait for it. Nil for nearly all
    /// answers, which are handled where they arrive.
    private func handlesOnOwnQueue(
        _ head: DeliveredHead, of token: FetchToken
    ) -> (queue: DispatchQueue, invalidation: Invalidation?)? {
        guard usesFilesElsewhere else { return nil }
        return state.withLock { state in
            guard state.fetch === token else { return nil }
            if let queue = state.answerQueue { return (queue, nil) }
            let response = ResponseHead(status: head.status, fields: head.fields)
            guard let invalidation = state.machine.invalidation(by: response, isShared: cache.configuration.isShared)
            else {
                return nil
            }
            let queue = DispatchQueue(label: "DiskURLCache.answer")
            state.answerQueue = queue
            return (queue, invalidation)
        }
    }

    /// False if nobody waits for this answer any more.
    private func receive(_ head: DeliveredHead, of token: FetchToken, at place: Place) -> Bool {
        // Calls the app's rules, so not under the lock.
        let options = cache.cachingOptions(for: state.withLock { $0.hop }, response: head.fields)
        let now = cache.now
        if client == nil, head.status >= 200 { limitRefresh(to: 10) }
        let actions = state.withLock { state -> [LoadMachine.Action]? in
            guard state.fetch === token else { return nil }
            // A later head is of a part of a multipart answer.
            if state.machine.awaitsHead { state.networkHead = head }
            state.machine.report.respondedAt = now
            // A protocol class of the app may answer without HTTP: such an answer is delivered, and no rule stores it.
            return state.machine.handle(
                .head(status: head.status, fields: head.fields, options: options, now: now))
        }
        guard let actions else { return false }
        perform(actions[...], at: place)
        if (300...399).contains(head.status) { limitRedirectBody() }
        return true
    }

    /// The seconds that the body of a redirect has behind its head. The target is known by then, and nobody sees the
    /// body; a shorter time would close connections that are worth to be kept.
    private static let timeOfRedirectBody: TimeInterval = 1

    private func limitRedirectBody() {
        guard client?.decidesRedirects == false, state.withLock({ $0.machine.awaitsRedirectBody }) else { return }
        setDeadline(in: Self.timeOfRedirectBody) { [self] in
            // The app may be asked about the next request.
            CacheCore.lookupQueue.async { self.handle(.redirectBodyIsLate, at: .files) }
        }
    }

    private func receive(_ data: Data, of token: FetchToken, at place: Place) {
        perform(state.withLock { $0.fetch === token ? $0.machine.handle(.data(data))[...] : [] }, at: place)
    }

    private func receiveEnd(_ error: Swift.Error?, of token: FetchToken, at place: Place) {
        let now = cache.now
        token.end()
        let actions = state.withLock { state -> [LoadMachine.Action]? in
            guard state.fetch === token else { return nil }
            state.fetch = nil
            state.body?.complete()
            return state.machine.handle(.ended(error, now: now))
        }
        guard let actions else { return }
        // Without an answer to share, the waiting loads send their requests.
        if error != nil { finishLeading() }
        perform(actions[...], at: place)
    }

    // MARK: Sharing

    /// Whether this load sends the request for all equal loads, for itself alone, or waits until a load that sent the
    /// same request has ended, and then looks up again.
    /// - Parameter ended: see `LoadTable.join`.
    private func takeRole(for hop: ResolvedRequest, _ key: RequestKey, ended: UInt64) -> LoadTable.Role {
        let identity = FetchIdentity(
            key: key, owner: transport.owner, lastRemoval: cache.store.removals.last(concerning: key),
            fields: hop.request.headerFields)
        let (leadsAlready, looksAgain) = state.withLock { state in
            // This load sends a second request, for example after a 304 that confirms no response. It must not wait for
            // itself.
            if case .leads = state.sharing { return (true, false) }
            // Noted first, since the load may be woken as soon as it is in the table.
            state.sharing = .waits(identity)
            return (false, state.lookedAgainFor != key)
        }
        if leadsAlready { return .leads }
        // Once only: fetches of other keys count, too.
        let role = cache.loads.join(
            identity, as: ObjectIdentifier(self), ended: looksAgain ? ended : nil, now: cache.now, wake: endWait)
        let isLate = state.withLock { state in
            switch role {
            case .leads: state.sharing = .leads(identity)
            case .alone: state.sharing = .none
            case .looksAgain: state.lookedAgainFor = key
            case .waits: break
            }
            return state.machine.isOffNetwork
        }
        // The load was cancelled, or gave up the network, before it was in the table: that did not take it out.
        if isLate {
            finishLeading(wasCancelled: true)
            stopWaiting()
        }
        // A suspension that came before the role did not end it. It leads nobody, of no process.
        if case .leads = role, client?.isPaused == true {
            finishLeading()
            return .alone
        }
        if case .leads = role, !isLate, let locks = fetchLocks, mayMakeFiles, state.withLock({ $0.lockedKey != key }) {
            return lead(key, locks, until: MonotonicTime.seconds + transport.timeoutForOthers(of: hop.request) / 2)
        }
        if case .waits = role {
            // Half of the time, so that there is some left to send the request.
            setDeadline(in: transport.timeoutForOthers(of: hop.request) / 2) { [self] in
                guard cache.loads.leave(identity, ObjectIdentifier(self)) else { return }
                CacheCore.lookupQueue.async { self.endWait(mayWaitAgain: false) }
            }
        }
        return role
    }

    /// Not in a directory of somebody else.
    private var mayMakeFiles: Bool { cache.store.diskStore?.catalog.state.isReadable == true }

    private var fetchLocks: FetchLocks? {
        cache.configuration.sharesFetches ? cache.store.diskStore?.fetchLocks : nil
    }

    /// The load leads those of its process. Among several processes, one fetches for all: the others wait for its end.
    /// - Parameter end: when it waits no longer, in seconds of the monotonic clock: the wall clock may be set back.
    private func lead(_ key: RequestKey, _ locks: FetchLocks, until end: Double, waited: TimeInterval = 0)
        -> LoadTable.Role
    {
        switch locks.take(key.name, now: cache.now) {
        case .taken:
            let isOver = state.withLock { state in
                if !state.machine.isOffNetwork { state.lockedKey = key }
                return state.machine.isOffNetwork
            }
            if isOver {
                locks.release(key.name, isShared: true, now: cache.now)
                return .leads
            }
            cache.store.disk?.checkNow()
            guard waited > 0 || cache.store.disk?.isShared == true else { return .leads }
            // Another process may have stored the answer since this load looked.
            if let identity = stopLeading() { cache.loads.finish(identity, wasCancelled: true) }
            CacheCore.lookupQueue.async { self.endWait(mayWaitAgain: true) }
            return .looksAgain
        case .held where MonotonicTime.seconds < end:
            // An eighth of the wait at most is waited in vain.
            let pause = min(max(waited / 8, 0.002), 0.1)
            _ = Timeouts.shared.after(pause) {
                CacheCore.lookupQueue.async { [self] in
                    guard state.withLock({ !$0.machine.isOffNetwork }) else { return }
                    let role = lead(key, locks, until: end, waited: waited + pause)
                    if case .alone = role { endWait(mayWaitAgain: false) }
                }
            }
            return .waits
        case .held, .unshared:
            finishLeading()
            return .alone
        }
    }

    /// - Parameter wasCancelled: then it is not known whether the answer would have served other processes.
    private func releaseLock(wasCancelled: Bool = false) {
        let (key, isStored) = state.withLock { state in
            defer { state.lockedKey = nil }
            return (state.lockedKey, state.machine.report.isStoredForOthers)
        }
        guard let key, let locks = fetchLocks else { return }
        // A load ends where no file may be used: on the queues of a session, and of deadlines.
        CacheCore.lookupQueue.async { [cache] in
            // What memory alone has is stored, and no other process finds it.
            let isShared = wasCancelled || isStored && cache.store.disk?.contains(key) == true
            locks.release(key.name, isShared: isShared, now: cache.now)
        }
    }

    @Sendable private func endWait(mayWaitAgain: Bool) {
        state.withLock { $0.sharing = .none }
        handle(.waitEnded(mayWaitAgain: mayWaitAgain), at: .files)
    }

    /// Sets the deadline of the load in place of the last one. It has one at a time.
    func setDeadline(in seconds: TimeInterval, _ call: @escaping @Sendable () -> Void) {
        let next = Timeouts.shared.after(seconds, call)
        let last = state.withLock { state in
            if state.machine.hasEnded { return next }
            defer { state.deadline = next }
            return state.deadline
        }
        Timeouts.shared.cancel(last)
    }

    func stopWaiting() {
        guard case .waits(let identity) = state.withLock({ $0.sharing }) else { return }
        cache.loads.leave(identity, ObjectIdentifier(self))
    }

    func finishLeading(wasCancelled: Bool = false) {
        releaseLock(wasCancelled: wasCancelled)
        if let identity = stopLeading() { cache.loads.finish(identity, wasCancelled: wasCancelled) }
    }

    /// The answer is of no use to the loads that wait for it.
    func release() {
        releaseLock()
        if let identity = stopLeading() { cache.loads.release(identity, now: cache.now) }
    }

    private func stopLeading() -> FetchIdentity? {
        state.withLock { state in
            guard case .leads(let identity) = state.sharing else { return nil }
            state.sharing = .none
            return identity
        }
    }

    func redirect(_ head: ResponseHead, _ next: DiskURLCache.Request) {
        let request = state.withLock { $0.hop.request }
        let proceed: @Sendable (DiskURLCache.Request?) -> Void = { [self] next in
            // Prepares what depends on the app outside the lock: the session's cookies, the key.
            let hop = next.map { cache.resolve(transport.prepare($0, after: request), variant: transport.keyVariant) }
            handle(.redirectDecided(hop, now: cache.now), at: .network)
        }
        guard let client else { return proceed(next) }
        client.confirmRedirect(head, of: request, to: next, completion: proceed)
    }

    // MARK: Refreshes in the background

    /// The beginning of a refresh; nil if one of this key is in progress.
    func refresh(_ revalidation: Revalidation) -> (@Sendable () -> Void)? {
        let (hop, variants) = state.withLock { ($0.hop, $0.machine.stored.variants) }
        guard let key = hop.key, cache.loads.beginRefresh(key, now: cache.now) else { return nil }
        var request = hop.request
        // The whole response is refreshed, even if the request was for a part.
        for name in RequestFacts.partialFieldNames { request.headerFields.remove(name) }
        let refreshed = cache.resolve(request, variant: transport.keyVariant)
        let driver = LoadDriver(cache: cache, request: refreshed, transport: transport, client: nil, refreshKey: key)
        driver.limitRefresh(to: 1)
        return { [cache] in
            let stored = StoredResponses(variants, for: refreshed, in: cache)
            driver.handle(.refreshing(stored, revalidation, now: cache.now), at: .network)
        }
    }

    /// A refresh has no reader that would end it, and no other refresh of its key begins before it ends: it has its
    /// request's timeout for the head, and from then on ten times as long.
    func limitRefresh(to timeouts: Double) {
        let seconds = transport.timeoutForOthers(of: state.withLock { $0.hop.request }) * timeouts
        setDeadline(in: seconds) { self.cancel() }
    }
}

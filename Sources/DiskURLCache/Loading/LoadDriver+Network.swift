import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// A load's request to the network: alone or shared with other loads, and paused for a slow reader.

extension LoadDriver {
    func fetch(_ request: URLRequest, collapsible: Bool) {
        let hop = state.withLock { $0.machine.hop }
        if collapsible, let key = hop.key, !mayFetch(hop, key) { return }
        let ticket = hop.key == nil ? nil : cache.beginFetch()
        let token = FetchToken(priority: client?.priority ?? URLSessionTask.lowPriority)
        let now = cache.now
        let (body, isLate) = state.withLock { state -> (GatheredBody?, Bool) in
            defer { state.body = nil }
            guard !state.machine.hasEnded else { return (state.body, true) }
            state.fetch = token
            state.ticket = ticket
            state.summary.load.requestedAt = now
            state.usedCredentials = false
            return (state.body, false)
        }
        body?.discard()
        guard !isLate else { return }
        transport.send(request, inPieces: client?.takesPieces == true, token: token, receiver: self)
    }

    /// False if another load fetches the same: this load waits until that one ends, and then looks up again.
    private func mayFetch(_ hop: KeyedRequest, _ key: RequestKey) -> Bool {
        let identity = hop.identity(owner: transport.owner, lastRemoval: cache.lastRemoval(of: key))
        let mayJoin = state.withLock { state in
            // A load that sends a second request, after a 304 that confirms no response say, leads already: it must not wait for itself.
            if case .leads = state.sharing { return false }
            state.sharing = .waits(identity)
            return true
        }
        guard mayJoin else { return true }
        let place = cache.loads.join(
            identity, of: key, as: ObjectIdentifier(self), patience: transport.patience(of: hop.request), now: cache.now
        ) { [self] mayWaitAgain in
            state.withLock { $0.sharing = .none }
            handle(.waitEnded(mayWaitAgain: mayWaitAgain))
        }
        let isLate = state.withLock { state in
            switch place {
            case .leads: state.sharing = .leads(identity)
            case .alone: state.sharing = .none
            case .waits: break
            }
            return state.machine.hasEnded
        }
        // A load that was cancelled meanwhile has ended before it had its place in the table.
        if isLate {
            finishLeading(wasCancelled: true)
            stopWaiting()
        }
        if case .waits = place { return false }
        return true
    }

    func stopWaiting() {
        guard case .waits(let identity) = state.withLock({ $0.sharing }) else { return }
        cache.loads.leave(identity, ObjectIdentifier(self))
    }

    func finishLeading(wasCancelled: Bool = false) {
        if let identity = stopLeading() { cache.loads.finish(identity, wasCancelled: wasCancelled) }
    }

    /// The answer is of no use to the loads that wait for it.
    func release() {
        guard let key = state.withLock({ $0.machine.hop.key }), let identity = stopLeading() else { return }
        cache.loads.release(identity, of: key, now: cache.now)
    }

    private func stopLeading() -> String? {
        state.withLock { state in
            guard case .leads(let identity) = state.sharing else { return nil }
            state.sharing = .none
            return identity
        }
    }

    // MARK: The reader's pace

    /// Bytes that may wait for a slow client; above, the transfer is paused if the transport can.
    static let undeliveredLimit = 1 << 20

    func holdUpIfBehind() {
        guard let client, client.undeliveredBytes > Self.undeliveredLimit, let fetch = state.withLock({ $0.fetch })
        else { return }
        // One slow reader does not hold up others.
        finishLeading()
        fetch.pause()
        // The client may have caught up in between.
        if client.undeliveredBytes <= Self.undeliveredLimit { fetch.resume() }
    }

    /// Called for a client whose `undeliveredBytes` are within the limit again.
    func clientCaughtUp() {
        state.withLock { $0.fetch }?.resume()
    }
}

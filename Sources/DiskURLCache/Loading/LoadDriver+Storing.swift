import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Changes of the store by a load: the body while it arrives, the answer once it is whole, and changes to stored responses.

extension LoadDriver {
    func gather(_ gathering: LoadMachine.Gathering) {
        let body = GatheredBody(gathering, in: cache)
        // Cancelled meanwhile: the end of the load had no body to discard.
        let isLate = state.withLock { state in
            if !state.machine.hasEnded { state.body = body }
            return state.machine.hasEnded
        }
        if isLate { body.discard() } else if body.isGivenUp { release() }
    }

    func keep(_ piece: Data) {
        guard let body = state.withLock({ $0.body }), let refusal = body.append(piece) else { return }
        release()
        guard refusal == .diskFailed else { return }
        let url = state.withLock { $0.summary.load.url }
        cache.hub.emit(.notStored(url: url?.removingCredentials, reason: refusal))
    }

    private func setNotStored(_ reason: DiskURLCache.Reason?) {
        state.withLock { state in
            state.summary.notStored = reason
            state.summary.isStored = reason == nil
        }
    }

    func store(_ storing: LoadMachine.Storing) {
        let (variants, ticket, body, usedCredentials) = state.withLock {
            ($0.variants, $0.ticket, $0.body, $0.usedCredentials)
        }
        guard let key = storing.hop.key else { return }
        if usedCredentials { return setNotStored(.credentials) }
        if let basis = storing.basis, !isStored(variants[basis], of: key) { return setNotStored(.removedMeanwhile) }
        let arrived: ArrivedBody
        if let data = storing.completed ?? storing.edited?.data {
            arrived = .memory(data)
        } else {
            switch body?.content ?? .arrived(.memory(Data())) {
            case .arrived(let body): arrived = body
            case .givenUp(let reason): return giveUp(reason, of: key)
            }
        }
        setNotStored(
            cache.insert(
                storing.response, body: arrived, edited: storing.edited, for: storing.hop.request, key: key,
                ticket: ticket))
        if case .file = arrived { body?.discard() }
        for index in storing.replacing where variants[index].metadata.varyKey != storing.response.vary {
            cache.remove(variants[index].metadata, of: key, by: ticket)
        }
    }

    /// For a body that exceeds the limit, removes the response that it would have replaced. If the disk failed, that response stays.
    private func giveUp(_ reason: DiskURLCache.Reason, of key: RequestKey) {
        if reason == .tooLarge { cache.remove(key) }
        setNotStored(reason)
    }

    /// False also if another process removed the entry.
    private func isStored(_ variant: StoredVariant, of key: RequestKey) -> Bool {
        cache.lookUp(key).variants().contains { $0.metadata.sequence == variant.metadata.sequence }
    }

    func apply(_ change: StoreChange, _ hop: KeyedRequest) {
        let (variants, ticket, usedCredentials) = state.withLock { ($0.variants, $0.ticket, $0.usedCredentials) }
        // An answer to credentials must not change the stored response, which may be another user's.
        guard let key = hop.key, !usedCredentials else { return }
        switch change {
        case .update(let index, let response):
            _ = cache.freshen(variants[index].metadata.sequence, of: key, with: response, for: hop.request)
        case .addVariant(let index, let response):
            guard isStored(variants[index], of: key), let entry = variants[index].load() else { return }
            _ = cache.insert(
                response, body: .memory(entry.body), edited: nil, for: hop.request, key: key, ticket: ticket)
        case .remove(let index):
            cache.remove(variants[index].metadata, of: key, by: ticket)
        }
    }

    /// Asks the delegate, then `Configuration.willCacheResponse`. Both may change the response to store, or refuse it.
    func confirmStorage(_ response: StoredResponse, of hop: KeyedRequest, byDelegate: Bool) {
        let body = state.withLock { $0.body }
        func refuse() { handle(.storageConfirmed(nil, now: cache.now)) }
        var isInFile = false
        switch body?.content {
        case .givenUp(let reason)?:
            if let key = hop.key { giveUp(reason, of: key) }
            return refuse()
        case .arrived(.file)?: isInFile = true
        case .arrived(.memory)?, nil: break
        }
        // In memory as long as the delegate and the closure need it.
        guard let data = body?.contents ?? (isInFile ? nil : Data()) else {
            setNotStored(.diskFailed(errno: EIO))
            return refuse()
        }
        guard let url = hop.request.url,
            let proposed = URLResponse.http(url: url, status: response.status, fields: response.fields)
                as? HTTPURLResponse
        else { return refuse() }
        let cached = CachedURLResponse(response: proposed, data: data, userInfo: nil, storagePolicy: .allowed)
        let finish: @Sendable (CachedURLResponse?) -> Void = { [self, isInFile] confirmed in
            let accepted = confirmed.flatMap { $0.storagePolicy == .notAllowed ? nil : $0 }
            var edited = accepted.flatMap { cache.admit($0, for: hop.request, proposed: cached) }
            if edited == nil { setNotStored(accepted == nil ? .refusedByDelegate : .refusedByApp) }
            if isInFile { edited?.compareBody(with: cached.data) }
            handle(.storageConfirmed(edited, now: cache.now))
        }
        guard byDelegate, let client else { return finish(cached) }
        client.confirmStorage(of: cached, completion: finish)
    }
}

import Foundation

// Changes of the store by a load: the body while it arrives, the answer once it is whole, and changes to stored
// responses.

extension LoadDriver {
    /// - Returns: the body, if its pieces go to the client as they arrive.
    func beginBody(_ plan: LoadMachine.BodyPlan) -> ArrivingBody? {
        let (fetch, hop, head) = state.withLock { ($0.fetch, $0.hop, $0.networkHead) }
        func digests() -> BodyDigests? { head.flatMap { statedDigests($0.fields, status: $0.status, of: hop) } }
        let pausable = fetch?.canPause == true ? fetch : nil
        let pieces = client.map { ArrivingBody.Reader.pieces($0) } ?? .none
        let body: ArrivingBody
        var streams = true
        switch plan {
        // All of it is delivered before a digest could be compared.
        case .stream: body = ArrivingBody(for: nil, reader: pieces, pausable: pausable, of: hop, in: cache)
        case .gather:
            streams = false
            body = ArrivingBody(for: nil, reader: .whole, digests: digests(), of: hop, in: cache)
        case .store(let response, let streamed, let length, let isHeld):
            streams = streamed
            let whole = client == nil ? ArrivingBody.Reader.none : .whole
            body = ArrivingBody(
                for: response, reader: streamed ? pieces : whole, length: length, isHeld: isHeld,
                digests: digests(), pausable: pausable, of: hop, in: cache,
                refused: { self.giveUpStoring(response, $0, isHeld: isHeld) })
        }
        // Cancelled meanwhile: the end of the load had no body to discard.
        let isLate = state.withLock { state in
            if !state.machine.hasEnded { state.body = body }
            return state.machine.hasEnded
        }
        if isLate { body.discard() }
        return streams ? body : nil
    }

    /// Those of a body that are to be compared with it, by the configuration.
    private func statedDigests(_ fields: HeaderFields, status: Int, of hop: ResolvedRequest) -> BodyDigests? {
        guard cache.configuration.wrongDigest != .accepted else { return nil }
        return BodyDigests(
            fields, status: status, method: hop.facts.method, isDecoded: transport.decodesBodies)
    }

    func keep(_ piece: Data) {
        guard let body = state.withLock({ $0.body }) else { return }
        // One slow reader does not hold up others.
        if body.append(piece) { finishLeading() }
    }

    /// The rest of the body, which may be endless, serves at most this load.
    private func giveUpStoring(_ response: StoredResponse, _ reason: DiskURLCache.Reason, isHeld: Bool) {
        release()
        if reason == .diskFailed {
            let url = state.withLock { $0.hop }.request.foundationURL
            cache.hub.emit(.notStored(url: url?.removingCredentials, reason: reason))
        }
        guard client == nil else { return }
        CacheCore.lookupQueue.async { [self] in
            // What is only held would have replaced nothing, and has its reason.
            if !isHeld { refuseBody(of: response, reason) }
            cancel()
        }
    }

    private func note(_ refusal: DiskURLCache.Reason?) {
        state.withLock { $0.machine.report.storage = refusal.map { .refused($0) } ?? .stored }
    }

    func store(_ storing: LoadMachine.Storing) {
        let (hop, ticket, body, usedCredentials) = state.withLock {
            ($0.hop, $0.ticket, $0.body, $0.usedCredentials)
        }
        guard let key = hop.key else { return }
        if usedCredentials { return note(.credentials) }
        if let basis = storing.basis, !isStored(basis, of: key) { return note(.removedMeanwhile) }
        if let field = body?.wrongDigest {
            note(.wrongDigest(in: field))
            cache.hub.emit(
                .notStored(url: hop.request.foundationURL?.removingCredentials, reason: .wrongDigest(in: field)))
            // The client may still get it.
            return
        }
        var draft: EntryDraft
        switch content(of: storing, body) {
        case .success(let whole)?:
            draft = EntryDraft(storing.response, whole.body, storing.edited, for: hop)
            draft.file = whole.file
        case .failure(let reason)?:
            if storing.heldBecause == nil { refuseBody(of: storing.response, reason) }
            return
        case nil: return
        }
        draft.heldBecause = storing.heldBecause
        note(cache.insert(draft, for: hop, ticket: ticket))
        body?.endStoring()
        for variant in storing.replacing where variant.metadata.varyKey != storing.response.vary {
            remove(variant, of: key, by: ticket)
        }
    }

    /// The body to store: the one that the app made, or else the one that arrived. Nil if the load was cancelled since
    /// its answer ended: its end has discarded the body.
    private func content(
        of storing: LoadMachine.Storing, _ arrived: ArrivingBody?
    ) -> Result<ArrivingBody.Whole, DiskURLCache.Reason>? {
        if let data = storing.edited.data { return .success(ArrivingBody.Whole(body: .memory(data))) }
        return arrived?.content
    }

    /// If the disk failed, the response that this one would have replaced stays.
    private func refuseBody(of response: StoredResponse, _ reason: DiskURLCache.Reason) {
        let (hop, ticket, usedCredentials) = state.withLock { ($0.hop, $0.ticket, $0.usedCredentials) }
        if reason == .tooLarge, !usedCredentials, let key = hop.key {
            cache.removeReplaced(by: response, of: key, ticket: ticket)
        }
        note(reason)
    }

    /// Whether the response is still stored as it was found. False also if another process removed it.
    private func isStored(_ variant: StoredVariant, of key: RequestKey) -> Bool {
        cache.store.lookup(key).variants().contains { $0.metadata.isSameResponse(as: variant.metadata) }
    }

    /// Removes the response, also if an older answer has changed it since it was found.
    private func remove(_ variant: StoredVariant, of key: RequestKey, by ticket: StoreTicket?) {
        cache.store.remove(key, variant.metadata, by: ticket)
    }

    func apply(_ change: StoreChange) {
        let (hop, ticket) = state.withLock { ($0.hop, $0.ticket) }
        // An answer to credentials must not change the stored response, which may be another user's.
        guard let key = hop.key, !state.withLock({ $0.usedCredentials }) else { return }
        switch change {
        case .update(let variant, let response):
            cache.freshen(variant.metadata, with: response, for: hop, ticket: ticket)
        case .addVariant(let variant, let response):
            // What the app has made of the response is of its own variant, and the app is not asked about another one.
            let base = variant.metadata
            let tags = cache.tags(by: hop.options(for: response.fields), response.fields, for: hop.request)
            let hasItsTags = base.tags.allSatisfy { CacheGroups.isGroup($0) || tags.contains($0) }
            let isPlain = base.placement != .memoryOnly && base.userInfo.isEmpty && hasItsTags
            // A body that memory does not keep is not read into it for that.
            guard isPlain, !cache.editsResponses, variant.open == nil, isStored(variant, of: key),
                let entry = variant.load()
            else { return }
            let draft = EntryDraft(response, .memory(entry.body), EditedResponse(), for: hop)
            _ = cache.insert(draft, for: hop, ticket: ticket)
        case .remove(let variant): remove(variant, of: key, by: ticket)
        }
    }

    /// Asks the delegate, then `Configuration.willCacheResponse`. Both may change the response to store, or refuse it.
    func confirmStorage(_ response: StoredResponse, byDelegate: Bool) {
        let (hop, body, hasEnded) = state.withLock { ($0.hop, $0.body, $0.machine.hasEnded) }
        // Cancelled meanwhile, and the body is discarded: nobody is asked about a response without one.
        guard !hasEnded else { return }
        @Sendable func refuse(_ reason: DiskURLCache.Reason) {
            CacheCore.lookupQueue.async { [self] in
                refuseBody(of: response, reason)
                // The body's file is read on its own queue, as after any other answer.
                handle(.storageConfirmed(nil), at: .network)
            }
        }
        // The question may wait long for a slow client, and what is not in the file would be in memory meanwhile.
        body?.writeRest()
        if let refusal = body?.refusal { return refuse(refusal) }
        let cached = Self.proposed(response, for: hop.request, read: body?.reading)
        let finish: @Sendable (CachedURLResponse?) -> Void = { [self] confirmed in
            let accepted = confirmed.flatMap { $0.storagePolicy == .notAllowed ? nil : $0 }
            let admission =
                accepted.map { cache.admit($0, of: response, for: hop, proposed: cached) }
                ?? .failure(.refusedByDelegate)
            // The file could not be read.
            if let refusal = body?.refusal { return refuse(refusal) }
            if case .failure(let reason) = admission { note(reason) }
            handle(.storageConfirmed(try? admission.get()), at: .network)
        }
        guard byDelegate, let client, client.confirmsStorage else { return finish(cached) }
        // Behind the pieces of the body.
        client.send([.confirmStorage(of: cached, completion: finish)])
    }

    /// The response as the delegate and the app see it. Most delegates do not look: on Linux nothing is read or made
    /// before that.
    private static func proposed(
        _ response: StoredResponse, for request: DiskURLCache.Request, read: (@Sendable () -> Data)?
    ) -> CachedURLResponse {
        let url = request.foundationURL ?? DiskURLCache.Request.noURL
        return .make(
            head: .http(response), url: nil, requestedURL: url, data: Data(), later: read, userInfo: nil,
            storagePolicy: .allowed)
    }
}

extension LoadMachine.Action {
    /// Whether it reads or writes files, if the cache has a disk layer.
    var usesFiles: Bool {
        switch self {
        case .store, .change, .readBody, .forget, .confirmStorage: true
        case .lookUp, .fetch, .cancelFetch, .release, .distrustValidators, .beginBody, .keep, .deliverNetworkHead,
            .deliverStoredHead, .answer, .deliverBody, .deliverGathered, .finish, .fail, .invalidate, .redirect,
            .refreshInBackground:
            false
        }
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The calls of the loader to a cache, and how sessions and tasks find their cache.

extension DiskURLCache {
    /// Makes sessions of this configuration use this cache. To be called before the session is made; for
    /// `URLSession.shared.configuration`, which sessions keep using on Linux, at any time. A second call has no effect.
    ///
    /// On Linux this sets `urlCache` and puts the loader before the other protocol classes. On Apple platforms it sets
    /// `urlCache` only: the system's loader then uses the cache, as `URLCache` documents. The features of this
    /// library's loader (stale-while-revalidate, stale-if-error, collapsing, `Cache-Status`) need
    /// ``makeSession(configuration:delegate:delegateQueue:)`` there.
    public func attach(to configuration: URLSessionConfiguration) {
        configuration.urlCache = self
        guard self.configuration.platform.attachesLoader else { return }
        var classes = configuration.protocolClasses ?? []
        classes.removeAll(where: CachingURLProtocol.isLoader)
        classes.insert(CachingURLProtocol.self, at: 0)
        configuration.protocolClasses = classes
    }

    /// A session that loads through this cache by the loader of this library, on every platform.
    ///
    /// The configuration is copied. Loads that the library serves use this cache instead of its `urlCache`; on Apple
    /// platforms its `urlCache` is nil, so that the system does not search a second time. The configuration's cookies,
    /// credentials and fields apply, and the delegate decides about challenges, redirects and storage as in any
    /// session. The system loads tasks that are not cached (uploads, downloads, WebSockets, streamed bodies, requests
    /// without a key). On watchOS, and for a background configuration, for which the system allows no other loader, the
    /// session is one that ``attach(to:)`` prepared.
    public func makeSession(
        configuration: URLSessionConfiguration = .default, delegate: (any URLSessionDelegate)? = nil,
        delegateQueue: OperationQueue? = nil
    ) -> URLSession {
        let configuration = (configuration.copy() as? URLSessionConfiguration) ?? configuration
        attach(to: configuration)
        if self.configuration.platform.makesSessionClasses,
            let session = LoadingSystem.makeSession(
                configuration, cache: self, delegate: delegate, delegateQueue: delegateQueue)
        {
            return session
        }
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
    }

    func invalidate(_ invalidation: Invalidation, by ticket: StoreTicket?) {
        for url in invalidation.urls { invalidate(url, by: ticket) }
        func tell(_ reason: @autoclosure () -> Reason) {
            hub.emit(.invalidated(url: invalidation.target.removingCredentials, reason: reason()))
        }
        guard let parts = URLCanonicalizer.parts(of: invalidation.target.absoluteString) else { return }
        if invalidation.emptiesHost {
            store.remove(matching: EntryCriteria(hostHash: RequestKey.hostHash(parts.host)))
            tell(.clearSiteData)
        } else if !invalidation.groups.isEmpty {
            for group in Set(invalidation.groups) { store.remove(matching: EntryCriteria(group: group, of: parts)) }
            tell(.groupInvalidation(names: invalidation.groups))
        }
    }

    /// Removes every stored response of a URL, whatever else its key holds (RFC 9111 §4.4).
    func invalidate(_ url: URL, by ticket: StoreTicket? = nil) {
        guard let parts = URLCanonicalizer.parts(of: url.absoluteString) else { return }
        // If one of the policies gives several URLs one key, their responses are removed together.
        let policies = [configuration.keyPolicy] + configuration.keyPolicies.values
        for uri in Set(policies.map { $0.uri(of: parts) }) {
            store.remove(uri: uri, by: ticket)
            store.removeVariations(of: uri, by: ticket)
        }
    }

    func insert(
        _ response: StoredResponse, _ body: ArrivedBody, edited: LoadMachine.EditedResponse, for hop: KeyedRequest,
        ticket: StoreTicket?
    ) -> Reason? {
        let response = ContentLength.corrected(response, to: body.count)
        guard let own = hop.decision.key?.keeping(response),
            let metadata = metadata(of: response, edited: edited, for: hop.target)
        else { return keptOutReason(for: hop.target, contentType: response.fields["Content-Type"]) ?? .keptOut }
        let key = store.storingKey(own, for: response.fields, at: now)
        let reason = store.store(metadata, body, presented: edited.presented, for: key, ticket: ticket)
        // What was stored for this spelling alone would answer first.
        if reason == nil, key != own, store.contains(own) { store.remove(own) }
        return reason
    }

    /// Nil if a rule says that the response is not stored.
    private func metadata(
        of response: StoredResponse, edited: LoadMachine.EditedResponse, for target: RuleTarget
    ) -> EntryMetadata? {
        let cacheOptions = cacheOptions(for: target, contentType: response.fields["Content-Type"])
        guard cacheOptions.storage != .never else { return nil }
        let placement: EntryPlacement =
            if edited.isMemoryOnly || cacheOptions.storage == .memoryOnly {
                .memoryOnly
            } else if livesLongEnoughForDisk(response, cacheOptions: cacheOptions) {
                .memoryAndDisk
            } else {
                .memoryWhileFresh
            }
        return EntryMetadata(
            sequence: 0, url: target.request.urlWithoutCredentials, response: .http(response), storedAt: now,
            placement: placement, userInfo: edited.userInfo,
            tags: tags(of: cacheOptions, response.fields, for: target.request), isPinned: cacheOptions.isPinned == true)
    }

    func acceptsFile(_ response: StoredResponse, for target: RuleTarget) -> Bool {
        store.acceptsIncoming
            && metadata(of: response, edited: LoadMachine.EditedResponse(), for: target)?.placement == .memoryAndDisk
    }

    func admit(
        _ confirmed: CachedURLResponse, for request: Request, proposed: CachedURLResponse
    ) -> LoadMachine.EditedResponse? {
        var admitted = confirmed
        if let willCacheResponse = configuration.willCacheResponse {
            guard let answer = willCacheResponse(confirmed, request.urlRequest), answer.storagePolicy != .notAllowed
            else {
                return nil
            }
            admitted = answer
        }
        if confirmed === proposed, admitted === proposed { return LoadMachine.EditedResponse() }
        guard let response = admitted.response as? HTTPURLResponse else { return nil }
        // A part of a large body would keep the whole in memory, so it is copied.
        var edited = LoadMachine.EditedResponse(data: Data(Array(admitted.data)))
        if response !== proposed.response {
            edited.fields = HeaderFields(response)
            edited.status = response.statusCode
        }
        // If one of them keeps the response off the disk, the other cannot put it there.
        edited.isMemoryOnly = [confirmed, admitted].contains { $0.storagePolicy == .allowedInMemoryOnly }
        let (userInfo, lost) = admitted.persistentUserInfo
        edited.userInfo = userInfo
        if !lost.isEmpty {
            edited.presented = admitted
            hub.emit(
                .notStored(url: request.foundationURL?.removingCredentials, reason: .userInfo(keys: lost)))
        }
        return edited
    }
}

extension DiskURLCache: LoadHost {
    package var now: Date { configuration.clock.now() }
    var cacheStatusName: String? { configuration.cacheStatusName }
    var isShared: Bool { configuration.isShared }
    var wrongDigest: WrongDigest { configuration.wrongDigest }
    var editsResponses: Bool { configuration.willCacheResponse != nil }
}

extension CachedURLResponse {
    /// For a HEAD that is answered by the response to a GET.
    func withoutBody() -> CachedURLResponse {
        CachedURLResponse(response: response, data: Data(), userInfo: userInfo, storagePolicy: storagePolicy)
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// What the loader asks of a cache, and how sessions and tasks find theirs.

extension DiskURLCache {
    /// Makes sessions of this configuration cache here: sets `urlCache` and puts the loader in front of the other
    /// protocol classes. Before the session is made; for `URLSession.shared.configuration`, which is live on Linux, at
    /// any time. Attaching twice does no harm.
    public func attach(to configuration: URLSessionConfiguration) {
        configuration.urlCache = self
        var classes = configuration.protocolClasses ?? []
        classes.removeAll { $0 == CachingURLProtocol.self }
        classes.insert(CachingURLProtocol.self, at: 0)
        configuration.protocolClasses = classes
    }

    /// The cache of the session that a task belongs to.
    static func cache(for task: URLSessionTask, link: SessionLink? = nil) -> DiskURLCache? {
        let link = link ?? SessionLink(task)
        if let session = link.session { return session.configuration.urlCache as? DiskURLCache }
        return URLCache.shared as? DiskURLCache
    }

    /// Removes every stored response of a URL, whatever else its key holds (RFC 9111 §4.4).
    func invalidate(_ url: URL) {
        guard let parts = URLCanonicalizer.parts(of: url.absoluteString) else { return }
        var criteria = DiskCriteria()
        let hash = RequestKey.uriHash(parts.url)
        criteria.uriHash = hash
        store.remove(matching: criteria) { record, _ in record.uriHash == hash }
    }

    /// Stores what a load fetched, as its request and the rules want it kept; tells why where it is not stored.
    func insert(
        _ response: StoredResponse, body: Data, edited: LoadMachine.EditedResponse?, for request: URLRequest,
        key: RequestKey
    ) -> NotStoredReason? {
        let treatment = treatment(for: request, contentType: response.fields["Content-Type"])
        guard treatment.storage != .never else { return .refused }
        let now = configuration.clock.now()
        let metadata = EntryMetadata(
            sequence: sequence.next(at: now), url: request.url?.withoutCredentials, response: .http(response),
            storedAt: now, isMemoryOnly: edited?.isMemoryOnly == true || treatment.storage == .memoryOnly,
            userInfo: edited?.userInfo ?? [:], tags: treatment.tags.sorted(), isPinned: treatment.isPinned == true)
        let options = cachingOptions(for: request, response: response.fields)
        return insert(
            StoredEntry(metadata: metadata, body: body, presented: edited?.presented), for: key,
            onDisk: belongsOnDisk(response, treatment: treatment, options: options))
    }

    /// What the delegate or the admission closure made of a response about to be stored; nil when one refused.
    func admit(
        _ confirmed: CachedURLResponse, for request: URLRequest, proposed: CachedURLResponse
    ) -> LoadMachine.EditedResponse? {
        guard confirmed.storagePolicy != .notAllowed, let response = confirmed.response as? HTTPURLResponse else {
            return nil
        }
        var edited = LoadMachine.EditedResponse(data: confirmed.data)
        if response !== proposed.response {
            edited.fields = HeaderFields(response)
            edited.status = response.statusCode
        }
        edited.isMemoryOnly = confirmed.storagePolicy == .allowedInMemoryOnly
        let (userInfo, lost) = confirmed.persistentUserInfo
        edited.userInfo = userInfo
        if !lost.isEmpty {
            edited.presented = confirmed
            hub.emit(.userInfoKeptInMemory(url: request.url?.withoutCredentials, keys: lost))
        }
        guard let admission = configuration.admission else { return edited }
        switch admission(Admission.Candidate(request: request, response: response, data: confirmed.data)) {
        case .store: return edited
        case .refuse: return nil
        case .storeEdited(let response, let data):
            edited.fields = HeaderFields(response)
            edited.status = response.statusCode
            edited.data = data
            return edited
        }
    }
}

extension CachedURLResponse {
    /// For HEAD answered from GET.
    func withoutBody() -> CachedURLResponse {
        CachedURLResponse(response: response, data: Data(), userInfo: userInfo, storagePolicy: storagePolicy)
    }
}

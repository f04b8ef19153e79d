import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// Stores a response that the app, or the system's loader, gives for a request. Returns the reason if the response
    /// must not be stored.
    func insert(_ cached: CachedURLResponse, for request: URLRequest) -> Reason? {
        let target = target(request)
        let decision = keyDecision(for: target)
        guard let lookupKey = decision.key else { return decision.refusal ?? .noKey }
        let response = cached.response as? HTTPURLResponse
        if isBySystem, SystemContract.concernsPart(request, status: response?.statusCode) { return .partialContent }
        var fields = response.map { HeaderFields($0) }
        if isBySystem { fields = fields.map { SystemHead.restored($0) } }
        let cacheOptions = cacheOptions(for: target, contentType: fields?["Content-Type"])
        if cacheOptions.storage == .never {
            return keptOutReason(for: target, contentType: fields?["Content-Type"]) ?? .keptOut
        }
        guard cached.storagePolicy != .notAllowed else { return .refused }
        // A response stored for `HEAD` cannot answer a `GET`.
        let key = lookupKey.isForHead ? lookupKey.storedForHead : lookupKey
        /// The app does not want the older response of the key served any more.
        func refuse(_ reason: Reason) -> Reason {
            store.remove(key)
            return reason
        }
        let facts = RequestFacts(target.request, salt: store.salt)
        if facts.directives.noStore || CacheControl.forbidsStoring(fields?["Cache-Control"]) {
            return refuse(.responseNoStore)
        }
        let vary = VaryKey(response: fields ?? [:], request: facts)
        guard !vary.matchesNothing else { return .varyAsterisk }
        if isBySystem, SystemHead.isSelectedUnseen(vary) { return refuse(.variesByUnseenField) }
        let options = cachingOptions(by: cacheOptions)
        if options.isShared, let fields,
            let reason = SharedCache.prohibition(
                of: fields, said: ResponseDirectives(fields, targeted: options.targetedFields), asked: facts.fields,
                options: options)
        {
            return refuse(reason)
        }
        let time = now
        var head = EntryMetadata.Response(
            cached.response, fields: fields, method: facts.method, vary: vary, time: time)
        if case .http(let response) = head {
            let length = cached.data.count
            if let objection = ContentLength.objection(to: length, of: response) { return refuse(objection) }
            head = .http(ContentLength.corrected(response, to: length))
        }
        let (userInfo, lost) = cached.persistentUserInfo
        let metadata = EntryMetadata(
            sequence: 0, url: cached.response.url?.withoutCredentials,
            response: head, storedAt: time,
            placement: cached.storagePolicy == .allowedInMemoryOnly || cacheOptions.storage == .memoryOnly
                ? .memoryOnly : .memoryAndDisk,
            userInfo: userInfo, tags: tags(of: cacheOptions, fields ?? [:], for: target.request),
            isPinned: cacheOptions.isPinned == true)
        if !lost.isEmpty { hub.emit(.notStored(url: metadata.foundationURL, reason: .userInfo(keys: lost))) }
        // The store tells of a response that it does not take.
        let storingKey = isBySystem ? key : store.storingKey(key, for: fields ?? [:], at: time)
        store.store(metadata, .memory(cached.data), presented: cached, for: storingKey)
        if storingKey != key, store.contains(key) { store.remove(key) }
        return nil
    }
}

import Foundation

// Changes of the store: by loads, by the app, and by the system's loader.

extension CacheCore {
    /// Stores a response in the way that its request and the rules say. Returns the reason if it is not stored. Every
    /// response that is stored passes through here.
    /// - Parameter ticket: the ticket of a load that sent a request: if the response was removed or invalidated since,
    ///   it is not stored.
    func insert(_ draft: EntryDraft, for hop: ResolvedRequest, ticket: StoreTicket? = nil) -> DiskURLCache.Reason? {
        let fields = draft.http?.fields
        if let reason = hop.refusal(of: fields) { return reason }
        guard let key = hop.key else { return .noKey }
        let options = hop.options(for: fields)
        let metadata = EntryMetadata(
            url: draft.url, response: draft.correctedResponse, storedAt: now,
            placement: placement(of: draft, options), userInfo: draft.edited.userInfo,
            tags: tags(by: options, fields ?? [:], for: hop.request), isPinned: options.isPinned == true)
        if let reason = draft.heldBecause {
            if let ticket, case .memory(let body) = draft.body {
                store.hold(metadata, body, for: key, ticket: ticket)
            }
            return reason
        }
        if draft.storer == .systemLoader, case .memory(let body) = draft.body {
            store.storeLater(
                metadata, body, presented: draft.edited.presented, for: key, keepsPin: options.isPinned == nil)
            return nil
        }
        return store.store(
            metadata, draft.body, in: draft.file, presented: draft.edited.presented, for: key, ticket: ticket,
            keepsPin: options.isPinned == nil)
    }

    private func placement(of draft: EntryDraft, _ options: DiskURLCache.Options) -> EntryPlacement {
        if draft.edited.isMemoryOnly || options.storage == .memoryOnly || draft.heldBecause != nil {
            return .memoryOnly
        }
        guard draft.storer == .load, let response = draft.http else { return .memoryAndDisk }
        return livesLongEnoughForDisk(response, options) ? .memoryAndDisk : .offDisk
    }

    /// Whether a response lives long enough to be worth a file.
    private func livesLongEnoughForDisk(_ response: StoredResponse, _ cacheOptions: DiskURLCache.Options) -> Bool {
        let minimum = (cacheOptions.minimumDiskLifetime ?? configuration.minimumDiskLifetime).seconds
        guard minimum > 0 else { return true }
        let options = cachingOptions(by: cacheOptions)
        let facts = ReuseFacts(response).governed(by: options)
        let freshness = Freshness(of: facts, options: options, now: now)
        return Double(max(freshness.timeToLive, facts.rest(options)?.seconds ?? 0)) >= minimum
    }

    /// Whether a large body of this response is gathered in a file: only if the response will be stored on disk.
    func acceptsFile(_ response: StoredResponse, for hop: ResolvedRequest) -> Bool {
        let options = hop.options(for: response.fields)
        let draft = EntryDraft(response, .memory(Data()), EditedResponse(), for: hop)
        return store.acceptsIncoming && placement(of: draft, options) == .memoryAndDisk
    }

    // MARK: Answers of loads

    /// Whether `Configuration.willCacheResponse` is set, which is called before a response is stored.
    var editsResponses: Bool { configuration.willCacheResponse != nil }

    /// The changes of the delegate, which accepted a response, and of the app; or why it is not stored: the app refused
    /// it, or the changed head forbids that.
    /// - Parameters:
    ///   - response: as the origin sent it.
    ///   - proposed: the same, as the delegate got it.
    func admit(
        _ confirmed: CachedURLResponse, of response: StoredResponse, for hop: ResolvedRequest,
        proposed: CachedURLResponse
    ) -> Result<EditedResponse, DiskURLCache.Reason> {
        var admitted = confirmed
        if let willCacheResponse = configuration.willCacheResponse {
            guard let answer = willCacheResponse(confirmed, hop.request.urlRequest),
                answer.storagePolicy != .notAllowed
            else {
                return .failure(.refusedByApp)
            }
            admitted = answer
        }
        var edited = EditedResponse()
        if confirmed === proposed, admitted === proposed { return .success(edited) }
        guard let head = admitted.response as? HTTPURLResponse else { return .failure(.refusedByApp) }
        // A slice of a large body would keep the whole body in memory, so it is copied.
        if admitted.data != proposed.data { edited.data = Data(Array(admitted.data)) }
        if head !== proposed.response {
            var changed = response
            changed.status = head.statusCode
            changed.fields = HeaderFields(head)
            changed.vary = VaryKey(response: changed.fields, request: hop.facts)
            if let reason = keepOnlyStorable(&changed, for: hop) { return .failure(reason) }
            edited.response = changed
        }
        // If either keeps the response off the disk, it stays off the disk.
        edited.isMemoryOnly = [confirmed, admitted].contains { $0.storagePolicy == .allowedInMemoryOnly }
        take(userInfoOf: admitted, into: &edited, url: hop.request.foundationURL?.removingCredentials)
        return .success(edited)
    }

    /// Takes over `userInfo`. Values that cannot be written to disk are kept in memory only, and an event names them.
    private func take(
        userInfoOf cached: CachedURLResponse, into edited: inout EditedResponse, url: @autoclosure () -> URL?
    ) {
        let (userInfo, lost) = cached.persistentUserInfo
        edited.userInfo = userInfo
        guard !lost.isEmpty else { return }
        edited.presented = cached
        hub.emit(.notStored(url: url(), reason: .userInfo(keys: lost)))
    }

    /// Replaces the head of the stored response that was found with these metadata (RFC 9111 §4.3.4). Its body stays.
    /// - Parameter ticket: of the load that asked the origin.
    func freshen(
        _ found: EntryMetadata, with response: StoredResponse, for hop: ResolvedRequest, ticket: StoreTicket?
    ) {
        guard let key = hop.key else { return }
        let now = now
        // A response that names different groups no longer belongs to those that it named before.
        let options = hop.options(for: response.fields)
        let tags = options.tags.union(groupTags(of: response.fields, url: hop.request.url))
        _ = store.update(found, of: key, ticket: ticket) { metadata in
            metadata.tags = metadata.tags.filter { !CacheGroups.isGroup($0) }.joined(withTags: tags)
            if let isPinned = options.isPinned { metadata.isPinned = isPinned }
            metadata.response = .http(response)
            metadata.storedAt = now
        }
    }

    /// Removes the stored responses that an answer says are no longer valid.
    func invalidate(_ invalidation: Invalidation) {
        for url in invalidation.urls { invalidate(url) }
        func tell(_ reason: @autoclosure () -> DiskURLCache.Reason) {
            hub.emit(.invalidated(url: invalidation.target.removingCredentials, reason: reason()))
        }
        guard let parts = URLCanonicalizer.parts(of: invalidation.target.absoluteString) else { return }
        if invalidation.emptiesHost {
            store.remove(matching: EntryCriteria(host: HostName(parts.host)))
            tell(.clearSiteData)
        } else if !invalidation.groups.isEmpty {
            let groups = Set(invalidation.groups)
            // One removal: without an index each one reads the heads of all records.
            let criteria =
                groups.count > CacheGroups.limit
                ? EntryCriteria(host: HostName(parts.host), urlPrefix: parts.origin + "/")
                : EntryCriteria(groups: groups, of: parts)
            if configuration.marksGroupsStale {
                store.markStale(matching: criteria, at: now)
            } else {
                store.remove(matching: criteria)
            }
            tell(.groupInvalidation(names: Array(invalidation.groups.prefix(CacheGroups.limit))))
        }
    }

    /// Removes every stored response of a URL, whatever else is in its key (RFC 9111 §4.4).
    func invalidate(_ url: URL) {
        guard let parts = URLCanonicalizer.parts(of: url.absoluteString) else { return }
        // If a policy gives several URLs the same key, their responses are removed together.
        let policies = [configuration.keyPolicy] + configuration.keyPolicies.values
        for uri in Set(policies.map { $0.uri(of: parts) }) { store.remove(uri: uri) }
    }

    // MARK: The app's call

    /// Stores a response that the app, or the system's loader, gives for a request. An event says why it is not stored.
    func store(
        _ cached: CachedURLResponse, for request: URLRequest, variant: String? = nil,
        by storer: EntryDraft.Storer = .app
    ) {
        // It would take the place of the whole, which may be stored, and no lookup returns a part. The system's loader
        // would use it as the whole.
        if (cached.response as? HTTPURLResponse)?.statusCode == 206 { return emitNotStored(request, .partialContent) }
        let hop = resolve(DiskURLCache.Request(request), variant: variant)
        if let reason = storeAppResponse(cached, for: hop, by: storer) { emitNotStored(request, reason) }
    }

    func emitNotStored(_ request: URLRequest, _ reason: DiskURLCache.Reason) {
        hub.emit(.notStored(url: request.url?.removingCredentials, reason: reason))
    }

    /// Returns the reason if the response is not stored. Nil also if the store refused it, which the store reports
    /// itself.
    private func storeAppResponse(
        _ cached: CachedURLResponse, for hop: ResolvedRequest, by storer: EntryDraft.Storer
    ) -> DiskURLCache.Reason? {
        var fields = (cached.response as? HTTPURLResponse).map { HeaderFields($0) }
        if isBySystem { fields = fields.map { SystemHead.restored($0) } }
        if let reason = hop.refusal(of: fields) { return reason }
        guard let key = hop.key else { return .noKey }
        // What answers a `HEAD` is what a `GET` has brought.
        if key.isForHead { return .methodNotCached }
        guard cached.storagePolicy != .notAllowed else { return .refused }
        var response = EntryMetadata.Response(
            cached.response, fields: fields, method: hop.facts.method,
            vary: VaryKey(response: fields ?? [:], request: hop.facts), time: now)
        if let reason = keepOnlyStorable(&response, length: cached.data.count, for: hop) {
            // The app has replaced the older response of the key, so that one must not be served any more. What only
            // the request says is not about it.
            if reason != .requestNoStore { store.remove(key) }
            return reason
        }
        var edited = EditedResponse(isMemoryOnly: cached.storagePolicy == .allowedInMemoryOnly)
        take(userInfoOf: cached, into: &edited, url: cached.response.url?.removingCredentials)
        // Memory returns the same object again, unless the system's loader would refuse its `Vary`.
        let isRefused = isBySystem && fields?["Vary"] != nil && systemHits.withLock { $0.hidesVary }
        if !isRefused { edited.presented = cached }
        _ = insert(EntryDraft(cached, response, edited, by: storer), for: hop)
        return nil
    }

    /// The same for a response that the app stores, which need not be HTTP, nor fresh.
    private func keepOnlyStorable(
        _ response: inout EntryMetadata.Response, length: Int, for hop: ResolvedRequest
    ) -> DiskURLCache.Reason? {
        guard case .http(var http) = response else {
            return hop.facts.directives.noStore ? .requestNoStore : nil
        }
        if isBySystem, SystemHead.isSelectedUnseen(http.vary) { return .varyUnseen }
        let objection = ContentLength.objection(to: length, of: http)
        if let reason = keepOnlyStorable(&http, for: hop) ?? objection { return reason }
        response = .http(http)
        return nil
    }

    /// Takes out the fields that are never stored, such as `Set-Cookie`, of a head that the app, or a delegate, has
    /// made.
    /// - Returns: the reason why a response with this head must not be stored; nil if it may be.
    private func keepOnlyStorable(_ response: inout StoredResponse, for hop: ResolvedRequest) -> DiskURLCache.Reason? {
        let fields = response.fields
        let options = cachingOptions(for: hop, response: fields)
        let control = CacheControl(fields["Cache-Control"])
        let prohibition = Storability.prohibition(
            of: response,
            by: Exchange(
                request: hop.facts, variants: [], status: response.status, fields: fields,
                requestTime: response.requestTime, responseTime: response.responseTime),
            said: ResponseDirectives(fields, control: control, targeted: options.targetedFields), options: options)
        if let prohibition { return prohibition }
        // Set only if it is another: a response is copied when it is changed.
        if let reduced = StorableFields.reduced(fields, control: control, isShared: options.isShared) {
            response.fields = reduced
        }
        return nil
    }

    /// For a body that exceeds the limit: removes the responses that it would have replaced, unless they are newer, or
    /// the whole of a part.
    func removeReplaced(by response: StoredResponse, of key: RequestKey, ticket: StoreTicket?) {
        let metadata = EntryMetadata(response: .http(response), storedAt: now, placement: .memoryAndDisk)
        guard !metadata.isPart else { return }
        store.remove(key, metadata, by: ticket)
        for other in store.lookup(key).variants().map(\.metadata) where other.varyKey.overlaps(metadata.varyKey) {
            var older = other
            // As one that is not the stored one, so that it goes only if the ticket is later.
            older.sequence = 0
            store.remove(key, older, by: ticket)
        }
    }

    /// Stores a response whose body is elsewhere, in a file of the app. It is not read into memory, unless memory alone
    /// may keep it.
    /// - Parameter read: gives the body in pieces; returns false if it cannot be read.
    func store(
        _ response: StoredResponse, length: Int, for hop: ResolvedRequest, ticket: StoreTicket,
        read: ((Data) -> Void) -> Bool
    ) {
        func refuse(_ reason: DiskURLCache.Reason) { emitNotStored(hop.request.urlRequest, reason) }
        // `willCacheResponse` would be asked with the whole body in memory.
        if editsResponses { return refuse(.refusedUnasked) }
        var response = response
        if let reason = keepOnlyStorable(&response, for: hop) { return refuse(reason) }
        let isForFile = acceptsFile(response, for: hop)
        let limit = store.largestStorableBody
        guard length <= limit else {
            // Before others are evicted for it.
            if let key = hop.key { removeReplaced(by: response, of: key, ticket: ticket) }
            return refuse(.tooLarge(bytes: length, limit: limit))
        }
        var file: IncomingBody?
        var data = Data()
        var failure: DiskURLCache.Reason?
        let isRead = read { piece in
            guard failure == nil else { return }
            if isForFile { failure = store.append(piece, to: &file) } else { data.append(piece) }
        }
        if let reason = failure ?? (isRead ? nil : .diskFailed(errno: EIO)) { return refuse(reason) }
        var draft = EntryDraft(response, file.map { .file($0.opening) } ?? .memory(data), EditedResponse(), for: hop)
        // Deleted with the object, unless it becomes the record.
        draft.file = file
        if let reason = insert(draft, for: hop, ticket: ticket) { refuse(reason) }
    }

    // MARK: Tags

    /// The tags of a response that is stored: those of the options, of the response's groups, and of the request's
    /// credentials.
    func tags(
        by cacheOptions: DiskURLCache.Options, _ fields: HeaderFields, for request: DiskURLCache.Request
    ) -> [String] {
        var tags = cacheOptions.tags.union(groupTags(of: fields, url: request.url))
        if let credentials = request.headerFields["Authorization"] {
            tags.insert(tag(ofCredentials: credentials))
        }
        return tags.isEmpty ? [] : tags.sorted()
    }

    /// The tags of the groups that a response of this URL belongs to.
    private func groupTags(of fields: HeaderFields, url: String) -> Set<String> {
        let names = CacheGroups.names(of: fields, keyFields: configuration.groupFields)
        guard !names.isEmpty, let origin = URLCanonicalizer.parts(of: url)?.origin else { return [] }
        return Set(names.map { CacheGroups.tag(of: $0, origin: origin) })
    }

    /// Whether a stored response does not have all tags of a request that it answers.
    func lacksTags(_ variant: StoredVariant, of hop: ResolvedRequest) -> Bool {
        let tags = hop.options.tags
        guard !tags.isEmpty, hop.hasKey else { return false }
        return variant.metadata.tags.joined(withTags: tags).count > variant.metadata.tags.count
    }

    /// Adds a request's tags to the entry that answers it, which may have been stored for a different request.
    func addTags(to variant: StoredVariant, of hop: ResolvedRequest) {
        guard lacksTags(variant, of: hop), let key = hop.key else { return }
        let metadata = variant.metadata
        let tags = hop.options.tags
        _ = store.update(metadata, of: key) {
            $0.tags = $0.tags.joined(withTags: tags)
        }
    }

    /// Whether a tag is one of ``DiskURLCache/Options/tags``, and none that the cache made.
    package static func isTagOfApp(_ tag: String) -> Bool {
        !CacheGroups.isGroup(tag) && !tag.hasPrefix(credentialsPrefix)
    }

    private static let credentialsPrefix = "authorization "

    /// The tag of the entries that were stored for requests with this `Authorization`. It has 24 bits of a digest:
    /// enough that entries of other credentials are hardly ever removed as well, and too few to confirm a guessed
    /// password.
    func tag(ofCredentials value: String) -> String {
        let text = "authorization:\(value)"
        return
            "\(Self.credentialsPrefix)\((salt?.digest(of: text) ?? SHA256Digest.digest(of: text)).hex.prefix(6))"
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A call of `storeCachedResponse`, and whether its response is stored.
struct StoreCall: Sendable {
    let request: URLRequest
    let response: CachedURLResponse
    let time: Date
    /// Whether the system's own loader may be the caller: see `SystemHead`.
    let isBySystem: Bool
    /// Of the cache: see `CredentialSalt`.
    let salt: CredentialSalt?

    enum Outcome {
        /// `lost` names the keys of `userInfo` whose values cannot be written to disk.
        case stored(EntryMetadata, lost: [String])
        /// - Parameter removesOlder: whether the older response of the key is removed: the app does not want it served any more.
        case refused(DiskURLCache.Reason, removesOlder: Bool)
    }

    /// - Parameter tags: the groups that the entry belongs to.
    func outcome(cacheOptions: DiskURLCache.Options, tags: [String], options: CachingOptions) -> Outcome {
        guard response.storagePolicy != .notAllowed else { return .refused(.refused, removesOlder: false) }
        var fields = (response.response as? HTTPURLResponse).map { HeaderFields($0) }
        if isBySystem { fields = fields.map { SystemHead.restored($0) } }
        let facts = RequestFacts(DiskURLCache.Request(request), salt: salt)
        if facts.directives.noStore || CacheControl.forbidsStoring(fields?["Cache-Control"]) {
            return .refused(.responseNoStore, removesOlder: true)
        }
        let vary = VaryKey(response: fields ?? [:], request: facts)
        guard !vary.matchesNothing else { return .refused(.varyAsterisk, removesOlder: false) }
        if isBySystem, SystemHead.isSelectedUnseen(vary) { return .refused(.variesByUnseenField, removesOlder: true) }
        if options.isShared, let fields,
            let reason = SharedCache.prohibition(
                of: fields, said: ResponseDirectives(fields, targeted: options.targetedFields), asked: facts.fields,
                options: options)
        {
            return .refused(reason, removesOlder: true)
        }
        let (userInfo, lost) = response.persistentUserInfo
        let metadata = EntryMetadata(
            sequence: 0, url: response.response.url?.withoutCredentials,
            response: EntryMetadata.Response(
                response.response, fields: fields, method: facts.method, vary: vary, time: time),
            storedAt: time,
            placement: response.storagePolicy == .allowedInMemoryOnly || cacheOptions.storage == .memoryOnly
                ? .memoryOnly : .memoryAndDisk,
            userInfo: userInfo, tags: tags, isPinned: cacheOptions.isPinned == true)
        return .stored(metadata, lost: lost)
    }
}

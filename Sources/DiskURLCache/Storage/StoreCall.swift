import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A call of `storeCachedResponse`, and what it comes to.
struct StoreCall: Sendable {
    let key: RequestKey
    let request: URLRequest
    let response: CachedURLResponse
    let time: Date
    /// Of the entry that it may become: in the order of the calls.
    let sequence: UInt64

    enum Outcome {
        /// `lost` names what of `userInfo` cannot be written.
        case stored(StoredEntry, lost: [String])
        /// An older response of the key goes too where that one is no longer what the app wants to be answered.
        case refused(DiskURLCache.NotStoredReason, removesOlder: Bool)
    }

    /// Whether it makes no difference if the response is looked into a little later, on another thread: all its parts are
    /// Foundation's own, which never change.
    var canWait: Bool {
        type(of: response) == CachedURLResponse.self && type(of: response.response) == HTTPURLResponse.self
            && response.storagePolicy == .allowed && response.userInfo == nil
    }

    /// Whether it takes the place of all that is stored for its key: no request field selects it.
    var isOnlyVariant: Bool {
        (response.response as? HTTPURLResponse)?.field("Vary") == nil
    }

    /// - Parameters:
    ///   - treatment: nil where nobody has any wishes.
    ///   - limit: the largest body that is stored, in bytes.
    func outcome(treatment: DiskURLCache.Treatment?, limit: Int) -> Outcome {
        guard response.storagePolicy != .notAllowed else { return .refused(.refused, removesOlder: false) }
        let http = response.response as? HTTPURLResponse
        let facts = RequestFacts(request)
        // Only the fields that decide are looked at; the rest is for the maintenance queue to go through.
        if CacheControl.forbidsStoring(http?.field("Cache-Control"))
            || CacheControl.forbidsStoring(facts.fields["Cache-Control"])
        {
            return .refused(.http(StorageRefusal.responseNoStore.rawValue), removesOlder: true)
        }
        let vary = VaryKey(http?.field("Vary"), request: facts.fields)
        guard !vary.matchesNothing else {
            return .refused(.http(StorageRefusal.varyAsterisk.rawValue), removesOlder: false)
        }
        let body = response.data
        guard body.count <= limit else {
            return .refused(.tooLarge(bytes: body.count, limit: limit), removesOlder: true)
        }
        let (userInfo, lost) = response.persistentUserInfo
        let metadata = EntryMetadata(
            sequence: sequence, url: response.response.url?.withoutCredentials,
            response: EntryMetadata.Response(
                response.response, method: facts.method == "HEAD" ? "GET" : facts.method, vary: vary, time: time),
            storedAt: time,
            isMemoryOnly: response.storagePolicy == .allowedInMemoryOnly || treatment?.storage == .memoryOnly,
            userInfo: userInfo, tags: treatment?.tags.sorted() ?? [], isPinned: treatment?.isPinned == true)
        return .stored(StoredEntry(metadata: metadata, body: body, presented: response), lost: lost)
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The parts of the cache that its loads use: keys, rules, time, the store, and events.
protocol LoadHost: AnyObject, Sendable {
    var store: TieredStore { get }
    var loads: LoadTable { get }
    var now: Date { get }
    /// The cache's identifier in `Cache-Status`; nil if responses get no such field.
    var cacheStatusName: String? { get }
    /// What becomes of a response whose body contradicts a digest that it states.
    var wrongDigest: DiskURLCache.WrongDigest { get }
    /// The cache serves several users.
    var isShared: Bool { get }
    /// Whether `Configuration.willCacheResponse` is set: it is called before a response is stored.
    var editsResponses: Bool { get }

    /// A request with its key, and all that a load derives from it. Calls the app's rules and key closures.
    /// - Parameter variant: part of the key; see ``LoadTransport/keyVariant``.
    func keyed(_ request: DiskURLCache.Request, variant: String?) -> KeyedRequest
    /// - Parameter response: the head of the stored or received response, if there is one: rules by content type count
    ///   then.
    func cachingOptions(for target: RuleTarget, response: HeaderFields?) -> CachingOptions
    /// The response to store, as the app changed it after the delegate accepted it; nil when the app refused.
    func admit(
        _ confirmed: CachedURLResponse, for request: DiskURLCache.Request, proposed: CachedURLResponse
    ) -> LoadMachine.EditedResponse?
    /// Whether a large body of this response is gathered in a file on disk: only if the response goes to disk.
    func acceptsFile(_ response: StoredResponse, for target: RuleTarget) -> Bool
    /// Stores the answer that a load fetched, as its request and the rules say; gives the reason if it is not stored.
    /// The ticket excludes a response that was removed or invalidated since.
    func insert(
        _ response: StoredResponse, _ body: ArrivedBody, edited: LoadMachine.EditedResponse, for hop: KeyedRequest,
        ticket: StoreTicket?
    ) -> DiskURLCache.Reason?
    /// Gives a stored response another head, its body unchanged (RFC 9111 §4.3.4): the one with this number and no
    /// other.
    func freshen(_ sequence: UInt64, with response: StoredResponse, for hop: KeyedRequest)
    /// Gives an entry that answered a request the request's tags.
    func addTags(to metadata: EntryMetadata, of key: RequestKey, for target: RuleTarget)
    /// Removes the stored responses that an answer says are no longer valid.
    /// - Parameter ticket: of the load whose answer it is, if that answer may be stored itself.
    func invalidate(_ invalidation: Invalidation, by ticket: StoreTicket?)
}

extension LoadHost {
    var hub: EventHub { store.hub }
}

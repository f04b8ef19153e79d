import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a load needs of the cache that it serves: keys, rules, time, the store, and somebody to tell.
protocol LoadHost: AnyObject, Sendable {
    var hub: EventHub { get }
    /// Loads that are under way.
    var loads: LoadTable { get }
    var now: Date { get }
    /// The cache's identifier in `Cache-Status`; nil where responses get no such field.
    var cacheStatusName: String? { get }
    /// Whether the app wants to be asked before something is stored.
    var hasAdmission: Bool { get }

    /// The key of a request; nil for one that is not cached.
    func key(for request: URLRequest) -> RequestKey?
    /// The same, or why there is no key.
    func keyDecision(for request: URLRequest) -> KeyDecision
    /// - Parameter response: the head of what is stored or received, as far as there is one.
    func cachingOptions(for request: URLRequest, response: HeaderFields?) -> CachingOptions
    /// What the app makes of a response about to be stored, which the delegate accepted; nil when the app refused.
    func admit(
        _ confirmed: CachedURLResponse, for request: URLRequest, proposed: CachedURLResponse
    ) -> LoadMachine.EditedResponse?
    /// What is stored of a key.
    func lookUp(_ key: RequestKey) -> Lookup
    /// The number of the last removal that may have concerned what is stored of a key, now or later. Numbers grow.
    func lastRemoval(of key: RequestKey) -> UInt64
    /// Taken when the network is asked, and handed over with the answer.
    func beginFetch() -> StoreTicket
    /// Stores what a load fetched; tells why where it is not stored. Not stored is what the ticket says was removed or
    /// invalidated since.
    func insert(
        _ response: StoredResponse, body: Data, edited: LoadMachine.EditedResponse?, for request: URLRequest,
        key: RequestKey, ticket: StoreTicket?
    ) -> CacheReason?
    /// Whether a large body of this response is gathered in a file on disk.
    func takesFile(_ response: StoredResponse, for request: URLRequest) -> Bool
    /// Writes the next piece of a body to its file, which the first piece makes; tells why where that cannot be done.
    func append(_ data: Data, to body: inout IncomingBody?) -> CacheReason?
    /// The same as `insert` with the body that was written so.
    func insert(
        _ response: StoredResponse, body: IncomingBody, edited: LoadMachine.EditedResponse?, for request: URLRequest,
        key: RequestKey, ticket: StoreTicket?
    ) -> CacheReason?
    /// Gives a stored response another head, its body unchanged (RFC 9111 §4.3.4): the one with this number and no other.
    /// False where that one is not there any more.
    func freshen(
        _ sequence: UInt64, of key: RequestKey, with response: StoredResponse, for request: URLRequest
    ) -> Bool
    /// Gives an entry that answered a request the request's tags.
    func addTags(to metadata: EntryMetadata, of key: RequestKey, for request: URLRequest)
    func remove(_ key: RequestKey)
    /// Removes a stored response, and what an older answer made of it since it was found.
    /// - Parameter ticket: of the load whose answer removes it.
    func remove(_ metadata: EntryMetadata, of key: RequestKey, by ticket: StoreTicket?)
    /// The largest body that may be stored, in bytes.
    var largestStorableBody: Int { get }
    /// The largest entry that memory keeps, in bytes.
    var largestMemoryEntry: Int { get }
    /// Removes every stored response of a URL (RFC 9111 §4.4).
    /// - Parameter ticket: of the load whose answer says so, where that answer may be stored itself.
    func invalidate(_ url: URL, by ticket: StoreTicket?)
}

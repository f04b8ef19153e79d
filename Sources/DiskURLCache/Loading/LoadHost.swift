import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The parts of the cache that its loads use: keys, rules, time, the store, and events.
package protocol LoadHost: AnyObject, Sendable {
    var hub: EventHub { get }
    var loads: LoadTable { get }
    var now: Date { get }
    /// The cache's identifier in `Cache-Status`; nil if responses get no such field.
    var cacheStatusName: String? { get }
    /// Whether `Configuration.willCacheResponse` is set: it is called before a response is stored.
    var editsResponses: Bool { get }

    /// The key of a request; nil for one that is not cached.
    func key(for request: URLRequest) -> RequestKey?
    /// The key, or the reason why there is none.
    func keyDecision(for request: URLRequest) -> KeyDecision
    /// - Parameter response: the head of the stored or received response, if there is one.
    func cachingOptions(for request: URLRequest, response: HeaderFields?) -> CachingOptions
    /// The response to store, as the app changed it after the delegate accepted it; nil when the app refused.
    func admit(
        _ confirmed: CachedURLResponse, for request: URLRequest, proposed: CachedURLResponse
    ) -> LoadMachine.EditedResponse?
    /// The stored responses of a key.
    func lookUp(_ key: RequestKey) -> Lookup
    /// The number of the last removal that may have concerned the responses of a key, now or later. Numbers grow.
    func lastRemoval(of key: RequestKey) -> UInt64
    /// Taken when a request is sent, and handed over with the answer.
    func beginFetch() -> StoreTicket
    /// Stores the answer that a load fetched; gives the reason if it is not stored. The ticket excludes a response that was removed or
    /// invalidated since.
    func insert(
        _ response: StoredResponse, body: ArrivedBody, edited: LoadMachine.EditedResponse?, for request: URLRequest,
        key: RequestKey, ticket: StoreTicket?
    ) -> DiskURLCache.Reason?
    /// Whether a large body of this response is gathered in a file on disk.
    func takesFile(_ response: StoredResponse, for request: URLRequest) -> Bool
    /// Writes the next piece of a body to its file, which the first piece creates; gives the reason if it cannot.
    func append(_ data: Data, to body: inout IncomingBody?) -> DiskURLCache.Reason?
    /// Gives a stored response another head, its body unchanged (RFC 9111 §4.3.4): the one with this number and no other.
    /// False if that response is no longer stored.
    func freshen(
        _ sequence: UInt64, of key: RequestKey, with response: StoredResponse, for request: URLRequest
    ) -> Bool
    /// Gives an entry that answered a request the request's tags.
    func addTags(to metadata: EntryMetadata, of key: RequestKey, for request: URLRequest)
    func remove(_ key: RequestKey)
    /// Removes a stored response, and the changes that an older answer made to it since it was found.
    /// - Parameter ticket: of the load whose answer removes it.
    func remove(_ metadata: EntryMetadata, of key: RequestKey, by ticket: StoreTicket?)
    /// The largest body that may be stored, in bytes.
    var largestStorableBody: Int { get }
    /// The largest entry that memory keeps, in bytes.
    var largestMemoryEntry: Int { get }
    /// Removes every stored response of a URL (RFC 9111 §4.4).
    /// - Parameter ticket: of the load whose answer invalidates the URL, if that answer may be stored itself.
    func invalidate(_ url: URL, by ticket: StoreTicket?)
}

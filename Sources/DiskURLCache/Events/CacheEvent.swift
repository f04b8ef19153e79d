import Foundation

/// What a cache did. See ``DiskURLCache/events()``.
public enum CacheEvent: Sendable {
    /// A load ended: one event for each task of a session with the loader, cached or not, and for each direct call.
    case load(CacheLoadReport)
    /// An entry was stored; `bytes` is the length of its body.
    case stored(url: String?, bytes: Int, inMemoryOnly: Bool)
    /// A response was not stored, and why.
    case notStored(url: String?, reason: CacheNotStoredReason)
    /// These `userInfo` keys have values that are no property-list types: they last as long as the memory layer
    /// holds the entry.
    case userInfoKeptInMemory(url: String?, keys: [String])
    /// Eviction removed entries from disk. `bytes` are what they took there.
    case evicted(entries: Int, bytes: Int)
    /// A damaged record was removed; its entry is a miss.
    case removedDamagedRecord
    /// The index was made anew from the records, and why.
    case rebuiltIndex(reason: String)
    /// Something that the app or its user can act on. The cache goes on working, perhaps in memory only.
    case problem(CacheError)
}

/// Why something was not stored. The HTTP reasons are those of RFC 9111 §3.
public enum CacheNotStoredReason: Sendable, Hashable {
    /// The request has no key: another scheme, a method that the key policy does not cache, a streamed body, or a rule with
    /// `.never`.
    case noKey
    /// Refused by `URLCache.StoragePolicy.notAllowed`, the delegate's `willCacheResponse`, the admission closure or a rule.
    case refused
    /// The body is larger than the share of the capacity that one entry may take.
    case tooLarge(bytes: Int, limit: Int)
    /// The response's or the request's header fields forbid it; the text names the rule.
    case http(String)
    /// While this answer was under way, its URL was removed, invalidated, or replaced by a newer answer (RFC 9111 §4.4).
    case removedMeanwhile
    /// The disk did not take writes fast enough, or failed; the text says which.
    case disk(String)
}

/// One load through the loader, and why it went the way it did.
public struct CacheLoadReport: Sendable {
    /// How the answer came about.
    public enum Outcome: Sendable, Hashable {
        /// Fresh, from the store.
        case hit(CacheLayer)
        /// From the store, although stale; the text names what allowed it, such as `stale-while-revalidate`.
        case staleHit(CacheLayer, reason: String)
        /// From the store, after the origin confirmed it (304).
        case revalidated(CacheLayer)
        /// From the network; the text says why the store could not answer.
        case miss(reason: String)
        /// From the network, for a request that is not cached; the text says why.
        case bypass(reason: String)
        /// No answer: the network failed, or was not allowed.
        case failed(reason: String)
    }

    public let url: String?
    public let method: String
    public let outcome: Outcome
    /// Status delivered; 0 when the load failed.
    public let status: Int
    /// Length of the body delivered, in bytes.
    public let bytes: Int
    /// `Age` of what was delivered, in seconds; nil when it came from the network.
    public let age: Int?
    /// From start to end of the load, in seconds.
    public let duration: TimeInterval
    /// When the load began.
    public let startedAt: Date
    /// When the request was handed to the network, the last time after redirects; nil when it was not.
    public let requestedAt: Date?
    /// When the head of the network's answer arrived; nil without one. With `requestedAt`, what
    /// `URLSessionTaskMetrics` would tell of a request and its first byte.
    public let respondedAt: Date?
    /// Whether the answer was stored; nil when there was nothing new to store.
    public let isStored: Bool?
    /// Why it was not stored; nil where it was, and where there was nothing new to store.
    public let notStoredReason: CacheNotStoredReason?
    /// True when another load in flight fetched the answer.
    public let isCollapsed: Bool
    /// The error that the caller got; nil for a load that succeeded or was cancelled.
    public let error: (any Swift.Error)?
    /// The RFC 9211 field value, whether or not it is delivered.
    public let cacheStatus: String
}

/// Counts since the cache was opened.
public struct CacheStatistics: Sendable, Hashable {
    /// Lookups answered, by layer, through the loader or the `URLCache` methods.
    public internal(set) var memoryHits = 0
    /// Fallback directories included.
    public internal(set) var diskHits = 0
    /// Lookups that found nothing.
    public internal(set) var misses = 0
    /// Loads that the origin confirmed with a 304.
    public internal(set) var revalidations = 0
    /// Responses stored.
    public internal(set) var stores = 0
    /// Entries that eviction removed from disk.
    public internal(set) var evictions = 0
    /// Bytes of bodies that did not cross the network.
    public internal(set) var bytesSaved = 0
    /// An estimate of the seconds that hits saved: the mean duration of loads from the network, times the loads answered from
    /// the store, less the time that those took. Counts loads through the loader only.
    public var timeSaved: TimeInterval {
        guard networkLoads > 0 else { return 0 }
        return max(0, networkTime / Double(networkLoads) * Double(storeLoads) - storeTime)
    }
    var networkLoads = 0
    var networkTime: TimeInterval = 0
    var storeLoads = 0
    var storeTime: TimeInterval = 0

    mutating func add(_ other: CacheStatistics) {
        memoryHits += other.memoryHits
        diskHits += other.diskHits
        misses += other.misses
        revalidations += other.revalidations
        stores += other.stores
        evictions += other.evictions
        bytesSaved += other.bytesSaved
        networkLoads += other.networkLoads
        networkTime += other.networkTime
        storeLoads += other.storeLoads
        storeTime += other.storeTime
    }
}

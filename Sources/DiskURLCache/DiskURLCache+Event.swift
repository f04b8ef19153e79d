import Foundation

extension DiskURLCache {
    /// What a cache did, one value for each outcome. See `events()`.
    public enum Event: Sendable {
        /// A load through the loader ended; one for each task.
        case load(LoadReport)
        /// An entry was stored; `bytes` is the length of its body.
        case stored(url: String?, bytes: Int, inMemoryOnly: Bool)
        /// A response was not stored, and why.
        case notStored(url: String?, reason: NotStoredReason)
        /// These `userInfo` keys have values that are no property-list types: they last as long as the memory layer
        /// holds the entry.
        case userInfoKeptInMemory(url: String?, keys: [String])
        /// Balancing removed entries from disk.
        case evicted(entries: Int, bytes: Int)
        /// A record that is damaged was removed; its entry is a miss.
        case removedDamagedRecord
        /// The index was made anew from the records, and why.
        case rebuiltIndex(reason: String)
        /// The disk layer met something that the app or its user can act on. Caching goes on without it.
        case problem(Error)
    }

    /// Why something was not stored. The HTTP reasons are those of RFC 9111 §3.
    public enum NotStoredReason: Sendable, Hashable {
        /// The request has no key: another scheme, a method without a recipe, a streamed body.
        case noKey
        /// `URLCache.StoragePolicy.notAllowed`, or the delegate's `willCacheResponse`, or the admission closure.
        case refused
        /// The body is larger than the share of the capacity that one entry may take.
        case tooLarge(bytes: Int, limit: Int)
        /// The response's or the request's header fields forbid it; the text names the rule.
        case http(String)
        /// The disk did not take writes fast enough, or failed; the text says which.
        case disk(String)
    }

    /// One load through the loader, and why it went the way it did.
    public struct LoadReport: Sendable {
        /// How the answer came about.
        public enum Outcome: Sendable, Hashable {
            /// Fresh, from the store.
            case hit(Layer)
            /// Stale, from the store, on purpose; the text names what allowed it, such as `stale-while-revalidate`.
            case staleHit(Layer, reason: String)
            /// From the store, after the origin confirmed it (304).
            case revalidated(Layer)
            /// From the network; the text says why the store could not answer.
            case miss(reason: String)
            /// From the network, past the cache: a request that is never cached.
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
        /// Whether the answer went into the store; nil when there was nothing new to store.
        public let isStored: Bool?
        /// Why it did not.
        public let notStoredReason: NotStoredReason?
        /// True when another load in flight fetched the answer.
        public let isCollapsed: Bool
        /// The RFC 9211 field value, whether or not it is delivered.
        public let cacheStatus: String
    }

    /// Where a stored answer came from.
    public enum Layer: String, Sendable, Hashable {
        case memory
        case disk
        /// One of ``Configuration/fallbackDirectories``.
        case fallback
    }

    /// Counts since the cache was opened.
    public struct Statistics: Sendable, Hashable {
        /// Lookups answered, by layer, through the loader or the `URLCache` methods.
        public internal(set) var memoryHits = 0
        /// Fallback directories included.
        public internal(set) var diskHits = 0
        public internal(set) var misses = 0
        /// Loads that the origin confirmed with a 304.
        public internal(set) var revalidations = 0
        /// Responses stored. Several for one key within moments are counted by what came of the last.
        public internal(set) var stores = 0
        public internal(set) var evictions = 0
        /// Bytes of bodies that did not cross the network.
        public internal(set) var bytesSaved = 0
        /// Seconds that loads from the store would have taken longer from the network: the mean duration of the loads
        /// that went there, times the hits, less what the hits took. An estimate, of loads through the loader only.
        public var timeSaved: TimeInterval {
            guard networkLoads > 0 else { return 0 }
            return max(0, networkTime / Double(networkLoads) * Double(storeLoads) - storeTime)
        }
        var networkLoads = 0
        var networkTime: TimeInterval = 0
        var storeLoads = 0
        var storeTime: TimeInterval = 0

        mutating func add(_ other: Statistics) {
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
}

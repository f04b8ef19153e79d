import Foundation

extension DiskURLCache {
    /// Something that happened in a cache. See ``DiskURLCache/DiskURLCache/events()``.
    ///
    /// URLs are without user name and password. A URL is nil if the cache does not know it.
    public enum Event: Sendable, Codable {
        /// A load ended: one event for each task of a session with the loader, cached or not, and for each direct call.
        case load(Report)
        /// An entry was stored; `bytes` is the length of its body.
        case stored(url: URL?, bytes: Int, inMemoryOnly: Bool)
        /// A response was not stored, and why; or its `userInfo` is not stored on disk (code `user-info`).
        case notStored(url: URL?, reason: Reason)
        /// Eviction removed entries from disk. `bytes` is the space that they took there.
        case evicted(entries: Int, bytes: Int)
        /// A problem that the app or its user can solve. The cache continues, perhaps in memory only: it removes a
        /// damaged record (``DiskURLCache/DiskURLCache/Error/Code/damaged``), and makes a damaged index again.
        case problem(DiskURLCache.Error)
    }
}

extension DiskURLCache {
    /// One load through the loader or a direct call, and the reason for its outcome.
    public struct Report: Sendable, Codable {
        /// The source of the answer.
        public enum Outcome: Sendable, Hashable, Codable, CustomStringConvertible {
            /// Fresh, from the store.
            case hit(Layer)
            /// From the store, although stale, and the reason that allowed it.
            case staleHit(Layer, Reason)
            /// From the store, after the origin confirmed it (304).
            case revalidated(Layer)
            /// From the network, and why the store could not answer.
            case miss(Reason)
            /// From the network, and why the cache was not used.
            case bypass(Reason)
            /// No answer: the load was cancelled, the network failed and no stored response may replace the error, or a
            /// redirect could not be followed. ``Report/error`` says which.
            case failed
            /// No answer: no request was allowed, and why the store could not answer. Offline,
            /// `returnCacheDataDontLoad`, or `only-if-cached` (RFC 9111 §5.2.1.7).
            case notAllowed(Reason)

            /// The outcome as a phrase, such as `hit (memory)` or `miss: not in the cache`.
            public var description: String {
                switch self {
                case .hit(let layer): "hit (\(layer))"
                case .staleHit(let layer, let reason): "stale (\(layer)): \(reason)"
                case .revalidated(let layer): "revalidated (\(layer))"
                case .miss(let reason): "miss: \(reason)"
                case .bypass(let reason): "bypass: \(reason)"
                case .failed: "failed"
                case .notAllowed(let reason): "failed, no request may be sent: \(reason)"
                }
            }
        }

        /// The URL of the request, without user name and password.
        public package(set) var url: URL?
        /// The method of the request.
        let method: String
        /// The source of the answer, and the reason.
        public let outcome: Outcome
        /// The status delivered; 0 when the load failed.
        public let status: Int
        /// The length of the body delivered, in bytes.
        public let bytes: Int
        /// `Age` of the delivered response, in seconds; nil when it came from the network.
        public let age: Int?
        /// The time from start to end of the load, in seconds.
        public let duration: TimeInterval
        /// When the load began.
        package let startedAt: Date
        /// When the request was sent, the last time after redirects; nil when it was not sent.
        package let requestedAt: Date?
        /// When the head of the network's answer arrived; nil without one. With `requestedAt`, the time to the first
        /// byte, as in `URLSessionTaskMetrics`.
        package let respondedAt: Date?
        /// Whether the answer was stored; nil when there was no new answer to store.
        let isStored: Bool?
        /// Why the answer was not stored; nil when it was, and when there was no new answer to store.
        public let notStoredReason: Reason?
        /// True when another load in flight fetched the answer.
        package let isCollapsed: Bool
        /// The error that the caller got, `URLError.cancelled` for a load that was cancelled; nil for a load with an
        /// answer. An event log keeps only the code of a `URLError`.
        public package(set) var error: (any Swift.Error)?
        /// The RFC 9211 field value, whether or not it is delivered.
        public let cacheStatus: String

        // Not every error can be encoded: the event log keeps the code.
        private enum CodingKeys: CodingKey {
            case url, method, outcome, status, bytes, age, duration, startedAt, requestedAt, respondedAt, isStored,
                notStoredReason
            case isCollapsed, cacheStatus
        }
    }
}

extension DiskURLCache {
    /// Counts since the cache was opened. A value: it does not change after it was read.
    public struct Statistics: Sendable, Hashable {
        /// Lookups that memory answered, through the loader or the `URLCache` methods.
        public internal(set) var memoryHits = 0
        /// Lookups that the disk answered, fallback directories included.
        public internal(set) var diskHits = 0
        /// Lookups without a stored response.
        public internal(set) var misses = 0
        /// Loads that the origin confirmed with a 304.
        public internal(set) var revalidations = 0
        /// Responses stored.
        public internal(set) var stores = 0
        /// Entries that eviction removed from disk.
        public internal(set) var evictions = 0
        /// Events that a reader of ``DiskURLCache/DiskURLCache/events()`` did not get, since more than 1,000 waited for
        /// it.
        public internal(set) var droppedEvents = 0
        /// Bytes of bodies that did not cross the network.
        public internal(set) var bytesSaved = 0
        /// An estimate of the time that hits saved, in seconds: the mean duration of loads from the network, times the
        /// loads answered from the store, less the duration of those. Counts loads through the loader only.
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
            droppedEvents += other.droppedEvents
            networkLoads += other.networkLoads
            networkTime += other.networkTime
            storeLoads += other.storeLoads
            storeTime += other.storeTime
        }
    }
}

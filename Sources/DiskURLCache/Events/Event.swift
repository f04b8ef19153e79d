import Foundation

extension DiskURLCache {
    /// Something that happened in a cache. See ``DiskURLCache/DiskURLCache/events()``.
    ///
    /// URLs are without user name and password. A URL is nil if the cache does not know it.
    @nonexhaustive public enum Event: Sendable, Codable {
        /// A load ended. There is one such event for each task of a session with the loader, cached or not, and for
        /// each direct call; ``answers(for:alwaysRefreshing:session:)`` and
        /// ``data(for:within:orNotOlderThan:session:)`` make up to three loads. A refresh in the background has none.
        case load(Report)
        /// An entry was stored; `bytes` is the length of its body.
        case stored(url: URL?, bytes: Int, inMemoryOnly: Bool)
        /// A response was not stored, for this reason. With the code `user-info` the response is stored, but its
        /// `userInfo` is not written to disk.
        case notStored(url: URL?, reason: Reason)
        /// An answer named groups of stored responses that are no longer valid (`Cache-Group-Invalidation`, RFC 9875),
        /// or told the cache to forget its host (`Clear-Site-Data`), and they were removed, or with
        /// ``Configuration/marksGroupsStale`` marked. The URL is that of the answer.
        case invalidated(url: URL?, reason: Reason)
        /// Eviction removed entries from disk. `bytesOnDisk` is the space that this freed.
        case evicted(entries: Int, bytesOnDisk: Int)
        /// A problem that the app or its user can solve. The cache goes on, perhaps in memory only. It removes a
        /// damaged record (``DiskURLCache/DiskURLCache/Error/Code/damaged``), and rebuilds a damaged index.
        case problem(DiskURLCache.Error)
    }
}

extension DiskURLCache {
    /// What a load did, and why: a load through the loader, or a direct call. See <doc:Answers>.
    public struct Report: Sendable, Codable {
        /// The source of the answer.
        @nonexhaustive public enum Outcome: Sendable, Hashable, Codable, PrintedByDescription {
            /// Fresh, from the store.
            case hit(Layer)
            /// From the store, although stale. The reason says what allowed that.
            case staleHit(Layer, because: Reason)
            /// From the store, after the origin confirmed it (304).
            case revalidated(Layer)
            /// From the network: the stored response had expired, or may not be used unconfirmed, and the origin sent
            /// a new one. The reason says which.
            case expired(Reason)
            /// From the network: no stored response fits, or the request does not accept it. The reason says why.
            case miss(Reason)
            /// From the network. The reason says why the cache was not used.
            case bypass(Reason)
            /// No answer: the load was cancelled, the network failed and no stored response may replace the error, or a
            /// redirect could not be followed. ``Report/error`` says which.
            case failed
            /// No answer: the cache is offline, or the request forbids the network (`returnCacheDataDontLoad`, or
            /// `only-if-cached`, RFC 9111 §5.2.1.7). The reason says why the store could not answer.
            case notAllowed(Reason)

            /// The outcome as a phrase, such as `hit (memory)` or `miss: not in the cache`.
            package var printedText: String {
                switch self {
                case .hit(let layer): "hit (\(layer))"
                case .staleHit(let layer, let reason): "stale (\(layer)): \(reason)"
                case .revalidated(let layer): "revalidated (\(layer))"
                case .expired(let reason): reason == .stale ? reason.description : "expired: \(reason)"
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
        package let method: String
        /// The source of the answer, and the reason.
        public package(set) var outcome: Outcome
        /// The delivered status; 0 if the load failed.
        public let status: Int
        /// The length of the delivered body, in bytes.
        public let bytes: Int
        /// Seconds since the origin made or last confirmed the delivered response (RFC 9111 §4.2.3): after a 304, and
        /// for a response from the network, mostly 0. Nil if there is no response.
        public let age: Int?
        /// The time from start to end of the load, in seconds.
        public let duration: TimeInterval
        /// When the load began.
        package let startedAt: Date
        /// When the request was sent; after redirects, the last one. Nil if no request was sent.
        package let requestedAt: Date?
        /// When the head of the answer arrived from the network; nil if none did. Together with `requestedAt` it gives
        /// the time to the first byte, as in `URLSessionTaskMetrics`.
        package let respondedAt: Date?
        /// Whether the answer was stored; nil when there was no new answer to store.
        package let isStored: Bool?
        /// Why the answer was not stored; nil if it was stored, or if there was no new answer to store.
        public package(set) var notStoredReason: Reason?
        /// Whether the answer was fetched by an identical load, for which this one waited.
        package let isCollapsed: Bool
        /// The error that the caller got; `URLError.cancelled` if the load was cancelled, nil if it had an answer. An
        /// event log keeps only the code of a `URLError`.
        public package(set) var error: (any Swift.Error)?
        /// The report as a value of the `Cache-Status` field (RFC 9211), whether or not the response carries the field.
        public let cacheStatus: String

        // Without `error`, since not every error can be encoded. The event log keeps its code.
        private enum CodingKeys: CodingKey {
            case url, method, outcome, status, bytes, age, duration, startedAt, requestedAt, respondedAt, isStored,
                notStoredReason
            case isCollapsed, cacheStatus
        }
    }
}

extension DiskURLCache {
    /// Counts since the cache was opened, at the moment when they were read; caches of one process with the same folder
    /// count together. See <doc:Answers>.
    public struct Statistics: Sendable, Hashable {
        /// Lookups that memory answered, through the loader or the `URLCache` methods.
        public internal(set) var memoryHits = 0
        /// Lookups that the disk answered, fallback directories included.
        public internal(set) var diskHits = 0
        /// Loads whose answer came from the network, since nothing usable was stored (``Report/Outcome/miss(_:)`` and
        /// ``Report/Outcome/expired(_:)``), and lookups by the `URLCache` methods that found nothing.
        public internal(set) var misses = 0
        /// Loads answered from the store after the origin confirmed the response with a 304.
        public internal(set) var revalidations = 0
        /// Requests that went to the network, whatever became of them: of loads, of refreshes in the background, and of
        /// tasks that are not cached. What Foundation itself sends besides is not seen: the hops of a redirect in a
        /// task that is not cached, and a second try over a new connection. A job that must send nothing compares this
        /// number before and after.
        public internal(set) var requests = 0
        /// Responses stored.
        public internal(set) var stores = 0
        /// Entries that eviction removed from disk.
        public internal(set) var evictions = 0
        /// Events that a reader of ``DiskURLCache/DiskURLCache/events()`` missed, since more than 1,000 were waiting.
        package internal(set) var droppedEvents = 0
        /// The length of all bodies that loads delivered from the network. Not of loads that failed, of redirects that
        /// were followed, and of refreshes in the background.
        public internal(set) var bytesLoaded = 0
        /// The length of all bodies that loads delivered from the store.
        public internal(set) var bytesSaved = 0
        /// The loads by the host of their last request, in canonical spelling: hits, misses, bytes and times; and the
        /// requests by their host. The lookups and stores of the `URLCache` methods are not among them. Of the hosts
        /// and tags after the first 1,000 the sum, under the empty name.
        public internal(set) var byHost: [String: Statistics] = [:]
        /// The same by each of the app's tags (``Options/tags``) that the answer has.
        public internal(set) var byTag: [String: Statistics] = [:]
        /// An estimate of the time that hits saved, in seconds: the mean duration of a load from the network, times the
        /// number of loads that the store answered without a request, minus the duration of those. Only loads of
        /// sessions and direct calls count. If loads run in parallel, they wait for each other, and the estimate is too
        /// high.
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
            requests += other.requests
            stores += other.stores
            evictions += other.evictions
            bytesLoaded = bytesLoaded.addingSaturated(other.bytesLoaded)
            bytesSaved = bytesSaved.addingSaturated(other.bytesSaved)
            droppedEvents += other.droppedEvents
            networkLoads += other.networkLoads
            networkTime += other.networkTime
            storeLoads += other.storeLoads
            storeTime += other.storeTime
            for (host, counts) in other.byHost { byHost[host, default: Statistics()].add(counts) }
            for (tag, counts) in other.byTag { byTag[tag, default: Statistics()].add(counts) }
        }
    }
}

extension DiskURLCache.Report.Outcome {
    /// The outcome of a request that was sent because of the reason, and answered by a new response.
    package static func network(because reason: DiskURLCache.Reason) -> Self {
        reason.forward == "stale" ? .expired(reason) : .miss(reason)
    }
}

// MARK: How they print

extension DiskURLCache.Report: PrintedByDescription {
    /// Method, URL, status, length of the body, and outcome, in one line. User name, password and query of the URL are
    /// not printed.
    package var printedText: String {
        var parts = [status == 0 ? "no answer" : "\(status)", "\(bytes) bytes", outcome.description]
        if let notStoredReason { parts.append("not stored: \(notStoredReason)") }
        if let error {
            let error = error as NSError
            // The error's own text may have the whole URL.
            parts.append("error \(error.domain) \(error.code)")
        }
        return "\(method) \(url?.printed ?? "without a URL"): " + parts.joined(separator: ", ")
    }
}

extension DiskURLCache.Event: PrintedByDescription {
    /// What happened, in one line. User names, passwords and queries of URLs are not printed.
    package var printedText: String {
        switch self {
        case .load(let report): report.description
        case .stored(let url, let bytes, let inMemoryOnly):
            "stored \(url?.printed ?? "a response"), \(bytes) bytes\(inMemoryOnly ? ", in memory only" : "")"
        case .notStored(let url, let reason): "not stored \(url?.printed ?? "a response"): \(reason)"
        case .invalidated(let url, let reason): "invalidated by \(url?.printed ?? "an answer"): \(reason)"
        case .evicted(1, let bytes): "evicted 1 entry, \(bytes) bytes on disk"
        case .evicted(let entries, let bytes): "evicted \(entries) entries, \(bytes) bytes on disk"
        case .problem(let error): "problem: \(error)"
        }
    }
}

extension DiskURLCache.Statistics: PrintedByDescription {
    /// The counts in one line.
    package var printedText: String {
        let seconds = (timeSaved * 1_000).rounded() / 1_000
        return "memory hits: \(memoryHits), disk hits: \(diskHits), misses: \(misses), revalidations: \(revalidations),"
            + " requests: \(requests), stores: \(stores), evictions: \(evictions), bytes loaded: \(bytesLoaded), bytes saved: \(bytesSaved),"
            + " seconds saved: \(seconds)"
    }
}

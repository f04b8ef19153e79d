import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// How a cache is set up: a value that is copied, so that changing it later changes nothing (seed: AUCCache).
    ///
    /// Out-of-range numbers are brought into range rather than trapping: negative capacities count as 0, shares are
    /// clamped to 0...1.
    public struct Configuration: Sendable {
        /// Bytes the memory layer may take. 0 turns it off.
        public var memoryCapacity: Int
        /// Entries the memory layer may hold, beside its bytes (seed: MKNetworkKit).
        public var memoryCountLimit = Int.max
        /// Bytes on disk, counted in allocated blocks, index and folders included. 0 turns the disk layer off.
        public var diskCapacity: Int
        /// The cache's own folder; nil means `DiskURLCache.defaultDirectory`. It is created with mode 0700.
        public var directory: URL?
        /// Takes the place of the built-in memory layer; ``memoryCapacity`` is then the storage's own affair.
        public var memoryStorage: (any EntryStorage)?
        /// Takes the place of the built-in disk layer, its folder, capacity, index and eviction.
        public var diskStorage: (any EntryStorage)?
        /// Read-only folders that are asked when nothing else has an answer: bundled or pre-filled caches, made by a
        /// ``DiskURLCache`` with the same key policy. Nothing in them is changed, removed or copied to disk; what they
        /// hold is served by the same rules as everything else.
        public var fallbackDirectories: [URL] = []
        /// Which requests share an entry.
        public var keyPolicy = KeyPolicy.standard
        /// Further policies by name, for requests and rules to choose (``Treatment/keyPolicy``).
        public var keyPolicies: [String: KeyPolicy] = [:]
        /// Set by ``setRules(_:)``.
        public private(set) var rules: [Rule] = []
        /// The largest storable entry as a share of the layer's capacity. There is no hidden 5 % rule: an entry above
        /// the share is refused, and the event says so.
        public var maximumEntryShare = 0.5
        /// Above the capacity, balancing evicts down to this share of it, so that it need not run at each store.
        public var lowWaterShare = 0.9
        /// Share of the disk capacity within which pinned entries are safe from eviction.
        public var pinnedShare = 0.25
        /// How HTTP caching behaves where the specifications leave a choice.
        public var http = HTTPOptions()
        /// Keeps the plain URL in each record, for inspection and removal by prefix. When off, the disk holds digests
        /// of URLs only; user names and passwords in URLs are never written either way.
        public var keepsURLs = true
        /// Entries not used, or not stored anew, for this long are removed from disk; nil for no limit. Seconds.
        public var maximumAgeSinceAccess: TimeInterval?
        /// See `maximumAgeSinceAccess`, counted from when the entry was stored. Seconds.
        public var maximumAgeSinceStorage: TimeInterval?
        /// What would expire sooner than this stays off the disk (seed: SDURLCache's `minCacheInterval`, 5 minutes
        /// there). Seconds; 0, the default, writes everything that may be reused at all.
        public var minimumDiskLifetime: TimeInterval = 0
        /// Bytes of bodies that may wait to be written. Above half of it a store takes up to 4 ms; beyond it a store waits for
        /// the disk, and is dropped if the disk stalls.
        public var pendingWriteLimit = 32 << 20
        /// How files are protected while the device is locked; Apple platforms but macOS only. With ``FileProtection/complete``
        /// a lookup on a locked device is a miss, and nothing is deleted for it.
        public var fileProtection = FileProtection.untilFirstUnlock
        /// Adds an RFC 9211 `Cache-Status` field with this name as the cache's identifier to responses that the
        /// loader delivers; nil adds none.
        public var cacheStatusName: String?
        /// Asked by the loader before a response is stored; see `Admission`. Called on any thread.
        public var admission: (@Sendable (Admission.Candidate) -> Admission)?
        /// Injected by tests.
        var clock = WallClock.system

        /// Capacities in bytes. The defaults suit an app that shows images: 16 MB in memory, 200 MB on disk.
        public init(memoryCapacity: Int = 16 << 20, diskCapacity: Int = 200 << 20, directory: URL? = nil) {
            self.memoryCapacity = memoryCapacity
            self.diskCapacity = diskCapacity
            self.directory = directory
        }

        /// Sets how chosen requests and responses are treated. See ``Treatment`` for the precedence.
        /// - Throws: a ``RuleError`` for a rule that means nothing, contradicts itself or an earlier one, or names a key
        ///   policy that ``keyPolicies`` does not have.
        public mutating func setRules(_ rules: [Rule]) throws(RuleError) {
            if let problem = RuleCheck.problem(in: rules, keyPolicies: Set(keyPolicies.keys)) { throw problem }
            self.rules = rules
        }
    }

    /// Choices that RFC 9111 and RFC 5861 leave to a cache.
    public struct HTTPOptions: Sendable {
        /// Guesses a lifetime for responses that state none but have a `Last-Modified` (RFC 9111 §4.2.2).
        public var usesHeuristicFreshness = true
        /// The share of the time since `Last-Modified` that counts as fresh; the RFC suggests a tenth.
        public var heuristicFraction = 0.1
        /// No heuristic lifetime is longer. Seconds; a week by default: what has
        /// not changed for years would otherwise be reused for months without a question.
        public var heuristicLimit: TimeInterval = 7 * 24 * 3600
        /// `stale-while-revalidate` (RFC 5861 §3) for responses that do not state it. Seconds.
        public var staleWhileRevalidate: TimeInterval?
        /// `stale-if-error` (RFC 5861 §4) for responses that do not state it. Seconds.
        public var staleIfError: TimeInterval?

        public init() {}
    }

    /// Data protection classes of Apple platforms; without effect elsewhere.
    public enum FileProtection: Sendable, Hashable {
        case none
        case untilFirstUnlock
        case unlessOpen
        case complete
    }

    /// What to do with a response that could be stored.
    public enum Admission: Sendable {
        /// A response about to be stored.
        public struct Candidate: Sendable {
            public let request: URLRequest
            public let response: HTTPURLResponse
            public let data: Data
        }

        case store
        /// Stored as edited: another body, or other header fields in a response made anew.
        case storeEdited(HTTPURLResponse, Data)
        case refuse
    }
}

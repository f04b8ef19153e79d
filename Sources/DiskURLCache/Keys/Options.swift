import Foundation

extension DiskURLCache {
    /// How a response is kept, and for how long. Set for one request (`URLRequest.cacheOptions`) or by a ``Rule``.
    ///
    /// Each property is decided separately: by the request if it sets the property, otherwise by the first matching
    /// rule that does, otherwise by the configuration. The tags of the request and of all matching rules are joined.
    /// See <doc:RulesAndOptions>.
    public struct Options: Sendable, Hashable, Codable {
        /// Where responses are kept.
        @nonexhaustive public enum Storage: Sendable, Hashable, NamedCase {
            /// In memory, and on disk when the response may be reused.
            case memoryAndDisk
            /// Never on disk: for personal data and answers to authenticated requests.
            case memoryOnly
            /// Neither looked up nor stored.
            case never

            package static let allNamed: [Storage] = [.memoryAndDisk, .memoryOnly, .never]
        }

        /// How long responses are fresh, redirects included. It does not apply to responses with `no-store` and to
        /// errors (status 400 and above).
        @nonexhaustive public enum Lifetime: Sendable, Hashable, CodedByForm {
            /// This long if the server sends no lifetime. The cache then does not guess one.
            case whenMissing(TimeSpan)
            /// This long, whatever the server sends.
            case always(TimeSpan)
            /// This long, or as long as the server sends if that is longer.
            case atLeast(TimeSpan)

            package var form: [String: TimeSpan] {
                switch self {
                case .whenMissing(let time): ["whenMissing": time]
                case .always(let time): ["always": time]
                case .atLeast(let time): ["atLeast": time]
                }
            }

            package init?(form: [String: TimeSpan]) {
                switch form.first {
                case ("whenMissing", let time)?: self = .whenMissing(time)
                case ("always", let time)?: self = .always(time)
                case ("atLeast", let time)?: self = .atLeast(time)
                default: return nil
                }
            }
        }

        /// Which stored response may answer when the network or the server fails, or the cache is offline
        /// (``DiskURLCache/DiskURLCache/isOffline``).
        @nonexhaustive public enum Fallback: Sendable, Hashable, NamedCase {
            /// As HTTP allows: none with `no-cache`, no stale one with `must-revalidate`, and instead of an error only
            /// within the time of `stale-if-error`.
            case asServed
            /// Any stored response, however old, **also against the server's word**: `no-cache`, `must-revalidate` and
            /// `max-age=0` are not obeyed then. For content that is better old than not there; not for balances, seats
            /// or permissions. The report says that the server forbids it (``Reason/anyStored``).
            case anyStored

            package static let allNamed: [Fallback] = [.asServed, .anyStored]
        }

        /// Where the response is kept; nil: in memory and on disk.
        public var storage: Storage?
        /// How long the response is fresh; nil: as the server says.
        public var lifetime: Lifetime?
        /// How long a stale response may be served while it is refreshed (RFC 5861 §3), if the server does not say
        /// it.
        public var staleWhileRevalidate: TimeSpan?
        /// How long a stale response may replace an error (RFC 5861 §4), if the server does not say it.
        public var staleIfError: TimeSpan?
        /// Which stored response may replace an error, or answer while the cache is offline; nil: `.asServed`.
        public var fallback: Fallback?
        /// The URL is asked at most once in this time, whatever its answer says: `no-store`, `Vary: *`, an error, a
        /// lifetime that is over. Meanwhile its last answer is given. It counts from the arrival of the answer; if an
        /// error sends a longer `Retry-After`, that counts, for at most a day. What HTTP lets a cache store, such as a
        /// 404 or a 301, is stored for this time, on disk too. What it does not is held in memory, in this process. A
        /// request that never got an answer is sent again, and so is one that reloads (`cachePolicy`, `no-cache`,
        /// `max-age=0`).
        public var minimumInterval: TimeSpan?
        /// An error (status 400 and above) answers at least for this time. A longer lifetime or `Retry-After` of the
        /// server counts, the latter for at most a day. A 404 or 410 is stored, and replaces what was stored. Other
        /// errors are held in memory, in this process, and replace no stored response. Not 401, 407, 412, 416 and 417:
        /// they are about one request.
        public var errorLifetime: TimeSpan?
        /// Whether the answer to an unsafe request (`POST`, `PUT`, `DELETE` …) removes all stored responses of its URL
        /// (RFC 9111 §4.4); nil: true. False for a URL behind which there are many resources, such as an endpoint of
        /// GraphQL: a mutation then removes nothing by itself, and the app removes by tag what has changed. Groups that
        /// the answer names (`Cache-Group-Invalidation`) are removed all the same.
        public var invalidatesURL: Bool?
        /// See ``DiskURLCache/DiskURLCache/Configuration/minimumDiskLifetime``.
        public var minimumDiskLifetime: TimeSpan?
        /// One of ``DiskURLCache/DiskURLCache/Configuration/keyPolicies``. With an unknown name, the response is not
        /// cached.
        public var keyPolicy: String?
        /// Names of groups to which the response belongs, for
        /// ``DiskURLCache/DiskURLCache/removeCachedResponses(tag:group:of:authorization:host:urlPrefix:olderThan:)``.
        /// Tags are written to disk as plain text, so they must not be secrets.
        public var tags: Set<String> = []
        /// Whether the response is evicted last, as long as pinned responses take no more than
        /// ``DiskURLCache/DiskURLCache/Configuration/pinnedFraction`` of the disk capacity.
        public var isPinned: Bool?

        /// Sets the given properties; rules and configuration decide the others.
        public init(
            storage: Storage? = nil, lifetime: Lifetime? = nil, staleWhileRevalidate: TimeSpan? = nil,
            staleIfError: TimeSpan? = nil, fallback: Fallback? = nil, minimumInterval: TimeSpan? = nil,
            errorLifetime: TimeSpan? = nil, invalidatesURL: Bool? = nil, minimumDiskLifetime: TimeSpan? = nil,
            keyPolicy: String? = nil,
            tags: Set<String> = [], isPinned: Bool? = nil
        ) {
            self.storage = storage
            self.lifetime = lifetime
            self.staleWhileRevalidate = staleWhileRevalidate
            self.staleIfError = staleIfError
            self.fallback = fallback
            self.minimumInterval = minimumInterval
            self.errorLifetime = errorLifetime
            self.invalidatesURL = invalidatesURL
            self.minimumDiskLifetime = minimumDiskLifetime
            self.keyPolicy = keyPolicy
            self.tags = tags
            self.isPinned = isPinned
        }

        /// Fills in the properties that are nil.
        mutating func complete(from other: Options) {
            storage = storage ?? other.storage
            lifetime = lifetime ?? other.lifetime
            staleWhileRevalidate = staleWhileRevalidate ?? other.staleWhileRevalidate
            staleIfError = staleIfError ?? other.staleIfError
            fallback = fallback ?? other.fallback
            minimumInterval = minimumInterval ?? other.minimumInterval
            errorLifetime = errorLifetime ?? other.errorLifetime
            invalidatesURL = invalidatesURL ?? other.invalidatesURL
            minimumDiskLifetime = minimumDiskLifetime ?? other.minimumDiskLifetime
            keyPolicy = keyPolicy ?? other.keyPolicy
            isPinned = isPinned ?? other.isPinned
            tags.formUnion(other.tags)
        }
    }
}

extension DiskURLCache.Options: PrintedByDescription {
    /// The properties that are set, in one line.
    package var printedText: String {
        let lifetimeText: String? =
            switch lifetime {
            case .whenMissing(let time)?: "\(time) when missing"
            case .always(let time)?: "always \(time)"
            case .atLeast(let time)?: "at least \(time)"
            case nil: nil
            }
        let set: [(String, String?)] = [
            ("storage", storage?.form), ("lifetime", lifetimeText),
            ("staleWhileRevalidate", staleWhileRevalidate?.description),
            ("staleIfError", staleIfError?.description), ("fallback", fallback?.form),
            ("minimumInterval", minimumInterval?.description), ("errorLifetime", errorLifetime?.description),
            ("invalidatesURL", invalidatesURL.map { "\($0)" }),
            ("minimumDiskLifetime", minimumDiskLifetime?.description), ("keyPolicy", keyPolicy),
            ("tags", tags.isEmpty ? nil : tags.sorted().joined(separator: " ")),
            ("isPinned", isPinned.map { "\($0)" }),
        ]
        let texts = set.compactMap { name, value in value.map { "\(name): \($0)" } }
        return texts.isEmpty ? "no options" : texts.joined(separator: ", ")
    }
}

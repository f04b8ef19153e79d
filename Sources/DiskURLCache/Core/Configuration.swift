import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// The settings of a cache. A cache keeps a copy: changing the value later does not change the cache.
    ///
    /// Out-of-range numbers are brought into range rather than trapping: negative capacities count as 0, shares are
    /// clamped to 0...1.
    public struct Configuration: Sendable {
        /// Bytes the memory layer may take. 0 turns it off.
        public var memoryCapacity: Int
        /// Bytes on disk, counted in allocated blocks, index and folders included. 0 turns the disk layer off: then no
        /// folder is opened, made or emptied.
        public var diskCapacity: Int
        /// The cache's own folder; nil means `DiskURLCache.defaultDirectory`. It is created with mode 0700. Refused
        /// (`openingError`) are a relative path, the root folder, and a folder that belongs to another user or that
        /// other users may write. Two caches of one process with the same folder share their layers: the settings of
        /// the first one hold for both.
        public var directory: URL?
        /// Makes a disk layer of the app's own: see `DiskURLCacheAdapters`.
        package var storageMaker: (any StorageMaker)?
        /// Read-only folders that are searched last: bundled or pre-filled caches, made by a ``DiskURLCache`` with the
        /// same key policy. The cache never changes them. Their responses are served by the same rules as all others.
        /// They belong to the user of the process or to root, and no other user may write them; `openingError` and an
        /// event report a folder that cannot be used.
        public var fallbackDirectories: [URL] = []
        /// False: a private cache, for one user, as a browser's or an app's (RFC 9111 §1). True: a shared cache, for
        /// many users, as a proxy's or a server process's.
        ///
        /// A shared cache does not store responses for one user: responses that say `private`, responses that set a
        /// cookie, and answers to requests with `Authorization` unless they say `public`, `must-revalidate` or
        /// `s-maxage` (RFC 9111 §3.5). `s-maxage` counts before `max-age`, and `proxy-revalidate` and `s-maxage` forbid
        /// stale use (§5.2.2.8, §5.2.2.10). The loader obeys all these rules; `storeCachedResponse(_:for:)` obeys those
        /// about storing. Caches of both kinds may share a folder: neither finds the other's responses.
        ///
        /// Two `Authorization` values never share an entry here either. The response to a request with `Cookie` is
        /// stored only as ``sharesCautiously`` says. Other fields by which an origin knows a user, such as `X-Api-Key`,
        /// must be part of the key policy.
        public var isShared = false
        /// In a shared cache, a request with `Cookie` counts as one with `Authorization` does (RFC 9111 §3.5), so its
        /// response is stored only with `public`, `s-maxage`, `must-revalidate` or `Vary: Cookie`, or when the key
        /// policy includes the field; and a response without a lifetime is never fresh by a guess unless it says
        /// `public`. False turns both off. In a private cache it has no effect.
        public var sharesCautiously = true
        /// Of a shared cache: response fields that govern it before `Cache-Control` and `Expires` (RFC 9213), such as
        /// `CDN-Cache-Control`. The first one with a valid value counts. They are delivered as they came.
        public var targetedFields: [String] = []
        /// Response fields besides `Cache-Groups` (RFC 9875) that name the groups of a response: names between white
        /// space or commas, as older servers send them for a CDN. `["Surrogate-Key", "Cache-Tag", "xkey"]`.
        public var groupFields: [String] = []
        /// Which requests share an entry.
        public var keyPolicy = KeyPolicy.standard
        /// Further policies by name; a request or a rule chooses one (``Options/keyPolicy``).
        public var keyPolicies: [String: KeyPolicy] = [:]
        /// How chosen requests and responses are treated. See ``Options`` for the order of precedence.
        ///
        /// A rule that cannot be (it matches nothing, does nothing, contradicts itself or an earlier one, or names a
        /// key policy that ``keyPolicies`` does not have) is reported by `openingError`, by an event, and in the log. A
        /// rule whose pattern cannot match is applied to no request. If it restricts where responses are stored, it is
        /// applied to every request, to be safe: the report says so, and so does the reason of each load.
        public var rules: [Rule] = []
        /// The largest entry as a share of the layer's capacity. A larger one is not stored, and an event says so.
        public var maximumEntryFraction = 0.5
        /// Pinned entries are evicted last while they take no more than this share of the disk capacity.
        public var pinnedFraction = 0.25
        /// Guesses a lifetime for responses that state none but have a `Last-Modified` (RFC 9111 §4.2.2): a tenth of
        /// the time since then, a week at most.
        public var usesHeuristicFreshness = true
        /// `stale-while-revalidate` (RFC 5861 §3) for responses that do not state it. Seconds. Not for Apple's own
        /// loader: <doc:ApplePlatforms>.
        public var staleWhileRevalidate: TimeInterval?
        /// `stale-if-error` (RFC 5861 §4) for responses that do not state it. Seconds. Not for Apple's own loader:
        /// <doc:ApplePlatforms>.
        public var staleIfError: TimeInterval?
        /// Keeps the plain URL in each record, for inspection and removal by prefix. When false, the disk, or a
        /// `DiskURLCache.EntryStorage`, gets digests of URLs only. User names and passwords in URLs are never written.
        public var keepsURLs = true
        /// Entries that were neither used nor stored again for this long are removed from disk; nil for no limit.
        /// Seconds.
        public var maximumAgeSinceAccess: TimeInterval?
        /// As `maximumAgeSinceAccess`, counted from when the entry was stored. Seconds.
        public var maximumAgeSinceStorage: TimeInterval?
        /// Responses that would expire sooner than this are kept in memory only. Seconds; 0, the default, writes every
        /// response that may be reused.
        public var minimumDiskLifetime: TimeInterval = 0
        /// How files are protected while the device is locked; Apple platforms but macOS only. With `.complete` a
        /// lookup on a locked device is a miss, and no record is deleted for it.
        public var fileProtection = FileProtectionType.completeUntilFirstUserAuthentication
        /// Adds an RFC 9211 `Cache-Status` field with this name as the cache's identifier to responses that the
        /// loader delivers. Nil adds none, except to the 504 for a request with `only-if-cached`: there it says why.
        public var cacheStatusName: String?
        /// What becomes of a response whose body contradicts a digest that it states.
        public var wrongDigest = WrongDigest.accepted
        /// Called by the loader before a response is stored, after the delegate's `willCacheResponse`. Its result is
        /// stored: the response as it arrived, or a response with a changed body, header fields or `userInfo`; nil
        /// stores none. The caller gets the response as it arrived. Called on any thread. Not called for
        /// `storeCachedResponse(_:for:)`.
        public var willCacheResponse: (@Sendable (CachedURLResponse, URLRequest) -> CachedURLResponse?)?

        // Injected by tests.
        var clock = WallClock.system
        var fileSystem: any FileSystem = SystemFiles()
        var passActivity: PassTime.Activity = ExpiringActivity.request
        var platform = Platform.current
        /// For tests that run on Linux as on another platform: Foundation's `URLCache` there writes each response into
        /// its folder, whatever its capacity.
        var superclassDirectory = Platform.superclassDirectory

        /// Capacities in bytes. The defaults suit an app that shows images: 16 MB in memory, 200 MB on disk.
        public init(memoryCapacity: Int = 16 << 20, diskCapacity: Int = 200 << 20, directory: URL? = nil) {
            self.memoryCapacity = memoryCapacity
            self.diskCapacity = diskCapacity
            self.directory = directory
        }

        /// The same settings with numbers in their ranges and a folder.
        var normalized: Self {
            var normal = self
            normal.memoryCapacity = max(0, memoryCapacity)
            normal.diskCapacity = max(0, diskCapacity)
            normal.maximumEntryFraction = min(max(0, maximumEntryFraction), 1)
            normal.directory = directory ?? Self.defaultDirectory
            return normal
        }

        /// See `DiskURLCache.defaultDirectory`.
        static var defaultDirectory: URL {
            let program = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
            let name = program.map { "/\\:".contains($0) ? "_" : $0 }
            return
                cachesFolder
                .appendingPathComponent("DiskURLCache", isDirectory: true)
                .appendingPathComponent(String(name), isDirectory: true)
        }

        static var cachesFolder: URL {
            FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
                ?? URL(fileURLWithPath: NSTemporaryDirectory(), isDirectory: true)
        }

        /// The settings that two caches on one folder share, by name.
        var ofStore: [String: String] {
            [
                "memoryCapacity": "\(memoryCapacity)", "diskCapacity": "\(diskCapacity)",
                "maximumEntryFraction": "\(maximumEntryFraction)",
                "pinnedFraction": "\(pinnedFraction)", "keepsURLs": "\(keepsURLs)",
                "maximumAgeSinceAccess": "\(maximumAgeSinceAccess ?? -1)",
                "maximumAgeSinceStorage": "\(maximumAgeSinceStorage ?? -1)",
                "fileProtection": fileProtection.rawValue,
                "fallbackDirectories": fallbackDirectories.map(\.absoluteString).joined(separator: " "),
            ]
        }

        /// Replaces the system's clock, for tests of an app: the cache judges freshness and age by `now`, and stamps
        /// entries with it.
        /// - Parameter now: called on any thread, several times for each load.
        package mutating func setClock(_ now: @escaping @Sendable () -> Date) {
            clock = WallClock(now: now)
        }
    }
}

extension DiskURLCache.Configuration: PrintedByDescription {
    /// Capacities, folder, and how many rules there are, in one line. A disk layer of the app's own is not printed: it
    /// may hold a key.
    public var description: String {
        let disk = storageMaker == nil ? (directory?.path ?? "the default folder") : "a storage of the app"
        return "\(memoryCapacity) bytes in memory, \(diskCapacity) bytes in \(disk),"
            + " \(isShared ? "shared" : "private"), key: \(keyPolicy), rules: \(rules.count)"
    }
}

import Foundation

extension DiskURLCache {
    /// The settings of a cache. The cache keeps a copy, so changing the value later has no effect. <doc:WhichSetting>
    /// lists what they are for.
    ///
    /// Numbers out of range are brought into range: negative capacities count as 0, shares are limited to 0...1.
    public struct Configuration: Sendable {
        /// The bytes that the memory layer may take. 0 turns it off.
        public var memoryCapacity: Int
        /// How many requests may have their responses in memory, beside the limit in bytes; nil: any number. The
        /// variants of a response (`Vary`) count once.
        public var memoryCountLimit: Int?
        /// The bytes that the cache may take on disk, in whole blocks, including the index and folders. 0 turns the
        /// disk layer off: then no folder is opened, made or emptied.
        public var diskCapacity: Int
        /// The cache's own folder; nil means `DiskURLCache.defaultDirectory`. It is created with mode 0700. A relative
        /// path, the root folder, and a folder that belongs to another user or that other users may write to are not
        /// used; `openingError` says so. Two caches of a process with the same folder share their layers, with the
        /// settings of the one that was made first.
        public var directory: URL?
        /// Makes the app's own disk layer: see `DiskURLCacheAdapters`.
        package var storageMaker: StorageMaker?
        /// Folders that are searched last and never changed, such as a filled cache that ships with the app. They are
        /// made by a ``DiskURLCache`` with the same key policy. Their responses follow the same rules as all others. A
        /// folder must belong to the user of the process or to root, and other users must not be able to write to it;
        /// `openingError` and an event report a folder that cannot be used.
        public var fallbackDirectories: [URL] = []
        /// False: a private cache, for one user, like that of a browser or an app (RFC 9111 §1). True: a shared cache,
        /// for many users, like that of a proxy or a server.
        ///
        /// A shared cache does not store responses for one user: responses that say `private`, responses that set a
        /// cookie, and answers to requests with `Authorization` unless they say `public`, `must-revalidate` or
        /// `s-maxage` (RFC 9111 §3.5). `s-maxage` replaces `max-age`, and `proxy-revalidate` and `s-maxage` forbid
        /// stale use (§5.2.2.8, §5.2.2.10). The loader obeys all these rules; `storeCachedResponse(_:for:)` obeys those
        /// about storing. A private and a shared cache may use the same folder: neither finds the responses of the
        /// other.
        ///
        /// Requests with different `Authorization` never share a response here either. For requests with `Cookie` see
        /// ``sharesCautiously``. If the origin knows users by other fields, such as `X-Api-Key`, include those in the
        /// key policy.
        public var isShared = false
        /// In a shared cache: treats a request with `Cookie` much like one with `Authorization` (RFC 9111 §3.5): its
        /// response is stored only with `public`, `s-maxage` or `Vary: Cookie`, or if the key policy includes the
        /// field; and guesses a lifetime only for responses that say `public`. `must-revalidate` is not enough: many
        /// servers send it without a thought of sharing. False turns both off. It has no effect in a private cache.
        public var sharesCautiously = true
        /// In a shared cache: names of response fields that replace `Cache-Control` and `Expires` (RFC 9213), such as
        /// `CDN-Cache-Control`. The first field with a valid value counts. They are delivered unchanged.
        public var targetedFields: [String] = []
        /// Response fields besides `Cache-Groups` (RFC 9875) that name the groups of a response: names between white
        /// space or commas, as older servers send them for a CDN. `["Surrogate-Key", "Cache-Tag", "xkey"]`.
        public var groupFields: [String] = []
        /// Whether `Cache-Group-Invalidation` (RFC 9875) marks the responses of a group as stale, instead of removing
        /// them: see ``DiskURLCache/DiskURLCache/markStale(for:tag:group:of:authorization:host:urlPrefix:olderThan:)``.
        public var marksGroupsStale = false
        /// Which requests share a response.
        public var keyPolicy = KeyPolicy.standard
        /// Further policies by name; a request or a rule chooses one (``Options/keyPolicy``).
        public var keyPolicies: [String: KeyPolicy] = [:]
        /// Settings for groups of requests or responses. ``Options`` says which setting wins if several apply.
        ///
        /// An invalid rule (it matches nothing, does nothing, contradicts itself or an earlier one, or names a key
        /// policy that ``keyPolicies`` does not have) is reported by `openingError` and in the log. A rule whose
        /// pattern cannot match is applied to no request. If it restricts where responses are stored, it is applied to
        /// every request, to be safe: the report says so. With ``Options/Storage/never`` so does the reason of each
        /// load.
        public var rules: [Rule] = []
        /// The size of the largest response that is stored, as a share of the layer's capacity. A larger response is
        /// not stored, and an event says so.
        public var maximumEntryFraction = 0.5
        /// When the disk is above its capacity, the least recently used responses are removed until it is at this
        /// fraction of it. With a smaller fraction more is removed, and less often.
        public var evictsTo = 0.9
        /// The share of the disk capacity up to which pinned responses are evicted last.
        public var pinnedFraction = 0.25
        /// Which responses are evicted from disk first. False: the least recently used ones. True: size counts as well,
        /// so that a large response is evicted earlier than a small one that was used at the same time, by the
        /// logarithm of its size.
        ///
        /// Choose true if most responses are small and some are large, and each answer from the network costs a wait,
        /// however small it is: then more requests are answered from the cache, and about as many bytes.
        /// `urlcache simulate` computes both for the requests of your program. Memory always evicts the least recently
        /// used responses. If several processes share a folder, the setting of the one that evicts counts.
        public var evictionWeighsSize = false
        /// Whether a lifetime is guessed for responses that state none but have a `Last-Modified` (RFC 9111 §4.2.2): a
        /// tenth of the time since then, at most a week.
        public var usesHeuristicFreshness = true
        /// `stale-while-revalidate` (RFC 5861 §3) for responses that do not state it. Not for Apple's own
        /// loader: <doc:ApplePlatforms>.
        public var staleWhileRevalidate: TimeSpan?
        /// `stale-if-error` (RFC 5861 §4) for responses that do not state it. Not for Apple's own loader:
        /// <doc:ApplePlatforms>.
        public var staleIfError: TimeSpan?
        /// Whether records contain the plain URL, for inspection and removal by prefix. If false, only digests of URLs
        /// are written to disk or given to a `DiskURLCache.EntryStorage`. User names and passwords in URLs are never
        /// written.
        public var keepsURLs = true
        /// How long a response may stay on disk without being used or stored again; nil for no limit. What memory has
        /// answers until memory drops it.
        public var maximumTimeUnused: TimeSpan?
        /// How long after it was stored, or last confirmed by a 304, a response is removed from disk; nil for no
        /// limit. What memory has answers until memory drops it.
        public var maximumTimeStored: TimeSpan?
        /// Responses that expire within this time are kept in memory only. 0, the default, writes every response
        /// that may be reused.
        public var minimumDiskLifetime: TimeSpan = 0
        /// How files are protected while the device is locked, on Apple platforms except macOS. With `.complete`, a
        /// lookup on a locked device is a miss; no record is deleted because of that.
        public var fileProtection = FileProtectionType.completeUntilFirstUserAuthentication
        /// Adds an RFC 9211 `Cache-Status` field with this name as the cache's identifier to responses that the
        /// loader delivers. Nil adds none, except to the 504 for a request with `only-if-cached`: there it says why.
        public var cacheStatusName: String?
        /// What becomes of a response whose body contradicts a digest that it states.
        public var wrongDigest = WrongDigest.accepted
        /// Whether processes that share the folder fetch a response once for all of them: a load that would send a
        /// request first waits for an equal one of another process, at most half of its timeout and 30 seconds, and
        /// then looks up again. The system frees the lock of a process that dies, and one of those that wait sends the
        /// request. Not for refreshes in the background, a storage of the app, and Apple's systems that suspend
        /// processes. Costs three system calls for each request that is sent.
        public var sharesFetches = false
        /// Called by the loader before it stores a response, after the delegate's `willCacheResponse`. Return the
        /// response, perhaps with a changed body, header fields or `userInfo`, or nil to store nothing. The caller of
        /// the load gets the original response. Called on any thread; not called for `storeCachedResponse(_:for:)`.
        public var willCacheResponse: (@Sendable (CachedURLResponse, URLRequest) -> CachedURLResponse?)?

        /// Takes what the library tells developers who do not listen to events: problems of settings and sessions,
        /// each once, as a sentence without anything that could identify a user. Nil: standard error, and
        /// on Apple platforms the unified log. Called on any thread; it must not wait.
        ///
        /// ```swift
        /// settings.log = { logger.warning("\($0)") }
        /// ```
        public var log: (@Sendable (String) -> Void)?

        // Injected by tests.
        var clock = WallClock.system
        var fileSystem: any FileSystem = SystemFiles()
        var passActivity: PassTime.Activity = { ExpiringTime.shared.request($0) }
        var platform = Platform.current
        /// The container of the app, on platforms that have such.
        var container = NSHomeDirectory()
        /// For tests of several caches on one directory in this process: each has a store of its own, as in a process
        /// of its own. Otherwise caches with the same directory share a store.
        var store: TieredStore?
        /// For tests on Linux that imitate other platforms: Foundation's `URLCache` on Linux writes each response into
        /// its folder, whatever its capacity.
        var superclassDirectory = Platform.superclassDirectory

        /// Makes settings with capacities in bytes. The defaults, 16 MB in memory and 200 MB on disk, suit an app that
        /// shows images.
        public init(memoryCapacity: Int = 16 << 20, diskCapacity: Int = 200 << 20, directory: URL? = nil) {
            self.memoryCapacity = memoryCapacity
            self.diskCapacity = diskCapacity
            self.directory = directory
        }

        /// The same settings, with all numbers in range and a folder.
        var normalized: Self {
            var normal = self
            normal.memoryCapacity = max(0, memoryCapacity)
            normal.diskCapacity = max(0, diskCapacity)
            normal.maximumEntryFraction = min(max(0, maximumEntryFraction), 1)
            normal.directory = directory ?? Self.defaultDirectory
            return normal
        }

        /// Whether a layer is on, but smaller than any response: perhaps megabytes were meant.
        var holdsNothing: Bool { (1..<1 << 10).contains(memoryCapacity) || (1..<24 << 10).contains(diskCapacity) }

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
            guard Platform.current == .linux else {
                let folders = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)
                return folders.first ?? FileManager.default.temporaryDirectory
            }
            var home: String?
            if let user = getpwuid(geteuid()), let path = user.pointee.pw_dir { home = String(cString: path) }
            return cachesFolder(by: ProcessInfo.processInfo.environment, home: home)
        }

        /// The user's caches folder on Linux, where the environment names it: the one that systemd gives a service, the
        /// one of the desktop's rules, or `.cache` in the home folder.
        /// - Parameter home: the user's home folder by the password database, for a process without `HOME`.
        static func cachesFolder(by environment: [String: String], home: String?) -> URL {
            // systemd gives several, separated by colons. By the rules a relative path does not count.
            let service = environment["CACHE_DIRECTORY"]?.split(separator: ":").first.map(String.init)
            // A container gives a user whom it does not know the home "/"; Debian gives "/nonexistent" to services.
            let noHomes = ["", "/", "/nonexistent"]
            var paths = [service, environment["XDG_CACHE_HOME"]]
            for case let home? in [environment["HOME"], home] where !noHomes.contains(home) {
                paths.append(home + "/.cache")
            }
            for case let path? in paths where path.hasPrefix("/") {
                return URL(fileURLWithPath: path, isDirectory: true)
            }
            return folderWithoutHome
        }

        /// Where the caches of a user without a home lie. Any user may make a folder of that name, so it is looked at
        /// before it is used (`DiskConfiguration.enclosure`).
        static var folderWithoutHome: URL {
            FileManager.default.temporaryDirectory.appendingPathComponent("user-\(geteuid())", isDirectory: true)
        }

        /// See `DiskConfiguration.enclosure`.
        static func enclosure(of directory: URL) -> String? {
            let path = folderWithoutHome.path
            return directory.path.hasPrefix(path + "/") ? path : nil
        }

        /// The settings that two caches with the same folder have in common, by name.
        var ofStore: [String: String] {
            [
                "memoryCapacity": "\(memoryCapacity)", "diskCapacity": "\(diskCapacity)",
                "memoryCountLimit": memoryCountLimit.map { "\($0)" } ?? "none", "evictsTo": "\(evictsTo)",
                "maximumEntryFraction": "\(maximumEntryFraction)",
                "pinnedFraction": "\(pinnedFraction)", "evictionWeighsSize": "\(evictionWeighsSize)",
                "keepsURLs": "\(keepsURLs)",
                "maximumTimeUnused": "\(maximumTimeUnused?.description ?? "none")",
                "maximumTimeStored": "\(maximumTimeStored?.description ?? "none")",
                "fileProtection": fileProtection.rawValue,
                "fallbackDirectories": fallbackDirectories.map(\.absoluteString).joined(separator: " "),
            ]
        }

        /// Replaces the system's clock, for tests of an app: the cache judges freshness and age by `now`, and stores it
        /// as the time of storing.
        /// - Parameter now: called on any thread, several times for each load.
        package mutating func setClock(_ now: @escaping @Sendable () -> Date) {
            clock = WallClock(now: now)
        }

        /// Replaces the system's files, for tests of an app.
        package mutating func setFileSystem(_ files: any FileSystem) {
            fileSystem = files
        }
    }
}

extension DiskURLCache.Configuration: PrintedByDescription {
    /// Capacities, folder, and how many rules there are, in one line. A disk layer of the app's own is not printed: it
    /// may hold a key.
    package var printedText: String {
        let place = storageMaker == nil ? (directory?.path ?? "the default folder") : "a storage of the app"
        // A folder that is never opened is none of this cache's.
        let disk = storageMaker == nil && diskCapacity <= 0 ? "no disk" : "\(diskCapacity) bytes in \(place)"
        return "\(memoryCapacity) bytes in memory, \(disk),"
            + " \(isShared ? "shared" : "private"), key: \(keyPolicy), rules: \(rules.count)"
    }
}

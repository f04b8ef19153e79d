import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An HTTP cache in memory and on disk behind stock `URLSession`.
///
/// ```swift
/// URLCache.shared = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 200 << 20)
/// ```
///
/// Set before the first use of a session, that line makes `URLSession.shared` cache; ``attach(to:)`` does it for any
/// other session. Every `URLCache` method uses the layers of this cache and can be called from any thread. Opening does
/// not wait for the disk, and neither throws nor traps: if a directory cannot be used, the cache works in memory and
/// says so (``openingError``, ``events()``).
public class DiskURLCache: URLCache, @unchecked Sendable {
    // @unchecked: `URLCache` is declared Sendable by Foundation, and all state below is constant or behind a lock.

    package let configuration: Configuration
    let store: TieredStore
    package var hub: EventHub { store.hub }
    /// Loads in progress, for collapsing and for background refreshes.
    package let loads = LoadTable()
    /// Gives direct loads (``data(for:session:)``) a configuration; made when first needed.
    let directSessionBox = Mutex<URLSession?>(nil)
    /// The part of the configuration that the cache cannot fulfil.
    private let configurationError: DiskURLCache.Error?
    let rulesHaveTags: Bool
    /// The key of a plain request is its URL: nothing in the configuration adds to it. See `RequestKey(plain:_:)`.
    let keysArePlain: Bool
    #if canImport(Darwin)
        private var appLife: AppLifeObserver?
    #endif
    private let offline = Mutex(false)
    /// The superclass's initialiser may set the capacities that it gets: they are not this cache's. Constant after
    /// `init`.
    private let isOpen = Mutex(false)

    /// Opens a cache. Returns at once: the index is read in the background.
    public init(configuration: Configuration) {
        var configuration = configuration
        configuration.memoryCapacity = max(0, configuration.memoryCapacity)
        configuration.diskCapacity = max(0, configuration.diskCapacity)
        configuration.maximumEntryFraction = min(max(0, configuration.maximumEntryFraction), 1)
        let directory = configuration.directory ?? Self.defaultDirectory
        configuration.directory = directory
        self.configuration = configuration

        let foreignURL = ([directory] + configuration.fallbackDirectories).first { !$0.isFileURL }
        var problem = foreignURL.map { DiskURLCache.Error(.notAFileURL, path: $0.printed) }
        if let storage = configuration.storageMaker {
            let isRefused = !configuration.isShared && storage.isForSeveralUsers
            if isRefused { problem = Error(.sharedStorage) }
            store = configuration.makeStore(storage: isRefused ? nil : storage)
        } else if !directory.isFileURL || configuration.diskCapacity == 0 {
            // A cache in memory only uses no folder, and shares no layer with a cache that does.
            store = configuration.makeStore()
        } else {
            let opened = OpenStores.open(directory, settings: configuration.ofStore) {
                configuration.makeStore(directory: directory)
            }
            store = opened.store
            if !opened.differing.isEmpty {
                let names = opened.differing.joined(separator: ", ")
                problem = problem ?? Error(.settingsWithoutEffect, path: directory.path, details: names)
            }
        }
        let wrongRules = RuleCheck.problems(
            in: configuration.rules, keyPolicies: Set(configuration.keyPolicies.keys))
        configurationError = problem ?? RuleCheck.summary(of: wrongRules)
        rulesHaveTags = configuration.rules.contains { !$0.cacheOptions.tags.isEmpty }
        keysArePlain = configuration.rules.isEmpty && configuration.keyPolicy.isPlain && !configuration.isShared
        let platform = configuration.platform
        let superclassCapacity = platform.superclassCapacity(memory: configuration.memoryCapacity)
        #if canImport(Darwin)
            super.init(
                __memoryCapacity: superclassCapacity, diskCapacity: 0, directoryURL: configuration.superclassDirectory)
        #else
            super.init(
                memoryCapacity: superclassCapacity, diskCapacity: 0, diskPath: configuration.superclassDirectory.path)
        #endif
        isOpen.withLock { $0 = true }
        // A path may name a user, so it is not logged.
        if let problem, problem.path.isEmpty { hub.report(once: problem) }
        if let problem, !problem.path.isEmpty { hub.emit(.problem(problem)) }
        for rule in wrongRules { hub.report(once: rule) }
        if platform.attachesLoader { CachingURLProtocol.register() }
        #if canImport(FoundationNetworking)
            if platform.attachesLoader { SharedSession.serve(self) { [weak self] in self?.attach(to: $0) } }
        #endif
        #if canImport(Darwin)
            appLife = AppLifeObserver(
                relieveMemory: { [weak self] in self?.relieveMemoryPressure() },
                flush: { [weak self] in self?.flush() })
        #endif
    }

    /// The settings of the cache, in one line.
    public override var description: String { "DiskURLCache: \(configuration)" }

    /// Opens a cache with the standard configuration.
    ///
    /// On Apple platforms `URLCache` has an initialiser with the first three parameters, which a subclass can neither
    /// override nor declare again: so this one has a fourth parameter.
    ///
    /// - Parameters:
    ///   - memoryCapacity: bytes in memory; a negative number counts as 0.
    ///   - diskCapacity: bytes on disk; a negative number counts as 0.
    ///   - directory: the cache's folder; nil means ``defaultDirectory``.
    ///   - keyPolicy: which requests share an entry.
    public convenience init(
        memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil, keyPolicy: KeyPolicy = .standard
    ) {
        var configuration = Configuration(
            memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory)
        configuration.keyPolicy = keyPolicy
        self.init(configuration: configuration)
    }

    /// The inherited spelling. A relative `diskPath` lies in the user's caches folder, as on Apple platforms; nil and
    /// the empty path mean ``defaultDirectory``.
    public override convenience init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        var directory: URL?
        if let path, !path.isEmpty {
            directory =
                path.hasPrefix("/")
                ? URL(fileURLWithPath: path, isDirectory: true)
                : Self.cachesFolder.appendingPathComponent(path, isDirectory: true)
        }
        self.init(
            configuration: Configuration(
                memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory))
    }

    // MARK: Requests

    /// The stored response for a request, fresh or not; nil without one. A `HEAD` is answered by the response to a
    /// `GET`, without a body. Reads the disk on the caller's thread if memory does not have the response;
    /// ``perform(_:)`` uses a queue of the cache. ``data(for:session:)`` also judges freshness and uses the network.
    public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        if isBySystem, SystemContract.concernsPart(request, status: nil) { return nil }
        let fields = HeaderFields(request)
        let plainKey = keysArePlain ? RequestKey(plain: request, fields) : nil
        // Neither rules nor options concern a plain request.
        let target = plainKey == nil ? target(request) : nil
        guard let ownKey = plainKey ?? target.flatMap({ keyDecision(for: $0).key }) else { return nil }
        var asked = FieldDigests(of: fields)
        let (key, variants) = stored(under: ownKey)
        let variant = variants.first {
            $0.answers(&asked) && !(isBySystem && SystemHead.isSelectedUnseen($0.metadata.varyKey))
        }
        // A body that is damaged, or was replaced meanwhile, is a miss: an older variant is no answer.
        guard let variant, let entry = variant.load() else {
            hub.count(for: key) { $0.misses += 1 }
            return nil
        }
        hub.count(for: key) { $0.countHit(variant.layer, bytes: entry.body.count) }
        if let target { addTags(to: variant.metadata, of: key, for: target) }
        let response = isBySystem ? systemResponse(of: entry, for: request) : entry.cachedURLResponse(for: request)
        return key.isForHead ? response?.withoutBody() : response
    }

    /// Stores a response for a request instead of the one stored before. When this returns, lookups find the response,
    /// and its record on disk is complete: writes a file on the caller's thread. If the disk fails, memory keeps the
    /// response, and an event says so. Freshness does not matter: the app itself wants the response stored. Not stored,
    /// with an event that says why: policy `.notAllowed`, a request without a key, a body above
    /// ``Configuration/maximumEntryFraction``, and a request or response with `no-store`.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        if let reason = insert(cachedResponse, for: request) { refuse(request, reason) }
    }

    /// Removes the stored responses for a request, all variants, from memory and disk before it returns.
    public override func removeCachedResponse(for request: URLRequest) {
        if isBySystem { super.removeCachedResponse(for: request) }
        guard let key = key(for: request) else { return }
        store.remove(key)
        store.removeVariations(of: key.uri)
    }

    /// The stored responses for a key, and the key under which they are: perhaps that of an equivalent URL
    /// (No-Vary-Search), of which the system's loader knows nothing.
    func stored(under key: RequestKey) -> (key: RequestKey, variants: [StoredVariant]) {
        let variants = store.lookup(key).variants()
        guard variants.isEmpty, !isBySystem, let equivalent = store.equivalent(of: key) else { return (key, variants) }
        return equivalent
    }

    /// Whether a response is stored for a request, by the same key as lookups, fresh or not. Reads no body and counts
    /// no hit. May read the disk on the caller's thread.
    public func contains(_ request: URLRequest) -> Bool {
        guard let key = key(for: request) else { return false }
        return store.contains(key) || (!isBySystem && store.equivalent(of: key) != nil)
    }

    // MARK: Tasks

    // A task's request is `currentRequest`: the last one after redirects. Lookups and stores use the same.

    /// The stored response for a task's request; from memory at once, from disk on a queue of the cache.
    ///
    /// On Linux Foundation calls this before each load of a session that has this cache. The loader looks up by itself,
    /// and without the loader (see ``attach(to:)``) Foundation would use any stored response as fresh: so a task that
    /// was resumed gets nil.
    public override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        if isBySystem { return answerSystem(dataTask, completionHandler) }
        let isLoading = dataTask.state != .suspended
        guard let link = SessionLink(dataTask) else { return completionHandler(nil) }
        if link.session.configuration.urlCache === self, !link.hasLoader {
            hub.report(once: DiskURLCache.Error(.loaderMissing, path: dataTask.currentRequest?.url?.withoutQuery ?? ""))
            return completionHandler(nil)
        }
        if isLoading { return completionHandler(link.known) }
        guard let request = dataTask.currentRequest else { return completionHandler(nil) }
        find(link.effectiveRequest(request), completionHandler)
    }

    /// From memory at once, from disk on a queue of the cache. An object that the system accepts may take a while to
    /// make.
    func find(_ request: URLRequest, _ completionHandler: @escaping (CachedURLResponse?) -> Void) {
        guard let key = key(for: request) else { return completionHandler(nil) }
        let isAtHand = store.lookup(key).known?.allSatisfy {
            isBySystem ? $0.entry?.presentedResponse != nil : $0.entry != nil
        }
        if isAtHand == true, isBySystem || !store.mayHaveEquivalent(of: key) {
            return completionHandler(cachedResponse(for: request))
        }
        // The handler is called once, on this queue.
        nonisolated(unsafe) let completionHandler = completionHandler
        LoadDriver.lookupQueue.async { completionHandler(self.cachedResponse(for: request)) }
    }

    /// Stores a response for a task's request, as ``storeCachedResponse(_:for:)-(_,URLRequest)``.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        if let request = request(of: dataTask, answeredBy: cachedResponse.response.url) {
            storeCachedResponse(cachedResponse, for: request)
        } else if let request = dataTask.currentRequest {
            refuse(request, .refusedOfTwoURLs)
        }
    }

    /// Removes the stored responses for a task's request.
    public override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = request(of: dataTask, answeredBy: dataTask.currentRequest?.url) else { return }
        removeCachedResponse(for: request)
    }

    /// The request of a task that a response of this URL answers; nil if it answers a different one.
    func request(of dataTask: URLSessionDataTask, answeredBy url: URL?) -> URLRequest? {
        if isBySystem {
            return SystemContract.request(
                original: dataTask.originalRequest, current: dataTask.currentRequest, answeredBy: url)
        }
        return dataTask.currentRequest.map { SessionLink(dataTask)?.effectiveRequest($0) ?? $0 }
    }

    /// The objects that the superclass keeps. Its initialiser set no space aside on disk.
    func superclassCopy(for request: URLRequest) -> SuperclassCopy {
        SuperclassCopy(
            store: { super.storeCachedResponse($0, for: request) }, find: { super.cachedResponse(for: request) },
            remove: { super.removeCachedResponse(for: request) })
    }

    // MARK: Removal

    /// Empties both layers. No earlier response is served after it, even if the process crashes. Deletes up to about a
    /// thousand files before it returns, in a few milliseconds. The cache's queue deletes the rest; ``flush()`` waits
    /// for that, so call it if the process may end next.
    public override func removeAllCachedResponses() {
        if isBySystem { super.removeAllCachedResponses() }
        store.removeAll()
    }

    /// Removes the responses that were stored at or after a date, as `URLCache` documents. See
    /// ``removeCachedResponses(olderThan:)`` for the other direction.
    public override func removeCachedResponses(since date: Date) {
        store.remove(matching: EntryCriteria(storedAfter: date))
    }

    /// Returns when the disk is within its capacity, and the index, which has the order of use, is saved. Stores and
    /// removals need no flush. Waits for file operations on the caller's thread: not for the main thread of an app in
    /// use, which calls it by ``perform(_:)``.
    public func flush() {
        store.flush()
    }

    // MARK: Bounds

    /// Bytes the memory layer may take; lowering it trims at once. Negative values count as 0.
    public override var memoryCapacity: Int {
        get { store.memory.costLimit }
        set { if isOpen.withLock({ $0 }) { store.memory.costLimit = newValue } }
    }

    /// Bytes the cache may take on disk; lowering it trims, which ``flush()`` waits for. 0 empties the disk layer, and
    /// stores nothing. A cache that was made with 0 has no disk layer, and a `DiskURLCache.EntryStorage` has its
    /// capacity: setting another number then changes nothing.
    public override var diskCapacity: Int {
        get { store.disk?.capacity ?? 0 }
        set { if isOpen.withLock({ $0 }) { store.disk?.capacity = max(0, newValue) } }
    }

    /// Bytes in memory: bodies and an estimate of the objects around them.
    public override var currentMemoryUsage: Int { store.memory.totalCost }

    /// Bytes of the stored entries on disk, in allocated blocks: 0 when nothing is stored. The capacity bounds these
    /// together with index and folders. Waits for the index if the cache was just opened.
    public override var currentDiskUsage: Int { store.disk?.usage ?? 0 }

    // MARK: State

    /// The layer under memory: `.disk`, or a storage of the app by its name (`DiskURLCache.EntryStorage.name`).
    public var diskLayer: Layer { configuration.storageMaker?.name ?? .disk }

    /// The part of the configuration that the cache cannot fulfil: there is no disk layer, and the cache works in
    /// memory; a fallback directory cannot be read; a second cache of this process has the folder open with other
    /// settings; rules cannot be (the text names each one, and there is an event for each). Nil without a problem. Waits for the first look at the folders.
    public var openingError: DiskURLCache.Error? {
        configurationError ?? store.openingError
    }

    /// Counts since the cache was opened. Can be read from any thread.
    public var statistics: Statistics {
        hub.statistics
    }

    /// The events from now on. An event is made only if there is a listener; each caller gets its own stream, which
    /// keeps the newest 1,000 events for a slow reader (``Statistics/droppedEvents`` counts the others). It ends when
    /// the cache and all other caches on its directory are released.
    public func events() -> AsyncStream<Event> {
        hub.stream()
    }

    /// True: no request is sent, and stored responses are served however stale (RFC 9111 §4.2.4). Two kinds are not: a
    /// response with `no-cache`, and a stale one with `must-revalidate` (§5.2.2.2, §5.2.2.4). For these the request
    /// needs the policy `.returnCacheDataDontLoad`, which uses any stored response. A request without a response that
    /// may be served fails with `URLError.notConnectedToInternet`, and the error's failure reason says why. Apple's own
    /// loader does not obey it: <doc:ApplePlatforms>.
    public var isOffline: Bool {
        get { offline.withLock { $0 } }
        set { offline.withLock { $0 = newValue } }
    }

    private func refuse(_ request: URLRequest, _ reason: Reason) {
        hub.emit(.notStored(url: request.url?.removingCredentials, reason: reason))
    }
}

// Dumping the class would print the keys in memory, and `Authorization` is part of a key.
extension DiskURLCache: PrintedByDescription {}

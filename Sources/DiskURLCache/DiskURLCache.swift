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
/// other session. Every `URLCache` method works on the layers here and can be called from any thread. Opening does not
/// wait for the disk, and nothing here throws or traps: a directory that cannot be used leaves a cache in memory that
/// says so (``openingError``, ``events()``).
public class DiskURLCache: URLCache, @unchecked Sendable {
    // @unchecked: `URLCache` is declared Sendable by Foundation, and all state below is constant or behind a lock.

    let configuration: Configuration
    let store: LayeredStore
    let hub = EventHub()
    let sequence = EntrySequence()
    /// Loads that are under way, for collapsing and for background refreshes.
    let loads = LoadTable()
    /// Gives loads that the app asks for directly (``data(for:)``) a configuration; made when first needed.
    private let directSessionBox = Mutex<URLSession?>(nil)
    /// No rule and no recipe: most requests' keys are their URLs.
    let hasPlainKeys: Bool
    private let directoryError: Error?
    #if canImport(Darwin)
        private var appLife: AppLifeObserver?
    #endif
    private let offline = Mutex(false)

    /// Opens a cache. Returns at once: the index is read in the background.
    public init(configuration: Configuration) {
        var configuration = configuration
        configuration.memoryCapacity = max(0, configuration.memoryCapacity)
        configuration.diskCapacity = max(0, configuration.diskCapacity)
        configuration.maximumEntryShare = min(max(0, configuration.maximumEntryShare), 1)
        let directory = configuration.directory ?? Self.defaultDirectory
        configuration.directory = directory
        self.configuration = configuration
        hasPlainKeys = configuration.keyPolicy.isPlain && configuration.rules.isEmpty

        var disk: (any StorageLayer)?
        if let storage = configuration.diskStorage {
            disk = StorageAdapter(storage)
            directoryError = nil
        } else if directory.isFileURL {
            Platform.prepare(directory, for: configuration)
            var settings = DiskStore.Configuration(directory: directory.path, capacity: configuration.diskCapacity)
            settings.lowWaterFraction = min(max(0, configuration.lowWaterShare), 1)
            settings.maximumEntryShare = configuration.maximumEntryShare
            settings.pinnedShare = min(max(0, configuration.pinnedShare), 1)
            settings.pendingByteLimit = max(0, configuration.pendingWriteLimit)
            settings.keepsURLs = configuration.keepsURLs
            settings.maximumAccessAge = configuration.maximumAgeSinceAccess
            settings.maximumStorageAge = configuration.maximumAgeSinceStorage
            let hub = hub
            disk = DiskStore(configuration: settings, clock: configuration.clock) { hub.report($0) }
            directoryError = nil
        } else {
            directoryError = Error(.notAFileURL, path: directory.absoluteString)
        }
        store = LayeredStore(
            // An app's own memory layer stands in place of ours.
            memoryCapacity: configuration.memoryStorage == nil ? configuration.memoryCapacity : 0,
            memoryCountLimit: configuration.memoryCountLimit,
            maximumMemoryShare: configuration.maximumEntryShare,
            memoryStorage: configuration.memoryStorage.map(StorageAdapter.init), disk: disk,
            fallbacks: configuration.fallbackDirectories.filter(\.isFileURL).map { directory in
                // Capacity means nothing to a folder that is never written.
                var settings = DiskStore.Configuration(directory: directory.path, capacity: .max)
                settings.isReadOnly = true
                return DiskStore(configuration: settings, clock: configuration.clock) { _ in }
            }, pendingByteLimit: max(0, configuration.pendingWriteLimit) / 4, hub: hub)
        // The superclass's own storage is never used: see Platform.
        super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: Platform.unusedDiskPath(for: directory))
        CachingURLProtocol.register()
        #if canImport(Darwin)
            appLife = AppLifeObserver(self)
        #endif
    }

    /// Writes what was stored and is not written yet, and gives the directory to whoever opens it next.
    deinit {
        store.close()
    }

    /// Opens a cache with the standard configuration. Capacities in bytes, negative ones count as 0; `directory` nil
    /// means ``defaultDirectory``.
    #if canImport(Darwin)
        public override convenience init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
            self.init(
                configuration: Configuration(
                    memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory))
        }
    #else
        public convenience init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
            self.init(
                configuration: Configuration(
                    memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory))
        }
    #endif

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

    /// The folder of a cache that is given none: in the user's caches folder, one for each program (by its bundle
    /// identifier or process name).
    public static var defaultDirectory: URL {
        let program = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        let name = program.map { "/\\:".contains($0) ? "_" : $0 }
        return
            cachesFolder
            .appendingPathComponent("DiskURLCache", isDirectory: true)
            .appendingPathComponent(String(name), isDirectory: true)
    }

    private static var cachesFolder: URL {
        FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
            ?? URL(fileURLWithPath: NSTemporaryDirectory(), isDirectory: true)
    }

    // MARK: Requests

    /// What is stored for a request, fresh or not; nil when nothing is. `HEAD` is answered from `GET` without a body.
    public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        // What most lookups find; nothing is built on the way but what the caller gets. A URL that is the key of something is
        // in normal form, so that need not be looked at first.
        var asked: (key: RequestKey, answer: LayeredStore.MemoryAnswer)?
        if hasPlainKeys, let url = request.plainURL {
            let key = RequestKey(text: url, uri: nil, isForHead: false)
            let answer = store.answerFromMemory(for: key, request)
            if case .entry(let entry) = answer { return entry.cachedURLResponse(for: request) }
            if case .absent = answer, let entry = store.loneEntryOnDisk(for: key, request) {
                hub.count(for: key) { $0.countHit(.disk, bytes: entry.body.count) }
                return entry.cachedURLResponse(for: request)
            }
            if URLCanonicalizer.isNormal(url) { asked = (key, answer) }
        }
        guard let (key, answer) = asked ?? key(for: request).map({ ($0, store.answerFromMemory(for: $0, request)) })
        else { return nil }
        let variants: [StoredVariant]
        switch answer {
        case .entry(let entry): return present(entry, for: request, key)
        case .nothing: variants = []
        case .absent: variants = store.variants(for: key, inMemory: nil)
        case .incomplete: variants = store.variants(for: key)
        }
        for variant in variants where variant.answers(request) {
            // A variant that turns out damaged is passed over: an older one may still answer.
            guard let entry = variant.load() else { continue }
            hub.count(for: key) { $0.countHit(variant.layer, bytes: entry.body.count) }
            return present(entry, for: request, key)
        }
        hub.count(for: key) { $0.misses += 1 }
        return nil
    }

    private func present(_ entry: StoredEntry, for request: URLRequest, _ key: RequestKey) -> CachedURLResponse? {
        let response = entry.cachedURLResponse(for: request)
        return key.isForHead ? response?.withoutBody() : response
    }

    /// Stores a response for a request, in place of the one stored before; visible to lookups when this returns, which is
    /// before it is on disk (``flush()`` waits for that).
    /// Freshness is not asked: this is the app's own wish. Not stored, with an event that says why: policy
    /// `.notAllowed`, a request without a key, a body above ``Configuration/maximumEntryShare``, and what carries
    /// `no-store`.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        let time = configuration.clock.now()
        let plainKey = plainKey(for: request)
        guard let key = plainKey ?? key(for: request) else { return refuse(request, .noKey) }
        let call = StoreCall(
            key: key, request: request, response: cachedResponse, time: time, sequence: sequence.next(at: time))
        // Most stores are of a plain `GET`, and nobody waits for what comes of them.
        if plainKey != nil, !hub.hasListeners, call.canWait, store.accept(call) { return }
        let contentType =
            configuration.rules.isEmpty ? nil : (cachedResponse.response as? HTTPURLResponse)?.field("Content-Type")
        store.perform(call, treatment: treatment(for: request, contentType: contentType))
    }

    /// Removes what is stored for a request, all its variants; gone from memory and disk when this returns.
    public override func removeCachedResponse(for request: URLRequest) {
        guard let key = key(for: request) else { return }
        store.remove(key)
    }

    /// Whether something is stored for a request, by the same key as lookups (seed: SDURLCache's `isCached`). Reads no
    /// body and counts no hit.
    public func contains(_ request: URLRequest) -> Bool {
        guard let key = key(for: request) else { return false }
        return store.contains(key)
    }

    // MARK: Tasks

    // A task's request is `currentRequest`: what was asked last, after redirects. Lookups and stores use the same.

    /// What is stored for a task's request. Called by Foundation before each load, and by anyone; memory answers at
    /// once, the disk on a queue of its own. A session that has this cache but not the loader (see ``attach(to:)``) gets
    /// nil: Foundation's own loader on Linux would take a stored response for fresh.
    public override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        let link = SessionLink(dataTask)
        if let session = link.session, session.configuration.urlCache === self, !link.hasLoader {
            return completionHandler(nil)
        }
        guard let request = dataTask.currentRequest.map({ link.effectiveRequest($0) }),
            let key = key(for: request), let url = request.url
        else { return completionHandler(nil) }
        let facts = RequestFacts(request)
        let answer: @Sendable ([StoredVariant]) -> CachedURLResponse? = { variants in
            for index in variants.indices where variants[index].answers(facts) {
                guard let entry = variants[index].load() else { continue }
                let findings = LookupResult.Findings(
                    link: link, request: request, facts: facts, key: key, variants: variants.holding(entry, at: index))
                return LookupResult(entry.cachedURLResponse(requestedURL: url), findings: findings)
            }
            return nil
        }
        if let inMemory = store.variantsInMemory(for: key) {
            completionHandler(answer(inMemory))
        } else {
            // The handler is Foundation's or the caller's; it is called once, on this queue.
            nonisolated(unsafe) let completionHandler = completionHandler
            LoadDriver.lookupQueue.async { completionHandler(answer(self.store.variants(for: key))) }
        }
    }

    /// Stores a response for a task's request, as ``storeCachedResponse(_:for:)-(_,URLRequest)``.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        storeCachedResponse(cachedResponse, for: SessionLink(dataTask).effectiveRequest(request))
    }

    /// Removes what is stored for a task's request.
    public override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        removeCachedResponse(for: SessionLink(dataTask).effectiveRequest(request))
    }

    // MARK: Removal

    /// Empties both layers. Returns at once, however many entries there are; nothing older is served after it, even if
    /// the process dies.
    public override func removeAllCachedResponses() {
        store.removeAll()
    }

    /// Removes what was stored at or after a date, as `URLCache` documents. See ``removeCachedResponses(olderThan:)``
    /// for the other direction.
    public override func removeCachedResponses(since date: Date) {
        var criteria = DiskCriteria()
        criteria.storedAfter = date
        store.remove(matching: criteria) { _, metadata in metadata.storedAt >= date }
    }

    /// Removes what was stored before a date.
    public func removeCachedResponses(olderThan date: Date) {
        var criteria = DiskCriteria()
        criteria.storedBefore = date
        store.remove(matching: criteria) { _, metadata in metadata.storedAt < date }
    }

    /// Empties the memory layer; the disk keeps what it has (seed: ZCLURLCache).
    public func removeMemory() {
        store.removeMemory()
    }

    /// Empties the disk layer; the memory keeps what it has (seed: ZCLURLCache).
    public func removeDisk() {
        store.removeDisk()
    }

    /// Returns when all that was stored or removed before the call is on disk, the index included, and the disk is
    /// within its capacity. Waits for file operations: not for the main thread of an app in use.
    public func flush() {
        store.flush()
    }

    // MARK: Bounds

    /// Bytes the memory layer may take; lowering it trims at once. Negative values count as 0.
    public override var memoryCapacity: Int {
        get { store.memoryCapacity }
        set { store.memoryCapacity = max(0, newValue) }
    }

    /// Bytes the cache may take on disk; lowering it trims, which ``flush()`` waits for. 0 stores nothing.
    public override var diskCapacity: Int {
        get { store.disk?.capacity ?? 0 }
        set { store.disk?.capacity = max(0, newValue) }
    }

    /// Bytes in memory: bodies and an estimate of what belongs to them.
    public override var currentMemoryUsage: Int { store.memoryUsage }

    /// Bytes of the stored entries on disk, in allocated blocks: 0 when nothing is stored. The capacity bounds these
    /// together with index and folders. Waits for the index if the cache was just opened.
    public override var currentDiskUsage: Int { store.diskUsage }

    // MARK: Knowing

    /// Why there is no disk layer; nil while there is one, or before the directory was first used.
    public var openingError: Error? {
        directoryError ?? store.disk?.openingError.map(Error.init)
    }

    /// Counts since the cache was opened.
    public var statistics: Statistics {
        store.settleAll()
        var statistics = hub.statistics
        let hits = store.memory.hits
        statistics.memoryHits += hits.count
        statistics.bytesSaved += hits.bytes
        return statistics
    }

    /// The events from now on. An event is made only while somebody listens; each caller gets its own stream, which
    /// keeps the newest 1,000 events for a slow reader.
    public func events() -> AsyncStream<Event> {
        store.settleAll()
        return hub.stream()
    }

    /// True: the network is not asked, and what is stored is served however stale; a request without a stored answer
    /// fails with `URLError.notConnectedToInternet` (RFC 9111 §4.2.4).
    public var isOffline: Bool {
        get { offline.withLock { $0 } }
        set { offline.withLock { $0 = newValue } }
    }

    // MARK: Shared by the methods above and the loader

    var directSession: URLSession {
        directSessionBox.withLock { box in
            if let session = box { return session }
            let configuration = URLSessionConfiguration.default
            configuration.urlCache = nil
            let session = URLSession(configuration: configuration)
            box = session
            return session
        }
    }

    /// Stores an entry, or tells why not; then what was stored before for the key is gone too.
    func insert(_ entry: StoredEntry, for key: RequestKey, onDisk: Bool = true) -> NotStoredReason? {
        let limit = store.largestStorableBody
        guard entry.body.count <= limit else {
            store.remove(key)
            return .tooLarge(bytes: entry.body.count, limit: limit)
        }
        let isMemoryOnly = entry.metadata.isMemoryOnly || !onDisk
        store.store(entry, for: key, onDisk: !isMemoryOnly)
        hub.count { $0.stores += 1 }
        hub.emit(.stored(url: entry.metadata.url, bytes: entry.body.count, inMemoryOnly: isMemoryOnly))
        return nil
    }

    private func refuse(_ request: URLRequest, _ reason: NotStoredReason) {
        hub.emit(.notStored(url: request.url?.withoutCredentials, reason: reason))
    }
}

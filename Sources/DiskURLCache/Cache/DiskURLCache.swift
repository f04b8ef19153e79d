import Foundation

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
///
/// `public`, not `open`: the loads of this library use the layers themselves, so that a method which a subclass
/// overrides would change the calls of the app and of Apple's loader, and no load of this library. Rules, key policies,
/// ``Configuration/willCacheResponse`` and `DiskURLCache.EntryStorage` change what all of them do.
public class DiskURLCache: URLCache, @unchecked Sendable {
    // @unchecked: `URLCache` is declared Sendable by Foundation, and all state below is constant or behind a lock.

    package let core: CacheCore
    /// The session of direct loads (``data(for:fallback:session:)``); made when first needed.
    let directLinkBox = Mutex<SessionLink?>(nil)
    private var appLife: AppLifeObserver?
    /// How often in a row the superclass did not give back what it was given: see `accepted`.
    let superclassFailures = Mutex(0)
    /// False while the superclass's initialiser runs: it may set the capacities that it was given, which are not those
    /// of this cache. True from then on.
    private let isOpen = Mutex(false)

    /// Opens a cache. Returns at once: the index is read in the background.
    public init(configuration: Configuration) {
        core = CacheCore(configuration)
        let platform = configuration.platform
        let superclassCapacity = platform.superclassCapacity(memory: core.configuration.memoryCapacity)
        #if canImport(Darwin)
            super.init(
                __memoryCapacity: superclassCapacity, diskCapacity: 0, directoryURL: configuration.superclassDirectory)
        #else
            super.init(
                memoryCapacity: superclassCapacity, diskCapacity: 0, diskPath: configuration.superclassDirectory.path)
        #endif
        isOpen.withLock { $0 = true }
        if platform.attachesLoader {
            LoadingSystem.serveSharedSession(for: self) { [weak self] configuration in
                let hasLoader = configuration.protocolClasses?.contains(where: CachingURLProtocol.isLoader) == true
                // If another cache of this library was attached before, it keeps the session.
                if !hasLoader || !(configuration.urlCache is DiskURLCache) { self?.attach(to: configuration) }
            }
        }
        if platform.hasAppLife {
            appLife = AppLifeObserver(
                relieveMemory: { [weak self] in self?.relieveMemoryPressure() },
                flush: { [weak self] in self?.flush() })
        }
    }

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
                : Configuration.cachesFolder.appendingPathComponent(path, isDirectory: true)
        }
        self.init(
            configuration: Configuration(
                memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory))
    }

    #if canImport(Darwin)
        /// Objective-C's `new`: a cache with the standard configuration.
        public override convenience init() {
            self.init(configuration: Configuration())
        }

        /// Objective-C's `initWithMemoryCapacity:diskCapacity:directoryURL:`.
        public override convenience init(__memoryCapacity memoryCapacity: Int, diskCapacity: Int, directoryURL: URL?) {
            self.init(
                configuration: Configuration(
                    memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directoryURL))
        }
    #endif

    // MARK: Requests

    /// The stored response for a request, fresh or not; nil without one. A `HEAD` is answered by the response to a
    /// `GET`, without a body. Reads the disk on the caller's thread if memory does not have the response;
    /// ``perform(_:)`` uses a queue of the cache. ``data(for:fallback:session:)`` also judges freshness and uses the
    /// network.
    public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        stored(for: request)?.response
    }

    /// With the entry from which the response was made.
    private func stored(for request: URLRequest) -> (response: CachedURLResponse, entry: StoredEntry)? {
        if core.isBySystem, SystemContract.asksForPart(request) { return nil }
        guard let (entry, isForHead) = core.entry(for: request) else { return nil }
        let response = core.isBySystem ? systemResponse(of: entry, for: request) : entry.cachedURLResponse(for: request)
        return response.map { (isForHead ? $0.withoutBody() : $0, entry) }
    }

    /// Stores a response for a request instead of the one stored before. When this returns, lookups find the response,
    /// and its record on disk is complete: writes a file on the caller's thread. If the disk fails, memory keeps the
    /// response, and an event says so. Freshness does not matter: the app itself wants the response stored. Not stored,
    /// with an event that says why: policy `.notAllowed`, a `HEAD`, a request without a key, a body above
    /// ``Configuration/maximumEntryFraction`` or shorter than its `Content-Length`, a part of a response (206), a
    /// request or response with `no-store`, `Vary: *`, and in a shared cache what is for one user. After a refusal for
    /// what the response says, a 206 apart, those stored before are removed, all variants.
    /// Header fields that are never written, such as `Set-Cookie`, are left out: only the object itself has them, as
    /// long as memory keeps it.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        if core.isBySystem, SystemContract.asksForPart(request) {
            return core.emitNotStored(request, .partialContent)
        }
        core.store(cachedResponse, for: request)
    }

    /// Removes the stored responses for a request, all variants, from memory and disk before it returns. The stored
    /// response to `HEAD` of the same URL is removed, too. Clients that deliver bodies in another form than
    /// `URLSession` store under keys of their own, and have a method of their own for this. All that is stored for a
    /// URL is removed by ``removeCachedResponses(tag:group:of:authorization:host:urlPrefix:olderThan:)``.
    public override func removeCachedResponse(for request: URLRequest) {
        if core.isBySystem { super.removeCachedResponse(for: request) }
        core.remove(request)
    }

    /// Whether a response is stored for a request, by the same key as lookups, fresh or not. Reads no body and counts
    /// no hit. May read the disk on the caller's thread.
    /// - Parameters:
    ///   - request: what would be looked up.
    ///   - layer: where to look; nil for all layers. `.disk` is also a storage of the app, whatever its name.
    public func contains(_ request: URLRequest, in layer: Layer? = nil) -> Bool {
        core.key(for: request).map { core.store.contains($0, in: layer == diskLayer ? .disk : layer) } == true
    }

    // MARK: Tasks

    // A task's request is `currentRequest`: the last one after redirects. Lookups and stores use the same.

    /// The stored response for a task's request; from memory at once, from disk on a queue of the cache.
    ///
    /// On Linux Foundation calls this before each load of a session that has this cache. The loader looks up by itself,
    /// and without the loader (see ``attach(to:)``) Foundation would use any stored response as fresh: so a task that
    /// was resumed gets nothing that is stored.
    public override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        if core.isBySystem { return answerSystem(dataTask, completionHandler) }
        let isLoading = dataTask.state != .suspended
        guard let link = SessionLink(dataTask) else { return completionHandler(nil) }
        if !link.hasLoader, link.session.configuration.urlCache === self {
            let url = core.configuration.keepsURLs ? dataTask.currentRequest?.url?.withoutQuery : nil
            core.hub.report(once: Error(.loaderMissing, path: url ?? ""))
            return completionHandler(nil)
        }
        if isLoading { return completionHandler(link.known) }
        // What the transport of a session stores apart is found by its loads only.
        guard let request = dataTask.currentRequest, link.keyVariant == nil else { return completionHandler(nil) }
        find(link.effectiveRequest(request)) { response, _ in completionHandler(response) }
    }

    /// From memory at once, from disk on a queue of the cache. An object that the system accepts may take a while to
    /// make.
    func find(_ request: URLRequest, _ completionHandler: @escaping (CachedURLResponse?, StoredEntry?) -> Void) {
        guard let key = core.key(for: request) else { return completionHandler(nil, nil) }
        if core.isAtHand(key) {
            let found = stored(for: request)
            return completionHandler(found?.response, found?.entry)
        }
        // The handler is called once, on this queue.
        nonisolated(unsafe) let completionHandler = completionHandler
        CacheCore.lookupQueue.async { [self] in
            let found = stored(for: request)
            let response = found?.response
            completionHandler(
                core.isBySystem ? response.map { accepted($0, for: request, key) } : response, found?.entry)
        }
    }

    /// Stores a response for a task's request, as ``storeCachedResponse(_:for:)-(_,URLRequest)``. For Apple's own
    /// loader it is in memory when this returns, and its file is written by a queue of the cache: ``flush()`` waits for
    /// it.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        if let request = request(of: dataTask, answeredBy: cachedResponse.response.url) {
            guard core.isBySystem else {
                return core.store(cachedResponse, for: request, variant: SessionLink(dataTask)?.keyVariant)
            }
            if SystemContract.asksForPart(request) {
                core.emitNotStored(request, .partialContent)
            } else {
                learn(from: dataTask, storing: cachedResponse)
                let span: Trace.Span = Trace.begin("store")
                core.store(cachedResponse, for: request, by: .systemLoader)
                Trace.end("store", span, "in memory")
            }
        } else if let request = dataTask.currentRequest {
            core.emitNotStored(request, .refusedOfTwoURLs)
        }
    }

    /// Removes the stored responses for a task's request.
    public override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = request(of: dataTask, answeredBy: dataTask.currentRequest?.url) else { return }
        if !core.isBySystem, let variant = SessionLink(dataTask)?.keyVariant {
            return core.remove(Request(request), variant: variant)
        }
        removeCachedResponse(for: request)
    }

    /// The request of a task that a response of this URL answers; nil if it answers a different one.
    func request(of dataTask: URLSessionDataTask, answeredBy url: URL?) -> URLRequest? {
        if core.isBySystem {
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
        if core.isBySystem { super.removeAllCachedResponses() }
        core.store.removeAll()
    }

    /// Removes the responses that were stored at or after a date, as `URLCache` documents. See
    /// ``removeCachedResponses(tag:group:of:authorization:host:urlPrefix:olderThan:)`` for the other direction.
    public override func removeCachedResponses(since date: Date) {
        core.store.remove(matching: EntryCriteria(storedAfter: date))
    }

    /// Returns when the disk is within its capacity, and the index, which has the order of use, is saved. Stores and
    /// removals need no flush. Waits for file operations on the caller's thread: not for the main thread of an app in
    /// use, which calls it by ``perform(_:)``.
    public func flush() {
        core.store.flush()
    }

    // MARK: Bounds

    /// Bytes the memory layer may take; lowering it trims at once. Negative values count as 0.
    public override var memoryCapacity: Int {
        get { core.store.memory.costLimit }
        set { if isOpen.withLock({ $0 }) { core.store.memory.costLimit = newValue } }
    }

    /// Bytes the cache may take on disk; lowering it trims, which ``flush()`` waits for. 0 stores nothing, and empties
    /// the disk layer before it returns, unless another process owns the folder; in a container that apps share, when
    /// the system next grants time. A cache that was made with 0 has no disk layer, and a `DiskURLCache.EntryStorage`
    /// has its capacity: setting another number then changes nothing.
    public override var diskCapacity: Int {
        get { core.store.disk?.capacity ?? 0 }
        set { if isOpen.withLock({ $0 }) { core.store.setDiskCapacity(max(0, newValue)) } }
    }

    /// Bytes in memory: bodies and an estimate of the objects around them.
    public override var currentMemoryUsage: Int { core.store.memory.totalCost }

    /// Bytes of the stored entries on disk, in whole blocks, and at least their length: 0 when nothing is stored. The
    /// capacity bounds these together with index and folders. Waits for the index if the cache was just opened.
    public override var currentDiskUsage: Int { core.store.disk?.usage ?? 0 }

    // MARK: State

    /// The layer under memory: `.disk`, or a storage of the app by its name (`DiskURLCache.EntryStorage.name`).
    public var diskLayer: Layer { core.configuration.storageMaker?.name ?? .disk }

    /// The part of the configuration that the cache cannot fulfil: there is no disk layer, and the cache works in
    /// memory; a fallback directory cannot be read; a second cache of this process has the folder open with other
    /// settings; a capacity is above 0 and holds no response; rules are invalid (the text names each one). Of
    /// several problems it is one; the log (``Configuration/log``) names the other ones, but for folders. Nil without a
    /// problem. Waits for the first look at the folders.
    public var openingError: DiskURLCache.Error? {
        core.openingError
    }

    /// Counts since the cache was opened; caches of one process with the same folder count together. Can be read from
    /// any thread.
    public var statistics: Statistics {
        core.hub.statistics
    }

    /// The events from now on. An event is made only if there is a listener; each caller gets its own stream, which
    /// keeps the newest 1,000 events for a slow reader; the others are lost. It ends when
    /// the cache and all other caches on its directory are released.
    public func events() -> AsyncStream<Event> {
        core.hub.stream()
    }

    /// True: no request is sent, and stored responses are served however stale (RFC 9111 §4.2.4). Not served are a
    /// response with `no-cache`, a stale one with `must-revalidate` (§5.2.2.2, §5.2.2.4), and any to a request that
    /// reloads (`reloadIgnoringLocalCacheData`), or has `no-store`, `If-Match` or `If-Unmodified-Since`. The option
    /// ``Options/Fallback/anyStored`` serves the first two, too. A request without a response that may be served, and
    /// one that is not cached, fails with `URLError.notConnectedToInternet`, and the error's failure reason says why;
    /// of a session on Apple platforms perhaps only that of its underlying error. Apple's own loader does not obey it:
    /// <doc:ApplePlatforms>.
    public var isOffline: Bool {
        get { core.isOffline }
        set { core.isOffline = newValue }
    }

    /// Capacities, folder, how many rules there are, and the counts, in one line without URLs or fields of requests.
    /// Reads no file.
    public override var description: String {
        "DiskURLCache\(isOffline ? ", offline" : ""): \(core.configuration);"
            + " in use: \(currentMemoryUsage) bytes in memory; \(statistics)"
    }
}

extension DiskURLCache: CacheShell {}

// Dumping the class would print the keys in memory, and `Authorization` is part of a key.
extension DiskURLCache: PrintedWithoutProperties {}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The protocol class of the loader: it passes the system's callbacks on to a `LoadDriver` or a `PassThrough`.
///
/// Foundation on Linux calls one instance on one queue at a time, and the state is touched there only. Apple's system
/// may stop an instance on another thread than it started it on, and at the same time: `load` is behind a lock.
class CachingURLProtocol: URLProtocol {
    private let load = Mutex<(driver: LoadDriver?, isStopped: Bool)>((nil, false))
    private var port: ClientPort?
    #if canImport(FoundationNetworking)
        private var passThrough: PassThrough?
    #endif

    /// Puts the class before Foundation's for `URLSession.shared`, if no session was used yet. Done once.
    static func register() {
        _ = registration
    }

    private static let registration: Bool = URLProtocol.registerClass(CachingURLProtocol.self)

    /// Whether a class is this one, or one that `SessionClasses` made.
    static func isLoader(_ candidate: AnyClass) -> Bool {
        candidate is CachingURLProtocol.Type
    }

    override class func canInit(with request: URLRequest) -> Bool {
        #if canImport(FoundationNetworking)
            // The next class then serves the load: the user's own, or Foundation's.
            guard TaskSession.isReadable else { return false }
            let scheme = request.url?.scheme?.lowercased()
            return scheme == "http" || scheme == "https"
        #else
            // The session of a load without a task is not known.
            return false
        #endif
    }

    #if canImport(Darwin)
        /// Apple's system passes the task: tasks that are not cached are left to the system.
        override class func canInit(with task: URLSessionTask) -> Bool {
            guard let link = SessionLink(task, loader: self), let request = task.currentRequest else { return false }
            return LoaderChoice.takes(
                link.effectiveRequest(LoaderChoice.sent(request, original: task.originalRequest)),
                isDataTask: task is URLSessionDataTask && !(task is URLSessionUploadTask), cache: link.cache)
        }
    #endif

    override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        request
    }

    // Foundation calls from several places at once when a task is resumed, suspended and resumed again while it waits
    // for the lookup: a stop may come after the start that followed it. So the task's state says whether the load is
    // suspended.

    override func startLoading() {
        #if canImport(FoundationNetworking)
            // A start may also come after the cancellation that followed it. Foundation has reported that end and
            // forgotten the task by then: it crashes at any further call of the task's client.
            if task?.error != nil { return }
        #endif
        if let port {
            if !isSuspended { port.resume() }
            return
        }
        #if canImport(FoundationNetworking)
            if let passThrough { return passThrough.startLoading() }
        #endif
        guard let task else { return fail() }
        #if canImport(FoundationNetworking)
            let known = (cachedResponse as? KnownTask)?.link ?? SessionLink(task)
        #else
            let known = SessionLink(task, loader: type(of: self))
        #endif
        guard var link = known, let cache = link.cache else { return passOn(task, known?.session) }
        let sent = LoaderChoice.sent(request, original: task.originalRequest)
        let keyed = cache.keyed(DiskURLCache.Request(link.withCookies(link.effectiveRequest(sent))), variant: nil)
        #if canImport(FoundationNetworking)
            if let reason = Self.reasonToBypass(task, keyed.decision) {
                return passOn(task, link.session, cache, reason)
            }
        #endif
        guard let port = ClientPort(self, task: task, link: link) else { return fail() }
        let driver = LoadDriver(cache: cache, request: keyed, transport: link, client: port)
        self.port = port
        let isStopped = load.withLock { load in
            load.driver = driver
            return load.isStopped
        }
        if isStopped { return driver.cancel() }
        if isSuspended { port.pause() }
        #if canImport(Darwin)
            // The client is called from one queue, which need not be the one of this thread.
            LoadDriver.lookupQueue.async { driver.start(onClientQueue: false) }
        #else
            driver.start()
        #endif
    }

    private func fail() {
        client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
    }

    #if canImport(FoundationNetworking)
        /// Nil for a load that the cache serves.
        private static func reasonToBypass(_ task: URLSessionTask, _ key: KeyDecision) -> DiskURLCache.Reason? {
            // The body of an upload from memory is invisible here; a download needs Foundation's own temporary file.
            if task is URLSessionUploadTask { return .upload }
            guard task is URLSessionDataTask else { return .download }
            return key.refusal
        }

        /// - Parameter reason: nil for a load whose session or cache is not known.
        private func passOn(
            _ task: URLSessionTask, _ session: URLSession?, _ cache: (any LoadHost)? = nil,
            _ reason: DiskURLCache.Reason? = nil
        ) {
            passThrough = PassThrough(of: self, task: task, session: session, cache: cache, reason: reason)
            if let passThrough { passThrough.startLoading() } else { fail() }
        }
    #else
        /// `canInit(with:)` took the task, so its session and cache were known.
        private func passOn(_ task: URLSessionTask, _ session: URLSession?) { fail() }
    #endif

    #if canImport(FoundationNetworking)
        /// Nil once the client has got the end. If a cancellation comes at the same time, Foundation
        /// calls the client once more, for a task that it may have forgotten by then, and crashes.
        override var client: (any URLProtocolClient)? {
            get { port?.hasEnded == true || passThrough?.hasEnded == true ? nil : super.client }
            set { super.client = newValue }
        }
    #endif

    /// Apple's system itself delays the calls of a suspended task.
    private var isSuspended: Bool {
        #if canImport(FoundationNetworking)
            task?.state == .suspended
        #else
            false
        #endif
    }

    override func stopLoading() {
        #if canImport(FoundationNetworking)
            // The error says whether Foundation means cancellation or suspension. The task's state does not: a
            // task suspended and resumed in quick succession is running again by now.
            let isCancelled = task?.error != nil
            if let passThrough { return passThrough.stopLoading(isCancelled: isCancelled) }
            if !isCancelled {
                if isSuspended { port?.pause() }
                return
            }
        #endif
        let driver = load.withLock { load in
            load.isStopped = true
            return load.driver
        }
        driver?.cancel()
    }
}

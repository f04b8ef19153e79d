#if canImport(FoundationNetworking)
    import Foundation

    /// The protocol class of the loader: it passes the system's callbacks on to a `LoadDriver` or a `PassThrough`.
    ///
    /// Foundation calls one instance on one queue at a time, and the state is touched there only.
    class CachingURLProtocol: URLProtocol {
        private var driver: LoadDriver?
        private var port: ClientPort?
        private var passThrough: PassThrough?
        /// It was asked to read it: a directory that cannot be used has none.
        private var hasReadSalt = false

        /// See `SessionClasses`. On Linux the task tells its session: see `SessionLink`.
        var loader: CachingURLProtocol.Type { CachingURLProtocol.self }

        /// Registers the class before Foundation's, for `URLSession.shared` if no session was used yet. Done once.
        static func register() {
            _ = registration
        }

        private static let registration: Bool = URLProtocol.registerClass(CachingURLProtocol.self)

        override class func canInit(with request: URLRequest) -> Bool {
            // Otherwise the next class serves the load: the user's own, or Foundation's.
            guard TaskSession.isReadable else { return false }
            let scheme = request.url?.scheme?.lowercased()
            return scheme == "http" || scheme == "https"
        }

        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            request
        }

        // If a task is resumed, suspended and resumed again while it waits for the lookup, Foundation's calls may
        // arrive in the wrong order, the stop after the start that followed it. So the task's state decides whether the
        // load is suspended.

        override func startLoading() {
            // A start may also arrive after the cancellation that followed it. By then Foundation has reported the end
            // and forgotten the task, and would crash at any further call to the client.
            if task?.error != nil { return }
            if let port {
                if !isSuspended { port.resume() }
                return
            }
            if let passThrough { return passThrough.startLoading() }
            guard let task else { return fail() }
            let known = (cachedResponse as? KnownTask)?.link ?? SessionLink(task)
            guard var link = known, let cache = link.cache, link.workQueue != nil else {
                return passOn(task, known?.session)
            }
            let sent = LoaderChoice.sent(request, original: task.originalRequest)
            let request = link.withCookies(DiskURLCache.Request(link.effectiveRequest(sent)))
            if !hasReadSalt, cache.readsSalt(for: request), let queue = link.workQueue {
                return readSalt(of: cache, thenStartOn: queue)
            }
            let keyed = cache.resolve(request, variant: link.keyVariant)
            if let reason = Self.reasonToBypass(task, keyed, link) {
                if cache.allowsRequest(keyed) { return passOn(task, link.session, cache, keyed, reason) }
                if reason == .upload || reason == .download { return refuse(task, link, keyed, reason, in: cache) }
            }
            guard let port = ClientPort(self, task: task, link: link) else { return fail() }
            self.port = port
            if isSuspended { port.pause() }
            let beginning = LoadBeginning(
                keyed, in: cache, streams: port.acceptsPieces, confirmsStorage: port.confirmsStorage)
            driver = beginning.go(over: link, to: port, at: .client)
        }

        /// Seldom, since the salt of a directory is read once: all sessions share this queue, where nobody waits for a
        /// file.
        private func readSalt(of cache: CacheCore, thenStartOn queue: DispatchQueue) {
            hasReadSalt = true
            // Used on `queue` only, where Foundation also starts and stops it.
            nonisolated(unsafe) let own = self
            CacheCore.lookupQueue.async {
                _ = cache.salt?.bytes
                queue.async { own.startLoading() }
            }
        }

        /// An upload or a download that may send no request fails, whatever forbids it: another end of a download needs
        /// a file of Foundation's.
        private func refuse(
            _ task: URLSessionTask, _ link: SessionLink, _ hop: ResolvedRequest, _ reason: DiskURLCache.Reason,
            in cache: CacheCore
        ) {
            guard let port = ClientPort(self, task: task, link: link) else { return fail() }
            self.port = port
            let load = LoadMachine(hop, streams: false, confirmsStorage: false, at: cache.now)
            let error = load.refusal(isOffline: cache.isOffline, because: reason)
            var report = load.report
            report.note(.notAllowed(reason))
            report.end(at: cache.now, error: error)
            report.publish(of: hop, using: nil, in: cache)
            if isSuspended { port.pause() }
            port.perform([.fail(error, report)])
        }

        private func fail() {
            client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
        }

        /// Why the cache does not serve a load; nil if it does.
        private static func reasonToBypass(
            _ task: URLSessionTask, _ request: ResolvedRequest, _ link: SessionLink
        ) -> DiskURLCache.Reason? {
            // The body of an upload cannot be seen here, and a download needs Foundation's own temporary file.
            if task is URLSessionUploadTask { return .upload }
            guard task is URLSessionDataTask else { return .download }
            if link.sendsEveryRequest, !request.request.hasBodyStream { return nil }
            return request.decision.refusal
        }

        /// - Parameters:
        ///   - hop: the request, if the session and its cache are known.
        ///   - reason: why the cache is not used.
        private func passOn(
            _ task: URLSessionTask, _ session: URLSession?, _ cache: CacheCore? = nil, _ hop: ResolvedRequest? = nil,
            _ reason: DiskURLCache.Reason? = nil
        ) {
            passThrough = PassThrough(of: self, task: task, session: session, cache: cache, hop: hop, reason: reason)
            if let passThrough { passThrough.startLoading() } else { fail() }
        }

        /// Nil after the client got the end. If a cancellation comes at the same time, Foundation calls the client once
        /// more, for a task that it may have forgotten by then, and would crash.
        override var client: (any URLProtocolClient)? {
            get { port?.hasEnded == true || passThrough?.hasEnded == true ? nil : super.client }
            set { super.client = newValue }
        }

        private var isSuspended: Bool { task?.state == .suspended }

        deinit {
            if let task { NotedTasks.shared.forget(task) }
        }

        /// With credentials for a 401, Foundation suspends the task and repeats its request with its own loader, which
        /// tells nobody of the answer. So the request counts as successful: rather too much is removed than too little.
        private func invalidateBeforeRepetition() {
            guard let task, (task.response as? HTTPURLResponse)?.statusCode == 401, let link = SessionLink(task),
                let cache = link.cache, let request = task.originalRequest
            else { return }
            let hop = cache.resolve(DiskURLCache.Request(link.effectiveRequest(request)), variant: link.keyVariant)
            let isKeyed = hop.hasKey && Self.reasonToBypass(task, hop, link) == nil
            guard
                let invalidation = Invalidation(
                    method: hop.facts.method, isKeyed: isKeyed, concernsURL: hop.options.invalidatesURL != false,
                    target: request.url, status: 200, fields: HeaderFields(), isShared: cache.configuration.isShared)
            else { return }
            CacheCore.lookupQueue.async { cache.invalidate(invalidation) }
        }

        override func stopLoading() {
            // The error shows whether this is a cancellation or a suspension. The task's state does not: if the task
            // was suspended and resumed quickly, it is running again by now.
            let isCancelled = task?.error != nil
            if !isCancelled { invalidateBeforeRepetition() }
            if let passThrough { return passThrough.stopLoading(isCancelled: isCancelled) }
            if !isCancelled {
                guard isSuspended else { return }
                port?.pause()
                // Its delegate is asked about the store after all data, so loads that wait for it do not wait longer.
                driver?.finishLeading()
                return
            }
            cancelLoad()
        }

        /// Nobody waits for the answer any more.
        func cancelLoad() {
            port?.close()
            driver?.cancel()
        }
    }
#endif

#if canImport(FoundationNetworking)
    import Foundation

    /// A load by Foundation's own protocol class, with the session's own delegate, cookies and timeouts: for uploads,
    /// downloads, streamed bodies and all other tasks that are not cached. This class only looks at the answer: if an
    /// unsafe request succeeds, stored responses become invalid (RFC 9111 §4.4).
    ///
    /// `@unchecked Sendable`: used only on the queue on which Foundation calls protocols.
    final class PassThrough: NSObject, URLProtocolClient, @unchecked Sendable {
        /// Foundation's protocol object. It holds this object as its client, so it is released at the end.
        private var native: URLProtocol?
        private let client: any URLProtocolClient
        private let cache: CacheCore?
        private weak var task: URLSessionTask?
        private let hop: ResolvedRequest?
        private let reason: DiskURLCache.Reason?
        private let startTime: Date
        private var bytes = 0
        /// The response as it arrived; the task's response may have a `Cache-Status` added.
        private var arrived: HTTPURLResponse?
        /// See `ClientPort.hasEnded`.
        private(set) var hasEnded = false
        /// Tells the client of the end, once what the answer changes in the store is done.
        private var ending: ((any URLProtocolClient) -> Void)?
        /// The task was cancelled: Foundation has reported its end, and would crash at a further call.
        private var isCancelled = false
        private var isSent = false

        /// Nil if Foundation has no class for the request.
        init?(
            of outer: URLProtocol, task: URLSessionTask, session: URLSession?, cache: CacheCore?,
            hop: ResolvedRequest?, reason: DiskURLCache.Reason?
        ) {
            // The class that Foundation would use without the loader.
            let classes = NetworkSessions.otherClasses(of: session).lazy.compactMap { $0 as? URLProtocol.Type }
            guard let client = outer.client, let nativeClass = classes.first(where: { $0.canInit(with: outer.request) })
            else { return nil }
            self.client = client
            self.cache = cache
            self.task = task
            self.hop = hop
            self.reason = reason
            startTime = cache?.now ?? Date()
            super.init()
            native = nativeClass.init(task: task, cachedResponse: nil, client: self)
        }

        func startLoading() {
            // The stop may have arrived before the start: see `CachingURLProtocol`.
            guard let native, native.task?.state != .suspended else { return }
            // A task that was suspended goes on with the same request.
            if !isSent { cache?.hub.countRequest(to: hop?.host ?? "") }
            isSent = true
            native.startLoading()
        }

        func stopLoading(isCancelled: Bool) {
            // A task whose answer has failed has an error, too, while its end waits.
            if isCancelled, ending == nil || task?.state == .canceling { self.isCancelled = true }
            guard let native else { return }
            if isCancelled {
                native.stopLoading()
                // Foundation itself reports the end of a cancelled task; there are no more calls here.
                end(of: native, URLError(.cancelled)) { _ in }
            } else if native.task?.state == .suspended {
                native.stopLoading()
            }
            // If the task was resumed again already, Foundation's class would take this call for a cancellation.
        }

        /// Ends the load once, after the answer's changes in the store.
        /// - Parameter tell: tells the client; called on the protocol's queue.
        private func end(
            of native: URLProtocol, _ error: (any Swift.Error)?, _ tell: @escaping (any URLProtocolClient) -> Void
        ) {
            guard self.native != nil, let task = native.task else { return tell(client) }
            self.native = nil
            let response = arrived ?? task.response as? HTTPURLResponse
            guard let cache, let request = task.originalRequest else { return tell(client) }
            let invalidations =
                response.map { self.invalidations(by: $0, request: request, task: task, in: cache) } ?? []
            report(error, response, task, request, in: cache)
            guard !invalidations.isEmpty else { return tell(client) }
            ending = tell
            // All sessions share this queue: nobody waits on it for a file.
            guard let queue = SessionLink(task)?.workQueue else {
                invalidations.forEach(cache.invalidate)
                return told()
            }
            CacheCore.lookupQueue.async { [self] in
                invalidations.forEach(cache.invalidate)
                queue.async { self.told() }
            }
        }

        private func told() {
            let tell = ending
            ending = nil
            if !isCancelled { tell?(client) }
        }

        private func report(
            _ error: (any Swift.Error)?, _ response: HTTPURLResponse?, _ task: URLSessionTask, _ request: URLRequest,
            in cache: CacheCore
        ) {
            guard let reason else { return }
            let status = error == nil ? response?.statusCode : nil
            var report = LoadReport(of: DiskURLCache.Request(request), at: startTime)
            report.note(
                error == nil ? .bypass(reason) : .failed(code: isCancelled ? "cancelled" : "network"),
                status: status ?? 0, forwardStatus: status)
            report.bytes = max(
                bytes, Int(clamping: task.countOfBytesReceived),
                error == nil ? stated(by: response, to: request.httpMethod ?? "GET") : 0)
            report.end(at: cache.now, error: error)
            let url = URLCanonicalizer.canonical(report.request.url)
            report.publish(host: url.map(URLCanonicalizer.host) ?? "", tags: [], in: cache)
        }

        /// The length of the body by its head: Foundation gives the body to the delegate of a data task directly, and
        /// does not count it. A body that came in chunks may have any other length (RFC 9112 §6.3).
        private func stated(by response: HTTPURLResponse?, to method: String) -> Int {
            guard let response, response.value(forHTTPHeaderField: "Transfer-Encoding") == nil else { return 0 }
            let head = ResponseHead(status: response.statusCode, fields: HeaderFields(response))
            return head.bodyLength(to: method) ?? 0
        }

        private func invalidations(
            by response: HTTPURLResponse, request: URLRequest, task: URLSessionTask, in cache: CacheCore
        ) -> [Invalidation] {
            func invalidation(_ request: URLRequest, _ status: Int, _ fields: HeaderFields) -> Invalidation? {
                // The body of an upload is not known, so such a request has no key: whatever a key policy says of its
                // method, it may change something.
                Invalidation(
                    method: request.httpMethod ?? "GET", isKeyed: false,
                    concernsURL: hop?.options(for: fields).invalidatesURL != false, target: request.url,
                    status: status, fields: fields, isShared: cache.configuration.isShared)
            }
            let last = task.currentRequest ?? request
            let answer = invalidation(last, response.statusCode, HeaderFields(response))
            let isFirst = last.url == request.url && last.httpMethod == request.httpMethod
            guard let final = last.url, !isFirst else { return [answer].compactMap { $0 } }
            // Foundation has followed a redirect. Of that answer, to the first request, only where it led is known.
            return [invalidation(request, 303, ["Location": final.absoluteString]), answer].compactMap { $0 }
        }

        // MARK: URLProtocolClient. The native protocol is passed on: Foundation's client keeps its data there.

        func urlProtocol(
            _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
        ) {
            client.urlProtocol(`protocol`, wasRedirectedTo: request, redirectResponse: redirectResponse)
        }

        func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
            client.urlProtocol(`protocol`, cachedResponseIsValid: cachedResponse)
        }

        func urlProtocol(
            _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
        ) {
            arrived = response as? HTTPURLResponse
            client.urlProtocol(`protocol`, didReceive: withCacheStatus(response), cacheStoragePolicy: policy)
        }

        /// A completion handler and a download task get the task's response, which Foundation's class sets at the end:
        /// so the client is told of ours then. The delegate of a data task has got it before.
        private func markTaskResponse(_ protocol: URLProtocol) {
            guard let task = `protocol`.task, let response = task.response as? HTTPURLResponse,
                task is URLSessionDownloadTask || hasCompletionHandlerOnly(task)
            else { return }
            arrived = arrived ?? response
            let marked = withCacheStatus(arrived ?? response)
            guard marked !== response else { return }
            client.urlProtocol(`protocol`, didReceive: marked, cacheStoragePolicy: .notAllowed)
        }

        private func hasCompletionHandlerOnly(_ task: URLSessionTask) -> Bool {
            if case .completionHandler(nil)? = SessionLink(task)?.audience { return true }
            return false
        }

        /// The response with this cache's member of `Cache-Status` (RFC 9211), if the configuration wants it.
        private func withCacheStatus(_ response: URLResponse) -> URLResponse {
            guard let reason, let name = cache?.cacheStatusName, let http = response as? HTTPURLResponse,
                let url = http.url, let request = native?.request
            else { return response }
            var report = LoadReport(of: DiskURLCache.Request(request), at: startTime)
            report.note(.bypass(reason), status: http.statusCode, forwardStatus: http.statusCode)
            var fields = HeaderFields(http)
            if let status = report.deliveredStatus(name: name) { CacheStatus.append(status, to: &fields) }
            return .http(url: url, status: http.statusCode, fields: fields)
        }

        func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
            bytes += data.count
            client.urlProtocol(`protocol`, didLoad: data)
        }

        func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
            if reason != nil, cache?.cacheStatusName != nil { markTaskResponse(`protocol`) }
            end(of: `protocol`, nil) { [self] client in
                let isUnauthorized = (`protocol`.task?.response as? HTTPURLResponse)?.statusCode == 401
                client.urlProtocolDidFinishLoading(`protocol`)
                hasEnded = !isUnauthorized
            }
        }

        func urlProtocol(_ protocol: URLProtocol, didFailWithError error: Swift.Error) {
            end(of: `protocol`, error) { [self] client in
                client.urlProtocol(`protocol`, didFailWithError: error)
                hasEnded = true
            }
        }

        func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
            client.urlProtocol(`protocol`, didReceive: challenge)
        }

        func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
            client.urlProtocol(`protocol`, didCancel: challenge)
        }
    }
#endif

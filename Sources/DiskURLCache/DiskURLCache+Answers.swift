import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Asking the cache directly: memory, disk, network, by the engine that serves URLSession.

extension DiskURLCache {
    /// An answer and where it came from.
    public struct Answer: Sendable {
        public enum Source: Sendable, Hashable {
            /// From the store without asking the origin.
            case stored(Layer)
            /// From the store, after the origin confirmed it.
            case revalidated(Layer)
            case network
        }

        public let data: Data
        public let response: HTTPURLResponse
        public let source: Source
        /// Seconds since the origin made or confirmed the answer, as far as is known; 0 from the network.
        public let age: TimeInterval
        /// Served although no longer fresh, on purpose.
        public let isStale: Bool
        /// All that is known about the load.
        public let report: LoadReport

        init(data: Data, response: HTTPURLResponse, report: LoadReport) {
            self.data = data
            self.response = response
            self.report = report
            age = report.age.map(TimeInterval.init) ?? 0
            switch report.outcome {
            case .hit(let layer):
                source = .stored(layer)
                isStale = false
            case .staleHit(let layer, _):
                source = .stored(layer)
                isStale = true
            case .revalidated(let layer):
                source = .revalidated(layer)
                isStale = false
            case .miss, .bypass, .failed:
                source = .network
                isStale = false
            }
        }
    }

    /// When ``answers(for:refreshing:)`` goes to the network although something is stored.
    public enum Refresh: Sendable {
        /// When what is stored is no longer fresh.
        case whenStale
        /// Always (seed: MKNetworkKit's `alwaysLoad`).
        case always
    }

    /// The answer to a request from memory, disk or network (seed: ZCLURLCache). Honours the request's cache policy and
    /// treatment; a request that cannot be cached goes to the network.
    /// - Throws: what `URLSession` would throw, or `CancellationError`.
    public func data(for request: URLRequest) async throws -> Answer {
        try await DirectLoad.answer(to: request, from: self)
    }

    /// The answer to a `GET` of a URL.
    public func data(from url: URL) async throws -> Answer {
        try await data(for: URLRequest(url: url))
    }

    /// What is stored at once, stale or not, then what the network says (seeds: HBLURLCache, MKNetworkKit).
    ///
    /// Yields one element when nothing is stored, or when what is stored is fresh; else two. Should the network fail
    /// after a stored answer was yielded, the sequence ends with that error.
    public func answers(
        for request: URLRequest, refreshing refresh: Refresh = .whenStale
    ) -> AsyncThrowingStream<Answer, any Swift.Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    var stored = request
                    stored.cachePolicy = .returnCacheDataDontLoad
                    var fresh = request
                    if let answer = try? await data(for: stored) {
                        continuation.yield(answer)
                        guard refresh == .always || isStale(request) else { return continuation.finish() }
                        fresh.cachePolicy = .reloadRevalidatingCacheData
                    }
                    try Task.checkCancellation()
                    continuation.yield(try await data(for: fresh))
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    private func isStale(_ request: URLRequest) -> Bool {
        guard let key = key(for: request) else { return true }
        let requestFacts = RequestFacts(request)
        guard let variant = store.variants(for: key).first(where: { $0.answers(requestFacts) }),
            let response = variant.metadata.http
        else { return true }
        let facts = ReuseFacts(response)
        let freshness = Freshness(
            of: facts, options: cachingOptions(for: request, response: response.fields),
            now: configuration.clock.now())
        return !freshness.isFresh || facts.directives.noCache
    }

    /// What is stored for a request, without blocking the caller's thread; fresh or not, as `cachedResponse(for:)`.
    /// - Throws: `CancellationError` when the task is cancelled before or while the disk is read.
    public func lookup(_ request: URLRequest) async throws -> CachedURLResponse? {
        try Task.checkCancellation()
        let response = await withCheckedContinuation { continuation in
            LoadDriver.lookupQueue.async { [self] in
                continuation.resume(returning: cachedResponse(for: request))
            }
        }
        try Task.checkCancellation()
        return response
    }

    /// What is stored for a request (seed: MKNetworkKit). Setting nil removes it.
    public subscript(request: URLRequest) -> CachedURLResponse? {
        get { cachedResponse(for: request) }
        set {
            if let newValue {
                storeCachedResponse(newValue, for: request)
            } else {
                removeCachedResponse(for: request)
            }
        }
    }

    /// Stores data made by the app, as a 200 response that is fresh for `lifetime` seconds.
    public func store(
        _ data: Data, for request: URLRequest, contentType: String = "application/octet-stream",
        lifetime: TimeInterval
    ) {
        guard let url = request.url,
            let response = URLResponse.http(
                url: url, status: 200,
                fields: [
                    "Content-Type": contentType, "Content-Length": "\(data.count)",
                    "Cache-Control": "max-age=\(Int(clampingSeconds: lifetime))",
                ]) as? HTTPURLResponse
        else { return }
        storeCachedResponse(CachedURLResponse(response: response, data: data), for: request)
    }

    /// Loads what is not stored fresh already, so that it is there when it is needed.
    ///
    /// - Parameters:
    ///   - requests: loaded in this order.
    ///   - maximumConcurrency: requests at a time, at least 1.
    ///   - progress: counts requests as they end; cancelling it, or the Swift task, stops what has not begun.
    /// - Returns: the requests that failed, with their errors.
    @discardableResult
    public func prefetch(
        _ requests: [URLRequest], maximumConcurrency: Int = 4, progress: Progress = Progress(totalUnitCount: 0)
    ) async -> [(request: URLRequest, error: any Swift.Error)] {
        progress.totalUnitCount = Int64(requests.count)
        return await withTaskGroup(of: (URLRequest, (any Swift.Error)?).self) { group in
            var failed: [(request: URLRequest, error: any Swift.Error)] = []
            var waiting = requests[...]
            func startNext() {
                guard !progress.isCancelled, let request = waiting.popFirst() else { return }
                group.addTask { [self] in
                    do {
                        _ = try await data(for: request)
                        return (request, nil)
                    } catch {
                        return (request, error)
                    }
                }
            }
            for _ in 0..<max(1, maximumConcurrency) { startNext() }
            for await (request, error) in group {
                progress.completedUnitCount += 1
                if let error { failed.append((request, error)) }
                startNext()
            }
            return failed + waiting.map { ($0, CancellationError()) }
        }
    }
}

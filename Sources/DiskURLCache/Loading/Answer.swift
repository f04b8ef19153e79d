import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// An answer and its source.
    public struct Answer: Sendable {
        /// The body, decoded.
        public let data: Data
        /// The head: status and header fields.
        public let response: HTTPURLResponse
        /// Whether the response is stale and was used on purpose.
        public var isStale: Bool { load.isStale }
        /// A summary of the load: ``Report/outcome`` names the source of the answer, and the reason,
        /// ``Report/age`` how old it is.
        public var report: Report { load.publicReport(cacheName: cacheName) }

        private let load: LoadReport
        private let cacheName: String?

        init(data: Data, response: HTTPURLResponse, load: LoadReport, cacheName: String?) {
            (self.data, self.response, self.load, self.cacheName) = (data, response, load, cacheName)
        }
    }
}

extension DiskURLCache.Answer {
    /// The answer to a direct load from memory, by the machine of all loads, but without a driver: no step has to wait.
    ///
    /// Nil for all other answers: a response that is only on disk or stale, a redirect, and one that needs the network.
    init?(inMemory variants: [StoredVariant], of request: KeyedRequest, in cache: any LoadHost) {
        let now = cache.now
        let candidates = variants.compactMap(\.candidate)
        guard let first = candidates.first, candidates.count == variants.count else { return nil }
        let options = cache.cachingOptions(for: request.target, response: first.response.fields)
        var machine = LoadMachine(request, streams: false, confirmsStorage: false, at: now)
        var head: HTTPURLResponse?
        var body = Data()
        for action in machine.handle(.found(candidates, options, now: now)) {
            switch action {
            case .deliverReusedHead(let reuse):
                head =
                    candidates[reuse.index].response.deliveredHead(
                        reuse.presentation, age: reuse.freshness.age, to: request.request,
                        cacheStatus: machine.report.deliveredStatus(name: cache.cacheStatusName),
                        madeBy: variants[reuse.index].entry
                    ).response as? HTTPURLResponse
            case .deliverBody(.whole(let data)): body = data
            case .finish: break
            default: return nil
            }
        }
        var load = machine.report
        guard let head, let index = load.usedIndex, let key = request.key else { return nil }
        cache.addTags(to: variants[index].metadata, of: key, for: request.target)
        (load.bytes, load.layer) = (body.count, variants[index].layer)
        load.end(at: cache.now, in: cache)
        self.init(data: body, response: head, load: load, cacheName: cache.cacheStatusName)
    }
}

extension StoredVariant {
    var candidate: Candidate? {
        metadata.http.map {
            Candidate(response: $0, bodyLength: bodyLength, facts: entry?.reuseFacts, body: entry?.body)
        }
    }
}

extension DiskURLCache.Answer: PrintedByDescription {
    /// The request, the status, and the source of the answer, in one line. Header fields and body are not printed.
    public var description: String { report.description }
}

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
        public var isStale: Bool { summary.isStale }
        /// A summary of the load: ``Report/outcome`` names the source of the answer, and the reason,
        /// ``Report/age`` how old it is.
        public var report: Report { summary.loadReport }

        private let summary: LoadSummary

        init(data: Data, response: HTTPURLResponse, summary: LoadSummary) {
            self.data = data
            self.response = response
            self.summary = summary
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
        let options = cache.cachingOptions(for: request.request, response: first.response.fields)
        var machine = LoadMachine(request, settings: .init(streams: false, confirmsStorage: false))
        var summary = LoadSummary(of: request, in: cache, at: now)
        var head: HTTPURLResponse?
        var used: StoredVariant?
        var body = Data()
        for action in machine.handle(.found(candidates, options, now: now)) {
            switch action {
            case .report(let report):
                summary.note(report, of: variants)
                used = report.outcome.index.map { variants[$0] }
            case .deliverReusedHead(let presentation, let stored, let age, let index, let url):
                head =
                    stored.deliveredHead(
                        presentation, age: age, url: url, cacheStatus: summary.cacheStatus,
                        madeBy: variants[index].entry
                    ).response as? HTTPURLResponse
            case .deliverBody(.whole(let data)): body = data
            case .finish: break
            default: return nil
            }
        }
        guard let head, let used, let key = request.key else { return nil }
        cache.addTags(to: used.metadata, of: key, for: request.request)
        summary.load.bytes = body.count
        summary.end(at: cache.now, in: cache.hub)
        self.init(data: body, response: head, summary: summary)
    }
}

extension StoredVariant {
    var candidate: Candidate? {
        metadata.http.map {
            Candidate(response: $0, bodyLength: bodyLength, facts: entry?.reuseFacts, body: entry?.body)
        }
    }
}

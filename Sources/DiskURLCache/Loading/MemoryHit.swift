import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension CacheAnswer {
    /// The answer to a direct question that memory has, fresh and whole: it takes no load, so no driver and no waiting. Decided
    /// as a load decides, told as a load is told.
    ///
    /// Nil for all else, which is a load's: what is only on disk or stale, redirects, parts, conditions of the request.
    init?(freshInMemory request: URLRequest, of variants: [StoredVariant], in cache: any LoadHost) {
        let now = cache.now
        // A method that only the key policy caches is a load's, too.
        guard let url = request.url, request.httpMethod == "GET" else { return nil }
        let candidates = variants.compactMap(\.candidate)
        guard let first = candidates.first, candidates.count == variants.count else { return nil }
        let decision = CacheDecision.decide(
            for: RequestFacts(request), candidates: candidates, policy: ReusePolicy(request.cachePolicy),
            options: cache.cachingOptions(for: request, response: first.response.fields), now: now)
        guard case .useStored(let reuse) = decision, reuse.basis == .fresh, reuse.presentation == .whole,
            let entry = variants[reuse.index].entry, !(300...399).contains(candidates[reuse.index].response.status)
        else { return nil }
        let stored = candidates[reuse.index].response
        let report = LoadMachine.Report(reuse, of: stored)
        let cacheStatus = cache.cacheStatusName.map { report.cacheStatus(name: $0, isStored: false) }
        guard
            let head = stored.deliveredHead(
                .whole, age: reuse.age, url: url, cacheStatus: cacheStatus, madeBy: entry
            ).response as? HTTPURLResponse
        else { return nil }
        let layer = variants[reuse.index].layer
        let duration = cache.now.timeIntervalSince(now)
        let load = LoadFacts(url: url, method: "GET", bytes: entry.body.count, duration: duration, startedAt: now)
        self.init(
            data: entry.body, response: head,
            summary: LoadSummary(report: report, load: load, layer: layer, cacheName: cache.cacheStatusName))
        cache.hub.count(report.outcome, bytes: entry.body.count, duration: duration) { _ in layer }
        if let key = cache.key(for: request) {
            cache.addTags(to: variants[reuse.index].metadata, of: key, for: request)
        }
        if cache.hub.hasListeners { cache.hub.emit(.load(self.report)) }
    }
}

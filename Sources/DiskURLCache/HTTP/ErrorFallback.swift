import Foundation

/// May a stale response answer a request that failed (RFC 5861 §4)?
enum ErrorFallback {
    case reuse(Reuse)
    /// Why the error is delivered.
    case refused(DiskURLCache.Reason)

    var reuse: Reuse? { if case .reuse(let reuse) = self { reuse } else { nil } }
}

extension RequestDecider {
    /// After a network failure or a 5xx.
    func errorFallback() -> ErrorFallback {
        // A request that wants the origin's current answer gets the origin's error.
        if policy != .useProtocol { return .refused(.cachePolicy) }
        if directives.noCache { return .refused(.requestDirective) }
        if directives.noStore { return .refused(.requestNoStore) }
        if Preconditions.areForOrigin(in: request) { return .refused(.precondition) }
        var digests = FieldDigests(of: request.fields)
        guard let index = firstMatch(&digests, where: { $0.status != 206 }) else { return .refused(.notInCache) }
        let candidate = candidates[index]
        // A stored error is no better than the error that arrived.
        if StatusCode.isServerTrouble(candidate.response.status) { return .refused(.storedError) }
        let facts = candidate.reuseFacts.governed(by: options)
        if facts.directives.noCache { return .refused(.noCache) }
        if facts.directives.mustRevalidate(inSharedCache: options.isShared) { return .refused(.mustRevalidate) }
        switch Presentation.fit(of: candidate, to: request) {
        case .unanswerable(let reason): return .refused(reason)
        case .presentation(let presentation):
            let freshness = Freshness(of: facts, options: options, now: now)
            // Either of response and request permits the reuse, so the longer window holds. One of 0 seconds allows no
            // reuse, and one of N seconds ends when the response has been stale for N.
            let window = [facts.staleIfError(options), directives.staleIfError].compactMap { $0 }.max() ?? 0
            guard window > 0 else { return .refused(.noStaleIfError) }
            guard freshness.staleness < window else { return .refused(.staleIfErrorOver) }
            return .reuse(
                Reuse(
                    index: index, allowance: freshness.isFresh ? nil : .staleIfError, freshness: freshness,
                    presentation: presentation))
        }
    }
}

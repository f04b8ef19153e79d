import Foundation

/// May a stale response answer a request that failed (RFC 5861 §4)?
package enum ErrorFallback {
    case reuse(Reuse)
    /// Why the error is delivered.
    case refused(DiskURLCache.Reason)

    var reuse: Reuse? { if case .reuse(let reuse) = self { reuse } else { nil } }
}

extension RequestDecider {
    /// After a network failure or a 5xx.
    package func errorFallback() -> ErrorFallback {
        // A request that wants the origin's current answer gets the origin's error.
        if policy != .useProtocol { return .refused(.cachePolicy) }
        if directives.noCache { return .refused(.requestDirective) }
        if directives.noStore { return .refused(.requestNoStore) }
        if Preconditions.areForOrigin(in: request) { return .refused(.precondition) }
        var digests = FieldDigests(of: request.fields)
        guard let variant = request.firstMatch(in: variants, &digests, where: { $0.status != 206 }) else {
            return .refused(.notInCache)
        }
        // A stored error is no better than the error that arrived.
        if StatusCode.isServerTrouble(variant.response.status) { return .refused(.storedError) }
        let facts = variant.reuseFacts.governed(by: options)
        let freshness = Freshness(of: facts, options: options, now: now)
        let prohibition = prohibition(of: facts, freshness)
        if let prohibition, !options.acceptsAnyStored { return .refused(prohibition) }
        switch Presentation.fit(of: variant.response, length: variant.bodyLength, to: request) {
        case .unanswerable(let reason): return .refused(reason)
        case .presentation(let presentation):
            let allowance = prohibition.map { .anyStored(against: $0) } ?? DiskURLCache.Reason.staleIfError
            return .reuse(
                Reuse(
                    variant: variant, allowance: prohibition == nil && freshness.isFresh ? nil : allowance,
                    freshness: freshness, presentation: presentation))
        }
    }

    /// Why HTTP does not let the response replace an error.
    private func prohibition(of facts: ReuseFacts, _ freshness: Freshness) -> DiskURLCache.Reason? {
        if facts.directives.noCache { return .noCache }
        if facts.directives.mustRevalidate(inSharedCache: options.isShared) { return .mustRevalidate }
        // Either of response and request permits the reuse, so the longer window holds. One of 0 seconds allows no
        // reuse, and one of N seconds ends when the response has been stale for N.
        let window = [facts.staleIfError(options), directives.staleIfError].compactMap { $0 }.max() ?? 0
        guard window > 0 else { return .noStaleIfError }
        return freshness.staleness < window ? nil : .staleIfErrorOver
    }
}

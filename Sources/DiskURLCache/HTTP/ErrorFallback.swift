import Foundation

/// May a stale response stand in for an error (RFC 5861 §4)?
enum ErrorFallback {
    /// The reuse of the selected candidate after a network failure or a 5xx; nil when the error is to be delivered.
    static func reuse(
        for request: RequestFacts, candidates: [Candidate], policy: ReusePolicy, options: CachingOptions, now: Date
    ) -> Reuse? {
        // A request that asks for the origin's own answer gets the origin's error.
        let asked = request.directives
        guard policy == .useProtocol, !asked.noCache, !asked.noStore,
            !Preconditions.areForOrigin(in: request),
            let index = candidates.indices.first(where: {
                candidates[$0].response.status != 206 && candidates[$0].response.answers(request)
            })
        else { return nil }
        let candidate = candidates[index]
        // A stored error is no better than the error that arrived.
        guard !StatusCode.isServerTrouble(candidate.response.status) else { return nil }
        let facts = candidate.reuseFacts
        let said = facts.directives
        guard !said.noCache, !said.mustRevalidate(inSharedCache: options.isShared),
            case .presentation(let presentation) = Presentation.fit(of: candidate, to: request)
        else { return nil }
        let freshness = Freshness(of: facts, options: options, now: now)
        // A window of 0 seconds is none, and one of N seconds ends when the response has been stale for N.
        guard let window = window(said: said, asked: asked, options: options), window > 0,
            freshness.staleness < window
        else { return nil }
        return Reuse(
            index: index, basis: freshness.isFresh ? .fresh : .stale(.staleIfError), age: freshness.age,
            lifetime: freshness.lifetime, presentation: presentation)
    }

    /// The seconds after which the stale response may no longer stand in. The response's own `stale-if-error` counts
    /// before the option's. The request may carry one too: either permits the reuse, so the longer one holds.
    private static func window(said: ResponseDirectives, asked: RequestDirectives, options: CachingOptions) -> Int64? {
        let origin = said.staleIfError ?? options.defaultStaleIfError
        switch (origin, asked.staleIfError) {
        case (let origin?, let client?): return max(origin, client)
        case (let origin, let client): return origin ?? client
        }
    }
}

import Foundation

/// May a stale response stand in for an error (RFC 5861 §4)?
enum ErrorFallback {
    /// The reuse of the selected candidate after a network failure or a 500, 502, 503 or 504; nil where the error is to be
    /// delivered.
    static func reuse(
        for request: RequestFacts, candidates: [Candidate], policy: ReusePolicy, options: CachingOptions, now: Date
    ) -> Reuse? {
        // Who asked for an answer of the origin gets the origin's error.
        let asked = RequestDirectives(request.fields)
        guard policy == .useProtocol, !asked.noCache, !asked.noStore,
            !Preconditions.areForOrigin(in: request),
            let index = candidates.indices.first(where: {
                candidates[$0].response.status != 206 && candidates[$0].response.vary.matches(request.fields)
            })
        else { return nil }
        let candidate = candidates[index]
        // An error that is stored is no better than the one that came.
        guard !StatusCode.isServerTrouble(candidate.response.status) else { return nil }
        let facts = candidate.reuseFacts
        let said = facts.directives
        guard !said.noCache, !said.mustRevalidate,
            case .presentation(let presentation) = Presentation.fit(of: candidate, to: request)
        else { return nil }
        let freshness = Freshness(of: facts, options: options, now: now)
        guard let window = bound(said: said, asked: asked, options: options), freshness.staleness <= window else {
            return nil
        }
        return Reuse(
            index: index, basis: freshness.isFresh ? .fresh : .stale(.staleIfError), age: freshness.age,
            lifetime: freshness.lifetime, presentation: presentation)
    }

    /// The response's word counts before the option; the request may give one too, and the longer of both holds, as either
    /// permits the reuse.
    private static func bound(said: ResponseDirectives, asked: RequestDirectives, options: CachingOptions) -> Int? {
        let origin = said.staleIfError ?? options.defaultStaleIfError
        switch (origin, asked.staleIfError) {
        case (let origin?, let client?): return max(origin, client)
        case (let origin, let client): return origin ?? client
        }
    }
}

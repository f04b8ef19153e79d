import Foundation

/// Decides about one request (RFC 9111 §4), from the stored responses and the client's wishes.
struct RequestDecider {
    let request: RequestFacts
    /// All responses stored for the key of the request, the most recent first, whatever method they answered.
    let candidates: [Candidate]
    let policy: ReusePolicy
    let options: CachingOptions
    let now: Date

    var directives: RequestDirectives { request.directives }

    func decision() -> CacheDecision {
        guard options.isCacheable(request.method) else { return network(.methodNotCached) }
        if policy == .reloadIgnoring { return network(.cachePolicy) }
        if directives.noStore, !acceptsAnyAge { return network(.requestNoStore) }
        if Preconditions.areForOrigin(in: request) { return network(.precondition) }
        var digests = FieldDigests(of: request.fields)
        if let index = firstMatch(&digests, where: { $0.status != 206 }) { return whole(index) }
        let index = firstMatch(&digests) { _ in true }
        if request.isRetrieval, let index { return part(index) }
        // The validators of the other variants are offered.
        if index == nil, candidates.contains(where: { $0.response.answers(method: request.method) }) {
            return validation(of: nil, because: .variantNotInCache)
        }
        return network(.notInCache)
    }

    func firstMatch(_ digests: inout FieldDigests, where condition: (StoredResponse) -> Bool) -> Int? {
        // To keep the digests of one comparison would cost more than the comparison.
        if candidates.count == 1 {
            return condition(candidates[0].response) && candidates[0].response.answers(request) ? 0 : nil
        }
        return candidates.firstIndex { condition($0.response) && $0.response.answers(request, &digests) }
    }

    /// `returnCacheDataElseLoad` and `returnCacheDataDontLoad` take a stored response, however stale.
    var acceptsAnyAge: Bool { policy == .elseLoad || policy == .dontLoad }

    private func whole(_ index: Int) -> CacheDecision {
        let candidate = candidates[index]
        switch Presentation.fit(of: candidate, to: request) {
        case .unanswerable(let reason):
            return network(reason)
        case .presentation(let presentation):
            let verdict = verdict(on: candidate)
            switch verdict.outcome {
            case .reuse(let allowance):
                return .useStored(reuse(index, allowance, verdict.freshness, presentation))
            case .ask(let reason):
                return validation(of: index, because: reason)
            }
        }
    }

    /// A stored 206 can answer a request for a range that it holds, or be completed by requesting the rest.
    private func part(_ index: Int) -> CacheDecision {
        let candidate = candidates[index]
        guard let held = PartialContent.held(by: candidate),
            ["If-None-Match", "If-Modified-Since", "If-Range"].allSatisfy({ request.wish($0) == nil })
        else { return network(.rangeNotHeld) }
        let verdict = verdict(on: candidate)
        switch request.wish("Range").map(RangeRequest.init) {
        case .single(let range):
            guard let wanted = range.resolved(total: held.total), held.range.lowerBound <= wanted.lowerBound,
                wanted.upperBound <= held.range.upperBound
            else { return network(.rangeNotHeld) }
            guard case .reuse(let allowance) = verdict.outcome else { return network(.stale) }
            let start = held.range.lowerBound
            let bytes = wanted.lowerBound - start..<wanted.upperBound - start
            return .useStored(
                reuse(
                    index, allowance, verdict.freshness, .range(bytes, first: wanted.lowerBound, total: held.total)))
        case .other:
            return network(.unsupportedRange)
        case .malformed, nil:
            guard mayUseNetwork, policy != .revalidate, !directives.noCache,
                let completion = PartialContent.completion(
                    of: candidate, index: index, isFresh: verdict.freshness.isFresh)
            else { return network(.rangeNotHeld) }
            return .revalidate(completion)
        }
    }

    /// The reuse of a candidate that the origin has just confirmed; nil if it cannot answer the request.
    func reuse(of index: Int) -> Reuse? {
        guard case .presentation(let presentation) = Presentation.fit(of: candidates[index], to: request) else {
            return nil
        }
        return reuse(index, nil, verdict(on: candidates[index]).freshness, presentation)
    }

    private func reuse(
        _ index: Int, _ allowance: DiskURLCache.Reason?, _ freshness: Freshness, _ presentation: Presentation
    ) -> Reuse {
        var background: Revalidation?
        if allowance == .staleWhileRevalidate, mayUseNetwork {
            background =
                Revalidation.conditional(
                    for: request.unconditional, candidates: candidates, selected: index, reason: .stale)
                ?? Revalidation(index: index, fields: HeaderFields(), reason: .stale)
        }
        return Reuse(
            index: index, allowance: allowance, freshness: freshness, presentation: presentation,
            backgroundRevalidation: background)
    }

    private func validation(of index: Int?, because reason: DiskURLCache.Reason) -> CacheDecision {
        guard mayUseNetwork,
            var revalidation = Revalidation.conditional(
                for: request, candidates: candidates, selected: index, reason: reason)
        else { return network(reason) }
        for field in endToEndFields.fields { revalidation.fields.append(field.name, field.value) }
        return .revalidate(revalidation)
    }

    private func network(_ reason: DiskURLCache.Reason) -> CacheDecision {
        mayUseNetwork ? .fetch(reason, fields: endToEndFields) : .unsatisfiable(reason)
    }

    var mayUseNetwork: Bool {
        !options.isOffline && policy != .dontLoad && !directives.onlyIfCached
    }

    /// Fields that make other caches on the way reload as well; browsers send the same. If the client set
    /// `Cache-Control` itself, none are added.
    private var endToEndFields: HeaderFields {
        guard request.wish("Cache-Control") == nil else { return HeaderFields() }
        switch policy {
        case .reloadIgnoring: return ["Cache-Control": "no-cache", "Pragma": "no-cache"]
        case .revalidate: return ["Cache-Control": "max-age=0"]
        case .useProtocol, .elseLoad, .dontLoad: return HeaderFields()
        }
    }
}

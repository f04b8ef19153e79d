import Foundation

extension RequestFacts {
    /// The stored response by which a `RequestDecider` decides: a whole one before a part. Nil if none answers.
    func selected(from variants: [StoredVariant]) -> StoredVariant? {
        var digests = FieldDigests(of: fields)
        if let whole = firstMatch(in: variants, &digests, where: { $0.status != 206 }) { return whole }
        return firstMatch(in: variants, &digests) { _ in true }
    }

    func firstMatch(
        in variants: [StoredVariant], _ digests: inout FieldDigests, where condition: (StoredResponse) -> Bool
    ) -> StoredVariant? {
        // To keep the digests of one comparison would cost more than the comparison.
        if variants.count == 1 {
            let variant = variants[0]
            return condition(variant.response) && variant.response.answers(self) ? variant : nil
        }
        return variants.first { condition($0.response) && $0.response.answers(self, &digests) }
    }
}

/// Decides about one request (RFC 9111 §4), from the stored responses and the client's wishes.
package struct RequestDecider {
    let request: RequestFacts
    /// All HTTP responses stored for the key of the request, the most recent first, whatever method they answered.
    let variants: [StoredVariant]
    let policy: ReusePolicy
    let options: CachingOptions
    let now: Date

    package init(
        request: RequestFacts, variants: [StoredVariant], policy: ReusePolicy, options: CachingOptions, now: Date
    ) {
        self.request = request
        self.variants = variants
        self.policy = policy
        self.options = options
        self.now = now
    }

    var directives: RequestDirectives { request.directives }

    package func decision() -> CacheDecision {
        guard options.isCacheable(request.method) else { return network(.methodNotCached) }
        if policy == .reloadIgnoring { return network(.cachePolicy) }
        if directives.noStore, !acceptsAnyAge { return network(.requestNoStore) }
        if Preconditions.areForOrigin(in: request) { return network(.precondition) }
        let selected = request.selected(from: variants)
        if let selected {
            if selected.response.status != 206 { return whole(selected) }
            if request.isRetrieval { return part(selected) }
        }
        // The validators of the other variants are offered.
        if selected == nil, variants.contains(where: { $0.response.answers(method: request.method) }) {
            return validation(of: nil, because: .variantNotInCache)
        }
        return network(.notInCache)
    }

    /// `returnCacheDataElseLoad` and `returnCacheDataDontLoad` take a stored response, however stale.
    var acceptsAnyAge: Bool { policy == .elseLoad || policy == .dontLoad }

    private func whole(_ variant: StoredVariant) -> CacheDecision {
        switch Presentation.fit(of: variant.response, length: variant.bodyLength, to: request) {
        case .unanswerable(let reason):
            return network(reason)
        case .presentation(let presentation):
            let verdict = verdict(on: variant)
            switch verdict.outcome {
            case .reuse(let allowance):
                return .useStored(reuse(variant, allowance, verdict.freshness, presentation))
            case .ask(let reason):
                return validation(of: variant, because: reason)
            }
        }
    }

    /// A stored 206 can answer a request for a range that it holds. For the whole, all of it is asked for.
    private func part(_ variant: StoredVariant) -> CacheDecision {
        guard let held = PartialContent.held(by: variant),
            ["If-None-Match", "If-Modified-Since", "If-Range"].allSatisfy({ request.wish($0) == nil })
        else { return network(.rangeNotHeld) }
        switch request.wish("Range").map(RangeRequest.init) {
        case .single(let range):
            guard let wanted = range.resolved(total: held.total), held.range.lowerBound <= wanted.lowerBound,
                wanted.upperBound <= held.range.upperBound
            else { return network(.rangeNotHeld) }
            let verdict = verdict(on: variant)
            // A refresh in the background would ask for the whole.
            guard case .reuse(let allowance) = verdict.outcome,
                allowance != .staleWhileRevalidate || !mayUseNetwork
            else { return network(.stale) }
            let start = held.range.lowerBound
            let bytes = wanted.lowerBound - start..<wanted.upperBound - start
            return .useStored(
                reuse(
                    variant, allowance, verdict.freshness, .range(bytes, first: wanted.lowerBound, total: held.total)))
        case .other:
            return network(.unsupportedRange)
        case .malformed, nil:
            return network(.rangeNotHeld)
        }
    }

    /// The reuse of a variant that the origin has just confirmed; nil if it cannot answer the request.
    func reuse(of variant: StoredVariant) -> Reuse? {
        let fit = Presentation.fit(of: variant.response, length: variant.bodyLength, to: request)
        guard case .presentation(let presentation) = fit else { return nil }
        return reuse(variant, nil, verdict(on: variant).freshness, presentation)
    }

    private func reuse(
        _ variant: StoredVariant, _ allowance: DiskURLCache.Reason?, _ freshness: Freshness,
        _ presentation: Presentation
    ) -> Reuse {
        var background: Revalidation?
        if allowance == .staleWhileRevalidate, mayUseNetwork {
            background =
                Revalidation.conditional(
                    for: request.unconditional, variants: variants, selected: variant, reason: .stale)
                ?? Revalidation(variant: variant, fields: HeaderFields(), reason: .stale)
        }
        return Reuse(
            variant: variant, allowance: allowance, freshness: freshness, presentation: presentation,
            backgroundRevalidation: background)
    }

    private func validation(of variant: StoredVariant?, because reason: DiskURLCache.Reason) -> CacheDecision {
        guard mayUseNetwork,
            var revalidation = Revalidation.conditional(
                for: request, variants: variants, selected: variant, reason: reason)
        else { return network(reason) }
        for field in endToEndFields.fields { revalidation.fields.append(field.name, field.value) }
        return .revalidate(revalidation)
    }

    private func network(_ reason: DiskURLCache.Reason) -> CacheDecision {
        mayUseNetwork ? .fetch(reason, fields: endToEndFields) : .unsatisfiable(reason)
    }

    package var mayUseNetwork: Bool { !options.isOffline && directives.allowNetwork(policy) }

    /// Fields that make other caches on the way reload as well; browsers send the same. What the client set itself
    /// stays as it is: with its own `Cache-Control` none are added.
    private var endToEndFields: HeaderFields {
        guard request.wish("Cache-Control") == nil else { return HeaderFields() }
        switch policy {
        case .reloadIgnoring:
            return request.wish("Pragma") == nil
                ? ["Cache-Control": "no-cache", "Pragma": "no-cache"] : ["Cache-Control": "no-cache"]
        case .revalidate: return ["Cache-Control": "max-age=0"]
        case .useProtocol, .elseLoad, .dontLoad: return HeaderFields()
        }
    }
}

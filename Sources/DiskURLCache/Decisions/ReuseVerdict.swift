import Foundation

/// May the selected response be reused without a validation (RFC 9111 §4, last list; §4.2.4; §5.2.1)?
struct ReuseVerdict {
    enum Outcome: Sendable, Equatable {
        /// With the reason that allows the use of a stale response.
        case reuse(DiskURLCache.Reason?)
        case ask(DiskURLCache.Reason)
    }

    let freshness: Freshness
    let outcome: Outcome
}

extension RequestDecider {
    func verdict(on variant: StoredVariant) -> ReuseVerdict {
        let facts = variant.reuseFacts.governed(by: options)
        let freshness = Freshness(of: facts, options: options, now: now)
        return ReuseVerdict(freshness: freshness, outcome: outcome(freshness, facts))
    }

    private func outcome(_ freshness: Freshness, _ facts: ReuseFacts) -> ReuseVerdict.Outcome {
        let said = facts.directives
        let isOverruled = overrulesResponse(freshness.source)
        let isGood = freshness.isFresh && (isOverruled || !said.noCache)
        if acceptsAnyAge { return .reuse(isGood ? nil : .anyAge) }
        if options.restsAfterAnswers, let reason = facts.rest(options, now: now), !wantsOrigin(freshness, said: said) {
            return .reuse(isGood ? nil : reason)
        }
        if !isOverruled {
            if said.noCache { return objection(.noCache, .noCache) }
            if !freshness.isFresh, said.mustRevalidate(inSharedCache: options.isShared) {
                // With a network the response is only stale; without one the directive is what forbids its use.
                return objection(mayUseNetwork ? .stale : .mustRevalidate, .mustRevalidate)
            }
        }
        if let reason = clientsObjection(freshness, said: said) {
            guard options.isOffline else { return .ask(reason) }
            return .reuse(freshness.isFresh ? nil : .offline)
        }
        if freshness.isFresh { return .reuse(nil) }
        return allowance(freshness, facts).map { .reuse($0) } ?? .ask(.stale)
    }

    /// The server forbids the use: it is asked, unless the cache is offline and the app accepts any stored response.
    private func objection(
        _ reason: DiskURLCache.Reason, _ prohibition: DiskURLCache.Reason
    ) -> ReuseVerdict.Outcome {
        options.isOffline && options.acceptsAnyStored ? .reuse(.anyStored(against: prohibition)) : .ask(reason)
    }

    /// Whether the lifetime is one that the owner of the cache set for every response, which also overrules the
    /// response's prohibitions.
    private func overrulesResponse(_ source: Freshness.Source) -> Bool {
        guard source == .option else { return false }
        return switch options.lifetime {
        case .always, .atLeast: true
        case .asServed, .whenMissing: false
        }
    }

    /// Whether the request itself wants an answer of the origin.
    private func wantsOrigin(_ freshness: Freshness, said: ResponseDirectives) -> Bool {
        let objection = clientsObjection(freshness, said: said)
        return objection == .requestDirective || objection != nil && policy.revalidates
    }

    /// Why the client refuses the response, fresh or not.
    private func clientsObjection(_ freshness: Freshness, said: ResponseDirectives) -> DiskURLCache.Reason? {
        let asked = directives
        // RFC 8246 §2: a fresh immutable response is not revalidated by an ordinary reload.
        if case .revalidate(let reason) = policy,
            reason != .cachePolicy || !(said.isImmutable && freshness.isFresh)
        {
            return reason
        }
        if asked.noCache { return .requestDirective }
        // `max-age=0` asks for validation even within the second of arrival.
        if let maxAge = asked.maxAge, freshness.age > maxAge || maxAge == 0 { return .requestDirective }
        // RFC 9111 §5.2.1.1: a request with `max-age` wants no stale response, unless it says `max-stale`.
        if asked.maxAge != nil, asked.maxStale == nil, !freshness.isFresh { return .stale }
        if let minFresh = asked.minFresh, freshness.timeToLive < minFresh {
            return freshness.isFresh ? .requestDirective : .stale
        }
        return nil
    }

    /// The reason that allows the reuse of a stale response (RFC 9111 §4.2.4, RFC 5861 §3).
    private func allowance(_ freshness: Freshness, _ facts: ReuseFacts) -> DiskURLCache.Reason? {
        if let seconds = directives.maxStale, freshness.staleness <= seconds { return .maxStale }
        if options.isOffline { return .offline }
        return facts.staleWhileRevalidate(options).flatMap { freshness.staleness < $0 ? .staleWhileRevalidate : nil }
    }
}

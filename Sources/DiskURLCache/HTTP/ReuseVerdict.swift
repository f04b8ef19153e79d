import Foundation

/// May the selected response be reused without a validation (RFC 9111 §4, last list; §4.2.4; §5.2.1)?
struct ReuseVerdict {
    enum Outcome: Sendable, Hashable {
        case reuse(Reuse.Basis)
        case ask(DiskURLCache.Reason)
    }

    let freshness: Freshness
    let outcome: Outcome

    init(
        of facts: ReuseFacts, asked: RequestDirectives, policy: ReusePolicy, options: CachingOptions, now: Date
    ) {
        let facts = facts.governed(by: options)
        freshness = Freshness(of: facts, options: options, now: now)
        outcome = Self.outcome(freshness, facts, asked: asked, policy: policy, options: options)
    }

    private static func outcome(
        _ freshness: Freshness, _ facts: ReuseFacts, asked: RequestDirectives, policy: ReusePolicy,
        options: CachingOptions
    ) -> Outcome {
        let said = facts.directives
        if policy == .elseLoad || policy == .dontLoad {
            return .reuse(freshness.isFresh ? .fresh : .stale(.anyAge))
        }
        let isOverruled = options.overrulesResponse(freshness.source)
        if said.noCache && !isOverruled { return .ask(.noCache) }
        if !freshness.isFresh, said.mustRevalidate(inSharedCache: options.isShared), !isOverruled {
            return .ask(.stale)
        }

        if let reason = clientsObjection(freshness, said: said, asked: asked, policy: policy) {
            return options.isOffline ? .reuse(freshness.isFresh ? .fresh : .stale(.offline)) : .ask(reason)
        }
        if freshness.isFresh { return .reuse(.fresh) }
        return allowance(freshness, facts, asked: asked, options: options).map { .reuse(.stale($0)) } ?? .ask(.stale)
    }

    /// Why the client refuses the response, fresh or not.
    private static func clientsObjection(
        _ freshness: Freshness, said: ResponseDirectives, asked: RequestDirectives, policy: ReusePolicy
    ) -> DiskURLCache.Reason? {
        // RFC 8246 §2: a fresh immutable response is not revalidated by an ordinary reload.
        if policy == .revalidate, !(said.isImmutable && freshness.isFresh) { return .cachePolicy }
        if asked.noCache { return .requestDirective }
        // `max-age=0` asks for validation even within the second of arrival.
        if let maxAge = asked.maxAge, freshness.age > maxAge || maxAge == 0 { return .requestDirective }
        // RFC 9111 §5.2.1.1: a request with `max-age` wants no stale response, unless it says `max-stale`.
        if asked.maxAge != nil, asked.maxStale == nil, !freshness.isFresh { return .stale }
        if let minFresh = asked.minFresh, freshness.lifetime.subtractingSaturated(freshness.age) < minFresh {
            return freshness.isFresh ? .requestDirective : .stale
        }
        return nil
    }

    /// The reason that allows the reuse of a stale response (RFC 9111 §4.2.4, RFC 5861 §3).
    private static func allowance(
        _ freshness: Freshness, _ facts: ReuseFacts, asked: RequestDirectives, options: CachingOptions
    ) -> DiskURLCache.Reason? {
        if let seconds = asked.maxStale, freshness.staleness <= seconds { return .maxStale }
        if options.isOffline { return .offline }
        return facts.staleWhileRevalidate(options).flatMap { freshness.staleness < $0 ? .staleWhileRevalidate : nil }
    }
}

extension CachingOptions {
    /// Whether the lifetime is one that the owner of the cache set for every response, which also overrules the response's
    /// prohibitions.
    func overrulesResponse(_ source: Freshness.Source) -> Bool {
        if case .always = lifetime, source == .option { true } else { false }
    }
}

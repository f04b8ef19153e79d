import Foundation

/// How long a response is fresh, and how old it is (RFC 9111 §4.2).
package struct Freshness: Sendable, Equatable {
    /// Where the lifetime comes from.
    package enum Source: Sendable, Equatable {
        /// `s-maxage` (RFC 9111 §5.2.2.10), in shared caches only.
        case sharedMaxAge
        case maxAge
        case expires
        case heuristic
        /// `CachingOptions.lifetime`.
        case option
        /// Neither the response nor an option gives a lifetime: it is 0.
        case none
    }

    /// The lifetime that a response states.
    package struct Stated: Sendable, Equatable {
        package var seconds: CacheControl.Seconds
        var source: Source
    }

    /// `current_age` in seconds.
    package var age: Int64
    /// `freshness_lifetime` in seconds.
    package var lifetime: Int64
    package var source: Source

    /// `response_is_fresh`
    package var isFresh: Bool { lifetime > age }

    /// RFC 9211 §2.4: seconds of freshness left, negative when stale.
    var timeToLive: Int64 { lifetime.subtractingSaturated(age) }

    /// Seconds since the response became stale; 0 at the moment it does.
    package var staleness: Int64 { age.subtractingSaturated(lifetime) }

    /// - Parameter facts: as returned by `ReuseFacts.governed(by:)` for these options.
    package init(of facts: ReuseFacts, options: CachingOptions, now: Date) {
        age = Age.current(of: facts, now: now)
        (lifetime, source) = Self.lifetime(of: facts, options: options)
        // However long it is, nobody knows whether it is over.
        if Age.isUnknown(facts, now: now) { lifetime = 0 }
        guard let since = facts.staleSince else { return }
        // It ends at that moment, whatever gives it: the times for which it may be used stale begin then.
        lifetime = min(lifetime, Age.current(of: facts, now: since), age)
    }

    /// `freshness_lifetime` (RFC 9111 §4.2.1).
    static func lifetime(of facts: ReuseFacts, options: CachingOptions) -> (Int64, Source) {
        guard !facts.isError else { return servedLifetime(of: facts, options: options) }
        switch options.lifetime {
        case .always(let seconds): return (max(0, seconds), .option)
        case .atLeast(let seconds):
            let served = servedLifetime(of: facts, options: options)
            // A response that needs a validation for each use has no lifetime of its own.
            if facts.directives.noCache || served.0 <= seconds { return (max(0, seconds), .option) }
            return served
        case .asServed, .whenMissing: return servedLifetime(of: facts, options: options)
        }
    }

    /// The lifetime that the response states, or that is set or guessed for one that states none.
    private static func servedLifetime(of facts: ReuseFacts, options: CachingOptions) -> (Int64, Source) {
        let stated = facts.statedLifetime(inSharedCache: options.isShared)
        if let stated { return (stated.seconds.count, stated.source) }
        // What cannot be read may be a lifetime.
        let isMissing = !facts.isError && !facts.directives.hasMalformed
        if isMissing, case .whenMissing(let seconds) = options.lifetime { return (max(0, seconds), .option) }
        guard let guessed = heuristicLifetime(of: facts, options: options) else { return (0, .none) }
        return (guessed, .heuristic)
    }

    /// `max-age`, or `Expires` minus `Date` without one.
    static func explicitLifetime(of response: StoredResponse, directives: ResponseDirectives) -> Stated? {
        if let seconds = directives.maxAge { return Stated(seconds: seconds, source: .maxAge) }
        guard directives.targetedField == nil, response.fields["Expires"] != nil else { return nil }
        // RFC 9111 §4.2.1: with dates that differ, the response counts as stale.
        let expires = response.fields.single("Expires")
        let seconds = expires.flatMap { HTTPDate.parse($0, reference: response.responseTime) }.map { expiry in
            CacheControl.Seconds(count: max(0, expiry.timeIntervalSince(date(of: response)).wholeSeconds))
        }
        return Stated(seconds: seconds ?? .invalid, source: .expires)
    }

    /// RFC 9111 §4.2.2: a part of the time since the last modification; nil when no heuristic may be used.
    private static func heuristicLifetime(of facts: ReuseFacts, options: CachingOptions) -> Int64? {
        guard options.usesHeuristicFreshness, !facts.directives.hasMalformed else { return nil }
        if !facts.directives.isPublic {
            guard StatusCode.isHeuristicallyCacheable(facts.status) else { return nil }
            if options.isShared, options.isCautious { return nil }
        }
        guard let unchangedFor = facts.unchangedFor else { return nil }
        let fraction = min(max(options.heuristicFraction, 0), 1)
        return min((unchangedFor * fraction).wholeSeconds, max(0, options.heuristicLimit))
    }

    /// RFC 9110 §6.6.1: a response without a valid `Date` counts as made when it arrived. Of several dates the oldest
    /// counts.
    static func date(of response: StoredResponse) -> Date {
        response.fields["Date"].flatMap { HTTPDate.oldest($0, reference: response.responseTime) }
            ?? response.responseTime
    }
}

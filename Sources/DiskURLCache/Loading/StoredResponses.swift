import Foundation

/// What is stored for a load's request, and what else the decision by that needs. A class, so that passing it on costs
/// one reference.
final class StoredResponses: Sendable {
    /// The most recent first. Without those that are not HTTP: only `cachedResponse(for:)` uses such a response.
    let variants: [StoredVariant]
    /// The options for them.
    let options: CachingOptions
    /// The answer by one of them in place of an error of the server that is held: it is not asked again yet.
    let standIn: Reuse?
    /// How many fetches of the key had ended before the lookup: see `LoadTable.join`.
    let endedFetches: UInt64

    /// - Parameter options: for these responses, which are its argument.
    init(
        _ found: [StoredVariant], standIn: Reuse? = nil, endedFetches: UInt64 = 0,
        options: ([StoredVariant]) -> CachingOptions
    ) {
        variants = found.allSatisfy(\.isHTTP) ? found : found.filter(\.isHTTP)
        self.options = options(variants)
        self.standIn = standIn
        self.endedFetches = endedFetches
    }

    static let none = StoredResponses([]) { _ in CachingOptions() }

    /// Where the stored responses to a request are.
    enum Place {
        case memory(StoredResponses)
        /// Perhaps on disk. The closure reads them, on the caller's thread.
        case disk(@Sendable () -> StoredResponses)

        /// May read the disk, on the caller's thread.
        func read() -> StoredResponses {
            switch self {
            case .memory(let stored): stored
            case .disk(let read): read()
            }
        }
    }

    /// Looks for the stored responses to a load's request, as far as no file has to be read.
    static func find(for hop: ResolvedRequest, in cache: CacheCore) -> Place {
        guard let key = hop.key else { return .memory(StoredResponses([], for: hop, in: cache)) }
        let ended = cache.loads.endedFetches(of: key)
        let lookup = cache.store.lookup(key)
        if let known = lookup.known {
            return .memory(StoredResponses(known, endedFetches: ended, for: hop, in: cache).orHeld(by: hop, in: cache))
        }
        return .disk {
            StoredResponses(lookup.variants(), endedFetches: ended, for: hop, in: cache).orHeld(by: hop, in: cache)
        }
    }

    /// The held answer to the request instead of these, if there is one. The last answer is the one that counts.
    private func orHeld(by hop: ResolvedRequest, in cache: CacheCore) -> StoredResponses {
        guard let held = cache.heldAnswer(to: hop) else { return self }
        let asked = held.response.requestTime
        let isOutdated = variants.contains { $0.response.requestTime > asked && $0.response.answers(hop.facts) }
        if isOutdated { return self }
        if held.reuseFacts.isError {
            let decider = RequestDecider(
                request: hop.facts, variants: variants, policy: hop.request.policy, options: options, now: cache.now)
            // Nobody is asked, so an old error is no reason against a stored response.
            if !decider.mayUseNetwork, case .useStored = decider.decision() { return self }
            if StatusCode.isServerTrouble(held.response.status), let reuse = decider.errorFallback().reuse {
                return StoredResponses(variants, standIn: reuse, endedFetches: endedFetches) { _ in options }
            }
        }
        return StoredResponses([held], endedFetches: endedFetches, for: hop, in: cache)
    }

    convenience init(
        _ found: [StoredVariant], endedFetches: UInt64 = 0, for hop: ResolvedRequest, in cache: CacheCore
    ) {
        // A rule by content type may have come after what it keeps out.
        let found = hop.dependsOnContentType ? found.filter { hop.accepts($0) } : found
        self.init(found, endedFetches: endedFetches) { cache.cachingOptions(for: hop, stored: $0) }
    }

    /// As if none were stored.
    var removed: StoredResponses { StoredResponses([], endedFetches: endedFetches) { _ in options } }
}

extension StoredResponses {
    /// Whether a load would ask the origin for something, now or as a refresh in the background: for this request, or
    /// for one to which a stored redirect leads. Reads the disk on the caller's thread.
    static func leaveAQuestion(
        about first: DiskURLCache.Request, over transport: some LoadTransport, in cache: CacheCore
    ) -> Bool {
        var request = first
        for _ in 0...DiskURLCache.Request.redirectLimit {
            let hop = cache.resolve(request, variant: transport.keyVariant)
            let stored = find(for: hop, in: cache).read()
            let decider = RequestDecider(
                request: hop.facts, variants: stored.variants, policy: request.policy, options: stored.options,
                now: cache.now)
            let reuse: Reuse
            switch decider.decision() {
            case .useStored(let stored): reuse = stored
            case .unsatisfiable: return false
            case .fetch, .revalidate:
                guard let standIn = stored.standIn else { return true }
                reuse = standIn
            }
            if reuse.backgroundRevalidation != nil { return true }
            let response = reuse.variant.response
            guard reuse.presentation.keepsStatus,
                let next = request.following(status: response.status, fields: response.fields)
            else { return false }
            request = transport.prepare(next, after: request)
        }
        return true
    }
}

extension CacheCore {
    /// What a load of this request would find, for explanations. May read the disk, on the caller's thread.
    package func storedResponses(for hop: ResolvedRequest) -> [StoredVariant] {
        StoredResponses.find(for: hop, in: self).read().variants
    }
}

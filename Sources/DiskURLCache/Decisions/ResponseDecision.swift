import Foundation

/// A request that went to the origin, and the head of its answer.
package struct Exchange: Sendable {
    /// The client's request, without the fields that a revalidation added.
    var request: RequestFacts
    /// The decision before the request was sent, if that was a revalidation.
    var revalidation: Revalidation?
    var variants: [StoredVariant]
    var status: Int
    var fields: HeaderFields
    /// When the request was sent.
    var requestTime: Date
    /// When the head arrived.
    var responseTime: Date
    var policy = ReusePolicy.useProtocol
    /// Those for the stored responses; nil if they are those for the answer. They differ if rules by content type do.
    var storedOptions: CachingOptions?
    /// Why the app keeps the answer out of the cache, whatever HTTP says; nil if it does not.
    var refusal: DiskURLCache.Reason?

    package init(
        request: RequestFacts, revalidation: Revalidation? = nil, variants: [StoredVariant],
        status: Int, fields: HeaderFields, requestTime: Date, responseTime: Date,
        policy: ReusePolicy = .useProtocol, storedOptions: CachingOptions? = nil,
        refusal: DiskURLCache.Reason? = nil
    ) {
        self.request = request
        self.revalidation = revalidation
        self.variants = variants
        self.status = status
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.policy = policy
        self.storedOptions = storedOptions
        self.refusal = refusal
    }
}

/// How the cache handles the head of an answer (RFC 9111 §3, §4.3.3, §4.3.4).
///
/// Indirect, since a load copies its decision a dozen times.
indirect enum ResponseDecision: Sendable, Equatable {
    /// A 304 to the cache's own condition: apply the changes, then answer with this response and the body of the
    /// variant.
    case freshen(StoredVariant, StoredResponse, Presentation, changes: [StoreChange])
    /// The origin answered with an error, and a stored response replaces it (RFC 5861 §4).
    case useStaleOnError(Reuse)
    /// The answer is a reply to the fields that the cache added, and matches no stored response: send the client's
    /// request again, without those fields.
    case repeatRequest
    /// Deliver the answer as it came.
    case deliver(StorageVerdict, changes: [StoreChange])
}

/// Whether the answer is to be stored.
package enum StorageVerdict: Sendable, Equatable {
    /// Store the response, and remove those that it replaces. `servesOthers`: the next identical request could be
    /// answered without the origin.
    case store(StoredResponse, replacing: [StoredVariant], servesOthers: Bool)
    case refuse(DiskURLCache.Reason)
    /// Do not store the response, for this reason. Hold it in memory apart from what is stored: the app does not want
    /// the origin to be asked again yet (`CachingOptions.minimumInterval`, `errorLifetime`).
    case hold(StoredResponse, because: DiskURLCache.Reason)
}

/// A change of a stored response that needs no new body.
enum StoreChange: Sendable, Equatable {
    /// Replace the head; keep the body.
    case update(StoredVariant, StoredResponse)
    /// Store one more variant, with the body of the one that a 304 has confirmed.
    case addVariant(bodyOf: StoredVariant, StoredResponse)
    case remove(StoredVariant)
}

extension ResponseDecision {
    static func decide(_ exchange: Exchange, options: CachingOptions) -> ResponseDecision {
        if StatusCode.isServerTrouble(exchange.status) {
            let decider = RequestDecider(
                request: exchange.request, variants: exchange.variants, policy: exchange.policy,
                options: exchange.storedOptions ?? options, now: exchange.responseTime)
            if let reuse = decider.errorFallback().reuse { return .useStaleOnError(reuse) }
        }
        if let revalidation = exchange.revalidation, exchange.status == 304 {
            let decision = Freshening.decision(for: exchange, revalidation: revalidation, options: options)
            if let decision { return decision }
            // A 304 that confirms no stored response answers the client, if the client's request had a condition.
            if !isAnswerToClient(exchange, revalidation) { return .repeatRequest }
        }
        return deliver(exchange, options: options)
    }

    /// Whether a 304 means a tag that the client named. Without a tag in it that is certain if the cache has added
    /// none.
    private static func isAnswerToClient(_ exchange: Exchange, _ revalidation: Revalidation) -> Bool {
        guard let condition = exchange.request.wish("If-None-Match").map(EntityTagCondition.init) else {
            return false
        }
        if let tag = exchange.fields.single("ETag").flatMap(EntityTag.init) { return condition.matches(tag) }
        return revalidation.tags.allSatisfy(condition.matches)
    }

    private static func deliver(_ exchange: Exchange, options: CachingOptions) -> ResponseDecision {
        let verdict = Storability.verdict(for: exchange, options: options)
        if case .store = verdict { return .deliver(verdict, changes: []) }
        let isHead = exchange.request.method == "HEAD"
        let changes = isHead ? HeadUpdate.changes(by: exchange, options: options) : removals(by: exchange, options)
        return .deliver(verdict, changes: changes)
    }

    /// If an answer cannot be stored, the stored responses that it would have replaced are removed: they are out of
    /// date. Not after an error, which says nothing about the resource, nor after a 206, which says nothing about the
    /// other parts.
    private static func removals(by exchange: Exchange, _ options: CachingOptions) -> [StoreChange] {
        guard options.isCacheable(exchange.request.method), !exchange.request.directives.noStore,
            StatusCode.isReplacement(exchange.status)
        else { return [] }
        var digests = FieldDigests(of: exchange.request.fields)
        return exchange.variants.filter { $0.response.vary.matches(&digests) }.map { .remove($0) }
    }
}

/// How a cache handles a request, given the stored responses (RFC 9111 §4).
package enum CacheDecision: Sendable, Equatable {
    /// Answer from the store.
    case useStored(Reuse)
    /// Send the request with the fields of the revalidation, and let `ResponseDecision` judge the answer.
    case revalidate(Revalidation)
    /// Send the request with these fields set. The answer is not compared with a stored response.
    case fetch(DiskURLCache.Reason, fields: HeaderFields)
    /// No stored response may be used and no request may be sent: `only-if-cached` gets a 504, a request with
    /// `returnCacheDataDontLoad` or an offline cache an error.
    case unsatisfiable(DiskURLCache.Reason)
}

/// A stored response that may be used for a request.
package struct Reuse: Sendable, Equatable {
    /// What answers.
    package var variant: StoredVariant
    /// The reason that allows the use of a stale response; nil for a fresh one.
    package var allowance: DiskURLCache.Reason?
    var freshness: Freshness
    package var presentation: Presentation
    /// Set when `stale-while-revalidate` allowed the reuse: the request to send to the origin in the background, once.
    /// It is sent with `RequestFacts.unconditional`; without fields when there is no validator.
    var backgroundRevalidation: Revalidation?
}

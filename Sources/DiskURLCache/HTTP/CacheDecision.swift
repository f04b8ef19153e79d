import Foundation

/// One stored response of the key that a request has. Candidates are listed with the most recent first.
package struct Candidate: Sendable {
    let response: StoredResponse
    /// Bytes of the stored body, decoded: never taken from `Content-Length`.
    let bodyLength: Int
    /// The facts of `response`, when the caller has them.
    private let knownFacts: ReuseFacts?
    /// The stored body, when it is in memory.
    let body: Data?

    package init(response: StoredResponse, bodyLength: Int, facts: ReuseFacts? = nil, body: Data? = nil) {
        self.response = response
        self.bodyLength = bodyLength
        knownFacts = facts
        self.body = body
    }

    var reuseFacts: ReuseFacts { knownFacts ?? ReuseFacts(response) }
}

/// How a cache handles a request, given the stored responses (RFC 9111 §4).
enum CacheDecision: Sendable, Hashable {
    /// Answer from the store.
    case useStored(Reuse)
    /// Send the request with the fields of the revalidation set, and hand its answer to `ResponseDecision`.
    case revalidate(Revalidation)
    /// Send the request with these fields set. The answer is not compared with a stored response.
    case fetch(DiskURLCache.Reason, fields: HeaderFields)
    /// No stored response may be used and no request may be sent: `only-if-cached` gets a 504, a request with
    /// `returnCacheDataDontLoad` or an offline cache an error.
    case unsatisfiable(DiskURLCache.Reason)
}

/// A stored response that may be used for a request.
struct Reuse: Sendable, Hashable {
    enum Basis: Sendable, Hashable {
        case fresh
        case stale(DiskURLCache.Reason)
    }

    /// The index of the candidate that answers.
    var index: Int
    var basis: Basis
    /// `current_age` in seconds (RFC 9111 §4.2.3): the `Age` to deliver.
    var age: Int64
    /// `freshness_lifetime` in seconds (RFC 9111 §4.2.1).
    var lifetime: Int64
    var presentation: Presentation
    /// Set when `stale-while-revalidate` allowed the reuse: the request to send to the origin in the background, once. It is sent
    /// with `RequestFacts.unconditional`; without fields when there is no validator.
    var backgroundRevalidation: Revalidation?

    /// RFC 9211 §2.4: seconds of freshness left, negative when stale.
    var timeToLive: Int64 { lifetime.subtractingSaturated(age) }
}

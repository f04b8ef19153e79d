import Foundation

/// A stored response under the key of a request, which may answer it. Lists of candidates begin with the most recent
/// one. A class: an entry in memory keeps its candidate from hit to hit.
package final class Candidate: Sendable {
    let response: StoredResponse
    /// The length of the stored, decoded body. `Content-Length` may say something else.
    let bodyLength: Int
    /// The parsed facts of `response`, if the caller has them already.
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
enum CacheDecision: Sendable, Equatable {
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
struct Reuse: Sendable, Equatable {
    /// The index of the candidate that answers.
    var index: Int
    /// The reason that allows the use of a stale response; nil for a fresh one.
    var allowance: DiskURLCache.Reason?
    var freshness: Freshness
    var presentation: Presentation
    /// Set when `stale-while-revalidate` allowed the reuse: the request to send to the origin in the background, once.
    /// It is sent with `RequestFacts.unconditional`; without fields when there is no validator.
    var backgroundRevalidation: Revalidation?
}

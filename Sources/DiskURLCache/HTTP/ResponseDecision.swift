import Foundation

/// A request that went to the origin, and the head of its answer.
struct Exchange: Sendable {
    /// As the client made it, without the fields that a revalidation added.
    var request: RequestFacts
    /// The target: for `Content-Location` of a POST, and for events.
    var url: URL?
    /// What was decided before the request was sent, where that was a revalidation.
    var revalidation: Revalidation?
    var candidates: [Candidate]
    var status: Int
    var fields: HeaderFields
    /// When the request was sent.
    var requestTime: Date
    /// When the head arrived.
    var responseTime: Date
}

/// What to do with the head of an answer (RFC 9111 §3, §4.3.3, §4.3.4).
enum ResponseDecision: Sendable, Hashable {
    /// A 304 to our own condition: apply the changes, then answer with this response, whose body is that of
    /// `candidates[index]`.
    case freshen(index: Int, StoredResponse, Presentation, changes: [StoreChange])
    /// A 206 with the rest of what is stored in part: the whole body is that of `candidates[index]` followed by what
    /// arrives. Store it whole where the verdict says so, and answer with the response.
    case combine(index: Int, StoredResponse, Presentation, StorageVerdict)
    /// An error that what is stored stands in for (RFC 5861 §4); the answer that came is dropped.
    case useStaleOnError(Reuse)
    /// The answer fits neither the client's request nor what is stored: send the client's request again, with none of
    /// our fields.
    case repeatRequest(FetchReason)
    /// Deliver the answer as it came.
    case deliver(StorageVerdict, changes: [StoreChange])
}

/// Whether the answer is to be stored.
enum StorageVerdict: Sendable, Hashable {
    /// Store it in place of the candidates named. A method other than that of the request means: under that method's key.
    case store(StoredResponse, replacing: [Int])
    case refuse(StorageRefusal)
}

/// A change to what is stored that needs no new body.
enum StoreChange: Sendable, Hashable {
    /// New head, same body.
    case update(index: Int, StoredResponse)
    /// A further variant with the body of that candidate.
    case addVariant(bodyOf: Int, StoredResponse)
    case remove(index: Int)
}

/// Why an answer is not stored (RFC 9111 §3).
enum StorageRefusal: String, Sendable, Hashable {
    case method
    case requestNoStore = "request-no-store"
    case responseNoStore = "no-store"
    case statusNotUnderstood = "status-not-understood"
    case statusNotCacheable = "status-not-cacheable"
    /// Neither lifetime nor validator nor anything that allows a heuristic: it could never be reused.
    case notReusable = "not-reusable"
    case varyAsterisk = "vary-asterisk"
    case partialContent = "partial-content"
    case notModified = "not-modified"
    /// `If-Match` and the like: the answer is not one for the URL alone.
    case precondition
    case malformed
}

extension ResponseDecision {
    static func decide(_ exchange: Exchange, options: CachingOptions) -> ResponseDecision {
        .deliver(.refuse(.notReusable), changes: [])
    }

    /// What may be served after a network failure: within the bound of `stale-if-error`, or offline.
    static func afterFailure(
        of request: RequestFacts, candidates: [Candidate], policy: ReusePolicy, options: CachingOptions, now: Date
    ) -> Reuse? {
        nil
    }
}

import Foundation

/// A request as it is sent, with the values that a load derives from it: once for each hop.
struct KeyedRequest: Sendable {
    let target: RuleTarget
    let facts: RequestFacts
    /// The key, or the reason why the request is not cached.
    let decision: KeyDecision
    var request: DiskURLCache.Request { target.request }
    /// The key under which an equivalent of the URL is stored, if nothing is stored for the URL alone
    /// (No-Vary-Search).
    private(set) var equivalent: RequestKey?
    /// The key of the stored responses that may answer; nil for a request that is not cached.
    var key: RequestKey? { equivalent ?? decision.key }

    /// The request with the stored responses of an equivalent; nil changes nothing.
    func answered(under equivalent: RequestKey?) -> KeyedRequest {
        var request = self
        request.equivalent = equivalent
        return request
    }

    init(_ target: RuleTarget, _ decision: KeyDecision, salt: CredentialSalt? = nil) {
        self.target = target
        facts = RequestFacts(target.request, salt: salt)
        self.decision = decision
    }
}

/// Fetches with equal identities may be shared.
struct FetchIdentity: Hashable, Sendable {
    let key: RequestKey
    /// See `LoadTransport.owner`.
    let owner: ObjectIdentifier?
    /// The number of the last removal that concerned the key. A load that begins after the removal waits for no load
    /// that began before it, since that load may get the removed response.
    let lastRemoval: UInt64
    let fields: HeaderFields

    /// Of the key alone: to compare the fields takes longer, and is needed only for two loads of one key.
    func hash(into hasher: inout Hasher) {
        hasher.combine(key)
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request as it is sent, with the values that a load derives from it: once for each hop.
package struct KeyedRequest: Sendable {
    let request: URLRequest
    let facts: RequestFacts
    /// The key, or the reason why the request is not cached.
    let decision: KeyDecision
    /// Nil for a request that is not cached.
    var key: RequestKey? { decision.key }

    init(_ request: URLRequest, _ decision: KeyDecision) {
        self.request = request
        facts = RequestFacts(request)
        self.decision = decision
    }

    init(_ request: URLRequest, key: RequestKey?) {
        self.init(request, key.map { .key($0) } ?? .none(.noKey))
    }

    /// Calls the app's rules and key closures.
    /// - Parameter variant: part of the key; see ``LoadTransport/keyVariant``.
    package init(_ request: URLRequest, in cache: any LoadHost, variant: String? = nil) {
        self.init(request, cache.keyDecision(for: request).variant(variant))
    }

    /// The identity of a fetch: the transport's owner, the key and every header field of the request.
    /// - Parameter lastRemoval: the number of the last removal that concerned the key. A load that begins after the removal waits for no
    ///   load that began before it, since that load may get the removed response.
    func identity(owner: ObjectIdentifier?, lastRemoval: UInt64) -> String {
        let owner = owner.map { "\(UInt(bitPattern: $0))" } ?? "-"
        let fields = facts.fields.fields.map { "\($0.name.lowercased()):\($0.value)" }.sorted()
        return ([owner, "\(lastRemoval)", key?.text ?? ""] + fields).joined(separator: "\n")
    }
}

extension RequestFacts {
    init(_ request: URLRequest) {
        let method = request.httpMethod ?? "GET"
        self.init(method: method == "GET" ? method : method.uppercased(), fields: HeaderFields(request))
    }
}

extension ReusePolicy {
    init(_ policy: URLRequest.CachePolicy) {
        switch policy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: self = .reloadIgnoring
        case .returnCacheDataElseLoad: self = .elseLoad
        case .returnCacheDataDontLoad: self = .dontLoad
        case .reloadRevalidatingCacheData: self = .revalidate
        default: self = .useProtocol
        }
    }
}

extension Int64 {
    /// Whole seconds, brought into range; not a number counts as 0.
    init(clampingSeconds seconds: TimeInterval) { self = seconds.wholeSeconds }
}

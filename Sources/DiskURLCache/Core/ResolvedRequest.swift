/// A request of a load, with everything that is known before there is a response: its key, or why it has none, its
/// directives, and the options by the rules. Made once for each hop by `CacheCore.resolve`.
///
/// A class, so that passing it on costs one reference.
package final class ResolvedRequest: Sendable {
    let request: DiskURLCache.Request
    /// The request in the form for the decisions by HTTP.
    let facts: RequestFacts
    /// The key, or the reason why the request is not cached.
    package let decision: KeyDecision
    /// The options by the request, and by those rules that do not need a response.
    let options: DiskURLCache.Options
    /// Whether the app has set any options for it.
    let hasOptions: Bool
    private let rules: AppliedRules

    init(
        _ request: DiskURLCache.Request, _ decision: KeyDecision, rules: AppliedRules,
        options: DiskURLCache.Options, hasOptions: Bool = true, salt: CredentialSalt?
    ) {
        self.request = request
        self.decision = decision
        self.rules = rules
        self.options = options
        self.hasOptions = hasOptions
        facts = RequestFacts(request, key: decision.key, salt: salt)
    }

    /// The key of the stored responses that may answer; nil for a request that is not cached.
    package var key: RequestKey? { decision.key }

    /// Whether there is one: a load asks for that more often than for the key.
    var hasKey: Bool { decision.isKey }

    /// Whether there are rules by the content type of the response.
    var dependsOnContentType: Bool { rules.dependOnContentType }

    /// The options with those of the rules by content type.
    /// - Parameter response: the fields of a response to this request; nil as long as there is none.
    package func options(for response: HeaderFields?) -> DiskURLCache.Options {
        guard let response, rules.dependOnContentType else { return options }
        return rules.options(after: request.options, contentType: response["Content-Type"])
    }

    /// The host in canonical spelling; empty without one.
    var host: String {
        if let key { return URLCanonicalizer.host(ofNormal: key.uri) }
        return URLCanonicalizer.canonical(request.url).map(URLCanonicalizer.host) ?? ""
    }

    /// The app's tags for a response, among them those of rules by content type.
    /// - Parameter response: its fields, which are looked at only if there is such a rule.
    func tags(for response: @autoclosure () -> HeaderFields?) -> Set<String> {
        rules.dependOnContentType ? options(for: response()).tags : options.tags
    }

    /// Whether the app may want the URL to be asked less often than HTTP does.
    var mayRest: Bool {
        options.minimumInterval != nil || options.errorLifetime != nil || rules.dependOnContentType
    }

    /// Why a response with these fields is not stored, whatever HTTP says: the request has no key, or the options say
    /// so.
    package func refusal(of response: HeaderFields?) -> DiskURLCache.Reason? {
        decision.refusal ?? reasonNotToStore(response)
    }

    /// Whether the options let a stored response be used.
    func accepts(_ variant: StoredVariant) -> Bool { refusal(of: variant.metadata.http?.fields) == nil }

    /// Why a response is not stored: the options that say so. Nil if none do.
    private func reasonNotToStore(_ response: HeaderFields?) -> DiskURLCache.Reason? {
        // The options are large, and each answer is asked twice.
        let storage = rules.dependOnContentType ? options(for: response).storage : options.storage
        guard storage == .never else { return nil }
        return rules.reasonNotToStore(request.options, contentType: response?["Content-Type"]) ?? .never
    }
}

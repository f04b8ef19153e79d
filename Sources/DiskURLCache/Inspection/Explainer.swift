import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Puts the cache's decisions about one request into words. What is decided comes from `CacheDecision`, `Freshness`,
/// `Storability` and `ErrorFallback`, as in a load: nothing is decided here.
struct Explainer {
    /// One statement.
    struct Clause {
        var topic: Topic
        /// A sentence or a few.
        var text: String
        /// Where the rule is written; nil where the clause states a fact, or a choice of this cache.
        var source: String?

        init(_ topic: Topic, _ text: String, _ source: String? = nil) {
            (self.topic, self.text, self.source) = (topic, text, source)
        }
    }

    /// What a clause is about, by its heading. The order is the order in which a cache decides.
    enum Topic: String, CaseIterable {
        case key = "Key"
        case request = "The request"
        case stored = "What is stored"
        case freshness = "Freshness"
        case validators = "Validators"
        case decision = "What the cache does"
        case storing = "The answer"
        case advice = "What would change it"
    }

    /// One stored response of the key, and the layer that holds it.
    struct Variant {
        var candidate: Candidate
        var layer: CacheLayer
    }

    private struct Received {
        var fields: HeaderFields
        var status: Int
        var sentAt: Date
        var options: CachingOptions
    }

    private let request: URLRequest
    private let facts: RequestFacts
    private let key: RequestKey?
    private let variants: [Variant]
    private let options: CachingOptions
    private let now: Date
    private var received: Received?
    var treatment = CacheTreatment()
    /// Of the transport, where the key has one.
    var variant: String?
    /// The transports' variants that have entries, too.
    var otherVariants: [String] = []

    init(_ request: URLRequest, key: RequestKey?, variants: [Variant], now: Date, options: CachingOptions) {
        self.request = request
        self.key = key
        self.variants = variants
        self.now = now
        facts = RequestFacts(request)
        self.options = Self.options(options, cacheable: facts.method, key)
    }

    /// The response to explain.
    mutating func take(_ fields: HeaderFields, status: Int, sentAt: Date?, options: CachingOptions) {
        received = Received(
            fields: fields, status: status, sentAt: sentAt ?? now,
            options: Self.options(options, cacheable: facts.method, key))
    }

    /// As in a load: only a key policy gives a key to methods other than GET and HEAD.
    private static func options(_ options: CachingOptions, cacheable method: String, _ key: RequestKey?)
        -> CachingOptions
    {
        var options = options
        if key != nil, !options.isCacheable(method) { options.furtherMethods.insert(method) }
        return options
    }

    private var policy: ReusePolicy { ReusePolicy(request.cachePolicy) }
    private var candidates: [Candidate] { variants.map(\.candidate) }

    func explanation() -> DiskURLCache.Explanation {
        guard let key else {
            return DiskURLCache.Explanation(
                outcome: .bypass(.noKey), notStoredReason: received == nil ? nil : .noKey,
                description: Self.text(of: clausesWithoutKey()))
        }
        let decision = CacheDecision.decide(
            for: facts, candidates: candidates, policy: policy, options: options, now: now)
        var clauses = keyClauses(key) + requestClauses() + storedClauses()
        if let selected {
            clauses += freshnessClauses(selected.response, options: options) + validatorClauses(selected.response)
        }
        clauses.append(decisionClause(decision))
        clauses += errorClauses(decision)
        var advice = selected.map { adviceClauses($0.response, options: options) } ?? []
        var refusal: CacheNotStoredReason?
        if let received {
            let (storing, reason, storingAdvice) = storingClauses(received)
            clauses += storing
            advice = storingAdvice
            refusal = reason
        }
        return DiskURLCache.Explanation(
            outcome: outcome(of: decision), notStoredReason: refusal, description: Self.text(of: clauses + advice))
    }

    private static func text(of clauses: [Clause]) -> String {
        Topic.allCases.compactMap { topic in
            let lines = clauses.filter { $0.topic == topic }.map { clause in
                "  " + clause.text + (clause.source.map { "  [\($0)]" } ?? "")
            }
            return lines.isEmpty ? nil : ([topic.rawValue] + lines).joined(separator: "\n")
        }.joined(separator: "\n\n")
    }

    /// As a load would report it.
    private func outcome(of decision: CacheDecision) -> CacheLoadReport.Outcome {
        switch decision {
        case .useStored(let reuse):
            let layer = variants[reuse.index].layer
            return switch reuse.basis {
            case .fresh: .hit(layer)
            case .stale(let reason): .staleHit(layer, reason)
            }
        case .revalidate(let revalidation):
            guard case .validate = revalidation.purpose else { return .miss(revalidation.reason) }
            return .revalidated(variants[revalidation.index ?? 0].layer)
        case .fetch(let reason, _): return .miss(reason)
        case .unsatisfiable(let reason): return .notAllowed(reason)
        }
    }

    /// What is looked at: the most recent that `Vary` lets answer this request.
    private var selected: Candidate? {
        candidates.first { $0.response.answers(facts) }
    }

    // MARK: The key

    private func clausesWithoutKey() -> [Clause] {
        var clauses = [
            Clause(.key, "This request has no key, so the cache passes it by: nothing is looked up or stored.")
        ]
        let scheme = request.url?.scheme?.lowercased() ?? "none"
        if treatment.storage == .never {
            clauses.append(Clause(.key, "A rule or the request's treatment says storage: .never."))
        } else if scheme != "http" && scheme != "https" {
            clauses.append(Clause(.key, "Its scheme is \(scheme): only http and https are cached.", "RFC 9111 §1"))
        } else if URLCanonicalizer.parts(of: request.url?.absoluteString ?? "")?.hasDotSegments == true {
            clauses.append(
                Clause(
                    .key,
                    "Its path has a segment \".\" or \"..\": a client may send it or remove it, so the answer may be another URL's.",
                    "RFC 3986 §5.2.4"))
            clauses.append(Clause(.advice, "Ask for the path without such segments."))
        } else if request.httpBodyStream != nil {
            clauses.append(Clause(.key, "Its body is a stream: what will be sent cannot be known beforehand."))
            clauses.append(Clause(.advice, "Give the body as data (httpBody)."))
        } else if facts.method == "GET" || facts.method == "HEAD" {
            clauses.append(
                Clause(
                    .key, "It is a \(facts.method) with a body, which the key policy does not key.", "RFC 9110 §9.3.1"))
            clauses.append(Clause(.advice, "Let the body take part in the key: KeyPolicy.includingBody(ofMethods:)."))
        } else {
            clauses.append(
                Clause(.key, "The method \(facts.method) is cached only where a key policy says so.", "RFC 9111 §2"))
            if !Invalidation.isSafe(facts.method) {
                clauses.append(
                    Clause(
                        .decision, "When it succeeds, what is stored for its URL is removed: it may have changed.",
                        "RFC 9111 §4.4"))
            }
            clauses.append(
                Clause(
                    .advice,
                    "Where the request only asks for something, KeyPolicy.includingBody(ofMethods: \"\(facts.method)\") makes it cacheable."
                ))
        }
        return clauses
    }

    /// User name and password of a URL are in its key, and nobody's to read.
    private func url(of key: RequestKey) -> String {
        URL(string: key.uri)?.withoutCredentials ?? "(not shown)"
    }

    private func keyClauses(_ key: RequestKey) -> [Clause] {
        var clauses = [Clause(.key, "The key is the URL \(url(of: key)).", "RFC 9111 §2, RFC 3986 §6.2")]
        if facts.method == "HEAD" {
            clauses.append(Clause(.key, "A HEAD is answered from what is stored for GET.", "RFC 9110 §9.3.2"))
        }
        if let fragment = request.url?.fragment, !fragment.isEmpty {
            clauses.append(Clause(.key, "The fragment #\(fragment) is no part of it: it never reaches the origin."))
        }
        if facts.fields["Authorization"] != nil {
            clauses.append(
                Clause(
                    .key, "The value of Authorization is part of it: other credentials have entries of their own.",
                    "RFC 9111 §3.5"))
        }
        if let variant {
            clauses.append(
                Clause(
                    .key, "The variant \"\(variant)\" of the client is part of it: others have entries of their own."))
        }
        let plain = KeyPolicy.standard.key(for: request)
        if key != plain?.variant(variant), key != plain?.inSharedCache.variant(variant) {
            clauses.append(Clause(.key, "A key policy adds to it, or takes from it."))
        }
        return clauses
    }

    // MARK: The request

    private func requestClauses() -> [Clause] {
        var clauses: [Clause] = []
        switch policy {
        case .useProtocol: break
        case .reloadIgnoring: clauses.append(Clause(.request, "Its cachePolicy asks for a reload from the network."))
        case .elseLoad:
            clauses.append(Clause(.request, "Its cachePolicy takes what is stored, however old, else loads."))
        case .dontLoad:
            clauses.append(Clause(.request, "Its cachePolicy takes what is stored, however old, else fails."))
        case .revalidate: clauses.append(Clause(.request, "Its cachePolicy wants the origin asked before each use."))
        }
        for name in ["Cache-Control", "Pragma"] {
            if let value = facts.fields[name] {
                clauses.append(Clause(.request, "It says \(name): \(value).", "RFC 9111 §5.2.1"))
                break
            }
        }
        for name in ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"] {
            guard let value = facts.fields[name] else { continue }
            let section = name == "Range" ? "RFC 9110 §14.2" : "RFC 9110 §13.1"
            clauses.append(Clause(.request, "It says \(name): \(value).", section))
        }
        if options.isOffline {
            clauses.append(Clause(.request, "The cache is offline: the network is not asked.", "RFC 9111 §4.2.4"))
        }
        return clauses
    }

    // MARK: What is stored

    private func storedClauses() -> [Clause] {
        let others = otherVariants.map { name in
            Clause(.stored, "More is stored for the variant \"\(name)\" of a client.")
        }
        guard !variants.isEmpty else { return [Clause(.stored, "Nothing is stored under this key.")] + others }
        let isOne = variants.count == 1
        var clauses = [
            Clause(
                .stored,
                isOne
                    ? "One response is stored under this key." : "\(variants.count) variants are stored under this key."
            )
        ]
        for (index, variant) in variants.enumerated() {
            let response = variant.candidate.response
            let age = Words.span(now.timeIntervalSince(response.responseTime))
            var text = isOne ? "It" : "Variant \(index + 1)"
            text +=
                ": status \(response.status), \(variant.candidate.bodyLength) bytes, arrived or confirmed \(age) ago"
            text += ", from \(variant.layer)"
            let vary = response.vary
            if vary.matchesNothing {
                text += "; Vary: * fits no request"
            } else if !vary.fields.isEmpty {
                let asked = VaryKey(vary.fields.map(\.name).joined(separator: ","), request: facts.fields)
                let different = zip(vary.fields, asked.fields).filter { $0 != $1 }.map(\.0.name)
                text += "; selected by \(vary.fields.map(\.name).joined(separator: ", "))"
                text +=
                    different.isEmpty
                    ? ", which this request has alike"
                    : ", but this request differs in \(different.joined(separator: ", "))"
            }
            clauses.append(Clause(.stored, text + ".", vary.fields.isEmpty ? nil : "RFC 9111 §4.1"))
        }
        return clauses + others
    }

    // MARK: Freshness

    /// The arithmetic of RFC 9111 §4.2 with the numbers of this response.
    private func freshnessClauses(
        _ response: StoredResponse, options: CachingOptions, topic: Topic = .freshness
    ) -> [Clause] {
        let reuse = ReuseFacts(response)
        let freshness = Freshness(of: reuse, options: options, now: now)
        var clauses = [lifetimeClause(response, freshness, options, topic)]
        let resident = freshness.age.subtractingSaturated(reuse.initialAge)
        clauses.append(
            Clause(
                topic,
                "Age: \(freshness.age) s = \(reuse.initialAge) s when it arrived (\(ageOnArrival(response)))"
                    + " + \(resident) s since.", "RFC 9111 §4.2.3"))
        let sum = "\(freshness.lifetime) s - \(freshness.age) s"
        clauses.append(
            Clause(
                topic,
                freshness.isFresh
                    ? "Fresh: \(sum) leaves \(Words.span(TimeInterval(-freshness.staleness)))."
                    : "Stale: \(sum) is not above 0; stale for \(Words.span(TimeInterval(freshness.staleness))).",
                "RFC 9111 §4.2"))
        return clauses
    }

    private func lifetimeClause(
        _ response: StoredResponse, _ freshness: Freshness, _ options: CachingOptions, _ topic: Topic
    ) -> Clause {
        let seconds = "Lifetime: \(freshness.lifetime) s"
        switch freshness.source {
        case .option:
            return Clause(topic, "\(seconds), set by the app (Treatment.lifetime).")
        case .none:
            return Clause(
                topic, "\(seconds), as there is no max-age, no Expires, and nothing that allows a guess.",
                "RFC 9111 §4.2.1")
        case .heuristic:
            let date = Freshness.date(of: response)
            let unchanged = response.lastModified.map { max(0, date.timeIntervalSince($0)) } ?? 0
            return Clause(
                topic,
                "\(seconds), a guess: \(Int(options.heuristicFraction * 100)) % of the \(Words.span(unchanged)) from Last-Modified"
                    + " to Date, at most \(Words.span(TimeInterval(options.heuristicLimit))).", "RFC 9111 §4.2.2")
        case .explicit:
            if let control = response.fields["Cache-Control"],
                let name = lifetimeDirective(in: CacheControl(control), options)
            {
                let isValid = CacheControl(control).allowance(name) != nil
                return Clause(
                    topic, "\(seconds), from \(isValid ? "" : "the invalid \(name) of ")Cache-Control: \(control).",
                    !isValid ? "RFC 9111 §4.2.1" : name == "s-maxage" ? "RFC 9111 §5.2.2.10" : "RFC 9111 §5.2.2.1")
            }
            return Clause(
                topic,
                "\(seconds), from Expires (\(response.fields["Expires"] ?? "")) minus Date"
                    + " (\(response.fields["Date"] ?? "absent: its arrival")).", "RFC 9111 §5.3")
        }
    }

    /// The directive that the lifetime is from; nil where it is from `Expires`.
    private func lifetimeDirective(in control: CacheControl, _ options: CachingOptions) -> String? {
        if options.isShared, control.contains("s-maxage") { return "s-maxage" }
        return control.contains("max-age") ? "max-age" : nil
    }

    /// Which of the two counts is the larger.
    private func ageOnArrival(_ response: StoredResponse) -> String {
        let delay = max(0, response.responseTime.timeIntervalSince(response.requestTime).wholeSeconds)
        let value = Age.value(of: response.fields)
        let apparent = max(0, response.responseTime.timeIntervalSince(Freshness.date(of: response)).wholeSeconds)
        return "the larger of Age + time on the way = \(value) s + \(delay) s, and arrival - Date = \(apparent) s"
    }

    private func validatorClauses(_ response: StoredResponse, topic: Topic = .validators) -> [Clause] {
        var validators: [String] = []
        if let tag = response.entityTag { validators.append("ETag: \(tag.text)") }
        if response.lastModified != nil {
            validators.append("Last-Modified: \(response.fields["Last-Modified"] ?? "")")
        }
        guard Revalidation.isValidatable(response, for: facts), !validators.isEmpty else {
            return [
                Clause(
                    topic, "No validator can be used: once stale, it is loaded again as a whole.", "RFC 9111 §4.3.1")
            ]
        }
        return [
            Clause(
                topic, "\(validators.joined(separator: ", ")): once stale, the origin can confirm it with a 304.",
                "RFC 9111 §4.3.1")
        ]
    }

    // MARK: The decision

    private func decisionClause(_ decision: CacheDecision) -> Clause {
        switch decision {
        case .useStored(let reuse):
            let form = Words.form(reuse.presentation)
            switch reuse.basis {
            case .fresh:
                return Clause(.decision, "Answers from the store\(form): it is fresh. No request.", "RFC 9111 §4")
            case .stale(let allowance):
                return Clause(
                    .decision, "Answers from the store\(form), stale: \(allowance).", allowance.source)
            }
        case .revalidate(let revalidation):
            let reason = revalidation.reason
            let fields = revalidation.fields.fields.map { "\($0.name): \($0.value)" }.joined(separator: "; ")
            if case .complete(let start) = revalidation.purpose {
                return Clause(
                    .decision, "Asks the origin for the bytes from \(start) on, with \(fields).", "RFC 9111 §3.3")
            }
            return Clause(
                .decision, "Asks the origin with \(fields); a 304 is answered from the store. Why: \(reason).",
                reason.source)
        case .fetch(let reason, _):
            return Clause(.decision, "Loads from the network. Why: \(reason).", reason.source)
        case .unsatisfiable(let reason):
            return Clause(
                .decision, "Fails, since the network may not be asked. Why the store cannot answer: \(reason).",
                reason.source)
        }
    }

    private func errorClauses(_ decision: CacheDecision) -> [Clause] {
        switch decision {
        case .useStored, .unsatisfiable: return []
        case .revalidate, .fetch: break
        }
        guard selected != nil else { return [] }
        let reuse = ErrorFallback.reuse(
            for: facts, candidates: candidates, policy: policy, options: options, now: now)
        return [
            reuse == nil
                ? Clause(
                    .decision, "Should the network fail, the load fails: nothing allows the stored response then.",
                    "RFC 5861 §4")
                : Clause(
                    .decision,
                    "Should the network fail, or the origin answer with a 5xx, the stored one is used.",
                    "RFC 5861 §4")
        ]
    }

    // MARK: Storing

    private func storingClauses(_ received: Received) -> (
        clauses: [Clause], refusal: CacheNotStoredReason?, advice: [Clause]
    ) {
        let exchange = Exchange(
            request: facts, url: request.url, candidates: candidates, status: received.status, fields: received.fields,
            requestTime: received.sentAt, responseTime: now, policy: policy)
        switch Storability.verdict(for: exchange, options: received.options) {
        case .refuse(let refusal):
            let (why, advice) = Words.words(refusal, received.fields, status: received.status)
            let clause = Clause(
                .storing, "The response (status \(received.status)) is not stored: \(why).", refusal.source)
            return ([clause], refusal, advice.map { [Clause(.advice, $0)] } ?? [])
        case .store(let response, let replacing):
            var clauses = [
                Clause(
                    .storing,
                    "The response (status \(received.status)) is stored"
                        + (replacing.isEmpty
                            ? "."
                            : ", in place of \(replacing.count == 1 ? "one" : "\(replacing.count)") stored before."),
                    "RFC 9111 §3")
            ]
            if !response.vary.fields.isEmpty {
                clauses.append(
                    Clause(
                        .storing,
                        "It answers requests that are alike in \(response.vary.fields.map(\.name).joined(separator: ", ")).",
                        "RFC 9111 §4.1"))
            }
            clauses += freshnessClauses(response, options: received.options, topic: .storing)
            clauses += validatorClauses(response, topic: .storing)
            if let location = received.fields["Location"], (300...399).contains(received.status) {
                clauses.append(
                    Clause(.storing, "A load goes on with \(location), which has a key of its own.", "RFC 9110 §15.4"))
            }
            let next = CacheDecision.decide(
                for: facts, candidates: [Candidate(response: response, bodyLength: 0)], policy: policy,
                options: received.options, now: now)
            clauses.append(Clause(.storing, "The same request a moment later: \(next.phrase)."))
            if treatment.storage == .memoryOnly {
                clauses.append(Clause(.storing, "It stays in memory: the treatment says storage: .memoryOnly."))
            }
            return (clauses, nil, adviceClauses(response, options: received.options))
        }
    }

    // MARK: Advice

    /// What would make a stored response usable for longer, or cheaper.
    private func adviceClauses(_ response: StoredResponse, options: CachingOptions) -> [Clause] {
        let reuse = ReuseFacts(response)
        let freshness = Freshness(of: reuse, options: options, now: now)
        var advice: [(String, String?)] = []
        if reuse.directives.noCache {
            advice.append(
                (
                    "The response says no-cache: each use asks the origin. With max-age in its place, none would.",
                    "RFC 9111 §5.2.2.4"
                ))
        } else if freshness.source == .none {
            advice.append(
                (
                    "The origin could send Cache-Control: max-age=…; the app can set Treatment(lifetime: .whenMissing(seconds)).",
                    "RFC 9111 §5.2.2.1"
                ))
        } else if freshness.source == .heuristic {
            advice.append(
                ("The lifetime is a guess: a max-age from the origin would make it a promise.", "RFC 9111 §4.2.2"))
        } else if freshness.source == .explicit, freshness.lifetime == 0 {
            advice.append(
                (
                    "The origin gives it no lifetime (max-age=0, or an Expires that is past): a max-age above 0 would save the question.",
                    "RFC 9111 §5.2.2.1"
                ))
        }
        if reuse.directives.mustRevalidate(inSharedCache: options.isShared), !freshness.isFresh {
            let directive =
                reuse.directives.mustRevalidate
                ? "must-revalidate" : reuse.directives.proxyRevalidate ? "proxy-revalidate" : "s-maxage"
            advice.append(("\(directive) forbids any use while stale, offline too.", "RFC 9111 §5.2.2.2"))
        } else if !reuse.directives.noCache, reuse.directives.staleWhileRevalidate == nil,
            options.defaultStaleWhileRevalidate == nil, freshness.lifetime > 0
        {
            advice.append(
                ("With stale-while-revalidate=… it could be shown at once while it is refreshed.", "RFC 5861 §3"))
        }
        if response.entityTag == nil, response.lastModified == nil, (200...299).contains(response.status) {
            advice.append(
                ("With an ETag or a Last-Modified, a 304 without a body would renew it.", "RFC 9110 §8.8"))
        }
        let selecting = Set(response.vary.fields.map(\.name)).intersection(["cookie", "user-agent", "referer"])
        if !selecting.isEmpty {
            advice.append(
                (
                    "Vary names \(selecting.sorted().joined(separator: ", ")): nearly each request is a variant of its own.",
                    "RFC 9110 §12.5.5"
                ))
        }
        return advice.map { Clause(.advice, $0.0, $0.1) }
    }
}

extension CacheDecision {
    fileprivate var phrase: String {
        switch self {
        case .useStored(let reuse): reuse.basis == .fresh ? "answered from the store" : "answered from the store, stale"
        case .revalidate: "the origin is asked whether it is still valid"
        case .fetch: "loaded from the network again"
        case .unsatisfiable: "an error"
        }
    }
}

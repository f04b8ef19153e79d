import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Prints the cache's decisions about one request. `KeyDecision`, `CacheDecision`, `Freshness`, `StorageVerdict` and
/// `ErrorFallback.Verdict` carry their reasons and numbers: nothing is decided here.
package struct Explainer {
    /// The headings, in the order in which a cache decides.
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
    package struct Variant {
        var candidate: Candidate
        var layer: DiskURLCache.Layer

        package init(candidate: Candidate, layer: DiskURLCache.Layer) {
            self.candidate = candidate
            self.layer = layer
        }
    }

    private struct Received {
        var fields: HeaderFields
        var status: Int
        var sentAt: Date
        var options: CachingOptions
    }

    private let request: DiskURLCache.Request
    private let facts: RequestFacts
    private let key: KeyDecision
    private let variants: [Variant]
    private let options: CachingOptions
    let now: Date
    private var received: Received?
    private var lines: [Topic: [String]] = [:]
    var cacheOptions = DiskURLCache.Options()
    /// The transport's variant, if the key has one.
    package var variant: String?
    /// Further variants that have entries.
    package var otherVariants: [String] = []

    package init(
        _ request: DiskURLCache.Request, key: KeyDecision, variants: [Variant], now: Date, options: CachingOptions
    ) {
        (self.request, self.key, self.variants, self.now) = (request, key, variants, now)
        facts = RequestFacts(request)
        self.options = options.caching(facts.method, hasKey: key.key != nil)
    }

    /// The response to explain.
    package mutating func take(_ fields: HeaderFields, status: Int, sentAt: Date?, options: CachingOptions) {
        received = Received(
            fields: fields, status: status, sentAt: sentAt ?? now,
            options: options.caching(facts.method, hasKey: key.key != nil))
    }

    private var policy: ReusePolicy { request.policy }
    private var candidates: [Candidate] { variants.map(\.candidate) }
    /// The most recent response that `Vary` lets answer this request.
    private var selected: StoredResponse? { candidates.first { $0.response.answers(facts) }?.response }

    package mutating func explanation() -> DiskURLCache.Explanation {
        guard case .key(let key) = key else {
            let reason = key.refusal ?? .noKey
            sayWithoutKey(reason)
            return DiskURLCache.Explanation(
                outcome: .bypass(reason), notStoredReason: received == nil ? nil : reason, description: text)
        }
        let decision = CacheDecision.decide(
            for: facts, candidates: candidates, policy: policy, options: options, now: now)
        sayKey(key)
        sayRequest()
        sayStored()
        if let selected {
            sayFreshness(ReuseFacts(selected).governed(by: options), of: selected, options, .freshness)
            sayValidators(selected, .validators)
        }
        say(decision)
        let refusal = received.flatMap { sayStoring($0) }
        if received == nil, let selected { sayAdvice(selected, options) }
        return DiskURLCache.Explanation(outcome: outcome(of: decision), notStoredReason: refusal, description: text)
    }

    private var text: String {
        Topic.allCases.compactMap { topic in lines[topic].map { ([topic.rawValue] + $0).joined(separator: "\n") } }
            .joined(separator: "\n\n")
    }

    /// - Parameters:
    ///   - text: one sentence or several.
    ///   - source: the section that demands it; nil for a fact, or a choice of this cache.
    mutating func say(_ topic: Topic, _ text: String, _ source: String? = nil) {
        lines[topic, default: []].append("  " + text + (source.map { "  [\($0)]" } ?? ""))
    }

    /// As a load would report it.
    private func outcome(of decision: CacheDecision) -> DiskURLCache.Report.Outcome {
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

    // MARK: The key and the request

    private mutating func sayWithoutKey(_ reason: DiskURLCache.Reason) {
        say(.key, "This request has no key, so the cache passes it by: nothing is looked up or stored.")
        say(.key, "Why: \(reason).", reason.source)
        if let advice = reason.advice { say(.advice, advice) }
        if !Invalidation.isSafe(facts.method) {
            say(
                .decision, "When it succeeds, the stored responses of its URL are removed: it may have changed.",
                "RFC 9111 §4.4")
        }
    }

    private mutating func sayKey(_ key: RequestKey) {
        // A URL's user name and password are part of its key, and are not shown.
        say(.key, "The key is the URL \(key.uri).", "RFC 9111 §2, RFC 3986 §6.2")
        if facts.method == "HEAD" { say(.key, "A HEAD is answered from the response to a GET.", "RFC 9110 §9.3.2") }
        if let fragment = request.foundationURL?.fragment, !fragment.isEmpty {
            say(.key, "The fragment #\(fragment) is no part of the key: it never reaches the origin.")
        }
        if facts.fields["Authorization"] != nil {
            say(
                .key, "The value of Authorization is part of the key: other credentials have other entries.",
                "RFC 9111 §3.5")
        }
        if let variant {
            say(.key, "The variant \"\(variant)\" of the client is part of the key: other variants have other entries.")
        }
        let plain = [false, true].map { isShared in
            DiskURLCache.KeyPolicy.standard.decision(for: request, .init(isShared: isShared, variant: variant)).key
        }
        if !plain.contains(key) {
            say(.key, "A key policy adds to the key, or takes from it.")
        }
    }

    private mutating func sayRequest() {
        switch policy {
        case .useProtocol: break
        case .reloadIgnoring: say(.request, "Its cachePolicy asks for a reload from the network.")
        case .elseLoad: say(.request, "Its cachePolicy takes a stored response, however old, or the network's.")
        case .dontLoad: say(.request, "Its cachePolicy takes a stored response, however old, or fails.")
        case .revalidate: say(.request, "Its cachePolicy wants a validation before each use.")
        }
        if let name = ["Cache-Control", "Pragma"].first(where: { facts.fields[$0] != nil }) {
            say(.request, "It says \(name): \(facts.fields[name] ?? "").", "RFC 9111 §5.2.1")
        }
        for name in ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"] {
            guard let value = facts.fields[name] else { continue }
            say(.request, "It says \(name): \(value).", name == "Range" ? "RFC 9110 §14.2" : "RFC 9110 §13.1")
        }
        if options.isOffline { say(.request, "The cache is offline: no request is sent.", "RFC 9111 §4.2.4") }
    }

    // MARK: Stored responses

    private mutating func sayStored() {
        switch variants.count {
        case 0: say(.stored, "Nothing is stored under this key.")
        case 1: say(.stored, "One response is stored under this key.")
        default: say(.stored, "\(variants.count) variants are stored under this key.")
        }
        for (index, variant) in variants.enumerated() {
            let response = variant.candidate.response
            let age = span(now.timeIntervalSince(response.responseTime))
            let text =
                (variants.count == 1 ? "It" : "Variant \(index + 1)")
                + ": status \(response.status), \(variant.candidate.bodyLength) bytes, arrived or confirmed \(age) ago, from \(variant.layer)"
            say(.stored, text + selection(response.vary) + ".", response.vary.fields.isEmpty ? nil : "RFC 9111 §4.1")
        }
        for name in otherVariants { say(.stored, "More is stored for the variant \"\(name)\" of a client.") }
    }

    private func selection(_ vary: VaryKey) -> String {
        if vary.matchesNothing { return "; Vary: * fits no request" }
        if vary.fields.isEmpty { return "" }
        let different = vary.differences(from: facts.fields)
        return "; selected by \(vary.fields.map(\.name).joined(separator: ", "))"
            + (different.isEmpty
                ? ", which this request has alike"
                : ", but this request differs in \(different.joined(separator: ", "))")
    }

    /// The arithmetic of RFC 9111 §4.2 with the numbers of this response.
    private mutating func sayFreshness(
        _ reuse: ReuseFacts, of response: StoredResponse, _ options: CachingOptions, _ topic: Topic
    ) {
        let freshness = Freshness(of: reuse, options: options, now: now)
        let (lifetime, section) = origin(of: freshness, reuse, response, options)
        say(topic, "Lifetime: \(freshness.lifetime) s, \(lifetime).", section)
        let arrival = reuse.ageOnArrival
        say(
            topic,
            "Age: \(freshness.age) s = \(arrival.corrected) s when it arrived (the larger of Age + time on the way = \(arrival.value) s"
                + " + \(arrival.delay) s, and arrival - Date = \(arrival.apparent) s)"
                + " + \(freshness.age.subtractingSaturated(arrival.corrected)) s since.", "RFC 9111 §4.2.3")
        let sum = "\(freshness.lifetime) s - \(freshness.age) s"
        let rest = span(TimeInterval(freshness.staleness))
        say(
            topic,
            freshness.isFresh ? "Fresh: \(sum) leaves \(rest)." : "Stale: \(sum) is not above 0; stale for \(rest).",
            "RFC 9111 §4.2")
    }

    /// The source of the lifetime, and the section that defines it.
    private func origin(
        of freshness: Freshness, _ reuse: ReuseFacts, _ response: StoredResponse, _ options: CachingOptions
    ) -> (String, String?) {
        let isValid = reuse.statedLifetime(inSharedCache: options.isShared)?.isValid ?? true
        func directive(_ name: String) -> String {
            let field = reuse.directives.targetedField ?? "Cache-Control"
            return "from \(isValid ? "" : "the invalid \(name) of ")\(field): \(response.fields[field] ?? "")"
        }
        switch freshness.source {
        case .option: return ("set by the app (DiskURLCache.Options.lifetime)", nil)
        case .none: return ("as there is no max-age, no Expires, and nothing that allows a guess", "RFC 9111 §4.2.1")
        case .heuristic:
            let share = "\(Int(options.heuristicFraction * 100)) % of the \(span(reuse.unchangedFor ?? 0))"
            let limit = span(TimeInterval(options.heuristicLimit))
            return ("a guess: \(share) from Last-Modified to Date, at most \(limit)", "RFC 9111 §4.2.2")
        case .sharedMaxAge: return (directive("s-maxage"), isValid ? "RFC 9111 §5.2.2.10" : "RFC 9111 §4.2.1")
        case .maxAge: return (directive("max-age"), isValid ? "RFC 9111 §5.2.2.1" : "RFC 9111 §4.2.1")
        case .expires:
            let date = response.fields["Date"] ?? "absent: its arrival"
            return ("from Expires (\(response.fields["Expires"] ?? "")) minus Date (\(date))", "RFC 9111 §5.3")
        }
    }

    private mutating func sayValidators(_ response: StoredResponse, _ topic: Topic) {
        let names = ["ETag", "Last-Modified"].filter {
            $0 == "ETag" ? response.entityTag != nil : response.lastModified != nil
        }
        guard Revalidation.isValidatable(response, for: facts), !names.isEmpty else {
            return say(topic, "No validator can be used: once stale, it is loaded again as a whole.", "RFC 9111 §4.3.1")
        }
        let fields = names.map { "\($0): \(response.fields[$0] ?? "")" }.joined(separator: ", ")
        say(topic, "\(fields): once stale, the origin can confirm it with a 304.", "RFC 9111 §4.3.1")
    }

    // MARK: The decision

    private mutating func say(_ decision: CacheDecision) {
        switch decision {
        case .useStored(let reuse):
            let form = form(reuse.presentation)
            switch reuse.basis {
            case .fresh: say(.decision, "Answers from the store\(form): it is fresh. No request.", "RFC 9111 §4")
            case .stale(let reason): say(.decision, "Answers from the store\(form), stale: \(reason).", reason.source)
            }
            return
        case .unsatisfiable(let reason):
            return say(
                .decision, "Fails, since the network may not be asked. Why the store cannot answer: \(reason).",
                reason.source)
        case .revalidate(let revalidation):
            let reason = revalidation.reason
            let fields = revalidation.fields.fields.map { "\($0.name): \($0.value)" }.joined(separator: "; ")
            switch revalidation.purpose {
            case .complete(let start):
                say(.decision, "Asks the origin for the bytes from \(start) on, with \(fields).", "RFC 9111 §3.3")
            case .validate:
                say(
                    .decision, "Asks the origin with \(fields); a 304 is answered from the store. Why: \(reason).",
                    reason.source)
            }
        case .fetch(let reason, _): say(.decision, "Loads from the network. Why: \(reason).", reason.source)
        }
        guard selected != nil else { return }
        switch ErrorFallback.verdict(for: facts, candidates: candidates, policy: policy, options: options, now: now) {
        case .reuse:
            say(
                .decision, "Should the network fail, or the origin answer with a 5xx, the stored one is used.",
                "RFC 5861 §4")
        case .refused(let reason):
            say(.decision, "Should the network fail, the load fails. Why: \(reason).", reason.source)
            if received == nil, let advice = reason.advice { say(.advice, advice, reason.source) }
        }
    }

    // MARK: The answer

    private mutating func sayStoring(_ received: Received) -> DiskURLCache.Reason? {
        let exchange = Exchange(
            request: facts, url: request.url, candidates: candidates, status: received.status, fields: received.fields,
            requestTime: received.sentAt, responseTime: now, policy: policy)
        let control = received.fields["Cache-Control"].map { $0.isEmpty ? "" : ", Cache-Control: \($0)" } ?? ""
        let what = "The response (status \(received.status)\(control))"
        let (response, replacing): (StoredResponse, [Int])
        switch Storability.verdict(for: exchange, options: received.options) {
        case .store(let stored, let others): (response, replacing) = (stored, others)
        case .refuse(let reason):
            say(.storing, "\(what) is not stored: \(reason).", reason.source)
            if let advice = reason.advice { say(.advice, advice) }
            return reason
        }
        say(
            .storing,
            replacing.isEmpty
                ? "\(what) is stored." : "\(what) is stored and replaces \(replacing.count) stored before.",
            "RFC 9111 §3")
        if !response.vary.fields.isEmpty {
            let names = response.vary.fields.map(\.name).joined(separator: ", ")
            say(.storing, "It answers requests that are alike in \(names).", "RFC 9111 §4.1")
        }
        sayFreshness(ReuseFacts(response).governed(by: received.options), of: response, received.options, .storing)
        sayValidators(response, .storing)
        if let location = received.fields["Location"], (300...399).contains(received.status) {
            say(.storing, "A load continues with \(location), which has another key.", "RFC 9110 §15.4")
        }
        let next = CacheDecision.decide(
            for: facts, candidates: [Candidate(response: response, bodyLength: 0)], policy: policy,
            options: received.options, now: now)
        say(.storing, "The same request a moment later: \(next.phrase).")
        if cacheOptions.storage == .memoryOnly {
            say(.storing, "It stays in memory: the options say storage: .memoryOnly.")
        }
        sayAdvice(response, received.options)
        return nil
    }
}

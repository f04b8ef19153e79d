import DiskURLCache
import Foundation

/// Prints the cache's decisions about a request. It decides nothing: `KeyDecision`, `CacheDecision`, `Freshness`,
/// `StorageVerdict` and `ErrorFallback` bring their reasons and numbers.
struct Explainer {
    /// The headings, in the order in which a cache decides.
    enum Topic: String, CaseIterable {
        case key = "Key"
        case request = "The request"
        case stored = "Stored responses"
        case way = "Caches on the way"
        case freshness = "Freshness"
        case validators = "Validators"
        case decision = "The decision"
        case storing = "The answer"
        case advice = "Changes that would help"
    }

    /// Said if a stored response would replace an error.
    static let standsIn = "If the network fails or the origin sends a 5xx, the stored response is used."

    /// An answer of the origin, the time when its request was sent, and the options for it.
    typealias Received = (response: HTTPURLResponse, sentAt: Date, options: CachingOptions)

    let request: DiskURLCache.Request
    let facts: RequestFacts
    private let key: KeyDecision
    let variants: [StoredVariant]
    private(set) var options: CachingOptions
    let now: Date
    var received: Received?
    private var lines: [Topic: [String]] = [:]
    /// The app's options for the answer.
    var cacheOptions = DiskURLCache.Options()
    /// `DiskURLCache.Configuration.groupFields`
    var groupFields: [String] = []
    /// `DiskURLCache.Configuration.marksGroupsStale`
    var marksGroupsStale = false
    /// `DiskURLCache.Configuration.wrongDigest` is not `.accepted`.
    var comparesDigests = false
    /// The largest body that is stored, in bytes; nil if that is not known.
    var largestBody: Int?
    /// `DiskURLCache.Configuration.willCacheResponse` is set.
    var asksTheApp = false
    /// Why the options keep the received response out of the cache, whatever HTTP says; nil if they do not.
    var refusal: DiskURLCache.Reason?
    /// The transport's variant, if the key has one.
    var variant: String?
    /// The salt of the directory, by which a key has its digests of credentials.
    var salt: CredentialSalt?
    /// Further variants that have entries.
    var otherVariants: [String] = []

    init(
        _ request: DiskURLCache.Request, key: KeyDecision, variants: [StoredVariant], now: Date,
        options: CachingOptions, received: Received?
    ) {
        self.request = request
        self.key = key
        self.now = now
        self.received = received
        self.variants = variants.filter(\.isHTTP)
        facts = RequestFacts(request, key: key.key)
        self.options = options
        if key.key != nil {
            self.options.allow(facts.method)
            self.received?.options.allow(facts.method)
        }
    }

    var policy: ReusePolicy { request.policy }
    private var decider: RequestDecider {
        RequestDecider(request: facts, variants: variants, policy: policy, options: options, now: now)
    }
    /// Whether a stored response to such a request can be confirmed by a 304: the cache adds conditions to no other
    /// method.
    var isAskedConditionally: Bool { facts.isRetrieval || facts.method == "HEAD" }
    /// The most recent response that `Vary` selects for this request.
    var selected: StoredResponse? { variants.first { $0.response.answers(facts) }?.response }

    mutating func explanation() -> DiskURLCache.Explanation {
        guard case .key(let key) = key else {
            let reason = key.refusal ?? .noKey
            let isSent = decider.mayUseNetwork
            sayWithoutKey(reason, isSent: isSent)
            return DiskURLCache.Explanation(
                outcome: isSent ? .bypass(reason) : .notAllowed(reason),
                notStoredReason: received == nil ? nil : reason, printedText: text)
        }
        let decision = decider.decision()
        sayKey(key)
        sayRequest()
        sayStored()
        if let selected { sayFreshness(of: selected, options, .freshness, .validators) }
        say(decision)
        if let other = urlOfOtherResponse {
            say(
                .storing,
                "The response is that of \(other), to which the request was redirected: this cache stores each step"
                    + " of a redirect under its own URL. Explain that URL to learn what becomes of it.",
                "RFC 9110 §15.4")
            received = nil
        }
        let refusal = received.flatMap { sayStoring($0, decision) }
        if received == nil, let selected { sayWay(of: selected.fields) }
        sayReceived(isKeyed: true)
        if received == nil, let selected { sayAdvice(selected, for: decision, options) }
        return DiskURLCache.Explanation(outcome: outcome(of: decision), notStoredReason: refusal, printedText: text)
    }

    /// The URL of the given response, if it is not that of the request: the load was redirected.
    private var urlOfOtherResponse: String? {
        guard let url = received?.response.url,
            let asked = request.urlWithoutCredentials.flatMap(URLCanonicalizer.canonical),
            let answered = url.removingCredentials.map(\.absoluteString).flatMap(URLCanonicalizer.canonical),
            asked != answered
        else { return nil }
        return url.printed
    }

    private var text: String {
        var sections: [String] = []
        for topic in Topic.allCases {
            guard let lines = lines[topic] else { continue }
            sections.append(([topic.rawValue] + lines).joined(separator: "\n"))
        }
        return sections.joined(separator: "\n\n")
    }

    /// - Parameters:
    ///   - text: one sentence or several.
    ///   - source: the section that requires it; nil for a fact, or a choice of this cache.
    mutating func say(_ topic: Topic, _ text: String, _ source: String? = nil) {
        lines[topic, default: []].append("  " + text + (source.map { "  [\($0)]" } ?? ""))
    }

    mutating func say(_ topic: Topic, _ text: String, because reason: DiskURLCache.Reason) {
        say(topic, "\(text): \(reason).", reason.source)
    }

    /// The outcome that a load would report.
    private func outcome(of decision: CacheDecision) -> DiskURLCache.Report.Outcome {
        switch decision {
        case .useStored(let reuse):
            let layer = reuse.variant.layer
            return reuse.allowance.map { .staleHit(layer, because: $0) } ?? .hit(layer)
        case .revalidate(let revalidation):
            return .revalidated((revalidation.variant ?? variants[0]).layer)
        case .fetch(let reason, _): return .network(because: reason)
        case .unsatisfiable(let reason): return .notAllowed(reason)
        }
    }

    /// Why the request itself wants the origin's answer: then no change of the response helps. Nil if it does not.
    private func wish(in decision: CacheDecision) -> DiskURLCache.Reason? {
        let reason: DiskURLCache.Reason
        switch decision {
        case .fetch(let why, _), .unsatisfiable(let why): reason = why
        case .revalidate(let revalidation): reason = revalidation.reason
        case .useStored: return nil
        }
        let wishes: [DiskURLCache.Reason] = [.cachePolicy, .requestDirective, .requestNoStore, .precondition]
        return wishes.contains(reason) ? reason : nil
    }

    /// Advice about a response, if it is the response that has to change.
    mutating func sayAdvice(
        _ response: StoredResponse, for decision: CacheDecision, _ options: CachingOptions
    ) {
        if let wish = wish(in: decision) {
            if let advice = wish.advice { say(.advice, advice, wish.source) }
        } else if case .unsatisfiable = decision {
            // What forbids the use was said with the decision.
        } else {
            sayAdvice(response, options)
        }
    }

    // MARK: The key and the request

    private mutating func sayWithoutKey(_ reason: DiskURLCache.Reason, isSent: Bool) {
        say(.key, "This request has no key: it is neither looked up nor stored.")
        say(.key, "Why", because: reason)
        if let advice = reason.advice { say(.advice, advice) }
        if !isSent {
            say(.decision, "Fails, since no request may be sent.")
        } else if !Invalidation.isSafe(facts.method) {
            if cacheOptions.invalidatesURL == false {
                say(.decision, "The stored responses of its URL stay: the options say invalidatesURL: false.")
            } else {
                say(.decision, "If it succeeds, the stored responses of its URL are removed.", "RFC 9111 §4.4")
            }
        }
        sayReceived(isKeyed: false)
    }

    private mutating func sayKey(_ key: RequestKey) {
        // A URL's user name and password are part of its key, and are not shown.
        say(.key, "The key is the URL \(key.uri).", "RFC 9111 §2, RFC 3986 §6.2")
        if facts.method == "HEAD" { say(.key, "A HEAD is answered from the response to a GET.", "RFC 9110 §9.3.2") }
        if facts.method == "QUERY" {
            say(
                .key, "The body of a QUERY and the type, coding and language of the body are part of the key.",
                "RFC 10008 §2.7")
        }
        if !["GET", "HEAD", "QUERY"].contains(facts.method) {
            say(.key, "A key policy gives a \(facts.method) a key, of which the method and the body are parts.")
        }
        if let fragment = request.foundationURL?.fragment, !fragment.isEmpty {
            say(.key, "The fragment #\(fragment) is not part of the key: it is not sent to the origin.")
        }
        if facts.fields["Authorization"] != nil {
            say(.key, "The value of Authorization is part of the key.", "RFC 9111 §3.5")
        }
        if let variant { say(.key, "The variant \"\(variant)\" of the client is part of the key.") }
        func isStandard(inSharedCache isShared: Bool) -> Bool {
            let form = RequestKey.Form(isShared: isShared, variant: variant, salt: salt)
            return DiskURLCache.KeyPolicy.standard.decision(for: request, form).key == key
        }
        if !isStandard(inSharedCache: false), !isStandard(inSharedCache: true) {
            say(.key, "A key policy changes the standard key.")
        }
    }

    private mutating func sayRequest() {
        switch policy {
        case .useProtocol: break
        case .reloadIgnoring: say(.request, "Its cachePolicy asks for a reload from the network.")
        case .elseLoad: say(.request, "Its cachePolicy uses any stored response, however old, and otherwise loads.")
        case .dontLoad: say(.request, "Its cachePolicy uses any stored response, however old, and otherwise fails.")
        case .revalidate: say(.request, "Its cachePolicy asks for a revalidation before each use.")
        }
        let sections = [
            ("Cache-Control", "RFC 9111 §5.2.1"), ("Pragma", "RFC 9111 §5.4"), ("Range", "RFC 9110 §14.2"),
            ("If-None-Match", "RFC 9110 §13.1"), ("If-Modified-Since", "RFC 9110 §13.1"),
            ("If-Match", "RFC 9110 §13.1"),
            ("If-Unmodified-Since", "RFC 9110 §13.1"), ("If-Range", "RFC 9110 §13.1"),
        ]
        for (name, section) in sections {
            if let value = facts.fields[name] { say(.request, "The request says \(name): \(value).", section) }
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
            let response = variant.response
            let age = span(now.timeIntervalSince(response.responseTime))
            let name = variants.count == 1 ? "The response" : "Variant \(index + 1)"
            let size = "status \(response.status), \(variant.bodyLength) bytes"
            let origin = "arrived or confirmed \(age) ago, from \(variant.layer)"
            let source = response.vary.fields.isEmpty ? nil : "RFC 9111 §4.1"
            say(.stored, "\(name): \(size), \(origin)\(selection(response.vary)).", source)
        }
        if let selected { sayGroups(of: selected.fields, .stored) }
        for name in otherVariants { say(.stored, "More is stored for the variant \"\(name)\" of a client.") }
    }

    private func selection(_ vary: VaryKey) -> String {
        if vary.matchesNothing { return "; Vary: * matches no request" }
        if vary.fields.isEmpty { return "" }
        let names = vary.fields.map(\.name).joined(separator: ", ")
        let different = vary.differences(from: facts.fields).joined(separator: ", ")
        if different.isEmpty { return "; selected by \(names), the same as in this request" }
        return "; selected by \(names), but this request differs in \(different)"
    }

    // MARK: The decision

    private mutating func say(_ decision: CacheDecision) {
        switch decision {
        case .useStored(let reuse):
            let form = form(reuse.presentation)
            if let allowance = reuse.allowance {
                say(.decision, "Answers from the store\(form), stale", because: allowance)
            } else {
                say(.decision, "Answers from the store\(form): it is fresh. No request is sent.", "RFC 9111 §4")
            }
            return
        case .unsatisfiable(let reason):
            say(.decision, "Fails, since no request may be sent. Why one would be needed", because: reason)
            // Settings for a network that is missing do not help a request that forbids the network itself.
            if options.isOffline, let advice = reason.advice { say(.advice, advice) }
            return
        case .revalidate(let revalidation):
            let fields = revalidation.fields.fields.map { "\($0.name): \($0.value)" }.joined(separator: "; ")
            let request = "Sends a conditional request with \(fields); a 304 is answered from the store"
            say(.decision, "\(request). Why", because: revalidation.reason)
        case .fetch(let reason, _): say(.decision, "Loads from the network. Why", because: reason)
        }
        guard selected != nil else { return }
        switch decider.errorFallback() {
        case .reuse:
            say(.decision, Self.standsIn, "RFC 5861 §4")
        case .refused(let reason):
            say(.decision, "If the network fails, the load fails. Why", because: reason)
            // If the request itself wants the network, the advice for a failure would not apply to it.
            if received == nil, wish(in: decision) == nil, let advice = reason.advice {
                say(.advice, advice, reason.source)
            }
        }
    }

    private func form(_ presentation: Presentation) -> String {
        switch presentation {
        case .whole: ""
        case .headersOnly: ", header fields only"
        case .notModified: " with a 304, since the request's own condition is met"
        case .range(let bytes, let first, let total): " with a 206: \(bytes.count) bytes from \(first) of \(total)"
        case .rangeNotSatisfiable(let total): " with a 416: the body has \(total) bytes"
        }
    }
}

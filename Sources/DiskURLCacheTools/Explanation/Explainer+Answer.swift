import DiskURLCache
import Foundation

// What becomes of an answer, and what it says about other responses and other caches.

extension Explainer {
    /// Returns why the answer is not stored.
    mutating func sayStoring(_ received: Received, _ decision: CacheDecision) -> DiskURLCache.Reason? {
        let fields = HeaderFields(received.response)
        let status = received.response.statusCode
        let exchange = Exchange(
            request: facts, variants: variants, status: status, fields: fields,
            requestTime: received.sentAt, responseTime: now, policy: policy, storedOptions: options,
            refusal: refusal)
        let control = fields["Cache-Control"].map { $0.isEmpty ? "" : ", Cache-Control: \($0)" } ?? ""
        let what = "The response (status \(status)\(control))"
        if isStored(fields, status: status) {
            say(.storing, "\(what) is the stored one, as it was delivered: nothing new is stored.")
            if let selected { sayAdvice(selected, for: decision, received.options) }
            return nil
        }
        var verdict = Storability.verdict(for: exchange, options: received.options)
        let length = ResponseHead(status: status, fields: fields).bodyLength(to: facts.method) ?? 0
        if case .store = verdict, let largestBody, length > largestBody || largestBody == 0 {
            verdict = .refuse(.tooLarge(bytes: length, limit: largestBody))
        }
        let (response, replacing): (StoredResponse, [StoredVariant])
        switch verdict {
        case .store(let stored, let others, _): (response, replacing) = (stored, others)
        case .refuse(let reason):
            say(.storing, "\(what) is not stored", because: reason)
            if let advice = reason.advice { say(.advice, advice) }
            return reason
        case .hold(_, let reason):
            say(.storing, "\(what) is not stored", because: reason)
            say(.storing, "It is held in memory, and answers for the time that the app has set.")
            return reason
        }
        switch replacing.count {
        case 0: say(.storing, "\(what) is stored.", "RFC 9111 §3")
        case 1: say(.storing, "\(what) is stored and replaces the stored one.", "RFC 9111 §3")
        default: say(.storing, "\(what) is stored and replaces \(replacing.count) stored ones.", "RFC 9111 §3")
        }
        if asksTheApp { say(.storing, "It is not, if Configuration.willCacheResponse refuses it.") }
        if !response.vary.fields.isEmpty {
            let names = response.vary.fields.map(\.name).joined(separator: ", ")
            say(.storing, "It answers requests with the same values of \(names).", "RFC 9111 §4.1")
        }
        sayGroups(of: response.fields, .storing)
        let digests = BodyDigests(fields, status: status, method: facts.method, isDecoded: true)
        if comparesDigests, let digests {
            say(.storing, "If the body contradicts \(digests.names), it is not stored after all.", "RFC 9530 §3")
        }
        sayFreshness(of: response, received.options, .storing, .storing)
        if let location = fields.single("Location"), (300...399).contains(status) {
            let target = URL(string: location, relativeTo: received.response.url)?.absoluteURL.printed
            say(.storing, "The load continues with \(target ?? "its target"), which has its own key.", "RFC 9110 §15.4")
        }
        let next = RequestDecider(
            request: facts, variants: [StoredVariant(ifStored: response, at: now)], policy: policy,
            options: received.options, now: now)
        say(.storing, "The same request a moment later: \(next.decision().phrase).")
        if cacheOptions.storage == .memoryOnly {
            say(.storing, "The response stays in memory: the options say storage: .memoryOnly.")
        }
        sayAdvice(response, for: decision, received.options)
        return nil
    }
}

extension Explainer {
    /// Fields in which a delivered response may differ from the stored one: the cache adds them, or makes them
    /// true of the body.
    private static let ofDelivery: Set<String> = ["age", "cache-status", "content-length", "date"]

    /// Whether the given response is the stored one as a load delivered it.
    private func isStored(_ fields: HeaderFields, status: Int) -> Bool {
        guard let selected, selected.status == status else { return false }
        func compared(_ fields: HeaderFields) -> HeaderFields {
            let stored = StorableFields.filtered(fields, isShared: options.isShared).fields
            return HeaderFields(stored.filter { !Self.ofDelivery.contains($0.name.lowercased()) })
        }
        // Foundation joins the values of a repeated field.
        return HeaderFields(dictionary: compared(fields).dictionary)
            == HeaderFields(dictionary: compared(selected.fields).dictionary)
    }
}

extension CacheDecision {
    fileprivate var phrase: String {
        switch self {
        case .useStored(let reuse): "answered from the store" + (reuse.allowance == nil ? "" : ", stale")
        case .revalidate: "the origin is asked whether it is still valid"
        case .fetch: "loaded from the network again"
        case .unsatisfiable: "an error"
        }
    }
}

// What a response says about other responses, and about other caches.

extension Explainer {
    mutating func sayGroups(of fields: HeaderFields, _ topic: Topic) {
        let names = CacheGroups.names(of: fields, keyFields: groupFields)
        guard !names.isEmpty else { return }
        let groups = names.map { "\"\($0)\"" }.joined(separator: ", ")
        let consequence = marksGroupsStale ? "makes it stale" : "removes it"
        say(
            topic,
            "The response is in the groups \(groups) of its origin: an answer that invalidates one \(consequence).",
            "RFC 9875 §2")
    }

    /// What other caches did with a response, by the fields that they added to it.
    mutating func sayWay(of fields: HeaderFields) {
        for statement in CachesOnTheWay(fields).statements { say(.way, statement.text, statement.source) }
    }

    /// What the answer says about other caches, and about other responses of this one.
    /// - Parameter isKeyed: the request has a key.
    mutating func sayReceived(isKeyed: Bool) {
        guard let received else { return }
        sayWay(of: HeaderFields(received.response))
        let invalidation = Invalidation(
            method: facts.method, isKeyed: isKeyed, concernsURL: cacheOptions.invalidatesURL != false,
            target: received.response.url, status: received.response.statusCode,
            fields: HeaderFields(received.response), isShared: received.options.isShared)
        guard let invalidation else { return }
        if invalidation.emptiesHost {
            say(.storing, "All that is stored of its host is removed", because: .clearSiteData)
        } else if !invalidation.groups.isEmpty {
            say(
                .storing, "Stored responses of its origin are \(marksGroupsStale ? "marked stale" : "removed")",
                because: .groupInvalidation(names: invalidation.groups))
        }
    }
}

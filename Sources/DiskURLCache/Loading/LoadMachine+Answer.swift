import Foundation

// From the stored responses to an answer, or to the decision to send a request; and the way of each answer to the
// client.

extension LoadMachine {
    /// The first step of a hop: what `.found` does, without an event.
    mutating func decide(by stored: StoredResponses, now: Date) -> [Action] {
        self.stored = stored
        return decide(now: now)
    }

    private mutating func decide(now: Date) -> [Action] {
        guard hop.hasKey else {
            // A hop without a key, such as a request to which a delegate gave a stream: the network answers, and the
            // answer is not stored.
            guard mayUseNetwork else { return refuse(hop.decision.refusal ?? .methodNotCached) }
            return fetch(.methodNotCached, now: now)
        }
        var decision = decider(now: now).decision()
        if !followedKeys.isEmpty, case .useStored(let reuse) = decision, isCycle(reuse) {
            // Two URLs may each have redirected to the other at some time. The origin knows which one has moved last.
            decision = decider(now: now, policy: .revalidate(because: .stale)).decision()
        }
        if let reuse = stored.standIn, !isCycle(reuse) { decision = .useStored(reuse) }
        if waited != nil, let reuse = confirmedMeanwhile(decision, now: now) { decision = .useStored(reuse) }
        switch decision {
        case .useStored(let reuse):
            if let entry = reuse.variant.entry { return answer(reuse, body: .memory(entry.body), now: now) }
            state = .reading(reuse)
            return [.readBody(reuse.variant)]
        case .revalidate(let revalidation):
            return fetch(revalidation.reason, fields: revalidation.fields, revalidation: revalidation, now: now)
        case .fetch(let reason, let fields):
            return fetch(reason, fields: fields, now: now)
        case .unsatisfiable(let reason):
            return refuse(reason)
        }
    }

    /// The reuse of a response that the load would validate, if the load for which this one waited has just done that:
    /// the origin has confirmed or sent it after this hop began, so one question is enough for both.
    private func confirmedMeanwhile(_ decision: CacheDecision, now: Date) -> Reuse? {
        guard case .revalidate(let revalidation) = decision, let variant = revalidation.variant,
            variant.response.responseTime >= hopStartedAt
        else { return nil }
        return decider(now: now).reuse(of: variant)
    }

    /// Decides about the request of this hop, from the stored responses.
    /// - Parameter policy: nil for the client's.
    func decider(now: Date, policy: ReusePolicy? = nil) -> RequestDecider {
        RequestDecider(
            request: facts, variants: stored.variants, policy: policy ?? self.policy, options: stored.options,
            now: now)
    }

    /// Whether a stored response is a redirect that this load has followed before, and the origin may be asked.
    func isCycle(_ reuse: Reuse) -> Bool {
        guard let key = hop.key, followedKeys.contains(key), mayUseNetwork else { return false }
        return (300...399).contains(reuse.variant.response.status)
    }

    private var mayUseNetwork: Bool { decider(now: .distantPast).mayUseNetwork }

    /// RFC 9111 §5.2.1.7 wants a 504 for `only-if-cached`; the URL loading system's other ways to forbid the network
    /// have their errors. The driver adds the reason to the 504.
    private mutating func refuse(_ reason: DiskURLCache.Reason) -> [Action] {
        let isOffline = stored.options.isOffline
        if isOffline || policy == .dontLoad {
            return fail(refusal(isOffline: isOffline, because: reason), because: .notAllowed(reason))
        }
        state = .ended
        report.note(.notAllowed(reason), status: 504)
        return [.deliverStoredHead(ResponseHead(status: 504, fields: ["Content-Length": "0"])), .finish]
    }

    /// Answers from the store.
    /// - Parameter failed: the request whose failure the stored response replaces; nil if none was sent.
    mutating func answer(_ reuse: Reuse, insteadOf failed: Fetch? = nil, body: Body?, now: Date) -> [Action] {
        let variant = reuse.variant
        guard let body, variant.canServe(reuse.presentation, of: body.count) else {
            // Removed, damaged or of another length than the decision assumed: as if it were not stored.
            stored = stored.removed
            return decide(now: now)
        }
        let response = variant.response
        used = variant
        if let failed {
            report.note(
                .standIn(variant.layer, because: reuse.allowance, asked: failed.reason),
                status: reuse.presentation.status(of: response), freshness: reuse.freshness,
                forwardStatus: failed.answer?.head.status)
        } else {
            report.note(
                .hit(variant.layer, reuse.allowance), status: reuse.presentation.status(of: response),
                freshness: reuse.freshness, waited: waited)
        }
        let refresh: [Action] = reuse.backgroundRevalidation.map { [.refreshInBackground($0)] } ?? []
        let part = body.part(reuse.presentation)
        // A stored redirect is followed like one from the network; a condition of the client is no redirect.
        if reuse.presentation.keepsStatus, let next = redirect(status: response.status, fields: response.fields) {
            let head = reuse.presentation.head(of: response, age: reuse.freshness.age)
            return refresh + redirected(Answer(head, redirect: next, stored: part), next: next)
        }
        state = .ended
        report.bytes += part.count
        let answer = Action.answer(
            StoredAnswer(of: variant, response, reuse.presentation, age: reuse.freshness.age, body: part))
        return refresh.isEmpty ? [answer] : refresh + [answer]
    }

    /// Whether a stored body may stay in its file while it is delivered: the client takes pieces, and the body is used
    /// unchanged.
    var acceptsOpenBody: Bool {
        guard streams || isRefresh else { return false }
        // A redirect's body is delivered if the redirect is not followed.
        switch state {
        case .reading(let reuse, _): return !(300...399).contains(reuse.variant.response.status)
        case .readingForAnswer(_, let variant, _): return !(300...399).contains(variant.response.status)
        case .lookingUp, .fetching, .confirmingStorage, .redirecting, .ended: return false
        }
    }

    // MARK: To the next hop, or to the client

    mutating func proceed(_ answer: Answer) -> [Action] {
        // It concerns one stored response, not another URL, and has no client.
        if isRefresh { return endRefresh() }
        if let next = answer.redirect { return redirected(answer, next: next) }
        return deliver(answer)
    }

    func redirect(status: Int, fields: HeaderFields) -> DiskURLCache.Request? {
        hop.request.following(status: status, fields: fields)
    }

    mutating func redirected(_ answer: Answer, next: DiskURLCache.Request) -> [Action] {
        var isLoop = false
        if answer.decision != nil {
            isLoop = redirectsByOrigin.contains { $0.from.asksTheSame(as: hop.request) && $0.to.asksTheSame(as: next) }
            redirectsByOrigin.append((hop.request, next))
        }
        guard hops < DiskURLCache.Request.redirectLimit, !isLoop else {
            let failure = fail(loadError(.httpTooManyRedirects), because: .failed(code: "redirects"))
            // Stored, these redirects would fail each later load without a request.
            let keys = followedKeys.union([hop.key].compactMap { $0 })
            return (mayUseNetwork && !keys.isEmpty ? [.forget(keys)] : []) + failure
        }
        state = .redirecting(answer)
        return [.redirect(answer.head, next)]
    }

    mutating func deliver(_ answer: Answer) -> [Action] {
        state = .ended
        if answer.isDelivered { return [.finish] }
        // A redirect that is not followed may have come from the store: its head is in `answer` in both cases.
        var actions: [Action] = [answer.redirect == nil ? .deliverNetworkHead : .deliverStoredHead(answer.head)]
        if let body = answer.stored {
            if body.count > 0 { actions.append(.deliverBody(body)) }
            report.bytes += body.count
        } else if arrivedBytes > 0 {
            actions.append(.deliverGathered)
            report.bytes += arrivedBytes
        }
        return actions + [.finish]
    }

    /// A refresh has no client: without a response to store, it ends.
    mutating func endRefresh() -> [Action] {
        state = .ended
        return [.finish]
    }

    mutating func fail(_ error: Swift.Error, because outcome: LoadReport.Outcome = .failed(code: "network")) -> [Action]
    {
        state = .ended
        used = nil
        report.note(outcome)
        return [.fail(error)]
    }

    /// The error of a load that may send no request.
    /// - Parameter reason: why the stored responses do not answer.
    func refusal(isOffline: Bool, because reason: DiskURLCache.Reason) -> URLError {
        loadError(isOffline ? .notConnectedToInternet : .resourceUnavailable, because: reason)
    }

    /// - Parameter reason: why the stored responses do not answer, if the network may not be used.
    func loadError(_ code: URLError.Code, because reason: DiskURLCache.Reason? = nil) -> URLError {
        var userInfo: [String: Any] = [NSLocalizedDescriptionKey: Self.description(of: code)]
        if let reason {
            let policy =
                code == .notConnectedToInternet ? "DiskURLCache.isOffline is true" : "the cachePolicy forbids it"
            userInfo[NSLocalizedFailureReasonErrorKey] = "No request was sent (\(policy)): \(reason.sentences)"
        }
        if let url = hop.request.foundationURL { userInfo.setFailingURL(url) }
        return URLError(code, userInfo: userInfo)
    }

    /// The error of the network, with the reason why the stored response does not replace it. An error that says why
    /// by itself, and one of a transport of the app, stay as they are.
    static func explained(_ error: Swift.Error, because reason: DiskURLCache.Reason) -> Swift.Error {
        guard let error = error as? URLError, error.code != .cancelled,
            error.errorUserInfo[NSLocalizedFailureReasonErrorKey] == nil
        else { return error }
        var userInfo = error.errorUserInfo
        userInfo[NSLocalizedFailureReasonErrorKey] = "A stored response was not used instead: \(reason.sentences)"
        return URLError(error.code, userInfo: userInfo)
    }

    /// The text that Foundation has for the errors that a load makes itself.
    private static func description(of code: URLError.Code) -> String {
        switch code {
        case .httpTooManyRedirects: "too many HTTP redirects"
        case .timedOut: "The request timed out."
        case .notConnectedToInternet: "The Internet connection appears to be offline."
        case .resourceUnavailable: "resource unavailable"
        case .dataLengthExceedsMaximum: "resource exceeds maximum size"
        case .badServerResponse: "bad server response"
        default: "The load failed."
        }
    }
}

extension [String: Any] {
    /// For the `userInfo` of an error: the URL that could not be loaded, as Foundation's own errors have it.
    mutating func setFailingURL(_ url: URL) {
        self[NSURLErrorFailingURLErrorKey] = url
        // The constant for this key is deprecated.
        self["NSErrorFailingURLStringKey"] = url.absoluteString
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// From the stored responses to an answer, or to the decision to send a request; and the way of each answer to the client.

extension LoadMachine {
    mutating func decide(now: Date) -> [Action] {
        guard hop.key != nil else {
            // A hop without a key, such as a request to which a delegate gave a stream: the network answers, and the answer is not stored.
            return fetch(.methodNotCached, fields: HeaderFields(), revalidation: nil, now: now)
        }
        switch CacheDecision.decide(
            for: facts, candidates: candidates, policy: policy, options: storedOptions, now: now)
        {
        case .useStored(let reuse):
            if let body = candidates[reuse.index].body { return answer(reuse, body: .whole(body), now: now) }
            state = .reading(reuse)
            return [.readBody(index: reuse.index)]
        case .revalidate(let revalidation):
            return fetch(revalidation.reason, fields: revalidation.fields, revalidation: revalidation, now: now)
        case .fetch(let reason, let fields):
            return fetch(reason, fields: fields, revalidation: nil, now: now)
        case .unsatisfiable(let reason):
            return refuse(reason)
        }
    }

    /// RFC 9111 §5.2.1.7 wants a 504 for `only-if-cached`; the URL loading system's other ways to forbid the network have their
    /// errors.
    private mutating func refuse(_ reason: DiskURLCache.Reason) -> [Action] {
        let isOffline = storedOptions.isOffline
        if isOffline || policy == .dontLoad {
            let code: URLError.Code = isOffline ? .notConnectedToInternet : .resourceUnavailable
            return fail(loadError(code, because: reason), because: .notAllowed(reason))
        }
        guard let url = request.url else { return fail(loadError(.badURL), because: .notAllowed(reason)) }
        state = .ended
        return [
            .report(Report(outcome: .failed(.notAllowed(reason)), status: 504)),
            .deliverStoredHead(ResponseHead(status: 504, fields: ["Content-Length": "0"]), url), .finish,
        ]
    }

    /// Answers from the store.
    mutating func answer(_ reuse: Reuse, body: StoredBody?, now: Date) -> [Action] {
        guard let body, candidates[reuse.index].canServe(reuse.presentation, of: body.count), let url = request.url
        else {
            // Removed, damaged or of another length than the decision assumed: as if it were not stored.
            candidates = []
            return decide(now: now)
        }
        let stored = candidates[reuse.index].response
        var actions: [Action] = []
        // The greatest number of actions: growing the list would cost more than all decisions here.
        actions.reserveCapacity(5)
        if let revalidation = reuse.backgroundRevalidation {
            actions.append(.refreshInBackground(revalidation, hop))
        }
        let report = Report(reuse, of: stored, collapsedInto: waited)
        // A stored redirect is followed like one from the network; a condition of the client is no redirect.
        if reuse.presentation == .whole, let next = redirect(status: stored.status, fields: stored.fields) {
            let head = reuse.presentation.head(of: stored, age: reuse.age)
            return actions + redirected(Answer(head: head, report: report, redirect: next, stored: body), next: next)
        }
        state = .ended
        actions.append(.report(report))
        actions.append(
            .deliverReusedHead(reuse.presentation, of: stored, age: reuse.age, index: reuse.index, url))
        let part = body.part(reuse.presentation)
        if part.count > 0 { actions.append(.deliverBody(part)) }
        actions.append(.finish)
        return actions
    }

    /// Whether a stored body may stay in its file while it is delivered: the client takes pieces, and the body is used unchanged.
    var takesOpenBody: Bool {
        guard settings.streams || isRefresh else { return false }
        // A redirect's body is delivered if the redirect is not followed.
        switch state {
        case .reading(let reuse): return !(300...399).contains(candidates[reuse.index].response.status)
        case .readingForAnswer(let answer, let index):
            guard case .freshen = answer.decision else { return false }
            return !(300...399).contains(candidates[index].response.status)
        case .lookingUp, .fetching, .confirmingStorage, .redirecting, .ended: return false
        }
    }

    // MARK: To the next hop, or to the client

    mutating func proceed(_ answer: Answer) -> [Action] {
        // A refresh concerns one stored response, not another URL.
        if let next = answer.redirect, !isRefresh { return redirected(answer, next: next) }
        return deliver(answer)
    }

    func redirect(status: Int, fields: HeaderFields) -> URLRequest? {
        RedirectRequest.following(request, status: status, fields: fields)
    }

    mutating func redirected(_ answer: Answer, next: URLRequest) -> [Action] {
        guard hops < RedirectRequest.limit else {
            return fail(loadError(.httpTooManyRedirects), because: .redirects)
        }
        state = .redirecting(answer)
        return [.redirect(answer.head, next)]
    }

    mutating func deliver(_ answer: Answer) -> [Action] {
        guard !answer.isDelivered else {
            state = .ended
            return answer.isReported ? [.finish] : [.report(answer.report), .finish]
        }
        guard let url = request.url else { return fail(loadError(.badURL), because: .redirects) }
        state = .ended
        var actions: [Action] = [.report(answer.report)]
        // A redirect that is not followed may have come from the store: its head is in `answer` in both cases.
        actions.append(answer.redirect == nil ? .deliverNetworkHead : .deliverStoredHead(answer.head, url))
        if let body = answer.stored {
            if body.count > 0 { actions.append(.deliverBody(body)) }
        } else if arrivedBytes > 0 {
            actions.append(.deliverGathered)
        }
        return actions + [.finish]
    }

    /// A refresh has no client: without a response to store, it ends.
    mutating func endRefresh() -> [Action] {
        state = .ended
        return [.finish]
    }

    mutating func fail(_ error: Swift.Error, because reason: Report.Failure) -> [Action] {
        state = .ended
        return [.report(Report(outcome: .failed(reason))), .fail(error)]
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// From the request to an answer out of the store, or to the decision to ask the network.

extension LoadMachine {
    mutating func lookUp(now: Date) -> [Action] {
        guard let key else {
            // A hop without a key, such as one that a delegate gave a stream: the network answers, nothing is stored.
            candidates = []
            return fetch(.methodNotCached, fields: HeaderFields(), revalidation: nil, now: now)
        }
        state = .lookingUp
        return [.lookUp(key)]
    }

    mutating func decide(now: Date) -> [Action] {
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

    /// RFC 9111 §5.2.1.7 wants a 504 for `only-if-cached`; the URL loading system's own ways to forbid the network
    /// have errors of their own.
    private mutating func refuse(_ reason: CacheMissReason) -> [Action] {
        let isOffline = storedOptions.isOffline
        if isOffline || policy == .dontLoad {
            let code: URLError.Code = isOffline ? .notConnectedToInternet : .resourceUnavailable
            return fail(loadError(code), because: .notAllowed(reason))
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
            // Removed, damaged or not of the length that was decided on: as if nothing were stored.
            candidates = []
            return decide(now: now)
        }
        let stored = candidates[reuse.index].response
        var actions: [Action] = []
        // As many as there are at most: growing the list would cost more than all that is decided here.
        actions.reserveCapacity(5)
        if let revalidation = reuse.backgroundRevalidation, let target {
            actions.append(.refreshInBackground(revalidation, target))
        }
        let report = Report(reuse, of: stored, collapsedInto: waited)
        // A redirect from the store is followed as one from the network is; a condition of the client is not.
        if reuse.presentation == .whole, let next = redirect(status: stored.status, fields: stored.fields) {
            arriving = Arriving(stored: body)
            let head = reuse.presentation.head(of: stored, age: reuse.age)
            return actions + redirected(Answer(head: head, report: report, redirect: next), next: next, now: now)
        }
        state = .ended
        actions.append(.report(report))
        actions.append(
            .deliverReusedHead(reuse.presentation, of: stored, age: reuse.age, index: reuse.index, url))
        if let delivery = deliver(body.part(reuse.presentation)) { actions.append(delivery) }
        actions.append(.finish)
        return actions
    }

    /// Whether a stored body may be left in its file while it is delivered: the client takes pieces, and nothing is made of it.
    var takesOpenBody: Bool {
        guard settings.streams || isRefresh else { return false }
        // A redirect's body is delivered where the redirect is not followed.
        switch state {
        case .reading(let reuse): return !(300...399).contains(candidates[reuse.index].response.status)
        case .readingForAnswer(let answer, let index):
            guard case .freshen = answer.decision else { return false }
            return !(300...399).contains(candidates[index].response.status)
        default: return false
        }
    }

    /// Nil for an empty one.
    func deliver(_ body: StoredBody) -> Action? {
        switch body {
        case .whole(let data): data.isEmpty ? nil : .deliverData(data)
        case .open(let body): body.isEmpty ? nil : .deliverOpenBody(body)
        }
    }
}

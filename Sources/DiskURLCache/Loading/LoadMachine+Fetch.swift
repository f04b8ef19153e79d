import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// From a request to the network to what becomes of its answer.

extension LoadMachine {
    mutating func fetch(
        _ reason: FetchReason, fields: HeaderFields, revalidation: Revalidation?, now: Date
    ) -> [Action] {
        var outgoing = request
        // What is left to decide is the origin's part; Foundation must not answer from a cache of its own.
        outgoing.cachePolicy = .reloadIgnoringLocalCacheData
        for field in fields.fields {
            outgoing.setValue(field.value, forHTTPHeaderField: field.name)
        }
        state = .fetching(Fetch(reason: reason, revalidation: revalidation, requestTime: now))
        arriving = Arriving(limit: settings.largestStorableBody())
        return [.fetch(outgoing, collapsible: isCollapsible)]
    }

    /// Only requests whose answer may serve others wait for each other, and each waits once: what came of it was of no
    /// use to this one.
    private var isCollapsible: Bool {
        guard facts.method == "GET", key != nil, waited == nil, policy != .reloadIgnoring,
            !RequestDirectives(facts.fields).noStore
        else { return false }
        return ["Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"]
            .allSatisfy { facts.fields[$0] == nil }
    }

    mutating func receive(_ head: ResponseHead, fetch: Fetch, now: Date) -> [Action] {
        let decision = ResponseDecision.decide(
            Exchange(
                request: facts, url: request.url, revalidation: fetch.revalidation, candidates: candidates,
                status: head.status, fields: head.fields, requestTime: fetch.requestTime, responseTime: now,
                policy: policy),
            options: options(for: head.fields))
        var report = Report(outcome: .miss(fetch.reason), status: head.status, forwardStatus: head.status)
        switch decision {
        case .repeatRequest(let reason):
            let again = self.fetch(reason, fields: HeaderFields(), revalidation: nil, now: now)
            return [.cancelFetch] + again
        case .useStaleOnError(let reuse):
            state = .reading(reuse)
            return [.cancelFetch, .readBody(index: reuse.index)]
        case .deliver(let verdict, _):
            report.storage = verdict
        case .freshen, .combine:
            break
        }
        var actions: [Action] = servesFollowers(decision, now: now) ? [] : [.releaseFollowers]
        // RFC 9111 §4.4. A request with a key is the question that a recipe says it is, whatever its method.
        if key == nil, let url = request.url {
            let urls = Invalidation.urls(method: facts.method, target: url, status: head.status, fields: head.fields)
            if !urls.isEmpty { actions.append(.invalidate(urls)) }
        }
        var answer = Answer(
            head: head, decision: decision, report: report,
            redirect: redirect(status: head.status, fields: head.fields))
        if settings.streams, answer.redirect == nil, case .deliver(let verdict, _) = decision {
            answer.isDelivered = true
            if case .refuse = verdict { arriving.isKept = false }
            actions += [.report(report), .deliverNetworkHead]
        }
        var fetch = fetch
        fetch.answer = answer
        state = .fetching(fetch)
        return actions
    }

    /// Whether the same request could be answered by what arrives. If not, to wait for the end of it, which may be far
    /// off for a stream of events, would be in vain.
    private func servesFollowers(_ decision: ResponseDecision, now: Date) -> Bool {
        switch decision {
        case .freshen, .combine, .useStaleOnError, .repeatRequest: return true
        case .deliver(.refuse, _): return false
        case .deliver(.store(let response, _), _):
            let candidate = Candidate(response: response, bodyLength: 0)
            let next = CacheDecision.decide(
                for: facts, candidates: [candidate], policy: policy, options: options(for: response.fields), now: now)
            return if case .useStored = next { true } else { false }
        }
    }

    mutating func receive(_ data: Data, fetch: Fetch) -> [Action] {
        guard let answer = fetch.answer else { return [] }
        arriving.count += data.count
        // What is not delivered yet must be kept, however large.
        if answer.isDelivered, arriving.isKept, arriving.count > arriving.limit {
            arriving.isKept = false
            arriving.data = Data()
        }
        if arriving.isKept { arriving.data.append(data) }
        return answer.isDelivered ? [.deliverData(data)] : []
    }

    mutating func end(_ fetch: Fetch, error: Swift.Error?, now: Date) -> [Action] {
        guard error == nil, let answer = fetch.answer, let decision = answer.decision else {
            return failed(fetch, error: error ?? loadError(.badServerResponse), now: now)
        }
        switch decision {
        case .freshen(let index, _, _, _), .combine(let index, _, _, _):
            state = .readingForAnswer(answer, index: index)
            return [.readBody(index: index)]
        case .useStaleOnError, .repeatRequest:
            // Not reached: both leave this state as soon as the head is there.
            return failed(fetch, error: loadError(.unknown), now: now)
        case .deliver(let verdict, let changes):
            guard let target else { return proceed(answer, now: now) }
            let actions = changes.map { Action.change($0, target) }
            guard case .store(let response, let replaced) = verdict else { return actions + proceed(answer, now: now) }
            guard arriving.isKept else {
                return actions + [.giveUpStoring(bytes: arriving.count, target)] + proceed(answer, now: now)
            }
            if settings.confirmsStorage {
                state = .confirmingStorage(answer)
                return actions + [.confirmStorage(response, arriving.data, byDelegate: answer.redirect == nil)]
            }
            let store = Action.store(response, arriving.data, edited: nil, replacing: replaced, target)
            return actions + [store] + proceed(answer, now: now)
        }
    }

    private mutating func failed(_ fetch: Fetch, error: Swift.Error, now: Date) -> [Action] {
        if fetch.answer?.isDelivered != true, key != nil {
            let reuse = ResponseDecision.afterFailure(
                of: facts, candidates: candidates, policy: policy, options: storedOptions, now: now)
            if let reuse {
                state = .reading(reuse)
                return [.readBody(index: reuse.index)]
            }
        }
        return fail(error, because: "network")
    }

    /// A 304, or the rest of what is stored in part: both need the stored body.
    mutating func complete(_ answer: Answer, index: Int, storedBody: Data?, now: Date) -> [Action] {
        guard let storedBody, let url = request.url, let target else {
            // The body went between the question and the answer: ask again, for the whole.
            candidates = []
            return fetch(.notStored, fields: HeaderFields(), revalidation: nil, now: now)
        }
        var actions: [Action] = []
        let stored: StoredResponse
        let presentation: Presentation
        let whole: Data
        switch answer.decision {
        case .freshen(_, let response, let shown, let changes):
            (stored, presentation, whole) = (response, shown, storedBody)
            actions = changes.map { .change($0, target) }
        case .combine(_, let response, let shown, let verdict):
            (stored, presentation, whole) = (response, shown, storedBody + arriving.data)
            if case .store(let response, let replaced) = verdict {
                actions = [.store(response, whole, edited: nil, replacing: replaced, target)]
            }
        default: return fail(loadError(.unknown), because: "network")
        }
        let head = presentation.head(of: stored, age: nil)
        let report = Report(
            outcome: .revalidated(index: index), status: head.status, forwardStatus: answer.head.status)
        if presentation == .whole, let next = redirect(status: stored.status, fields: stored.fields) {
            arriving = Arriving(data: whole)
            return actions + redirected(Answer(head: head, report: report, redirect: next), next: next, now: now)
        }
        state = .ended
        let body = presentation == .whole ? whole : Data(presentation.body(of: whole))
        actions += [.report(report), .deliverStoredHead(head, url)]
        if !body.isEmpty { actions.append(.deliverData(body)) }
        return actions + [.finish]
    }
}

import Foundation

// From a request to the network to the use of its answer.

extension LoadMachine {
    mutating func fetch(
        _ reason: DiskURLCache.Reason, fields: HeaderFields = HeaderFields(), revalidation: Revalidation? = nil,
        now: Date
    ) -> [Action] {
        arrivedBytes = 0
        let isCollapsible = isCollapsible
        state = .fetching(
            Fetch(reason: reason, revalidation: revalidation, requestTime: now, isCollapsible: isCollapsible))
        return [.fetch(fields, collapsible: isCollapsible)]
    }

    /// Whether this load may wait for another load of the same, and another load for this one. The answer must be able
    /// to serve both without another request, and a load waits only once: the first answer was of no use to it. A
    /// refresh never waits.
    private var isCollapsible: Bool {
        guard facts.isRetrieval, hop.key != nil, waited == nil, !isRefresh, policy != .reloadIgnoring,
            policy != .revalidate, !facts.directives.noStore, !facts.directives.noCache, facts.directives.maxAge != 0
        else { return false }
        return ["Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"]
            .allSatisfy { facts.fields[$0] == nil }
    }

    mutating func receive(
        _ head: ResponseHead, fetch: Fetch, options: CachingOptions, now: Date
    ) -> [Action] {
        let options = adjusted(options)
        let decision = ResponseDecision.decide(
            Exchange(
                request: facts, url: hop.request.url, revalidation: fetch.revalidation, candidates: candidates,
                status: head.status, fields: head.fields, requestTime: fetch.requestTime, responseTime: now,
                policy: policy),
            options: options)
        var answer = Answer(
            head: head, decision: decision, redirect: redirect(status: head.status, fields: head.fields))
        // Before all that is stored: the answer itself was asked for before the removal.
        let invalidation = Invalidation(
            method: facts.method, isKeyed: hop.key != nil, target: hop.request.foundationURL, status: head.status,
            fields: head.fields, isShared: options.isShared)
        var actions = invalidation.map { [Action.invalidate($0)] } ?? []
        switch decision {
        case .repeatRequest: return actions + [.cancelFetch] + fetchWhole(now: now)
        case .useStaleOnError where isRefresh: return actions + [.cancelFetch] + endRefresh()
        case .useStaleOnError(let reuse):
            state = .reading(reuse)
            return actions + [.cancelFetch, .readBody(index: reuse.index)]
        case .freshen, .combine: actions.append(.beginBody(.gather))
        case .deliver(.refuse, let changes) where isRefresh:
            // No reader waits for the body, which may be endless.
            return actions + [.cancelFetch] + changes.map { .change($0) } + endRefresh()
        case .deliver(let verdict, _):
            let refusal = hop.decision.refusal ?? verdict.refusal
            report.note(
                hop.decision.refusal.map { .bypass($0) } ?? .miss(fetch.reason), status: head.status,
                forwardStatus: head.status, storage: refusal.map { .refused($0) })
            // Loads need not wait for the end of an answer that cannot be shared: a stream of events may never end.
            if fetch.isCollapsible, !verdict.servesOthers { actions.append(.release) }
            answer.isDelivered = streams && answer.redirect == nil
            if answer.isDelivered { actions.append(.deliverNetworkHead) }
            actions.append(.beginBody(plan(for: answer, verdict)))
        }
        var fetch = fetch
        fetch.answer = answer
        state = .fetching(fetch)
        return actions
    }

    /// A client that takes no pieces gets the body whole, so it is in memory, and is stored from there.
    private func plan(for answer: Answer, _ verdict: StorageVerdict) -> BodyPlan {
        guard answer.isDelivered || isRefresh else { return .gather }
        guard case .store(let response, _, _) = verdict else { return .stream }
        let length = facts.method == "HEAD" ? nil : answer.head.bodyLength
        return .store(response, streams: answer.isDelivered, length: length)
    }

    /// In bytes. The body of a redirect is kept until the decision whether to follow the redirect. A text for people
    /// takes a few hundred.
    private static let redirectBodyLimit = 1 << 20

    mutating func receive(_ data: Data, for answer: Answer) -> [Action] {
        arrivedBytes += data.count
        if answer.redirect != nil, arrivedBytes > Self.redirectBodyLimit {
            return [.cancelFetch] + fail(loadError(.dataLengthExceedsMaximum))
        }
        if answer.isDelivered { report.bytes += data.count }
        return [.keep(data)]
    }

    mutating func end(_ fetch: Fetch, error: Swift.Error?, now: Date) -> [Action] {
        guard error == nil, let answer = fetch.answer, let decision = answer.decision else {
            return failed(fetch, error: error ?? loadError(.badServerResponse), now: now)
        }
        switch decision {
        case .combine(_, _, let parts, _) where arrivedBytes != parts.rest:
            return fetchWhole(now: now)
        case .freshen(let index, _, _, _), .combine(let index, _, _, _):
            state = .readingForAnswer(answer, index: index)
            return [.readBody(index: index)]
        case .useStaleOnError, .repeatRequest:
            assertionFailure("Both leave this state as soon as the head is there.")
            return failed(fetch, error: loadError(.unknown), now: now)
        case .deliver(let verdict, let changes):
            guard hop.key != nil else { return proceed(answer) }
            let actions = changes.map { Action.change($0) }
            guard case .store(let response, _, _) = verdict else { return actions + proceed(answer) }
            if let objection = ContentLength.objection(to: arrivedBytes, of: response) {
                report.storage = .refused(objection)
                return actions + proceed(answer)
            }
            if confirmsStorage {
                state = .confirmingStorage(answer)
                return actions + [.confirmStorage(response, byDelegate: answer.redirect == nil)]
            }
            return actions + store(answer, edited: EditedResponse())
        }
    }

    /// Stores the answer.
    /// - Parameter edited: nil if the delegate or the app refused it.
    mutating func store(_ answer: Answer, edited: EditedResponse?) -> [Action] {
        guard let edited, case .deliver(.store(var response, let replaced, _), _)? = answer.decision else {
            return proceed(answer)
        }
        if let fields = edited.fields { response.fields = fields }
        if let status = edited.status { response.status = status }
        guard PartialContent.isConsistent(response, length: edited.data?.count ?? arrivedBytes) else {
            report.storage = .refused(.partialContent)
            return proceed(answer)
        }
        let storing = Storing(response: response, replacing: replaced, basis: refreshed, edited: edited)
        return [.store(storing)] + proceed(answer)
    }

    /// Sends the client's request without the fields that the cache added: the answer to those fitted no stored
    /// response.
    private mutating func fetchWhole(now: Date) -> [Action] {
        fetch(.mismatchedAnswer, now: now)
    }

    private mutating func failed(_ fetch: Fetch, error: Swift.Error, now: Date) -> [Action] {
        if isRefresh { return endRefresh() }
        // Not after the beginning of another answer was delivered.
        guard fetch.answer?.isDelivered != true, hop.key != nil else { return fail(error) }
        let decider = decider(now: now)
        switch decider.errorFallback() {
        case .reuse(let reuse) where isCycle(reuse): return fail(error)
        case .reuse(let reuse):
            state = .reading(reuse)
            return [.readBody(index: reuse.index)]
        case .refused(let reason):
            let hasStored = candidates.contains { $0.response.status != 206 && $0.response.answers(facts) }
            return fail(hasStored ? Self.explained(error, because: reason) : error)
        }
    }

    /// A 304, or the rest of a response that is stored in part: both need the stored body.
    mutating func complete(
        _ answer: Answer, index: Int, storedBody: StoredBody?, gathered: Data, now: Date
    ) -> [Action] {
        guard let storedBody else {
            if isRefresh { return endRefresh() }
            // The body was removed while the request was on its way: fetch the whole.
            candidates = []
            return fetch(.notStored, now: now)
        }
        var actions: [Action] = []
        var storage: LoadReport.Storage?
        let stored: StoredResponse
        let presentation: Presentation
        let whole: StoredBody
        switch answer.decision {
        case .freshen(_, let response, let shown, let changes):
            guard candidates[index].canServe(shown, of: storedBody.count) else { return fetchWhole(now: now) }
            (stored, presentation, whole) = (response, shown, storedBody)
            actions = changes.map { .change($0) }
        case .combine(_, let response, let parts, let verdict):
            guard case .whole(let first) = storedBody, let joined = parts.joined(first, gathered)
            else { return fetchWhole(now: now) }
            (stored, presentation, whole) = (response, .whole, .whole(joined))
            storage = verdict.refusal.map { .refused($0) }
            if case .store(let response, let replaced, _) = verdict {
                actions = [
                    .store(
                        Storing(
                            response: response, replacing: replaced, basis: index, edited: EditedResponse(data: joined),
                            isJoined: true)
                    )
                ]
            }
        case .deliver, .useStaleOnError, .repeatRequest, nil:
            assertionFailure("None of these needs a stored body.")
            return fail(loadError(.unknown))
        }
        let head = presentation.head(of: stored, age: nil)
        report.note(
            .revalidated(index: index), status: head.status, forwardStatus: answer.head.status, storage: storage)
        let part = whole.part(presentation)
        if presentation.keepsStatus, let next = redirect(status: stored.status, fields: stored.fields) {
            return actions + redirected(Answer(head: head, redirect: next, stored: part), next: next)
        }
        state = .ended
        actions.append(.deliverStoredHead(head))
        if part.count > 0 { actions.append(.deliverBody(part)) }
        return actions + [.finish]
    }
}

extension StorageVerdict {
    /// Why the answer is not stored.
    var refusal: DiskURLCache.Reason? { if case .refuse(let reason) = self { reason } else { nil } }

    var servesOthers: Bool { if case .store(_, _, let servesOthers) = self { servesOthers } else { false } }
}

extension ResponseHead {
    /// The body's length as the head gives it. Nil for a coded body, since bodies arrive decoded.
    var bodyLength: Int? {
        fields["Content-Encoding"] == nil ? ContentLength.stated(in: fields) : nil
    }
}

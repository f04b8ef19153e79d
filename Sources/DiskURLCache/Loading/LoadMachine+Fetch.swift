import Foundation

// From a request to the network to the use of its answer.

extension LoadMachine {
    mutating func fetch(
        _ reason: DiskURLCache.Reason, fields: HeaderFields = HeaderFields(), revalidation: Revalidation? = nil,
        now: Date
    ) -> [Action] {
        arrivedBytes = 0
        used = nil
        let fetch = Fetch(reason, revalidation, at: now, isCollapsible: isCollapsible)
        if let timeout { return failed(fetch, error: timeout, now: now) }
        state = .fetching(fetch)
        return [.fetch(fields, collapsible: fetch.isCollapsible)]
    }

    /// The request is sent without the cache's own conditions, so its answer confirms nothing that is stored.
    mutating func dropConditions() {
        guard case .fetching(let fetch) = state else { return }
        state = .fetching(Fetch(fetch.reason, nil, at: fetch.requestTime, isCollapsible: fetch.isCollapsible))
    }

    /// The time for a head is over. If the client has none, the network counts as failed, now and for the rest of the
    /// load.
    mutating func endTimeForHead(now: Date) -> [Action] {
        let error = loadError(.timedOut)
        switch state {
        case .fetching(let fetch) where fetch.answer?.isDelivered != true:
            timeout = error
            return end(fetch, error: error, now: now)
        case .fetching, .ended: return []
        case .confirmingStorage(let answer) where answer.isDelivered: return []
        // Also if the disk is slow, or stands still.
        case .lookingUp, .reading, .readingForAnswer, .redirecting, .confirmingStorage: return fail(error)
        }
    }

    /// Whether this load may wait for another load of the same, and another load for this one. The answer must be able
    /// to serve both without another request, and a load waits only once: the first answer was of no use to it. A
    /// refresh never waits.
    private var isCollapsible: Bool {
        guard facts.isRetrieval, hop.hasKey, waited == nil, !isRefresh else { return false }
        // It asks for the origin's own answer.
        if facts.directives.wantOrigin(policy) { return false }
        // It asks for a part, or whether something has changed.
        guard facts.hasWishes else { return true }
        let fields = ["Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"]
        return fields.allSatisfy { facts.wish($0) == nil }
    }

    /// The head of the network's answer: the second decision of a load.
    mutating func receive(
        _ head: ResponseHead, fetch: Fetch, options: CachingOptions, now: Date
    ) -> [Action] {
        let invalidated = invalidation(by: head, isShared: options.isShared)
        // What the answer itself removes answers nothing more.
        if invalidated?.emptiesHost == true { stored = stored.removed }
        // Before all that is stored: the answer itself was asked for before the removal.
        let invalidation = invalidated.map { [Action.invalidate($0)] } ?? []
        var exchange = Exchange(
            request: facts, revalidation: fetch.revalidation, variants: stored.variants,
            status: head.status, fields: head.fields, requestTime: fetch.requestTime, responseTime: now,
            policy: policy, storedOptions: stored.options, refusal: hop.refusal(of: head.fields))
        var decision = ResponseDecision.decide(exchange, options: options)
        if case .useStaleOnError(let reuse) = decision, isCycle(reuse) || invalidated?.groups.isEmpty == false {
            // It would lead in a circle, or may be in one of the groups: the error is delivered.
            exchange.policy = .revalidate(because: .cachePolicy)
            decision = ResponseDecision.decide(exchange, options: options)
        }
        switch decision {
        case .repeatRequest:
            return invalidation + [.cancelFetch, .distrustValidators] + self.fetch(.mismatchedAnswer, now: now)
        case .useStaleOnError(let reuse) where !isRefresh:
            state = .reading(reuse, insteadOf: fetch.answered(Answer(head, redirect: nil)))
            return invalidation + [.cancelFetch] + holding(exchange, options) + [.readBody(reuse.variant)]
        case .useStaleOnError,
            .deliver where isRefresh && StatusCode.isServerTrouble(head.status):
            // The stored response is better than an error, whatever lifetime the error has.
            return invalidation + [.cancelFetch] + holding(exchange, options) + endRefresh()
        case .deliver(.refuse, let changes) where isRefresh:
            // No reader waits for the body, which may be endless.
            return invalidation + [.cancelFetch] + changes.map { .change($0) } + endRefresh()
        case .deliver(.hold(let response, let reason), let changes) where isRefresh:
            // What the origin has withdrawn goes at once: nobody knows how the body ends. Its pieces may come while
            // files are changed, so their place is made first.
            let answer = Answer(
                head, decision: .deliver(.hold(response, because: reason), changes: []), redirect: nil)
            state = .fetching(fetch.answered(answer))
            return invalidation + begin(answer, of: fetch) + changes.map { .change($0) }
        case .freshen, .deliver: break
        }
        let next = redirect(status: head.status, fields: head.fields)
        // With a 304 the client gets the stored body, so it gets both at the end.
        var isDelivered = false
        if case .deliver = decision { isDelivered = streams && next == nil }
        let answer = Answer(head, decision: decision, isDelivered: isDelivered, redirect: next)
        let actions = begin(answer, of: fetch)
        state = .fetching(fetch.answered(answer))
        return invalidation.isEmpty ? actions : invalidation + actions
    }

    /// An error that a stored response replaces is held without its body, if the app does not want the URL to be asked
    /// again yet.
    private func holding(_ exchange: Exchange, _ options: CachingOptions) -> [Action] {
        guard case .hold(let response, let reason) = Storability.verdict(for: exchange, options: options) else {
            return []
        }
        return [.store(Storing(response: response, edited: EditedResponse(data: Data()), heldBecause: reason))]
    }

    /// What is done before the first piece of an answer's body: the report, the place of the body, and for a client
    /// that takes pieces the head.
    private mutating func begin(_ answer: Answer, of fetch: Fetch) -> [Action] {
        guard case .deliver(let verdict, _)? = answer.decision else { return [] }
        let head = answer.head
        let bypass = hop.decision.refusal
        report.note(
            bypass.map { .bypass($0) } ?? .miss(fetch.reason), status: head.status, age: head.age,
            forwardStatus: head.status,
            storage: verdict.refusal.map { .refused($0) })
        var actions: [Action] = []
        // The greatest number of actions: see `answer`.
        actions.reserveCapacity(3)
        // Loads need not wait for the end of an answer that cannot be shared: a stream of events may never end.
        if fetch.isCollapsible, !verdict.servesOthers { actions.append(.release) }
        if answer.isDelivered { actions.append(.deliverNetworkHead) }
        actions.append(.beginBody(plan(for: answer, verdict)))
        return actions
    }

    private func plan(for answer: Answer, _ verdict: StorageVerdict) -> BodyPlan {
        let length = facts.method == "HEAD" ? nil : answer.head.bodyLength
        switch verdict {
        case .store(let response, _, _): return .store(response, streams: answer.isDelivered, length: length)
        case .hold(let response, _):
            return .store(response, streams: answer.isDelivered, length: length, isHeld: true)
        case .refuse: return answer.isDelivered ? .stream : .gather
        }
    }

    /// What the answer says is no longer valid (RFC 9111 §4.4).
    func invalidation(by head: ResponseHead, isShared: Bool) -> Invalidation? {
        Invalidation(
            method: facts.method, isKeyed: hop.hasKey,
            concernsURL: hop.options(for: head.fields).invalidatesURL != false, target: hop.request.foundationURL,
            status: head.status, fields: head.fields, isShared: isShared)
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
        case .freshen(let variant, _, _, _):
            state = .readingForAnswer(answer, variant, asked: fetch.reason)
            return [.readBody(variant)]
        case .useStaleOnError, .repeatRequest:
            assertionFailure("Both leave this state as soon as the head is there.")
            return failed(fetch, error: loadError(.unknown), now: now)
        case .deliver(let verdict, let changes):
            let actions = changes.map { Action.change($0) }
            if case .hold(let response, let reason) = verdict {
                let isWhole = ContentLength.objection(to: arrivedBytes, of: response) == nil
                let holding: [Action] = isWhole ? [.store(Storing(response: response, heldBecause: reason))] : []
                return actions + holding + proceed(answer)
            }
            guard case .store(let response, _, _) = verdict else { return actions + proceed(answer) }
            if let objection = ContentLength.objection(to: arrivedBytes, of: response) {
                report.storage = .refused(objection)
                return actions + proceed(answer)
            }
            if confirmsStorage {
                state = .confirmingStorage(answer)
                return actions + [.confirmStorage(response, byDelegate: answer.redirect == nil)]
            }
            let storing = store(answer, edited: EditedResponse())
            return actions.isEmpty ? storing : actions + storing
        }
    }

    /// Goes on to the next hop without the rest of a redirect's body. The redirect is not stored without it.
    mutating func followEarly(_ fetch: Fetch) -> [Action] {
        guard let answer = fetch.answer, let next = answer.redirect, case .deliver(_, let changes)? = answer.decision
        else { return [] }
        return [.cancelFetch] + changes.map { .change($0) } + redirected(answer, next: next)
    }

    /// Stores the answer.
    /// - Parameter edited: nil if the delegate or the app refused it.
    mutating func store(_ answer: Answer, edited: EditedResponse?) -> [Action] {
        guard let edited, var storing = storing(of: answer) else { return proceed(answer) }
        storing.edited = edited
        edited.change(&storing.response)
        let length = edited.data?.count ?? arrivedBytes
        guard PartialContent.isConsistent(storing.response, length: length) else {
            report.storage = .refused(.partialContent)
            return proceed(answer)
        }
        var actions: [Action] = []
        actions.reserveCapacity(4)
        actions.append(.store(storing))
        actions += proceed(answer)
        return actions
    }

    /// What is to be stored of an answer, as the origin sent it; nil if nothing is.
    private func storing(of answer: Answer) -> Storing? {
        guard case .deliver(.store(let response, let replaced, _), _)? = answer.decision else { return nil }
        return Storing(response: response, replacing: replaced, basis: refreshed)
    }

    private mutating func failed(_ fetch: Fetch, error: Swift.Error, now: Date) -> [Action] {
        if isRefresh { return endRefresh() }
        // Not after the beginning of another answer was delivered.
        guard fetch.answer?.isDelivered != true, hop.hasKey else { return fail(error) }
        let decider = decider(now: now)
        switch decider.errorFallback() {
        case .reuse(let reuse) where isCycle(reuse): return fail(error)
        case .reuse(let reuse):
            // Without time for a request, none was sent.
            let failed = isFetching ? fetch : nil
            // Memory has it: nobody waits for the disk. A redirect asks the app, which is not called where a deadline
            // ends.
            if let entry = reuse.variant.entry, !(300...399).contains(reuse.variant.response.status) {
                return answer(reuse, insteadOf: failed, body: .memory(entry.body), now: now)
            }
            state = .reading(reuse, insteadOf: failed)
            return [.readBody(reuse.variant)]
        case .refused(let reason):
            let hasStored = stored.variants.contains { $0.response.status != 206 && $0.response.answers(facts) }
            return fail(hasStored ? Self.explained(error, because: reason) : error)
        }
    }

    /// A 304 needs the stored body.
    /// - Parameter variant: the stored one.
    mutating func complete(
        _ answer: Answer, with variant: StoredVariant, asked: DiskURLCache.Reason, storedBody: Body?, now: Date
    ) -> [Action] {
        guard case .freshen(_, let updated, let presentation, let changes)? = answer.decision else {
            assertionFailure("No other answer needs a stored body.")
            return fail(loadError(.unknown))
        }
        guard let storedBody else {
            if isRefresh { return endRefresh() }
            // The body was removed while the request was on its way: fetch the whole.
            stored = stored.removed
            return fetch(.notInCache, now: now)
        }
        guard variant.canServe(presentation, of: storedBody.count) else { return fetch(.mismatchedAnswer, now: now) }
        var actions = changes.map { Action.change($0.reading(variant)) }
        var head = presentation.head(of: updated, age: nil)
        let own = StorableFields.forThisAnswer(answer.head.fields, besides: updated.fields)
        // All at once: a server may send many.
        if !own.isEmpty { head.fields = HeaderFields(head.fields.fields + own) }
        used = variant
        report.note(
            .revalidated(variant.layer, asked: asked), status: head.status, age: answer.head.age,
            forwardStatus: answer.head.status)
        let part = storedBody.part(presentation)
        if presentation.keepsStatus, let next = redirect(status: updated.status, fields: updated.fields) {
            let redirect = Answer(head, decision: answer.decision, redirect: next, stored: part)
            return actions + redirected(redirect, next: next)
        }
        report.bytes += part.count
        actions.append(.deliverStoredHead(head))
        if part.count > 0 { actions.append(.deliverBody(part)) }
        state = .ended
        return actions + [.finish]
    }
}

extension StoreChange {
    /// The same, with the confirmed variant as it was read meanwhile.
    fileprivate func reading(_ confirmed: StoredVariant) -> StoreChange {
        if case .addVariant(_, let response) = self { .addVariant(bodyOf: confirmed, response) } else { self }
    }
}

extension StorageVerdict {
    /// Why the answer is not stored.
    var refusal: DiskURLCache.Reason? {
        switch self {
        case .refuse(let reason), .hold(_, let reason): reason
        case .store: nil
        }
    }

    var servesOthers: Bool {
        switch self {
        case .store(_, _, let servesOthers): servesOthers
        case .hold: true
        case .refuse: false
        }
    }
}

extension ResponseHead {
    /// `Age` of an answer that has just arrived; 0 without one.
    var age: Int64 { Age.value(in: fields) ?? 0 }

    /// The body's length as the head gives it. Nil for a coded body, since bodies arrive decoded.
    var bodyLength: Int? {
        !fields.nameCoding ? ContentLength.stated(in: fields) : nil
    }

    /// The same for the answer to a request with this method. An answer to a `HEAD`, or with one of these statuses, has
    /// no body, whatever length it states (RFC 9110 §8.6).
    package func bodyLength(to method: String) -> Int? {
        method == "HEAD" || status < 200 || status == 204 || status == 304 ? 0 : bodyLength
    }
}

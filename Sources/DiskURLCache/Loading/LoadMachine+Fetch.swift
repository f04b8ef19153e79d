import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// From a request to the network to what becomes of its answer.

extension LoadMachine {
    mutating func fetch(
        _ reason: CacheMissReason, fields: HeaderFields, revalidation: Revalidation?, now: Date
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

    /// Whether this load may wait for another load of the same. Its answer must be able to serve others, and it waits once:
    /// what the other load brought was of no use to this one.
    private var isCollapsible: Bool {
        guard facts.method == "GET", key != nil, waited == nil, policy != .reloadIgnoring,
            !facts.directives.noStore
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
        var report = Report(
            outcome: key == nil ? .bypass(.noKey) : .miss(fetch.reason), status: head.status,
            forwardStatus: head.status)
        if let continued = fetch.continued, !continued.isContinued(by: head) {
            return [.cancelFetch] + fail(continued.error, because: .network)
        }
        switch decision {
        case .repeatRequest: return [.cancelFetch] + fetchWhole(now: now)
        case .useStaleOnError where isRefresh: return [.cancelFetch] + endRefresh()
        case .useStaleOnError(let reuse):
            state = .reading(reuse)
            return [.cancelFetch, .readBody(index: reuse.index)]
        case .deliver(let verdict, _):
            report.storage = verdict
        case .freshen, .combine:
            break
        }
        let isTooLarge = isTooLarge(head, decision)
        // Once for all who ask: it is decided by what the head says, which is parsed for it.
        let shareable = shareable(decision, now: now)
        var actions: [Action] = servesFollowers(decision, shareable) ? [] : [.releaseFollowers]
        // RFC 9111 §4.4. A request that a key policy gave a key is a safe one, whatever its method.
        if key == nil, let url = request.url {
            let urls = Invalidation.urls(method: facts.method, target: url, status: head.status, fields: head.fields)
            if !urls.isEmpty { actions.append(.invalidate(urls)) }
        }
        var answer = Answer(
            head: head, decision: decision, report: report,
            redirect: redirect(status: head.status, fields: head.fields))
        if settings.streams, answer.redirect == nil, case .deliver(let verdict, _) = decision {
            answer.isDelivered = true
            answer.isReported = true
            if case .refuse = verdict { arriving.isKept = false }
            actions.append(.report(report))
            if let continued = fetch.continued {
                arriving.skipped = continued.count
            } else {
                actions.append(.deliverNetworkHead)
            }
        }
        if case .deliver(.store(let response, _), _) = decision, answer.isDelivered || isRefresh {
            if isTooLarge { arriving.isKept = false }
            arriving.gatheringLimit = settings.gatheringLimit(response, request)
            // Known to be large: none of it is gathered in memory.
            if let limit = arriving.gatheringLimit, let length = head.bodyLength, length > limit {
                arriving.gatheringLimit = 0
            } else if arriving.isKept, let length = head.bodyLength {
                // So that it does not grow piece by piece. What the head says may be wrong, so not all of a large one.
                arriving.data.reserveCapacity(min(max(0, length), Self.reservedLength))
            }
        }
        if answer.redirect == nil, let response = shareable {
            actions.append(.share(response))
            // Those that wait now get what arrives; the others could not be given what came before.
            if isTooLarge { actions.append(.releaseFollowers) }
        }
        var fetch = fetch
        fetch.answer = answer
        state = .fetching(fetch)
        return actions
    }

    private static let reservedLength = 256 << 10
    /// The body of a redirect is kept until it is known whether the redirect is followed, in bytes. A note for people takes a few hundred.
    private static let redirectBodyLimit = 1 << 20

    /// Whether what arrives could answer the loads that wait for it. If not, they stop waiting at once: a stream of events
    /// may never end.
    private func servesFollowers(_ decision: ResponseDecision, _ shareable: StoredResponse?) -> Bool {
        switch decision {
        case .freshen, .combine, .useStaleOnError, .repeatRequest: return true
        case .deliver(.refuse, _): return false
        case .deliver(.store, _): return shareable != nil
        }
    }

    /// Whether the head says that the body is more than may be stored. Then none of it is kept, not even for a while.
    private func isTooLarge(_ head: ResponseHead, _ decision: ResponseDecision) -> Bool {
        guard settings.streams || isRefresh, facts.method != "HEAD", case .deliver(.store, _) = decision,
            let length = head.bodyLength
        else { return false }
        return length > arriving.limit && redirect(status: head.status, fields: head.fields) == nil
    }

    mutating func receive(_ data: Data, fetch: Fetch) -> [Action] {
        guard let answer = fetch.answer else { return [] }
        arriving.count += data.count
        var actions: [Action] = []
        if answer.redirect != nil, !answer.isDelivered, arriving.count > Self.redirectBodyLimit {
            return [.cancelFetch] + fail(loadError(.dataLengthExceedsMaximum), because: .network)
        }
        // What is still to be delivered must be kept, however large.
        if answer.isDelivered || isRefresh, arriving.isKept, arriving.count > arriving.limit {
            actions = (arriving.isInFile ? [.dropKept] : []) + stopKeeping()
        }
        if arriving.isKept {
            if arriving.isInFile {
                arriving.data = Data()
                actions.append(.keep(data))
            } else {
                arriving.data.append(data)
                if let limit = arriving.gatheringLimit, arriving.count > limit {
                    arriving.isInFile = true
                    actions.append(.keep(arriving.data))
                }
            }
        }
        guard answer.isDelivered else { return actions }
        let known = min(arriving.skipped, data.count)
        arriving.skipped -= known
        if known < data.count { actions.append(.deliverData(known == 0 ? data : Data(data.dropFirst(known)))) }
        return actions
    }

    private mutating func stopKeeping() -> [Action] {
        arriving.isKept = false
        arriving.data = Data()
        return [.releaseFollowers]
    }

    /// The disk failed: a small body goes on in memory, a large one is not stored.
    mutating func notKept(_ body: Data?, limit: Int) -> [Action] {
        arriving.isInFile = false
        arriving.gatheringLimit = nil
        arriving.isLost = true
        guard let body else { return stopKeeping() }
        arriving.data = body
        arriving.limit = limit
        return []
    }

    mutating func end(_ fetch: Fetch, error: Swift.Error?, now: Date) -> [Action] {
        if arriving.isInFile { arriving.data = Data() }
        guard error == nil, let answer = fetch.answer, let decision = answer.decision else {
            return failed(fetch, error: error ?? loadError(.badServerResponse), now: now)
        }
        switch decision {
        case .combine(_, _, let parts, _) where arriving.count != parts.rest:
            return fetchWhole(now: now)
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
            guard PartialContent.isConsistent(response, length: arriving.count) else {
                return actions + proceed(answer.refused(.partialContent), now: now)
            }
            guard arriving.isKept else {
                let change: [Action] = arriving.isLost ? [] : [.giveUpStoring(bytes: arriving.count, target)]
                return actions + change + proceed(answer, now: now)
            }
            if settings.confirmsStorage {
                state = .confirmingStorage(answer)
                return actions + [.confirmStorage(response, arriving.data, byDelegate: answer.redirect == nil)]
            }
            let store =
                arriving.isInFile
                ? Action.storeKept(response, edited: nil, replacing: replaced, basis: refreshed, target)
                : .store(response, arriving.data, edited: nil, replacing: replaced, basis: refreshed, target)
            return actions + [store] + proceed(answer, now: now)
        }
    }

    /// Sends the client's request without the fields that the cache added: the answer to those fitted nothing stored.
    private mutating func fetchWhole(now: Date) -> [Action] {
        fetch(.mismatchedAnswer, fields: HeaderFields(), revalidation: nil, now: now)
    }

    private mutating func failed(_ fetch: Fetch, error: Swift.Error, now: Date) -> [Action] {
        if isRefresh { return endRefresh() }
        // Not behind the beginning of another answer.
        if fetch.answer?.isDelivered != true, fetch.continued == nil, key != nil {
            let reuse = ResponseDecision.afterFailure(
                of: facts, candidates: candidates, policy: policy, options: storedOptions, now: now)
            if let reuse {
                state = .reading(reuse)
                return [.readBody(index: reuse.index)]
            }
        }
        return fail(error, because: .network)
    }

    /// A 304, or the rest of what is stored in part: both need the stored body.
    mutating func complete(_ answer: Answer, index: Int, storedBody: StoredBody?, now: Date) -> [Action] {
        guard let storedBody, let url = request.url, let target else {
            if isRefresh { return endRefresh() }
            // The body was removed while the origin was asked: ask again, for the whole.
            candidates = []
            return fetch(.notStored, fields: HeaderFields(), revalidation: nil, now: now)
        }
        var actions: [Action] = []
        let stored: StoredResponse
        let presentation: Presentation
        let whole: StoredBody
        switch answer.decision {
        case .freshen(_, let response, let shown, let changes):
            guard candidates[index].canServe(shown, of: storedBody.count) else { return fetchWhole(now: now) }
            (stored, presentation, whole) = (response, shown, storedBody)
            actions = changes.map { .change($0, target) }
        case .combine(_, let response, let parts, let verdict):
            guard case .whole(let first) = storedBody, let joined = parts.joined(first, arriving.data)
            else { return fetchWhole(now: now) }
            (stored, presentation, whole) = (response, .whole, .whole(joined))
            if case .store(let response, let replaced) = verdict {
                actions = [.store(response, joined, edited: nil, replacing: replaced, basis: index, target)]
            }
        default: return fail(loadError(.unknown), because: .network)
        }
        let head = presentation.head(of: stored, age: nil)
        var report = Report(
            outcome: .revalidated(index: index), status: head.status, forwardStatus: answer.head.status)
        if case .combine(_, _, _, let verdict) = answer.decision { report.storage = verdict }
        if presentation == .whole, let next = redirect(status: stored.status, fields: stored.fields) {
            arriving = Arriving(stored: whole)
            return actions + redirected(Answer(head: head, report: report, redirect: next), next: next, now: now)
        }
        state = .ended
        actions += [.report(report), .deliverStoredHead(head, url)]
        if let body = deliver(whole.part(presentation)) { actions.append(body) }
        return actions + [.finish]
    }
}

extension ResponseHead {
    /// What the head says of the body's length. Of a coded body it says nothing, since bodies arrive decoded.
    var bodyLength: Int? {
        fields["Content-Encoding"] == nil ? fields["Content-Length"].flatMap { Int($0) } : nil
    }
}

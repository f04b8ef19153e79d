import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The last part of a load: store what was confirmed, follow a redirect, hand the answer to the client.

extension LoadMachine {
    mutating func store(_ answer: Answer, edited: EditedResponse?, now: Date) -> [Action] {
        guard let edited, let target, case .deliver(.store(var response, let replaced), _)? = answer.decision else {
            return proceed(answer, now: now)
        }
        if let fields = edited.fields { response.fields = fields }
        if let status = edited.status { response.status = status }
        let isAsKept = arriving.isInFile && edited.isAsKept
        guard PartialContent.isConsistent(response, length: isAsKept ? arriving.count : edited.data.count) else {
            return proceed(answer.refused(.partialContent), now: now)
        }
        let store =
            isAsKept
            ? Action.storeKept(response, edited: edited, replacing: replaced, basis: refreshed, target)
            : .store(response, edited.data, edited: edited, replacing: replaced, basis: refreshed, target)
        return [store] + proceed(answer, now: now)
    }

    /// To the next hop, or to the client.
    mutating func proceed(_ answer: Answer, now: Date) -> [Action] {
        // A refresh is about one stored response, not about another URL.
        if let next = answer.redirect, !isRefresh { return redirected(answer, next: next, now: now) }
        return deliver(answer)
    }

    func redirect(status: Int, fields: HeaderFields) -> URLRequest? {
        RedirectRequest.following(request, status: status, fields: fields)
    }

    mutating func redirected(_ answer: Answer, next: URLRequest, now: Date) -> [Action] {
        guard hops < RedirectRequest.limit else {
            return fail(loadError(.httpTooManyRedirects), because: .redirects)
        }
        guard settings.confirmsRedirects else { return follow(next, now: now) }
        state = .confirmingRedirect(answer)
        return [.confirmRedirect(answer.head, next)]
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
        if let body = deliver(arriving.stored ?? .whole(arriving.data)) { actions.append(body) }
        return actions + [.finish]
    }

    /// Nobody waits for the answer of a refresh: it ends where there is nothing to store.
    mutating func endRefresh() -> [Action] {
        state = .ended
        return [.finish]
    }

    mutating func fail(_ error: Swift.Error, because reason: Report.Failure) -> [Action] {
        state = .ended
        return [.report(Report(outcome: .failed(reason))), .fail(error)]
    }

    func loadError(_ code: URLError.Code) -> URLError {
        var userInfo: [String: Any] = [:]
        if let url = request.url {
            userInfo[NSURLErrorFailingURLErrorKey] = url
        }
        return URLError(code, userInfo: userInfo)
    }
}

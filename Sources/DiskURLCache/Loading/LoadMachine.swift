import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One load as a value: events in, actions out, no I/O.
///
/// A load looks up what is stored, decides (`CacheDecision`), perhaps asks the network, decides again
/// (`ResponseDecision`), and answers. A redirect starts over with the next request, so that each hop is looked up and
/// stored under its own URL. After `.finish` or `.fail`, or the event `.cancelled`, no further action is returned.
struct LoadMachine {
    enum Event {
        case started(now: Date)
        /// In place of `started`, for a refresh in the background: what is stored, and what to ask.
        case refreshing([Candidate], Revalidation, now: Date)
        /// Answer to `.lookUp`: what is stored, the most recent first.
        case found([Candidate], now: Date)
        /// Answer to `.readBody`; nil when the entry turned out missing or damaged.
        case body(Data?, now: Date)
        /// Answer to a collapsible `.fetch`: another load that fetched the same has ended, and what it got is stored.
        case leaderFinished(mayWaitAgain: Bool, now: Date)
        case head(status: Int, fields: HeaderFields, now: Date)
        case data(Data)
        case ended(Swift.Error?, now: Date)
        /// Answer to `.confirmStorage`: the body to store, or nil for not at all.
        case storageConfirmed(EditedResponse?)
        /// Answer to `.confirmRedirect`: the request to follow, or nil to deliver the redirect itself.
        case redirectConfirmed(URLRequest?, now: Date)
        case cancelled
    }

    enum Action {
        case lookUp(RequestKey)
        case readBody(index: Int)
        /// A collapsible fetch may wait for another load that fetches the same.
        case fetch(URLRequest, collapsible: Bool)
        case cancelFetch
        /// The head as the network sent it; the driver still has the response object.
        case deliverNetworkHead
        case deliverStoredHead(ResponseHead, URL)
        case deliverData(Data)
        case finish
        case fail(Swift.Error)
        case confirmStorage(StoredResponse, Data)
        case store(StoredResponse, Data, edited: EditedResponse?, replacing: [Int])
        case change(StoreChange)
        case confirmRedirect(ResponseHead, URLRequest)
        case refreshInBackground(Revalidation)
        /// Told once, before the load ends.
        case report(Report)
    }

    /// A response that a delegate or the admission closure changed before it was stored.
    struct EditedResponse {
        var fields: HeaderFields?
        var status: Int?
        var data: Data
        var isMemoryOnly = false
        var userInfo: [String: PropertyValue] = [:]
    }

    /// How the load went, for events and `Cache-Status`.
    struct Report {
        enum Outcome {
            case hit(index: Int, StaleAllowance?)
            case revalidated(index: Int)
            case miss(FetchReason)
            case failed(String)
        }

        var outcome: Outcome
        var status = 0
        var age: Int?
        var timeToLive: Int?
        var forwardStatus: Int?
        var storage: StorageVerdict?
        var isCollapsed = false
    }

    /// What stays the same through all hops of a load.
    struct Settings {
        var key: @Sendable (URLRequest) -> RequestKey?
        /// For a request and the head of what is stored or received, as far as there is one.
        var options: @Sendable (URLRequest, HeaderFields?) -> CachingOptions
        /// Chunks are delivered as they arrive: certain only for tasks with a delegate, see `ClientPort`.
        var streams: Bool
        /// A delegate or closure wants to be asked before something is stored.
        var confirmsStorage: Bool
        /// A delegate wants to be asked before a redirect is followed.
        var confirmsRedirects: Bool
        /// Bodies larger than this are not kept for storing while they stream past.
        var largestStorableBody: Int
    }

    private enum State {
        case idle
        case lookingUp
        case reading(Reuse)
        /// The body behind a 304, or the first part of a combined response.
        case readingForAnswer(Answer, index: Int)
        case fetching(Fetch)
        case confirmingStorage(Answer)
        case confirmingRedirect(Answer)
        case ended
    }

    /// A request under way and what has come of it.
    private struct Fetch {
        var reason: FetchReason
        var revalidation: Revalidation?
        var requestTime: Date
        var answer: Answer?
        var body = Data()
        var isCollapsed = false
        var wasDropped = false
    }

    /// What the network said, once the head is there.
    private struct Answer {
        var head: ResponseHead
        var decision: ResponseDecision
        var isDelivered = false
        var redirect: URLRequest?
        var body = Data()
        var reason: FetchReason
    }

    private(set) var request: URLRequest
    private(set) var key: RequestKey?
    private let settings: Settings
    private let policy: ReusePolicy
    private var facts: RequestFacts
    private var candidates: [Candidate] = []
    private var state = State.idle
    private var hops = 0
    private var hasWaited = false

    init(request: URLRequest, settings: Settings) {
        self.request = request
        self.settings = settings
        policy = ReusePolicy(request.cachePolicy)
        key = settings.key(request)
        facts = Self.facts(of: request, hasKey: key != nil)
    }

    /// A request that a recipe gave a key is a query, whatever its method: to the engine it is a GET.
    private static func facts(of request: URLRequest, hasKey: Bool) -> RequestFacts {
        var facts = RequestFacts(request)
        if hasKey, facts.method != "HEAD" { facts.method = "GET" }
        return facts
    }

    var hasEnded: Bool { if case .ended = state { true } else { false } }

    var method: String { request.httpMethod ?? "GET" }

    /// What makes two fetches the same: session, key and every header field of the request.
    func identity(session: URLSession?) -> String {
        let owner = session.map { "\(ObjectIdentifier($0).hashValue)" } ?? "-"
        let fields = facts.fields.fields.map { "\($0.name.lowercased()):\($0.value)" }.sorted()
        return ([owner, key?.text ?? ""] + fields).joined(separator: "\n")
    }

    mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.ended, _): return []
        case (_, .cancelled):
            let wasFetching = if case .fetching = state { true } else { false }
            state = .ended
            return wasFetching ? [.cancelFetch] : []
        case (.idle, .started(let now)): return lookUp(now: now)
        case (.lookingUp, .found(let candidates, let now)):
            self.candidates = candidates
            return decide(now: now)
        case (.idle, .refreshing(let candidates, let revalidation, let now)):
            self.candidates = candidates
            return fetch(revalidation.reason, fields: revalidation.fields, revalidation: revalidation, now: now)
        case (.reading(let reuse), .body(let body, let now)): return answer(reuse, body: body, now: now)
        case (.readingForAnswer(let answer, let index), .body(let body, let now)):
            return complete(answer, index: index, storedBody: body, now: now)
        case (.fetching(let fetch), .leaderFinished(let mayWaitAgain, let now)) where fetch.answer == nil:
            hasWaited = !mayWaitAgain
            return lookUp(now: now)
        case (.fetching(let fetch), .head(let status, let fields, let now)):
            return receive(ResponseHead(status: status, fields: fields), fetch: fetch, now: now)
        case (.fetching(let fetch), .data(let data)): return receive(data, fetch: fetch)
        case (.fetching(let fetch), .ended(let error, let now)): return end(fetch, error: error, now: now)
        case (.confirmingStorage(let answer), .storageConfirmed(let edited)):
            return store(answer, edited: edited)
        case (.confirmingRedirect(let answer), .redirectConfirmed(let next, let now)):
            return next.map { follow($0, now: now) } ?? deliver(answer)
        default: return []
        }
    }

    // MARK: Looking up

    private var storedOptions: CachingOptions {
        options(for: candidates.first?.response.fields)
    }

    private func options(for fields: HeaderFields?) -> CachingOptions {
        var options = settings.options(request, fields)
        // A request of another method has a key only because the key policy makes its method cacheable.
        if key != nil { options.furtherMethods.insert(facts.method) }
        return options
    }

    private mutating func lookUp(now: Date) -> [Action] {
        guard let key else {
            // A hop without a key, such as a redirect to another scheme: the network answers, nothing is stored.
            candidates = []
            return fetch(.methodNotCached, fields: HeaderFields(), revalidation: nil, now: now)
        }
        state = .lookingUp
        return [.lookUp(key)]
    }

    private mutating func decide(now: Date) -> [Action] {
        let decision = CacheDecision.decide(
            for: facts, candidates: candidates, policy: policy, options: storedOptions, now: now)
        switch decision {
        case .useStored(let reuse):
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
    private mutating func refuse(_ reason: FetchReason) -> [Action] {
        state = .ended
        if storedOptions.isOffline || policy == .dontLoad {
            let code: URLError.Code = storedOptions.isOffline ? .notConnectedToInternet : .resourceUnavailable
            return [.report(Report(outcome: .failed(reason.rawValue))), .fail(loadError(code))]
        }
        guard let url = request.url else { return [.fail(loadError(.badURL))] }
        return [
            .report(Report(outcome: .failed(reason.rawValue), status: 504)),
            .deliverStoredHead(ResponseHead(status: 504, fields: ["Content-Length": "0"]), url), .finish,
        ]
    }

    private mutating func answer(_ reuse: Reuse, body: Data?, now: Date) -> [Action] {
        guard let body, let url = request.url else {
            // Gone or damaged since the lookup: as if nothing were stored.
            candidates = []
            return decide(now: now)
        }
        let stored = candidates[reuse.index].response
        let head = reuse.presentation.head(of: stored, age: reuse.age)
        let allowance: StaleAllowance? = if case .stale(let allowance) = reuse.basis { allowance } else { nil }
        var actions: [Action] = []
        if let revalidation = reuse.backgroundRevalidation {
            actions.append(.refreshInBackground(revalidation))
        }
        let report = Report(
            outcome: .hit(index: reuse.index, allowance), status: head.status, age: reuse.age,
            timeToLive: reuse.timeToLive)
        // A redirect from the store is followed as one from the network is; a condition of the client is not.
        if reuse.presentation == .whole, let next = redirect(status: stored.status, fields: stored.fields) {
            let answer = Answer(
                head: head, decision: .deliver(.refuse(.notModified), changes: []), redirect: next, body: body,
                reason: .notStored)
            return actions + redirected(answer, next: next, now: now)
        }
        state = .ended
        actions += [.report(report), .deliverStoredHead(head, url)]
        // A fresh `Data`: a slice's indices would not start at 0.
        let part = reuse.presentation == .whole ? body : Data(reuse.presentation.body(of: body))
        if !part.isEmpty { actions.append(.deliverData(part)) }
        return actions + [.finish]
    }

    // MARK: Fetching

    private mutating func fetch(
        _ reason: FetchReason, fields: HeaderFields, revalidation: Revalidation?, now: Date
    ) -> [Action] {
        var outgoing = request
        // What is left to decide is the origin's part; Foundation must not answer from a cache of its own.
        outgoing.cachePolicy = .reloadIgnoringLocalCacheData
        for field in fields.fields {
            outgoing.setValue(field.value, forHTTPHeaderField: field.name)
        }
        state = .fetching(Fetch(reason: reason, revalidation: revalidation, requestTime: now))
        let isPlain =
            facts.method == "GET" && key != nil && policy != .reloadIgnoring
            && ["Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"]
                .allSatisfy { facts.fields[$0] == nil }
        return [.fetch(outgoing, collapsible: isPlain && !hasWaited)]
    }

    private mutating func receive(_ head: ResponseHead, fetch: Fetch, now: Date) -> [Action] {
        var fetch = fetch
        let decision = ResponseDecision.decide(
            Exchange(
                request: facts, url: request.url, revalidation: fetch.revalidation, candidates: candidates,
                status: head.status, fields: head.fields, requestTime: fetch.requestTime, responseTime: now,
                policy: policy),
            options: options(for: head.fields))
        if case .repeatRequest(let reason) = decision {
            let again = self.fetch(reason, fields: HeaderFields(), revalidation: nil, now: now)
            return [.cancelFetch] + again
        }
        if case .useStaleOnError(let reuse) = decision {
            state = .reading(reuse)
            return [.cancelFetch, .readBody(index: reuse.index)]
        }
        var answer = Answer(head: head, decision: decision, reason: fetch.reason)
        answer.redirect = redirect(status: head.status, fields: head.fields)
        var actions: [Action] = []
        if settings.streams, answer.redirect == nil, case .deliver = decision {
            answer.isDelivered = true
            actions = [.report(report(answer)), .deliverNetworkHead]
        }
        fetch.answer = answer
        state = .fetching(fetch)
        return actions
    }

    private mutating func receive(_ data: Data, fetch: Fetch) -> [Action] {
        var fetch = fetch
        let isDelivered = fetch.answer?.isDelivered == true
        // Out of the state before it grows: otherwise each chunk would copy the whole body.
        state = .idle
        if !isDelivered || fetch.body.count + data.count <= settings.largestStorableBody {
            fetch.body.append(data)
        } else {
            fetch.body = Data()
            fetch.wasDropped = true
        }
        state = .fetching(fetch)
        return isDelivered ? [.deliverData(data)] : []
    }

    private mutating func end(_ fetch: Fetch, error: Swift.Error?, now: Date) -> [Action] {
        if let error { return fail(fetch, error: error, now: now) }
        guard var answer = fetch.answer else { return fail(fetch, error: loadError(.badServerResponse), now: now) }
        answer.body = fetch.body
        switch answer.decision {
        case .freshen(let index, _, _, _), .combine(let index, _, _, _):
            state = .readingForAnswer(answer, index: index)
            return [.readBody(index: index)]
        case .useStaleOnError, .repeatRequest: return []
        case .deliver(let verdict, let changes):
            let actions = changes.map { Action.change($0) }
            guard case .store(let response, _) = verdict, !fetch.wasDropped else {
                return actions + proceed(answer, now: now)
            }
            if settings.confirmsStorage, answer.redirect == nil {
                state = .confirmingStorage(answer)
                return actions + [.confirmStorage(response, answer.body)]
            }
            return actions + [storing(answer, edited: nil)].compactMap { $0 } + proceed(answer, now: now)
        }
    }

    private mutating func fail(_ fetch: Fetch, error: Swift.Error, now: Date) -> [Action] {
        if fetch.answer?.isDelivered != true, key != nil {
            let reuse = ResponseDecision.afterFailure(
                of: facts, candidates: candidates, policy: policy, options: storedOptions, now: now)
            if let reuse {
                state = .reading(reuse)
                return [.readBody(index: reuse.index)]
            }
        }
        state = .ended
        let report = Action.report(Report(outcome: .failed("network")))
        return (fetch.answer?.isDelivered == true ? [] : [report]) + [.fail(error)]
    }

    /// A 304, or the rest of what is stored in part: both need the stored body.
    private mutating func complete(_ answer: Answer, index: Int, storedBody: Data?, now: Date) -> [Action] {
        guard let storedBody, let url = request.url else {
            // The body went between the question and the answer: ask again, for the whole.
            candidates = []
            return fetch(.notStored, fields: HeaderFields(), revalidation: nil, now: now)
        }
        var actions: [Action] = []
        let head: ResponseHead
        let body: Data
        switch answer.decision {
        case .freshen(_, let response, let presentation, let changes):
            actions += changes.map { .change($0) }
            head = presentation.head(of: response, age: nil)
            body = Data(presentation.body(of: storedBody))
            if presentation == .whole, let next = redirect(status: response.status, fields: response.fields) {
                var answer = answer
                answer.head = head
                answer.body = body
                return actions + redirected(answer, next: next, now: now)
            }
        case .combine(_, let response, let presentation, let verdict):
            let whole = storedBody + answer.body
            if case .store(let stored, let replaced) = verdict {
                actions.append(.store(stored, whole, edited: nil, replacing: replaced))
            }
            head = presentation.head(of: response, age: nil)
            body = Data(presentation.body(of: whole))
        default: return []
        }
        state = .ended
        let report = Report(
            outcome: .revalidated(index: index), status: head.status, age: nil, forwardStatus: answer.head.status)
        actions += [.report(report), .deliverStoredHead(head, url)]
        if !body.isEmpty { actions.append(.deliverData(body)) }
        return actions + [.finish]
    }

    // MARK: Storing

    private mutating func store(_ answer: Answer, edited: EditedResponse?) -> [Action] {
        [edited.flatMap { storing(answer, edited: $0) }].compactMap { $0 } + deliver(answer)
    }

    private func storing(_ answer: Answer, edited: EditedResponse?) -> Action? {
        guard case .deliver(.store(var response, let replaced), _) = answer.decision else { return nil }
        guard let edited else { return .store(response, answer.body, edited: nil, replacing: replaced) }
        if let fields = edited.fields { response.fields = fields }
        if let status = edited.status { response.status = status }
        return .store(response, edited.data, edited: edited, replacing: replaced)
    }

    // MARK: Redirects

    private func redirect(status: Int, fields: HeaderFields) -> URLRequest? {
        RedirectRequest.following(request, status: status, fields: fields)
    }

    private mutating func proceed(_ answer: Answer, now: Date) -> [Action] {
        if let next = answer.redirect { return redirected(answer, next: next, now: now) }
        return deliver(answer)
    }

    private mutating func redirected(_ answer: Answer, next: URLRequest, now: Date) -> [Action] {
        guard hops < RedirectRequest.limit else {
            state = .ended
            return [.report(Report(outcome: .failed("redirects"))), .fail(loadError(.httpTooManyRedirects))]
        }
        guard settings.confirmsRedirects else { return follow(next, now: now) }
        state = .confirmingRedirect(answer)
        return [.confirmRedirect(answer.head, next)]
    }

    private mutating func follow(_ next: URLRequest, now: Date) -> [Action] {
        hops += 1
        hasWaited = false
        request = next
        key = settings.key(next)
        facts = Self.facts(of: next, hasKey: key != nil)
        return lookUp(now: now)
    }

    // MARK: Delivering

    private mutating func deliver(_ answer: Answer) -> [Action] {
        state = .ended
        guard !answer.isDelivered else { return [.finish] }
        guard let url = request.url else { return [.fail(loadError(.badURL))] }
        var actions: [Action] = [.report(report(answer))]
        // A redirect that is not followed may have come from the store: its head is at hand either way.
        actions.append(answer.redirect == nil ? .deliverNetworkHead : .deliverStoredHead(answer.head, url))
        if !answer.body.isEmpty { actions.append(.deliverData(answer.body)) }
        return actions + [.finish]
    }

    private func report(_ answer: Answer) -> Report {
        var report = Report(outcome: .miss(answer.reason), status: answer.head.status)
        report.forwardStatus = answer.head.status
        if case .deliver(let verdict, _) = answer.decision { report.storage = verdict }
        report.isCollapsed = hasWaited
        return report
    }

    private func loadError(_ code: URLError.Code) -> URLError {
        var userInfo: [String: Any] = [:]
        if let url = request.url {
            userInfo[NSURLErrorFailingURLErrorKey] = url
        }
        return URLError(code, userInfo: userInfo)
    }
}

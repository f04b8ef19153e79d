import Foundation

/// One load as a value: events in, actions out, no I/O.
///
/// A load looks up its key, decides (`CacheDecision`), perhaps sends a request, decides again (`ResponseDecision`), and
/// answers. A redirect starts over with the next request, so that each hop is looked up and stored under its own URL.
///
/// The parts that the app decides (keys, rules, capacities, the delegate's answers) come with the events: the machine
/// runs under a lock, and calls no code of the app.
///
/// Invariants for every order of events: an answer is a head, once, then data, then `.finish`; or `.fail`, with or
/// without a part of those before it. A refresh in the background may end with `.finish` alone. After `.finish`,
/// `.fail` or the event `.cancelled` no action is returned, except the `.cancelFetch` that `.cancelled` itself returns.
/// An action that needs a reply is the last of its list. `report` tells the course of the load so far: it is final
/// before the head, except for what becomes of the answer in the store.
struct LoadMachine {
    enum Event {
        /// The beginning of a load, and the reply to `.lookUp`. None are stored if the hop has no key.
        case found(StoredResponses, now: Date)
        /// Replaces the first `.found` for a refresh in the background: the same, and the conditional request to send.
        case refreshing(StoredResponses, Revalidation, now: Date)
        /// Reply to `.readBody`; nil when the entry is damaged or no longer stored. Then the whole response is fetched,
        /// and an answer that confirmed the entry is dropped.
        /// - Parameter entry: what was read into memory: it is not read again.
        case body(Body?, entry: StoredEntry? = nil, now: Date)
        /// Reply to a collapsible `.fetch`: the load that fetches the same has ended, or cannot share its answer, or
        /// takes too long.
        /// - Parameter mayWaitAgain: that load was cancelled, so it is not known whether its answer can be shared.
        case waitEnded(mayWaitAgain: Bool)
        /// - Parameter options: for an answer with these fields.
        case head(status: Int, fields: HeaderFields, options: CachingOptions, now: Date)
        case data(Data)
        case ended(Swift.Error?, now: Date)
        /// The body of a redirect takes its time, and the client, which follows every redirect, will not see it.
        case redirectBodyIsLate
        /// Reply to `.confirmStorage`: the response to store, or nil to store none.
        case storageConfirmed(EditedResponse?)
        /// Reply to `.redirect`: the request to follow, or nil to deliver the redirect itself.
        case redirectDecided(ResolvedRequest?, now: Date)
        case cancelled
    }

    /// Actions concern the hop at which the machine is until it gets the next event.
    enum Action {
        case lookUp
        case readBody(StoredVariant)
        /// Sends the hop's request with these fields set. A collapsible fetch may wait for another load that fetches
        /// the same.
        case fetch(HeaderFields, collapsible: Bool)
        case cancelFetch
        /// The arriving answer cannot serve the loads that wait for it.
        case release
        /// The server's 304 confirmed no stored response: it is asked without a condition for a while.
        case distrustValidators
        /// The body of the answer begins; a list has it before the first `keep`.
        indirect case beginBody(BodyPlan)
        /// The next piece of the body.
        case keep(Data)
        /// The head as the network sent it; the driver still has the response object.
        case deliverNetworkHead
        case deliverStoredHead(ResponseHead)
        /// The whole answer is made of a stored response, without a request: its head, its body and its end.
        case answer(StoredAnswer)
        /// A stored body.
        case deliverBody(Body)
        /// The body that has arrived, whole.
        case deliverGathered
        case finish
        case fail(Swift.Error)
        /// - Parameter byDelegate: false for a redirect that is followed, which the task's delegate does not confirm.
        indirect case confirmStorage(StoredResponse, byDelegate: Bool)
        indirect case store(Storing)
        /// Changes the stored response, if it is still stored as it was found: it may have been removed, invalidated or
        /// replaced since (RFC 9111 §4.3.4, §4.4). The delivered answer stays right, for the origin confirmed it.
        indirect case change(StoreChange)
        /// The redirects that are stored under these keys led nowhere.
        case forget(Set<RequestKey>)
        /// Stored responses are no longer valid: the answer says so.
        indirect case invalidate(Invalidation)
        /// Gives the redirect to the driver, which replies with the next hop.
        indirect case redirect(ResponseHead, DiskURLCache.Request)
        indirect case refreshInBackground(Revalidation)
    }

    /// An answer that is made of a stored response, without a request. A class, so that passing it on costs one
    /// reference.
    final class StoredAnswer: Sendable {
        let variant: StoredVariant
        /// Its head.
        let response: StoredResponse
        let presentation: Presentation
        /// `current_age` in seconds.
        let age: Int64
        /// The part of the stored body that is delivered.
        let body: Body

        init(
            of variant: StoredVariant, _ response: StoredResponse, _ presentation: Presentation, age: Int64, body: Body
        ) {
            self.variant = variant
            self.response = response
            self.presentation = presentation
            self.age = age
            self.body = body
        }

        func head(
            to request: DiskURLCache.Request, _ report: LoadReport, in cache: CacheCore
        ) -> DeliveredHead {
            response.deliveredHead(
                presentation, age: age, to: request,
                cacheStatus: report.deliveredStatus(name: cache.cacheStatusName), madeBy: variant.entry)
        }
    }

    /// What becomes of a body that arrives.
    enum BodyPlan {
        /// It is stored with the response.
        /// - Parameters:
        ///   - streams: whether its pieces go to the client as they arrive.
        ///   - length: as the head gives it.
        ///   - isHeld: whether it stays in memory, since the response is only held for a while.
        case store(StoredResponse, streams: Bool, length: Int?, isHeld: Bool = false)
        /// It is not stored, and its pieces go to the client as they arrive.
        case stream
        /// It is needed whole, however large it is.
        case gather
    }

    /// A response on its way into the store.
    struct Storing {
        var response: StoredResponse
        var replacing: [StoredVariant] = []
        /// The response that is refreshed: the driver stores the new one only if that one is still stored as it was
        /// found.
        var basis: StoredVariant?
        var edited = EditedResponse()
        /// Why the response is only held; nil if it is stored.
        var heldBecause: DiskURLCache.Reason?
    }

    enum State {
        case lookingUp
        /// - Parameter insteadOf: the request whose failure the stored response replaces.
        indirect case reading(Reuse, insteadOf: Fetch? = nil)
        /// The body behind a 304.
        case readingForAnswer(Answer, StoredVariant, asked: DiskURLCache.Reason)
        /// Also while the load waits for another load that fetches the same.
        case fetching(Fetch)
        case confirmingStorage(Answer)
        case redirecting(Answer)
        case ended
    }

    /// A request that was sent. A class, since each event of the load looks at it.
    final class Fetch: Sendable {
        let reason: DiskURLCache.Reason
        let revalidation: Revalidation?
        let requestTime: Date
        let isCollapsible: Bool
        /// Nil as long as the head has not arrived.
        let answer: Answer?

        init(
            _ reason: DiskURLCache.Reason, _ revalidation: Revalidation?, at time: Date, isCollapsible: Bool,
            answer: Answer? = nil
        ) {
            self.reason = reason
            self.revalidation = revalidation
            requestTime = time
            self.isCollapsible = isCollapsible
            self.answer = answer
        }

        func answered(_ answer: Answer) -> Fetch {
            Fetch(reason, revalidation, at: requestTime, isCollapsible: isCollapsible, answer: answer)
        }
    }

    /// A response on its way to the client. A class, as the request is.
    final class Answer: Sendable {
        let head: ResponseHead
        /// Nil for an answer from the store.
        let decision: ResponseDecision?
        /// The head was sent to the client, and so is each piece.
        let isDelivered: Bool
        /// The request that follows, for a redirect.
        let redirect: DiskURLCache.Request?
        /// The body of an answer from the store.
        let stored: Body?

        init(
            _ head: ResponseHead, decision: ResponseDecision? = nil, isDelivered: Bool = false,
            redirect: DiskURLCache.Request?, stored: Body? = nil
        ) {
            self.head = head
            self.decision = decision
            self.isDelivered = isDelivered
            self.redirect = redirect
            self.stored = stored
        }
    }

    var hop: ResolvedRequest
    /// Pieces are delivered as they arrive: certain only for tasks with a delegate, see `LoadClient`.
    let streams: Bool
    /// A delegate or closure confirms each response before it is stored.
    let confirmsStorage: Bool
    var report: LoadReport
    var stored = StoredResponses.none
    var state = State.lookingUp
    /// Bytes of the body that is arriving.
    var arrivedBytes = 0
    var hops = 0
    var hopStartedAt: Date
    /// The keys of the hops before this one. A redirect that is stored under one of them has led back here: it is asked
    /// for at the origin before it is followed again.
    var followedKeys: Set<RequestKey> = []
    /// The redirects by which the origin has answered this load: the request, and the one that follows it.
    var redirectsByOrigin: [(from: DiskURLCache.Request, to: DiskURLCache.Request)] = []
    /// Set once the time for a head is over: no request is sent any more.
    var timeout: URLError?
    /// Why this load would have sent a request, if it had not waited for another load.
    var waited: DiskURLCache.Reason?
    /// For a refresh in the background: the response that it refreshes. Once that is removed, the refresh stores
    /// nothing and ends.
    var refreshed: StoredVariant?
    /// The stored response of which the answer is made.
    var used: StoredVariant?
    var isRefresh: Bool { refreshed != nil }

    /// - Parameter time: of the load's beginning.
    init(_ request: ResolvedRequest, streams: Bool, confirmsStorage: Bool, at time: Date) {
        hop = request
        self.streams = streams
        self.confirmsStorage = confirmsStorage
        hopStartedAt = time
        report = LoadReport(of: request.request, at: time)
    }

    var facts: RequestFacts { hop.facts }
    /// A redirect does not change it.
    var policy: ReusePolicy { report.request.policy }
    var hasEnded: Bool { if case .ended = state { true } else { false } }
    /// No request is sent any more: the load has ended, or the time for a head is over.
    var isOffNetwork: Bool { hasEnded || timeout != nil }
    var isFetching: Bool { if case .fetching = state { true } else { false } }
    /// A request was sent, and its final head has not arrived.
    var awaitsHead: Bool { if case .fetching(let fetch) = state { fetch.answer == nil } else { false } }

    /// The body of a redirect arrives, behind which the next hop comes.
    var awaitsRedirectBody: Bool {
        if case .fetching(let fetch) = state { fetch.answer?.redirect != nil && !isRefresh } else { false }
    }

    /// A stored response is being read.
    var isReading: Bool { if case .reading = state { true } else { false } }

    mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        // Events on their way may arrive after the end.
        case (.ended, _): return []
        case (_, .cancelled):
            let wasFetching = isFetching
            state = .ended
            used = nil
            return wasFetching ? [.cancelFetch] : []
        case (.lookingUp, .found(let stored, let now)): return decide(by: stored, now: now)
        case (.lookingUp, .refreshing(let stored, let revalidation, let now)):
            self.stored = stored
            refreshed = revalidation.variant
            return fetch(revalidation.reason, fields: revalidation.fields, revalidation: revalidation, now: now)
        case (.reading(let reuse, let failed), .body(let body, _, let now)):
            return answer(reuse, insteadOf: failed, body: body, now: now)
        case (.readingForAnswer(let answer, let variant, let reason), .body(let body, let entry, let now)):
            // With what was read into memory, so that it is not read again.
            let read = entry.map { StoredVariant($0, from: variant.layer) } ?? variant
            return complete(answer, with: read, asked: reason, storedBody: body, now: now)
        case (.fetching(let fetch), .waitEnded(let mayWaitAgain)) where fetch.answer == nil:
            if !mayWaitAgain { waited = fetch.reason }
            state = .lookingUp
            return [.lookUp]
        // The load stopped waiting at the same moment.
        case (_, .waitEnded): return []
        case (.fetching, .head(100...199, _, _, _)): return []  // Interim: the answer is still to come.
        case (.fetching(let fetch), .head(let status, let fields, let options, let now)) where fetch.answer == nil:
            return receive(ResponseHead(status: status, fields: fields), fetch: fetch, options: options, now: now)
        case (.fetching, .head): return []  // The next part of a multipart answer: Foundation reports each.
        case (.fetching(let fetch), .data(let data)):
            // A protocol class of the app may send data before a head.
            return fetch.answer.map { receive(data, for: $0) } ?? []
        case (.fetching(let fetch), .ended(let error, let now)): return end(fetch, error: error, now: now)
        case (.fetching(let fetch), .redirectBodyIsLate): return followEarly(fetch)
        case (_, .redirectBodyIsLate): return []
        case (.confirmingStorage(let answer), .storageConfirmed(let edited)): return store(answer, edited: edited)
        case (.redirecting(let answer), .redirectDecided(let next, let now)):
            return next.map { follow($0, now: now) } ?? deliver(answer)
        // A delegate called its handler twice.
        case (_, .storageConfirmed), (_, .redirectDecided): return []
        case (_, .found), (_, .refreshing), (_, .body), (_, .head), (_, .data), (_, .ended):
            assertionFailure("\(event) while \(state)")
            return []
        }
    }

    private mutating func follow(_ next: ResolvedRequest, now: Date) -> [Action] {
        waited = nil
        hopStartedAt = now
        hops += 1
        if let key = hop.key { followedKeys.insert(key) }
        hop = next
        stored = .none
        used = nil
        state = .lookingUp
        return [.lookUp]
    }
}

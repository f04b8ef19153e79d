import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One load as a value: events in, actions out, no I/O.
///
/// A load looks up what is stored, decides (`CacheDecision`), perhaps asks the network, decides again
/// (`ResponseDecision`), and answers. A redirect starts over with the next request, so that each hop is looked up and
/// stored under its own URL.
///
/// What holds whatever the order of events: an answer is a head, once, then data, then `.finish`; or `.fail`, with or
/// without a part of that before it. A refresh in the background may end with `.finish` alone. After `.finish`, `.fail` or
/// the event `.cancelled` no action is returned, but for the `.cancelFetch` that `.cancelled` itself returns. An action
/// that asks something is the last of its list.
struct LoadMachine {
    enum Event {
        case started(now: Date)
        /// In place of `started`, for a refresh in the background: what is stored, and what to ask.
        case refreshing([Candidate], Revalidation, now: Date)
        /// Answer to `.lookUp`: what is stored, the most recent first. In place of `started` where that was looked up
        /// before the load began.
        case found([Candidate], now: Date)
        /// Answer to `.readBody`; nil when the entry is damaged or no longer stored. Then the origin is asked for the whole,
        /// and what it had confirmed or completed is forgotten.
        case body(Data?, now: Date)
        /// The same, where the machine says that it `takesOpenBody`: the body is left in its file.
        case opened(OpenBody, now: Date)
        /// Answer to a collapsible `.fetch`: another load that fetched the same has ended. What it got is stored, if it
        /// could be; where it was cancelled before, `mayWaitAgain` is true.
        case leaderFinished(mayWaitAgain: Bool, now: Date)
        /// Instead: the answer that the other load is getting, then its pieces, then its end.
        case leaderShares(StoredResponse, now: Date)
        case leaderSent(Data, offset: Int)
        /// The first piece, where it is in a file: all that the other load has by now.
        case leaderOpened(OpenBody)
        case leaderEnded(Swift.Error?, now: Date)
        case head(status: Int, fields: HeaderFields, now: Date)
        case data(Data)
        case ended(Swift.Error?, now: Date)
        /// Answer to `.keep`, where that could not be done: all of the body so far, to be kept in memory up to a limit; or nil where it
        /// is too large for that, and then it is not stored.
        case notKept(Data?, limit: Int)
        /// Answer to `.confirmStorage`: what to store, or nil for nothing.
        case storageConfirmed(EditedResponse?, now: Date)
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
        /// What arrives will not serve the loads that wait for it.
        case releaseFollowers
        /// The loads that wait for it may have what arrives.
        case share(StoredResponse)
        /// The head as the network sent it; the driver still has the response object.
        case deliverNetworkHead
        case deliverStoredHead(ResponseHead, URL)
        /// The head of a candidate that is reused without asking: the driver may have made it before.
        case deliverReusedHead(Presentation, of: StoredResponse, age: Int64, index: Int, URL)
        case deliverData(Data)
        case deliverOpenBody(OpenBody)
        /// The next piece of a body that is gathered in a file; all of it before, the first time.
        case keep(Data)
        /// What is gathered in a file is not stored.
        case dropKept
        case finish
        case fail(Swift.Error)
        /// The task's delegate is not asked about a redirect that is followed.
        /// - Parameter Data: empty where the body is in a file.
        indirect case confirmStorage(StoredResponse, Data, byDelegate: Bool)
        /// `basis` is the candidate that this rests on: the first part of a whole, or what a refresh was about. The driver
        /// stores nothing where that one is no longer stored as it was found.
        indirect case store(StoredResponse, Data, edited: EditedResponse?, replacing: [Int], basis: Int?, Target)
        /// The same of the body that was gathered in a file.
        indirect case storeKept(StoredResponse, edited: EditedResponse?, replacing: [Int], basis: Int?, Target)
        /// The body grew beyond what may be stored, and was not kept: what it would have replaced goes.
        case giveUpStoring(bytes: Int, Target)
        /// Changes the candidate that it names, where that one is still stored as it was found: it may have been removed,
        /// invalidated or replaced while the origin was asked (RFC 9111 §4.3.4, §4.4). What is delivered stays right, for
        /// the origin confirmed it.
        indirect case change(StoreChange, Target)
        /// What is stored of these URLs is no longer valid: an unsafe request succeeded.
        case invalidate([URL])
        case confirmRedirect(ResponseHead, URLRequest)
        indirect case refreshInBackground(Revalidation, Target)
        /// How the load goes, as far as is known: before the head, and again before the end where that changed.
        case report(Report)
    }

    /// What is stored belongs to the hop it came from, while the load may be at the next one already.
    struct Target {
        var key: RequestKey
        var request: URLRequest
    }

    /// A response that a delegate or the admission closure let pass, perhaps changed, before it was stored.
    struct EditedResponse {
        var fields: HeaderFields?
        var status: Int?
        var data: Data
        /// The body is the one that was gathered in a file, unchanged; `data` shows it.
        var isAsKept = false
        var isMemoryOnly = false
        var userInfo: [String: PropertyValue] = [:]
        /// Set where `userInfo` has values that only memory can keep.
        var presented: CachedURLResponse?
    }

    /// What stays the same through all hops of a load.
    struct Settings {
        var key: @Sendable (URLRequest) -> RequestKey?
        /// For a request and the head of what is stored or received, as far as there is one.
        var options: @Sendable (URLRequest, HeaderFields?) -> CachingOptions
        /// Chunks are delivered as they arrive: certain only for tasks with a delegate, see `LoadClient`.
        var streams: Bool
        /// A delegate or closure wants to be asked before something is stored.
        var confirmsStorage: Bool
        /// A delegate wants to be asked before a redirect is followed.
        var confirmsRedirects: Bool
        /// Bodies larger than this are not kept for storing while they stream past. Asked once for each fetch.
        var largestStorableBody: @Sendable () -> Int
        /// What the session adds to each request: its cookies.
        var prepare: @Sendable (URLRequest) -> URLRequest = { $0 }
        /// How many bytes of a body are gathered in memory before it is gathered in a file; nil where all are.
        var gatheringLimit: @Sendable (StoredResponse, URLRequest) -> Int? = { _, _ in nil }
    }

    /// Indirect: most of a load's steps are far from its largest payload.
    indirect enum State {
        case idle
        case lookingUp
        case reading(Reuse)
        /// The body behind a 304, or the first part of a combined response.
        case readingForAnswer(Answer, index: Int)
        case fetching(Fetch)
        case following(Following)
        case confirmingStorage(Answer)
        case confirmingRedirect(Answer)
        case ended
    }

    /// A request under way.
    struct Fetch {
        var reason: CacheMissReason
        var revalidation: Revalidation?
        var requestTime: Date
        /// What the client has of the same answer already.
        var continued: Continued?
        /// Set once the head is there.
        var answer: Answer?
    }

    /// A response on its way to the client.
    struct Answer {
        var head: ResponseHead
        /// Nil for what came from the store.
        var decision: ResponseDecision?
        var report: Report
        /// The head has gone to the client, and so does each chunk.
        var isDelivered = false
        /// The request that follows, for a redirect.
        var redirect: URLRequest?
        /// The report has not changed since it was told.
        var isReported = false

        /// For an answer whose body, once complete, turns out not to be storable.
        func refused(_ reason: CacheNotStoredReason) -> Answer {
            var answer = self
            answer.report.storage = .refuse(reason)
            answer.isReported = false
            return answer
        }
    }

    /// The body so far. Apart from the state, whose payload would be copied with each chunk.
    struct Arriving {
        var data = Data()
        var count = 0
        var isKept = true
        /// Bytes that may be kept once they are delivered.
        var limit = Int.max
        /// Bytes that the client has already.
        var skipped = 0
        /// Of the body that is kept: more than so many bytes go to a file.
        var gatheringLimit: Int?
        /// The body is gathered in a file. `data` may hold it too, until the next piece comes.
        var isInFile = false
        /// It was to be kept, and could not be: what is stored of the URL stays.
        var isLost = false
        /// What is delivered in place of `data`.
        var stored: StoredBody?
    }

    private(set) var request: URLRequest
    private(set) var key: RequestKey?
    let settings: Settings
    let policy: ReusePolicy
    var facts: RequestFacts
    var candidates: [Candidate] = []
    var state = State.idle
    var arriving = Arriving()
    var hops = 0
    /// Why this load would have asked the network, had it not waited for another load that did.
    var waited: CacheMissReason?
    /// For a refresh in the background: the candidate that it refreshes. Once that candidate is removed, the refresh stores
    /// nothing and ends.
    var refreshed: Int?
    var isRefresh: Bool { refreshed != nil }

    /// - Parameters:
    ///   - facts: of the request, where they are known already.
    ///   - key: the same.
    init(request: URLRequest, facts: RequestFacts? = nil, key: RequestKey? = nil, settings: Settings) {
        self.request = request
        self.settings = settings
        policy = ReusePolicy(request.cachePolicy)
        self.facts = facts ?? RequestFacts(request)
        self.key = key ?? settings.key(request)
    }

    var hasEnded: Bool { if case .ended = state { true } else { false } }

    /// The body of a stored answer is on its way.
    var isReading: Bool {
        switch state {
        case .reading, .readingForAnswer: true
        default: false
        }
    }

    /// A whole is being made of what is stored and what arrives: its head is delivered at the end.
    var isCompleting: Bool {
        if case .fetching(let fetch) = state, case .combine = fetch.answer?.decision { true } else { false }
    }

    var method: String { facts.method }

    var target: Target? { key.map { Target(key: $0, request: request) } }

    /// Options for what is stored.
    var storedOptions: CachingOptions { options(for: candidates.first?.response.fields) }

    func options(for fields: HeaderFields?) -> CachingOptions {
        var options = settings.options(request, fields)
        // A method that has a key is cacheable: only a recipe gives one to others than GET and HEAD.
        if key != nil, !options.isCacheable(facts.method) { options.furtherMethods.insert(facts.method) }
        return options
    }

    /// What makes two fetches the same: the transport's owner, key and every header field of the request.
    /// - Parameter lastRemoval: the number of the last removal that concerned the key. Who asks after it joins none that asked before:
    ///   what that one gets may be what was removed.
    func identity(owner: ObjectIdentifier?, lastRemoval: UInt64) -> String {
        let owner = owner.map { "\(UInt(bitPattern: $0))" } ?? "-"
        let fields = facts.fields.fields.map { "\($0.name.lowercased()):\($0.value)" }.sorted()
        return ([owner, "\(lastRemoval)", key?.text ?? ""] + fields).joined(separator: "\n")
    }

    mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.ended, _): return []
        case (_, .cancelled):
            let wasFetching = if case .fetching = state { true } else { false }
            state = .ended
            return wasFetching ? [.cancelFetch] : []
        case (.idle, .started(let now)): return lookUp(now: now)
        case (.lookingUp, .found(let candidates, let now)),
            (.idle, .found(let candidates, let now)) where key != nil:
            self.candidates = candidates
            return decide(now: now)
        case (.idle, .refreshing(let candidates, let revalidation, let now)):
            self.candidates = candidates
            refreshed = revalidation.index
            return fetch(revalidation.reason, fields: revalidation.fields, revalidation: revalidation, now: now)
        case (.reading(let reuse), .body(let body, let now)):
            return answer(reuse, body: body.map { .whole($0) }, now: now)
        case (.reading(let reuse), .opened(let body, let now)): return answer(reuse, body: .open(body), now: now)
        case (.readingForAnswer(let answer, let index), .body(let body, let now)):
            return complete(answer, index: index, storedBody: body.map { .whole($0) }, now: now)
        case (.readingForAnswer(let answer, let index), .opened(let body, let now)):
            return complete(answer, index: index, storedBody: .open(body), now: now)
        case (.fetching(let fetch), .leaderFinished) where fetch.answer == nil && isRefresh:
            // Another load asked the same: what is stored is up to date, or the next use refreshes it.
            return endRefresh()
        case (.fetching(let fetch), .leaderFinished(let mayWaitAgain, let now)) where fetch.answer == nil:
            if !mayWaitAgain { waited = fetch.reason }
            return lookUp(now: now)
        case (.fetching(let fetch), .leaderShares(let response, let now)) where fetch.answer == nil:
            return follow(response, fetch: fetch, now: now)
        case (.fetching(let fetch), .leaderEnded(let error, let now)) where fetch.answer == nil:
            if error == nil { waited = fetch.reason }
            return lookUp(now: now)
        case (.following, .leaderSent(let piece, let offset)): return receive(piece, offset: offset)
        case (.following, .leaderOpened(let body)):
            arriving.count += body.count
            return [.deliverOpenBody(body)]
        case (.following(let following), .leaderEnded(let error, let now)):
            return leaderEnded(following, error: error, now: now)
        case (.following, .ended(let error?, _)): return fail(error, because: .network)
        case (.fetching, .head(100...199, _, _)): return []  // Interim: the answer is still to come.
        case (.fetching(let fetch), .head(let status, let fields, let now)) where fetch.answer == nil:
            return receive(ResponseHead(status: status, fields: fields), fetch: fetch, now: now)
        case (.fetching(let fetch), .data(let data)): return receive(data, fetch: fetch)
        case (.fetching, .notKept(let body, let limit)) where arriving.isInFile: return notKept(body, limit: limit)
        case (.fetching(let fetch), .ended(let error, let now)): return end(fetch, error: error, now: now)
        case (.confirmingStorage(let answer), .storageConfirmed(let edited, let now)):
            return store(answer, edited: edited, now: now)
        case (.confirmingRedirect(let answer), .redirectConfirmed(let next, let now)):
            return next.map { follow($0, now: now) } ?? deliver(answer)
        default: return []
        }
    }

    /// On to the next hop.
    mutating func follow(_ next: URLRequest, now: Date) -> [Action] {
        waited = nil
        hops += 1
        request = settings.prepare(next)
        facts = RequestFacts(request)
        key = settings.key(request)
        return lookUp(now: now)
    }
}

import Foundation

@testable import DiskURLCache

/// A cache of one URL with no I/O: plays requests through the pure decisions, as a loader does, at a time the test
/// sets.
struct PureCache {
    enum Source: Equatable {
        /// From the store, the origin not asked.
        case stored
        /// The origin answered 304 to the cache's own condition.
        case validated
        /// The origin's answer was delivered.
        case origin
        /// A stored response stood in for an error.
        case staleOnError
        /// Nothing to serve without the network.
        case unsatisfiable
    }

    struct Answer {
        var source: Source
        var status = 504
        var fields = HeaderFields()
        var body = Data()
        /// What the origin was asked last; nil when it was not.
        var asked: RequestFacts?
        var originRequests = 0
        var decision: CacheDecision
    }

    struct Origin {
        var status = 200
        var fields: HeaderFields = [:]
        var body = Data("body".utf8)
    }

    struct Entry {
        var response: StoredResponse { didSet { variant = PureCache.variant(response, body: body) } }
        var body: Data { didSet { variant = PureCache.variant(response, body: body) } }
        private(set) var variant: StoredVariant

        init(response: StoredResponse, body: Data) {
            self.response = response
            self.body = body
            variant = PureCache.variant(response, body: body)
        }
    }

    /// A stored response whose body is in memory.
    static func variant(_ response: StoredResponse, body: Data) -> StoredVariant {
        StoredVariant(StoredEntry(metadata: metadata(response), body: body), from: .memory)
    }

    /// A stored response whose body was not read.
    static func variant(_ response: StoredResponse, length: Int) -> StoredVariant {
        StoredVariant(metadata(response), bodyLength: length, from: .disk) { nil }
    }

    private static func metadata(_ response: StoredResponse) -> EntryMetadata {
        EntryMetadata(
            sequence: 0, url: nil, response: .http(response), storedAt: response.responseTime,
            placement: .memoryAndDisk, userInfo: [:], tags: [], isPinned: false)
    }

    static let start = Date(timeIntervalSince1970: 1_800_000_000)
    static let url = URL(string: "https://example.com/a/b?c=d")

    var entries: [Entry] = []
    var now = PureCache.start
    var options = CachingOptions()
    var lastVerdict: StorageVerdict?

    mutating func load(
        method: String = "GET", _ fields: HeaderFields = [:], policy: ReusePolicy = .useProtocol,
        origin: (RequestFacts) -> Origin?
    ) -> Answer {
        let request = RequestFacts(method: method, fields: fields)
        let decision = decider(request, policy).decision()
        var answer = Answer(source: .origin, decision: decision)
        switch decision {
        case .useStored(let reuse):
            answer.source = .stored
            deliver(reuse, into: &answer)
        case .unsatisfiable:
            answer.source = .unsatisfiable
        case .fetch(_, let fields):
            ask(origin, request, adding: fields, revalidation: nil, policy: policy, into: &answer)
        case .revalidate(let revalidation):
            ask(
                origin, request, adding: revalidation.fields, revalidation: revalidation, policy: policy, into: &answer)
        }
        return answer
    }

    /// Loads from an origin that answers always alike.
    mutating func load(
        method: String = "GET", _ fields: HeaderFields = [:], policy: ReusePolicy = .useProtocol,
        status: Int = 200, answer responseFields: HeaderFields = [:], body: String = "body"
    ) -> Answer {
        load(method: method, fields, policy: policy) { _ in
            Origin(status: status, fields: responseFields, body: Data(body.utf8))
        }
    }

    private var variants: [StoredVariant] { entries.map(\.variant) }

    private func body(of variant: StoredVariant) -> Data { variant.entry?.body ?? Data() }

    private func index(of variant: StoredVariant) -> Int { entries.firstIndex { $0.variant == variant } ?? -1 }

    private func decider(_ request: RequestFacts, _ policy: ReusePolicy) -> RequestDecider {
        RequestDecider(request: request, variants: variants, policy: policy, options: options, now: now)
    }

    private func deliver(_ reuse: Reuse, into answer: inout Answer) {
        let head = reuse.presentation.head(of: reuse.variant.response, age: reuse.freshness.age)
        answer.status = head.status
        answer.fields = head.fields
        answer.body = reuse.presentation.body(of: body(of: reuse.variant))
    }

    private mutating func ask(
        _ origin: (RequestFacts) -> Origin?, _ request: RequestFacts, adding fields: HeaderFields,
        revalidation: Revalidation?, policy: ReusePolicy, into answer: inout Answer
    ) {
        var all = request.fields
        for field in fields.fields { all.set(field.name, field.value) }
        let sent = RequestFacts(method: request.method, fields: all)
        answer.asked = sent
        answer.originRequests += 1
        guard let reply = origin(sent) else {
            let reuse = decider(request, policy).errorFallback().reuse
            answer.source = reuse == nil ? .unsatisfiable : .staleOnError
            if let reuse { deliver(reuse, into: &answer) }
            return
        }
        let exchange = Exchange(
            request: request, revalidation: revalidation, variants: variants, status: reply.status,
            fields: reply.fields, requestTime: now, responseTime: now, policy: policy)
        switch ResponseDecision.decide(exchange, options: options) {
        case .repeatRequest:
            ask(origin, request, adding: [:], revalidation: nil, policy: policy, into: &answer)
        case .useStaleOnError(let reuse):
            answer.source = .staleOnError
            deliver(reuse, into: &answer)
        case .freshen(let variant, let response, let presentation, let changes):
            answer.source = .validated
            answer.status = presentation.head(of: response, age: nil).status
            answer.fields = presentation.head(of: response, age: nil).fields
            answer.body = presentation.body(of: body(of: variant))
            apply(changes)
        case .deliver(let verdict, let changes):
            answer.status = reply.status
            answer.fields = reply.fields
            answer.body = reply.body
            apply(changes)
            store(verdict, reply.body)
        }
    }

    private mutating func store(_ verdict: StorageVerdict, _ body: Data) {
        lastVerdict = verdict
        guard case .store(let response, let replaced, _) = verdict,
            PartialContent.isConsistent(response, length: body.count)
        else { return }
        entries.removeAll { replaced.contains($0.variant) }
        entries.insert(Entry(response: response, body: body), at: 0)
    }

    private mutating func apply(_ changes: [StoreChange]) {
        var added: [Entry] = []
        for change in changes {
            switch change {
            case .update(let variant, let response): entries[index(of: variant)].response = response
            case .addVariant(let variant, let response):
                added.append(Entry(response: response, body: body(of: variant)))
            case .remove(let variant): entries.remove(at: index(of: variant))
            }
        }
        entries = added + entries
    }
}

/// An HTTP date so many seconds from the start of the tests.
func httpDate(_ offset: TimeInterval = 0) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.string(from: PureCache.start.addingTimeInterval(offset))
}

import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a machine wants done after an event, as short texts. Two of these are equal if the client gets the same in the
/// same order, and the same is done beside that, in any order.
struct MachineActions: Equatable, ExpressibleByArrayLiteral, CustomStringConvertible {
    /// In the order in which the machine gave them.
    let all: [String]

    init(_ all: [String]) { self.all = all }
    init(arrayLiteral all: String...) { self.all = all }

    /// The head, the data, the end.
    var answer: [String] { all.filter(Self.isAnswer) }
    /// What the load is, as it reports it when the client gets the head or an error.
    var report: String? { all.first { $0.hasPrefix("report ") } }
    /// What is stored, changed, asked for.
    var effects: [String] { all.filter { !Self.isAnswer($0) && !$0.hasPrefix("report ") } }
    var description: String { "\(all)" }

    func contains(_ text: String) -> Bool { all.contains(text) }

    private static func isAnswer(_ text: String) -> Bool {
        ["networkHead", "storedHead", "data ", "open ", "finish", "fail "].contains { text.hasPrefix($0) }
    }

    static func == (one: Self, other: Self) -> Bool {
        one.answer == other.answer && one.report == other.report && one.effects.sorted() == other.effects.sorted()
    }

    static func + (one: Self, other: Self) -> Self { MachineActions(one.all + other.all) }
}

/// Feeds a `LoadMachine` by hand and tells its actions as short texts.
struct MachineDriver {
    struct Options {
        var streams = false
        var confirmsStorage = false
        var confirmsRedirects = false
        var isOffline = false
        var hasKey = true
    }

    enum Stored {
        case fresh
        case stale(String = "x")
        /// Arrived so many seconds ago, and is to be confirmed before each use.
        case noCache(age: TimeInterval)
        case redirect
        /// A redirect that may stand in for an error.
        case staleRedirect
        /// The first six bytes of ten.
        case part

        func response(_ now: Date, body: String? = nil) -> StoredVariant {
            var status = 200
            var fields: HeaderFields = ["ETag": "\"e\""]
            var made = now
            switch self {
            case .fresh: fields.set("Cache-Control", "max-age=600")
            case .stale(let directive):
                fields.set("Cache-Control", "max-age=1, \(directive)")
                made -= 100
            case .noCache(let age):
                fields.set("Cache-Control", "no-cache")
                made -= age
            case .staleRedirect:
                status = 301
                fields = ["Cache-Control": "max-age=1, stale-if-error=600", "Location": "/b"]
                made -= 100
            case .redirect:
                status = 301
                fields = ["Cache-Control": "max-age=600", "Location": "/b"]
            case .part:
                status = 206
                fields.set("Cache-Control", "max-age=600")
                fields.set("Content-Range", "bytes 0-5/10")
            }
            let head = StoredResponse(
                method: "GET", status: status, fields: fields, requestTime: made, responseTime: made, vary: .none)
            let metadata = EntryMetadata(
                sequence: 0, url: nil, response: .http(head), storedAt: made, placement: .memoryAndDisk, userInfo: [:],
                tags: [], isPinned: false)
            guard let body else {
                return StoredVariant(metadata, bodyLength: 6, from: .disk) { nil }
            }
            let entry = StoredEntry(metadata: metadata, body: Data(body.utf8))
            return StoredVariant(metadata, bodyLength: 6, from: .memory, entry: entry) { entry }
        }
    }

    private(set) var machine: LoadMachine
    /// Whether the body that arrives, or arrived last, is kept for the store.
    private(set) var isBodyForStore = false
    /// The body as a driver gathers it.
    private var gathered = Data()
    /// Its pieces go to the client as they arrive.
    private var isStreamed = false
    private let options: Options
    private var caching = CachingOptions()
    var now = Date(timeIntervalSince1970: 1_790_000_000)

    init(
        method: String = "GET", fields: [String: String] = [:],
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy, _ configure: (inout Options) -> Void = { _ in }
    ) {
        var options = Options()
        configure(&options)
        var request = URLRequest(Responses.url("/a"), fields, method: method)
        request.cachePolicy = policy
        self.options = options
        caching.isOffline = options.isOffline
        if options.hasKey { caching.allow(method) }
        machine = LoadMachine(
            Self.keyed(DiskURLCache.Request(request), options), streams: options.streams,
            confirmsStorage: options.confirmsStorage, at: now)
    }

    /// A load that has looked up, and what it found.
    static func after(
        _ stored: [Stored], fields: [String: String] = [:],
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy, _ configure: (inout Options) -> Void = { _ in }
    ) -> MachineDriver {
        var load = MachineDriver(fields: fields, policy: policy, configure)
        _ = load.start() + load.found(stored)
        return load
    }

    private static func keyed(_ request: DiskURLCache.Request, _ options: Options) -> ResolvedRequest {
        ResolvedRequest(
            request, options.hasKey ? DiskURLCache.KeyPolicy.standard.decision(for: request) : .none(.noKey),
            rules: AppliedRules([], to: request), options: DiskURLCache.Options(), salt: nil)
    }

    /// The place of a stored response among those that were found.
    private func index(of variant: StoredVariant) -> Int {
        machine.stored.variants.firstIndex { $0 === variant } ?? -1
    }

    var hasEnded: Bool { machine.hasEnded }
    var request: URLRequest { machine.hop.request.urlRequest }

    /// What a driver does first.
    mutating func start() -> MachineActions {
        if machine.hasEnded { return [] }
        return machine.hop.key == nil ? found([]) : ["lookUp"]
    }
    /// - Parameter body: where it is at hand.
    mutating func found(_ stored: [Stored], body: String? = nil) -> MachineActions {
        send(.found(responses(stored, body: body), now: now))
    }
    mutating func body(_ text: String?) -> MachineActions {
        send(.body(text.map { .memory(Data($0.utf8)) }, now: now))
    }
    mutating func head(_ status: Int, _ fields: HeaderFields = [:]) -> MachineActions {
        send(.head(status: status, fields: fields, options: caching, now: now))
    }
    mutating func data(_ text: String) -> MachineActions { send(.data(Data(text.utf8))) }
    mutating func end(_ code: URLError.Code? = nil) -> MachineActions {
        send(.ended(code.map { URLError($0) }, now: now))
    }
    mutating func confirm(_ text: String?) -> MachineActions {
        send(.storageConfirmed(text.map { EditedResponse(data: Data($0.utf8)) }))
    }
    mutating func redirect(to path: String?) -> MachineActions {
        send(
            .redirectDecided(
                path.map { Self.keyed(DiskURLCache.Request(URLRequest(url: Responses.url($0))), options) }, now: now))
    }
    mutating func waitEnded(mayWaitAgain: Bool = false) -> MachineActions {
        send(.waitEnded(mayWaitAgain: mayWaitAgain))
    }
    mutating func cancel() -> MachineActions { send(.cancelled) }

    /// A refresh of the first of these, in place of `start`.
    mutating func refresh(_ stored: [Stored]) -> MachineActions {
        let stored = responses(stored)
        let revalidation = Revalidation(
            variant: stored.variants.first, fields: ["If-None-Match": "\"e\""], reason: .stale)
        return send(.refreshing(stored, revalidation, now: now))
    }

    private func responses(_ stored: [Stored], body: String? = nil) -> StoredResponses {
        StoredResponses(stored.map { $0.response(now, body: body) }) { _ in caching }
    }

    mutating func send(_ event: LoadMachine.Event) -> MachineActions {
        MachineActions(carryOut(event))
    }

    private mutating func carryOut(_ event: LoadMachine.Event) -> [String] {
        var texts: [String] = []
        for action in machine.handle(event) {
            switch action {
            case .fetch: gathered = Data()
            case .keep(let data):
                gathered += data
                if isStreamed { texts.append("data \(String(decoding: data, as: UTF8.self))") }
                continue
            case .beginBody(let plan):
                switch plan {
                case .stream, .store(_, streams: true, _, _): isStreamed = true
                case .gather, .store: isStreamed = false
                }
                if case .store = plan { isBodyForStore = true } else { isBodyForStore = false }
                continue
            case .redirect(_, let next) where !options.confirmsRedirects:
                texts += carryOut(.redirectDecided(Self.keyed(next, options), now: now))
                continue
            default: break
            }
            if Self.isReported(action) { texts.append(reportText) }
            texts.append(text(action))
            if case .answer(let answer) = action {
                texts += [bodyText(answer.body), "finish"].filter { $0 != "data " }
            }
        }
        return texts
    }

    private static func isReported(_ action: LoadMachine.Action) -> Bool {
        switch action {
        case .deliverNetworkHead, .deliverStoredHead, .answer, .fail: true
        default: false
        }
    }

    private func bodyText(_ body: Body) -> String {
        switch body {
        case .memory(let data): "data \(String(decoding: data, as: UTF8.self))"
        case .file(let body): "open \(body.count)"
        }
    }

    private func text(_ action: LoadMachine.Action) -> String {
        func text(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }
        let path = machine.hop.request.foundationURL?.path ?? ""
        switch action {
        case .lookUp: return "lookUp"
        case .readBody(let variant): return "readBody \(index(of: variant))"
        case .fetch(let fields, let collapsible):
            let isConditional = (fields["If-None-Match"] ?? machine.facts.fields["If-None-Match"]) != nil
            let condition = isConditional ? " if-none-match" : ""
            return "fetch" + (collapsible ? " collapsible" : "") + condition
        case .cancelFetch: return "cancelFetch"
        case .release: return "release"
        case .distrustValidators: return "distrust"
        case .deliverNetworkHead: return "networkHead"
        case .deliverStoredHead(let head): return "storedHead \(head.status)"
        case .answer(let answer):
            return "storedHead \(answer.presentation.status(of: answer.response))"
        case .deliverBody(let body): return bodyText(body)
        case .deliverGathered: return "data \(text(gathered))"
        case .beginBody, .keep: return ""
        case .finish: return "finish"
        case .fail(let error): return "fail \((error as? URLError)?.code.rawValue ?? 0)"
        case .confirmStorage(_, let byDelegate):
            return "confirmStorage \(text(gathered))" + (byDelegate ? " by delegate" : "")
        case .store(let storing):
            let data = storing.edited.data ?? gathered
            return "store \(text(data)) \(path)" + (storing.basis.map { " over \(index(of: $0))" } ?? "")
        case .change(.update(let variant, _)): return "change update \(index(of: variant)) \(path)"
        case .change(.addVariant(let variant, _)): return "change add \(index(of: variant)) \(path)"
        case .change(.remove(let variant)): return "change remove \(index(of: variant)) \(path)"
        case .forget(let keys): return "forget \(keys.count)"
        case .invalidate(let invalidation):
            let groups = invalidation.groups.isEmpty ? [] : ["groups"] + invalidation.groups
            return (["invalidate"] + invalidation.urls.map(\.path) + groups).joined(separator: " ")
                + (invalidation.emptiesHost ? " host" : "")
        case .redirect(_, let next): return "confirmRedirect \(next.foundationURL?.path ?? "")"
        case .refreshInBackground: return "refresh"
        }
    }

    /// The report as it stands when the answer begins or the load fails.
    private var reportText: String {
        switch machine.report.outcome {
        case .hit(_, nil): "report hit" + collapsed
        case .hit(_, let allowance?): "report stale hit \(allowance.code)" + collapsed
        case .standIn(_, nil, _): "report stand-in"
        case .standIn(_, let allowance?, _): "report stand-in \(allowance.code)"
        case .revalidated: "report revalidated"
        case .miss: "report miss"
        case .bypass: "report bypass"
        case .notAllowed, .failed: "report failed"
        }
    }

    private var collapsed: String { machine.waited == nil ? "" : " collapsed" }
}

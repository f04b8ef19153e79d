import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

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
        case redirect
        /// A redirect that does not say where to.
        case deadEnd
        /// The first six bytes of ten.
        case part

        func candidate(_ now: Date, body: String? = nil) -> Candidate {
            var status = 200
            var fields: HeaderFields = ["ETag": "\"e\""]
            var made = now
            switch self {
            case .fresh: fields.set("Cache-Control", "max-age=600")
            case .stale(let directive):
                fields.set("Cache-Control", "max-age=1, \(directive)")
                made -= 100
            case .redirect:
                status = 301
                fields = ["Cache-Control": "max-age=600", "Location": "/b"]
            case .deadEnd:
                status = 301
                fields = ["Cache-Control": "max-age=600"]
            case .part:
                status = 206
                fields.set("Cache-Control", "max-age=600")
                fields.set("Content-Range", "bytes 0-5/10")
            }
            return Candidate(
                response: StoredResponse(
                    method: "GET", status: status, fields: fields, requestTime: made, responseTime: made, vary: .none),
                bodyLength: 6, body: body.map { Data($0.utf8) })
        }
    }

    private(set) var machine: LoadMachine
    /// The body as a driver gathers it.
    private var gathered = Data()
    /// Its pieces go to the client as they arrive.
    private var streamsBody = false
    private let options: Options
    private var caching = CachingOptions()
    private let now = Date(timeIntervalSince1970: 1_790_000_000)

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

    private static func keyed(_ request: DiskURLCache.Request, _ options: Options) -> KeyedRequest {
        KeyedRequest(
            RuleTarget(request), options.hasKey ? DiskURLCache.KeyPolicy.standard.decision(for: request) : .none(.noKey)
        )
    }

    var hasEnded: Bool { machine.hasEnded }
    var request: URLRequest { machine.hop.request.urlRequest }

    /// What a driver does first.
    mutating func start() -> [String] {
        if machine.hasEnded { return [] }
        return machine.hop.key == nil ? found([]) : ["lookUp"]
    }
    /// - Parameter body: where it is at hand.
    mutating func found(_ stored: [Stored], body: String? = nil) -> [String] {
        send(.found(stored.map { $0.candidate(now, body: body) }, caching, now: now))
    }
    mutating func body(_ text: String?) -> [String] {
        send(.body(text.map { .whole(Data($0.utf8)) }, gathered: gathered, now: now))
    }
    mutating func head(_ status: Int, _ fields: HeaderFields = [:]) -> [String] {
        send(.head(status: status, fields: fields, options: caching, now: now))
    }
    mutating func data(_ text: String) -> [String] { send(.data(Data(text.utf8))) }
    mutating func end(_ code: URLError.Code? = nil) -> [String] { send(.ended(code.map { URLError($0) }, now: now)) }
    mutating func confirm(_ text: String?) -> [String] {
        send(.storageConfirmed(text.map { LoadMachine.EditedResponse(data: Data($0.utf8)) }))
    }
    mutating func redirect(to path: String?) -> [String] {
        send(
            .redirectDecided(path.map { Self.keyed(DiskURLCache.Request(URLRequest(url: Responses.url($0))), options) })
        )
    }
    mutating func waitEnded(mayWaitAgain: Bool = false) -> [String] {
        send(.waitEnded(mayWaitAgain: mayWaitAgain))
    }
    mutating func cancel() -> [String] { send(.cancelled) }

    /// A refresh of the first of these, in place of `start`.
    mutating func refresh(_ stored: [Stored]) -> [String] {
        let revalidation = Revalidation(index: 0, fields: ["If-None-Match": "\"e\""], reason: .stale)
        return send(.refreshing(stored.map { $0.candidate(now) }, revalidation, caching, now: now))
    }

    mutating func send(_ event: LoadMachine.Event) -> [String] {
        var texts: [String] = []
        for action in machine.handle(event) {
            switch action {
            case .fetch: gathered = Data()
            case .keep(let data):
                gathered += data
                if streamsBody { texts.append(text(action)) }
                continue
            case .beginBody(let plan):
                switch plan {
                case .stream: streamsBody = true
                case .store(_, let streams, _): streamsBody = streams
                case .gather: streamsBody = false
                }
                continue
            case .redirect(_, let next) where !options.confirmsRedirects:
                texts += send(.redirectDecided(Self.keyed(next, options)))
                continue
            default: break
            }
            if Self.isReported(action) { texts.append(reportText) }
            texts.append(text(action))
        }
        return texts
    }

    private static func isReported(_ action: LoadMachine.Action) -> Bool {
        switch action {
        case .deliverNetworkHead, .deliverStoredHead, .deliverReusedHead, .fail: true
        default: false
        }
    }

    private func text(_ action: LoadMachine.Action) -> String {
        func text(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }
        let path = machine.hop.request.foundationURL?.path ?? ""
        switch action {
        case .lookUp: return "lookUp"
        case .readBody(let index): return "readBody \(index)"
        case .fetch(let fields, let collapsible):
            let isConditional = (fields["If-None-Match"] ?? machine.facts.fields["If-None-Match"]) != nil
            let condition = isConditional ? " if-none-match" : ""
            return "fetch" + (collapsible ? " collapsible" : "") + condition
        case .cancelFetch: return "cancelFetch"
        case .release: return "release"
        case .deliverNetworkHead: return "networkHead"
        case .deliverStoredHead(let head): return "storedHead \(head.status)"
        case .deliverReusedHead(let reuse):
            return "storedHead \(reuse.presentation.status(of: machine.candidates[reuse.index].response))"
        case .deliverBody(.whole(let data)): return "data \(text(data))"
        case .deliverBody(.open(let body)): return "open \(body.count)"
        case .deliverGathered: return "data \(text(gathered))"
        case .keep(let data): return "data \(text(data))"
        case .beginBody: return ""
        case .finish: return "finish"
        case .fail(let error): return "fail \((error as? URLError)?.code.rawValue ?? 0)"
        case .confirmStorage(_, let byDelegate):
            return "confirmStorage \(text(gathered))" + (byDelegate ? " by delegate" : "")
        case .store(let storing):
            let data = storing.edited.data ?? gathered
            return "store \(text(data)) \(path)" + (storing.basis.map { " over \($0)" } ?? "")
        case .change(.update(let index, _)): return "change update \(index) \(path)"
        case .change(.addVariant(let index, _)): return "change add \(index) \(path)"
        case .change(.remove(let index)): return "change remove \(index) \(path)"
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
        case .revalidated: "report revalidated"
        case .miss: "report miss"
        case .bypass: "report bypass"
        case .notAllowed, .failed: "report failed"
        }
    }

    private var collapsed: String { machine.waited == nil ? "" : " collapsed" }
}

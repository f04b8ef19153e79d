import Foundation

/// Notes about the course of a load. They are turned into text only if somebody reads the event or the report.
///
/// A value, kept by reference: a load and its client copy it several times, and only the load changes it.
struct LoadReport: Sendable {
    enum Outcome {
        case hit(DiskURLCache.Layer, DiskURLCache.Reason?)
        /// A request was sent, and failed: the stored response replaces the error.
        /// - Parameters:
        ///   - because: what allows that; nil if the response is fresh.
        ///   - asked: why the request was sent.
        indirect case standIn(DiskURLCache.Layer, because: DiskURLCache.Reason?, asked: DiskURLCache.Reason)
        case revalidated(DiskURLCache.Layer, asked: DiskURLCache.Reason)
        case miss(DiskURLCache.Reason)
        /// The cache was not used: there was no lookup, and nothing was stored.
        case bypass(DiskURLCache.Reason)
        /// No request was allowed, and the store could not answer.
        case notAllowed(DiskURLCache.Reason)
        /// - Parameter code: the spelling in `Cache-Status`.
        case failed(code: String)
    }

    /// Whether a new answer was stored.
    enum Storage {
        case stored
        case refused(DiskURLCache.Reason)
    }

    private struct Values: Sendable {
        // Of the answer.
        var outcome = Outcome.miss(.notInCache)
        var status = 0
        var freshness: Freshness?
        var ageOnArrival: Int64?
        var forwardStatus: Int?
        var collapsedInto: DiskURLCache.Reason?
        var storage: Storage?

        // Of the whole load.
        let request: DiskURLCache.Request
        var bytes = 0
        let startedAt: Date
        var endedAt: Date?
        var requestedAt: Date?
        var respondedAt: Date?
        var error: (any Swift.Error)?
    }

    private var contents: CopyOnWrite<Values>

    private var values: Values { contents.values }

    init(of request: DiskURLCache.Request, at time: Date) {
        contents = CopyOnWrite(Values(request: request, startedAt: time))
    }

    var outcome: Outcome { values.outcome }
    var status: Int { values.status }
    /// Of a stored response that was reused unconfirmed.
    private var freshness: Freshness? { values.freshness }
    /// Of an answer of the network, or of the response that it confirmed.
    private var ageOnArrival: Int64? { values.ageOnArrival }
    private var forwardStatus: Int? { values.forwardStatus }
    /// If another load fetched the answer: why this load would have sent a request.
    private var collapsedInto: DiskURLCache.Reason? { values.collapsedInto }
    /// Whether a load of another process finds the answer: it was stored, or stored before.
    var isStoredForOthers: Bool {
        switch outcome {
        case .hit, .revalidated: true
        case .standIn, .miss, .bypass, .notAllowed, .failed: if case .stored? = storage { true } else { false }
        }
    }
    /// Nil if there is no new answer to store, or if it is not decided yet.
    var storage: Storage? {
        get { values.storage }
        set { contents.change { $0.storage = newValue } }
    }
    /// The first one, without its redirects.
    var request: DiskURLCache.Request { values.request }
    var bytes: Int {
        get { values.bytes }
        set { contents.change { $0.bytes = newValue } }
    }
    var startedAt: Date { values.startedAt }
    var requestedAt: Date? {
        get { values.requestedAt }
        set { contents.change { $0.requestedAt = newValue } }
    }
    var respondedAt: Date? {
        get { values.respondedAt }
        set { contents.change { $0.respondedAt = newValue } }
    }
    private var error: (any Swift.Error)? { values.error }

    /// Notes the outcome. It replaces an earlier one, of a previous hop or of an answer that failed.
    /// - Parameters:
    ///   - freshness: of a stored response that is reused unconfirmed.
    ///   - age: of an answer of the network, or of the response that it confirmed.
    ///   - waited: why the load would have sent a request, if it waited for another load instead.
    mutating func note(
        _ outcome: Outcome, status: Int = 0, freshness: Freshness? = nil, age: Int64? = nil, forwardStatus: Int? = nil,
        waited: DiskURLCache.Reason? = nil, storage: Storage? = nil
    ) {
        contents.change { values in
            values.outcome = outcome
            values.status = status
            values.freshness = freshness
            values.forwardStatus = forwardStatus
            values.ageOnArrival = age
            values.collapsedInto = waited
            values.storage = storage
        }
    }

    /// Notes the end of the load.
    /// - Parameter error: the one that the client gets.
    mutating func end(at time: Date, error: (any Swift.Error)?) {
        contents.change { values in
            values.endedAt = time
            values.error = error
        }
    }

    /// Counts a load that has ended, and sends the event to listeners.
    /// - Parameters:
    ///   - hop: the last request.
    ///   - used: the stored response of which the answer was made.
    ///   - fields: of an answer of the network.
    func publish(
        of hop: ResolvedRequest, using used: StoredVariant?, fields: HeaderFields? = nil, in cache: CacheCore
    ) {
        var tags = hop.tags(for: used?.metadata.http?.fields ?? fields)
        if let used, !used.metadata.tags.isEmpty { tags.formUnion(used.metadata.tags.filter(CacheCore.isTagOfApp)) }
        publish(host: hop.host, tags: tags, in: cache)
    }

    /// - Parameters:
    ///   - host: of the last request.
    ///   - tags: those of the app that the answer has.
    func publish(host: String, tags: Set<String>, in cache: CacheCore) {
        cache.hub.count(self, host: host, tags: tags)
        if cache.hub.hasListeners { cache.hub.emit(.load(publicReport(cacheName: cache.cacheStatusName))) }
    }

    /// The clock may have been set back since.
    var duration: TimeInterval { max(0, (values.endedAt ?? startedAt).timeIntervalSince(startedAt)) }

    /// Whether a stored response was confirmed or replaced.
    var hasRefreshed: Bool {
        if case .stored? = storage { return true }
        if case .revalidated = outcome { return true }
        return false
    }

    var isStale: Bool {
        switch outcome {
        case .hit(_, let allowance), .standIn(_, let allowance, _): allowance != nil
        case .revalidated, .miss, .bypass, .notAllowed, .failed: false
        }
    }
}

extension LoadReport {
    /// The report in the form of RFC 9211.
    /// - Parameter name: the cache's identifier; nil for the standard one.
    func cacheStatus(name: String?) -> CacheStatus {
        var status = CacheStatus(cacheName: name ?? "DiskURLCache")
        status.forwardStatus = forwardStatus
        status.collapsed = collapsedInto != nil
        switch outcome {
        case .hit(_, let allowance):
            // RFC 9211 §2.6: a request that waited for the fetch of an equal request is not a hit.
            status.hit = collapsedInto == nil
            status.forward = collapsedInto?.forward
            status.timeToLive = freshness?.timeToLive
            status.detail = allowance?.code
        case .standIn(_, let allowance, let asked):
            status.forward = asked.forward
            status.timeToLive = freshness?.timeToLive
            status.detail = allowance?.code
        case .revalidated(_, let reason), .miss(let reason):
            status.forward = reason.forward
            status.detail = reason.detail
        case .bypass(let reason):
            status.forward = reason == .methodNotCached ? reason.forward : "bypass"
            status.detail = reason.code
        case .notAllowed(let reason): status.detail = reason.code
        case .failed(let code): status.detail = code
        }
        if case .stored? = storage { status.stored = true }
        return status
    }

    /// The value for a response that is delivered: if the configuration wants one, and in each answer that the cache
    /// made itself.
    func deliveredStatus(name: String?) -> String? {
        if case .notAllowed = outcome { return cacheStatus(name: name).fieldValue }
        return name.map { cacheStatus(name: $0).fieldValue }
    }

    func publicReport(cacheName: String?) -> DiskURLCache.Report {
        let publicOutcome: DiskURLCache.Report.Outcome =
            switch outcome {
            case .hit(let layer, let allowance?), .standIn(let layer, let allowance?, _):
                .staleHit(layer, because: allowance)
            case .hit(let layer, nil), .standIn(let layer, nil, _): .hit(layer)
            case .revalidated(let layer, _): .revalidated(layer)
            case .miss(let reason): .network(because: reason)
            case .bypass(let reason): .bypass(reason)
            case .notAllowed(let reason): .notAllowed(reason)
            case .failed: .failed
            }
        var isStored: Bool?
        var refusal: DiskURLCache.Reason?
        switch storage {
        case nil: break
        case .stored?: isStored = true
        case .refused(let reason)?:
            isStored = false
            refusal = reason
        }
        return DiskURLCache.Report(
            url: request.foundationURL?.removingCredentials, method: request.method, outcome: publicOutcome,
            status: status, bytes: bytes, age: (freshness?.age ?? ageOnArrival).map { Int(clamping: $0) },
            duration: duration,
            startedAt: startedAt, requestedAt: requestedAt, respondedAt: respondedAt, isStored: isStored,
            notStoredReason: refusal, isCollapsed: collapsedInto != nil, error: error,
            cacheStatus: cacheStatus(name: cacheName).fieldValue)
    }
}

extension EventHub {
    /// Counts a load, even if nobody listens for its report.
    fileprivate func count(_ load: LoadReport, host: String, tags: Set<String>) {
        count { statistics in
            statistics.count(load)
            statistics.byHost.count(under: host) { $0.count(load) }
            for tag in tags { statistics.byTag.count(under: tag) { $0.count(load) } }
        }
    }

    /// Counts a request that goes to the network.
    func countRequest(to host: String) {
        count { statistics in
            statistics.requests += 1
            statistics.byHost.count(under: host) { $0.requests += 1 }
        }
    }
}

extension DiskURLCache.Statistics {
    fileprivate mutating func count(_ load: LoadReport) {
        switch load.outcome {
        case .hit(let layer, _):
            countHit(layer, bytes: load.bytes)
            // A redirect to it may have come from the network.
            guard load.requestedAt == nil else { break }
            storeLoads += 1
            storeTime += load.duration
        case .standIn(let layer, _, _): countHit(layer, bytes: load.bytes)
        case .revalidated:
            revalidations += 1
            bytesSaved = bytesSaved.addingSaturated(load.bytes)
        case .miss:
            misses += 1
            bytesLoaded = bytesLoaded.addingSaturated(load.bytes)
            networkLoads += 1
            networkTime += load.duration
        case .bypass: bytesLoaded = bytesLoaded.addingSaturated(load.bytes)
        case .notAllowed, .failed: break
        }
    }
}

extension [String: DiskURLCache.Statistics] {
    /// A crawler has any number of hosts.
    private static let limit = 1_000

    fileprivate mutating func count(under name: String, _ change: (inout DiskURLCache.Statistics) -> Void) {
        let isNew = count >= Self.limit && self[name] == nil
        change(&self[isNew ? "" : name, default: DiskURLCache.Statistics()])
    }
}

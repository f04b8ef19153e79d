import Foundation

extension LoadMachine {
    /// The course of a load, for events and `Cache-Status`.
    struct Report {
        enum Outcome {
            case hit(index: Int, DiskURLCache.Reason?)
            case revalidated(index: Int)
            case miss(DiskURLCache.Reason)
            /// The cache was not used: no lookup, and no answer stored.
            case bypass(DiskURLCache.Reason)
            case failed(Failure)
        }

        /// Why a load got no answer.
        enum Failure {
            case cancelled
            case network
            /// A redirect too many, or a redirect to a URL that cannot be loaded.
            case redirects
            /// No request was allowed, and the store could not answer.
            case notAllowed(DiskURLCache.Reason)

            /// The spelling in `Cache-Status`.
            var code: String {
                switch self {
                case .cancelled: "cancelled"
                case .network: "network"
                case .redirects: "redirects"
                case .notAllowed(let reason): reason.code
                }
            }
        }

        var outcome: Outcome
        var status = 0
        var age: Int64?
        var timeToLive: Int64?
        var forwardStatus: Int?
        /// Whether the answer is to be stored; nil if there is no new answer to store. Only the driver knows whether it was.
        var storage: StorageVerdict?
        /// Why this load would have sent a request, if another load had not fetched the answer.
        var collapsedInto: DiskURLCache.Reason?
    }
}

extension LoadMachine.Report {
    /// For an answer from the store without a request.
    init(_ reuse: Reuse, of stored: StoredResponse, collapsedInto reason: DiskURLCache.Reason? = nil) {
        let allowance: DiskURLCache.Reason? = if case .stale(let allowance) = reuse.basis { allowance } else { nil }
        self.init(
            outcome: .hit(index: reuse.index, allowance), status: reuse.presentation.status(of: stored), age: reuse.age,
            timeToLive: reuse.timeToLive, collapsedInto: reason)
    }

    /// The load in the terms of RFC 9211.
    /// - Parameter isStored: whether the answer was stored. `storage` only says that it should be.
    func cacheStatus(name: String, isStored: Bool) -> CacheStatus {
        var status = CacheStatus(cacheName: name)
        switch outcome {
        case .hit(_, let allowance):
            // RFC 9211 §2.6: a request that shared the fetch of another request is no hit.
            status.hit = collapsedInto == nil
            status.forward = collapsedInto?.forward
            status.collapsed = collapsedInto != nil
            status.timeToLive = timeToLive
            status.detail = allowance?.code
        case .revalidated:
            status.forward = .stale
            status.forwardStatus = forwardStatus
        case .miss(let reason):
            status.forward = reason.forward
            status.forwardStatus = forwardStatus
            status.collapsed = collapsedInto != nil
            status.detail = reason.detail
        case .bypass(let reason):
            status.forward = .bypass
            status.forwardStatus = forwardStatus
            status.detail = reason.code
        case .failed(let reason): status.detail = reason.code
        }
        status.stored = isStored
        return status
    }
}

/// The facts of a load for its event.
struct LoadFacts {
    var url: URL?
    var method: String
    var bytes = 0
    var duration: TimeInterval = 0
    var startedAt: Date
    var requestedAt: Date?
    var respondedAt: Date?
    var error: (any Swift.Error)?
}

/// The course of a load as it is noted; turned into text only when an event or an answer is read.
struct LoadSummary: Sendable {
    /// Nil before the first decision.
    var report: LoadMachine.Report?
    var load: LoadFacts
    /// The layer of the stored response that was used; without meaning if none was.
    var layer = DiskURLCache.Layer.memory
    var notStored: DiskURLCache.Reason?
    /// The answer of this hop was stored.
    var isStored = false
    /// The cache's identifier in `Cache-Status`; nil if responses get no such field.
    let cacheName: String?

    init(of request: KeyedRequest, in cache: any LoadHost, at time: Date) {
        load = LoadFacts(url: request.request.url, method: request.facts.method, startedAt: time)
        cacheName = cache.cacheStatusName
    }

    mutating func note(_ report: LoadMachine.Report, of variants: [StoredVariant]) {
        self.report = report
        if let index = report.outcome.index { layer = variants[index].layer }
    }

    /// The value for responses; nil if the configuration wants none.
    var cacheStatus: CacheStatus? {
        cacheName.flatMap { name in report?.cacheStatus(name: name, isStored: isStored) }
    }

    /// Notes the end, counts the load, and sends the event to listeners.
    mutating func end(at time: Date, error: (any Swift.Error)? = nil, in hub: EventHub) {
        load.duration = time.timeIntervalSince(load.startedAt)
        load.error = error
        guard let report else { return }
        hub.count(report.outcome, bytes: load.bytes, duration: load.duration, layer: layer)
        if hub.hasListeners { hub.emit(.load(loadReport)) }
    }

    var isStale: Bool { if case .hit(_, _?) = report?.outcome { true } else { false } }

    var loadReport: DiskURLCache.Report {
        let report = report ?? LoadMachine.Report(outcome: .miss(.notStored))
        let outcome: DiskURLCache.Report.Outcome =
            switch report.outcome {
            case .hit(_, let allowance?): .staleHit(layer, allowance)
            case .hit(_, nil): .hit(layer)
            case .revalidated: .revalidated(layer)
            case .miss(let reason): .miss(reason)
            case .bypass(let reason): .bypass(reason)
            case .failed(.notAllowed(let reason)): .notAllowed(reason)
            case .failed: .failed
            }
        var isStored: Bool?
        var refusal: DiskURLCache.Reason?
        switch (report.storage, outcome) {
        // A bypass stores no response, whatever the verdict.
        case (_?, .bypass(let reason)): (isStored, refusal) = (false, reason)
        case (.store?, _):
            isStored = notStored == nil
            refusal = notStored
        case (.refuse(let reason)?, _):
            isStored = false
            refusal = reason
        case (nil, _): break
        }
        return DiskURLCache.Report(
            url: load.url?.removingCredentials, method: load.method, outcome: outcome, status: report.status,
            bytes: load.bytes, age: report.age.map { Int(clamping: $0) }, duration: load.duration,
            startedAt: load.startedAt, requestedAt: load.requestedAt, respondedAt: load.respondedAt,
            isStored: isStored, notStoredReason: refusal, isCollapsed: report.collapsedInto != nil,
            error: load.error,
            cacheStatus: report.cacheStatus(
                name: cacheName ?? CacheStatus.defaultName, isStored: isStored == true
            ).fieldValue)
    }
}

extension LoadMachine.Report.Outcome {
    /// The index of the candidate that was used.
    var index: Int? {
        switch self {
        case .hit(let index, _), .revalidated(let index): index
        case .miss, .bypass, .failed: nil
        }
    }
}

extension EventHub {
    /// Counts a load, also without a listener for its report.
    func count(
        _ outcome: LoadMachine.Report.Outcome, bytes: Int, duration: TimeInterval, layer: DiskURLCache.Layer
    ) {
        switch outcome {
        case .hit:
            count { statistics in
                statistics.countHit(layer, bytes: bytes)
                statistics.storeLoads += 1
                statistics.storeTime += duration
            }
        case .revalidated:
            count { statistics in
                statistics.revalidations += 1
                statistics.bytesSaved += bytes
            }
        case .miss:
            count { statistics in
                statistics.misses += 1
                statistics.networkLoads += 1
                statistics.networkTime += duration
            }
        case .bypass, .failed: break
        }
    }
}

extension CacheStatus {
    /// The cache's identifier in events, if no name was chosen.
    static let defaultName = "DiskURLCache"
}

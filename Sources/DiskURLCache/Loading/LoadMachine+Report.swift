import Foundation

extension LoadMachine {
    /// How a load went, for events and `Cache-Status`.
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
        /// Why this load would have asked the network, had another one in flight not fetched the answer.
        var collapsedInto: FetchReason?
    }
}

extension LoadMachine.Report {
    /// The load in the terms of RFC 9211.
    func cacheStatus(name: String) -> CacheStatus {
        var status = CacheStatus(cacheName: name)
        switch outcome {
        case .hit(_, let allowance):
            // RFC 9211 §2.6: a request that shared the fetch of another one was no hit.
            status.hit = collapsedInto == nil
            status.forward = collapsedInto?.forward
            status.collapsed = collapsedInto != nil
            status.timeToLive = timeToLive
            status.detail = allowance?.rawValue
        case .revalidated:
            status.forward = .stale
            status.forwardStatus = forwardStatus
        case .miss(let reason):
            status.forward = reason.forward
            status.forwardStatus = forwardStatus
            status.detail = reason.rawValue
        case .failed(let reason): status.detail = reason
        }
        if case .store? = storage { status.stored = true }
        return status
    }
}

/// The facts of one load that end up in its event.
struct LoadFacts {
    var url: URL?
    var method: String
    var bytes: Int
    var duration: TimeInterval
    var startedAt: Date
    var requestedAt: Date?
    var respondedAt: Date?
}

extension EventHub {
    /// Counts a load and tells its outcome. The report is made only where somebody wants it.
    func record(
        _ report: LoadMachine.Report, of load: LoadFacts, variants: [StoredVariant],
        notStored: DiskURLCache.NotStoredReason?, cacheName: String?, isWanted: Bool
    ) -> DiskURLCache.LoadReport? {
        let outcome: DiskURLCache.LoadReport.Outcome
        switch report.outcome {
        case .hit(let index, let allowance):
            let layer = variants[index].layer
            outcome = allowance.map { .staleHit(layer, reason: $0.rawValue) } ?? .hit(layer)
            count { statistics in
                statistics.countHit(layer, bytes: load.bytes)
                statistics.storeLoads += 1
                statistics.storeTime += load.duration
            }
        case .revalidated(let index):
            outcome = .revalidated(variants[index].layer)
            count { statistics in
                statistics.revalidations += 1
                statistics.bytesSaved += load.bytes
            }
        case .miss(let reason):
            outcome = .miss(reason: reason.rawValue)
            count { statistics in
                statistics.misses += 1
                statistics.networkLoads += 1
                statistics.networkTime += load.duration
            }
        case .failed(let reason):
            outcome = .failed(reason: reason)
        }
        guard isWanted || hasListeners else { return nil }
        var isStored: Bool?
        var refusal: DiskURLCache.NotStoredReason?
        switch report.storage {
        case .store?:
            isStored = notStored == nil
            refusal = notStored
        case .refuse(let reason)?:
            isStored = false
            refusal = .http(reason.rawValue)
        case nil: break
        }
        let loadReport = DiskURLCache.LoadReport(
            url: load.url?.withoutCredentials, method: load.method, outcome: outcome, status: report.status,
            bytes: load.bytes, age: report.age, duration: load.duration, startedAt: load.startedAt,
            requestedAt: load.requestedAt, respondedAt: load.respondedAt, isStored: isStored, notStoredReason: refusal,
            isCollapsed: report.collapsedInto != nil,
            cacheStatus: report.cacheStatus(name: cacheName ?? CacheStatus.defaultName).fieldValue)
        emit(.load(loadReport))
        return loadReport
    }

    /// Tells of a load that the cache had no part in.
    func record(bypass reason: String, failure: String?, status: Int, of load: LoadFacts, cacheName: String?) {
        guard hasListeners else { return }
        var cacheStatus = CacheStatus(cacheName: cacheName ?? CacheStatus.defaultName)
        cacheStatus.forward = .bypass
        cacheStatus.forwardStatus = status
        cacheStatus.detail = reason
        emit(
            .load(
                DiskURLCache.LoadReport(
                    url: load.url?.withoutCredentials, method: load.method,
                    outcome: failure.map { .failed(reason: $0) } ?? .bypass(reason: reason), status: status,
                    bytes: load.bytes, age: nil, duration: load.duration, startedAt: load.startedAt,
                    requestedAt: load.requestedAt, respondedAt: load.respondedAt, isStored: nil, notStoredReason: nil,
                    isCollapsed: false, cacheStatus: cacheStatus.fieldValue)))
    }
}

extension CacheStatus {
    /// The cache's identifier in events, where no name was chosen.
    static let defaultName = "DiskURLCache"
}

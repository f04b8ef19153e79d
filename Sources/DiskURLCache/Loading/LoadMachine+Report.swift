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
    /// Counts a load, whether or not somebody wants its report.
    func count(
        _ outcome: LoadMachine.Report.Outcome, bytes: Int, duration: TimeInterval, layer: (Int) -> DiskURLCache.Layer
    ) {
        switch outcome {
        case .hit(let index, _):
            count { statistics in
                statistics.countHit(layer(index), bytes: bytes)
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
        case .failed: break
        }
    }

    /// Tells how a load went.
    func tell(
        _ report: LoadMachine.Report, of load: LoadFacts, variants: [StoredVariant],
        notStored: DiskURLCache.NotStoredReason?, cacheName: String?
    ) -> DiskURLCache.LoadReport {
        let outcome: DiskURLCache.LoadReport.Outcome =
            switch report.outcome {
            case .hit(let index, let allowance?): .staleHit(variants[index].layer, reason: allowance.rawValue)
            case .hit(let index, nil): .hit(variants[index].layer)
            case .revalidated(let index): .revalidated(variants[index].layer)
            case .miss(let reason): .miss(reason: reason.rawValue)
            case .failed(let reason): .failed(reason: reason)
            }
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

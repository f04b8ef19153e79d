import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension LoadMachine.Report {
    /// The load in the terms of RFC 9211.
    func cacheStatus(name: String) -> CacheStatus {
        var status = CacheStatus(cacheName: name)
        switch outcome {
        case .hit(_, let allowance):
            status.hit = true
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
        status.collapsed = isCollapsed
        return status
    }
}

extension EventHub {
    /// Counts a load and tells its outcome.
    func record(
        _ report: LoadMachine.Report, variants: [StoredVariant], url: String?, method: String, bytes: Int,
        notStored: DiskURLCache.NotStoredReason?, duration: TimeInterval, cacheName: String?
    ) -> DiskURLCache.LoadReport {
        let outcome: DiskURLCache.LoadReport.Outcome
        switch report.outcome {
        case .hit(let index, let allowance):
            let layer = variants[index].layer
            outcome = allowance.map { .staleHit(layer, reason: $0.rawValue) } ?? .hit(layer)
            count { statistics in
                statistics.countHit(layer, bytes: bytes)
                statistics.storeLoads += 1
                statistics.storeTime += duration
            }
        case .revalidated(let index):
            outcome = .revalidated(variants[index].layer)
            count { statistics in
                statistics.revalidations += 1
                statistics.bytesSaved += bytes
            }
        case .miss(let reason):
            outcome = .miss(reason: reason.rawValue)
            count { statistics in
                statistics.misses += 1
                statistics.networkLoads += 1
                statistics.networkTime += duration
            }
        case .failed(let reason):
            outcome = .failed(reason: reason)
        }
        var isStored: Bool?
        var refusal = notStored
        switch report.storage {
        case .store?: isStored = notStored == nil
        case .refuse(let reason)?:
            isStored = false
            refusal = .http(reason.rawValue)
        case nil: break
        }
        let load = DiskURLCache.LoadReport(
            url: url, method: method, outcome: outcome, status: report.status, bytes: bytes, age: report.age,
            duration: duration, isStored: isStored, notStoredReason: refusal,
            isCollapsed: report.isCollapsed,
            cacheStatus: report.cacheStatus(name: cacheName ?? "DiskURLCache").fieldValue)
        emit(.load(load))
        return load
    }
}

import DiskURLCache

extension DiskURLCache.Answer {
    public enum Source: Hashable {
        case stored(DiskURLCache.Layer)
        case revalidated(DiskURLCache.Layer)
        case network
    }

    /// Where the answer came from, without the reason.
    public var source: Source {
        switch report.outcome {
        case .hit(let layer), .staleHit(let layer, _): .stored(layer)
        case .revalidated(let layer): .revalidated(layer)
        case .expired, .miss, .bypass, .failed, .notAllowed: .network
        @unknown default: .network
        }
    }
}

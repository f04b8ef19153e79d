import DiskURLCache

extension CacheAnswer {
    enum Source: Hashable {
        case stored(CacheLayer)
        case revalidated(CacheLayer)
        case network
    }

    /// Where the answer came from, without the reason.
    var source: Source {
        switch report.outcome {
        case .hit(let layer), .staleHit(let layer, _): .stored(layer)
        case .revalidated(let layer): .revalidated(layer)
        case .miss, .bypass, .failed, .notAllowed: .network
        }
    }
}

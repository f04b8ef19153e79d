import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension RequestFacts {
    init(_ request: URLRequest) {
        let method = request.httpMethod ?? "GET"
        self.init(method: method == "GET" ? method : method.uppercased(), fields: HeaderFields(request))
    }
}

extension ReusePolicy {
    init(_ policy: URLRequest.CachePolicy) {
        switch policy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: self = .reloadIgnoring
        case .returnCacheDataElseLoad: self = .elseLoad
        case .returnCacheDataDontLoad: self = .dontLoad
        case .reloadRevalidatingCacheData: self = .revalidate
        default: self = .useProtocol
        }
    }
}

extension CachingOptions {
    init(_ options: DiskURLCache.HTTPOptions, isOffline: Bool) {
        self.init()
        usesHeuristicFreshness = options.usesHeuristicFreshness
        heuristicFraction = options.heuristicFraction
        heuristicLimit = Int(clampingSeconds: options.heuristicLimit)
        defaultStaleWhileRevalidate = options.staleWhileRevalidate.map { Int(clampingSeconds: $0) }
        defaultStaleIfError = options.staleIfError.map { Int(clampingSeconds: $0) }
        self.isOffline = isOffline
    }
}

extension Int {
    /// Whole seconds, brought into range; not a number counts as 0.
    init(clampingSeconds seconds: TimeInterval) {
        guard !seconds.isNaN else {
            self = 0
            return
        }
        self = Int(exactly: seconds.rounded(.down)) ?? (seconds < 0 ? 0 : .max)
    }
}

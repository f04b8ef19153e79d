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

extension Int64 {
    /// Whole seconds, brought into range; not a number counts as 0.
    init(clampingSeconds seconds: TimeInterval) {
        guard !seconds.isNaN else {
            self = 0
            return
        }
        self = Int64(exactly: seconds.rounded(.down)) ?? (seconds < 0 ? 0 : .max)
    }
}

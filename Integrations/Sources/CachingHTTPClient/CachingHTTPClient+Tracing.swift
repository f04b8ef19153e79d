import AsyncHTTPClient
import DiskURLCache
import Tracing

extension CachingHTTPClient {
    /// Makes a span for a load, up to its head. The `HTTPClient`'s own spans, for the requests that it sends, are
    /// children of it.
    func traced(
        _ request: HTTPClientRequest,
        _ body: () async throws -> (HTTPClientResponse, DiskURLCache.Report.Outcome?)
    ) async throws -> HTTPClientResponse {
        guard let tracer else { return try await body().0 }
        return try await tracer.withSpan("\(request.method.rawValue) cached", ofKind: .internal) { span in
            let response: HTTPClientResponse
            let outcome: DiskURLCache.Report.Outcome?
            do {
                (response, outcome) = try await body()
            } catch {
                // The error and the status are set by `withSpan`.
                span.attributes["http.cache.outcome"] = "failed"
                throw error
            }
            span.attributes["http.response.status_code"] = Int(response.status.code)
            guard let outcome else { return response }
            let facts = outcome.facts
            // The name that traces of other caches have.
            span.attributes["http.cache.hit"] = facts.layer != nil
            span.attributes["http.cache.outcome"] = facts.name
            if let layer = facts.layer { span.attributes["http.cache.layer"] = "\(layer)" }
            if let reason = facts.reason { span.attributes["http.cache.reason"] = reason.code }
            return response
        }
    }
}

extension DiskURLCache.Report.Outcome {
    fileprivate var facts: (name: String, layer: DiskURLCache.Layer?, reason: DiskURLCache.Reason?) {
        switch self {
        case .hit(let layer): ("hit", layer, nil)
        case .staleHit(let layer, let reason): ("stale", layer, reason)
        case .revalidated(let layer): ("revalidated", layer, nil)
        case .expired(let reason): ("expired", nil, reason)
        case .miss(let reason): ("miss", nil, reason)
        case .bypass(let reason): ("bypass", nil, reason)
        case .failed: ("failed", nil, nil)
        case .notAllowed(let reason): ("not-allowed", nil, reason)
        @unknown default: ("other", nil, nil)
        }
    }
}

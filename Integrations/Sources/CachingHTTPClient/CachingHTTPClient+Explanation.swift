import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheTools
import HTTPTypes

extension CachingHTTPClient {
    /// Explains what this client would do with a request now, clause by clause. Sends no request and stores nothing.
    ///
    /// Use this instead of `cache.explanation(for:)`, which knows only the entries of `URLSession`.
    /// - Parameters:
    ///   - request: as for `execute(_:timeout:cacheOptions:logger:)`. Its body is read only if it is part of the key.
    ///   - cacheOptions: as there.
    public func explanation(
        for request: HTTPClientRequest, cacheOptions: DiskURLCache.Options? = nil
    ) async throws -> DiskURLCache.Explanation {
        guard let (asked, _) = try await asked(request, cacheOptions) else { throw HTTPClientError.invalidURL }
        let variant = variant(of: request)
        return await cache.perform { $0.explanation(for: asked, variant: variant) }
    }

    /// The same for a request of swift-http-types.
    /// - Parameters:
    ///   - request: as for `execute(_:body:timeout:cacheOptions:logger:)`.
    ///   - body: is read only if it is part of the key.
    ///   - cacheOptions: as for `execute(_:body:timeout:cacheOptions:logger:)`.
    public func explanation(
        for request: HTTPRequest, body: HTTPClientRequest.Body? = nil, cacheOptions: DiskURLCache.Options? = nil
    ) async throws -> DiskURLCache.Explanation {
        try await explanation(for: HTTPClientRequest(request, body: body), cacheOptions: cacheOptions)
    }
}

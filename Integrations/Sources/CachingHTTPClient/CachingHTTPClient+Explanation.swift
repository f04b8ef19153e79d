import AsyncHTTPClient
import DiskURLCache

extension CachingHTTPClient {
    /// What this client would do with a request now, and why, clause by clause. Asks no network and stores nothing.
    ///
    /// `cache.explanation(for:)` knows the entries of `URLSession` only.
    /// - Parameters:
    ///   - request: as for `execute(_:timeout:cacheOptions:logger:)`. Its body is read only where it is part of the key.
    ///   - cacheOptions: as there.
    public func explanation(
        for request: HTTPClientRequest, cacheOptions: DiskURLCache.Options? = nil
    ) async throws -> DiskURLCache.Explanation {
        guard let (asked, _) = try await asked(request, cacheOptions) else { throw HTTPClientError.invalidURL }
        return cache.explanation(for: asked, variant: variant(of: request))
    }
}

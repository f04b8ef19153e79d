import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The loads that the library's loader serves in a session made for it, and the requests that it sends, on Apple
/// platforms. The system serves all other loads.
enum LoaderChoice {
    /// - Parameters:
    ///   - isDataTask: not of an upload, a download, a WebSocket or a stream.
    ///   - cache: the session's; nil for a load whose session is not known, such as `Data(contentsOf:)` and
    ///     `NSURLConnection`.
    static func takes(_ request: URLRequest, isDataTask: Bool, cache: CacheCore?) -> Bool {
        guard isDataTask, let cache else { return false }
        // No URL but one of `http` or `https` has a key.
        return cache.resolve(DiskURLCache.Request(request)).key != nil
    }

    /// The request that the protocol was given is sent: it has the fields of the configuration, and after a redirect
    /// another URL. Its body comes as a stream, which has no key; the body of the task's first request is the same as
    /// long as URL and method are.
    static func sent(_ request: URLRequest, original: URLRequest?) -> URLRequest {
        guard request.httpBody == nil, let original, let body = original.httpBody, original.url == request.url,
            (original.httpMethod ?? "GET") == (request.httpMethod ?? "GET")
        else { return request }
        var request = request
        request.httpBody = body
        return request
    }
}

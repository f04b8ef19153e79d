import Foundation

/// The loads that the library's loader serves in a session made for it, and the requests that it sends, on Apple
/// platforms. The system serves all other loads.
enum LoaderChoice {
    /// - Parameters:
    ///   - isDataTask: false for an upload, a download, a WebSocket or a stream.
    ///   - cache: the session's cache; nil if the session is not known, as for `Data(contentsOf:)` and
    ///     `NSURLConnection`.
    static func takes(_ request: URLRequest, isDataTask: Bool, cache: CacheCore?) -> Bool {
        guard isDataTask, let cache else { return false }
        // Only `http` and `https` URLs have keys.
        return cache.resolve(DiskURLCache.Request(request)).key != nil
    }

    /// The request to send: the one that the protocol was given, which has the fields of the configuration, and after a
    /// redirect the new URL. Its body is a stream, which has no key; so the body of the task's first request is used,
    /// as long as URL and method are the same.
    static func sent(_ request: URLRequest, original: URLRequest?) -> URLRequest {
        guard request.httpBody == nil, let original, let body = original.httpBody, original.url == request.url,
            (original.httpMethod ?? "GET") == (request.httpMethod ?? "GET")
        else { return request }
        var request = request
        request.httpBody = body
        return request
    }
}

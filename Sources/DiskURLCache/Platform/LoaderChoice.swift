import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Which loads our loader takes in a session made for it, and what it sends, where a protocol class chooses for itself: on Apple
/// platforms. What is not taken is the system's.
enum LoaderChoice {
    /// - Parameters:
    ///   - isDataTask: not of an upload, a download, a WebSocket or a stream.
    ///   - cache: that of the session; nil for a load whose session is not known, such as `Data(contentsOf:)` and `NSURLConnection`.
    static func takes(_ request: URLRequest, isDataTask: Bool, cache: (any LoadHost)?) -> Bool {
        guard isDataTask, let cache, let scheme = request.url?.scheme?.lowercased() else { return false }
        return (scheme == "http" || scheme == "https") && cache.key(for: request) != nil
    }

    /// What the protocol was given is what is sent: it has the fields of the configuration, and after a redirect another URL. Its
    /// body comes as a stream, which has no key; that of the task's first request is the same while URL and method are.
    static func sent(_ request: URLRequest, original: URLRequest?) -> URLRequest {
        guard request.httpBody == nil, let original, let body = original.httpBody, original.url == request.url,
            (original.httpMethod ?? "GET") == (request.httpMethod ?? "GET")
        else { return request }
        var request = request
        request.httpBody = body
        return request
    }
}

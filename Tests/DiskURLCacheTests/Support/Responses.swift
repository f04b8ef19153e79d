import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makers of requests and responses for tests that do not go through a socket.
enum Responses {
    static func http(
        _ url: URL, status: Int = 200, fields: [String: String] = ["Cache-Control": "max-age=3600"]
    ) -> HTTPURLResponse {
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
        else { preconditionFailure("these arguments make no response: \(url) \(status)") }
        return response
    }

    static func cached(
        _ url: URL, _ body: String = "body", status: Int = 200,
        fields: [String: String] = ["Cache-Control": "max-age=3600"], userInfo: [AnyHashable: Any]? = nil,
        policy: URLCache.StoragePolicy = .allowed
    ) -> CachedURLResponse {
        CachedURLResponse(
            response: http(url, status: status, fields: fields), data: Data(body.utf8), userInfo: userInfo,
            storagePolicy: policy)
    }

    static func url(_ path: String = "/", host: String = "example.com") -> URL {
        URL(string: "https://\(host)\(path)") ?? URL(fileURLWithPath: path)
    }

    static func request(_ path: String = "/", fields: [String: String] = [:]) -> URLRequest {
        // A direct load of it does not time out while the test is held up.
        var request = URLRequest(url: url(path), timeoutInterval: Patience.ofLoads)
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }
}

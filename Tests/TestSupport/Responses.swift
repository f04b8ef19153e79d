import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makers of requests and responses for tests that do not go through a socket.
public enum Responses {
    public static func http(
        _ url: URL, status: Int = 200, fields: [String: String] = ["Cache-Control": "max-age=3600"]
    ) -> HTTPURLResponse {
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
        else { preconditionFailure("these arguments make no response: \(url) \(status)") }
        return response
    }

    public static func cached(
        _ url: URL, _ body: String = "body", status: Int = 200,
        fields: [String: String] = ["Cache-Control": "max-age=3600"], userInfo: [AnyHashable: Any]? = nil,
        policy: URLCache.StoragePolicy = .allowed
    ) -> CachedURLResponse {
        CachedURLResponse(
            response: http(url, status: status, fields: fields), data: Data(body.utf8), userInfo: userInfo,
            storagePolicy: policy)
    }

    public static func url(_ path: String = "/", host: String = "example.com") -> URL {
        URL(string: "https://\(host)\(path)") ?? URL(fileURLWithPath: path)
    }

    public static func request(_ path: String = "/", fields: [String: String] = [:]) -> URLRequest {
        // A direct load of it does not time out while the test is held up.
        var request = URLRequest(url: url(path), timeoutInterval: Patience.ofLoads)
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }
}

/// A body whose bytes follow from a number, so that a reader can tell whose it is, and whether it is whole.
public func testBody(_ number: Int, length: Int = 1000) -> Data {
    var state = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15 | 1
    var words = [UInt64]()
    words.reserveCapacity(length / 8 + 1)
    for _ in 0...length / 8 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        words.append(state)
    }
    return words.withUnsafeBytes { Data($0.prefix(length)) }
}

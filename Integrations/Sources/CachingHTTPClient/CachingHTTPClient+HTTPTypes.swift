import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1

// The types of swift-http-types, which servers speak.

extension CachingHTTPClient {
    /// Answers a request from memory, disk, or the origin: `execute(_:timeout:cacheOptions:logger:)` with the types of swift-http-types.
    /// - Parameters:
    ///   - request: with a scheme and an authority.
    ///   - body: what is sent.
    ///   - timeout: within which there must be a head, redirects included.
    ///   - cacheOptions: how the answer is kept, where that differs from the cache's configuration.
    ///   - logger: as for `HTTPClient`.
    public func execute(
        _ request: HTTPRequest, body: HTTPClientRequest.Body? = nil, timeout: TimeAmount,
        cacheOptions: DiskURLCache.Options? = nil, logger: Logger? = nil
    ) async throws -> (response: HTTPResponse, body: HTTPClientResponse.Body) {
        guard let scheme = request.scheme, let authority = request.authority else { throw HTTPClientError.invalidURL }
        var outgoing = HTTPClientRequest(url: "\(scheme)://\(authority)\(request.path ?? "/")")
        outgoing.method = HTTPMethod(rawValue: request.method.rawValue)
        outgoing.body = body
        for field in request.headerFields { outgoing.headers.add(name: field.name.rawName, value: field.value) }
        let answer = try await execute(outgoing, timeout: timeout, cacheOptions: cacheOptions, logger: logger)
        let head = DiskURLCache.Head(status: Int(answer.status.code), fields: Array(answer.headers))
        guard let response = HTTPResponse(head) else { throw HTTPParserError.invalidStatus }
        return (response, answer.body)
    }
}

extension HTTPResponse {
    /// Nil for a status that is none. Fields whose names are none are left out.
    public init?(_ head: DiskURLCache.Head) {
        guard (100...999).contains(head.status) else { return nil }
        self.init(status: Status(code: head.status))
        for (name, value) in head.fields {
            guard let name = HTTPField.Name(name) else { continue }
            headerFields.append(HTTPField(name: name, value: value))
        }
    }
}

extension DiskURLCache.Head {
    /// The head for a `DiskURLCache.Transport` whose client speaks swift-http-types.
    public init(_ response: HTTPResponse) {
        self.init(
            status: response.status.code, fields: response.headerFields.map { ($0.name.rawName, $0.value) })
    }
}

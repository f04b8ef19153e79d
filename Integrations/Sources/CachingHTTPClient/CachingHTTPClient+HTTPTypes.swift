import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1

// For servers that use the types of swift-http-types.

extension CachingHTTPClient {
    /// Answers a request from memory, disk, or the origin: `execute(_:timeout:cacheOptions:logger:)` with the types of
    /// swift-http-types.
    /// - Parameters:
    ///   - request: with the scheme `http` or `https`, an authority, and a path that begins with "/" or "?", or is
    ///     empty. A gateway sets the scheme and the authority itself: those of an HTTP/2 request are its client's.
    ///   - body: the body to send.
    ///   - timeout: the time within which the head must arrive, redirects included.
    ///   - cacheOptions: how the answer is kept, if that differs from the cache's configuration.
    ///   - logger: as for `HTTPClient`.
    /// - Throws: `HTTPClientError.unsupportedScheme` for another scheme, `HTTPClientError.invalidURL` for a request
    ///   without a scheme or an authority, or with another path; all other errors are those of the method above.
    public func execute(
        _ request: HTTPRequest, body: HTTPClientRequest.Body? = nil, timeout: TimeAmount,
        cacheOptions: DiskURLCache.Options? = nil, logger: Logger? = nil
    ) async throws -> (response: HTTPResponse, body: HTTPClientResponse.Body) {
        try await execute(
            request, body: body, deadline: .now() + timeout, cacheOptions: cacheOptions, logger: logger)
    }

    /// The same with a deadline, by which the head must have arrived, redirects included.
    public func execute(
        _ request: HTTPRequest, body: HTTPClientRequest.Body? = nil, deadline: NIODeadline,
        cacheOptions: DiskURLCache.Options? = nil, logger: Logger? = nil
    ) async throws -> (response: HTTPResponse, body: HTTPClientResponse.Body) {
        let answer = try await execute(
            HTTPClientRequest(request, body: body), deadline: deadline, cacheOptions: cacheOptions, logger: logger)
        let head = DiskURLCache.Head(status: Int(answer.status.code), fields: Array(answer.headers))
        guard let response = HTTPResponse(head) else { throw HTTPParserError.invalidStatus }
        return (response, answer.body)
    }
}

extension HTTPClientRequest {
    init(_ request: HTTPRequest, body: Body?) throws {
        guard let scheme = request.scheme, let authority = request.authority else { throw HTTPClientError.invalidURL }
        // A scheme such as "http://other.example/?" would make another host of the text, and the other schemes of
        // AsyncHTTPClient make a Unix socket of the authority.
        guard ["http", "https"].contains(scheme.lowercased()) else { throw HTTPClientError.unsupportedScheme(scheme) }
        let path = request.path ?? "/"
        // A path such as "@other.example/" would make another host of the text, and an authority with a slash another
        // path. The types check none of the three, and a gateway has them from its clients.
        guard path.isEmpty || path.hasPrefix("/") || path.hasPrefix("?"),
            !authority.contains(where: { "/?#\\".contains($0) })
        else { throw HTTPClientError.invalidURL }
        self.init(url: "\(scheme)://\(authority)\(path)")
        method = HTTPMethod(rawValue: request.method.rawValue)
        headers.add(contentsOf: request.headerFields.lazy.map { ($0.name.rawName, $0.value) })
        self.body = body
    }
}

extension HTTPFields {
    /// The fields of a head, in their order. Fields with invalid names are left out.
    public init(_ head: DiskURLCache.Head) {
        self.init()
        for (name, value) in head.fields {
            guard let name = HTTPField.Name(name) else { continue }
            append(HTTPField(name: name, value: value))
        }
    }
}

extension HTTPResponse {
    /// Nil if the status is invalid. Fields with invalid names are left out.
    public init?(_ head: DiskURLCache.Head) {
        guard (100...999).contains(head.status) else { return nil }
        self.init(status: Status(code: head.status), headerFields: HTTPFields(head))
    }
}

extension DiskURLCache.Head {
    /// The head, for a `DiskURLCache.Transport` whose client uses swift-http-types.
    public init(_ response: HTTPResponse) {
        self.init(status: response.status.code, fields: response.headerFields)
    }

    /// The same, made of a status code and fields.
    public init(status: Int, fields: HTTPFields) {
        self.init(status: status, fields: fields.map { ($0.name.rawName, $0.value) })
    }
}

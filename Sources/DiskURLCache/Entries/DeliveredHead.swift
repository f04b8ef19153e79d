import Foundation

/// A response head that is delivered to a client. Foundation's object is made when it is first needed: on Linux it
/// costs more than the rest of a hit, and not every client needs it.
package final class DeliveredHead: @unchecked Sendable {
    // @unchecked: `made` is reached only while this object's `SharedLock` is held, and the rest is constant.
    private enum Source {
        /// Not the request itself, whose body would be in memory as long as the head.
        case request(url: String, original: URL?)
        case response(URL?)
    }

    /// 0 when the response is not HTTP.
    package let status: Int
    package let fields: HeaderFields
    private let source: Source
    @exclusivity(unchecked) private var made: URLResponse?

    package init(to request: DiskURLCache.Request, status: Int, fields: HeaderFields) {
        self.status = status
        self.fields = fields
        source = .request(url: request.url, original: request.originalURL)
    }

    /// The head of a response object of Foundation.
    package init(_ response: URLResponse) {
        let http = response as? HTTPURLResponse
        made = response
        source = .response(response.url)
        status = http?.statusCode ?? 0
        fields = http.map { HeaderFields($0) } ?? [:]
    }

    /// The same head with other fields.
    init(_ head: DeliveredHead, fields: HeaderFields) {
        status = head.status
        self.fields = fields
        source = head.source
    }

    var isHTTP: Bool { status != 0 }

    package var url: URL? {
        switch source {
        case .request(let text, let original): original ?? URL(string: text)
        case .response(let url): url
        }
    }

    /// Foundation's object: the same one at each call.
    package var response: URLResponse {
        SharedLock.once(
            of: self,
            get: { made },
            make: { .http(url: url ?? DiskURLCache.Request.noURL, status: status, fields: fields) },
            set: { made = $0 })
    }
}

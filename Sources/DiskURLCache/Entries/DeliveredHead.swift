import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A head on its way to the client. Foundation's object is made when it is first needed: on Linux it costs more than the
/// rest of a hit, and not every client needs it.
package final class DeliveredHead: @unchecked Sendable {
    // @unchecked: `made` is reached only while this object's `SharedLock` is held, and the rest is constant.
    package let url: URL?
    /// 0 when the response is not HTTP.
    package let status: Int
    package let fields: HeaderFields
    @exclusivity(unchecked) private var made: URLResponse?
    /// Only a head that Foundation made may lack a URL, and it has its object.
    private static let noURL = URL(fileURLWithPath: "/")

    package init(url: URL, status: Int, fields: HeaderFields) {
        (self.url, self.status, self.fields) = (url, status, fields)
    }

    /// A head that Foundation made.
    package init(_ response: URLResponse) {
        let http = response as? HTTPURLResponse
        (url, made) = (response.url, response)
        (status, fields) = (http?.statusCode ?? 0, http.map { HeaderFields($0) } ?? [:])
    }

    var isHTTP: Bool { status != 0 }

    /// The same object each time.
    package var response: URLResponse {
        SharedLock.once(
            of: self, { made }, { .http(url: url ?? Self.noURL, status: status, fields: fields) }, keep: { made = $0 })
    }
}

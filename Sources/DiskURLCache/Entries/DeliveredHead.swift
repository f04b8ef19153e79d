import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A head on its way to the client. Foundation's object is made when it is first needed: on Linux it costs more than the
/// rest of a hit, and not every client needs it.
package final class DeliveredHead: @unchecked Sendable {
    // @unchecked: `object` is reached only while this object's `SharedLock` is held, and the rest is constant.
    private enum Object {
        case made(URLResponse)
        case later(URL)
    }

    package let url: URL?
    /// 0 when the response is not HTTP.
    package let status: Int
    package let fields: HeaderFields
    @exclusivity(unchecked) private var object: Object

    package init(url: URL, status: Int, fields: HeaderFields) {
        (self.url, self.status, self.fields) = (url, status, fields)
        object = .later(url)
    }

    /// A head that Foundation made.
    package init(_ response: URLResponse) {
        let http = response as? HTTPURLResponse
        (url, object) = (response.url, .made(response))
        (status, fields) = (http?.statusCode ?? 0, http.map { HeaderFields($0) } ?? [:])
    }

    var isHTTP: Bool { status != 0 }

    /// The same object each time.
    package var response: URLResponse {
        switch SharedLock.withLock(of: self, { object }) {
        case .made(let response): return response
        case .later(let url):
            let new = URLResponse.http(url: url, status: status, fields: fields)
            return SharedLock.withLock(of: self) {
                // If a second thread was faster, both return its object.
                if case .made(let response) = object { return response }
                object = .made(new)
                return new
            }
        }
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The floor of a load through `URLSession`: a protocol that has its answer ready.
final class ConstantProtocol: URLProtocol {
    private static let url = URL(string: "http://constant.invalid/")!
    private static let body = Content.body(16 << 10)

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let client else { return }
        // Made for each load: a response belongs to one URL.
        let response = Content.httpResponse(request.url ?? Self.url)
        client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client.urlProtocol(self, didLoad: Self.body)
        client.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

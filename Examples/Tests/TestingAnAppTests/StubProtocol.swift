import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Stands in for the network: answers each request by the closure that the test set for its host, and counts the requests.
final class StubProtocol: URLProtocol {
    struct Answer: Sendable {
        var status = 200
        var fields: [String: String] = [:]
        var body = ""
    }

    private struct Host {
        var answer: @Sendable (URLRequest) -> Answer
        var requests = 0
    }

    private static let hosts = Mutex<[String: Host]>([:])

    static func answer(_ host: String, by answer: @escaping @Sendable (URLRequest) -> Answer) {
        hosts.withLock { $0[host] = Host(answer: answer) }
    }

    static func requests(to host: String) -> Int { hosts.withLock { $0[host]?.requests ?? 0 } }

    override class func canInit(with request: URLRequest) -> Bool {
        hosts.withLock { $0[request.url?.host ?? ""] != nil }
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let host = url.host else { return }
        let answer =
            Self.hosts.withLock { hosts in
                hosts[host]?.requests += 1
                return hosts[host]?.answer
            }?(request) ?? Answer(status: 404)
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: answer.status, httpVersion: "HTTP/1.1", headerFields: answer.fields)
        else { return }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data(answer.body.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A server inside the process, whose answers the test supplies. It answers the requests of sessions with its
    /// `configuration`, without a socket.
    ///
    /// ```swift no-check
    /// let origin = DiskURLCache.StubOrigin(clock: clock)
    /// origin.respond(to: "/feed", with: .init(body: "one"), .init(status: 500))  // one after the other
    /// ```
    ///
    /// Each origin has a unique host name, so that tests can run at the same time. An origin answers until it is
    /// released.
    ///
    /// Can be used from any thread.
    public final class StubOrigin: @unchecked Sendable {
        /// The answer of the origin to one request.
        public struct Response: Sendable {
            /// The HTTP status code (RFC 9110 §15).
            public var status: Int
            /// Header fields by name.
            public var fields: [String: String]
            /// The content.
            public var body: Data

            /// - Parameters:
            ///   - status: the HTTP status code.
            ///   - fields: header fields by name, such as `"Cache-Control": "max-age=60"`. A `Date` field is added if
            ///     there is none.
            ///   - body: the content, as UTF-8.
            public init(status: Int = 200, fields: [String: String] = [:], body: String = "") {
                self.init(status: status, fields: fields, data: Data(body.utf8))
            }

            /// - Parameters:
            ///   - status: the HTTP status code.
            ///   - fields: header fields by name.
            ///   - data: the content.
            public init(status: Int = 200, fields: [String: String] = [:], data: Data) {
                self.status = status
                self.fields = fields
                body = data
            }
        }

        /// The URL of the origin's root: `http://`, its host name, and a slash.
        public let url: URL
        private let clock: TestClock
        private let respond: @Sendable (URLRequest) throws -> Response
        // `@unchecked`: both are read and written under `lock` only.
        private let lock = NSLock()
        private var received: [URLRequest] = []
        private var byPath: [String: [Response]] = [:]

        /// - Parameters:
        ///   - clock: gives answers their `Date` field. The cache under test should have the same clock.
        ///   - respond: makes the answer to a request for whose path no answers are set; an error that it throws fails
        ///     the load. Called on any thread, one call for each request. By default the answer is a 404.
        public init(
            clock: TestClock = TestClock(),
            respond: @escaping @Sendable (URLRequest) throws -> Response = { _ in Response(status: 404) }
        ) {
            self.clock = clock
            self.respond = respond
            let host = "origin-\(UUID().uuidString.lowercased()).test"
            url = URL(string: "http://\(host)/")!
            StubProtocol.origins.add(self, host: host)
        }

        deinit {
            StubProtocol.origins.remove(host: url.host ?? "")
        }

        /// Sets the answers to requests for a path. Each is given once, in this order; the last one is given from then
        /// on.
        /// - Parameters:
        ///   - path: the path as the URL has it, such as `/feed` or `/a%20b/`; its query makes no difference.
        ///   - responses: the answers. Without any, the closure of the origin answers again.
        public func respond(to path: String, with responses: Response...) {
            lock.withLock { byPath[path] = responses }
        }

        /// The requests that reached the origin, the first one first. A request that the cache answered is not among
        /// them.
        public var requests: [URLRequest] { lock.withLock { received } }

        /// A configuration for sessions whose requests reach this origin. It shares no cookies, credentials or cache
        /// with the process.
        public var configuration: URLSessionConfiguration {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = [StubProtocol.self] + (configuration.protocolClasses ?? [])
            return configuration
        }

        fileprivate func respond(to request: URLRequest) throws -> (HTTPURLResponse, Data) {
            let set: Response? = lock.withLock {
                received.append(request)
                let parts = request.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }
                let path = parts.map { $0.percentEncodedPath.isEmpty ? "/" : $0.percentEncodedPath } ?? "/"
                guard let answers = byPath[path], let first = answers.first else { return nil }
                if answers.count > 1 { byPath[path]?.removeFirst() }
                return first
            }
            let answer = try set ?? respond(request)
            var fields = answer.fields
            if !fields.keys.contains(where: { $0.lowercased() == "date" }) {
                fields["Date"] = Self.httpDate(clock.date)
            }
            guard let url = request.url,
                let response = HTTPURLResponse(
                    url: url, statusCode: answer.status, httpVersion: "HTTP/1.1", headerFields: fields)
            else { throw URLError(.badServerResponse) }
            return (response, answer.body)
        }

        /// The time in the preferred form of RFC 9110 §5.6.7.
        private static func httpDate(_ date: Date) -> String {
            let formatter = DateFormatter()
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = TimeZone(identifier: "GMT")
            formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            return formatter.string(from: date)
        }
    }
}

/// The origins by host name. Foundation makes a `URLProtocol` from its class alone, which has to find the origin by the
/// request.
private final class Origins: @unchecked Sendable {
    private struct Weak { weak var origin: DiskURLCache.StubOrigin? }
    // `@unchecked`: the table is read and written under `lock` only.
    private let lock = NSLock()
    private var byHost: [String: Weak] = [:]

    func add(_ origin: DiskURLCache.StubOrigin, host: String) { lock.withLock { byHost[host] = Weak(origin: origin) } }
    func remove(host: String) { lock.withLock { byHost[host] = nil } }
    func origin(of request: URLRequest) -> DiskURLCache.StubOrigin? {
        lock.withLock { byHost[request.url?.host?.lowercased() ?? ""]?.origin }
    }
}

/// Hands a request to the origin of its host.
private final class StubProtocol: URLProtocol {
    static let origins = Origins()

    override class func canInit(with request: URLRequest) -> Bool {
        request.url?.host?.hasSuffix(".test") == true && origins.origin(of: request) != nil
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let origin = Self.origins.origin(of: request) else {
            client?.urlProtocol(self, didFailWithError: URLError(.cannotFindHost))
            return
        }
        do {
            let (response, body) = try origin.respond(to: request)
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            let hasBody = request.httpMethod != "HEAD" && ![204, 304].contains(response.statusCode)
            if hasBody, !body.isEmpty { client?.urlProtocol(self, didLoad: body) }
            client?.urlProtocolDidFinishLoading(self)
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }

    override func stopLoading() {}
}

import FlyingFox
import FlyingSocks
import Foundation

/// An origin server inside the program, on a free loopback port. It logs the requests that reach it.
public actor Origin {
    public struct Request: Sendable {
        public let method: String
        /// Path and query, as in the request line.
        public let target: String
        public let path: String
        public let query: [String: String]
        /// Header fields by lower-case name.
        public let fields: [String: String]
        public let body: Data
    }

    public struct Reply: Sendable {
        public var status: Int
        public var fields: [String: String]
        public var body: Data

        public init(_ status: Int = 200, fields: [String: String] = [:], body: Data = Data()) {
            self.status = status
            self.fields = fields
            self.body = body
        }

        public init(_ status: Int = 200, fields: [String: String] = [:], text: String) {
            self.init(status, fields: fields, body: Data(text.utf8))
        }
    }

    public typealias Handler = @Sendable (Request) async -> Reply

    /// `METHOD target` of each request, in order of arrival.
    public private(set) var log: [String] = []
    public nonisolated let baseURL: URL
    private let server: HTTPServer

    private init(server: HTTPServer, baseURL: URL) {
        self.server = server
        self.baseURL = baseURL
    }

    /// Starts a server. It waits for `delay` before each answer, as if there were a network. If the request's
    /// `If-None-Match` names the `ETag` of the reply, the answer is a 304.
    public static func start(delay: Duration = .zero, handler: @escaping Handler) async throws -> Origin {
        let address = try sockaddr_in.inet(ip4: "127.0.0.1", port: 0)
        let server = HTTPServer(
            config: HTTPServer.Configuration(address: address, pool: promptPool(), logger: .disabled))
        let running = Task { try await server.run() }
        do {
            try await server.waitUntilListening(timeout: 5)
        } catch {
            running.cancel()
            throw error
        }
        guard case .ip4(_, let port)? = await server.listeningAddress,
            let baseURL = URL(string: "http://127.0.0.1:\(port)")
        else { throw URLError(.cannotConnectToHost) }
        let origin = Origin(server: server, baseURL: baseURL)
        await server.appendRoute("*") { request in
            try await origin.answer(Request(request), delay: delay, handler)
        }
        return origin
    }

    public nonisolated func url(_ target: String) -> URL {
        URL(string: target, relativeTo: baseURL)?.absoluteURL ?? baseURL
    }

    /// Stops listening and closes all connections: from now on the origin is down.
    public func stop() async {
        await server.stop(timeout: 0)
    }

    private func answer(_ request: Request, delay: Duration, _ handler: Handler) async throws -> HTTPResponse {
        log.append("\(request.method) \(request.target)")
        try await Task.sleep(for: delay)
        var reply = await handler(request)
        reply.fields["Date"] = Self.httpDate(Date())
        if let etag = reply.fields["ETag"], request.fields["if-none-match"]?.contains(etag) == true {
            reply.status = 304
            reply.body = Data()
        }
        return reply.httpResponse
    }

    /// A date as HTTP writes it (RFC 9110 §5.6.7).
    public static func httpDate(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: date)
    }
}

extension Origin.Request {
    fileprivate init(_ request: HTTPRequest) async throws {
        let fields = request.headers.map { ($0.key.rawValue.lowercased(), $0.value) }
        self.init(
            method: request.method.rawValue, target: request.target.rawValue, path: request.path,
            query: Dictionary(request.query.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 }),
            fields: Dictionary(fields, uniquingKeysWith: { "\($0), \($1)" }), body: try await request.bodyData)
    }
}

extension Origin.Reply {
    fileprivate var httpResponse: HTTPResponse {
        var headers = HTTPHeaders()
        for (name, value) in fields { headers[HTTPHeader(name)] = value }
        return HTTPResponse(statusCode: HTTPStatusCode(status, phrase: ""), headers: headers, body: body)
    }
}

import AsyncHTTPClient
import CachingHTTPClient
import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session over `HTTPClient` with servers that Foundation's own network cannot stand, or answers otherwise.
@Suite(.timeLimit(.minutes(5))) struct SessionTests {
    private let cache: DiskURLCache
    private let session: URLSession
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory("session")
        cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 64 << 20, directory: scratch.appending("cache"))
        session = try cache.makeSession(configuration: .ephemeral, client: HTTPClient.Configuration())
    }

    private static func raw(_ text: String) -> OriginResponse {
        var answer = OriginResponse()
        answer.rawBytes = Data(text.utf8)
        return answer
    }

    private func code(_ url: URL) async -> URLError.Code? {
        await #expect(throws: URLError.self) { try await session.data(from: url) }?.code
    }

    // MARK: Faults of Foundation on Linux

    /// Foundation on Linux ends the process.
    @Test func aHeadThatIsCutIsAnError() async throws {
        let server = try OriginServer { _ in Self.raw("HTTP/1.1 200 OK\r\nContent-Le") }
        #expect(await code(server.url()) == .badServerResponse)
    }

    /// Foundation on Linux ends the process.
    @Test func aTrailerIsNoError() async throws {
        let server = try OriginServer { _ in
            Self.raw(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
                    + "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n")
        }
        for _ in 0..<2 {
            let (data, _) = try await session.data(from: server.url())
            #expect(String(decoding: data, as: UTF8.self) == "hello")
        }
        #expect(server.requests.count == 1)
    }

    @Test func eachSetCookieReachesTheStorage() async throws {
        let server = try OriginServer { _ in
            Self.raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: a=1; Expires=Wed, 01 Jan 2070 00:00:00 GMT\r\n"
                    + "Set-Cookie: b=\"2, 3\"\r\n\r\n")
        }
        _ = try await session.data(from: server.url())
        let cookies = session.configuration.httpCookieStorage?.cookies ?? []
        #expect(cookies.map(\.name).sorted() == ["a", "b"])
        #expect(cookies.first { $0.name == "a" }?.expiresDate != nil)
    }

    // MARK: Fields

    /// RFC 9110 §7.2, and as in any session of Foundation.
    @Test(arguments: [nil, "named.example"]) func hostIsTheFirstField(name: String?) async throws {
        let server = try OriginServer { _ in .ok("body") }
        var request = URLRequest(url: server.url())
        request.allHTTPHeaderFields = ["X-A": "1"]
        if let name { request.allHTTPHeaderFields = ["Host": name] }
        _ = try await session.data(for: request)
        let fields = try #require(server.requests.first).fields.fields
        let hosts = fields.filter { $0.name.lowercased() == "host" }.map(\.value)
        #expect(hosts == [name ?? "127.0.0.1:\(server.port)"])
        #expect(name != nil || fields.first?.name.lowercased() == "host")
    }

    // MARK: Connections

    /// A server may close a connection at the moment at which the next request is on its way.
    @Test func aConnectionThatWasClosedMeanwhileIsNoError() async throws {
        let server = try OriginServer { _ in
            // The server closes the connection after these bytes, and has not said so.
            Self.raw("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\nbody")
        }
        for method in ["GET", "PUT", "DELETE"] {
            var request = URLRequest(url: server.url())
            request.httpMethod = method
            if method == "PUT" { request.httpBody = Data("body".utf8) }
            for _ in 0..<20 { #expect(try await session.data(for: request).0 == Data("body".utf8)) }
        }
        // More where one was sent twice.
        #expect(server.requests.count >= 60)
    }

    /// RFC 9110 §9.2.2: only what may be done twice.
    @Test(arguments: [("GET", 2), ("PUT", 2), ("POST", 1)])
    func aServerThatClosesWithoutAnAnswerIsAskedTwiceAtMost(method: String, count: Int) async throws {
        let server = try OriginServer { _ in Self.raw("") }
        var request = URLRequest(url: server.url())
        request.httpMethod = method
        if method != "GET" { request.httpBody = Data("body".utf8) }
        let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
        #expect(error?.code == .badServerResponse)
        #expect(server.requests.map(\.method) == Array(repeating: method, count: count))
    }

    /// Not after ten seconds, in which it might begin to accept connections.
    @Test func aServerThatRefusesConnectionsIsAnErrorAtOnce() async throws {
        let server = try OriginServer { _ in .ok("") }
        let listener = try LoopbackListener()
        let port = listener.port
        listener.close()
        #expect(await code(URL(string: "http://127.0.0.1:\(port)/")!) == .cannotConnectToHost)
        #expect(await code(URL(string: "http://no-such-host.invalid/")!) == .cannotFindHost)
        #expect(server.requests.isEmpty)
    }

    // MARK: Codings

    private static let gzipped = Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJ11FISU3OT0lNUSjPL8pJAQBD0NnIFAAAAA==")!

    private func decodingClient() -> CachingHTTPClient {
        var configuration = HTTPClient.Configuration()
        configuration.decompression = .enabled(limit: .ratio(25))
        return CachingHTTPClient(cache: cache, configuration: configuration)
    }

    /// So does a `CachingHTTPClient` that decodes: what some servers call `deflate` it does not decode, and neither a
    /// part of a coded body.
    @Test func theClientAsksForGzipAlone() async throws {
        let server = try OriginServer { .ok($0.fields["Accept-Encoding"] ?? "none", ["Cache-Control": "no-store"]) }
        let client = decodingClient()
        for asked in [nil, "br", "gzip, br;q=0.5", "zstd", "deflate;q=0"] {
            var request = URLRequest(url: server.url())
            request.setValue(asked, forHTTPHeaderField: "Accept-Encoding")
            #expect(String(decoding: try await session.data(for: request).0, as: UTF8.self) == "gzip")
            request.setValue("bytes=0-9", forHTTPHeaderField: "Range")
            #expect(String(decoding: try await session.data(for: request).0, as: UTF8.self) == "identity")
        }
        var request = URLRequest(url: server.url())
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        #expect(String(decoding: try await session.data(for: request).0, as: UTF8.self) == "identity")
        for (fields, expected) in [
            ([], "gzip"), ([("Range", "bytes=0-9")], "identity"), ([("Accept-Encoding", "br")], "br"),
        ] {
            var request = HTTPClientRequest(url: server.url().absoluteString)
            request.headers.add(contentsOf: fields)
            let answer = try await client.execute(request, timeout: .seconds(60))
            #expect(try await String(buffer: answer.body.collect(upTo: 100)) == expected)
        }
        try await client.shutdown()
    }

    /// The origin sends what nobody asked for, and no `Vary`. Sessions of Foundation share the responses of this one.
    @Test(arguments: ["zstd", "x-gzip", "gzip, gzip", "identity, gzip"])
    func whatTheClientDoesNotDecodeIsNotFoundByASession(coding: String) async throws {
        let server = try OriginServer { _ in
            OriginResponse(
                fields: ["Cache-Control": "max-age=86400", "Content-Encoding": coding], body: Self.gzipped)
        }
        let client = decodingClient()
        var bodies: Set<Data> = []
        for _ in 0..<2 {
            let answer = try await client.execute(
                HTTPClientRequest(url: server.url().absoluteString), timeout: .seconds(60))
            try await bodies.insert(Data(answer.body.collect(upTo: 100).readableBytesView))
        }
        #expect(bodies.count == 1 && server.requests.count == 1)
        for _ in 0..<2 { #expect(await code(server.url()) == .cannotDecodeContentData) }
        #expect(cache.cachedResponse(for: URLRequest(url: server.url())) == nil)
        try await client.shutdown()
    }

    /// The client's decompression finds nothing to decode.
    @Test(arguments: [
        "Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "Content-Encoding: zstd\r\nContent-Length: 0\r\n\r\n",
        "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Encoding: gzip\r\nConnection: close\r\n\r\n",
    ]) func anEmptyBodyMayHaveACoding(rest: String) async throws {
        let server = try OriginServer { request in
            Self.raw("HTTP/1.1 \(request.path == "/" ? "302 Found\r\nLocation: /b" : "200 OK")\r\n" + rest)
        }
        let (data, response) = try await session.data(from: server.url())
        #expect(data.isEmpty && (response as? HTTPURLResponse)?.statusCode == 200)
        let client = decodingClient()
        let answer = try await client.execute(
            HTTPClientRequest(url: server.url("/b").absoluteString), timeout: .seconds(60))
        #expect(try await answer.body.collect(upTo: 10).readableBytes == 0)
        try await client.shutdown()
    }

    /// In the first bytes, from which nothing can be decoded.
    @Test(arguments: [
        "Content-Length: 3\r\n\r\n", "Content-Length: 9\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\n",
    ])
    func aCodedBodyThatIsCutIsNotEmpty(framing: String) async throws {
        let server = try OriginServer { _ in
            var answer = OriginResponse()
            answer.rawBytes =
                Data("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\(framing)".utf8) + Self.gzipped.prefix(3)
            return answer
        }
        #expect(await code(server.url()) != nil)
        let client = decodingClient()
        await #expect(throws: (any Error).self) {
            let request = HTTPClientRequest(url: server.url().absoluteString)
            _ = try await client.execute(request, timeout: .seconds(60)).body.collect(upTo: 10)
        }
        try await client.shutdown()
    }

    // MARK: Slow delegates

    /// Takes its time for the first piece.
    private final class SlowDelegate: NSObject, URLSessionDataDelegate, Sendable {
        let gate = Gate()
        let bytes = Mutex(0)
        let hasEnded = Mutex(false)

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            gate.wait()
            bytes.withLock { $0 += data.count }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            hasEnded.withLock { $0 = true }
        }
    }

    /// The client reads no further, so the server cannot send, and the memory is not filled.
    @Test func aSlowDelegateHoldsTheOriginUp() async throws {
        let (length, count) = (256 << 10, 256)
        let parts = Mutex([String: Int]())
        let server = try OriginServer { request in
            var answer = OriginResponse(fields: ["Cache-Control": "no-store"], body: Data(count: length * count))
            answer.partSize = length
            answer.beforePart = { number in parts.withLock { $0[request.path] = number } }
            return answer
        }
        let delegate = SlowDelegate()
        let slow = try cache.makeSession(
            configuration: .ephemeral, delegate: delegate, client: HTTPClient.Configuration())
        slow.dataTask(with: server.url("/slow")).resume()
        await delegate.gate.arrival()
        // In the time in which another session loads all of it.
        #expect(try await session.data(from: server.url("/fast")).0.count == length * count)
        let sent = parts.withLock { $0 }
        #expect(try #require(sent["/fast"]) >= count - 1)
        #expect(try #require(sent["/slow"]) < count / 2)
        delegate.gate.open()
        await eventually("the end of the task") { delegate.hasEnded.withLock { $0 } }
        #expect(delegate.bytes.withLock { $0 } == length * count)
        slow.invalidateAndCancel()
    }

    // MARK: Ports

    /// `HTTPClient` ends the process at a port above 65,535.
    @Test func aPortThatDoesNotExistIsAnError() async throws {
        let server = try OriginServer { _ in .status(302, "Found", ["Location": "http://127.0.0.1:99999/"]) }
        #expect(await code(server.url()) == .badURL)
        let client = CachingHTTPClient(cache: cache)
        let direct = ["http://127.0.0.1:65536", "http://u:p@[::1]:99999/", "http://h:1x/", "http://%5B%5D/"]
        for url in [server.url().absoluteString] + direct {
            await #expect(throws: HTTPClientError.invalidURL) {
                try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
            }
        }
        try await client.shutdown()
    }

    /// `HTTPClient` ends the process at such a host.
    @Test func aHostOfBracketsIsAnError() async throws {
        for location in ["http://%5B%5D/", "https://u@%5D/", "http://%5b:80/"] {
            let server = try OriginServer { _ in
                .status(302, "Found", ["Location": location, "Cache-Control": "max-age=60"])
            }
            // The second time, the redirect is a stored one.
            for _ in 0..<2 { #expect(await code(server.url()) == .badURL) }
            let client = CachingHTTPClient(cache: cache)
            for _ in 0..<2 {
                await #expect(throws: HTTPClientError.invalidURL) {
                    try await client.execute(HTTPClientRequest(url: server.url().absoluteString), timeout: .seconds(30))
                }
            }
            try await client.shutdown()
        }
    }
}

import AsyncHTTPClient
import CachingHTTPClient
import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session over `HTTPClient` with servers that are silent, hang up or say what is not HTTP.
@Suite(.timeLimit(.minutes(5))) struct SessionServerTests {
    private let cache: DiskURLCache
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory("session-server")
        cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 64 << 20, directory: scratch.appending("cache"))
    }

    private func session(
        delegate: (any URLSessionDelegate)? = nil, _ configure: (URLSessionConfiguration) -> Void = { _ in }
    ) throws -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral.patient
        configure(configuration)
        return try cache.makeSession(
            configuration: configuration, delegate: delegate, client: HTTPClient.Configuration())
    }

    // MARK: What is not HTTP

    private static let day = "HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\n"

    static let badHeads: [(name: String, bytes: String)] = [
        ("another protocol", "SSH-2.0-OpenSSH_9.9\r\n"),
        ("a field without a colon", day + "Content-Length 4\r\n\r\nbody"),
        ("a space before the colon", day + "Content-Length : 4\r\n\r\nbody"),
        ("a status of letters", "HTTP/1.1 two OK\r\nContent-Length: 4\r\n\r\nbody"),
        ("a status that ends AsyncHTTPClient 1.37", "HTTP/1.1 000 What\r\nContent-Length: 4\r\n\r\nbody"),
        ("a version that does not exist", "HTTP/7.3 200 OK\r\nContent-Length: 4\r\n\r\nbody"),
        ("two lengths", day + "Content-Length: 4\r\nContent-Length: 2\r\n\r\nbody"),
        ("a negative length", day + "Content-Length: -4\r\n\r\nbody"),
        ("a length of letters", day + "Content-Length: four\r\n\r\nbody"),
        ("a zero byte in a field", day + "X-A: a\u{0}b\r\nContent-Length: 4\r\n\r\nbody"),
        (
            "a head without an end",
            day + String(repeating: "X-A: \(String(repeating: "a", count: 1000))\r\n", count: 400)
        ),
    ]

    @Test(arguments: badHeads.map(\.name)) func aBadHeadIsAnError(name: String) async throws {
        let bytes = try #require(Self.badHeads.first { $0.name == name }).bytes
        let server = try OriginServer { _ in OriginResponse(rawBytes: Data(bytes.utf8)) }
        let session = try session()
        defer { session.invalidateAndCancel() }
        let error = await #expect(throws: URLError.self) { try await session.data(from: server.url()) }
        #expect(error?.code == .badServerResponse)
        #expect(cache.cachedResponse(for: URLRequest(url: server.url())) == nil)
    }

    static let badBodies: [(name: String, bytes: String)] = [
        ("a length that does not come", day + "Content-Length: 10\r\n\r\nbody"),
        ("a last chunk that does not come", day + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n"),
        ("a chunk that is cut", day + "Transfer-Encoding: chunked\r\n\r\n9\r\nbody"),
        ("a trailer that is cut", day + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-T: 1"),
        ("a chunk size of letters", day + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\nxyz\r\nbody\r\n0\r\n\r\n"),
        ("a chunk size beyond all numbers", day + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nbody"),
        ("a chunk longer than its size", day + "Transfer-Encoding: chunked\r\n\r\n2\r\nbody\r\n0\r\n\r\n"),
    ]

    /// - Parameter isByDelegate: who gets the parts as they come.
    @Test(arguments: badBodies.map(\.name), [true, false])
    func aBadBodyIsAnErrorAndIsNotStored(name: String, isByDelegate: Bool) async throws {
        let bytes = try #require(Self.badBodies.first { $0.name == name }).bytes
        let server = try OriginServer { _ in OriginResponse(rawBytes: Data(bytes.utf8)) }
        let delegate = Listener()
        let session = try session(delegate: isByDelegate ? delegate : nil)
        defer { session.invalidateAndCancel() }
        let error: (any Error)?
        if isByDelegate {
            session.dataTask(with: server.url()).resume()
            await eventually("the end of the task") { delegate.end != nil }
            error = delegate.end
        } else {
            error = await #expect(throws: URLError.self) { try await session.data(from: server.url()) }
        }
        let codes: [URLError.Code] = [.networkConnectionLost, .badServerResponse]
        #expect((error as? URLError).map { codes.contains($0.code) } == true, "\(String(describing: error))")
        cache.flush()
        #expect(cache.cachedResponse(for: URLRequest(url: server.url())) == nil)
    }

    // MARK: Silence

    /// One connection, read until the client closes it.
    private final class SilentServer: Sendable {
        private let listener: LoopbackListener
        private let state = Mutex((isAsked: false, isLeft: false))

        /// - Parameter says: what is sent once a request has come, before the silence.
        init(saying text: String) throws {
            let listener = try LoopbackListener()
            self.listener = listener
            Thread.detachNewThread { [self] in
                while let socket = listener.accept() {
                    guard socket.receive() != nil, socket.send(Array(text.utf8)) else { continue }
                    state.withLock { $0.isAsked = true }
                    while socket.receive() != nil {}
                    state.withLock { $0.isLeft = true }
                    socket.close()
                }
                listener.close()
            }
        }

        var isAsked: Bool { state.withLock { $0.isAsked } }
        /// The client has closed its connection.
        var isLeft: Bool { state.withLock { $0.isLeft } }
        var url: URL { URL(string: "http://127.0.0.1:\(listener.port)/") ?? URL(fileURLWithPath: "/") }

        func stop() { listener.wake() }
    }

    static let beginnings = [
        "", "HTTP/1.1 200 OK\r\nContent-", day + "Content-Length: 10\r\n\r\n", day + "Content-Length: 10\r\n\r\nbody",
    ]

    /// The connection is closed, too: it would carry the rest of the answer.
    @Test(arguments: beginnings, [true, false])
    func aSilentServerIsLeftInTime(saying text: String, isOfResource: Bool) async throws {
        // A busy machine has not sent the request in the first times.
        for seconds in [0.3, 2, 10, 60] {
            let server = try SilentServer(saying: text)
            defer { server.stop() }
            let session = try session {
                if isOfResource {
                    $0.timeoutIntervalForResource = seconds
                } else {
                    $0.timeoutIntervalForRequest = seconds
                }
            }
            defer { session.invalidateAndCancel() }
            let error = await #expect(throws: URLError.self) { try await session.data(from: server.url) }
            #expect(error?.code == .timedOut)
            guard server.isAsked else { continue }
            return await eventually("the end of the connection") { server.isLeft }
        }
        Issue.record("no request was sent")
    }

    @Test(arguments: beginnings) func aCancelledTaskLeavesItsServer(saying text: String) async throws {
        let server = try SilentServer(saying: text)
        defer { server.stop() }
        let delegate = Listener()
        let session = try session(delegate: delegate)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: server.url)
        task.resume()
        await eventually("a request") { server.isAsked }
        task.cancel()
        await eventually("the end of the task") { delegate.end != nil }
        #expect((delegate.end as? URLError)?.code == .cancelled)
        await eventually("the end of the connection") { server.isLeft }
    }

    @Test func aCancelledSessionLeavesItsServers() async throws {
        let server = try SilentServer(saying: "")
        defer { server.stop() }
        let delegate = Listener()
        let session = try session(delegate: delegate)
        session.dataTask(with: server.url).resume()
        await eventually("a request") { server.isAsked }
        session.invalidateAndCancel()
        await eventually("the end of the task") { delegate.end != nil }
        #expect((delegate.end as? URLError)?.code == .cancelled)
        await eventually("the end of the session") { delegate.isInvalid }
        await eventually("the end of the connection") { server.isLeft }
    }

    // MARK: Answers before the end of a request

    /// A server need not read a body that it refuses (RFC 9112 §9.3): its answer is the answer.
    @Test func anAnswerBeforeTheEndOfTheBodyIsTheAnswer() async throws {
        let listener = try LoopbackListener()
        Thread.detachNewThread {
            while let socket = listener.accept() {
                _ = socket.receive()
                _ = socket.send(
                    Array("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno".utf8))
                // A server that closes at once would reset the connection, and its answer would be lost on the way.
                while socket.receive() != nil {}
                socket.close()
            }
            listener.close()
        }
        defer { listener.wake() }
        let session = try session()
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(listener.port)/")))
        request.httpMethod = "POST"
        request.httpBody = Data(count: 32 << 20)
        let (data, response) = try await session.data(for: request)
        #expect((response as? HTTPURLResponse)?.statusCode == 413 && data == Data("no".utf8))
    }

    /// Bytes behind an answer are not the answer to the next request.
    @Test func bytesBehindAnAnswerAreNobodysAnswer() async throws {
        let server = try OriginServer { request in
            OriginResponse(
                rawBytes: Data(
                    ("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\nown\(request.number)"
                        + Self.day + "Content-Length: 7\r\n\r\nforeign").utf8))
        }
        let session = try session()
        defer { session.invalidateAndCancel() }
        for number in 1...5 {
            let (data, _) = try await session.data(from: server.url("/\(number)"))
            #expect(String(decoding: data, as: UTF8.self).hasPrefix("own"))
        }
    }

    // MARK: What the client's settings say

    @Test func theProxyIsTheClients() async throws {
        // Asked for a tunnel, it goes on as the server behind it.
        let proxy = try OriginServer { request in
            request.method == "CONNECT" ? .ok() : .ok("behind", ["Cache-Control": "max-age=60"])
        }
        var client = HTTPClient.Configuration()
        client.proxy = .server(host: "127.0.0.1", port: Int(proxy.port))
        let session = try cache.makeSession(configuration: .ephemeral.patient, client: client)
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: "http://host.invalid/a"))
        for _ in 0..<2 {
            #expect(String(decoding: try await session.data(from: url).0, as: UTF8.self) == "behind")
        }
        #expect(proxy.requests.map(\.method) == ["CONNECT", "GET"])
        #expect(proxy.requests.first?.target == "host.invalid:80")
    }

    // MARK: What the app says

    /// What would be a second field, or a second request, on the wire.
    @Test func aFieldOfTheAppCannotEndItsLine() async throws {
        let server = try OriginServer { .ok($0.fields["X-Second"] ?? "none") }
        let session = try session()
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: server.url())
        request.setValue("one\r\nX-Second: two", forHTTPHeaderField: "X-First")
        let text = try? String(decoding: await session.data(for: request).0, as: UTF8.self)
        #expect(text != "two")
        request = URLRequest(url: server.url())
        request.httpMethod = "GET / HTTP/1.1\r\nX-Second: two\r\n\r\nGET"
        let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
        #expect(error?.code == .badURL)
        #expect(server.requests.allSatisfy { $0.fields["X-Second"] == nil })
    }

    @Test func userAndPasswordOfTheURLReachTheServer() async throws {
        let server = try OriginServer { .ok($0.fields["Authorization"] ?? "none", ["Cache-Control": "no-store"]) }
        let session = try session()
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: "http://user:p%40ss@127.0.0.1:\(server.port)/"))
        let (data, _) = try await session.data(from: url)
        let (stock, _) = try await URLSession(configuration: .ephemeral.patient).data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == "Basic dXNlcjpwQHNz" && data == stock)
    }
}

/// Hears how a task and a session end.
private final class Listener: NSObject, URLSessionDataDelegate, Sendable {
    private struct NoError: Error {}
    private let state = Mutex((end: (any Error)?.none, isInvalid: false))

    /// Of the task, once it has ended; a task without an error ends by `NoError`.
    var end: (any Error)? { state.withLock { $0.end } }
    var isInvalid: Bool { state.withLock { $0.isInvalid } }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        state.withLock { $0.end = error ?? NoError() }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        state.withLock { $0.isInvalid = true }
    }
}

import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests of the origin itself, with a plain URLSession, since the other tests rely on it.
@Suite(.fewAtATime) struct OriginServerTests {
    private func session() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.urlCache = nil
        // Otherwise, on a busy machine, the next load would not wait for the connection of the one before.
        configuration.httpMaximumConnectionsPerHost = 1
        return URLSession(configuration: configuration)
    }

    private func http(_ response: URLResponse) throws -> HTTPURLResponse {
        try #require(response as? HTTPURLResponse)
    }

    @Test func deliversStatusFieldsAndBody() async throws {
        let server = try OriginServer { _ in
            OriginResponse(
                status: 203, reason: "Sure", fields: ["X-A": "1", "X-A": "2", "ETag": "\"e\""], body: Data("hi".utf8))
        }
        let (data, response) = try await session().data(from: server.url("/p?q=1"))
        let reply = try http(response)
        #expect(String(decoding: data, as: UTF8.self) == "hi")
        #expect(reply.statusCode == 203)
        let list = try #require(reply.value(forHTTPHeaderField: "X-A"))
        #expect(list.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } == ["1", "2"])
        #expect(reply.value(forHTTPHeaderField: "Date") != nil)
        #expect(server.requests.map(\.target) == ["/p?q=1"])
        #expect(server.requests.first?.fields["host"] == "127.0.0.1:\(server.port)")
    }

    /// libcurl closes a connection that was idle for two minutes, which happens when hundreds of tests run on a slow
    /// machine. So the loads are repeated until they take less than a minute.
    private func expectOneConnection(
        _ answer: @escaping @Sendable (OriginRequest) -> OriginResponse,
        loads: (OriginServer, URLSession) async throws -> Void
    ) async throws {
        for _ in 0..<10 {
            let start = ContinuousClock.now
            let server = try OriginServer(handler: answer)
            try await loads(server, session())
            guard start.duration(to: .now) < .seconds(60) else { continue }
            #expect(server.connectionCount == 1)
            return
        }
        Issue.record("the loads took more than a minute ten times")
    }

    @Test func keepsConnectionsAlive() async throws {
        try await expectOneConnection {
            .ok("\($0.number)")
        } loads: { server, session in
            for expected in 1...3 {
                let (data, _) = try await session.data(from: server.url())
                #expect(String(decoding: data, as: UTF8.self) == "\(expected)")
            }
        }
    }

    @Test func closesWhenAsked() async throws {
        let server = try OriginServer { _ in
            var response = OriginResponse.ok("x")
            response.ending = .close
            return response
        }
        let session = session()
        _ = try await session.data(from: server.url())
        _ = try await session.data(from: server.url())
        #expect(server.connectionCount == 2)
    }

    @Test(arguments: [
        OriginResponse(body: Data(count: 1_000), ending: .cutBody(after: 10)),
        OriginResponse(body: Data(count: 1_000), isChunked: true, ending: .cutBody(after: 10)),
        OriginResponse(ending: .noResponse),
    ]) func anEarlyEndIsAnError(response: OriginResponse) async throws {
        let server = try OriginServer { _ in response }
        await #expect(throws: URLError.self) { try await session().data(from: server.url()) }
    }

    @Test(arguments: ["HEAD", "GET"]) func bodilessResponses(method: String) async throws {
        try await expectOneConnection { request in
            request.method == "HEAD" ? .ok("four") : .status(304, "Not Modified")
        } loads: { server, session in
            var request = URLRequest(url: server.url())
            request.httpMethod = method
            for _ in 1...2 {
                let (data, response) = try await session.data(for: request)
                #expect(data.isEmpty)
                #expect(try http(response).statusCode == (method == "HEAD" ? 200 : 304))
            }
        }
    }

    @Test func writesDatesOfBothForms() {
        let date = Date(timeIntervalSince1970: 784_111_777)
        #expect(HTTPDateText.text(date) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDateText.rfc850(date) == "Sunday, 06-Nov-94 08:49:37 GMT")
    }
}

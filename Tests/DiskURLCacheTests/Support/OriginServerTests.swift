import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The origin itself, with a plain URLSession: what the other tests stand on.
@Suite(.fewAtATime) struct OriginServerTests {
    private func session() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.urlCache = nil
        // On a busy machine the next load would not wait for the connection of the one before.
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

    /// libcurl lets go of a connection that was idle for two minutes, which a test among hundreds may be on a slow machine: the loads are
    /// made again, until they took less than one.
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

    @Test(arguments: [nil, 1, 7, 100_000]) func sendsChunks(partSize: Int?) async throws {
        let body = Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0) })
        let server = try OriginServer { _ in
            OriginResponse(body: body, isChunked: true, partSize: partSize)
        }
        let (data, response) = try await session().data(from: server.url())
        #expect(data == body)
        #expect(try http(response).value(forHTTPHeaderField: "Content-Length") == nil)
    }

    @Test func cutBodyIsAnError() async throws {
        let server = try OriginServer { _ in
            OriginResponse(body: Data(repeating: 1, count: 1_000), ending: .cutBody(after: 10))
        }
        await #expect(throws: URLError.self) { try await session().data(from: server.url()) }
    }

    @Test func cutChunkedBodyIsAnError() async throws {
        let server = try OriginServer { _ in
            OriginResponse(body: Data(repeating: 1, count: 1_000), isChunked: true, ending: .cutBody(after: 10))
        }
        await #expect(throws: URLError.self) { try await session().data(from: server.url()) }
    }

    @Test func noResponseIsAnError() async throws {
        let server = try OriginServer { _ in OriginResponse(ending: .noResponse) }
        await #expect(throws: URLError.self) { try await session().data(from: server.url()) }
    }

    @Test func readsBodies() async throws {
        let server = try OriginServer { .ok(String($0.body.count)) }
        for size in [0, 5, 100_000, 2_000_000] {
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            request.httpBody = Data(repeating: 65, count: size)
            let (data, _) = try await session().data(for: request)
            #expect(String(decoding: data, as: UTF8.self) == String(size))
        }
        var streamed = URLRequest(url: server.url())
        streamed.httpMethod = "POST"
        streamed.httpBodyStream = InputStream(data: Data(repeating: 65, count: 70_000))
        let (data, _) = try await session().data(for: streamed)
        #expect(String(decoding: data, as: UTF8.self) == "70000")
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

    @Test func interimResponsesAndRawBytes() async throws {
        let server = try OriginServer { request in
            if request.target == "/raw" {
                return OriginResponse(rawBytes: Data("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
            }
            var response = OriginResponse.ok("ok")
            response.interim = [.init(status: 103, reason: "Early Hints", fields: ["Link": "</a>"])]
            return response
        }
        for target in ["/raw", "/interim"] {
            let (data, response) = try await session().data(from: server.url(target))
            #expect(String(decoding: data, as: UTF8.self) == "ok")
            #expect(try http(response).statusCode == 200)
        }
    }

    @Test func gatesHoldHeadAndParts() async throws {
        let head = Gate()
        let part = Gate()
        let server = try OriginServer { _ in
            OriginResponse(
                body: Data("ab".utf8), partSize: 1, beforeHead: { head.wait() },
                beforePart: { if $0 == 1 { part.wait() } })
        }
        let url = server.url()
        let session = session()
        let load = Task { try await session.data(from: url).0 }
        await head.arrival()
        head.open()
        await part.arrival()
        part.open()
        #expect(try await load.value == Data("ab".utf8))
    }

    @Test func servesManyConnectionsAtOnce() async throws {
        let gate = Gate()
        let server = try OriginServer { request in
            var response = OriginResponse.ok(request.target)
            response.beforeHead = { gate.wait() }
            return response
        }
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.httpMaximumConnectionsPerHost = 20
        let session = URLSession(configuration: configuration)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<20 {
                let url = server.url("/\(number)")
                group.addTask { try await session.data(from: url).0 == Data("/\(number)".utf8) }
            }
            // All twenty are in their handlers at the same time before any is answered.
            await gate.arrival(20)
            gate.open()
            for try await isRight in group { #expect(isRight) }
        }
        #expect(server.connectionCount == 20)
    }

    @Test func stopEndsOpenLoadsAndThreads() async throws {
        let gate = Gate()
        let server = try OriginServer { _ in
            OriginResponse(body: Data("ab".utf8), partSize: 1, beforePart: { if $0 == 1 { gate.wait() } })
        }
        let url = server.url()
        let session = session()
        let load = Task { try await session.data(from: url) }
        await gate.arrival()
        server.stop()
        await #expect(throws: URLError.self) { try await load.value }
        gate.open()
        await #expect(throws: URLError.self) { try await session.data(from: url) }
        withExtendedLifetime(server) {}
    }

    @Test func writesDatesOfBothForms() {
        let date = Date(timeIntervalSince1970: 784_111_777)
        #expect(HTTPDateText.text(date) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDateText.rfc850(date) == "Sunday, 06-Nov-94 08:49:37 GMT")
    }
}

@Suite struct ScratchDirectoryTests {
    @Test func goesWithItsOwner() throws {
        var scratch: ScratchDirectory? = try ScratchDirectory()
        let path = try #require(scratch?.url.path)
        try Data("x".utf8).write(to: try #require(scratch?.appending("file")))
        #expect(scratch?.files() == ["file"])
        scratch = nil
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}

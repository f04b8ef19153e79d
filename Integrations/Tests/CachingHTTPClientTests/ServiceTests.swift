import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import HTTPTypes
import InMemoryTracing
import LoopbackOrigin
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@testable import CachingHTTPClient

/// A storage that saves when it may, once.
private final class SlowStorage: DiskURLCache.EntryStorage {
    enum Place { case inATask, outsideOfTasks }

    let mayFlush = DispatchSemaphore(value: 0)
    let flushes = NIOLockedValueBox<[Place]>([])

    func entries(named name: String) -> [DiskURLCache.Entry]? { [] }
    func store(_ entry: DiskURLCache.Entry, named name: String) {}
    func removeEntries(matching criteria: DiskURLCache.Criteria) {}

    func flush() {
        let place = withUnsafeCurrentTask { $0 == nil ? Place.outsideOfTasks : .inATask }
        let isFirst = flushes.withLockedValue { flushes in
            flushes.append(place)
            return flushes.count == 1
        }
        if isFirst { mayFlush.isSignalled("the test to let it flush") }
    }
}

/// A client as a service of a server: its life, its traces, and the types of swift-http-types.
@Suite(.timeLimit(.minutes(2))) struct ServiceTests {
    private let patience = TimeAmount.seconds(120)

    /// An origin whose bodies end when the box says so.
    private func origin(_ mayEnd: NIOLockedValueBox<Bool>) async throws -> Origin {
        try await Origin { request, answer in
            try await answer.head(.ok, ["Cache-Control": "max-age=60", "Content-Length": "6"])
            try await answer.piece(ByteBuffer(string: "one"))
            // Bodies that the test never lets end are given up with the connection.
            while !mayEnd.withLockedValue({ $0 }) {
                guard (try? await Task.sleep(for: .milliseconds(1))) != nil else { return }
            }
            try await answer.piece(ByteBuffer(string: "two"))
        }
    }

    private func isShutDown(_ client: CachingHTTPClient, _ url: String) async -> Bool {
        do {
            _ = try await client.execute(HTTPClientRequest(url: url), timeout: patience)
            return false
        } catch {
            return error as? HTTPClientError == .alreadyShutdown
        }
    }

    @Test func atAGracefulShutdownResponsesAreReadToTheirEnd() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("service-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let mayEnd = NIOLockedValueBox(true)
        let origin = try await origin(mayEnd)
        let client = CachingHTTPClient(
            storage: .init(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: directory))
        let first = try await client.execute(HTTPClientRequest(url: origin.url("/stored")), timeout: patience)
        _ = try await first.body.collect(upTo: 100)
        mayEnd.withLockedValue { $0 = false }
        let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)

        let hasEnded = NIOLockedValueBox(false)
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await client.run()
                    hasEnded.withLockedValue { $0 = true }
                }
                trigger.triggerGracefulShutdown()
                // Nothing is served any more, from memory neither; what is being read is.
                await eventually("the shutdown") { await isShutDown(client, origin.url("/stored")) }
                #expect(!hasEnded.withLockedValue { $0 })
                mayEnd.withLockedValue { $0 = true }
                let body = try await response.body.collect(upTo: 100)
                #expect(String(buffer: body) == "onetwo")
                try await group.waitForAll()
            }
        }
        // What waited was written.
        let next = DiskURLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory)
        #expect(next.currentDiskUsage > 0)
        let again = CachingHTTPClient(
            storage: .init(memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory))
        for path in ["/stored", "/a"] {
            let hit = try await again.execute(HTTPClientRequest(url: origin.url(path)), timeout: patience)
            let body = try await hit.body.collect(upTo: 100)
            #expect(String(buffer: body) == "onetwo")
        }
        try await again.shutdown()
        #expect(origin.requests.count == 2)
    }

    @Test func aServiceThatIsCancelledWaitsForNoResponse() async throws {
        let origin = try await origin(NIOLockedValueBox(false))
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
        let run = Task { try await client.run() }
        run.cancel()
        try await run.value
        await #expect(throws: (any Error).self) { try await response.body.collect(upTo: 100) }
    }

    /// Without a graceful shutdown: responses may be read until all is saved, and no thread of other tasks waits for
    /// that.
    @Test func whatIsStoredIsSavedBeforeTheClientEnds() async throws {
        let mayEnd = NIOLockedValueBox(false)
        let origin = try await Origin { _, answer in
            try await answer.head(.ok, ["Cache-Control": "no-store", "Content-Length": "6"])
            try await answer.piece(ByteBuffer(string: "one"))
            // Bodies that the test never lets end are given up with the connection.
            while !mayEnd.withLockedValue({ $0 }) {
                guard (try? await Task.sleep(for: .milliseconds(1))) != nil else { return }
            }
            try await answer.piece(ByteBuffer(string: "two"))
        }
        let storage = SlowStorage()
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        configuration.diskStorage = storage
        let client = CachingHTTPClient(cache: DiskURLCache(configuration: configuration))
        let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
        let shutdown = Task { try await client.shutdown() }
        await eventually("a flush") { storage.flushes.withLockedValue { !$0.isEmpty } }
        mayEnd.withLockedValue { $0 = true }
        let body = try await response.body.collect(upTo: 100)
        #expect(String(buffer: body) == "onetwo")
        storage.mayFlush.signal()
        try await shutdown.value
        #expect(storage.flushes.withLockedValue { $0.first } == .outsideOfTasks)
    }

    /// A response that is dropped, or that fails, holds nothing up.
    @Test func aResponseThatNobodyReadsIsNotWaitedFor() async throws {
        let origin = try await origin(NIOLockedValueBox(false))
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        _ = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).status
        await #expect(throws: (any Error).self) {
            try await client.execute(HTTPClientRequest(url: "ftp://127.0.0.1/"), timeout: patience)
        }
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await client.run()
        }
    }

    @Test func aLoadIsASpanWithItsOutcome() async throws {
        let origin = try await Origin { request, answer in
            try await answer.whole(.ok, ["Cache-Control": request.path == "/a" ? "max-age=60" : "no-store"], "body")
        }
        let tracer = InMemoryTracer()
        var configuration = HTTPClient.Configuration()
        configuration.tracing.tracer = tracer
        let client = CachingHTTPClient(
            cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0), configuration: configuration)
        for path in ["/a", "/a"] {
            let response = try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: patience)
            _ = try await response.body.collect(upTo: 100)
        }
        client.cache.isOffline = true
        await #expect(throws: (any Error).self) {
            try await client.execute(HTTPClientRequest(url: origin.url("/b")), timeout: patience)
        }
        try await client.shutdown()
        let spans = tracer.finishedSpans.filter { $0.operationName == "GET cached" }
        func attribute(_ number: Int, _ name: String) -> String {
            String(describing: spans[number].attributes.get("http.cache.\(name)"))
        }
        try #require(spans.count == 3)
        #expect(attribute(0, "hit").contains("false") && attribute(1, "hit").contains("true"))
        #expect(attribute(0, "outcome").contains("miss") && attribute(0, "reason").contains("not-in-cache"))
        #expect(attribute(1, "outcome").contains("hit") && attribute(1, "layer").contains("memory"))
        #expect(attribute(2, "outcome").contains("failed") && spans[2].errors.count == 1)
        // The request that was sent is part of the load.
        let sent = tracer.finishedSpans.filter { $0.operationName == "GET" }
        #expect(sent.map(\.parentSpanID) == [spans[0].spanID])
    }

    @Test func requestsAndResponsesMayBeThoseOfHTTPTypes() async throws {
        let origin = try await Origin { request, answer in
            if request.path == "/late" { return try await Task.sleep(nanoseconds: 600_000_000_000) }
            try await answer.whole(
                .created, ["X-Sent": request.head.headers["X-Field"].joined(separator: "+"), "Set-Cookie": "a=1"],
                "\(request.head.method) \(request.path) \(String(buffer: request.body))")
        }
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        var request = HTTPRequest(method: .put, scheme: "http", authority: "127.0.0.1:\(origin.port)", path: "/a?b=c")
        let name = try #require(HTTPField.Name("X-Field"))
        request.headerFields.append(HTTPField(name: name, value: "1"))
        request.headerFields.append(HTTPField(name: name, value: "2"))
        let (response, body) = try await client.execute(
            request, body: .bytes(ByteBuffer(string: "sent")), timeout: patience)
        #expect(response.status.code == 201)
        let sent = try #require(HTTPField.Name("X-Sent"))
        #expect(response.headerFields[sent] == "1+2")
        let text = String(buffer: try await body.collect(upTo: 100))
        #expect(text == "PUT /a?b=c sent")
        var get = request
        get.method = .get
        let explanation = try await client.explanation(for: get)
        #expect(explanation.description.contains("Loads from the network"))
        let (again, _) = try await client.execute(request, deadline: .now() + patience)
        #expect(again.status.code == 201)
        // An answer at once may overtake even a deadline that has passed.
        request.path = "/late"
        let late = request
        await #expect(throws: HTTPClientError.deadlineExceeded) {
            try await client.execute(late, deadline: .now() - .seconds(1))
        }
        await #expect(throws: HTTPClientError.self) {
            try await client.execute(
                HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/"), timeout: patience)
        }
        try await client.shutdown()

        let head = DiskURLCache.Head(response)
        #expect(head.status == 201 && head.fields.contains { $0.name == "X-Sent" && $0.value == "1+2" })
        #expect(HTTPResponse(head) == response)
        #expect(HTTPFields(head) == response.headerFields)
        let fields = DiskURLCache.Head(status: 201, fields: response.headerFields).fields
        #expect(fields.elementsEqual(head.fields) { $0 == $1 })
        #expect(HTTPResponse(DiskURLCache.Head(status: 1_000)) == nil)
        #expect(HTTPResponse(DiskURLCache.Head(status: 200, fields: [("no name", "1")]))?.headerFields.isEmpty == true)
    }

    /// The path of a request on HTTP/2 is whatever its client wrote.
    @Test(arguments: [
        ("127.0.0.1", "@other.example/a"), ("127.0.0.1", ".other.example/"), ("127.0.0.1", ":1/"), ("127.0.0.1", "*"),
        ("127.0.0.1/a", "/"), ("127.0.0.1?", "/"), ("127.0.0.1#", "/"),
    ]) func aPathCannotChangeTheHost(authority: String, path: String) async throws {
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        let request = HTTPRequest(method: .get, scheme: "http", authority: authority, path: path)
        await #expect(throws: HTTPClientError.invalidURL) { try await client.execute(request, timeout: patience) }
        await #expect(throws: HTTPClientError.invalidURL) { _ = try await client.explanation(for: request) }
        try await client.shutdown()
    }

    /// So is its scheme. A gateway that sets the authority would send the credentials of its request elsewhere.
    @Test(arguments: ["http://127.0.0.1:PORT/?", "http:", "http+unix", "https+unix", "ftp", ""])
    func aSchemeCannotChangeTheHost(scheme: String) async throws {
        let origin = try await Origin { _, answer in try await answer.whole(.ok, [:], "") }
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        let scheme = scheme.replacingOccurrences(of: "PORT", with: "\(origin.port)")
        let request = HTTPRequest(method: .get, scheme: scheme, authority: "api.invalid", path: "/")
        let error = HTTPClientError.unsupportedScheme(scheme)
        await #expect(throws: error) { try await client.execute(request, timeout: patience) }
        await #expect(throws: error) { _ = try await client.explanation(for: request) }
        #expect(origin.requests.isEmpty)
        try await client.shutdown()
    }

    @Test(arguments: ["http", "HTTP"], ["", "?b=c"]) func aPathMayBeEmpty(scheme: String, path: String) async throws {
        let origin = try await Origin { request, answer in try await answer.whole(.ok, [:], request.path) }
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        let request = HTTPRequest(method: .get, scheme: scheme, authority: "127.0.0.1:\(origin.port)", path: path)
        let (response, body) = try await client.execute(request, timeout: patience)
        #expect(response.status.code == 200)
        let text = String(buffer: try await body.collect(upTo: 100))
        #expect(text == "/\(path)")
        try await client.shutdown()
    }

    /// Methods are compared with their case (RFC 9110 §9.1): what the origin says to a `get` is no answer to a `GET`.
    @Test func aMethodInAnotherCaseIsAnotherMethod() async throws {
        // Said to be the connection's last answer, as it is: otherwise the next request may be sent as it closes.
        let fields = "Cache-Control: max-age=60\r\nConnection: close\r\nContent-Length: 0"
        let origin = try await RawOrigin("HTTP/1.1 405 Method Not Allowed\r\n\(fields)\r\n\r\n")
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        for (method, hits) in [("get", 0), ("GET", 0), ("GET", 1), ("Get", 1)] {
            var request = HTTPClientRequest(url: origin.url)
            request.method = .RAW(value: method)
            let response = try await client.execute(request, timeout: patience)
            #expect(response.status == .methodNotAllowed)
            // At the end of the body the response is stored.
            _ = try await response.body.collect(upTo: 1)
            #expect(client.cache.statistics.memoryHits == hits, "\(method)")
        }
        try await client.shutdown()
    }

    @Test func theBodyOfAKeyIsGatheredByTheDeadline() async throws {
        let client = CachingHTTPClient(cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))
        let (stalled, continuation) = AsyncStream<ByteBuffer>.makeStream()
        continuation.yield(ByteBuffer(string: "begun"))
        var request = HTTPClientRequest(url: "http://127.0.0.1:1/")
        request.method = .RAW(value: "QUERY")
        request.body = .stream(stalled, length: .unknown)
        await #expect(throws: HTTPClientError.deadlineExceeded) {
            try await client.execute(request, timeout: .milliseconds(50))
        }
        withExtendedLifetime(continuation) {}
        try await client.shutdown()
    }

    /// `run()` waits for a body that goes past the cache, as those of Unix sockets do.
    @Test func aBodyPastTheCacheKeepsItsRequestOpen() async throws {
        let requests = OpenRequests()
        let body = OpenBody(
            body: .bytes(ByteBuffer(string: "body")), request: try requests.begin())
        var pieces = body.makeAsyncIterator()
        let first = try await pieces.next()
        #expect(first == ByteBuffer(string: "body"))
        let hasEnded = NIOLockedValueBox(false)
        let waiting = Task {
            await requests.waitForEnd()
            return hasEnded.withLockedValue { $0 }
        }
        try await Task.sleep(for: .milliseconds(20))
        hasEnded.withLockedValue { $0 = true }
        #expect(try await pieces.next() == nil)
        #expect(await waiting.value)
    }
}

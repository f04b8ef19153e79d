import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import Foundation
import Logging
import LoopbackOrigin
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOSSL
import Testing

/// Over real sockets: an origin of SwiftNIO, the client of AsyncHTTPClient, and the cache between them.
@Suite(.timeLimit(.minutes(5))) struct CachingHTTPClientTests {
    // MARK: What is stored

    @Test func aSecondRequestIsAnsweredFromMemory() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60", "X-Field": "a"], "body")
        }
        try await withClient { client in
            for expected in ["fwd=uri-miss", "hit"] {
                let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
                #expect(response.status == .ok && response.version == .http1_1)
                #expect(response.headers["X-Field"] == ["a"] && response.headers["Content-Length"] == ["4"])
                #expect(response.url?.absoluteString == origin.url("/a"))
                #expect(
                    response.headers["Cache-Status"].first?.contains(expected == "hit" ? "hit" : "fwd=uri-miss") == true
                )
                #expect(try await response.text() == "body")
            }
            #expect(client.cache.statistics.memoryHits == 1)
        }
        #expect(origin.requests.count == 1)
    }

    @Test func whatIsOnDiskIsServedByTheNextClient() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        let directory = scratch()
        defer { try? FileManager.default.removeItem(at: directory) }
        for _ in 0..<2 {
            var storage = DiskURLCache.Configuration(memoryCapacity: 0, diskCapacity: 1 << 20)
            storage.directory = directory
            let client = CachingHTTPClient(storage: storage)
            let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
            #expect(try await response.text() == "body")
            try await client.shutdown()
        }
        #expect(origin.requests.count == 1)
    }

    @Test func whatIsStaleIsConfirmed() async throws {
        let origin = try await Origin { request, answer in
            if request.head.headers["If-None-Match"] == ["\"1\""] {
                try await answer.whole(.notModified, ["ETag": "\"1\"", "X-Count": "2"])
            } else {
                try await answer.whole(.ok, ["ETag": "\"1\"", "Cache-Control": "no-cache", "X-Count": "1"], "body")
            }
        }
        try await withClient { client in
            for count in ["1", "2"] {
                let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
                #expect(response.status == .ok && response.headers["X-Count"] == [count])
                #expect(try await response.text() == "body")
            }
            #expect(client.cache.statistics.revalidations == 1)
        }
    }

    @Test func aStaleAnswerIsServedWhileItIsRefreshed() async throws {
        let version = NIOLockedValueBox(0)
        let origin = try await Origin { _, answer in
            let number = version.withLockedValue { version in
                version += 1
                return version
            }
            try await answer.whole(
                .ok, ["Cache-Control": number == 1 ? "max-age=0, stale-while-revalidate=600" : "max-age=60"],
                "\(number)")
        }
        try await withClient { client in
            func load() async throws -> String {
                try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
            }
            #expect(try await load() == "1")
            #expect(try await load() == "1")
            try await eventually("the refreshed response") { try await load() == "2" }
        }
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [false, true]) func aStaleAnswerStandsInForAFailure(hangs: Bool) async throws {
        let isDown = NIOLockedValueBox(false)
        let origin = try await Origin { _, answer in
            guard !isDown.withLockedValue({ $0 }) else {
                if hangs { return try await Task.sleep(nanoseconds: 600_000_000_000) }
                return try await answer.whole(.internalServerError)
            }
            try await answer.whole(.ok, ["Cache-Control": "max-age=0, stale-if-error=600"], "body")
        }
        try await withClient { client in
            for timeout in [patience, hangs ? .milliseconds(50) : patience] {
                let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: timeout)
                #expect(try await response.text() == "body")
                isDown.withLockedValue { $0 = true }
            }
        }
        // Within 50 ms the request may not have come.
        #expect(hangs || origin.requests.count == 2)
    }

    @Test func eightCallersAreOneRequest() async throws {
        let goesOn = Flag()
        let origin = try await Origin { _, answer in
            try await goesOn.isSet()
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        try await withClient { client in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
                    }
                }
                await eventually("a request") { !origin.requests.isEmpty }
                goesOn.set()
                for try await text in group { #expect(text == "body") }
            }
        }
        #expect(origin.requests.count == 1)
    }

    /// Where the client is not told to gather bodies, nobody gets the answer to another body.
    @Test(arguments: [true, false]) func aKeyPolicySeesTheBodiesOfItsMethods(gathers: Bool) async throws {
        let origin = try await Origin { request, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], String(buffer: request.body))
        }
        var storage = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        storage.keyPolicy = .standard.includingBody(ofMethods: "POST")
        try await withClient(storage, methodsKeyedByBody: gathers ? [.POST] : []) { client in
            for query in ["a", "b", "a", "b"] {
                var request = HTTPClientRequest(url: origin.url("/graphql"))
                request.method = .POST
                request.body = .bytes(ByteBuffer(string: query))
                let text = try await client.execute(request, timeout: patience).text()
                #expect(text == query)
            }
        }
        #expect(origin.requests.count == (gathers ? 2 : 4))
    }

    /// RFC 10008 §2.7, without a setting. What a body means counts.
    @Test func aQueryIsKeyedByItsBodyAndType() async throws {
        let origin = try await Origin { request, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], String(buffer: request.body))
        }
        try await withClient { client in
            for (query, type) in [("[1]", "application/json"), ("[1]", "text/plain"), ("[ 1]", "application/json")] {
                var request = HTTPClientRequest(url: origin.url("/search"))
                request.method = .RAW(value: "QUERY")
                request.headers = ["Content-Type": type]
                request.body = .bytes(ByteBuffer(string: query))
                let text = try await client.execute(request, timeout: patience).text()
                #expect(text == "[1]")
            }
        }
        #expect(origin.requests.map { $0.head.headers["Content-Type"] } == [["application/json"], ["text/plain"]])
    }

    private func query<Pieces: AsyncSequence & Sendable>(_ url: String, _ pieces: Pieces) -> HTTPClientRequest
    where Pieces.Element == ByteBuffer {
        var request = HTTPClientRequest(url: url)
        request.method = .RAW(value: "QUERY")
        request.body = .stream(pieces, length: .unknown)
        return request
    }

    /// A client of a gateway chooses how long the body is.
    @Test func aLongBodyIsNotGathered() async throws {
        let origin = try await Origin { request, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "\(request.body.readableBytes)")
        }
        let piece = ByteBuffer(repeating: 1, count: 300_000)
        try await withClient { client in
            for (count, requests) in [(3, 1), (3, 1), (5, 2), (5, 3)] {
                let (pieces, end) = AsyncStream<ByteBuffer>.makeStream()
                for _ in 0..<count { end.yield(piece) }
                end.finish()
                let text = try await client.execute(query(origin.url("/search"), pieces), timeout: patience).text()
                #expect(text == "\(count * 300_000)")
                #expect(origin.requests.count == requests)
            }
        }
    }

    /// A body that never waits does not notice by itself that nobody wants it any more.
    private struct Endless: AsyncSequence, AsyncIteratorProtocol {
        func next() async -> ByteBuffer? { ByteBuffer() }
        func makeAsyncIterator() -> Endless { self }
    }

    @Test func aBodyWithoutEndEndsAtTheDeadline() async throws {
        try await withClient { client in
            let request = query("http://127.0.0.1:9/", Endless())
            let error = await #expect(throws: HTTPClientError.self) {
                try await client.execute(request, timeout: .milliseconds(50))
            }
            #expect(error == .deadlineExceeded)
        }
    }

    @Test func optionsOfTheRequestCount() async throws {
        let origin = try await Origin { _, answer in try await answer.whole(.ok, [:], "body") }
        try await withClient { client in
            let cacheOptions = DiskURLCache.Options(lifetime: .always(60), tags: ["group"])
            for _ in 0..<2 {
                _ = try await client.execute(
                    HTTPClientRequest(url: origin.url("/a")), timeout: patience, cacheOptions: cacheOptions
                ).text()
            }
            #expect(origin.requests.count == 1)
            client.cache.removeCachedResponses(tag: "group")
            _ = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
        }
        #expect(origin.requests.count == 2)
    }

    /// The certificate of a client is in no key.
    @Test func aRequestWithItsOwnTLSIsNotCached() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        try await withClient { client in
            var request = HTTPClientRequest(url: origin.url("/a"))
            request.tlsConfiguration = .makeClientConfiguration()
            for _ in 0..<2 { _ = try await client.execute(request, timeout: patience).text() }
        }
        #expect(origin.requests.count == 2)
    }

    /// The server knows a client by its certificate: clients of one cache share what is for the same one. A client that
    /// believes any server shares with nobody else.
    @Test(.enabled(if: Certificates.canBeMade, "openssl is not installed"))
    func aClientsCertificateIsPartOfTheKey() async throws {
        let files = try Certificates()
        for name in ["a", "b"] { try files.add(name) }
        func certificate(_ name: String) throws -> NIOSSLCertificate {
            try #require(NIOSSLCertificate.fromPEMFile(files.path("\(name).pem")).first)
        }
        let names = try ["a", "b"].map { ($0, try certificate($0)) }
        var serving = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(try certificate("server"))],
            privateKey: .privateKey(try NIOSSLPrivateKey(file: files.path("server.key"), format: .pem)))
        serving.certificateVerification = .noHostnameVerification
        serving.trustRoots = .file(files.path("ca.pem"))
        let origin = try await Origin(tls: serving) { request, answer in
            let name = names.first { $0.1 == request.certificate }?.0 ?? "nobody"
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], name)
        }
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        func load(_ name: String, _ change: (inout TLSConfiguration) -> Void = { _ in }) async throws -> String {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(files.path("ca.pem"))
            tls.certificateChain = [.certificate(try certificate(name))]
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: files.path("\(name).key"), format: .pem))
            change(&tls)
            let client = CachingHTTPClient(cache: cache, configuration: .init(tlsConfiguration: tls))
            let text = try? await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
            try await client.shutdown()
            return try #require(text)
        }
        for (number, name) in ["a", "b", "a", "b"].enumerated() {
            let answered = try await load(name)
            #expect(answered == name)
            #expect(origin.requests.count == min(number + 1, 2))
        }
        for count in [3, 3] {
            let name = try await load("a") { $0.certificateVerification = .none }
            #expect(name == "a")
            #expect(origin.requests.count == count)
        }
        // A callback may answer for anybody.
        for count in [4, 5] {
            let name = try await load("a") { $0.sslContextCallback = { _, promise in promise.succeed(.noChanges) } }
            #expect(name == "a")
            #expect(origin.requests.count == count)
        }
    }

    @Test func theLoggerHearsWhereAnAnswerCameFrom() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        let lines = NIOLockedValueBox<[String]>([])
        var logger = Logger(label: "test") { _ in LineHandler(lines: lines) }
        logger.logLevel = .debug
        try await withClient { client in
            for _ in 0..<2 {
                _ = try await client.execute(
                    HTTPClientRequest(url: origin.url("/a?token=secret")), timeout: patience, logger: logger
                ).text()
            }
        }
        let own = lines.withLockedValue { $0.filter { $0.hasPrefix("debug: GET") } }
        let start = "debug: GET \(origin.url("/a"))?…: "
        #expect(own == ["\(start)miss: not in the cache", "\(start)hit (memory)"])
    }

    /// A private answer to one user is none for another.
    @Test func aCacheOfItsOwnIsShared() async throws {
        let origin = try await Origin { request, answer in
            let directives = request.path == "/private" ? "private, max-age=60" : "max-age=60"
            try await answer.whole(.ok, ["Cache-Control": directives], "body")
        }
        let directory = scratch()
        defer { try? FileManager.default.removeItem(at: directory) }
        let client = CachingHTTPClient(
            storage: .init(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: directory))
        for path in ["/private", "/private", "/public", "/public"] {
            let response = try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: patience)
            #expect(try await response.text() == "body")
        }
        #expect(origin.requests.map(\.path) == ["/private", "/private", "/public"])
        try await client.shutdown()
    }

    // MARK: What flows through

    @Test func noStoreFlowsThroughAndEachSetCookieIsThere() async throws {
        let origin = try await Origin { request, answer in
            try await answer.whole(
                .ok,
                [
                    "Set-Cookie": "a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT", "Set-Cookie": "b=2",
                    "Cache-Control": request.path == "/stored" ? "max-age=60" : "no-store",
                ], "body")
        }
        try await withClient { client in
            for path in ["/a", "/a", "/stored"] {
                let response = try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: patience)
                #expect(
                    response.headers["Set-Cookie"] == ["a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT", "b=2"])
                #expect(try await response.text() == "body")
            }
            #expect(origin.requests.count == 3)
            // A session that was set once is not set again by each hit.
            let hit = try await client.execute(HTTPClientRequest(url: origin.url("/stored")), timeout: patience)
            #expect(hit.headers["Set-Cookie"] == [])
        }
        #expect(origin.requests.count == 3)
    }

    @Test func requestsArriveAsTheyWereMade() async throws {
        let origin = try await Origin { _, answer in try await answer.whole(.ok) }
        try await withClient { client in
            var request = HTTPClientRequest(url: origin.url("/a?b=%20c#fragment"))
            request.headers = ["X-Twice": "1", "Cookie": "a=1", "X-Twice": "2", "Cookie": "b=2"]
            _ = try await client.execute(request, timeout: patience).text()
        }
        let head = try #require(origin.requests.first?.head)
        #expect(head.uri == "/a?b=%20c")
        #expect(head.headers["X-Twice"] == ["1", "2"])
        // A request has one such field (RFC 6265 §5.4).
        #expect(head.headers["Cookie"] == ["a=1; b=2"])
    }

    @Test func anUnsafeMethodStreamsItsBodyAndInvalidates() async throws {
        let origin = try await Origin { request, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], String(buffer: request.body))
        }
        try await withClient { client in
            func get() async throws {
                _ = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
            }
            try await get()
            try await get()
            #expect(origin.requests.count == 1)
            for length in [HTTPClientRequest.Body.Length.unknown, .known(Int64(6))] {
                var post = HTTPClientRequest(url: origin.url("/a"))
                post.method = .POST
                let pieces = AsyncStream<ByteBuffer> { continuation in
                    for text in ["one", "two"] { continuation.yield(ByteBuffer(string: text)) }
                    continuation.finish()
                }
                post.body = .stream(pieces, length: length)
                #expect(try await client.execute(post, timeout: patience).text() == "onetwo")
            }
            try await get()
        }
        #expect(origin.requests.map(\.head.method) == [.GET, .POST, .POST, .GET])
        #expect(origin.requests[2].head.headers["Content-Length"] == ["6"])
    }

    // MARK: Redirects

    @Test func eachHopIsStoredUnderItsOwnURL() async throws {
        let origin = try await Origin { request, answer in
            switch request.path {
            case "/a": try await answer.whole(.found, ["Location": "/b", "Cache-Control": "max-age=60"])
            default: try await answer.whole(.ok, ["Cache-Control": "max-age=60"], request.path)
            }
        }
        try await withClient { client in
            for path in ["/a", "/b", "/a"] {
                let response = try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: patience)
                #expect(try await response.text() == "/b")
                #expect(response.url?.absoluteString == origin.url("/b"))
                #expect(response.history.count == (path == "/a" ? 2 : 1))
                #expect(response.history.first?.responseHead.status == (path == "/a" ? .found : .ok))
            }
        }
        #expect(origin.requests.map(\.path) == ["/a", "/b"])
    }

    @Test func aRedirectIsAnAnswerWhereNoneAreFollowed() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.found, ["Location": "/b", "Set-Cookie": "a=1", "Set-Cookie": "b=2"])
        }
        try await withClient(followsRedirects: false) { client in
            let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
            #expect(response.status == .found && response.headers["Set-Cookie"] == ["a=1", "b=2"])
        }
        #expect(origin.requests.count == 1)
    }

    /// Fresh redirects too: no request is sent for them, and the loop is as long.
    @Test(arguments: ["no-store", "max-age=60"]) func aLoopOfRedirectsIsAnErrorOfTheClient(lifetime: String)
        async throws
    {
        let origin = try await Origin { request, answer in
            let number = Int(request.path.dropFirst(2)) ?? 0
            let next = request.path.hasPrefix("/n") ? "/n\(number + 1)" : "/l\((number + 1) % 3)"
            try await answer.whole(.found, ["Location": next, "Cache-Control": lifetime])
        }
        let alone = HTTPClient(
            configuration: .init(redirectConfiguration: .follow(max: 20, allowCycles: false)))
        try await withClient { client in
            for (path, expected) in [
                ("/l0", HTTPClientError.redirectCycleDetected), ("/n0", .redirectLimitReached),
                ("/l0", .redirectCycleDetected),
            ] {
                let request = HTTPClientRequest(url: origin.url(path))
                let error = await #expect(throws: HTTPClientError.self) {
                    try await client.execute(request, timeout: patience)
                }
                let same = await #expect(throws: HTTPClientError.self) {
                    try await alone.execute(request, timeout: patience)
                }
                #expect(error == expected && same == expected)
            }
        }
        try await alone.shutdown()
    }

    /// A stored redirect of a page that has come back is not believed twice.
    @Test func aPageThatMovedAndMovedBackIsFound() async throws {
        let hasMovedBack = NIOLockedValueBox(false)
        let origin = try await Origin { request, answer in
            let isThere = request.path == (hasMovedBack.withLockedValue { $0 } ? "/a" : "/b")
            if isThere { return try await answer.whole(.ok, ["Cache-Control": "no-store"], "page") }
            let other = request.path == "/a" ? "/b" : "/a"
            try await answer.whole(.movedPermanently, ["Location": other, "Cache-Control": "max-age=31536000"])
        }
        try await withClient { client in
            for _ in 0..<3 {
                let text = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
                #expect(text == "page")
                hasMovedBack.withLockedValue { $0 = true }
            }
        }
    }

    /// A form that was sent leads back to its own page.
    @Test func aRedirectAfterPostMayLeadBack() async throws {
        let origin = try await Origin { request, answer in
            guard request.head.method == .POST else { return try await answer.whole(.ok, [:], "page") }
            try await answer.whole(.seeOther, ["Location": "/a"])
        }
        try await withClient { client in
            var request = HTTPClientRequest(url: origin.url("/a"))
            request.method = .POST
            let text = try await client.execute(request, timeout: patience).text()
            #expect(text == "page")
        }
    }

    @Test func aRedirectElsewhereTakesNoCredentials() async throws {
        let other = try await Origin { _, answer in try await answer.whole(.ok) }
        let target = other.url("/b")
        let origin = try await Origin { _, answer in try await answer.whole(.temporaryRedirect, ["Location": target]) }
        try await withClient { client in
            var request = HTTPClientRequest(url: origin.url("/a"))
            request.headers = ["Authorization": "secret", "Cookie": "a=1", "Host": "named.example", "X-Field": "1"]
            _ = try await client.execute(request, timeout: patience).text()
        }
        #expect(origin.requests.first?.head.headers["Host"] == ["named.example"])
        let headers = try #require(other.requests.first?.head.headers)
        #expect(headers["Authorization"] == [] && headers["Cookie"] == [] && headers["X-Field"] == ["1"])
        #expect(headers["Host"] == ["127.0.0.1:\(other.port)"])
    }

    /// After a redirect that drops the body all is as with the client alone. Where the client alone would send the body
    /// again, the redirect is the answer: as with one that streams.
    @Test(arguments: [301, 302, 303, 307, 308], RequestBody.allCases)
    func aBodyThatIsNotInTheKeyIsNotSentAgain(status: Int, body: RequestBody) async throws {
        for method in [HTTPMethod.POST, .PUT, .GET] {
            // What the origin and the caller see. The shared client decodes, and so asks for codings.
            func exchange(
                _ send: (HTTPClientRequest) async throws -> HTTPClientResponse
            ) async throws -> [String] {
                let origin = try await Origin { request, answer in
                    if request.path == "/b" { return try await answer.whole(.ok, [:], "answer") }
                    try await answer.whole(HTTPResponseStatus(statusCode: status), ["Location": "/b"], "moved")
                }
                var request = HTTPClientRequest(url: origin.url("/a"))
                request.method = method
                request.headers = ["Content-Type": "text/plain"]
                request.body = body.body
                let response = try await send(request)
                let text = try await response.text()
                let seen = origin.requests.map { request in
                    let fields = request.head.headers.map { ($0.name.lowercased(), $0.value) }
                        .filter { !["host", "accept-encoding"].contains($0.0) }
                    return "\(request.head.method) \(request.path) \(String(buffer: request.body)) "
                        + fields.map { "\($0.0): \($0.1)" }.sorted().joined(separator: ", ")
                }
                let history = response.history.map(\.responseHead.status.code)
                return ["\(response.status.code) \(text)", "\(history)"] + seen
            }
            let alone = try await exchange { try await HTTPClient.shared.execute($0, timeout: patience) }
            // The client alone does what this test is about.
            let isRepeated = status >= 307 || method != .POST && status != 303
            #expect(alone.count == (isRepeated && body == .stream ? 3 : 4))
            #expect(alone.last?.contains("/b one two ") == (isRepeated && body != .stream))
            try await withClient { client in
                let cached = try await exchange { try await client.execute($0, timeout: patience) }
                #expect(cached == (isRepeated ? ["\(status) moved", "[\(status)]", alone[2]] : alone))
            }
        }
    }

    @Test func aBodySentAgainElsewhereTakesNoCredentials() async throws {
        let other = try await Origin { request, answer in
            try await answer.whole(.ok, [:], String(buffer: request.body))
        }
        let target = other.url("/b")
        let origin = try await Origin { _, answer in try await answer.whole(.permanentRedirect, ["Location": target]) }
        var storage = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        storage.keyPolicy = .standard.includingBody(ofMethods: "POST")
        try await withClient(storage, methodsKeyedByBody: [.POST]) { client in
            var request = HTTPClientRequest(url: origin.url("/a"))
            request.method = .POST
            request.body = .bytes(ByteBuffer(string: "body"))
            request.headers = [
                "Authorization": "secret", "Proxy-Authorization": "secret", "Cookie": "a=1",
                "Origin": "http://a.example",
                "Host": "named.example", "X-Field": "1",
            ]
            let text = try await client.execute(request, timeout: patience).text()
            #expect(text == "body")
        }
        #expect(origin.requests.first?.head.headers["Authorization"] == ["secret"])
        let headers = try #require(other.requests.first?.head.headers)
        for name in ["Authorization", "Proxy-Authorization", "Cookie", "Origin"] { #expect(headers[name] == []) }
        #expect(headers["Host"] == ["127.0.0.1:\(other.port)"] && headers["X-Field"] == ["1"])
    }

    /// The redirect and the answer are stored, each under its URL and the body.
    @Test func aBodyInTheKeyIsThereAfterARedirectToo() async throws {
        let origin = try await Origin { request, answer in
            if request.path == "/b" {
                return try await answer.whole(.ok, ["Cache-Control": "max-age=60"], String(buffer: request.body))
            }
            try await answer.whole(.permanentRedirect, ["Location": "/b", "Cache-Control": "max-age=60"])
        }
        var storage = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        storage.keyPolicy = .standard.includingBody(ofMethods: "POST")
        try await withClient(storage, methodsKeyedByBody: [.POST]) { client in
            for text in ["one", "two", "one", "two"] {
                var request = HTTPClientRequest(url: origin.url("/a"))
                request.method = .POST
                request.body = .bytes(ByteBuffer(string: text))
                let answer = try await client.execute(request, timeout: patience).text()
                #expect(answer == text)
            }
        }
        #expect(
            origin.requests.map { "\($0.path) \(String(buffer: $0.body))" } == ["/a one", "/b one", "/a two", "/b two"])
    }

    // MARK: Codings

    private static let gzipped = "H4sIAAAAAAACA8tIzcnJ11FISU3OT0lNUSjPL8pJAQBD0NnIFAAAAA=="

    /// Two clients on one cache, one of which decodes. The origin sends no `Vary`.
    @Test(arguments: [true, false]) func decodedAndCodedBodiesNeverMix(decodesFirst: Bool) async throws {
        let coded = try #require(Data(base64Encoded: Self.gzipped))
        let origin = try await Origin { _, answer in
            try await answer.head(
                .ok, ["Content-Encoding": "gzip", "Content-Length": "\(coded.count)", "Cache-Control": "max-age=60"])
            try await answer.piece(ByteBuffer(bytes: coded))
        }
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        var decoding = HTTPClient.Configuration()
        decoding.decompression = .enabled(limit: .ratio(25))
        let clients = [
            (CachingHTTPClient(cache: cache, configuration: decoding), Data("hello, decoded world".utf8)),
            (CachingHTTPClient(cache: cache), coded),
        ]
        for _ in 0..<2 {
            for (client, expected) in decodesFirst ? clients : clients.reversed() {
                let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
                #expect(try await Data(buffer: response.body.collect(upTo: 1 << 20)) == expected)
            }
        }
        #expect(origin.requests.count == 2)
        // Codings that a request names itself may be others than the client decodes.
        var own = HTTPClientRequest(url: origin.url("/a"))
        own.headers = ["Accept-Encoding": "br"]
        _ = try await clients[0].0.execute(own, timeout: patience).text()
        #expect(origin.requests.count == 3)
        for (client, _) in clients { try await client.shutdown() }
    }

    // MARK: What goes wrong

    @Test func cancellingTheTaskCancelsTheRequest() async throws {
        let origin = try await Origin { _, _ in try await Task.sleep(nanoseconds: 600_000_000_000) }
        try await withClient { client in
            let load = Task { try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience) }
            await eventually("a request") { !origin.requests.isEmpty }
            load.cancel()
            await #expect(throws: CancellationError.self) { try await load.value }
        }
    }

    @Test func theDeadlineHoldsForEachCaller() async throws {
        let goesOn = Flag()
        let origin = try await Origin { _, answer in
            try await goesOn.isSet()
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        try await withClient { client in
            let patient = Task {
                try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
            }
            await eventually("a request") { !origin.requests.isEmpty }
            // One that waits for the other's answer, and one that asks for itself.
            for path in ["/a", "/b"] {
                let error = await #expect(throws: HTTPClientError.self) {
                    try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: .milliseconds(50))
                }
                #expect(error == .deadlineExceeded)
            }
            goesOn.set()
            let text = try await patient.value
            #expect(text == "body")
        }
    }

    @Test func garbageIsAnErrorOfTheClient() async throws {
        let origin = try await RawOrigin("this is no HTTP\r\n\r\n")
        try await withClient { client in
            await #expect(throws: HTTPParserError.self) {
                try await client.execute(HTTPClientRequest(url: origin.url), timeout: patience)
            }
        }
    }

    @Test func aBodyCutShortIsAnErrorAndIsNotStored() async throws {
        let origin = try await RawOrigin(
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\nhalf")
        try await withClient { client in
            for _ in 0..<2 {
                await #expect(throws: (any Error).self) {
                    try await client.execute(HTTPClientRequest(url: origin.url), timeout: patience).text()
                }
            }
            #expect(client.cache.statistics.stores == 0 && client.cache.statistics.memoryHits == 0)
        }
    }

    @Test(arguments: [
        "4\r\nhalf\r\n", "4\r\nhalf", "8\r\nhalf", "4\r\nhalf\r\n0\r\n", "4\r\nhalf\r\nnonsense\r\n",
        "fffffffffffffffff\r\nhalf",
    ])
    func chunksCutShortAreAnErrorAndAreNotStored(chunks: String) async throws {
        let origin = try await RawOrigin(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n\(chunks)")
        try await withClient { client in
            for _ in 0..<2 {
                await #expect(throws: (any Error).self) {
                    try await client.execute(HTTPClientRequest(url: origin.url), timeout: patience).text()
                }
            }
            #expect(client.cache.statistics.stores == 0 && client.cache.statistics.memoryHits == 0)
        }
    }

    /// The origin's length holds, and what was coded ends in the middle.
    @Test func aCodedBodyCutShortIsNotStored() async throws {
        let coded = try #require(Data(base64Encoded: Self.gzipped)).dropLast(14)
        let origin = try await Origin { _, answer in
            try await answer.head(
                .ok, ["Content-Encoding": "gzip", "Content-Length": "\(coded.count)", "Cache-Control": "max-age=60"])
            try await answer.piece(ByteBuffer(bytes: coded))
        }
        var configuration = HTTPClient.Configuration()
        configuration.decompression = .enabled(limit: .ratio(25))
        let client = CachingHTTPClient(
            cache: DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0), configuration: configuration)
        for _ in 0..<2 {
            let text = try? await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience).text()
            #expect(text == nil)
        }
        #expect(client.cache.statistics.stores == 0 && origin.requests.count == 2)
        try await client.shutdown()
    }

    /// Such an answer has no body, so there is nothing to decode: the client alone fails it.
    @Test(arguments: [HTTPResponseStatus.notModified, .noContent, .ok]) func aCodingOfNoBodyIsNoFailure(
        status: HTTPResponseStatus
    ) async throws {
        let origin = try await Origin { request, answer in
            var headers: HTTPHeaders = ["ETag": "\"1\"", "Content-Encoding": "gzip", "Cache-Control": "no-cache"]
            switch request.path {
            case "/bare": return try await answer.head(status, headers)
            case _ where request.head.headers.contains(name: "If-None-Match"):
                headers.replaceOrAdd(name: "X-Count", value: "2")
                return try await answer.head(.notModified, headers)
            default:
                let coded = try #require(Data(base64Encoded: Self.gzipped))
                headers.replaceOrAdd(name: "Content-Length", value: "\(coded.count)")
                try await answer.head(.ok, headers)
                try await answer.piece(ByteBuffer(bytes: coded))
            }
        }
        var configuration = HTTPClient.Configuration()
        configuration.decompression = .enabled(limit: .ratio(25))
        try await withClient(configuration: configuration) { client in
            var texts: Set<String> = []
            for count in [[], ["2"], ["2"]] {
                let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
                #expect(response.status == .ok && response.headers["X-Count"] == count)
                try await texts.insert(response.text())
            }
            #expect(texts.count == 1 && texts.first?.isEmpty == false)
            // To the caller's own condition, and without one.
            for method in status == .ok ? [HTTPMethod.HEAD] : [.GET, .HEAD] {
                var request = HTTPClientRequest(url: origin.url("/bare"))
                request.method = method
                if status == .notModified { request.headers = ["If-None-Match": "\"1\""] }
                let response = try await client.execute(request, timeout: patience)
                #expect(response.status == status)
                #expect(try await response.text() == "")
            }
        }
    }

    @Test func whatIsNoWebAddressIsTheClientsAffair() async throws {
        try await withClient { client in
            await #expect(throws: HTTPClientError.self) {
                try await client.execute(HTTPClientRequest(url: "ftp://127.0.0.1/a"), timeout: patience)
            }
        }
    }

    // MARK: Pace and memory

    /// Nothing is read after the head: the origin is held up by full sockets, far from the end.
    @Test func aSlowReaderHoldsTheOriginUp() async throws {
        let total = 512 << 20
        let sent = NIOLockedValueBox(0)
        let origin = try await Origin { _, answer in
            try await answer.head(.ok, ["Cache-Control": "no-store", "Content-Length": "\(total)"])
            let piece = ByteBuffer(repeating: 1, count: 1 << 20)
            while sent.withLockedValue({ $0 }) < total {
                try await answer.piece(piece)
                sent.withLockedValue { $0 += piece.readableBytes }
            }
        }
        try await withClient { client in
            let response = try await client.execute(HTTPClientRequest(url: origin.url("/a")), timeout: patience)
            var iterator = response.body.makeAsyncIterator()
            var read = 0
            var mostAhead = 0
            while read < 256 << 20, let piece = try await iterator.next() {
                read += piece.readableBytes
                mostAhead = max(mostAhead, sent.withLockedValue { $0 } - read)
            }
            // 1 MB in the cache, the rest in the client and the sockets of both sides.
            #expect(mostAhead < 24 << 20, "\(mostAhead >> 20) MB")
            #expect(sent.withLockedValue { $0 } < total)
        }
    }
}

private let patience = TimeAmount.seconds(120)

/// "one two" in the forms that a request's body can have.
enum RequestBody: CaseIterable {
    case buffer, array, collection, stream

    var body: HTTPClientRequest.Body {
        let bytes = Array("one two".utf8)
        switch self {
        case .buffer: return .bytes(ByteBuffer(bytes: bytes))
        case .array: return .bytes(bytes)
        case .collection: return .bytes(bytes, length: .unknown)
        case .stream:
            let pieces = AsyncStream<ByteBuffer> { continuation in
                continuation.yield(ByteBuffer(bytes: bytes))
                continuation.finish()
            }
            return .stream(pieces, length: .known(Int64(bytes.count)))
        }
    }
}

/// A client on a scratch directory, shut down at the end.
private func withClient(
    _ storage: DiskURLCache.Configuration? = nil, configuration: HTTPClient.Configuration = .init(),
    followsRedirects: Bool = true, methodsKeyedByBody: [HTTPMethod]? = nil,
    _ body: (CachingHTTPClient) async throws -> Void
) async throws {
    let directory = scratch()
    defer { try? FileManager.default.removeItem(at: directory) }
    var storage = storage ?? DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 10 << 20)
    storage.directory = directory
    storage.cacheStatusName = "test"
    let cache = DiskURLCache(configuration: storage)
    let client =
        if let methodsKeyedByBody {
            CachingHTTPClient(
                cache: cache, configuration: configuration, followsRedirects: followsRedirects,
                methodsKeyedByBody: methodsKeyedByBody)
        } else {
            CachingHTTPClient(cache: cache, configuration: configuration, followsRedirects: followsRedirects)
        }
    do {
        try await body(client)
    } catch {
        try? await client.shutdown()
        throw error
    }
    try await client.shutdown()
}

private func scratch() -> URL {
    FileManager.default.temporaryDirectory.appendingPathComponent("caching-client-\(UUID().uuidString)")
}

extension HTTPClientResponse {
    fileprivate func text() async throws -> String {
        try await String(buffer: body.collect(upTo: 1 << 20))
    }
}

/// Something that happens once.
private final class Flag: Sendable {
    private let state = NIOLockedValueBox(false)
    func set() { state.withLockedValue { $0 = true } }
    func isSet() async throws {
        await eventually("the state") { state.withLockedValue { $0 } }
        try Task.checkCancellation()
    }
}

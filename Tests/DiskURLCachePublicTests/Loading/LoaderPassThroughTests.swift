import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the cache has no part in reaches the origin and comes back as if the loader were not there.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderPassThroughTests {
    private func echo() throws -> OriginServer {
        try OriginServer { request in
            OriginResponse(
                fields: ["X-Method": request.method, "Cache-Control": "max-age=60"],
                body: request.body.isEmpty ? Data("empty".utf8) : request.body)
        }
    }

    /// RFC 9111 §4.4: what the key policy takes for one resource is one.
    @Test(.enabled(if: LoadingHarness.storesForSessions), arguments: ["/a", "/a?utm_source=y", "/a?utm_source=x"])
    func anUnsafeRequestInvalidatesWhatHasItsKey(target: String) async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness {
            $0.keyPolicy = .standard.droppingQueryItems("utm_source").includingFields("X-A")
        }
        #expect(try await harness.load(origin.url("/a?utm_source=x"), ["X-A": "1"]).text == "1")
        #expect(try await harness.load(origin.url(target), ["X-A": "1"]).text == "1")
        try await harness.load(origin.url(target), method: "POST", body: Data("x".utf8))
        #expect(try await harness.load(origin.url(target), ["X-A": "1"]).text == "3")
    }

    @Test(.enabled(if: LoadingHarness.storesForSessions), arguments: [true, false])
    func aMutationEmptiesItsURLUnlessTheAppSaysOtherwise(_ invalidatesURL: Bool) async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness {
            $0.rules = [
                .init(
                    for: .json { body, _ in body["query"] as? String == "mutation" }, storage: .never,
                    invalidatesURL: invalidatesURL)
            ]
        }
        let url = origin.url("/graphql")
        #expect(try await harness.load(url).text == "1")
        let mutation = Data(#"{"query": "mutation"}"#.utf8)
        #expect(try await harness.load(url, method: "POST", body: mutation).text == "2")
        #expect(try await harness.load(url).text == (invalidatesURL ? "3" : "1"))
    }

    /// Foundation does not count what it gives to a delegate.
    @Test(.enabled(if: LoadingHarness.storesForSessions), arguments: ["GET", "HEAD"])
    func aBypassReportsTheLengthOfItsBodyForADelegateToo(method: String) async throws {
        let origin = try OriginServer { _ in .ok("12345") }
        let harness = try LoadingHarness { $0.rules = [.init(for: .all, storage: .never)] }
        let delegate = RecordingDelegate()
        let session = LoadingHarness.session(of: harness.cache, delegate: delegate)
        defer { session.invalidateAndCancel() }
        let events = harness.cache.events()
        _ = await delegate.run(session.dataTask(with: URLRequest(origin.url("/a"), method: method)))
        let loads = await events.elements(upTo: "the report of the load", \.isLoad).compactMap { event in
            if case .load(let load) = event { load.bytes } else { nil }
        }
        #expect(loads == [method == "HEAD" ? 0 : 5])
    }

    /// libcurl takes these as complete, whatever length they state; and chunks have none.
    @Test(.enabled(if: LoadingHarness.storesForSessions), arguments: [204, 304, 200])
    func aLengthThatIsOnlyStatedIsNotCounted(status: Int) async throws {
        let origin = try OriginServer { _ in
            let length = "Content-Length: 9000000000000000000\r\n"
            let body = status == 200 ? "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" : "\r\n"
            var response = OriginResponse()
            response.rawBytes = Data("HTTP/1.1 \(status) A\r\n\(length)\(body)".utf8)
            return response
        }
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        for _ in 1...2 {
            var request = URLRequest(origin.url("/a"), method: "POST")
            request.httpBody = Data("x".utf8)
            let events = harness.cache.events()
            let record = await delegate.run(harness.session.dataTask(with: request))
            #expect(record.http?.statusCode == status)
            _ = await events.report()
        }
        #expect(harness.cache.statistics.bytesLoaded <= 2)
    }

    /// Neither what has a key nor what has none is sent.
    @Test(
        .enabled(if: LoadingHarness.storesForSessions), arguments: ["GET", "POST", "never", "upload", "download"],
        ["offline", "dontLoad", "onlyIfCached"])
    func withoutTheNetworkNothingIsSent(_ kind: String, _ forbids: String) async throws {
        let origin = try OriginServer.counting()
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        harness.cache.isOffline = forbids == "offline"
        var request = URLRequest(origin.url("/a"), method: ["POST", "upload"].contains(kind) ? "POST" : "GET")
        if forbids == "dontLoad" { request.cachePolicy = .returnCacheDataDontLoad }
        if forbids == "onlyIfCached" { request.setValue("only-if-cached", forHTTPHeaderField: "Cache-Control") }
        if kind == "never" { request.cacheOptions = .init(storage: .never) }
        if kind == "POST" { request.httpBody = Data("x".utf8) }
        let events = harness.cache.events()
        let task: URLSessionTask =
            switch kind {
            case "upload": harness.session.uploadTask(with: request, from: Data("x".utf8))
            case "download": harness.session.downloadTask(with: request)
            default: harness.session.dataTask(with: request)
            }
        let record = await delegate.run(task)
        let isTransfer = kind == "upload" || kind == "download"
        if forbids == "onlyIfCached", !isTransfer {
            #expect(record.http?.statusCode == 504)
        } else {
            let code = forbids == "offline" ? URLError.Code.notConnectedToInternet : .resourceUnavailable
            #expect((record.error as? URLError)?.code == code)
        }
        let report = await events.report()
        if case .notAllowed? = report?.outcome {} else { Issue.record("\(String(describing: report))") }
        #expect(origin.requests.isEmpty)
    }

    /// `Cache-Status` (RFC 9211) is on what the cache has no part in, too; and nothing of it is stored.
    @Test(.enabled(if: LoadingHarness.storesForSessions)) func bypassesCarryCacheStatus() async throws {
        let origin = try OriginServer { request in
            .ok("x", ["Cache-Control": "max-age=60"])
        }
        let rules = [DiskURLCache.Rule(for: .path("/never"), storage: .never)]
        let harness = try LoadingHarness {
            $0.cacheStatusName = "App"
            $0.rules = rules
        }
        func status(_ response: URLResponse) -> String? {
            (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Cache-Status")
        }
        let body = Data("x".utf8)
        #expect(
            status(try await harness.load(origin.url("/a"), method: "POST", body: body).response)
                == "App; fwd=method; fwd-status=200; detail=method-not-cached")
        #expect(
            status(try await harness.load(origin.url("/never")).response)
                == "App; fwd=bypass; fwd-status=200; detail=never")
        let upload = try await harness.session.upload(for: URLRequest(origin.url("/a"), method: "PUT"), from: body)
        #expect(status(upload.1) == "App; fwd=bypass; fwd-status=200; detail=upload")
        let (file, downloaded) = try await harness.session.download(from: origin.url("/a"))
        try? FileManager.default.removeItem(at: file)
        #expect(status(downloaded) == "App; fwd=bypass; fwd-status=200; detail=download")
        let delegate = RecordingDelegate()
        let session = LoadingHarness.session(of: harness.cache, delegate: delegate)
        defer { session.invalidateAndCancel() }
        let record = await delegate.run(session.dataTask(with: URLRequest(origin.url("/never"))))
        #expect(record.responses.map(status) == ["App; fwd=bypass; fwd-status=200; detail=never"])
    }

    @Test func uploads() async throws {
        let origin = try echo()
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        let request = URLRequest(origin.url("/a"), method: "PUT")
        let body = Data(repeating: 5, count: 200_000)
        let (data, _) = try await harness.session.upload(for: request, from: body)
        #expect(data == body)
        let file = harness.scratch.appending("body")
        try body.write(to: file)
        let (fromFile, _) = try await harness.session.upload(for: request, fromFile: file)
        #expect(fromFile == body)
        let record = await delegate.run(harness.session.uploadTask(with: request, from: body))
        #expect(record.data == body)
    }

    @Test func streamedBodies() async throws {
        let origin = try echo()
        let harness = try LoadingHarness()
        for text in ["one", "two"] {
            var request = URLRequest(origin.url("/a"), method: "POST")
            request.httpBodyStream = InputStream(data: Data(text.utf8))
            #expect(try await LoadingHarness.load(request, in: harness.session).text == text)
        }
    }

    @Test func downloadsToACompletionHandler() async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness()
        for round in 1...2 {
            let data: Data? = await withCheckedContinuation { continuation in
                harness.session.downloadTask(with: origin.url("/a")) { url, _, _ in
                    continuation.resume(returning: url.flatMap { Data(taking: $0) })
                }.resume()
            }
            #expect(data == Data("\(round)".utf8))
        }
    }

    @Test func downloadsToADelegate() async throws {
        final class Downloads: RecordingDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
            func urlSession(
                _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
            ) {
                let data = Data(taking: location) ?? Data()
                change(downloadTask) { $0.chunks.append(data) }
            }
        }
        let origin = try OriginServer.counting()
        let delegate = Downloads()
        let harness = try LoadingHarness(delegate: delegate)
        let record = await delegate.run(harness.session.downloadTask(with: origin.url("/a")))
        #expect(record.data == Data("1".utf8) && record.error == nil)
    }

    /// To another page, or to the one that the request has changed.
    @Test(arguments: ["/b", "/a"])
    func aPostThatIsRedirectedInvalidatesAndIsFollowedByGet(location: String) async throws {
        let origin = try OriginServer { request in
            switch (request.method, request.path) {
            case ("POST", _): .status(303, "See Other", ["Location": location])
            default: .ok("\(request.method) \(request.path)", ["Cache-Control": "max-age=60"])
            }
        }
        let harness = try LoadingHarness()
        try await harness.load(origin.url("/a"))
        let loaded = try await harness.load(origin.url("/a"), method: "POST", body: Data("x".utf8))
        #expect(loaded.text == "GET \(location)")
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
    }

    /// Foundation follows the redirect, and the last answer says what is no longer valid.
    @Test(arguments: [307, 308], [200, 500])
    func theLastAnswerAfterARedirectInvalidates(redirect: Int, status: Int) async throws {
        let origin = try OriginServer { request in
            switch (request.method, request.path) {
            case ("POST", "/a"): .status(redirect, "Redirect", ["Location": "/b"])
            case ("POST", _):
                .status(status, "End", ["Cache-Group-Invalidation": "\"g\"", "Content-Location": "/beside"])
            default: .ok(request.path, ["Cache-Control": "max-age=60", "Cache-Groups": "\"g\""])
            }
        }
        let harness = try LoadingHarness()
        for path in ["/beside", "/b", "/c"] { try await harness.load(origin.url(path)) }
        let loaded = try await harness.load(origin.url("/a"), method: "POST", body: Data("x".utf8))
        #expect(loaded.status == status && origin.requests.last?.method == "POST")
        #expect(!harness.cache.contains(URLRequest(origin.url("/b"))))
        #expect(!harness.cache.contains(URLRequest(origin.url("/c"))))
        #expect(!harness.cache.contains(URLRequest(origin.url("/beside"))))
    }

    @Test func theUsersOwnProtocolClassesAreStillAsked() async throws {
        final class Own: URLProtocol {
            override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "own.example" }
            override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
            override func startLoading() {
                guard let url = request.url else { return }
                let method = request.httpMethod ?? ""
                let response = Responses.http(url, fields: ["Cache-Control": "max-age=60"])
                client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
                client?.urlProtocol(self, didLoad: Data("own \(method)".utf8))
                client?.urlProtocolDidFinishLoading(self)
            }
            override func stopLoading() {}
        }
        let harness = try LoadingHarness(session: { $0.protocolClasses = [Own.self] })
        let url = try #require(URL(string: "http://own.example/a"))
        #expect(try await harness.load(url).text == "own GET")
        #expect(try await harness.load(url, method: "POST").text == "own POST")
        #expect(try await harness.load(URL(string: "http://own.example/b") ?? url, method: "HEAD").status == 200)
        // The session has no other class, so the loader must find Foundation's by itself.
        let origin = try OriginServer.counting()
        #expect(try await harness.load(origin.url("/a")).text == "1")
        #expect(try await harness.load(origin.url("/a"), method: "POST").text == "2")
    }
}

import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a session is configured with takes part in its loads, and in what they may share.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderSessionTests {
    private func echo(_ name: String, vary: String? = nil) throws -> OriginServer {
        try OriginServer { request in
            var fields: OriginFields = ["Cache-Control": "max-age=60"]
            if let vary { fields.set("Vary", vary) }
            return .ok(request.fields[name] ?? "none", fields)
        }
    }

    @Test func additionalFieldsAreSentAndSeparateUsers() async throws {
        let origin = try echo("Authorization")
        let harness = try LoadingHarness()
        for token in ["one", "two"] {
            let session = LoadingHarness.session(of: harness.cache) {
                $0.httpAdditionalHeaders = ["Authorization": "Bearer \(token)"]
            }
            for _ in 1...2 {
                let loaded = try await LoadingHarness.load(URLRequest(origin.url("/a")), in: session)
                #expect(loaded.text == "Bearer \(token)")
            }
        }
        #expect(try await harness.load(origin.url("/a")).text == "none")
        #expect(origin.requests.count == 3)
    }

    @Test func aFieldOfTheRequestWinsOverTheSessions() async throws {
        let origin = try echo("X-A")
        let harness = try LoadingHarness(session: { $0.httpAdditionalHeaders = ["x-a": "session"] })
        #expect(try await harness.load(origin.url("/a"), ["X-A": "request"]).text == "request")
        #expect(try await harness.load(origin.url("/b")).text == "session")
    }

    /// As in any session of Foundation: `setValue(_:forHTTPHeaderField:)` would make capitals of some letters.
    @Test func fieldsOfTheSessionAndOfTheRequestAreSpelledAsTheyWereGiven() async throws {
        let origin = try echo("x-a")
        let harness = try LoadingHarness(session: { $0.httpAdditionalHeaders = ["x-ofSession": "1"] })
        var request = URLRequest(url: origin.url("/a"))
        request.allHTTPHeaderFields = ["x-ofRequest": "1"]
        _ = try await LoadingHarness.load(request, in: harness.session)
        let names = try #require(origin.requests.first).fields.fields.map(\.name)
        #expect(names.contains("x-ofSession") && names.contains("x-ofRequest"))
    }

    @Test func cookiesOfTheSessionAreSentAndTellVariantsApart() async throws {
        let origin = try echo("Cookie", vary: "Cookie")
        let harness = try LoadingHarness()
        for value in ["one", "two"] {
            let cookie = try #require(
                HTTPCookie(properties: [.name: "user", .value: value, .domain: "127.0.0.1", .path: "/"]))
            let session = LoadingHarness.session(of: harness.cache) { configuration in
                configuration.httpCookieStorage?.setCookie(cookie)
            }
            for _ in 1...2 {
                let loaded = try await LoadingHarness.load(URLRequest(origin.url("/a")), in: session)
                #expect(loaded.text == "user=\(value)")
            }
        }
        #expect(try await harness.load(origin.url("/a")).text == "none")
        #expect(origin.requests.count == 3)
    }

    @Test func aSessionWithTheCacheButWithoutTheLoaderGetsNothingFromTheStore() async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness()
        try await harness.load(origin.url("/a"))
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.urlCache = harness.cache
        let bare = URLSession(configuration: configuration)
        #expect(try await LoadingHarness.load(URLRequest(origin.url("/a")), in: bare).text == "2")
        #expect(try await LoadingHarness.load(URLRequest(origin.url("/a"), method: "POST"), in: bare).text == "3")
        #expect(try await harness.load(origin.url("/a")).text == "1")
    }

    @Test func aSessionWithoutTheLoaderIsToldOfOnce() async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness()
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.urlCache = harness.cache
        let bare = URLSession(configuration: configuration)
        let events = harness.cache.events()
        for path in ["/a?token=secret", "/b"] {
            _ = try await LoadingHarness.load(URLRequest(origin.url(path)), in: bare)
        }
        harness.cache.storeCachedResponse(
            Responses.cached(Responses.url("/last"), "x"), for: Responses.request("/last"))
        let all = Mutex<[DiskURLCache.Error]>([])
        _ = await events.first("the event of a stored response") { event -> Bool? in
            if case .problem(let error) = event { all.withLock { $0.append(error) } }
            return if case .stored = event { true } else { nil }
        }
        let problems = all.withLock { $0 }
        #expect(problems.map(\.code) == [.loaderMissing])
        #expect(problems.first?.description.contains("make it by cache.makeSession()") == true)
        // By which load it was noticed, without what a query may hold.
        #expect(problems.first?.path == origin.url("/a").absoluteString)
    }

    @Test func attachingTwiceAndDefaultConfigurations() async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness()
        let configuration = URLSessionConfiguration.default.patient
        harness.cache.attach(to: configuration)
        harness.cache.attach(to: configuration)
        #expect(configuration.protocolClasses?.filter { $0 == CachingURLProtocol.self }.count == 1)
        let session = URLSession(configuration: configuration)
        for _ in 1...2 {
            #expect(try await LoadingHarness.load(URLRequest(origin.url("/a")), in: session).text == "1")
        }
    }

    // MARK: 401

    private final class Credentials: RecordingDelegate, @unchecked Sendable {
        let credential: URLCredential?
        init(_ credential: URLCredential?) { self.credential = credential }

        override func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(credential == nil ? .cancelAuthenticationChallenge : .useCredential, credential)
        }
    }

    private func protected() throws -> OriginServer {
        try OriginServer { request in
            request.fields["Authorization"] == nil
                ? .status(401, "", ["WWW-Authenticate": "Basic realm=\"r\"", "Cache-Control": "max-age=60"])
                : .ok("in", ["Cache-Control": "max-age=60"])
        }
    }

    @Test func delegateGivesCredentials() async throws {
        let origin = try protected()
        let delegate = Credentials(URLCredential(user: "u", password: "p", persistence: .none))
        let harness = try LoadingHarness(delegate: delegate)
        for _ in 1...2 {
            let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
            #expect(record.data.suffix(2) == Data("in".utf8) && record.error == nil)
        }
        // Without a word from the delegate nobody gets what the credentials opened.
        #expect(harness.cache.cachedResponse(for: URLRequest(origin.url("/a")))?.data != Data("in".utf8))
    }

    /// Foundation repeats the request with its own loader, and tells nobody of that answer.
    @Test(arguments: [true, false])
    func anUnsafeRequestThatGetsCredentialsInvalidates(givesCredentials: Bool) async throws {
        let origin = try OriginServer { request in
            request.method == "PUT" && request.fields["Authorization"] == nil
                ? .status(401, "", ["WWW-Authenticate": "Basic realm=\"r\""])
                : .ok("\(request.number)", ["Cache-Control": "max-age=60"])
        }
        let credential = URLCredential(user: "u", password: "p", persistence: .none)
        let delegate = Credentials(givesCredentials ? credential : nil)
        let harness = try LoadingHarness(delegate: delegate)
        #expect(await delegate.run(harness.session.dataTask(with: origin.url("/a"))).data == Data("1".utf8))
        var request = URLRequest(origin.url("/a"), method: "PUT")
        request.httpBody = Data("x".utf8)
        let record = await delegate.run(harness.session.dataTask(with: request))
        #expect((record.error == nil) == givesCredentials)
        let data = await delegate.run(harness.session.dataTask(with: origin.url("/a"))).data
        // Foundation sends a request twice if its connection had just been closed, and delivers one of the answers.
        let asked = (origin.requests.lastIndex { $0.method == "PUT" } ?? 0) + 2
        let numbers = givesCredentials ? Array(asked...max(asked, origin.requests.count)) : [1]
        #expect(numbers.map { Data("\($0)".utf8) }.contains(data))
        #expect((data != Data("1".utf8)) == givesCredentials)
    }

    @Test func delegateRefusesCredentials() async throws {
        let origin = try protected()
        let delegate = Credentials(nil)
        let harness = try LoadingHarness(delegate: delegate)
        let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        #expect((record.error as? URLError)?.code == .cancelled)
    }
}

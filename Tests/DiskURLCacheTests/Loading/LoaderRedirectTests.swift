import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Each hop is a load of its own: looked up, stored and confirmed under its own URL.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderRedirectTests {
    /// `/a` redirects to `/b`, which answers with its number.
    private func origin(
        _ status: Int, _ fields: OriginFields = [:], location: String = "/b",
        target: OriginFields = ["Cache-Control": "max-age=60"]
    ) throws -> OriginServer {
        try OriginServer { request in
            guard request.path == "/a" else { return .ok("\(request.number)", target) }
            var fields = fields
            fields.set("Location", location)
            return .status(status, "Elsewhere", fields)
        }
    }

    /// Many redirects over connections that are kept: curl may follow one before Foundation's call that starts the load
    /// returns. The URL that redirects never answers with its target's body.
    @Test(arguments: [301, 302]) func aTargetIsNeverStoredUnderTheURLThatRedirects(status: Int) async throws {
        let origin = try OriginServer { request in
            request.path.hasPrefix("/to/")
                ? .ok(request.path, ["Cache-Control": "max-age=60"])
                : .status(status, "", ["Location": "/to\(request.path)", "Cache-Control": "no-store"])
        }
        let harness = try LoadingHarness()
        let session = harness.session
        for number in 0..<150 {
            let url = origin.url("/\(number)")
            let text: String? =
                if number.isMultiple(of: 2) {
                    try await harness.load(url).text
                } else {
                    await withCheckedContinuation { continuation in
                        session.dataTask(with: url) { data, _, _ in
                            continuation.resume(returning: data.map { String(decoding: $0, as: UTF8.self) })
                        }.resume()
                    }
                }
            #expect(text == "/to/\(number)")
            #expect(!harness.cache.contains(URLRequest(url)), "stored under the URL that redirects")
            #expect(harness.cache.contains(URLRequest(origin.url("/to/\(number)"))))
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308]) func aRedirectWithALifetimeIsFollowedFromTheStore(status: Int)
        async throws
    {
        let origin = try origin(status, ["Cache-Control": "max-age=60"])
        let clock = ManualClock()
        let scratch = try ScratchDirectory("redirects")
        do {
            let harness = try LoadingHarness(directory: scratch, clock: clock)
            for _ in 1...2 {
                let loaded = try await harness.load(origin.url("/a"))
                #expect(loaded.text == "2" && loaded.response.url == origin.url("/b"))
            }
            let stored = harness.cache.cachedResponse(for: URLRequest(origin.url("/a")))
            #expect((stored?.response as? HTTPURLResponse)?.statusCode == status)
            #expect(stored?.response.url == origin.url("/a"))
            harness.cache.flush()
        }
        let reopened = try LoadingHarness(directory: scratch, clock: clock)
        #expect(try await reopened.load(origin.url("/a")).text == "2")
        #expect(origin.requests.count == 2)
    }

    /// A stored redirect for `GET` answers `HEAD`, which follows it as the redirect from the network.
    @Test func headFollowsAStoredRedirect() async throws {
        let origin = try origin(301, ["Cache-Control": "max-age=60"])
        let harness = try LoadingHarness()
        #expect(try await harness.load(origin.url("/a")).text == "2")
        let loaded = try await harness.load(origin.url("/a"), method: "HEAD")
        #expect(loaded.response.statusCode == 200 && loaded.response.url == origin.url("/b") && loaded.text == "")
        #expect(origin.requests.count == 2)
    }

    @Test func relativeLocationsAndFragments() async throws {
        let origin = try OriginServer { request in
            switch request.target {
            case "/x/a?q=1": .status(302, "", ["Location": "../y/b?r=2"])
            default: .ok(request.target)
            }
        }
        let harness = try LoadingHarness()
        let loaded = try await harness.load(origin.url("/x/a?q=1#part"))
        #expect(loaded.text == "/y/b?r=2")
        #expect(loaded.response.url?.fragment == "part")
    }

    /// RFC 3986 §3.1: any case is the same scheme. Foundation on Linux loads lower case only.
    @Test func aSchemeInCapitalsIsFollowed() async throws {
        let target = try OriginServer { _ in .ok("target") }
        let url = target.url("/Path").absoluteString
        let origin = try origin(302, location: "HTTP" + url.dropFirst(4))
        let loaded = try await LoadingHarness().load(origin.url("/a"))
        #expect(loaded.text == "target" && loaded.response.url?.absoluteString == url)
    }

    @Test func otherSchemesAreNotFollowed() async throws {
        for location in ["file:///etc/passwd", "data:text/plain,x", "http:///nohost"] {
            let origin = try origin(302, location: location)
            let harness = try LoadingHarness()
            #expect(try await harness.load(origin.url("/a")).status == 302)
        }
    }

    // MARK: Cycles of stored redirects

    private static let forAYear: OriginFields = ["Cache-Control": "max-age=31536000"]

    /// `/a` redirected to `/b` for a year; then `/b` redirects to `/a`, for a year too, and `/a` is a page again.
    private func movedAndMovedBack() throws -> (OriginServer, hasMovedBack: Flag) {
        let hasMovedBack = Flag()
        let origin = try OriginServer { request in
            let isPage = request.path == (hasMovedBack.value ? "/a" : "/b")
            guard !isPage else { return .ok("page", Self.forAYear) }
            var fields = Self.forAYear
            fields.set("Location", request.path == "/a" ? "/b" : "/a")
            return .status(301, "", fields)
        }
        return (origin, hasMovedBack)
    }

    @Test(arguments: ["session", "direct"]) func aPageThatMovedAndMovedBackIsFound(door: String) async throws {
        let (origin, hasMovedBack) = try movedAndMovedBack()
        let harness = try LoadingHarness()
        func load(_ path: String) async throws -> String {
            if door == "session" { return try await harness.load(origin.url(path)).text }
            return String(decoding: try await harness.cache.data(from: origin.url(path)).data, as: UTF8.self)
        }
        #expect(try await load("/a") == "page")
        hasMovedBack.set()
        // The page under its old URL: the app reloads it, and then follows old links.
        let request = URLRequest(origin.url("/b"), policy: .reloadIgnoringLocalCacheData)
        _ = try? await LoadingHarness.load(request, in: harness.session)
        for path in ["/a", "/b", "/a"] { #expect(try await load(path) == "page", "\(path)") }
        let count = origin.requests.count
        // Both are stored, and lead to the page without a request.
        for path in ["/a", "/b"] { #expect(try await load(path) == "page") }
        #expect(origin.requests.count == count)
    }

    /// A reload does not ask for a fresh immutable response, but here the origin has to say which URL has moved last.
    @Test func aCircleOfImmutableRedirectsLeadsToTheOrigin() async throws {
        let origin = try OriginServer { .ok("page of \($0.path)", Self.forAYear) }
        let cache = try LoadingHarness().cache
        for (path, target) in [("/a", "/b"), ("/b", "/a")] {
            let fields = ["Cache-Control": "max-age=31536000, immutable", "Location": target]
            cache.storeCachedResponse(
                Responses.cached(origin.url(path), status: 301, fields: fields), for: URLRequest(url: origin.url(path)))
        }
        #expect(try await cache.data(from: origin.url("/a")).data == Data("page of /a".utf8))
        #expect(origin.requests.count == 1)
    }

    /// Both URLs redirect to each other, which no client can follow. What is stored of that does not outlive it.
    @Test func aLoopThatTheServerHasMendedIsOver() async throws {
        let isMended = Flag()
        let origin = try OriginServer { request in
            if isMended.value, request.path == "/b" { return .ok("page", Self.forAYear) }
            var fields = Self.forAYear
            fields.set("Location", request.path == "/a" ? "/b" : "/a")
            return .status(301, "", fields)
        }
        let harness = try LoadingHarness()
        await #expect(throws: URLError.self) { try await harness.load(origin.url("/a")) }
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
        #expect(!harness.cache.contains(URLRequest(origin.url("/b"))))
        // The second time that the origin says it, it is believed.
        #expect(origin.requests.map(\.path) == ["/a", "/b", "/a"])
        isMended.set()
        #expect(try await harness.load(origin.url("/a")).text == "page")
    }

    /// Servers set a cookie this way, and look whether it comes back.
    @Test func aRedirectToItselfWithACookieIsFollowedOnce() async throws {
        let origin = try OriginServer { request in
            request.fields["Cookie"] == nil
                ? .status(302, "", ["Location": "/a", "Set-Cookie": "seen=1", "Cache-Control": "max-age=60"])
                : .ok("page")
        }
        let harness = try LoadingHarness()
        #expect(try await harness.load(origin.url("/a")).text == "page")
        #expect(origin.requests.count == 2)
    }

    /// Without the network nobody can be asked, and the stored redirects stay for later.
    @Test func aStoredLoopIsAnErrorOffline() async throws {
        let (origin, _) = try movedAndMovedBack()
        let harness = try LoadingHarness()
        for (path, to) in [("/a", "/b"), ("/b", "/a")] {
            let response = Responses.http(
                origin.url(path), status: 301, fields: ["Cache-Control": "max-age=31536000", "Location": to])
            harness.cache.storeCachedResponse(
                CachedURLResponse(response: response, data: Data()), for: URLRequest(origin.url(path)))
        }
        harness.cache.isOffline = true
        await #expect(throws: URLError.self) { try await harness.load(origin.url("/a")) }
        #expect(origin.requests.isEmpty && harness.cache.contains(URLRequest(origin.url("/a"))))
        harness.cache.isOffline = false
        #expect(try await harness.load(origin.url("/a")).text == "page")
    }

    /// The target is known by its head. A redirect that a client might want as the answer is awaited.
    @Test(arguments: [301, 302]) func theNextHopDoesNotWaitForTheEndOfARedirectsBody(status: Int) async throws {
        let transport = ClosureTransport { request, exchange in
            guard request.url?.path == "/a" else {
                exchange.head(200)
                return await exchange.piece("page")
            }
            exchange.head(status, ["Location": "/b", "Cache-Control": "max-age=60", "Content-Length": "100"])
            await exchange.piece("Moved")
            await exchange.untilCancelled()
        }
        let (cache, request) = (try LoadingHarness().cache, Responses.request("/a"))
        #expect(try await cache.load(request, through: transport).pieces() == ["page"])
        #expect(!cache.contains(request))
    }

    // MARK: Limits

    @Test func twentyHopsAndNotOneMore() async throws {
        let origin = try OriginServer { request in
            let count = Int(request.path.dropFirst()) ?? 0
            return count == 0 ? .ok("end") : .status(302, "", ["Location": "/\(count - 1)"])
        }
        let harness = try LoadingHarness()
        #expect(try await harness.load(origin.url("/20")).text == "end")
        do {
            try await harness.load(origin.url("/21"))
            Issue.record("followed 21 redirects")
        } catch {
            #expect((error as? URLError)?.code == .httpTooManyRedirects)
            let facts = (error as? URLError)?.userInfo
            #expect(facts?[NSLocalizedDescriptionKey] as? String == "too many HTTP redirects")
            #expect(facts?["NSErrorFailingURLStringKey"] as? String == origin.url("/1").absoluteString)
        }
    }

    @Test func anotherOriginGetsNoCredentials() async throws {
        let target = try OriginServer { .ok($0.fields["Authorization"] ?? $0.fields["Cookie"] ?? "none") }
        let origin = try OriginServer { request in
            .status(302, "", ["Location": request.path == "/away" ? target.url("/t").absoluteString : "/here"])
        }
        let fields = ["Authorization": "Bearer secret", "Cookie": "a=secret"]
        let harness = try LoadingHarness()
        #expect(try await harness.load(origin.url("/away"), fields).text == "none")
        let sameOrigin = try OriginServer { request in
            request.path == "/a"
                ? .status(302, "", ["Location": "/b"]) : .ok(request.fields["Authorization"] ?? "none")
        }
        #expect(try await harness.load(sameOrigin.url("/a"), fields).text == "Bearer secret")
        // Neither where the session adds them.
        let session = try LoadingHarness(session: { $0.httpAdditionalHeaders = fields })
        #expect(try await session.load(origin.url("/away")).text == "none")
    }

    /// Fields that name the first origin, or are meant for it, are not sent to a different origin, whoever follows the
    /// redirect.
    @Test(arguments: ["session", "direct", "transport"], [false, true])
    func anotherOriginIsNotToldOfTheFirst(door: String, fromStore: Bool) async throws {
        let names = ["Authorization", "Cookie", "Host", "Origin", "Proxy-Authorization"]
        let target = try OriginServer { request in
            .ok(names.map { "\($0): \(request.fields[$0] ?? "-")" }.joined(separator: ", "))
        }
        let origin = try OriginServer { _ in
            .status(301, "", ["Location": target.url("/t").absoluteString, "Cache-Control": "max-age=60"])
        }
        let transport = ClosureTransport { request, exchange in
            guard request.url?.path == "/t" else {
                return exchange.head(301, ["Location": target.url("/t").absoluteString, "Cache-Control": "max-age=60"])
            }
            exchange.head(200)
            let fields = names.map { "\($0): \(request.value(forHTTPHeaderField: $0) ?? "-")" }
            await exchange.piece(fields.joined(separator: ", "))
        }
        let harness = try LoadingHarness()
        var request = URLRequest(origin.url("/away"))
        for name in names { request.setValue("first.example", forHTTPHeaderField: name) }
        func load() async throws -> String {
            switch door {
            case "session": return try await LoadingHarness.load(request, in: harness.session).text
            case "direct": return String(decoding: try await harness.cache.data(for: request).data, as: UTF8.self)
            default:
                let stream = try await harness.cache.load(request, through: transport)
                return try await stream.pieces().joined()
            }
        }
        if fromStore { _ = try await load() }
        // A transport is given no name, and sends that of the URL.
        let host = try door == "transport" ? "-" : "127.0.0.1:\(#require(target.url("/").port))"
        #expect(try await load() == "Authorization: -, Cookie: -, Host: \(host), Origin: -, Proxy-Authorization: -")
        if fromStore { #expect(origin.requests.count + transport.requests.count { $0.url?.path == "/away" } == 1) }
    }

    @Test func aCookieSetByTheRedirectIsSentToTheTarget() async throws {
        let origin = try OriginServer { request in
            request.path == "/a"
                ? .status(302, "", ["Location": "/b", "Set-Cookie": "session=new; Path=/"])
                : .ok(request.fields["Cookie"] ?? "none")
        }
        let harness = try LoadingHarness()
        #expect(try await harness.load(origin.url("/a")).text == "session=new")
        #expect(try await harness.load(origin.url("/c")).text == "session=new")
    }

    /// A cookie that the app gave the request stays, whatever the session has for the target by then.
    @Test(arguments: [true, false]) func aRedirectKeepsTheRequestsOwnCookie(handlesCookies: Bool) async throws {
        let origin = try OriginServer { request in
            request.path == "/a"
                ? .status(302, "", ["Location": "/b", "Set-Cookie": "session=new; Path=/"])
                : .ok(request.fields["Cookie"] ?? "none")
        }
        let harness = try LoadingHarness()
        var request = URLRequest(origin.url("/a"), ["Cookie": "own=1"])
        request.httpShouldHandleCookies = handlesCookies
        #expect(try await LoadingHarness.load(request, in: harness.session).text == "own=1")
        // Direct calls have no task whose request has the session's cookies.
        var link = SessionLink(session: harness.session)
        let direct = link.withCookies(DiskURLCache.Request(URLRequest(origin.url("/c"), ["Cookie": "own=1"])))
        #expect(link.prepare(direct, after: direct)["Cookie"] == "own=1")
        var without = URLRequest(url: origin.url("/c"))
        without.httpShouldHandleCookies = false
        let first = link.withCookies(DiskURLCache.Request(without))
        #expect(link.prepare(first, after: first)["Cookie"] == nil)
    }

    /// A task has the session's cookies of the moment at which it was made. Others may have been set by the time at
    /// which it is resumed, and these are no cookies of the app's.
    @Test func aTaskThatIsResumedLaterGetsTheCookiesOfItsRedirect() async throws {
        let origin = try OriginServer { request in
            switch request.path {
            case "/before": .ok("", ["Set-Cookie": "session=old; Path=/"])
            case "/other": .ok("", ["Set-Cookie": "other=1; Path=/"])
            case "/login": .status(302, "", ["Location": "/b", "Set-Cookie": "session=new; Path=/"])
            default: .ok(request.fields["Cookie"] ?? "none")
            }
        }
        let harness = try LoadingHarness()
        _ = try await harness.load(origin.url("/before"))
        let body = Mutex<Data?>(nil)
        let task = harness.session.dataTask(with: origin.url("/login")) { data, _, _ in body.withLock { $0 = data } }
        _ = try await harness.load(origin.url("/other"))
        task.resume()
        await eventually("the body of the last hop") { body.withLock { $0 != nil } }
        let sent = body.withLock { $0 }.map { String(decoding: $0, as: UTF8.self) } ?? ""
        #expect(Set(sent.components(separatedBy: "; ")) == ["session=new", "other=1"])
    }

    /// A field that the configuration adds is the app's, too.
    @Test func aRedirectKeepsTheCookieOfTheConfiguration() async throws {
        let origin = try OriginServer { request in
            request.path == "/a" ? .status(302, "", ["Location": "/b"]) : .ok(request.fields["Cookie"] ?? "none")
        }
        let harness = try LoadingHarness(session: { $0.httpAdditionalHeaders = ["cookie": "own=1"] })
        let body = Mutex<Data?>(nil)
        harness.session.dataTask(with: origin.url("/a")) { data, _, _ in body.withLock { $0 = data } }.resume()
        await eventually("the body of the last hop") { body.withLock { $0 != nil } }
        #expect(body.withLock { $0 } == Data("own=1".utf8))
    }

    /// RFC 6265 §5.4: what is sent is in the storage when it is sent.
    @Test func aCookieDeletedByTheRedirectIsNotSentToTheTarget() async throws {
        let origin = try OriginServer { request in
            switch request.path {
            case "/login": .ok("", ["Set-Cookie": "session=old; Path=/"])
            case "/logout":
                .status(
                    302, "",
                    ["Location": "/b", "Set-Cookie": "session=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"])
            default: .ok(request.fields["Cookie"] ?? "none")
            }
        }
        let harness = try LoadingHarness()
        _ = try await harness.load(origin.url("/login"))
        #expect(try await harness.load(origin.url("/before")).text == "session=old")
        #expect(try await harness.load(origin.url("/logout")).text == "none")
        #expect(origin.requests.first { $0.path == "/logout" }?.fields["Cookie"] == "session=old")
    }

    /// From A to B and back to A: B gets neither the request's own cookies nor the session's.
    @Test(arguments: [true, false]) func theSessionsCookiesAreNotForALoadWithItsOwn(isDirect: Bool) async throws {
        let back = Mutex("")
        let there = try OriginServer { _ in .status(302, "", ["Location": back.withLock { $0 }]) }
        let origin = try OriginServer { request in
            request.path == "/a"
                // When it makes a task, Foundation on Linux replaces a request's own cookies by the session's: so these
                // come later.
                ? .status(302, "", ["Location": there.url("/b").absoluteString, "Set-Cookie": "session=new; Path=/"])
                : .ok(request.fields["Cookie"] ?? "none")
        }
        back.withLock { $0 = origin.url("/c").absoluteString }
        let harness = try LoadingHarness()
        let request = URLRequest(origin.url("/a"), ["Cookie": "own=1"])
        let text =
            isDirect
            ? String(decoding: try await harness.cache.data(for: request, session: harness.session).data, as: UTF8.self)
            : try await LoadingHarness.load(request, in: harness.session).text
        #expect(text == "none")
        #expect(there.requests.map { $0.fields["Cookie"] } == [nil])
        #expect(try await harness.load(origin.url("/c")).text == "session=new", "a load without its own gets them")
    }

    // MARK: The delegate's say

    private final class RedirectDelegate: RecordingDelegate, @unchecked Sendable {
        let answer: @Sendable (URLRequest) -> URLRequest?
        init(_ answer: @escaping @Sendable (URLRequest) -> URLRequest?) { self.answer = answer }

        override func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            change(task) {
                $0.redirects.append(request)
                #expect(response.statusCode == 301)
            }
            completionHandler(answer(request))
        }
    }

    @Test(arguments: [false, true]) func delegateRefuses(fromStore: Bool) async throws {
        let origin = try origin(301, fromStore ? ["Cache-Control": "max-age=60"] : ["Cache-Control": "no-store"])
        let delegate = RedirectDelegate { _ in nil }
        let harness = try LoadingHarness(delegate: delegate)
        for round in 1...2 {
            let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
            #expect(record.http?.statusCode == 301 && record.error == nil)
            #expect(record.redirects.map(\.url) == [origin.url("/b")])
            #expect(origin.requests.count == (fromStore ? 1 : round))
        }
    }

    @Test func delegateChangesTheTarget() async throws {
        let origin = try origin(301, ["Cache-Control": "max-age=60"])
        let other = origin.url("/other")
        let delegate = RedirectDelegate { _ in URLRequest(other, ["X-A": "b"]) }
        let harness = try LoadingHarness(delegate: delegate)
        let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        #expect(record.http?.url == other)
        #expect(origin.requests.last?.fields["X-A"] == "b")
        #expect(harness.cache.contains(URLRequest(other)))
        #expect(!harness.cache.contains(URLRequest(origin.url("/b"))))
    }

    /// What the delegate gives a request is sent, also instead of the session's cookies.
    @Test func delegateGivesTheTargetACookie() async throws {
        let origin = try OriginServer { request in
            request.path == "/a"
                ? .status(301, "", ["Location": "/b", "Set-Cookie": "session=new; Path=/"])
                : .ok(request.fields["Cookie"] ?? "none")
        }
        let delegate = RedirectDelegate { request in
            var request = request
            request.setValue("own=1", forHTTPHeaderField: "Cookie")
            return request
        }
        let harness = try LoadingHarness(delegate: delegate)
        let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        #expect(record.data == Data("own=1".utf8))
    }

    @Test func cancellingWhileTheDelegateThinks() async throws {
        let origin = try origin(301)
        let answer = Mutex<(@Sendable (URLRequest?) -> Void)?>(nil)
        final class Slow: RecordingDelegate, @unchecked Sendable {
            let answer: Mutex<(@Sendable (URLRequest?) -> Void)?>
            init(_ answer: Mutex<(@Sendable (URLRequest?) -> Void)?>) { self.answer = answer }
            override func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
            ) {
                answer.withLock { $0 = completionHandler }
                change(task) { $0.redirects.append(request) }
            }
        }
        let delegate = Slow(answer)
        let harness = try LoadingHarness(delegate: delegate)
        let task = harness.session.dataTask(with: origin.url("/a"))
        task.resume()
        let asked = await delegate.record(of: task) { !$0.redirects.isEmpty }
        task.cancel()
        #expect((await delegate.end(of: task).error as? URLError)?.code == .cancelled)
        answer.withLock { $0 }?(asked.redirects.first)
        #expect(try await harness.load(origin.url("/b")).status == 200)
        #expect(origin.requests.map(\.path) == ["/a", "/b"])
    }
}

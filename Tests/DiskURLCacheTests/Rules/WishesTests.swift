import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Options that go further than HTTP, in whole loads.
@Suite(.fewAtATime) struct WishesTests {
    let clock = ManualClock()

    private func makeCache(_ options: DiskURLCache.Options) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(memoryCapacity: 4 << 20, diskCapacity: 0)
        configuration.clock = clock.wallClock
        configuration.rules = [DiskURLCache.Rule(for: .all, options: options)]
        return DiskURLCache(configuration: configuration)
    }

    private func text(_ answer: DiskURLCache.Answer) -> String { String(decoding: answer.data, as: UTF8.self) }

    // MARK: Offline

    /// The default of Rails and others.
    @Test func anOfflineAppGetsWhatItsServerForbids() async throws {
        let origin = try OriginServer { request in
            request.number > 1
                ? .status(500) : .ok("kept", ["Cache-Control": "max-age=0, private, must-revalidate", "ETag": "\"1\""])
        }
        let cache = makeCache(.init(tags: ["a"]))
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 3_600)
        #expect(try await cache.data(for: request).response.statusCode == 500)
        let answer = try await cache.data(for: request, fallback: .anyStored)
        #expect(text(answer) == "kept" && answer.isStale)
        #expect(answer.report.outcome == .staleHit(.memory, because: .anyStored))
        #expect(answer.report.description.contains("against the server's must-revalidate"))

        cache.isOffline = true
        await #expect(throws: URLError.self) { _ = try await cache.data(for: request) }
        #expect(try await text(cache.data(for: request, fallback: .anyStored)) == "kept")
        var explained = request
        explained.cacheOptions = .init(fallback: .anyStored)
        #expect(cache.explanation(for: explained).outcome == .staleHit(.memory, because: .anyStored))
    }

    // MARK: At most every so often

    @Test(arguments: [
        OriginResponse.ok("x", ["Cache-Control": "no-store"]), .ok("x", ["Vary": "*"]), .status(404), .status(500),
        .ok("x", ["Cache-Control": "max-age=0"]), .ok("x", ["Cache-Control": "no-cache", "ETag": "\"1\""]),
    ])
    func aURLIsAskedAtMostOnceInTheInterval(_ response: OriginResponse) async throws {
        let origin = try OriginServer { _ in response }
        let cache = makeCache(.init(minimumInterval: .minutes(15)))
        let request = URLRequest(url: origin.url("/a"))
        let first = try await cache.data(for: request)
        for _ in 0..<2 {
            clock.advance(by: 400)
            let again = try await cache.data(for: request)
            #expect(again.data == first.data && again.response.statusCode == response.status)
            #expect(again.report.outcome == .staleHit(.memory, because: .minimumInterval))
        }
        #expect(origin.requests.count == 1)
        #expect(cache.explanation(for: request).outcome == .staleHit(.memory, because: .minimumInterval))
        clock.advance(by: 101)
        _ = try await cache.data(for: request)
        #expect(origin.requests.count == 2)
        // "Pull to refresh".
        var reload = request
        reload.cachePolicy = .reloadRevalidatingCacheData
        _ = try await cache.data(for: reload)
        #expect(origin.requests.count == 3)
    }

    /// Also if nobody waits for the answer.
    @Test func aRefreshIsHeldLikeAnyAnswer() async throws {
        let origin = try OriginServer { request in
            .ok(
                "\(request.number)",
                ["Cache-Control": request.number == 1 ? "max-age=1, stale-while-revalidate=600" : "no-store"])
        }
        let cache = makeCache(.init(minimumInterval: 10))
        let request = URLRequest(url: origin.url("/a"))
        #expect(try await text(cache.data(for: request)) == "1")
        clock.advance(by: 11)
        #expect(try await text(cache.data(for: request)) == "1")
        await eventually("the refresh") { origin.requests.count == 2 && !cache.isRefreshing }
        clock.advance(by: 5)
        #expect(try await text(cache.data(for: request)) == "2")
        #expect(origin.requests.count == 2)
    }

    /// Its body may be endless, or break off.
    @Test func whatARefreshWithdrawsIsGoneAtOnce() async throws {
        let origin = try OriginServer { request in
            if request.number == 1 {
                return .ok("1", ["Cache-Control": "max-age=1, stale-while-revalidate=600"])
            }
            var answer = OriginResponse.ok("withdrawn", ["Cache-Control": "no-store"])
            answer.ending = .cutBody(after: 3)
            return answer
        }
        let cache = makeCache(.init(minimumInterval: 10))
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 11)
        _ = try await cache.data(for: request)
        await eventually("the refresh") { origin.requests.count >= 2 && !cache.isRefreshing }
        #expect(!cache.contains(request))
    }

    /// Files are changed meanwhile, on another queue than that of the transport.
    @Test func whatARefreshBringsIsHeldWhole() async throws {
        let (text, seen) = ("0123456789", Mutex<Set<String>>([]))
        let origin = try OriginServer { request in
            let isFirst = seen.withLock { $0.insert(request.path).inserted }
            if isFirst { return .ok("1", ["Cache-Control": "max-age=1, stale-while-revalidate=600"]) }
            return .ok(text, ["Cache-Control": "no-store"])
        }
        let cache = DiskURLCache(in: try ScratchDirectory(), clock: clock, memory: 4 << 20, disk: 10 << 20) {
            $0.rules = [.init(for: .all, minimumInterval: 10)]
        }
        for number in 0..<10 {
            let request = URLRequest(url: origin.url("/\(number)"))
            _ = try await cache.data(for: request)
        }
        clock.advance(by: 11)
        for number in 0..<10 { _ = try await cache.data(for: URLRequest(url: origin.url("/\(number)"))) }
        await eventually("the refreshes") { !cache.isRefreshing }
        for number in 0..<10 {
            let answer = try await cache.data(for: URLRequest(url: origin.url("/\(number)")))
            #expect(self.text(answer) == text)
        }
    }

    /// It replaces nothing, so nothing goes for it.
    @Test func aHeldAnswerThatIsTooLargeRemovesNothing() async throws {
        let origin = try OriginServer { request in
            if request.number == 1 { return .ok("kept", ["Cache-Control": "max-age=1"]) }
            return OriginResponse(status: 403, fields: ["Cache-Control": "no-store"], body: Data(count: 3 << 20))
        }
        let cache = makeCache(.init(minimumInterval: 10))
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 11)
        for try await _ in try await cache.bytes(for: request) {}
        #expect(cache.contains(request))
    }

    /// It is held in memory, however its reader takes it.
    @Test func aLargeBodyThatIsReadInPiecesIsHeld() async throws {
        let body = testBody(1, length: 2 << 20)
        let origin = try OriginServer { _ in
            OriginResponse(fields: ["Vary": "*", "Cache-Control": "max-age=60"], body: body)
        }
        let cache = DiskURLCache(in: try ScratchDirectory(), clock: clock, memory: 64 << 20, disk: 200 << 20) {
            $0.rules = [.init(for: .all, minimumInterval: .minutes(15))]
        }
        let request = URLRequest(url: origin.url("/a"))
        for _ in 0..<2 {
            var data = Data()
            for try await piece in try await cache.bytes(for: request) { data += piece }
            #expect(data == body)
        }
        #expect(origin.requests.count == 1)
    }

    /// A reader that reloads while the server is in trouble still has its feed.
    @Test(arguments: [DiskURLCache.Options(fallback: .anyStored), .init(staleIfError: .days(1))])
    func anErrorAfterAReloadHidesNoStoredResponse(_ options: DiskURLCache.Options) async throws {
        let origin = try OriginServer { request in
            request.number > 1 ? .status(503) : .ok("kept", ["Cache-Control": "max-age=1", "ETag": "\"1\""])
        }
        var options = options
        options.minimumInterval = .minutes(15)
        let cache = makeCache(options)
        let request = URLRequest(url: origin.url("/a"))
        #expect(try await text(cache.data(for: request)) == "kept")
        clock.advance(by: 1_000)
        var reload = request
        reload.cachePolicy = .reloadRevalidatingCacheData
        #expect(try await cache.data(for: reload).response.statusCode == 503)
        #expect(try await text(cache.data(for: request)) == "kept")
        cache.isOffline = true
        #expect(try await text(cache.data(for: request)) == "kept")
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [403, 429, 500, 503], [true, false])
    func withoutARequestAStoredResponseAnswersInPlaceOfAnErrorThatIsHeld(status: Int, isOffline: Bool) async throws {
        let origin = try OriginServer { request in
            request.number > 1 ? .status(status) : .ok("kept", ["Cache-Control": "max-age=1"])
        }
        let cache = makeCache(.init(minimumInterval: .minutes(15)))
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 1_000)
        for _ in 0..<2 { #expect(try await cache.data(for: request).response.statusCode == status) }
        var stored = request
        if !isOffline { stored.cachePolicy = .returnCacheDataDontLoad }
        cache.isOffline = isOffline
        #expect(try await text(cache.data(for: stored)) == "kept")
        #expect(origin.requests.count == 2)
    }

    /// A link checker asks by `HEAD`, and by `GET` if the server refuses that.
    @Test(arguments: [404, 405, 500, 501])
    func aHeadIsAskedAtMostOnceInTheIntervalToo(_ status: Int) async throws {
        let origin = try OriginServer { request in
            request.method == "HEAD" ? .status(status) : .ok("page", ["Cache-Control": "no-store"])
        }
        let cache = makeCache(.init(minimumInterval: .minutes(15)))
        var request = URLRequest(url: origin.url("/a"))
        request.httpMethod = "HEAD"
        for _ in 0..<2 { #expect(try await cache.data(for: request).response.statusCode == status) }
        #expect(origin.requests.count == 1)
        let get = URLRequest(url: origin.url("/a"))
        for _ in 0..<2 { #expect(try await text(cache.data(for: get)) == "page") }
        #expect(origin.requests.count == 2)
        clock.advance(by: 901)
        #expect(try await cache.data(for: request).response.statusCode == status)
        #expect(origin.requests.count == 3)
    }

    /// A held answer is one of the cache's: it is removed like a stored one, and never written.
    @Test(arguments: ["request", "all", "host", "prefix", "tag", "memory", "POST"])
    func whatIsRemovedIsNotHeldEither(by what: String) async throws {
        let origin = try OriginServer { request in .ok("\(request.number)", ["Cache-Control": "no-store"]) }
        let cache = makeCache(.init(minimumInterval: .minutes(15), tags: ["a"]))
        let request = URLRequest(url: origin.url("/a"))
        #expect(try await text(cache.data(for: request)) == "1")
        #expect(try await text(cache.data(for: request)) == "1")
        switch what {
        case "request": cache.removeCachedResponse(for: request)
        case "host": cache.removeCachedResponses(host: "127.0.0.1")
        case "prefix": cache.removeCachedResponses(urlPrefix: origin.url("/").absoluteString)
        case "tag": cache.removeCachedResponses(tag: "a")
        case "memory": cache.removeAllCachedResponses(from: .memory)
        case "POST":
            var post = request
            post.httpMethod = "POST"
            _ = try await cache.data(for: post)
        default: cache.removeAllCachedResponses()
        }
        #expect(cache.currentMemoryUsage == 0)
        let number = origin.requests.count + 1
        #expect(try await text(cache.data(for: request)) == "\(number)")
    }

    @Test func anErrorIsHeldForItsLifetimeAndReplacesNothing() async throws {
        let origin = try OriginServer { request in
            switch request.number {
            case 1: .ok("page", ["Cache-Control": "max-age=10"])
            case 2: .status(429, "", ["Retry-After": "120"])
            default: .ok("later", ["Cache-Control": "max-age=10"])
            }
        }
        let cache = makeCache(.init(errorLifetime: .minutes(1)))
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 20)
        #expect(try await cache.data(for: request).response.statusCode == 429)
        clock.advance(by: 119)
        let held = try await cache.data(for: request)
        #expect(held.response.statusCode == 429)
        #expect(held.response.value(forHTTPHeaderField: "Retry-After") == "1")
        #expect(held.report.outcome == .staleHit(.memory, because: .errorLifetime))
        cache.isOffline = true
        clock.advance(by: 2)
        #expect(try await text(cache.data(for: request)) == "page")
        cache.isOffline = false
        #expect(try await text(cache.data(for: request)) == "later")
    }

    /// What HTTP lets a cache store is stored: another process asks no sooner either.
    @Test(arguments: [301, 308, 404, 410]) func whatMayBeStoredAnswersInOtherProcesses(status: Int) async throws {
        let origin = try OriginServer { request in
            if status < 400, request.path == "/a" { return .status(status, "", ["Location": "/b"]) }
            return OriginResponse(status: status < 400 ? 404 : status, body: Data("gone".utf8))
        }
        let scratch = try ScratchDirectory()
        for _ in 0..<2 {
            var configuration = DiskURLCache.Configuration(
                memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.url)
            configuration.clock = clock.wallClock
            configuration.minimumDiskLifetime = .minutes(1)
            configuration.rules = [DiskURLCache.Rule(for: .all, minimumInterval: .minutes(15))]
            configuration.store = configuration.makeStore(directory: scratch.url)
            let cache = DiskURLCache(configuration: configuration)
            #expect(try await text(cache.data(for: URLRequest(url: origin.url("/a")))) == "gone")
            cache.flush()
        }
        #expect(origin.requests.count == (status < 400 ? 2 : 1))
    }

    /// An error that a stored response replaces is not asked for again either.
    @Test func anErrorThatIsReplacedIsAskedForOnceInTheInterval() async throws {
        let origin = try OriginServer { request in
            request.number > 1 ? .status(503) : .ok("kept", ["Cache-Control": "max-age=1, stale-if-error=86400"])
        }
        let cache = makeCache(.init(minimumInterval: .minutes(15)))
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 1_000)
        for _ in 0..<3 { #expect(try await text(cache.data(for: request)) == "kept") }
        #expect(origin.requests.count == 2)
        clock.advance(by: 900)
        #expect(try await text(cache.data(for: request)) == "kept")
        #expect(origin.requests.count == 3)
    }

    // MARK: Mutations

    @Test(arguments: [nil, true, false] as [Bool?])
    func aMutationEmptiesItsURLUnlessTheAppSaysOtherwise(_ invalidatesURL: Bool?) async throws {
        let origin = try OriginServer { request in .ok("\(request.number)", ["Cache-Control": "max-age=60"]) }
        var configuration = DiskURLCache.Configuration(memoryCapacity: 4 << 20, diskCapacity: 0)
        configuration.keyPolicy = .standard.includingBody(ofMethods: "POST", asJSON: true)
        configuration.rules = [
            .init(
                for: .request { $0.httpBody.map { String(decoding: $0, as: UTF8.self).contains("mutation") } == true },
                storage: .never, invalidatesURL: invalidatesURL)
        ]
        let cache = DiskURLCache(configuration: configuration)
        #expect(cache.openingError == nil)
        func post(_ query: String) async throws -> String {
            var request = URLRequest(url: origin.url("/graphql"))
            request.httpMethod = "POST"
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(#"{"query": "\#(query)"}"#.utf8)
            return try await text(cache.data(for: request))
        }
        #expect(try await post("query a") == "1")
        #expect(try await post("mutation b") == "2")
        #expect(try await post("query a") == (invalidatesURL == false ? "1" : "3"))
    }

    /// Two loads ask, and the one that asked first is answered last. The last answer is that of the other one.
    @Test(arguments: ["no-store", "max-age=60"], ["fails", "is in trouble", "has an old answer"])
    func anOlderAnswerReplacesNoNewerOne(_ directive: String, older: String) async throws {
        let cache = makeCache(.init(minimumInterval: .minutes(15)))
        let exchanges = Exchanges()
        let network = exchanges.network()
        func load(_ fields: [String: String] = [:]) -> LoadReader {
            LoadReader(Responses.request("/a", fields: fields), from: cache, over: network)
        }
        let first = load()
        let slow = await exchanges.next(1)
        clock.advance(by: 1)
        let second = load(["Cache-Control": "no-cache"])
        let quick = await exchanges.next(2)
        quick.head(200, ["Cache-Control": directive])
        quick.piece("new")
        quick.end()
        #expect(try await second.answer().data == Data("new".utf8))
        switch older {
        case "fails": slow.end(URLError(.networkConnectionLost))
        case "is in trouble":
            slow.head(503)
            slow.end()
        default:
            slow.head(200, ["Cache-Control": "no-store"])
            slow.piece("old")
            slow.end()
        }
        _ = try? await first.answer()
        #expect(try await load().answer().data == Data("new".utf8))
        #expect(network.requests.count == 2)
    }
}

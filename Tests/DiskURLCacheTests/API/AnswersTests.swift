import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.fewAtATime) struct AnswersTests {
    let scratch: ScratchDirectory
    let clock = ManualClock()

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func makeCache(_ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }) -> DiskURLCache {
        DiskURLCache(in: scratch, clock: clock, configure)
    }

    private func texts(_ answers: AsyncThrowingStream<DiskURLCache.Answer, any Error>) async throws -> [String] {
        try await answers.reduce(into: []) { $0.append(String(decoding: $1.data, as: UTF8.self)) }
    }

    /// As a task would: cookies that the shared storage has go along.
    @Test func cookiesAreSent() async throws {
        let origin = try OriginServer { request in
            .ok(request.fields["Cookie"] ?? "none", ["Cache-Control": "no-store"])
        }
        let url = origin.url("/a")
        let host = try #require(url.host)
        let cookie = try #require(
            HTTPCookie(properties: [.name: "direct", .value: "1", .path: "/", .domain: host, .version: "0"]))
        HTTPCookieStorage.shared.setCookie(cookie)
        defer { HTTPCookieStorage.shared.deleteCookie(cookie) }
        #expect(try await String(decoding: makeCache().data(from: url).data, as: UTF8.self).contains("direct=1"))
        var without = URLRequest(url: url)
        without.httpShouldHandleCookies = false
        #expect(try await makeCache().data(for: without).data == Data("none".utf8))
    }

    /// A millisecond passes at each look at the clock.
    @Test func anAnswerFromMemoryTakesTime() async throws {
        let time = Mutex(Date(timeIntervalSince1970: 1_800_000_000))
        let cache = DiskURLCache(in: scratch, clock: clock) { configuration in
            configuration.clock = WallClock {
                time.withLock { time in
                    time += 0.001
                    return time
                }
            }
        }
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: Responses.request("/a"))
        let answer = try await cache.data(for: Responses.request("/a"))
        #expect(answer.source == .stored(.memory) && answer.report.duration > 0)
    }

    @Test func memoryThenDiskThenNetwork() async throws {
        let origin = try OriginServer { _ in .ok("hello", ["Cache-Control": "max-age=60"]) }
        let cache = makeCache()
        let first = try await cache.data(from: origin.url("/a"))
        #expect(first.source == .network)
        #expect(first.data == Data("hello".utf8))
        #expect(first.response.statusCode == 200)
        let second = try await cache.data(from: origin.url("/a"))
        #expect(second.source == .stored(.memory))
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        clock.advance(by: 5)
        let third = try await makeCache().data(from: origin.url("/a"))
        #expect(third.source == .stored(.disk))
        #expect(third.report.age == 5)
        #expect(third.data == Data("hello".utf8))
        #expect(origin.requests.count == 1)
    }

    @Test func theAgeIsKnownAfterA304AndOfANewResponse() async throws {
        let origin = try OriginServer { request in
            let fields: OriginFields = ["Cache-Control": "max-age=10", "ETag": "\"1\"", "Age": "3"]
            return request.number == 1 ? .ok("hello", fields) : .status(304, "", ["ETag": "\"1\""])
        }
        let cache = makeCache()
        #expect(try await cache.data(from: origin.url("/a")).report.age == 3)
        clock.advance(by: 100)
        let confirmed = try await cache.data(from: origin.url("/a")).report
        #expect(confirmed.outcome == .revalidated(.memory) && confirmed.age == 0)
        clock.advance(by: 5)
        #expect(try await cache.data(from: origin.url("/a")).report.age == 5)
    }

    @Test func bytesLoadedAndSavedAreCounted() async throws {
        let origin = try OriginServer { _ in .ok("hello", ["Cache-Control": "max-age=60"]) }
        let cache = makeCache()
        for _ in 0..<3 { _ = try await cache.data(from: origin.url("/a")) }
        var post = URLRequest(url: origin.url("/b"))
        post.httpMethod = "POST"
        _ = try await cache.data(for: post)
        #expect(cache.statistics.bytesLoaded == 10 && cache.statistics.bytesSaved == 10)
    }

    /// A job that must send nothing can prove it, whatever became of what it sent.
    @Test(.loadsOnLinux) func eachRequestThatGoesOutIsCounted() async throws {
        let origin = try OriginServer { request in
            switch request.path {
            case "/way": .status(302, "", ["Location": "/a"])
            case "/broken": OriginResponse(ending: .noResponse)
            default: .ok("a", ["Cache-Control": "max-age=10, stale-while-revalidate=100"])
            }
        }
        let cache = makeCache()
        let session = cache.makeSession()
        defer { session.invalidateAndCancel() }
        func expectAll() {
            #expect(cache.statistics.requests == origin.requests.count)
            #expect(cache.statistics.byHost["127.0.0.1"]?.requests == origin.requests.count)
        }
        // First: where a connection was used before, libcurl sends the request again by itself.
        _ = try? await cache.data(from: origin.url("/broken"))
        _ = try await cache.data(from: origin.url("/way"))
        var post = URLRequest(origin.url("/post"))
        post.httpMethod = "POST"
        _ = try await session.upload(for: post, from: Data("body".utf8))
        expectAll()
        clock.advance(by: 50)
        _ = try await cache.data(from: origin.url("/a"))
        await eventually("the refresh") { origin.requests.count == 5 && !cache.isRefreshing }
        expectAll()
        cache.isOffline = true
        _ = try await cache.data(from: origin.url("/a"))
        _ = try? await cache.data(from: origin.url("/new"))
        expectAll()
    }

    @Test func anAnswerThatTakesLongerIsReplacedByOneThatIsNotTooOld() async throws {
        let (gate, lastGate, fails) = (Gate(), Gate(), Flag())
        let origin = try OriginServer { request in
            var response = OriginResponse.ok("\(request.number)", ["Cache-Control": "no-cache"])
            if fails.value { response = OriginResponse(status: 503) }
            if request.number == 2 { response.beforeHead = { gate.wait() } }
            if request.number == 6 { response.beforeHead = { lastGate.wait() } }
            return response
        }
        let cache = makeCache()
        let request = URLRequest(url: origin.url("/a"))
        func load(_ time: DiskURLCache.TimeSpan, _ age: DiskURLCache.TimeSpan) async throws -> String {
            let answer = try await cache.data(for: request, within: time, orNotOlderThan: age)
            return String(decoding: answer.data, as: UTF8.self)
        }
        #expect(try await load(.milliseconds(1), .hours(1)) == "1", "nothing is stored")
        clock.advance(by: 100)
        let events = cache.events()
        #expect(try await load(.milliseconds(1), 100) == "1")
        gate.open()
        await events.stored()
        #expect(cache.cachedResponse(for: request)?.data == Data("2".utf8), "the request went on")
        #expect(try await load(60, 100) == "3")
        clock.advance(by: 100)
        #expect(try await load(.milliseconds(1), 99) == "4", "the stored one is too old")
        fails.set()
        #expect(try await load(60, 100) == "4")
        let waiting = Task { try await load(60, 100) }
        waiting.cancel()
        await #expect(throws: (any Error).self) { try await waiting.value }
        lastGate.open()
    }

    @Test func aPrefetchTellsOfEachResponseAsItEnds() async throws {
        let origin = try OriginServer { request in
            request.path == "/0" ? .status(404) : .ok(String(repeating: "x", count: 5), ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache()
        let requests = (0..<4).map { URLRequest(url: origin.url("/\($0)")) }
        var seen: [String: DiskURLCache.Report] = [:]
        for await (request, result) in cache.prefetchResults(of: requests, maximumConcurrency: 2) {
            seen[request.url?.path ?? ""] = try result.get()
        }
        #expect(seen.count == 4 && seen["/0"]?.status == 404 && seen["/0"]?.notStoredReason == .notReusable)
        #expect((1..<4).allSatisfy { seen["/\($0)"]?.bytes == 5 && seen["/\($0)"]?.status == 200 })
        var outcomes: [DiskURLCache.Report.Outcome] = []
        for await (_, result) in cache.prefetchResults(of: Array(requests.dropFirst())) {
            outcomes.append(try result.get().outcome)
        }
        #expect(outcomes == Array(repeating: .hit(.memory), count: 3))
    }

    @Test func cancellingTheTaskCancelsTheLoad() async throws {
        let gate = DispatchSemaphore(value: 0)
        let origin = try OriginServer { _ in
            var response = OriginResponse.ok("late", ["Cache-Control": "max-age=60"])
            response.beforeHead = { gate.wait() }
            return response
        }
        let cache = makeCache()
        let url = origin.url("/slow")
        let task = Task { try await cache.data(from: url) }
        await eventually("a request") { !origin.requests.isEmpty }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        gate.signal()
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await cache.data(from: url)
        }
        await #expect(throws: CancellationError.self) { try await early.value }
    }

    @Test func cachedThenFresh() async throws {
        let origin = try OriginServer { request in
            .ok("version \(request.number)", ["Cache-Control": "max-age=10"])
        }
        let cache = makeCache()
        let request = URLRequest(url: origin.url("/a"))
        var reasons: [DiskURLCache.Reason] = []
        func collect(alwaysRefreshing: Bool = false) async throws -> [(
            String, DiskURLCache.Answer.Source, Bool
        )] {
            var elements: [(String, DiskURLCache.Answer.Source, Bool)] = []
            for try await answer in cache.answers(for: request, alwaysRefreshing: alwaysRefreshing) {
                elements.append((String(decoding: answer.data, as: UTF8.self), answer.source, answer.isStale))
                switch answer.report.outcome {
                case .miss(let reason), .expired(let reason): reasons.append(reason)
                default: break
                }
            }
            return elements
        }
        #expect(try await collect().map(\.0) == ["version 1"])
        #expect(try await collect().map(\.0) == ["version 1"], "fresh: one element")
        #expect(try await collect(alwaysRefreshing: true).map(\.0) == ["version 1", "version 2"])
        cache.isOffline = true
        #expect(try await collect(alwaysRefreshing: true).map(\.0) == ["version 2"], "offline: nothing is asked")
        cache.isOffline = false
        clock.advance(by: 100)
        let stale = try await collect()
        #expect(stale.map(\.0) == ["version 2", "version 3"])
        #expect(stale.map(\.2) == [true, false])
        #expect(stale.map(\.1) == [.stored(.memory), .network])
        #expect(reasons == [.notInCache, .newest, .stale])
        clock.advance(by: 100)
        origin.stop()
        var seen: [String] = []
        await #expect(throws: (any Error).self) {
            for try await answer in cache.answers(for: request) {
                seen.append(String(decoding: answer.data, as: UTF8.self))
            }
        }
        withExtendedLifetime(origin) {}
        #expect(seen == ["version 3"], "the old answer came before the error")
    }

    /// What a request says about the cache holds here, too.
    @Test func answersObeyTheRequest() async throws {
        let origin = try OriginServer { request in
            .ok("version \(request.number)", ["Cache-Control": "max-age=10"])
        }
        let cache = makeCache()
        let url = origin.url("/a")
        func collect(_ request: URLRequest) async throws -> [String] { try await texts(cache.answers(for: request)) }
        #expect(try await collect(URLRequest(url)) == ["version 1"])
        clock.advance(by: 100)
        #expect(try await collect(URLRequest(url, policy: .returnCacheDataDontLoad)) == ["version 1"])
        #expect(origin.requests.count == 1)
        #expect(try await collect(URLRequest(url, policy: .reloadIgnoringLocalCacheData)) == ["version 2"])
        for directive in ["no-cache", "max-age=0"] {
            #expect(try await collect(URLRequest(url, ["Cache-Control": directive])).count == 1)
        }
        #expect(origin.requests.count == 4)
        #expect(try await collect(URLRequest(url, ["Cache-Control": "only-if-cached"])) == ["version 4"])
        #expect(origin.requests.count == 4)
        #expect(try await collect(URLRequest(url, ["Cache-Control": "no-store"])) == ["version 5"])
        #expect(origin.requests.count == 5)
    }

    /// A load and `answers(for:)` agree whether a stored answer is enough.
    @Test func answersAreJudgedAsLoadsAre() async throws {
        let origin = try OriginServer { request in
            .ok("version \(request.number)", ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache()
        let url = origin.url("/a")
        func collect(_ directives: String, policy: URLRequest.CachePolicy = .useProtocolCachePolicy) async throws
            -> [String]
        {
            var request = URLRequest(url, ["Cache-Control": directives])
            request.cachePolicy = policy
            return try await texts(cache.answers(for: request))
        }
        #expect(try await collect("max-age=60") == ["version 1"])
        clock.advance(by: 10)
        #expect(try await collect("max-age=30") == ["version 1"])
        #expect(try await collect("max-age=5") == ["version 1", "version 2"])
        clock.advance(by: 10)
        #expect(try await collect("min-fresh=30") == ["version 2"])
        #expect(try await collect("min-fresh=55") == ["version 2", "version 3"])
        clock.advance(by: 70)
        #expect(try await collect("max-stale=100") == ["version 3"])
        #expect(try await collect("", policy: .returnCacheDataElseLoad) == ["version 3"])
        #expect(try await collect("max-age=5, max-stale=3") == ["version 3", "version 4"])
        #expect(origin.requests.count == 4)
    }

    /// What a load would answer without a request is enough, by whatever way it is found.
    @Test(arguments: ["minimumInterval", "errorLifetime", "Vary: Cookie"])
    func answersSendNoRequestThatALoadWouldNot(what: String) async throws {
        let origin = try OriginServer { _ in
            switch what {
            case "Vary: Cookie": .ok("a", ["Cache-Control": "max-age=60", "Vary": "Cookie"])
            case "errorLifetime": .status(404, "Not Found", ["Cache-Control": "no-store"])
            default: .ok("a", ["Cache-Control": "max-age=1"])
            }
        }
        let cache = makeCache()
        let url = origin.url("/a?x=1")
        var request = URLRequest(url: url)
        let configuration = URLSessionConfiguration.ephemeral.patient
        switch what {
        case "minimumInterval": request.cacheOptions = .init(fallback: .anyStored, minimumInterval: 60)
        case "errorLifetime": request.cacheOptions = .init(errorLifetime: 60)
        case "Vary: Cookie":
            let host = try #require(url.host)
            let cookie = try #require(
                HTTPCookie(properties: [.name: "answers", .value: "1", .path: "/", .domain: host, .version: "0"]))
            try #require(configuration.httpCookieStorage).setCookie(cookie)
        default: break
        }
        let session = URLSession(configuration: configuration)
        _ = try await cache.data(for: request, session: session)
        clock.advance(by: 10)
        let asked = origin.requests.count
        #expect(try await texts(cache.answers(for: request, session: session)).count == 1)
        #expect(origin.requests.count == asked)
        // A load agrees.
        _ = try await cache.data(for: request, session: session)
        #expect(origin.requests.count == asked)
    }

    /// A load would use the stored answer too, and would refresh it meanwhile: that is the second answer.
    @Test func answersThatALoadWouldRefreshAreTwo() async throws {
        let origin = try OriginServer { request in
            .ok("version \(request.number)", ["Cache-Control": "max-age=10, stale-while-revalidate=100"])
        }
        let cache = makeCache()
        let request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 50)
        #expect(try await texts(cache.answers(for: request)) == ["version 1", "version 2"])
        #expect(origin.requests.count == 2)
    }

    /// RFC 8246 keeps a reload from the origin, not an app that wants the newest answer.
    @Test func aNewerAnswerThanAnImmutableOne() async throws {
        let origin = try OriginServer { .ok("\($0.number)", ["Cache-Control": "max-age=60, immutable"]) }
        let cache = makeCache()
        let request = URLRequest(url: origin.url("/a"))
        #expect(try await texts(cache.answers(for: request)) == ["1"])
        #expect(try await texts(cache.answers(for: request, alwaysRefreshing: true)) == ["1", "2"])
        #expect(try await texts(cache.answers(for: request)) == ["2"])
    }

    /// Its lifetime does not count, since the origin wants to be asked each time.
    @Test(arguments: ["no-cache", "no-cache, max-age=60"])
    func whatTheOriginWantsToConfirmIsStale(cacheControl: String) async throws {
        let origin = try OriginServer { _ in .ok("a", ["Cache-Control": cacheControl]) }
        let cache = makeCache()
        var request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        #expect(try await cache.answers(for: request).reduce(into: []) { $0.append($1.isStale) } == [true, false])
        request.cachePolicy = .returnCacheDataElseLoad
        #expect(try await cache.data(for: request).report.outcome == .staleHit(.memory, because: .anyAge))
        // The app knows better.
        request.cacheLifetime = .minutes(1)
        #expect(try await cache.data(for: request).report.outcome == .hit(.memory))
        #expect(origin.requests.count == 2)
    }

    /// RFC 9211 §2.2: a 304 may answer for other reasons than that the stored response was stale.
    @Test func aConfirmationSaysWhyItWasAskedFor() async throws {
        let origin = try OriginServer { request in
            request.fields["If-None-Match"] == nil
                ? .ok("a", ["Cache-Control": "max-age=60", "ETag": "\"1\""]) : OriginResponse(status: 304)
        }
        let cache = makeCache()
        var request = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: request)
        request.setValue("no-cache", forHTTPHeaderField: "Cache-Control")
        let asked = try await cache.data(for: request).report
        #expect(asked.cacheStatus == "DiskURLCache; fwd=request; fwd-status=304; detail=request-directive")
        clock.advance(by: 100)
        let stale = try await cache.data(from: origin.url("/a")).report
        #expect(stale.cacheStatus == "DiskURLCache; fwd=stale; fwd-status=304")
    }

    /// A redirect from the network costs its time, whatever answers then. A `HEAD` would not have brought the body.
    @Test func onlyWhatWasNotAskedForSavesTime() async throws {
        let origin = try OriginServer { request in
            request.path == "/moved"
                ? OriginResponse(status: 302, fields: ["Location": "/a"]) : .ok("abc", ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache()
        let url = origin.url("/a")
        _ = try await cache.data(from: url)
        #expect(try await cache.data(from: origin.url("/moved")).report.outcome == .hit(.memory))
        #expect(cache.statistics.storeLoads == 0 && cache.statistics.memoryHits == 1)
        let saved = cache.statistics.bytesSaved
        var request = URLRequest(url: url)
        request.httpMethod = "HEAD"
        #expect(cache.cachedResponse(for: request) != nil)
        #expect(cache.statistics.bytesSaved == saved && cache.statistics.memoryHits == 2)
        _ = try await cache.data(from: url)
        #expect(cache.statistics.bytesSaved == saved + 3 && cache.statistics.storeLoads == 1)
    }

    /// Foundation traps when such a request is changed.
    @Test func aRequestWithoutAURLOfHTTPFails() async throws {
        var request = URLRequest(url: Responses.url())
        request.url = nil
        let cache = makeCache()
        await #expect(throws: URLError.self) { for try await _ in cache.answers(for: request) {} }
        let session = URLSession(configuration: .ephemeral)
        await #expect(throws: URLError.self) { for try await _ in cache.answers(for: request, session: session) {} }
        let file = scratch.appending("file")
        await #expect(throws: URLError.self) { try await cache.file(for: request, at: file, fallback: .anyStored) }
        await #expect(throws: URLError.self) { try await cache.data(for: request, within: 1, orNotOlderThan: 1) }
        let inline = URLRequest(url: try #require(URL(string: "data:text/plain,x")))
        let error = await #expect(throws: URLError.self) { try await cache.data(for: inline) }
        #expect(error?.code == .badServerResponse)
    }

    /// The way to an answer may be stored longer than the answer. An error of the origin replaces no answer.
    @Test func answersAfterARedirectAndBeforeAnError() async throws {
        let fails = Flag()
        let origin = try OriginServer { request in
            if fails.value { return OriginResponse(status: 503) }
            if request.target == "/way" {
                return OriginResponse(status: 301, fields: ["Location": "/a", "Cache-Control": "max-age=1000"])
            }
            return .ok("version \(request.number)", ["Cache-Control": "max-age=10"])
        }
        let cache = makeCache()
        func collect(alwaysRefreshing: Bool = false) async throws -> [String] {
            try await texts(
                cache.answers(for: URLRequest(origin.url("/way")), alwaysRefreshing: alwaysRefreshing))
        }
        #expect(try await collect() == ["version 2"])
        #expect(try await collect(alwaysRefreshing: true) == ["version 2", "version 4"])
        clock.advance(by: 100)
        #expect(try await collect() == ["version 4", "version 6"])
        fails.set()
        var seen: [String] = []
        do {
            for try await answer in cache.answers(for: URLRequest(origin.url("/a")), alwaysRefreshing: true) {
                seen.append(String(decoding: answer.data, as: UTF8.self))
            }
            Issue.record("no error")
        } catch let error as URLError {
            #expect(error.code == .badServerResponse && error.errorUserInfo["status"] as? Int == 503)
            let reason = error.errorUserInfo[NSLocalizedFailureReasonErrorKey] as? String
            #expect(reason == "The origin answered with status 503.")
        }
        #expect(seen == ["version 6"])
    }

    @Test func cachingByHand() async throws {
        let cache = makeCache()
        let request = Responses.request("/made")
        cache.store(Data("{}".utf8), for: request, contentType: "application/json", lifetime: 30)
        #expect(cache.cachedResponse(for: request)?.data == Data("{}".utf8))
        #expect(cache.cachedResponse(for: request)?.response.mimeType == "application/json")
        #expect(try await cache.data(for: request).source == .stored(.memory), "no network needed")
    }

    @Test func userNameAndPasswordAreInNoEvent() async throws {
        let origin = try OriginServer { _ in .ok("x", ["Cache-Control": "max-age=86400"]) }
        let cache = makeCache()
        var events = cache.events().makeAsyncIterator()
        let url = origin.url("/a")
        let text = url.absoluteString.replacingOccurrences(of: "http://", with: "http://lovelace:s3cret@")
        let request = URLRequest(url: try #require(URL(string: text)))
        #expect(try await cache.data(for: request).report.url == url)
        cache.storeCachedResponse(
            CachedURLResponse(
                response: Responses.http(url), data: Data(), userInfo: nil, storagePolicy: .notAllowed), for: request)
        var urls: [URL?] = []
        while urls.count < 3, let event = await events.next() {
            switch event {
            case .load(let load): urls.append(load.url)
            case .stored(let url, _, _), .notStored(let url, _): urls.append(url)
            default: break
            }
        }
        #expect(urls == [url, url, url])
    }

    @Test func anAnswerWithoutAKeySaysSo() async throws {
        let origin = try OriginServer { _ in .ok("x", ["Cache-Control": "max-age=86400"]) }
        let cache = makeCache()
        var request = URLRequest(url: origin.url("/a"))
        request.cacheOptions = .init(storage: .never)
        let kept = try await cache.data(for: request).report
        // The method is one that is cached: that was not the reason.
        #expect(kept.notStoredReason == .never && kept.outcome == .bypass(.never))
        #expect(kept.cacheStatus == "DiskURLCache; fwd=bypass; fwd-status=200; detail=never")
        request.cacheOptions = nil
        #expect(try await cache.data(for: request).report.notStoredReason == nil)
        request.httpMethod = "POST"
        let posted = try await cache.data(for: request).report
        #expect(posted.notStoredReason == .methodNotCached && posted.outcome == .bypass(.methodNotCached))
        // Only the second was looked up.
        #expect(cache.statistics.misses == 1)
    }

    @Test func prefetchingIsBoundedAndReportsProgress() async throws {
        let running = Mutex((now: 0, most: 0))
        let origin = try OriginServer { request in
            running.withLock { state in
                state.now += 1
                state.most = max(state.most, state.now)
            }
            defer { running.withLock { $0.now -= 1 } }
            return request.path == "/5"
                ? .init(ending: .noResponse) : .ok(request.path, ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache()
        let requests = (0..<12).map { URLRequest(url: origin.url("/\($0)")) }
        let progress = Progress(totalUnitCount: 0)
        let failed = await cache.prefetch(requests, maximumConcurrency: 3, progress: progress)
        #expect(failed.map(\.request.url?.path) == ["/5"])
        #expect(progress.completedUnitCount == 12)
        #expect(progress.totalUnitCount == 12)
        #expect(running.withLock { $0.most } <= 3)
        #expect(cache.contains(requests[11]))
        // As many as there are.
        #expect(await cache.prefetch(requests, maximumConcurrency: .max).map(\.request.url?.path) == ["/5"])
        let cancelled = Progress(totalUnitCount: 0)
        cancelled.cancel()
        let none = await cache.prefetch(requests, progress: cancelled)
        #expect(none.count == 12)
        #expect(none.allSatisfy { $0.error is CancellationError })
    }

    /// What an app's session adds to requests is part of their keys: what is loaded ahead has to be loaded as that
    /// session would.
    @Test(.loadsOnLinux) func directCallsAreAsThoseOfAnAppsSession() async throws {
        let origin = try OriginServer { request in
            .ok("\(request.number) for \(request.fields["Authorization"] ?? "nobody")", ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache()
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.httpAdditionalHeaders = ["Authorization": "Bearer 1"]
        let session = cache.makeSession(configuration: configuration)
        let request = URLRequest(url: origin.url("/a"))
        #expect(await cache.prefetch([request], session: session).isEmpty)
        #expect(try await cache.data(for: request, session: session).source == .stored(.memory))
        let loaded = try await LoadingHarness.load(request, in: session)
        #expect(loaded.text == "1 for Bearer 1")
        let answers = cache.answers(for: request, alwaysRefreshing: true, session: session)
        #expect(try await texts(answers) == ["1 for Bearer 1", "2 for Bearer 1"])
        // Without the session it is another request.
        #expect(try await cache.data(for: request).data == Data("3 for nobody".utf8))
    }

    @Test func prefetchingTellsWhatIsNotStoredAndWhy() async throws {
        let origin = try OriginServer { request in
            if request.path == "/missing" { return OriginResponse(status: 404) }
            if request.path == "/cut" { return OriginResponse(ending: .noResponse) }
            return .ok("x", ["Cache-Control": request.path == "/none" ? "no-store" : "max-age=60"])
        }
        let cache = makeCache()
        let others = await cache.prefetch(["/missing", "/cut"].map { URLRequest(url: origin.url($0)) })
        #expect(Set(others.map(\.status)) == [404, nil])
        #expect(others.first { $0.status == 404 }?.error as? DiskURLCache.Reason != nil)
        let requests = ["/a", "/none", "/b"].map { URLRequest(url: origin.url($0)) }
        // The second time two of them are fresh.
        for _ in 0..<2 {
            let failed = await cache.prefetch(requests)
            #expect(failed.map(\.request.url?.path) == ["/none"])
            #expect(failed.first?.error as? DiskURLCache.Reason == .noStore)
            #expect(failed.first?.status == 200)
            #expect(requests.map { cache.contains($0) } == [true, false, true])
        }
    }

    @Test func anUnsafeRequestInvalidates() async throws {
        let origin = try OriginServer { _ in .ok("x", ["Cache-Control": "max-age=60"]) }
        let cache = makeCache()
        let get = URLRequest(url: origin.url("/a"))
        _ = try await cache.data(for: get)
        var post = get
        post.httpMethod = "POST"
        post.httpBody = Data("change".utf8)
        #expect(try await cache.data(for: post).source == .network)
        #expect(!cache.contains(get))
        #expect(origin.requests.last?.body == Data("change".utf8))
    }

    /// As with a GET: it is out of date.
    @Test func aPostWhoseNewAnswerMayNotBeStoredLosesTheOldOne() async throws {
        let origin = try OriginServer { request in
            .ok("\(request.number)", ["Cache-Control": request.number == 1 ? "max-age=60" : "no-store"])
        }
        let cache = makeCache { $0.keyPolicy = .standard.includingBody(ofMethods: "POST") }
        var request = URLRequest(url: origin.url("/a"))
        request.httpMethod = "POST"
        request.httpBody = Data("a".utf8)
        for policy in [.useProtocolCachePolicy, .reloadIgnoringLocalCacheData] as [URLRequest.CachePolicy] {
            request.cachePolicy = policy
            _ = try await cache.data(for: request)
        }
        #expect(!cache.contains(request) && origin.requests.count == 2)
    }

    /// A stored response that was found has a head in memory, and this needs the URL of the request alone.
    @Test func noBodyOfARequestStaysInMemory() async throws {
        let origin = try OriginServer { _ in .ok("x", ["Cache-Control": "max-age=60"]) }
        let cache = makeCache { $0.keyPolicy = .standard.includingBody(ofMethods: "POST") }
        let freed = Mutex(0)
        for _ in 1...3 {
            let bytes = UnsafeMutableRawPointer.allocate(byteCount: 50_000, alignment: 1)
            bytes.initializeMemory(as: UInt8.self, repeating: 1, count: 50_000)
            var request = URLRequest(url: origin.url("/a"))
            request.httpMethod = "POST"
            request.httpBody = Data(
                bytesNoCopy: bytes, count: 50_000,
                deallocator: .custom { bytes, _ in
                    bytes.deallocate()
                    _ = freed.next()
                })
            _ = try await cache.data(for: request)
        }
        #expect(origin.requests.count == 1)
        await eventually("the bodies to be freed") { freed.withLock { $0 } == 3 }
    }

    @Test func aPostIsCachedByARecipeThatKeysItsBody() async throws {
        let origin = try OriginServer { request in
            .ok("answer to \(String(decoding: request.body, as: UTF8.self))", ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache { $0.keyPolicy = .standard.includingFields("sign").includingBody(ofMethods: "POST") }
        func post(_ body: String, sign: String) -> URLRequest {
            var request = URLRequest(url: origin.url("/api"))
            request.httpMethod = "POST"
            request.httpBody = Data(body.utf8)
            request.setValue(sign, forHTTPHeaderField: "sign")
            return request
        }
        let first = try await cache.data(for: post("a", sign: "s"))
        let again = try await cache.data(for: post("a", sign: "s"))
        let other = try await cache.data(for: post("b", sign: "s"))
        let signed = try await cache.data(for: post("a", sign: "t"))
        #expect(first.source == .network)
        #expect(again.source == .stored(.memory))
        #expect(again.data == Data("answer to a".utf8))
        #expect(other.data == Data("answer to b".utf8))
        #expect(signed.source == .network)
        #expect(origin.requests.count == 3)
    }
}

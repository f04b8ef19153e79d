import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The engine over a transport of the app's: no sockets, no URLSession.
@Suite(.fewAtATime) struct TransportTests {
    /// The ways into the engine. They differ in what a failure in the middle of a body is to its caller.
    enum Door: CaseIterable, Sendable { case whole, stream }

    let cache: DiskURLCache
    let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let request = Responses.request("/a")

    init() throws {
        scratch = try ScratchDirectory("open-transport")
        cache = DiskURLCache(in: scratch, clock: clock, memory: 64 << 20, disk: 64 << 20)
    }

    private func isStored(_ request: URLRequest? = nil) -> Bool {
        cache.cachedResponse(for: request ?? self.request) != nil
    }

    private func load(
        _ request: URLRequest, through transport: ClosureTransport, _ door: Door
    ) async throws -> (text: String, report: DiskURLCache.Report) {
        switch door {
        case .whole:
            let answer = try await LoadReader(
                request, from: cache, over: OpenTransport(transport, keyVariant: nil)
            ).answer()
            return (String(decoding: answer.data, as: UTF8.self), answer.report)
        case .stream:
            let stream = try await cache.load(request, through: transport)
            return (try await stream.pieces().joined(), stream.report)
        }
    }

    // MARK: An answer

    @Test func whatATransportBringsIsStoredForAllWaysToLoad() async throws {
        let transport = ClosureTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            await exchange.piece("one")
            await exchange.piece("")
            await exchange.piece("two")
        }
        let first = try await cache.load(request, through: transport)
        #expect(first.report.outcome == .miss(.notInCache))
        #expect(try await first.pieces() == ["one", "two"])
        #expect(first.report.isStored == true && first.report.bytes == 6)
        let second = try await cache.load(request, through: transport)
        #expect(try await second.pieces() == ["onetwo"])
        #expect(second.report.outcome == .hit(.memory) && second.report.age == 0)
        #expect(try await cache.data(for: request).data == Data("onetwo".utf8))
        #expect(transport.requests.count == 1)
    }

    @Test func theHeadIsThereBeforeTheBody() async throws {
        let goesOn = Flag()
        let transport = ClosureTransport { _, exchange in
            exchange.head(103)
            exchange.head(200, ["Cache-Control": "max-age=60"])
            await goesOn.isSet()
            await exchange.piece("late")
        }
        let stream = try await cache.load(request, through: transport)
        #expect(stream.response.statusCode == 200 && stream.report.isStored == nil && stream.report.bytes == 0)
        goesOn.set()
        #expect(try await stream.pieces() == ["late"])
        #expect(stream.report.isStored == true)
    }

    @Test func theHeadIsTheTransportsOwnObject() async throws {
        let transport = ClosureTransport { _, exchange in exchange.head(200, ["Cache-Control": "no-store"]) }
        let stream = try await cache.load(request, through: transport)
        #expect(stream.response === transport.heads.first)
        #expect(try await stream.pieces() == [])
        #expect(stream.report.notStoredReason == .noStore)
    }

    /// Fields of one name stay apart, from the network and from each layer; `Set-Cookie` is not stored.
    @Test func fieldsAreAsTheyCame() async throws {
        let transport = ClosureTransport { _, exchange in
            exchange.receiver.receive(
                DiskURLCache.Head(
                    status: 203,
                    fields: [
                        ("Cache-Control", "max-age=60"), ("X-Twice", "1"), ("set-cookie", "a=1"), ("x-twice", "2"),
                        ("Set-Cookie", "b=2"), ("Date", HTTPDate.format(clock.now)),
                    ]))
        }
        for layer in [nil, DiskURLCache.Layer.memory, .disk] {
            let stream = try await cache.load(request, through: transport)
            #expect(try await stream.pieces() == [])
            #expect(stream.head.status == 203)
            let outcome = layer.map { DiskURLCache.Report.Outcome.hit($0) } ?? .miss(.notInCache)
            #expect(stream.report.outcome == outcome)
            func values(_ name: String) -> [String] {
                stream.head.fields.filter { $0.name.lowercased() == name }.map(\.value)
            }
            #expect(values("x-twice") == ["1", "2"])
            #expect(values("set-cookie") == (layer == nil ? ["a=1", "b=2"] : []))
            #expect(values("age") == (layer == nil ? [] : ["0"]))
            // Foundation joins them.
            #expect(stream.response.value(forHTTPHeaderField: "X-Twice") == "1, 2")
            #expect(stream.response === stream.response && stream.response.url == request.url)
            cache.flush()
            if layer == .memory { cache.store.memory.removeAll() }
        }
        #expect(transport.requests.count == 1)
    }

    /// A 304 may set cookies, or have them deleted: that is delivered once, and not stored.
    @Test func cookiesOfA304() async throws {
        let transport = ClosureTransport { request, exchange in
            var fields = [("Cache-Control", "max-age=60"), ("ETag", "\"1\"")]
            let isFirst = exchange.transport.requests.count == 1
            fields += isFirst ? [("Set-Cookie", "old=1")] : [("Set-Cookie", "a=1"), ("set-cookie", "b=2")]
            fields.append(("Clear-Site-Data", "\"cookies\""))
            // Not stored either, and for the one who asked; but for those of the connection.
            fields += [("Cache-Control", "no-cache=\"X-Token\""), ("X-Token", isFirst ? "old" : "new")]
            fields += [("Connection", "X-Hop"), ("X-Hop", "1")]
            exchange.receiver.receive(DiskURLCache.Head(status: isFirst ? 200 : 304, fields: fields))
            if isFirst { await exchange.piece("body") }
        }
        _ = try await cache.load(request, through: transport).pieces()
        clock.advance(by: 100)
        for cookies in [["a=1", "b=2"], []] {
            let stream = try await cache.load(request, through: transport)
            #expect(try await stream.pieces().joined() == "body")
            #expect(stream.head.status == 200)
            #expect(stream.head.fields.filter { $0.name.lowercased() == "set-cookie" }.map(\.value) == cookies)
            let orders = stream.head.fields.filter { $0.name == "Clear-Site-Data" }
            #expect(orders.count == (cookies.isEmpty ? 0 : 1))
            let tokens = stream.head.fields.filter { $0.name == "X-Token" }.map(\.value)
            #expect(tokens == (cookies.isEmpty ? [] : ["new"]))
            #expect(!stream.head.fields.contains { ["X-Hop", "Connection"].contains($0.name) })
        }
        #expect(transport.requests.count == 2)
        let stored = cache.store.lookup(try #require(cache.key(for: request))).variants()
        #expect(!stored.isEmpty && stored.allSatisfy { $0.response.fields["Set-Cookie"] == nil })
    }

    @Test(arguments: [-1, 0, 99, 1_000]) func aStatusThatIsNoneIsAnError(status: Int) async throws {
        let transport = ClosureTransport { _, exchange in
            exchange.receiver.receive(DiskURLCache.Head(status: status, fields: [("Cache-Control", "max-age=60")]))
            await exchange.piece("body")
        }
        let error = await #expect(throws: URLError.self) { try await cache.load(request, through: transport) }
        #expect(error?.code == .badServerResponse && !isStored())
    }

    @Test func aRequestWithoutAURLIsAnError() async throws {
        let transport = ClosureTransport { _, _ in }
        var changed = request
        changed.url = nil
        let request = changed
        let error = await #expect(throws: URLError.self) { try await cache.load(request, through: transport) }
        #expect(error?.code == .badURL && transport.requests.isEmpty)
        let direct = await #expect(throws: URLError.self) { try await cache.data(for: request) }
        #expect(direct?.code == .badURL)
    }

    @Test(arguments: Door.allCases) func whatIsStaleIsConfirmedAndRefreshed(door: Door) async throws {
        let transport = ClosureTransport { request, exchange in
            let isKnown = request.value(forHTTPHeaderField: "If-None-Match") == "\"1\""
            exchange.head(
                isKnown ? 304 : 200,
                ["ETag": "\"1\"", "Cache-Control": "max-age=60, stale-while-revalidate=100"])
            if !isKnown { await exchange.piece("body") }
        }
        let steps: [(wait: TimeInterval, outcome: DiskURLCache.Report.Outcome)] = [
            (0, .miss(.notInCache)), (1_000, .revalidated(.memory)),
            (100, .staleHit(.memory, because: .staleWhileRevalidate)),
            (0, .hit(.memory)),
        ]
        for (wait, outcome) in steps {
            clock.advance(by: wait)
            let (text, report) = try await load(request, through: transport, door)
            #expect(text == "body" && report.outcome == outcome)
            await cache.untilRefreshed()
        }
        #expect(transport.requests.count == 3)
    }

    // MARK: What goes wrong

    @Test(arguments: Door.allCases) func aFailureIsThrownAndAStoredAnswerIsUsedInstead(door: Door) async throws {
        let isDown = Flag()
        let transport = ClosureTransport { _, exchange in
            guard !isDown.value else { throw URLError(.networkConnectionLost) }
            exchange.head(200, ["Cache-Control": "max-age=60, stale-if-error=600"])
            await exchange.piece("body")
        }
        _ = try await load(request, through: transport, door)
        isDown.set()
        clock.advance(by: 100)
        let (text, report) = try await load(request, through: transport, door)
        #expect(text == "body" && report.outcome == .staleHit(.memory, because: .staleIfError))
        let error = await #expect(throws: URLError.self) {
            try await load(Responses.request("/other"), through: transport, door)
        }
        #expect(error?.code == .networkConnectionLost)
    }

    /// RFC 9211 §2.1: a request that was sent is no hit, whatever answered it in the end. Nor did it save time.
    @Test(arguments: [503, nil]) func whatReplacesAnErrorSaysThatItsRequestWasSent(status: Int?) async throws {
        let isDown = Flag()
        let transport = ClosureTransport { _, exchange in
            guard isDown.value else {
                exchange.head(200, ["Cache-Control": "max-age=60, stale-if-error=600"])
                return await exchange.piece("body")
            }
            guard let status else { throw URLError(.networkConnectionLost) }
            exchange.head(status)
        }
        _ = try await cache.load(request, through: transport).pieces()
        isDown.set()
        clock.advance(by: 100)
        let report = try await cache.load(request, through: transport).report
        let sent = status.map { "; fwd-status=\($0)" } ?? ""
        #expect(report.cacheStatus == "DiskURLCache; fwd=stale\(sent); ttl=-40; detail=stale-if-error")
        #expect(report.outcome == .staleHit(.memory, because: .staleIfError))
        let statistics = cache.statistics
        #expect(statistics.memoryHits == 1 && statistics.bytesSaved == 4)
        #expect(statistics.storeLoads == 0 && statistics.networkLoads == 1)
    }

    /// What is not asked again yet answers without a request.
    @Test func whatReplacesAnErrorThatIsNotAskedAboutAgainIsAHit() async throws {
        let isDown = Flag()
        let transport = ClosureTransport { _, exchange in
            guard !isDown.value else { return exchange.head(503) }
            exchange.head(200, ["Cache-Control": "max-age=60, stale-if-error=600"])
            await exchange.piece("body")
        }
        _ = try await cache.load(request, through: transport).pieces()
        isDown.set()
        clock.advance(by: 100)
        var request = request
        request.cacheOptions = DiskURLCache.Options(minimumInterval: 50)
        for text in ["fwd=stale; fwd-status=503", "hit"] {
            let report = try await cache.load(request, through: transport).report
            #expect(report.cacheStatus == "DiskURLCache; \(text); ttl=-40; detail=stale-if-error")
        }
        #expect(transport.requests.count == 2)
    }

    @Test func aBodyThatFailsIsThrownAfterWhatCameAndIsNotStored() async throws {
        let transport = ClosureTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            await exchange.piece("part")
            throw URLError(.cannotParseResponse)
        }
        let stream = try await cache.load(request, through: transport)
        var pieces: [String] = []
        let error = await #expect(throws: URLError.self) {
            for try await piece in stream { pieces.append(String(decoding: piece, as: UTF8.self)) }
        }
        #expect(error?.code == .cannotParseResponse && pieces == ["part"] && !isStored())
        #expect(stream.report.outcome == .failed)
        #expect((stream.report.error as? URLError)?.code == .cannotParseResponse)
        let whole = await #expect(throws: URLError.self) { try await load(request, through: transport, .whole) }
        #expect(whole?.code == .cannotParseResponse && !isStored())
    }

    @Test func anEndWithoutAHeadIsAnError() async throws {
        let transport = ClosureTransport { _, exchange in await exchange.piece("no head") }
        let error = await #expect(throws: URLError.self) { try await cache.load(request, through: transport) }
        #expect(error?.code == .badServerResponse)
    }

    /// What the app is asked when the answer is stored may be asked in the transport's task, which has ended well.
    @Test func anAnswerIsStoredInNoCancelledTask() async throws {
        let asked = Mutex<[Bool]>([])
        let own = try ScratchDirectory("task")
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: own.appending("cache"))
        configuration.willCacheResponse = { response, _ in
            asked.withLock { $0.append(Task.isCancelled) }
            return response
        }
        let cache = DiskURLCache(configuration: configuration)
        for number in 0..<20 {
            // Before or after the task is known, and in memory or in a file.
            let transport = ClosureTransport { _, exchange in
                if number % 2 == 0 { await Task.yield() }
                exchange.head(200, ["Cache-Control": "max-age=60"])
                await exchange.receiver.receive(Data(count: number < 10 ? 100 : 2 << 20))
            }
            _ = try await cache.load(Responses.request("/\(number)"), through: transport).pieces()
        }
        #expect(asked.withLock { $0 } == Array(repeating: false, count: 20))
    }

    @Test func withoutAHeadInTimeTheLoadFails() async throws {
        let transport = ClosureTransport { _, exchange in await exchange.untilCancelled() }
        let request = request.impatient
        // On a busy machine the time may be over before the request is sent.
        await eventually("a request") {
            let error = await #expect(throws: URLError.self) { try await cache.load(request, through: transport) }
            #expect(error?.code == .timedOut)
            return !transport.requests.isEmpty
        }
        await eventually("the cancellation") { transport.cancelled == transport.requests.count }
    }

    /// A load that waits for an equal load sends its own request when half of its time is over.
    @Test func aFollowerKeepsItsOwnTime() async throws {
        let goesOn = Flag()
        let transport = ClosureTransport { _, exchange in
            await goesOn.isSet()
            exchange.head(200, ["Cache-Control": "max-age=60"])
            await exchange.piece("body")
        }
        let leader = Task { [cache, request] in try await cache.load(request, through: transport).pieces() }
        await eventually("a request") { !transport.requests.isEmpty }
        var request = request
        request.timeoutInterval = 2
        // On a busy machine the whole time may be over before the wait begins.
        await eventually("a request of its own") {
            let error = await #expect(throws: URLError.self) { try await cache.load(request, through: transport) }
            #expect(error?.code == .timedOut)
            return transport.requests.count == 2
        }
        goesOn.set()
        #expect(try await leader.value == ["body"])
    }

    /// Nobody else would end it, and until it ends there is no other of the same.
    @Test(arguments: [false, true]) func aRefreshThatStopsEnds(hasHead: Bool) async throws {
        let isDown = Flag()
        let transport = ClosureTransport { _, exchange in
            if isDown.value, !hasHead { return await exchange.untilCancelled() }
            exchange.head(200, ["Cache-Control": "max-age=60, stale-while-revalidate=600"])
            await exchange.piece("body")
            if isDown.value { await exchange.untilCancelled() }
        }
        _ = try await cache.load(request, through: transport).pieces()
        isDown.set()
        clock.advance(by: 100)
        // On a busy machine the time may be over before the request is sent.
        try await eventually("a refresh that is sent") {
            let stream = try await cache.load(request.impatient, through: transport)
            #expect(stream.report.outcome == .staleHit(.memory, because: .staleWhileRevalidate))
            await eventually("the end of the refresh") { !cache.isRefreshing }
            return transport.requests.count >= 2
        }
        await eventually("the cancellation") { transport.cancelled == transport.requests.count - 1 }
    }

    // MARK: Readers

    @Test(arguments: [true, false], Door.allCases) func cancellingTheTaskCancelsTheRequest(
        hasHead: Bool, door: Door
    ) async throws {
        let transport = ClosureTransport { _, exchange in
            if hasHead { exchange.head(200, ["Cache-Control": "max-age=60"]) }
            await exchange.untilCancelled()
        }
        let task = Task { try await load(request, through: transport, door) }
        await eventually("a request") { !transport.requests.isEmpty }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await eventually("the cancellation") { transport.cancelled != 0 }
        #expect(transport.cancelled == 1)
    }

    /// 100 MB flow through, and at no time is more than the limit under way.
    @Test func aSlowReaderHoldsTheTransferUp() async throws {
        let piece = Data(count: 256 << 10)
        let sent = Mutex(0)
        let transport = ClosureTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "no-store"])
            for _ in 0..<400 {
                sent.withLock { $0 += piece.count }
                await exchange.receiver.receive(piece)
            }
        }
        let stream = try await cache.load(request, through: transport)
        var (read, mostAhead) = (0, 0)
        for try await piece in stream {
            read += piece.count
            for _ in 0..<10 { await Task.yield() }
            mostAhead = max(mostAhead, sent.withLock { $0 } - read)
        }
        #expect(read == 400 * piece.count)
        #expect(mostAhead <= ArrivingBody.memoryLimit + 2 * piece.count)
    }

    @Test func aReaderThatIsHeldUpCanGo() async throws {
        let transport = ClosureTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "no-store"])
            while !Task.isCancelled { await exchange.receiver.receive(Data(count: 1 << 20)) }
            exchange.noteCancellation()
        }
        var stream: DiskURLCache.ResponseStream? = try await cache.load(request, through: transport)
        #expect(stream != nil)
        stream = nil
        await eventually("the cancellation") { transport.cancelled != 0 }
    }

    /// The first reader reads nothing; the second one asks for itself.
    @Test func aSlowReaderDoesNotHoldUpOthers() async throws {
        let isPaused = Flag()
        let transport = ClosureTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            await exchange.receiver.receive(Data(count: 1 << 20))
            isPaused.set()
            for _ in 0..<7 { await exchange.receiver.receive(Data(count: 1 << 20)) }
        }
        let slow = try await cache.load(request, through: transport)
        await isPaused.isSet()
        let other = try await cache.load(request, through: transport)
        var count = 0
        for try await piece in other { count += piece.count }
        #expect(count == 8 << 20 && transport.requests.count == 2)
        #expect(slow.response.statusCode == 200)
    }

    // MARK: Requests

    @Test func variantsShareNothingButTheirInvalidation() async throws {
        let transport = ClosureTransport { request, exchange in
            exchange.head(200, request.httpMethod == "GET" ? ["Cache-Control": "max-age=60"] : [:])
            await exchange.piece("\(request.httpMethod ?? "")")
        }
        for (variant, isHit) in [(nil, false), ("coded", false), (nil, true), ("coded", true)] {
            let stream = try await cache.load(request, through: transport, variant: variant)
            _ = try await stream.pieces()
            #expect((stream.report.outcome == .hit(.memory)) == isHit)
        }
        var post = request
        post.httpMethod = "POST"
        _ = try await cache.load(post, through: transport).pieces()
        for variant in [nil, "coded"] {
            let stream = try await cache.load(request, through: transport, variant: variant)
            #expect(stream.report.outcome == .miss(.notInCache))
        }
    }

    @Test func redirectsAreFollowedUnlessTheCallerDecides() async throws {
        let transport = ClosureTransport { request, exchange in
            switch request.url?.path {
            case "/a": exchange.head(302, ["Location": "/b"])
            default: exchange.head(200)
            }
            await exchange.piece(request.url?.path ?? "")
        }
        let followed = try await cache.load(request, through: transport)
        #expect(try await followed.pieces() == ["/b"] && followed.url?.path == "/b")
        let refused = try await cache.load(request, through: transport) { _, _, _ in nil }
        #expect(try await refused.pieces() == ["/a"] && refused.response.statusCode == 302)
        let changed = try await cache.load(request, through: transport) { head, request, next in
            #expect(head.status == 302 && request.url.hasSuffix("/a") && next.url.hasSuffix("/b"))
            return DiskURLCache.Request(Responses.request("/c"))
        }
        #expect(try await changed.pieces() == ["/c"])
    }
}

/// What transports are made of.
@Suite(.fewAtATime) struct TransportPartsTests {
    /// Each is called at its time, whatever the order in which they were set, and none that was cancelled.
    @Test func timeoutsAreCalledInTheirOrder() async throws {
        let timeouts = Timeouts()
        let called = Mutex<[Int]>([])
        var ids: [Timeouts.ID?] = []
        for (number, seconds) in [(1, 0.1), (2, 0.01), (3, 0.05), (4, 0.02)] {
            ids.append(timeouts.after(seconds) { called.withLock { $0.append(number) } })
        }
        timeouts.cancel(ids[2])
        #expect(timeouts.after(.infinity) {} == nil)
        await eventually("three calls") { called.withLock({ $0.count }) >= 3 }
        #expect(called.withLock { $0 } == [2, 4, 1])
    }

    /// A time that is over already is now, and not in a second.
    @Test func aTimeBelowASecondIsNotLengthened() async throws {
        let timeouts = Timeouts()
        let called = Mutex<[String]>([])
        let later = timeouts.after(0.9) { called.withLock { $0.append("0.9 s") } }
        _ = timeouts.after(-1) { called.withLock { $0.append("now") } }
        await eventually("a call") { called.withLock { !$0.isEmpty } }
        timeouts.cancel(later)
        #expect(called.withLock { $0.first } == "now")
    }

    /// What was set for later than another time is not kept by the system as well.
    @Test func oneTimerServesAllTimeouts() async throws {
        weak var kept: Timeouts?
        do {
            let timeouts = Timeouts()
            kept = timeouts
            let late = timeouts.after(1_000_000) {}
            for _ in 0..<3 {
                await withCheckedContinuation { continuation in _ = timeouts.after(0.001) { continuation.resume() } }
            }
            timeouts.cancel(late)
        }
        await eventually("the release of the timeouts") { kept == nil }
    }

    /// The reader catches up on another thread while the transport is told to hold the transfer up.
    @Test func aPauseThatIsLateHoldsNothingUp() {
        let token = FetchToken()
        let isPaused = Mutex(false)
        let hasResumed = DispatchSemaphore(value: 0)
        @Sendable func pause(_ pauses: Bool) {
            guard pauses else { return isPaused.withLock { $0 = false } }
            DispatchQueue.global().async {
                token.setPaused(false)
                hasResumed.signal()
            }
            // Where resuming does not wait for this, it is over by then.
            if hasResumed.wait(timeout: .now() + .milliseconds(20)) == .success { hasResumed.signal() }
            isPaused.withLock { $0 = true }
        }
        let isWanted = token.didStart(cancel: {}, setPaused: pause)
        #expect(isWanted)
        token.setPaused(true)
        hasResumed.isSignalled("the transfer to go on")
        #expect(!isPaused.withLock { $0 })
    }
}

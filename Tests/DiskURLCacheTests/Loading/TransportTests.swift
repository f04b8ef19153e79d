import Dispatch
import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The engine over a network that is a closure: no sockets, no URLSession.
@Suite(.fewAtATime, .timeLimit(.minutes(30))) struct TransportTests {
    let scratch: ScratchDirectory
    let clock = ManualClock()

    init() throws {
        scratch = try ScratchDirectory("transport")
    }

    private func cache() -> DiskURLCache {
        DiskURLCache(in: scratch, clock: clock, memory: 1 << 20, disk: 10 << 20)
    }

    @Test func headPiecesAndEndBecomeAnAnswerThatIsStored() async throws {
        let cache = cache()
        let network = MemoryTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            exchange.piece("one")
            exchange.piece("two")
            exchange.end()
        }
        for source in [CacheAnswer.Source.network, .stored(.memory)] {
            let answer = try await LoadReader(Responses.request("/a"), from: cache, over: network).answer()
            #expect(answer.data == Data("onetwo".utf8) && answer.source == source)
        }
        #expect(network.requests.count == 1)
    }

    /// The reader catches up on another thread while the transport is told to hold the transfer up.
    @Test func aPauseThatIsLateHoldsNothingUp() {
        let token = FetchToken()
        let isPaused = Mutex(false)
        let hasResumed = DispatchSemaphore(value: 0)
        let controls = FetchControls(
            cancel: {},
            pause: {
                DispatchQueue.global().async {
                    token.resume()
                    hasResumed.signal()
                }
                // Where resuming does not wait for this, it is over by then.
                if hasResumed.wait(timeout: .now() + .milliseconds(20)) == .success { hasResumed.signal() }
                isPaused.withLock { $0 = true }
            },
            resume: { isPaused.withLock { $0 = false } })
        #expect(token.didStart(controls))
        token.pause()
        hasResumed.wait()
        #expect(!isPaused.withLock { $0 })
    }

    /// A body that has stopped holds up those that wait for it already, and nobody else. How long one waits the request says, or, as
    /// for the requests of a session, its transport.
    @Test(arguments: [true, false]) func whoComesToABodyThatHasStoppedAsksForItself(saidByTransport: Bool) async throws
    {
        let cache = cache()
        let network = MemoryTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            exchange.piece("has sto")
        }
        let other = MemoryTransport(timeout: saidByTransport ? 0 : nil) { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            exchange.piece("whole")
            exchange.end()
        }
        var request = Responses.request("/a")
        let stopped = LoadReader(request, from: cache, over: network, takesPieces: true)
        #expect(try await stopped.head().status == 200)
        let patient = LoadReader(request, from: cache, over: network, takesPieces: true)
        #expect(try await patient.next() == Data("has sto".utf8))
        if !saidByTransport { request.timeoutInterval = 0 }
        let late = LoadReader(request, from: cache, over: other, takesPieces: true)
        #expect(try await late.next() == Data("whole".utf8))
        #expect(try await late.next() == nil)
        #expect(network.requests.count == 1 && other.requests.count == 1 && stopped.report.isStored == nil)
        #expect(cache.cachedResponse(for: Responses.request("/a"))?.data == Data("whole".utf8))
    }

    @Test func aRedirectIsAHeadLikeAnyOther() async throws {
        let network = MemoryTransport { request, exchange in
            let isFirst = request.url?.path == "/a"
            exchange.head(isFirst ? 302 : 200, isFirst ? ["Location": "/b"] : ["Cache-Control": "max-age=60"])
            exchange.end()
        }
        let answer = try await LoadReader(Responses.request("/a"), from: cache(), over: network).answer()
        #expect(answer.response.url?.path == "/b")
        #expect(network.requests.map(\.url?.path) == ["/a", "/b"])
    }

    @Test func whatIsStaleIsConfirmed() async throws {
        let cache = cache()
        let network = MemoryTransport { request, exchange in
            if request.value(forHTTPHeaderField: "If-None-Match") == "\"1\"" {
                exchange.head(304, ["ETag": "\"1\"", "Cache-Control": "max-age=60"])
            } else {
                exchange.head(200, ["ETag": "\"1\"", "Cache-Control": "max-age=60"])
                exchange.piece("body")
            }
            exchange.end()
        }
        _ = try await LoadReader(Responses.request("/a"), from: cache, over: network).answer()
        clock.advance(by: 100)
        let answer = try await LoadReader(Responses.request("/a"), from: cache, over: network).answer()
        #expect(answer.source == .revalidated(.memory) && answer.data == Data("body".utf8))
    }

    @Test func aFailureIsThrown() async throws {
        let network = MemoryTransport { _, exchange in exchange.end(URLError(.networkConnectionLost)) }
        let error = await #expect(throws: URLError.self) {
            try await LoadReader(Responses.request("/a"), from: cache(), over: network).answer()
        }
        #expect(error?.code == .networkConnectionLost)
    }

    @Test func cancellingTheLoadCancelsTheRequest() async throws {
        let sent = Gate()
        let network = MemoryTransport { _, _ in sent.wait() }
        let cache = cache()
        let load = Task { try await LoadReader(Responses.request("/a"), from: cache, over: network).answer() }
        await sent.arrival()
        load.cancel()
        sent.open()
        await #expect(throws: CancellationError.self) { try await load.value }
        await eventually { network.cancelled != 0 }
        #expect(network.cancelled == 1)
    }
}

/// What a load brings must not undo what happened while it was under way (RFC 9111 §4.3.4, §4.4).
@Suite(.fewAtATime) struct LateAnswerTests {
    enum Change: CaseIterable, Sendable { case removeAll, remove, invalidate, replace }

    let cache: DiskURLCache
    let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let request = Responses.request("/a")

    init() throws {
        scratch = try ScratchDirectory("late")
        cache = DiskURLCache(in: scratch, clock: clock, memory: 1 << 20, disk: 10 << 20)
    }

    private func make(_ change: Change) {
        switch change {
        case .removeAll: cache.removeAllCachedResponses()
        case .remove: cache.removeCachedResponse(for: request)
        case .invalidate: cache.invalidate(Responses.url("/a"))
        case .replace:
            cache.storeCachedResponse(
                Responses.cached(Responses.url("/a"), "newer", fields: ["Cache-Control": "max-age=600"]), for: request)
        }
    }

    private var stored: String? {
        cache.cachedResponse(for: request).map { String(decoding: $0.data, as: UTF8.self) }
    }

    /// The second request waits until the change is made.
    private func network(_ gate: Gate, _ second: @escaping @Sendable (MemoryTransport.Exchange) -> Void)
        -> MemoryTransport
    {
        let count = Mutex(0)
        return MemoryTransport { _, exchange in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 {
                exchange.head(
                    200, ["ETag": "\"1\"", "Cache-Control": "max-age=10, stale-while-revalidate=1000"])
                exchange.piece("old")
                exchange.end()
            } else {
                gate.wait()
                second(exchange)
            }
        }
    }

    @Test(arguments: Change.allCases) func aLate304ServesItsCallerAndStoresNothing(change: Change) async throws {
        let gate = Gate()
        let network = network(gate) { exchange in
            exchange.head(304, ["ETag": "\"1\"", "Cache-Control": "max-age=600"])
            exchange.end()
        }
        _ = try await LoadReader(request, from: cache, over: network).answer()
        clock.advance(by: 100)
        var revalidating = request
        revalidating.cachePolicy = .reloadRevalidatingCacheData
        let late = Task { [revalidating] in
            try await LoadReader(revalidating, from: cache, over: network).answer()
        }
        await gate.arrival()
        clock.advance(by: 1)
        make(change)
        gate.open()
        let answer = try await late.value
        #expect(answer.data == Data("old".utf8) && answer.source == .revalidated(.memory))
        #expect(stored == (change == .replace ? "newer" : nil))
    }

    @Test(arguments: [Change.removeAll, .remove, .invalidate]) func aLateAnswerServesItsCallerAndStoresNothing(
        change: Change
    ) async throws {
        let gate = Gate()
        let network = MemoryTransport { _, exchange in
            gate.wait()
            exchange.head(200, ["Cache-Control": "max-age=600"])
            exchange.piece("late")
            exchange.end()
        }
        let events = cache.events()
        let late = Task { try await LoadReader(request, from: cache, over: network).answer() }
        await gate.arrival()
        make(change)
        gate.open()
        let answer = try await late.value
        #expect(answer.data == Data("late".utf8))
        #expect(answer.report.isStored == false && answer.report.notStoredReason == .removedMeanwhile)
        #expect(stored == nil)
        for await case .notStored(_, let reason) in events {
            #expect(reason == .removedMeanwhile)
            break
        }
    }

    /// A logout is not undone by what was being refreshed.
    @Test(arguments: Change.allCases) func aLateRefreshStoresNothing(change: Change) async throws {
        for isConfirmed in [true, false] {
            let gate = Gate()
            let network = network(gate) { exchange in
                exchange.head(
                    isConfirmed ? 304 : 200, ["ETag": isConfirmed ? "\"1\"" : "\"2\"", "Cache-Control": "max-age=600"])
                if !isConfirmed { exchange.piece("refreshed") }
                exchange.end()
            }
            _ = try await LoadReader(request, from: cache, over: network).answer()
            clock.advance(by: 100)
            #expect(try await LoadReader(request, from: cache, over: network).answer().isStale)
            await gate.arrival()
            clock.advance(by: 1)
            make(change)
            gate.open()
            await eventually { !cache.loads.isRefreshing }
            #expect(stored == (change == .replace ? "newer" : nil))
            cache.removeAllCachedResponses()
        }
    }
}

/// Loads that take pieces share one fetch, and each keeps what is its own.
@Suite(.fewAtATime, .timeLimit(.minutes(30))) struct SharedFetchTests {
    private let cache: DiskURLCache
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory("shared")
        cache = DiskURLCache(
            configuration: DiskURLCache.Configuration(
                memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.appending("cache")))
    }

    private func start(
        _ client: PieceClient, _ network: MemoryTransport, timeout: TimeInterval = TimeInterval(Patience.seconds)
    ) -> LoadDriver {
        var request = Responses.request("/a")
        request.timeoutInterval = timeout
        let driver = LoadDriver(cache: cache, request: request, transport: network, client: client)
        driver.start()
        return driver
    }

    private let fields: HeaderFields = ["Cache-Control": "max-age=86400", "ETag": "\"1\"", "Set-Cookie": "a=b"]

    @Test func aFollowerGetsWhatIsThereAndThenTheRest() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (first, second) = (PieceClient(), PieceClient())
        let leader = start(first, network)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        exchange.piece("one")
        let follower = start(second, network)
        await second.heard { $0.text == "one" }
        exchange.piece("two")
        exchange.end()
        for client in [first, second] {
            let all = await client.heard { $0.hasEnded }
            #expect(all.text == "onetwo" && all.error == nil && all.heads.count == 1)
        }
        // What only one may have is not shared.
        #expect(await second.heard { _ in true }.heads.first?.value(forHTTPHeaderField: "Set-Cookie") == nil)
        #expect(await second.heard { _ in true }.report?.isCollapsed == true)
        #expect(network.requests.count == 1)
        withExtendedLifetime((leader, follower)) {}
    }

    @Test func aLeaderThatGoesLeavesTheTransferToOthers() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (first, second) = (PieceClient(), PieceClient())
        let leader = start(first, network)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        exchange.piece("one")
        let follower = start(second, network)
        await second.heard { $0.text == "one" }
        leader.cancel()
        #expect(network.cancelled == 0)
        exchange.piece("two")
        await second.heard { $0.text == "onetwo" }
        // Nobody is left.
        follower.cancel()
        #expect(network.cancelled == 1)
        #expect(await first.heard { _ in true }.text == "one")
    }

    @Test(arguments: [true, false]) func afterAFailureTheRestIsFetchedWhereItIsTheSame(isSame: Bool) async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (first, second) = (PieceClient(), PieceClient())
        let leader = start(first, network)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        exchange.piece("one")
        let follower = start(second, network)
        await second.heard { $0.text == "one" }
        exchange.end(URLError(.timedOut))
        #expect((await first.heard { $0.hasEnded }.error as? URLError)?.code == .timedOut)
        let again = await exchanges.next(2)
        again.head(200, isSame ? fields : ["Cache-Control": "max-age=86400", "ETag": "\"2\""])
        again.piece("on")
        again.piece("etwo")
        again.end()
        let all = await second.heard { $0.hasEnded }
        #expect(all.heads.count == 1)
        if isSame {
            #expect(all.text == "onetwo" && all.error == nil)
            #expect(cache.cachedResponse(for: Responses.request("/a"))?.data == Data("onetwo".utf8))
        } else {
            #expect(all.text == "one" && (all.error as? URLError)?.code == .timedOut)
        }
        withExtendedLifetime((leader, follower)) {}
    }

    /// The shared transfer has the priority of its most urgent load.
    @Test func aFollowersPriorityCounts() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let clients = [0.3, 0.75, 0.5].map { PieceClient(priority: $0) }
        let leader = start(clients[0], network)
        let exchange = await exchanges.next(1)
        #expect(network.priorities == [0.3])
        // A follower looks up first, on another queue where the disk is not known yet.
        let urgent = start(clients[1], network)
        await eventually { network.priorities == [0.3, 0.75] }
        let other = start(clients[2], network)
        await eventually { cache.loads.followerCount == 2 }
        exchange.head(200, fields)
        exchange.end()
        for client in clients { _ = await client.heard { $0.hasEnded } }
        #expect(network.priorities == [0.3, 0.75])
        withExtendedLifetime((leader, urgent, other)) {}
    }

    @Test func aFollowerKeepsItsOwnTimeout() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (first, second) = (PieceClient(), PieceClient())
        let leader = start(first, network)
        let exchange = await exchanges.next(1)
        let follower = start(second, network, timeout: 0.05)
        #expect((await second.heard { $0.hasEnded }.error as? URLError)?.code == .timedOut)
        #expect(cache.loads.followerCount == 0)
        exchange.head(200, fields)
        exchange.piece("one")
        exchange.end()
        #expect(await first.heard { $0.hasEnded }.text == "one")
        withExtendedLifetime((leader, follower)) {}
    }

    @Test func aBodyTooLargeToStoreHoldsNobodyUp() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (first, second) = (PieceClient(), PieceClient())
        let leader = start(first, network)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        exchange.piece(Data(count: cache.largestStorableBody + 1))
        let other = start(second, network)
        // It is too late to follow: the body is not kept.
        (await exchanges.next(2)).end(URLError(.networkConnectionLost))
        #expect(await second.heard { $0.hasEnded }.error != nil)
        exchange.end()
        #expect(await first.heard { $0.hasEnded }.error == nil)
        withExtendedLifetime((leader, other)) {}
    }

    // MARK: The reader's pace

    @Test func aTransferIsHeldUpForAClientThatDoesNotKeepUp() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let client = PieceClient(takesItsTime: true)
        let driver = start(client, network)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        exchange.piece(Data(count: LoadDriver.undeliveredLimit))
        #expect(network.pauses == [])
        exchange.piece(Data(count: 1))
        #expect(network.pauses == [true])
        client.takeAll()
        driver.clientCaughtUp()
        #expect(network.pauses == [true, false])
        exchange.end()
        #expect(await client.heard { $0.hasEnded }.error == nil)
    }

    @Test func theReportOfAFailedLoadHasTheError() async throws {
        let network = MemoryTransport { _, exchange in exchange.end(URLError(.secureConnectionFailed)) }
        let client = PieceClient()
        let driver = start(client, network)
        let report = await client.heard { $0.hasEnded }.report
        #expect((report?.error as? URLError)?.code == .secureConnectionFailed)
        withExtendedLifetime(driver) {}
    }
}

/// A network on which the test itself says what comes.
final class Exchanges: Sendable {
    let all = Mutex<[MemoryTransport.Exchange]>([])
    func next(_ number: Int) async -> MemoryTransport.Exchange {
        await eventually { all.withLock({ $0.count }) >= number }
        return all.withLock { $0[number - 1] }
    }
}

/// Takes pieces, and writes down what it hears.
final class PieceClient: LoadClient {
    struct Record {
        var heads: [HTTPURLResponse] = []
        var data = Data()
        var report: CacheLoadReport?
        var error: (any Error)?
        var hasEnded = false
        var isClosed = false
        /// Of a body that was left in its file.
        var largestPiece = 0
        var isUnreadable = false
        var text: String { String(decoding: data, as: UTF8.self) }
    }

    private let state = Mutex((record: Record(), undelivered: 0))
    private let takesItsTime: Bool

    let priority: Float

    /// What it makes of a response about to be stored.
    private let confirms: (@Sendable (CachedURLResponse) -> CachedURLResponse?)?

    init(
        takesItsTime: Bool = false, priority: Float = 0.5,
        confirms: (@Sendable (CachedURLResponse) -> CachedURLResponse?)? = nil
    ) {
        self.takesItsTime = takesItsTime
        self.priority = priority
        self.confirms = confirms
    }

    var confirmsStorage: Bool { confirms != nil }

    func confirmStorage(
        of response: CachedURLResponse, completion: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        completion(confirms.map { $0(response) } ?? response)
    }

    var wantsSummary: Bool { true }
    var takesPieces: Bool { true }
    var undeliveredBytes: Int { state.withLock { $0.undelivered } }

    func takeAll() { state.withLock { $0.undelivered = 0 } }

    @discardableResult
    func heard(_ isMet: (Record) -> Bool) async -> Record {
        var record = Record()
        await eventually {
            record = state.withLock { $0.record }
            return isMet(record)
        }
        return record
    }

    func send(_ calls: [LoadCall]) { perform(calls) }

    func perform(_ calls: [LoadCall]) {
        state.withLock { state in
            guard !state.record.isClosed else { return }
            for call in calls {
                switch call {
                case .receive(let head):
                    if let http = head.response as? HTTPURLResponse { state.record.heads.append(http) }
                case .load(let data):
                    state.record.data += data
                    if takesItsTime { state.undelivered += data.count }
                case .read(var body):
                    while !body.isEmpty, let piece = body.next() {
                        state.record.data += piece
                        state.record.largestPiece = max(state.record.largestPiece, piece.count)
                    }
                    state.record.isUnreadable = !body.isEmpty
                case .finish(let summary):
                    state.record.report = summary?.loadReport
                    state.record.hasEnded = true
                case .fail(let error, let summary):
                    state.record.error = error
                    state.record.report = summary?.loadReport
                    state.record.hasEnded = true
                }
            }
        }
    }

    func close() { state.withLock { $0.record.isClosed = true } }
}

/// A network that answers from memory.
final class MemoryTransport: Transport {
    /// A request that is under way: the test says what comes back.
    struct Exchange: Sendable {
        let url: URL
        let token: FetchToken
        let receiver: any FetchReceiver

        func head(_ status: Int, _ fields: HeaderFields = [:]) {
            receiver.fetchReceived(URLResponse.http(url: url, status: status, fields: fields))
        }
        func piece(_ text: String) { piece(Data(text.utf8)) }
        func piece(_ data: Data) { receiver.fetchReceived(data) }
        func end(_ error: (any Error)? = nil) { receiver.fetchEnded(error) }
    }

    private struct State {
        var requests: [URLRequest] = []
        var cancelled = 0
        var pauses: [Bool] = []
        var priorities: [Float] = []
    }

    private let state = Mutex(State())
    private let answer: @Sendable (URLRequest, Exchange) -> Void
    private let timeout: TimeInterval?

    /// - Parameter timeout: seconds, for each request; nil where each has its own.
    init(timeout: TimeInterval? = nil, _ answer: @escaping @Sendable (URLRequest, Exchange) -> Void) {
        self.timeout = timeout
        self.answer = answer
    }

    func timeout(of request: URLRequest) -> TimeInterval? { timeout ?? request.timeoutInterval }

    var requests: [URLRequest] { state.withLock { $0.requests } }
    var cancelled: Int { state.withLock { $0.cancelled } }
    var priorities: [Float] { state.withLock { $0.priorities } }
    /// True for a pause, false for a resumption, in order.
    var pauses: [Bool] { state.withLock { $0.pauses } }

    func send(_ request: URLRequest, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        let controls = FetchControls(
            cancel: { [state] in state.withLock { $0.cancelled += 1 } },
            pause: { [state] in state.withLock { $0.pauses.append(true) } },
            resume: { [state] in state.withLock { $0.pauses.append(false) } },
            prioritize: { [state] priority in state.withLock { $0.priorities.append(priority) } })
        guard let url = request.url, token.didStart(controls) else { return }
        state.withLock { $0.requests.append(request) }
        let exchange = Exchange(url: url, token: token, receiver: receiver)
        DispatchQueue.global().async { [answer] in answer(request, exchange) }
    }
}

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

    /// A load waits for another one for half of the time that it has. How much that is the request says, or its transport.
    @Test(arguments: [true, false]) func aLoadThatWaitedLongEnoughAsksForItself(saidByTransport: Bool) async throws {
        let cache = cache()
        let network = MemoryTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            exchange.piece("has sto")
        }
        let other = MemoryTransport(patience: saidByTransport ? 0 : nil) { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            exchange.piece("whole")
            exchange.end()
        }
        var request = Responses.request("/a")
        let stopped = LoadReader(request, from: cache, over: network, takesPieces: true)
        #expect(try await stopped.head().status == 200)
        if !saidByTransport { request.timeoutInterval = 0.02 }
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

/// Equal loads share one fetch: a load that waits looks up again when the other one has ended.
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

    /// A first load whose request is sent, and others that wait for it.
    private func waiting(
        _ count: Int, on network: MemoryTransport, _ exchanges: Exchanges
    ) async -> (clients: [PieceClient], drivers: [LoadDriver], first: MemoryTransport.Exchange) {
        let clients = (0...count).map { _ in PieceClient() }
        var drivers = [start(clients[0], network)]
        let first = await exchanges.next(1)
        drivers += clients.dropFirst().map { start($0, network) }
        await eventually { cache.loads.waiterCount == count }
        return (clients, drivers, first)
    }

    @Test func aLoadThatWaitsGetsTheStoredAnswer() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (clients, drivers, first) = await waiting(3, on: network, exchanges)
        first.head(200, fields)
        first.piece("one")
        first.piece("two")
        #expect(cache.loads.waiterCount == 3)
        first.end()
        for (number, client) in clients.enumerated() {
            let all = await client.heard { $0.hasEnded }
            #expect(all.text == "onetwo" && all.error == nil && all.heads.count == 1)
            #expect(all.report?.isCollapsed == (number > 0))
            // What only one may have is not shared.
            #expect((all.heads.first?.value(forHTTPHeaderField: "Set-Cookie") == nil) == (number > 0))
        }
        #expect(network.requests.count == 1 && cache.loads.waiterCount == 0)
        withExtendedLifetime(drivers) {}
    }

    /// After a failure, and where the answer cannot be shared, not one after another.
    @Test(arguments: ["fails", "no-store", "no-cache", "breaks off"]) func allThatWaitedGoAtOnce(what: String)
        async throws
    {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (clients, drivers, first) = await waiting(4, on: network, exchanges)
        switch what {
        case "fails": first.end(URLError(.networkConnectionLost))
        case "breaks off":
            first.head(200, fields)
            first.piece("one")
            first.end(URLError(.networkConnectionLost))
        default: first.head(200, ["Cache-Control": what, "ETag": "\"1\""])
        }
        // Nothing was answered yet.
        _ = await exchanges.next(5)
        #expect(network.requests.count == 5)
        for exchange in exchanges.all.withLock({ $0.dropFirst() }) {
            exchange.head(200, fields)
            exchange.piece("own")
            exchange.end()
        }
        for client in clients.dropFirst() { #expect(await client.heard { $0.hasEnded }.text == "own") }
        withExtendedLifetime(drivers) {}
    }

    /// Where the last answer could not be shared, nothing is waited for; that is forgotten after a while, and with many other keys.
    @Test func aKeyWhoseAnswerCouldNotBeSharedIsRemembered() throws {
        let table = LoadTable()
        let key = try #require(KeyPolicy.standard.key(for: Responses.request("/a")))
        let (now, load) = (Date(timeIntervalSince1970: 1_790_000_000), ObjectIdentifier(table))
        func join(after seconds: TimeInterval) -> LoadTable.Place {
            table.join("a", of: key, as: load, patience: 60, now: now + seconds) { _ in }
        }
        #expect(join(after: 0) == .leads)
        table.release("a", of: key, now: now)
        #expect(join(after: 1) == .alone && join(after: 1) == .alone)
        // A clock that was set back.
        #expect(join(after: -3_600) == .leads)
        #expect(join(after: 1) == .waits)
        #expect(table.leave("a", load) && !table.leave("a", load))
        table.release("a", of: key, now: now)
        #expect(join(after: LoadTable.unsharedTime) == .leads)
        table.release("a", of: key, now: now)
        for number in 0..<LoadTable.unsharedLimit {
            let other = try #require(KeyPolicy.standard.key(for: Responses.request("/\(number)")))
            table.release("none", of: other, now: now)
        }
        #expect(join(after: 1) == .leads)
    }

    @Test func aLoadThatWaitsKeepsItsOwnTime() async throws {
        let exchanges = Exchanges()
        let network = MemoryTransport { _, exchange in exchanges.all.withLock { $0.append(exchange) } }
        let (first, second) = (PieceClient(), PieceClient())
        let leader = start(first, network)
        let exchange = await exchanges.next(1)
        let other = start(second, network, timeout: 0.05)
        let its = await exchanges.next(2)
        #expect(cache.loads.waiterCount == 0)
        for (exchange, text) in [(its, "its"), (exchange, "one")] {
            exchange.head(200, fields)
            exchange.piece(text)
            exchange.end()
        }
        #expect(await second.heard { $0.hasEnded }.text == "its")
        #expect(await first.heard { $0.hasEnded }.text == "one")
        withExtendedLifetime((leader, other)) {}
    }

    // MARK: The app's code

    /// Rules and keys are the app's: they may ask the cache, and wait for other threads that do. No lock of a load is held.
    @Test func noAppCodeUnderALock() async throws {
        let running = Mutex<LoadDriver?>(nil)
        let calls = Mutex(0)
        let asked = Mutex<DiskURLCache?>(nil)
        @Sendable func ask() {
            calls.withLock { $0 += 1 }
            guard let cache = asked.withLock({ $0 }) else { return }
            let isDone = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                _ = running.withLock { $0 }?.summarySoFar
                _ = cache.cachedResponse(for: Responses.request("/other"))
                isDone.signal()
            }
            #expect(isDone.wait(timeout: .now() + 60) == .success, "a lock is held")
        }
        let own = try ScratchDirectory("rules")
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: own.appending("cache"))
        configuration.clock = ManualClock().wallClock
        configuration.keyPolicy = .custom { request in
            if request.url?.path != "/other" { ask() }
            return request.url?.absoluteString
        }
        configuration.rules = [
            CacheRule(
                .request { request in
                    if request.url?.path != "/other" { ask() }
                    return false
                }, CacheTreatment(storage: .never))
        ]
        let cache = DiskURLCache(configuration: configuration)
        asked.withLock { $0 = cache }
        let network = MemoryTransport { request, exchange in
            let isFirst = request.url?.path == "/a"
            exchange.head(isFirst ? 302 : 200, isFirst ? ["Location": "/b"] : ["Cache-Control": "max-age=1"])
            exchange.piece("body")
            exchange.end()
        }
        for _ in 0..<2 {
            let client = PieceClient(confirms: { $0 })
            let driver = LoadDriver(cache: cache, request: Responses.request("/a"), transport: network, client: client)
            running.withLock { $0 = driver }
            driver.start()
            #expect(await client.heard { $0.hasEnded }.text == "body")
        }
        #expect(calls.withLock { $0 } > 4)
        asked.withLock { $0 = nil }
        running.withLock { $0 = nil }
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
        // It does not wait: the body is not kept.
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

    /// What it makes of a response about to be stored.
    private let confirms: (@Sendable (CachedURLResponse) -> CachedURLResponse?)?

    init(
        takesItsTime: Bool = false,
        confirms: (@Sendable (CachedURLResponse) -> CachedURLResponse?)? = nil
    ) {
        self.takesItsTime = takesItsTime
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
    }

    private let state = Mutex(State())
    private let answer: @Sendable (URLRequest, Exchange) -> Void
    private let patience: TimeInterval?

    /// - Parameter patience: seconds, for each request; nil where each has its own.
    init(patience: TimeInterval? = nil, _ answer: @escaping @Sendable (URLRequest, Exchange) -> Void) {
        self.patience = patience
        self.answer = answer
    }

    func patience(of request: URLRequest) -> TimeInterval { patience ?? request.timeoutInterval / 2 }

    var requests: [URLRequest] { state.withLock { $0.requests } }
    var cancelled: Int { state.withLock { $0.cancelled } }
    /// True for a pause, false for a resumption, in order.
    var pauses: [Bool] { state.withLock { $0.pauses } }

    func send(_ request: URLRequest, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        let controls = FetchControls(
            cancel: { [state] in state.withLock { $0.cancelled += 1 } },
            pause: { [state] in state.withLock { $0.pauses.append(true) } },
            resume: { [state] in state.withLock { $0.pauses.append(false) } })
        guard let url = request.url, token.didStart(controls) else { return }
        state.withLock { $0.requests.append(request) }
        let exchange = Exchange(url: url, token: token, receiver: receiver)
        DispatchQueue.global().async { [answer] in answer(request, exchange) }
    }
}

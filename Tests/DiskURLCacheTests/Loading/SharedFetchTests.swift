import Foundation
import Testing

@testable import DiskURLCache

/// Equal loads share one fetch: a load that waits looks up again when the other one has ended.
@Suite(.fewAtATime) struct SharedFetchTests {
    /// A redirect that may not be stored, and is not to be asked again yet, leads back to itself: the load ends.
    @Test(.enabled(if: LoadingHarness.storesForSessions)) func aHeldRedirectThatLeadsBackEnds() async throws {
        let origin = try OriginServer { request in
            .status(
                302, "Found", ["Location": request.path == "/a" ? "/b" : "/a", "Cache-Control": "no-store"])
        }
        let harness = try LoadingHarness { $0.rules = [DiskURLCache.Rule(for: .all, minimumInterval: 60)] }
        await #expect(throws: URLError.self) { try await harness.load(origin.url("/a")) }
        #expect(origin.requests.count < 100)
    }

    private let cache: DiskURLCache
    private let scratch: ScratchDirectory
    private let exchanges = Exchanges()
    private let network: MemoryTransport
    /// Loads that go on until the test is over.
    private let drivers = Mutex<[LoadDriver]>([])

    init() throws {
        scratch = try ScratchDirectory("shared")
        network = exchanges.network()
        cache = DiskURLCache(
            configuration: DiskURLCache.Configuration(
                memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.appending("cache")))
    }

    /// Later it is called on its queue.
    @Test func aClientIsCalledDirectlyInsideTheStartOnly() async {
        let first = PieceClient()
        first.starting { start(first) }
        let exchange = await exchanges.next(1)
        exchange.head(200, ["Cache-Control": "max-age=86400"])
        exchange.piece("body")
        exchange.end()
        #expect(await first.heard { $0.hasEnded }.directCalls.after == 0)
        // Memory has the response now.
        await eventually("the store") { cache.contains(Responses.request("/a")) }
        let second = PieceClient()
        second.starting { start(second) }
        let record = await second.heard { $0.hasEnded }
        #expect(record.text == "body" && record.directCalls.inside > 0)
    }

    @discardableResult private func start(_ client: PieceClient) -> LoadDriver {
        var request = Responses.request("/a")
        request.timeoutInterval = Patience.ofLoads
        let driver = LoadDriver(cache: cache, request: request, transport: network, client: client)
        drivers.withLock { $0.append(driver) }
        driver.start()
        return driver
    }

    private let fields: HeaderFields = ["Cache-Control": "max-age=86400", "ETag": "\"1\"", "Set-Cookie": "a=b"]

    /// A first load whose request is sent, and others that wait for it.
    private func waiting(_ count: Int) async -> (clients: [PieceClient], first: MemoryTransport.Exchange) {
        let clients = (0...count).map { _ in PieceClient() }
        start(clients[0])
        let first = await exchanges.next(1)
        for client in clients.dropFirst() { start(client) }
        await cache.untilLoadsWait(count)
        return (clients, first)
    }

    @Test func aLoadThatWaitsGetsTheStoredAnswer() async throws {
        let (clients, first) = await waiting(3)
        first.head(200, fields)
        first.piece("one")
        first.piece("two")
        first.end()
        for (number, client) in clients.enumerated() {
            let all = await client.heard { $0.hasEnded }
            #expect(all.text == "onetwo" && all.error == nil && all.heads.count == 1)
            #expect(all.report?.isCollapsed == (number > 0))
            // What only one may have is not shared.
            #expect((all.heads.first?.value(forHTTPHeaderField: "Set-Cookie") == nil) == (number > 0))
        }
        #expect(network.requests.count == 1)
    }

    /// After a failure, and where the answer cannot be shared, not one after another.
    @Test(arguments: ["fails", "no-store", "no-cache", "max-age=0", "breaks off"])
    func allThatWaitedGoAtOnce(what: String) async throws {
        let (clients, first) = await waiting(4)
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
    }

    /// The driver says so, too: the loads that come after an answer that could not be shared do not wait for each
    /// other.
    @Test func theDriverRemembersAKeyWhoseAnswerCannotBeShared() async throws {
        let (clients, first) = await waiting(1)
        first.head(200, ["Cache-Control": "no-store"])
        _ = await exchanges.next(2)
        let later = [PieceClient(), PieceClient()]
        for client in later { start(client) }
        _ = await exchanges.next(4)
        #expect(network.requests.count == 4)
        withExtendedLifetime(clients) {}
    }

    /// Calls the test when a load that has looked up is about to ask.
    private struct LateTransport: LoadTransport {
        let network: MemoryTransport
        let beforeAsking: @Sendable () -> Void

        var owner: ObjectIdentifier? {
            beforeAsking()
            return nil
        }

        func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
            network.send(request, inPieces: inPieces, token: token, receiver: receiver)
        }
    }

    /// Between the lookup of a load and its question to the table another load asks, stores and ends.
    @Test func aLoadThatLookedTooEarlyLooksAgain() async throws {
        let cache = DiskURLCache(
            configuration: DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0))
        let network = MemoryTransport { [fields] _, exchange in
            exchange.head(200, fields)
            exchange.piece("one")
            exchange.end()
        }
        let isFirst = Mutex(true)
        let late = LateTransport(network: network) {
            guard isFirst.disarm() else { return }
            let reader = LoadReader(Responses.request("/a"), from: cache, over: network)
            // The answer is stored on a queue.
            var patience = Patience()
            while !cache.contains(Responses.request("/a")), !patience.isOver() { usleep(1_000) }
            withExtendedLifetime(reader) {}
        }
        let answer = try await LoadReader(Responses.request("/a"), from: cache, over: late).answer()
        #expect(answer.data == Data("one".utf8) && !isFirst.withLock { $0 })
        #expect(network.requests.count == 1)
    }

    private func identity(_ key: RequestKey) -> FetchIdentity {
        FetchIdentity(key: key, owner: nil, lastRemoval: 0, fields: HeaderFields())
    }

    /// Where the last answer could not be shared, nothing is waited for; that is forgotten after a while, and with many
    /// other keys.
    @Test func aKeyWhoseAnswerCouldNotBeSharedIsRemembered() throws {
        let table = LoadTable()
        let key = try #require(DiskURLCache.KeyPolicy.standard.key(for: Responses.request("/a")))
        let (now, load) = (Date(timeIntervalSince1970: 1_790_000_000), ObjectIdentifier(table))
        func join(after seconds: TimeInterval) -> LoadTable.Role {
            table.join(identity(key), as: load, ended: table.endedFetches(of: key), now: now + seconds) { _ in }
        }
        #expect(join(after: 0) == .leads)
        table.release(identity(key), now: now)
        #expect(join(after: 1) == .alone && join(after: 1) == .alone)
        // A clock that was set back.
        #expect(join(after: -3_600) == .leads)
        #expect(join(after: 1) == .waits)
        #expect(table.leave(identity(key), load) && !table.leave(identity(key), load))
        table.release(identity(key), now: now)
        #expect(join(after: FetchLocks.unsharedTime) == .leads)
        table.release(identity(key), now: now)
        for number in 0..<LoadTable.keyLimit {
            let other = try #require(DiskURLCache.KeyPolicy.standard.key(for: Responses.request("/\(number)")))
            table.release(identity(other), now: now)
        }
        #expect(join(after: 1) == .leads)
    }

    /// A server that fails at once is not asked by each load; after a refresh that took longer, as long as that took.
    @Test(arguments: [(0, 1), (30, 30), (7_200, 600)] as [(TimeInterval, TimeInterval)])
    func aRefreshThatBroughtNothingIsNotTriedAgainForAWhile(took: TimeInterval, pause: TimeInterval) throws {
        let table = LoadTable()
        let key = try #require(DiskURLCache.KeyPolicy.standard.key(for: Responses.request("/a")))
        let start = Date(timeIntervalSince1970: 1_800_000_000)
        let end = start.addingTimeInterval(took)
        #expect(table.beginRefresh(key, now: start) && !table.beginRefresh(key, now: end))
        table.endRefresh(key, hasRefreshed: false, now: end)
        #expect(!table.beginRefresh(key, now: end.addingTimeInterval(pause - 0.001)))
        #expect(table.beginRefresh(key, now: end.addingTimeInterval(pause)))
        table.endRefresh(key, hasRefreshed: true, now: end.addingTimeInterval(pause))
        #expect(table.beginRefresh(key, now: end.addingTimeInterval(pause)))
    }

    /// Loads of one URL that each send a field of their own are told apart by their hashes, so that none is compared
    /// with all others. The order of fields and the case of names make no difference.
    @Test func fetchesOfAKeyAreTheSameByTheirFields() throws {
        let key = try #require(DiskURLCache.KeyPolicy.standard.key(for: Responses.request("/a")))
        func identity(_ fields: HeaderFields) -> FetchIdentity {
            FetchIdentity(key: key, owner: nil, lastRemoval: 0, fields: fields)
        }
        let identities = (0..<1_000).map { identity(["Accept": "*/*", "X-Request-Id": "\($0)"]) }
        #expect(Set(identities.map(\.hashValue)).count > 990)
        let spelled = identities.indices.map { identity(["x-request-id": "\($0)", "accept": "*/*"]) }
        #expect(spelled == identities && spelled.map(\.hashValue) == identities.map(\.hashValue))

        let table = LoadTable()
        func join(_ identity: FetchIdentity) -> LoadTable.Role {
            table.join(identity, as: ObjectIdentifier(table), ended: nil, now: Date()) { _ in }
        }
        #expect(identities.allSatisfy { join($0) == .leads })
        #expect(spelled.allSatisfy { join($0) == .waits } && table.waiterCount == 1_000)
        // The first of the key ends before the others.
        for identity in identities.prefix(500) { table.finish(identity) }
        #expect(spelled.prefix(500).allSatisfy { join($0) == .leads })
        #expect(spelled.dropFirst(500).allSatisfy { join($0) == .waits } && table.waiterCount == 500)
        for identity in identities { table.finish(identity) }
        #expect(table.waiterCount == 0 && identities.allSatisfy { join($0) == .leads })
    }

    /// Each load joins and leaves without a look at the others, however many wait for one slow answer.
    @Test func eightThousandLoadsThatWaitCostWhatEachCosts() {
        struct Load: Hashable {
            static let comparisons = Mutex(0)
            let number: Int
            static func == (left: Load, right: Load) -> Bool {
                comparisons.withLock { $0 += 1 }
                return left.number == right.number
            }
            func hash(into hasher: inout Hasher) { hasher.combine(number) }
        }
        let waiters = LoadTable.Waiters<Load>()
        let woken = Mutex<[Int]>([])
        let count = 8_000
        for number in 0..<count { waiters.add(Load(number: number)) { _ in woken.withLock { $0.append(number) } } }
        for number in 0..<count / 2 { #expect(waiters.remove(Load(number: number * 2))) }
        #expect(waiters.count == count / 2)
        for wake in waiters.inOrder { wake(false) }
        #expect(woken.withLock { $0 } == (0..<count / 2).map { $0 * 2 + 1 })
        #expect(Load.comparisons.withLock { $0 } < 8 * count)
    }

    /// A load waits for an equal load for half of its own time. The request says how much that is, or its transport.
    @Test(arguments: [true, false]) func aLoadThatWaitedLongEnoughAsksForItself(saidByTransport: Bool) async throws {
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
        let stopped = LoadReader(request, from: cache, over: network, acceptsPieces: true)
        #expect(try await stopped.head().status == 200)
        if !saidByTransport { request.timeoutInterval = 0.02 }
        var attempts = 0
        while true {
            attempts += 1
            let late = LoadReader(request, from: cache, over: other, acceptsPieces: true)
            do {
                #expect(try await late.next() == Data("whole".utf8))
                #expect(try await late.next() == nil)
                break
            } catch let error as URLError where error.code == .timedOut && request.timeoutInterval < 20 {
                // A busy machine has not brought the answer in that time.
                request.timeoutInterval *= 4
            }
        }
        #expect(network.requests.count == 1 && stopped.report.isStored == nil)
        #expect((1...attempts).contains(other.requests.count))
        #expect(cache.cachedResponse(for: Responses.request("/a"))?.data == Data("whole".utf8))
    }

    /// A caller that would wait for ever does not hold up others: neither a load that waits for its answer, nor those
    /// that get the stored response as long as nothing replaces it.
    @Test func whatOthersWaitForEnds() async throws {
        let clock = ManualClock()
        let cache = DiskURLCache(in: scratch, clock: clock, memory: 1 << 20, disk: 10 << 20)
        var request = Responses.request("/a")
        for (own, forOthers) in [(TimeInterval.infinity, 60.0), (3_600, 60), (5, 5)] {
            request.timeoutInterval = own
            #expect(network.timeoutForOthers(of: DiskURLCache.Request(request)) == forOthers)
        }
        request.timeoutInterval = .infinity
        let leader = LoadReader(request, from: cache, over: network)
        let answer = await exchanges.next(1)
        let waiting = LoadReader(request, from: cache, over: network)
        await cache.untilLoadsWait(1)
        await eventually("a deadline of the wait") { waiting.driver?.state.withLock { $0.deadline != nil } == true }
        answer.head(200, ["Cache-Control": "max-age=60, stale-while-revalidate=600"])
        answer.end()
        for load in [leader, waiting] { _ = try await load.answer() }
        clock.advance(by: 100)
        let stale = LoadReader(request, from: cache, over: network)
        #expect(try await stale.answer().isStale)
        let refresh = await exchanges.next(2)
        let driver = try #require(refresh.receiver as? LoadDriver)
        #expect(driver.state.withLock { $0.deadline != nil })
        refresh.end()
    }

    // MARK: The app's code

    /// Rules and keys are the app's: they may ask the cache, and wait for other threads that do. No lock of a load is
    /// held.
    @Test func noAppCodeUnderALock() async throws {
        let running = Mutex<LoadDriver?>(nil)
        let calls = Mutex(0)
        let asked = Mutex<DiskURLCache?>(nil)
        @Sendable func ask() {
            calls.withLock { $0 += 1 }
            guard let cache = asked.withLock({ $0 }) else { return }
            let isDone = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                _ = running.withLock { $0 }?.report
                _ = cache.cachedResponse(for: Responses.request("/other"))
                isDone.signal()
            }
            isDone.isSignalled("a lock that is held")
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
            DiskURLCache.Rule(
                for: .request { request in
                    if request.url?.path != "/other" { ask() }
                    return false
                }, storage: .never)
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
        let (first, second) = (PieceClient(), PieceClient())
        start(first)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        exchange.piece(Data(count: cache.store.largestStorableBody + 1))
        start(second)
        // It does not wait: the body is not kept.
        (await exchanges.next(2)).end(URLError(.networkConnectionLost))
        #expect(await second.heard { $0.hasEnded }.error != nil)
        exchange.end()
        #expect(await first.heard { $0.hasEnded }.error == nil)
    }

    // MARK: The reader's pace

    @Test func aTransferIsHeldUpForAClientThatDoesNotKeepUp() async throws {
        let client = PieceClient(takesItsTime: true)
        start(client)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        exchange.piece(Data(count: ArrivingBody.memoryLimit))
        #expect(network.pauses == [])
        exchange.piece(Data(count: 1))
        #expect(network.pauses == [true])
        client.catchUp()
        #expect(network.pauses == [true, false])
        exchange.end()
        #expect(await client.heard { $0.hasEnded }.error == nil)
    }
}

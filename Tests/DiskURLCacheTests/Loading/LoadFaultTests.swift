import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What loads do when something fails while they run, or happens at a bad moment.
@Suite(.fewAtATime) struct LoadFaultTests {
    let cache: DiskURLCache
    let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let request = Responses.request("/a")
    private let exchanges = Exchanges()

    init() throws {
        scratch = try ScratchDirectory("load-fault")
        cache = DiskURLCache(in: scratch, clock: clock, memory: 64 << 20, disk: 64 << 20)
    }

    private func fill(_ fields: HeaderFields, _ body: String = "old") async throws {
        let network = MemoryTransport { _, exchange in
            exchange.head(200, fields)
            exchange.piece(body)
            exchange.end()
        }
        _ = try await LoadReader(request, from: cache, over: network).answer()
    }

    /// What was asked before the change may be the state before it.
    @Test func whoAsksAfterAChangeJoinsNoLoadFromBeforeIt() async throws {
        let network = exchanges.network()
        let first = LoadReader(request, from: cache, over: network, acceptsPieces: true)
        let exchange = await exchanges.next(1)
        exchange.head(200, ["Cache-Control": "max-age=60"])
        exchange.piece("before")
        _ = try await first.head()
        var post = request
        post.httpMethod = "POST"
        let changing = LoadReader(post, from: cache, over: network, acceptsPieces: true)
        let answer = await exchanges.next(2)
        answer.head(204)
        answer.end()
        #expect(try await changing.next() == nil)
        let second = LoadReader(request, from: cache, over: network, acceptsPieces: true)
        await eventually("three requests") { network.requests.count == 3 }
        exchange.end()
        let third = await exchanges.next(3)
        third.head(200, ["Cache-Control": "max-age=60"])
        third.piece("after")
        third.end()
        #expect(try await second.next() == Data("after".utf8))
        withExtendedLifetime(first) {}
    }

    /// A transport may still report about a request that the load has cancelled and sent anew: without a condition,
    /// since the 304 fits nothing that is stored.
    @Test(arguments: ["head", "piece", "end", "error", "credentials"])
    func whatComesOfACancelledRequestIsNotTakenForTheNextOnes(what: String) async throws {
        try await fill(["Cache-Control": "max-age=0", "ETag": "\"1\""])
        let network = exchanges.network()
        let reader = LoadReader(request, from: cache, over: network)
        let first = await exchanges.next(1)
        first.head(304, ["ETag": "\"other\""])
        let second = await exchanges.next(2)
        switch what {
        case "head": first.head(203, ["Cache-Control": "max-age=60"])
        case "piece": break
        case "end": first.end()
        case "credentials": first.receiver.fetchUsedCredentials(first.token)
        default: first.end(URLError(.networkConnectionLost))
        }
        second.head(200, ["Cache-Control": "max-age=60"])
        second.piece("n")
        if what == "piece" { first.piece("old") }
        second.piece("ew")
        second.end()
        let answer = try await reader.answer()
        #expect(answer.response.statusCode == 200 && answer.data == Data("new".utf8) && answer.report.isStored == true)
        let stored = try #require(cache.cachedResponse(for: request))
        #expect(stored.data == Data("new".utf8) && (stored.response as? HTTPURLResponse)?.statusCode == 200)
    }

    /// Foundation reports the head of each part of a multipart answer. The answer's own head is the first one.
    @Test(arguments: [true, false]) func theHeadOfALaterPartIsNotTheAnswers(inPieces: Bool) async throws {
        let reader = LoadReader(request, from: cache, over: exchanges.network(), acceptsPieces: inPieces)
        let exchange = await exchanges.next(1)
        exchange.head(200, ["Cache-Control": "max-age=60", "X-Part": "none"])
        exchange.piece("a")
        exchange.head(200, ["X-Part": "second"])
        exchange.piece("b")
        exchange.end()
        let head = try await inPieces ? reader.head() : DeliveredHead(reader.answer().response)
        #expect(head.fields["X-Part"] == "none")
        await eventually("a stored response") { cache.contains(request) }
        let stored = try #require(cache.cachedResponse(for: request)?.response as? HTTPURLResponse)
        #expect(stored.value(forHTTPHeaderField: "X-Part") == "none")
    }

    /// The load's own time ends at the same moment as the request's, and before it where the disk was asked first.
    @Test(arguments: [DiskURLCache.Layer.memory, .disk]) func aStoredAnswerStandsInForATransportThatHangs(
        layer: DiskURLCache.Layer
    )
        async throws
    {
        try await fill(["Cache-Control": "max-age=60, stale-if-error=6000"])
        clock.advance(by: 100)
        struct Hangs: DiskURLCache.Transport {
            func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
                try await Task.sleep(for: .seconds(60))
            }
        }
        var request = request
        request.timeoutInterval = 0.05
        var answers = 0
        var layers: Set = [layer]
        while answers < 8 {
            if layer == .disk {
                cache.flush()
                cache.store.memory.removeAll()
            }
            do {
                let stream = try await cache.load(request, through: Hangs())
                #expect(layers.contains { stream.report.outcome == .staleHit($0, because: .staleIfError) })
                answers += 1
            } catch let error as URLError where error.code == .timedOut && request.timeoutInterval < 20 {
                // A busy machine has not looked at the disk in that time. It brings into memory what it still finds.
                request.timeoutInterval *= 4
                layers.insert(.memory)
            }
        }
    }

    /// The time for a head may be over just before the request is sent: then it is not sent, though the stored response
    /// that answers instead is still being read.
    @Test(arguments: ["before the load has its role", "after it"])
    func aRequestThatIsTooLateIsNotSent(moment: String) async throws {
        /// Gives up the network of its load at the moment at which it is asked for something, on another thread.
        final class Hooks: LoadTransport, LoadClient {
            let network: MemoryTransport
            let isEarly: Bool
            let isReading: DispatchSemaphore
            let driver = Mutex<LoadDriver?>(nil)
            let length = Mutex<Int?>(nil)

            init(_ network: MemoryTransport, isEarly: Bool, isReading: DispatchSemaphore) {
                self.network = network
                self.isEarly = isEarly
                self.isReading = isReading
            }

            private func giveUp() {
                guard let driver = driver.withLock({ $0 }) else { return }
                Thread.detachNewThread { driver.endTimeForHead(of: Patience.ofLoads) }
                isReading.isSignalled("the reading of the stored response")
            }

            var owner: ObjectIdentifier? {
                if isEarly { giveUp() }
                return nil
            }
            var priority: Float {
                if !isEarly { giveUp() }
                return 0.5
            }
            func send(
                _ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver
            ) {
                network.send(request, inPieces: inPieces, token: token, receiver: receiver)
            }
            func send(_ calls: [LoadCall]) { perform(calls) }
            func perform(_ calls: [LoadCall]) {
                for case .load(let data) in calls { length.withLock { $0 = data.count } }
            }
            func close() {}
        }
        let files = FaultyFileSystem()
        let scratch = try ScratchDirectory("too-late")
        let cache = DiskURLCache(in: scratch, clock: clock, memory: 1 << 20, disk: 64 << 20) { $0.fileSystem = files }
        let url = try #require(request.url)
        cache.storeCachedResponse(
            CachedURLResponse(
                response: Responses.http(url, fields: ["Cache-Control": "max-age=1, stale-if-error=600"]),
                data: Data(count: 2 << 20)),
            for: request)
        cache.flush()
        cache.store.memory.removeAll()
        clock.advance(by: 100)
        let network = exchanges.network()
        let (isReading, mayRead) = (DispatchSemaphore(value: 0), Gate())
        let hooks = Hooks(network, isEarly: moment.hasPrefix("before"), isReading: isReading)
        let driver = LoadDriver(cache: cache, request: request, transport: hooks, client: hooks)
        hooks.driver.withLock { $0 = driver }
        let stored = StoredResponses.find(for: driver.state.withLock { $0.hop }, in: cache.core).read()
        // The lookup has read the head only.
        #expect(stored.variants.count == 1 && stored.variants[0].entry == nil)
        files.rule = { call in
            guard call.isRecord, call.operation == .read, driver.state.withLock({ $0.machine.timeout }) != nil else {
                return nil
            }
            isReading.signal()
            mayRead.wait()
            return nil
        }
        let now = clock.now
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                // Comes back when the request is sent, or is not.
                driver.handle(.found(stored, now: now), at: .files)
                continuation.resume()
            }
        }
        hooks.driver.withLock { $0 = nil }
        mayRead.open()
        await eventually("the stored answer") { hooks.length.withLock { $0 } == 2 << 20 }
        try #require(network.requests.isEmpty)
        // Nobody waits for it either.
        let next = LoadReader(request, from: cache, over: network)
        let exchange = await exchanges.next(1)
        exchange.head(200, ["Cache-Control": "max-age=60"])
        exchange.piece("new")
        exchange.end()
        #expect(try await next.answer().data == Data("new".utf8))
    }
}

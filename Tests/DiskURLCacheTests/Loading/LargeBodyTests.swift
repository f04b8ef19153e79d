import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Bodies above a megabyte are written while they arrive, and read in pieces.
@Suite(.fewAtATime) struct LargeBodyTests {
    private let scratch: ScratchDirectory
    private let files = FaultyFileSystem()
    private let clock = ManualClock()
    private let exchanges = Exchanges()
    private let network: MemoryTransport
    /// Loads that go on until the test is over.
    private let drivers = Mutex<[LoadDriver]>([])
    private let url = "/large"

    init() throws {
        scratch = try ScratchDirectory("large")
        network = exchanges.network()
    }

    private var directory: String { scratch.appending("cache").path }

    private func cache(
        memory: Int = 1 << 20, disk: Int = 64 << 20,
        _ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
    ) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("cache"))
        configuration.clock = clock.wallClock
        configuration.fileSystem = files
        configure(&configuration)
        let cache = DiskURLCache(configuration: configuration)
        cache.flush()
        return cache
    }

    /// Not a multiple of anything.
    private static let length = (3 << 20) + 12_345
    private static let body = testBody(7, length: length)
    private let fields: HeaderFields = ["Cache-Control": "max-age=86400", "ETag": "\"1\""]

    private func start(
        _ cache: DiskURLCache, _ client: PieceClient, _ fields: [String: String] = [:]
    ) {
        let driver = LoadDriver(
            cache: cache, request: Responses.request(url, fields: fields), transport: network, client: client)
        drivers.withLock { $0.append(driver) }
        driver.start()
    }

    /// Begins a load, and sends the head and the body up to there, in pieces of odd lengths.
    private func begin(
        _ cache: DiskURLCache, _ client: PieceClient, until end: Int = length, declares: Bool = false,
        number: Int = 1
    ) async -> MemoryTransport.Exchange {
        start(cache, client)
        let exchange = await exchanges.next(number)
        var fields = fields
        if declares { fields.set("Content-Length", "\(Self.length)") }
        exchange.head(200, fields)
        send(exchange, 0..<end)
        return exchange
    }

    private func send(_ exchange: MemoryTransport.Exchange, _ range: Range<Int>) {
        for start in stride(from: range.lowerBound, to: range.upperBound, by: 100_003) {
            exchange.piece(Self.body[start..<min(start + 100_003, range.upperBound)])
        }
    }

    /// Loads the body to its end.
    private func store(in cache: DiskURLCache) async {
        let client = PieceClient()
        let exchange = await begin(cache, client)
        exchange.end()
        await client.heard { $0.hasEnded }
    }

    private func names(_ folder: String = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory + folder)) ?? []).sorted()
    }

    private var incoming: [String] { names().filter { $0.hasPrefix("incoming-") } }

    /// The file of the body is there, and has a part of it.
    private var hasIncomingBytes: Bool {
        incoming.contains { (try? SystemFiles().status(at: directory + "/" + $0).size) ?? 0 > 0 }
    }

    private func expectNothing(in cache: DiskURLCache, _ comment: Comment? = nil) async {
        // It is removed on the queue of the body, and its space is given back after that.
        await eventually("no file of a body") { incoming == [] }
        await eventually("no space for a body") { (cache.store.disk as? DiskStore)?.incoming.bytes == 0 }
        cache.flush()
        #expect(names("/records") == [], comment)
        #expect(!cache.contains(Responses.request(url)), comment)
        // On a busy machine that queue may have begun only now.
        await eventually("no space for a body that came late") { (cache.store.disk as? DiskStore)?.incoming.bytes == 0 }
        #expect(!cache.contains(Responses.request(url)), comment)
    }

    // MARK: Storing

    @Test(arguments: [true, false]) func aLargeBodyIsWrittenWhileItArrivesAndServedWhole(declares: Bool) async throws {
        let cache = cache()
        let client = PieceClient()
        let exchange = await begin(cache, client, until: 2 << 20, declares: declares)
        await eventually("a file of the body") { incoming.count == 1 }
        let name = try #require(incoming.first)
        let path = directory + "/" + name
        // The rest is in memory.
        await eventually("most of the body in its file") {
            (try? SystemFiles().status(at: path).size) ?? 0 >= (2 << 20) - ArrivingBody.memoryLimit
        }
        #expect(try SystemFiles().status(at: path).permissions == 0o600)
        // Nothing of it is to be found before it is whole.
        #expect(names("/records") == [] && !cache.contains(Responses.request(url)))
        send(exchange, 2 << 20..<Self.length)
        exchange.end()
        let record = await client.heard { $0.hasEnded }
        #expect(record.data == Self.body && record.error == nil && record.report?.isStored == true)
        #expect(incoming == [] && names("/records").count == 1)
        #expect(cache.store.memory.totalCost == 0)
        #expect((cache.store.disk as? DiskStore)?.incoming.bytes == 0)
        for _ in 0..<2 {
            let hit = PieceClient()
            start(cache, hit)
            let record = await hit.heard { $0.hasEnded }
            #expect(record.data == Self.body && record.report?.outcome == .hit(.disk))
            #expect(record.largestPiece == OpenBody.pieceLength)
        }
        #expect(cache.cachedResponse(for: Responses.request(url))?.data == Self.body)
        #expect(network.requests.count == 1)
        cache.flush()
        let usage = cache.currentDiskUsage
        // Another cache reads the same.
        let store = DiskStore(configuration: .init(directory: directory, capacity: 64 << 20))
        #expect(store.body(DiskURLCache.KeyPolicy.standard.key(for: Responses.request(url))!) == Self.body)
        #expect(store.usage == usage)
        store.close()
    }

    /// The system has stopped the load: what its client has not taken by then is not for it.
    @Test func aClientHearsNothingAfterACancellation() async {
        let cache = cache()
        let client = PieceClient(takesItsTime: true)
        let exchange = await begin(cache, client, until: 100_000)
        drivers.withLock { $0.last }?.cancel()
        exchange.end()
        client.catchUp()
        let record = await client.heard { $0.isClosed }
        #expect(record.heads.isEmpty && record.data.isEmpty && !record.hasEnded)
    }

    @Test func aSmallBodyTakesTheOldPath() async throws {
        let cache = cache(memory: 8 << 20)
        _ = files.takeCalls()
        let client = PieceClient()
        let exchange = await begin(cache, client, until: TieredStore.gatheringLimit)
        #expect(!files.takeCalls().contains { $0.name.hasPrefix("incoming") })
        exchange.end()
        await client.heard { $0.hasEnded }
        #expect(cache.store.memory.totalCost > 1 << 20)
    }

    @Test(arguments: ["rule", "lifetime", "no disk layer"])
    func whatDoesNotGoToDiskGoesToNoFile(what: String) async throws {
        let cache = cache(memory: 16 << 20, disk: what == "no disk layer" ? 0 : 64 << 20) { configuration in
            switch what {
            case "rule": configuration.rules = [DiskURLCache.Rule(for: .all, storage: .memoryOnly)]
            case "lifetime": configuration.minimumDiskLifetime = 1_000_000
            default: break
            }
        }
        _ = files.takeCalls()
        await store(in: cache)
        #expect(!files.takeCalls().contains { $0.name.hasPrefix("incoming") })
        #expect(cache.cachedResponse(for: Responses.request(url))?.data == Self.body)
        cache.flush()
        #expect(names("/records") == [])
    }

    // MARK: What is not stored

    @Test(arguments: ["cut short", "cancelled", "too large", "said to be too large"])
    func whatDoesNotArriveWholeLeavesNothing(what: String) async throws {
        let isTooLarge = what.hasSuffix("too large")
        // Half of it is the largest entry.
        let cache = cache(disk: isTooLarge ? 4 << 20 : 64 << 20)
        let client = PieceClient()
        _ = files.takeCalls()
        let exchange = await begin(
            cache, client, until: isTooLarge ? Self.length : 2 << 20, declares: what == "said to be too large")
        switch what {
        case "cut short": exchange.end(URLError(.networkConnectionLost))
        case "cancelled": drivers.withLock { $0.last }?.cancel()
        case "said to be too large":
            #expect(!files.takeCalls().contains { $0.name.hasPrefix("incoming") })
            exchange.end()
        default: exchange.end()
        }
        if what != "cancelled" {
            let record = await client.heard { $0.hasEnded }
            #expect(record.data == Self.body.prefix(record.data.count))
            #expect(record.report?.isStored != true)
            if isTooLarge {
                guard record.report?.notStoredReason?.code == "too-large" else {
                    Issue.record("\(String(describing: record.report))")
                    return
                }
                #expect(record.data == Self.body)
            }
        }
        await expectNothing(in: cache, "\(what)")
    }

    @Test(
        "A disk that fails: the load goes on, the body is not stored, what was stored stays",
        arguments: [ENOSPC, EIO, EMFILE], [FaultyFileSystem.Operation.open, .write, .status, .rename])
    func aDiskThatFails(code: Int32, operation: FaultyFileSystem.Operation) async throws {
        let cache = cache()
        let old = CachedURLResponse(
            response: Responses.http(Responses.url(url), fields: ["Cache-Control": "max-age=1"]), data: Data("old".utf8)
        )
        cache.storeCachedResponse(old, for: Responses.request(url))
        cache.flush()
        clock.advance(by: 100)
        let events = cache.events()
        for isLate in [false, true] {
            let client = PieceClient()
            let fault: @Sendable (FaultyFileSystem.Call) -> FaultyFileSystem.Fault? = { call in
                call.operation == operation && call.name.hasPrefix("incoming") ? .error(code) : nil
            }
            if !isLate { files.rule = fault }
            let exchange = await begin(cache, client, until: 2 << 20, number: isLate ? 2 : 1)
            if isLate { await eventually("a file with bytes") { hasIncomingBytes } }
            files.rule = fault
            send(exchange, 2 << 20..<Self.length)
            exchange.end()
            let record = await client.heard { $0.hasEnded }
            files.rule = { _ in nil }
            #expect(record.data == Self.body && record.error == nil)
            // An open file needs no other.
            if isLate, operation == .open { continue }
            let reason = DiskURLCache.Reason.diskFailed(errno: code).description
            #expect(record.report?.isStored == false && record.report?.notStoredReason?.description == reason)
            let notStored = await events.notStored()
            #expect(notStored?.url == Responses.url(url) && notStored?.reason.description == reason)
            await eventually("no file of a body") { incoming == [] }
            cache.flush()
            #expect(cache.cachedResponse(for: Responses.request(url))?.data == Data("old".utf8))
            #expect(names("/records").count == 1)
        }
    }

    /// Neither the delegate nor the app is asked whether to store what cannot be stored.
    @Test func nobodyIsAskedAboutABodyThatCouldNotBeWritten() async throws {
        let asked = Mutex(0)
        let cache = cache { configuration in
            configuration.willCacheResponse = { response, _ in
                asked.withLock { $0 += 1 }
                return response
            }
        }
        files.rule = { $0.operation == .write && $0.name.hasPrefix("incoming") ? .error(ENOSPC) : nil }
        let client = PieceClient()
        let exchange = await begin(cache, client)
        exchange.end()
        let record = await client.heard { $0.hasEnded }
        #expect(record.data == Self.body && record.report?.isStored == false)
        #expect(asked.withLock { $0 } == 0)
    }

    /// Nor about a body that was discarded while the question waited for the disk.
    @Test func nobodyIsAskedForALoadThatWasCancelled() async throws {
        let asked = Flag()
        let cache = cache { configuration in
            configuration.willCacheResponse = { response, _ in
                asked.set()
                return response
            }
        }
        let gate = Gate()
        defer { gate.open() }
        files.rule = { call in
            if call.operation == .write, call.name.hasPrefix("incoming") { gate.wait() }
            return nil
        }
        let exchange = await begin(cache, PieceClient())
        exchange.end()
        let driver = try #require(drivers.withLock { $0.first })
        let queue = try #require(driver.state.withLock { $0.body }?.fileQueue)
        driver.cancel()
        gate.open()
        queue.sync {}
        #expect(!asked.value)
    }

    @Test(arguments: [true, false]) func whatMemoryKeepsNeedsNoDisk(isLate: Bool) async throws {
        let cache = cache(memory: 16 << 20)
        let client = PieceClient()
        let fault: @Sendable (FaultyFileSystem.Call) -> FaultyFileSystem.Fault? = { call in
            call.operation == .write && (call.isRecord || call.name.hasPrefix("incoming")) ? .error(ENOSPC) : nil
        }
        if !isLate { files.rule = fault }
        let exchange = await begin(cache, client, until: 2 << 20)
        if isLate { await eventually("a file with bytes") { hasIncomingBytes } }
        files.rule = fault
        send(exchange, 2 << 20..<Self.length)
        exchange.end()
        #expect(await client.heard { $0.hasEnded }.report?.isStored == true)
        await eventually("no file of a body") { incoming == [] }
        #expect(cache.cachedResponse(for: Responses.request(url))?.data == Self.body)
    }

    /// Of the last request of the load, not of the first one.
    @Test func theEventOfABodyThatTheDiskRefusesNamesItsURL() async throws {
        let cache = cache()
        files.rule = { $0.operation == .write && $0.name.hasPrefix("incoming") ? .error(ENOSPC) : nil }
        let network = MemoryTransport { request, exchange in
            if request.url?.path == "/first" {
                exchange.head(302, ["Location": "/last"])
            } else {
                exchange.head(200, ["Cache-Control": "max-age=60"])
                exchange.piece(Self.body)
            }
            exchange.end()
        }
        let events = cache.events()
        _ = try await LoadReader(Responses.request("/first"), from: cache, over: network).answer()
        var paths: [String?] = []
        for event in await events.elements(upTo: "the report of the load", \.isLoad) {
            if case .notStored(let url, .diskFailed) = event { paths.append(url?.path) }
        }
        #expect(paths == ["/last"])
    }

    /// By a removal of everything in another process, say, before it is locked.
    @Test func aFileThatIsDeletedWhileItIsMadeIsMadeAgain() async throws {
        let cache = cache()
        let wasDeleted = Mutex(false)
        files.onStatus = { path, status in
            guard path.contains("/incoming-"), !wasDeleted.withLock({ $0 }) else { return }
            wasDeleted.withLock { $0 = true }
            unlink(path)
            status.links = 0
        }
        let client = PieceClient()
        let exchange = await begin(cache, client, until: 2 << 20)
        send(exchange, 2 << 20..<Self.length)
        exchange.end()
        #expect(await client.heard { $0.hasEnded }.report?.isStored == true)
        #expect(wasDeleted.withLock { $0 })
    }

    @Test(arguments: ["key", "everything", "address", "newer", "another cache"])
    func whatWasRemovedMeanwhileIsNotStored(what: String) async throws {
        let cache = cache()
        let client = PieceClient()
        let exchange = await begin(cache, client, until: 2 << 20)
        switch what {
        case "key": cache.removeCachedResponse(for: Responses.request(url))
        case "everything":
            // It is written by the body's own queue.
            await eventually("a file with bytes") { hasIncomingBytes }
            cache.removeAllCachedResponses()
            // A search for what it holds finds nothing.
            #expect(incoming == [])
        case "address": cache.invalidate(Responses.url(url))
        case "newer":
            clock.advance(by: 1)
            cache.storeCachedResponse(
                CachedURLResponse(response: Responses.http(Responses.url(url)), data: Data("newer".utf8)),
                for: Responses.request(url))
        default:
            let other = DiskStore(configuration: .init(directory: directory, capacity: 64 << 20))
            other.removeAll()
            other.close()
        }
        send(exchange, 2 << 20..<Self.length)
        exchange.end()
        let record = await client.heard { $0.hasEnded }
        #expect(record.data == Self.body && record.error == nil)
        #expect(record.report?.isStored == false && record.report?.notStoredReason == .removedMeanwhile)
        if what == "newer" {
            #expect(cache.cachedResponse(for: Responses.request(url))?.data == Data("newer".utf8))
            #expect(incoming == [])
        } else {
            await expectNothing(in: cache, "\(what)")
        }
    }

    // MARK: The delegate's and the app's say

    @Test(arguments: ["store", "refuse", "edit"]) func theAppSeesTheBody(what: String) async throws {
        let cache = cache { configuration in
            configuration.willCacheResponse = { response, _ in
                #expect(response.data == Self.body)
                switch what {
                case "store": return response
                case "refuse": return nil
                default: return CachedURLResponse(response: response.response, data: response.data.prefix(10))
                }
            }
        }
        _ = files.takeCalls()
        await store(in: cache)
        await eventually("no file of a body") { incoming == [] }
        let stored = cache.cachedResponse(for: Responses.request(url))?.data
        switch what {
        case "store": #expect(stored == Self.body && files.takeCalls().contains { $0.operation == .rename })
        case "refuse": #expect(stored == nil)
        default: #expect(stored == Self.body.prefix(10))
        }
    }

    @Test func whatADelegateWantsInMemoryOnlyLeavesTheDisk() async throws {
        let cache = cache(memory: 16 << 20)
        let client = PieceClient(confirms: { response in
            CachedURLResponse(
                response: response.response, data: response.data, userInfo: nil, storagePolicy: .allowedInMemoryOnly)
        })
        let exchange = await begin(cache, client)
        exchange.end()
        await client.heard { $0.hasEnded }
        await eventually("no file of a body") { incoming == [] }
        cache.flush()
        #expect(names("/records") == [])
        #expect(cache.cachedResponse(for: Responses.request(url))?.data == Self.body)
    }

    @Test func aHeadThatADelegateEditsIsTheOneThatIsStored() async throws {
        let cache = cache()
        let client = PieceClient(confirms: { response in
            let http = Responses.http(
                Responses.url("/large"),
                fields: ["Cache-Control": "max-age=60", "X-Added": String(repeating: "a", count: 900)])
            return CachedURLResponse(response: http, data: response.data, userInfo: nil, storagePolicy: .allowed)
        })
        let exchange = await begin(cache, client)
        exchange.end()
        #expect(await client.heard { $0.hasEnded }.report?.isStored == true)
        let stored = cache.cachedResponse(for: Responses.request(url))
        #expect(stored?.data == Self.body)
        let http = stored?.response as? HTTPURLResponse
        #expect(http?.value(forHTTPHeaderField: "X-Added")?.count == 900)
        #expect(http?.value(forHTTPHeaderField: "ETag") == nil)
        cache.flush()
        // Nothing of the other head is in the file.
        let record = try Data(contentsOf: scratch.appending("cache/records/" + names("/records")[0]))
        #expect(record.range(of: Data("ETag".utf8)) == nil)
    }

    @Test func aRefreshOfALargeBodyGoesToAFileToo() async throws {
        let cache = cache()
        let client = PieceClient()
        start(cache, client)
        let exchange = await exchanges.next(1)
        exchange.head(200, ["Cache-Control": "max-age=1, stale-while-revalidate=1000"])
        exchange.piece(testBody(1, length: 2 << 20))
        exchange.end()
        await client.heard { $0.hasEnded }
        clock.advance(by: 100)
        let stale = PieceClient()
        start(cache, stale)
        #expect(await stale.heard { $0.hasEnded }.data == testBody(1, length: 2 << 20))
        let refresh = await exchanges.next(2)
        refresh.head(200, fields)
        send(refresh, 0..<2 << 20)
        await eventually("a file of the body") { incoming.count == 1 }
        send(refresh, 2 << 20..<Self.length)
        refresh.end()
        await cache.untilRefreshed()
        #expect(cache.cachedResponse(for: Responses.request(url))?.data == Self.body)
    }

    // MARK: Hits

    @Test func aPartAndAConfirmedBodyComeFromTheFile() async throws {
        let cache = cache()
        await store(in: cache)
        let part = PieceClient()
        start(cache, part, ["Range": "bytes=1000000-2999999"])
        let partial = await part.heard { $0.hasEnded }
        #expect(partial.heads.first?.statusCode == 206 && partial.data == Self.body[1_000_000..<3_000_000])
        clock.advance(by: 1_000_000)
        let confirmed = PieceClient()
        start(cache, confirmed)
        let exchange = await exchanges.next(2)
        exchange.head(304, fields)
        exchange.end()
        let record = await confirmed.heard { $0.hasEnded }
        #expect(record.data == Self.body && record.report?.outcome == .revalidated(.disk))
        #expect(record.largestPiece == OpenBody.pieceLength)
    }

    /// A 304 that confirms it for another request makes no second copy, for which it would be read into memory.
    @Test func aBodyInAFileIsNotCopiedForAnotherVariant() async throws {
        let cache = cache()
        var fields = fields
        fields.set("Vary", "Accept-Language")
        for (number, language) in ["en", "de"].enumerated() {
            let client = PieceClient()
            start(cache, client, ["Accept-Language": language])
            let exchange = await exchanges.next(number + 1)
            exchange.head(number == 0 ? 200 : 304, fields)
            if number == 0 { send(exchange, 0..<Self.length) }
            exchange.end()
            #expect(await client.heard { $0.hasEnded }.data == Self.body)
        }
        let key = try #require(cache.key(for: Responses.request(url)))
        #expect(cache.store.lookup(key).variants().count == 1)
    }

    @Test(arguments: [0.0, 0.5, 1.0]) func aWrongByteIsAMissAndNoneOfItIsDelivered(place: Double) async throws {
        let cache = cache()
        await store(in: cache)
        cache.flush()
        let record = directory + "/records/" + names("/records")[0]
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: record))
        let offset = UInt64(Double(Self.length - 1) * place)
        try file.seek(toOffset: offset)
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: offset)
        try file.write(contentsOf: [byte ^ 1])
        try file.close()
        let client = PieceClient()
        start(cache, client)
        let heard = await client.heard { $0.hasEnded || exchanges.all.withLock { $0.count } == 2 }
        try #require(heard.data.isEmpty && !heard.hasEnded)
        let exchange = await exchanges.next(2)
        exchange.head(200, fields)
        exchange.piece(Data("fresh".utf8))
        exchange.end()
        #expect(await client.heard { $0.hasEnded }.text == "fresh")
    }

    @Test func aHitWhoseFileGoesIsReadToItsEnd() async throws {
        let cache = cache()
        await store(in: cache)
        let key = try #require(DiskURLCache.KeyPolicy.standard.key(for: Responses.request(url)))
        let body = try #require(cache.store.lookup(key).variants().first?.open?())
        let first = try #require(body.part(0..<OpenBody.pieceLength).contents)
        cache.removeAllCachedResponses()
        cache.flush()
        let rest = try #require(body.part(OpenBody.pieceLength..<body.count).contents)
        #expect(first + rest == Self.body)
    }

    // MARK: The directory

    @Test func theDirectoryKeepsToItsCapacityWhileABodyArrives() async throws {
        let capacity = 8 << 20
        let cache = cache(disk: capacity)
        for number in 0..<70 {
            cache.storeCachedResponse(
                CachedURLResponse(
                    response: Responses.http(Responses.url("/\(number)")), data: testBody(number, length: 120_000)),
                for: Responses.request("/\(number)"))
            cache.flush()
        }
        #expect(allocated > capacity / 10 * 7)
        let client = PieceClient()
        start(cache, client)
        let exchange = await exchanges.next(1)
        exchange.head(200, fields)
        for start in stride(from: 0, to: Self.length, by: 100_003) {
            send(exchange, start..<min(start + 100_003, Self.length))
            // Above the capacity a pass evicts at once; above nine eighths the body waits for it.
            #expect(allocated <= capacity + capacity / 8)
        }
        exchange.end()
        #expect(await client.heard { $0.hasEnded }.report?.isStored == true)
        cache.flush()
        #expect(allocated <= capacity)
        #expect(cache.cachedResponse(for: Responses.request(url))?.data == Self.body)
    }

    private var allocated: Int { SystemFiles().allocated(at: directory) }

    @Test func leftoversGoAndWhatIsBeingWrittenStays() throws {
        let first = DiskStore(configuration: .init(directory: directory, capacity: 64 << 20))
        first.flush()
        // A sweep has the lock of each file for a moment: none comes before this one is locked.
        first.maintenance.pause()
        let living = try first.beginIncoming()
        try living.append(Data(count: 100))
        let others = ["incoming-0123456789abcdef", "incoming-", "incoming-0123456789abcdeX", "incoming"]
        for name in others { try Data("left".utf8).write(to: scratch.appending("cache/" + name)) }
        // Whoever maintains the directory next sweeps it.
        first.close()
        let next = DiskStore(configuration: .init(directory: directory, capacity: 64 << 20))
        next.flush()
        #expect(incoming.contains(String(living.path.split(separator: "/").last!)))
        #expect(!names().contains(others[0]))
        #expect(Set(others.dropFirst()).isSubset(of: names()))
        living.discard()
        #expect(!names().contains(String(living.path.split(separator: "/").last!)))
        next.close()
    }

    /// The rest would be taken for the body's next part by a reader that tries again.
    @Test func aStreamWithAPieceThatCannotBeReadHasNoFurtherPiece() async throws {
        let cache = cache()
        await store(in: cache)
        let reader = LoadReader(Responses.request(url), from: cache, over: network, acceptsPieces: true)
        var data = try #require(await reader.next())
        files.rule = { $0.isRecord && $0.operation == .read ? .error(EIO) : nil }
        await #expect(throws: URLError.self) {
            while let piece = try await reader.next() { data += piece }
        }
        files.rule = { _ in nil }
        await #expect(throws: URLError.self) { try await reader.next() }
        #expect(data == Self.body.prefix(data.count) && data.count < Self.length)
    }

    /// A client that takes the body whole has it in memory in the end, so it is gathered there while it is written.
    @Test(arguments: [true, false]) func aWholeBodyIsNotReadFromItsFile(declares: Bool) async throws {
        let cache = cache()
        let reader = LoadReader(Responses.request(url), from: cache, over: network)
        let exchange = await exchanges.next(1)
        var fields = fields
        if declares { fields.set("Content-Length", "\(Self.length)") }
        exchange.head(200, fields)
        send(exchange, 0..<2 << 20)
        await eventually("a file with bytes") { hasIncomingBytes }
        files.rule = { $0.name.hasPrefix("incoming") && $0.operation == .read ? .error(EIO) : nil }
        send(exchange, 2 << 20..<Self.length)
        exchange.end()
        let answer = try await reader.answer()
        #expect(answer.data == Self.body && reader.report.isStored == true)
        files.rule = { _ in nil }
        #expect(cache.cachedResponse(for: Responses.request(url))?.data == Self.body)
    }

    @Test func theSumOfPiecesIsThatOfTheWhole() {
        for length in [0, 1, 63, 64, 65, 1_000, 4_096] {
            let data = testBody(length, length: length)
            let whole = data.withUnsafeBytes { Checksum.of($0) }
            for step in [1, 7, 63, 64, 65, 200] {
                var sum = PiecewiseChecksum()
                for start in stride(from: 0, to: length, by: step) {
                    data[start..<min(start + step, length)].withUnsafeBytes { sum.update($0) }
                }
                #expect(sum.finished == whole, "\(length) by \(step)")
            }
        }
    }
}

/// The same through sessions with a delegate.
@Suite(.loadsOnLinux, .fewAtATime, .enabled(if: LoadingHarness.storesForSessions))
struct LargeBodySessionTests {
    private static let body = testBody(9, length: (4 << 20) + 321)

    private func origin() throws -> OriginServer {
        try OriginServer { _ in OriginResponse(fields: ["Cache-Control": "max-age=86400"], body: Self.body) }
    }

    @Test func aDelegateGetsAHitInPieces() async throws {
        let origin = try origin()
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate, memoryCapacity: 1 << 20)
        for number in 0..<3 {
            let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
            #expect(record.data == Self.body && record.error == nil && record.responses.count == 1)
            if number > 0 { #expect(record.chunks.map(\.count).max() == OpenBody.pieceLength) }
        }
        #expect(origin.requests.count == 1)
        // In one piece, from the same record.
        #expect(try await harness.load(origin.url("/a")).data == Self.body)
    }

    @Test func aTaskMayEndInTheMiddleOfAHit() async throws {
        let origin = try origin()
        let delegate = CancellingDelegate()
        let harness = try LoadingHarness(delegate: delegate, memoryCapacity: 1 << 20)
        _ = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        delegate.cancels.withLock { $0 = true }
        let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        // A few pieces may be on their way.
        #expect(record.data == Self.body.prefix(record.data.count) && record.ends.count == 1)
        #expect(origin.requests.count == 1)
    }

    @Test func aHitThatCannotBeReadToItsEndFails() async throws {
        let origin = try origin()
        let files = FaultyFileSystem()
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate, memoryCapacity: 1 << 20) { $0.fileSystem = files }
        _ = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        // The first pass reads it all, and what is delivered is read after that.
        let read = Mutex(0)
        files.rule = { call in
            guard call.isRecord, call.operation == .read else { return nil }
            let count = read.next()
            return count > 40 ? .error(EIO) : nil
        }
        let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        #expect(record.error != nil && !record.data.isEmpty && record.data == Self.body.prefix(record.data.count))
        files.rule = { _ in nil }
        #expect(await delegate.run(harness.session.dataTask(with: origin.url("/a"))).data == Self.body)
    }
}

/// Cancels its task at the first piece, if told to.
private final class CancellingDelegate: RecordingDelegate, @unchecked Sendable {
    let cancels = Mutex(false)

    override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        super.urlSession(session, dataTask: dataTask, didReceive: data)
        if cancels.withLock({ $0 }) { dataTask.cancel() }
    }
}

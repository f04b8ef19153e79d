import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Caches and sessions that come, change and go while loads run, and clocks that jump. Made for the thread sanitizer,
/// too.
@Suite(
    .fewAtATime, .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions"))
struct LifetimeTests {
    /// An object of the app that removes what belongs to it when it is released.
    private final class Handle: Sendable {
        private let cache: DiskURLCache
        private let request: URLRequest
        private let isReleased: DispatchSemaphore

        init(_ cache: DiskURLCache, _ request: URLRequest, _ isReleased: DispatchSemaphore) {
            self.cache = cache
            self.request = request
            self.isReleased = isReleased
        }

        deinit {
            cache.removeCachedResponse(for: request)
            isReleased.signal()
        }
    }

    /// It would wait for itself, if it were released under a lock that it needs.
    @Test(arguments: ["all", "request", "host", "capacity", "replaced", "memory"])
    func noObjectOfTheAppIsReleasedUnderALock(by what: String) {
        let cache = DiskURLCache(configuration: .init(memoryCapacity: 1 << 20, diskCapacity: 0))
        let request = Responses.request("/a")
        let (isReleased, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        DispatchQueue.global().async {
            func store(_ userInfo: [AnyHashable: Any]) {
                cache.storeCachedResponse(
                    Responses.cached(Responses.url("/a"), "a", userInfo: userInfo), for: request)
            }
            store(["handle": Handle(cache, request, isReleased)])
            switch what {
            case "request": cache.removeCachedResponse(for: request)
            case "host": cache.removeCachedResponses(host: "example.com")
            case "capacity": cache.memoryCapacity = 0
            case "replaced": store([:])
            case "memory": cache.removeAllCachedResponses(from: .memory)
            default: cache.removeAllCachedResponses()
            }
            isDone.signal()
        }
        if isDone.isSignalled("the removal") { isReleased.isSignalled("the release") }
    }

    private static func origin() throws -> OriginServer {
        try OriginServer { request in
            switch request.path {
            case "/moved": .status(302, "Found", ["Location": "/stored", "Cache-Control": "max-age=60"])
            case "/never": .ok("of /never", ["Cache-Control": "no-store"])
            case "/large": OriginResponse(fields: ["Cache-Control": "max-age=60"], body: Data(count: 300_000))
            default: .ok("of \(request.path)", ["Cache-Control": "max-age=60"])
            }
        }
    }

    private static let paths = ["/stored", "/moved", "/never", "/large", "/other"]

    private static func expect(_ data: Data, at path: String) {
        switch path {
        case "/large": #expect(data.count == 300_000)
        case "/moved": #expect(data == Data("of /stored".utf8))
        default: #expect(data == Data("of \(path)".utf8))
        }
    }

    /// An issue if an answer is not that of its URL.
    private static func load(_ path: String, _ origin: OriginServer, _ session: URLSession) async {
        do {
            expect(try await session.data(from: origin.url(path)).0, at: path)
        } catch {
            Issue.record("\(path): \(error)")
        }
    }

    /// The session ends while the load runs: the load is cancelled, or comes to its end.
    private static func load(_ path: String, _ origin: OriginServer, ending session: URLSession, cancelling: Bool) async
    {
        await withCheckedContinuation { continuation in
            session.dataTask(with: origin.url(path)) { data, _, error in
                if let error {
                    #expect(cancelling && (error as? URLError)?.code == .cancelled, "\(path): \(error)")
                } else {
                    expect(data ?? Data(), at: path)
                }
                continuation.resume()
            }.resume()
            if cancelling { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
        }
    }

    @Test func sessionsAndCachesComeAndGoUnderLoads() async throws {
        let origin = try Self.origin()
        let scratch = try ScratchDirectory("lifetime")
        let cache = DiskURLCache(memoryCapacity: 4 << 20, diskCapacity: 64 << 20, directory: scratch.appending("cache"))
        let session = cache.makeSession(configuration: .ephemeral.patient)
        let rounds = TestLength.operations(plain: 20, long: 100)
        await withTaskGroup(of: Void.self) { group in
            for reader in 0..<4 {
                group.addTask {
                    for round in 0..<rounds * 3 { await Self.load(Self.paths[(round + reader) % 5], origin, session) }
                }
            }
            // Sessions that end while they load.
            group.addTask {
                for round in 0..<rounds {
                    let configuration = URLSessionConfiguration.ephemeral.patient
                    cache.attach(to: configuration)
                    let short = URLSession(configuration: configuration)
                    await Self.load(Self.paths[round % 5], origin, ending: short, cancelling: round % 3 == 0)
                }
            }
            // Capacities, clearings and flushes.
            group.addTask {
                for round in 0..<rounds {
                    cache.memoryCapacity = [0, 100_000, 4 << 20][round % 3]
                    cache.diskCapacity = [64 << 20, 0, 200_000, 64 << 20][round % 4]
                    if round % 5 == 0 { cache.removeAllCachedResponses() }
                    if round % 4 == 0 { cache.flush() }
                    if round % 7 == 0 { cache.removeCachedResponses(since: .distantPast) }
                    await Task.yield()
                }
            }
            // Caches that go while their sessions load.
            group.addTask {
                for round in 0..<rounds {
                    let short = DiskURLCache(
                        memoryCapacity: 1 << 20, diskCapacity: 8 << 20,
                        directory: scratch.appending("short\(round % 2)"))
                    let session = short.makeSession(configuration: .ephemeral.patient)
                    await Self.load(Self.paths[round % 5], origin, session)
                    session.finishTasksAndInvalidate()
                }
            }
        }
        // And it works as before.
        cache.memoryCapacity = 4 << 20
        cache.diskCapacity = 64 << 20
        await Self.load("/last", origin, session)
        let count = origin.requests.count
        await Self.load("/last", origin, session)
        #expect(origin.requests.count == count)
        session.invalidateAndCancel()
    }

    /// The app lets go of the cache and of its session while the origin has not answered.
    @Test func aCacheThatIsLetGoDuringALoad() async throws {
        let scratch = try ScratchDirectory("letgo")
        for round in 0..<TestLength.operations(plain: 10, long: 100) {
            let gate = Gate()
            let origin = try OriginServer { request in
                var answer = OriginResponse.ok("whole", ["Cache-Control": "max-age=60"])
                answer.beforeHead = { gate.wait() }
                return answer
            }
            var cache: DiskURLCache? = DiskURLCache(
                memoryCapacity: 1 << 20, diskCapacity: 8 << 20, directory: scratch.appending("cache\(round % 2)"))
            var session = cache?.makeSession(configuration: .ephemeral.patient)
            weak var gone: DiskURLCache?
            gone = cache
            let (answers, answer) = AsyncStream.makeStream(of: (Data?, (any Error)?).self)
            session?.dataTask(with: origin.url("/\(round)")) { data, _, error in
                answer.yield((data, error))
                answer.finish()
            }.resume()
            await gate.arrival()
            session?.finishTasksAndInvalidate()
            cache = nil
            session = nil
            gate.open()
            for await (data, error) in answers {
                #expect(error == nil)
                #expect(data == Data("whole".utf8))
            }
            await eventually("the release of the cache") { gone == nil }
        }
    }

    /// Stores, lookups, removals and flushes from all sides, by two caches that name one directory: an answer is that
    /// of its URL.
    @Test func sixThreadsAndTwoCachesOnOneDirectory() async throws {
        let scratch = try ScratchDirectory("churn")
        let caches = (0..<2).map { _ in
            DiskURLCache(memoryCapacity: 20_000, diskCapacity: 300_000, directory: scratch.appending("cache"))
        }
        let end = ContinuousClock.now + .seconds(TestLength.churnSeconds)
        let hits = Guarded(0)
        await onThreads(6) { thread in
            var random = TestRandom(thread)
            let cache = caches[thread % 2]
            var rounds = 0
            while .now < end || rounds < 50 {
                rounds += 1
                let request = Responses.request("/\(Int.random(in: 0..<60, using: &random))")
                guard let url = request.url else { return }
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<45:
                    if let found = cache.cachedResponse(for: request) {
                        _ = hits.next()
                        #expect(found.response.url == url)
                        #expect(found.data.starts(with: Data("\(url.path) ".utf8)))
                    }
                case 45..<85:
                    let body = String(repeating: url.path + " ", count: Int.random(in: 1..<2_000, using: &random))
                    cache.storeCachedResponse(Responses.cached(url, body), for: request)
                case 85..<93: cache.removeCachedResponse(for: request)
                case 93..<95: cache.removeAllCachedResponses(from: .memory)
                case 95: cache.removeCachedResponses(since: Date(timeIntervalSinceNow: -0.01))
                case 96: cache.diskCapacity = [300_000, 150_000].randomElement(using: &random) ?? 0
                case 97: _ = (cache.currentDiskUsage, cache.currentMemoryUsage)
                case 98: cache.flush()
                default: cache.removeAllCachedResponses()
                }
            }
        }
        #expect(hits.withLock { $0 } > 0)
        for cache in caches { cache.flush() }
        #expect(caches[0].currentDiskUsage <= 300_000)
    }

    /// Ten years back, an hour forward, and back again: no age is negative, and nothing is served for longer than it
    /// lives.
    @Test(arguments: [false, true]) func aClockThatJumps(isFromDisk: Bool) async throws {
        let origin = try OriginServer.counting(["Cache-Control": "max-age=60, stale-while-revalidate=0"])
        let harness = try LoadingHarness()
        let url = origin.url("/a")
        func load() async throws -> Loaded {
            if isFromDisk {
                harness.cache.flush()
                harness.cache.removeAllCachedResponses(from: .memory)
            }
            let loaded = try await harness.load(url)
            if let age = loaded["Age"] { #expect(Int(age).map { $0 >= 0 } == true, "\(age)") }
            return loaded
        }
        #expect(try await load().text == "1")
        harness.clock.advance(by: -10 * 365 * 86_400)
        let back = try await load()
        #expect(["1", "2"].contains(back.text))
        harness.clock.advance(by: 10 * 365 * 86_400 + 3_600)
        let forward = try await load()
        #expect(forward.text != "1" && forward.text == "\(origin.requests.count)")
        #expect(try await load().text == forward.text)
        harness.clock.advance(by: -3_600)
        #expect(try await load().status == 200)
        harness.clock.advance(by: 3_661)
        let last = try await load()
        #expect(last.text == "\(origin.requests.count)" && last.text != forward.text)
    }

    /// Two caches on one folder, one with a clock that is an hour ahead or behind. A response that the other stored has
    /// no negative age: it is requested again if it counts as stale or is from the future, and is refreshed in the
    /// background if that is allowed.
    @Test(arguments: [3_600.0, -3_600], [0, 7_200]) func cachesWithOtherClocks(ahead: TimeInterval, window: Int)
        async throws
    {
        let origin = try OriginServer.counting(["Cache-Control": "max-age=60, stale-while-revalidate=\(window)"])
        let scratch = try ScratchDirectory("clocks")
        let first = try LoadingHarness(memoryCapacity: 0, directory: scratch)
        let url = origin.url("/a")
        #expect(try await first.load(url).text == "1")
        first.cache.flush()
        let second = try LoadingHarness(
            memoryCapacity: 0, directory: scratch, clock: ManualClock(first.clock.now + ahead))
        let isStale = ahead > 0
        let found = try await second.load(url)
        #expect(found.text == (isStale && window > 0 ? "1" : "2"))
        if let age = found["Age"] { #expect(age == (isStale ? "3600" : "0")) }
        await second.cache.untilRefreshed()
        second.cache.flush()
        if isStale {
            #expect(try await second.load(url).text == "2")
            #expect(origin.requests.count == 2)
        }
        let back = try await first.load(url)
        if let age = back["Age"] { #expect(age == "0") }
        // From the future for the first one: its age is not known.
        if isStale { #expect(back.text == "3") }
    }
}

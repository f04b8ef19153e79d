import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Soft removal: a marked response stays, and is validated before it is used again.
@Suite(.fewAtATime) struct MarkStaleTests {
    private let scratch: ScratchDirectory
    private let clock = ManualClock()

    init() throws { scratch = try ScratchDirectory("mark-stale") }

    private func makeCache(_ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }) -> DiskURLCache {
        DiskURLCache(in: scratch, clock: clock, configure)
    }

    /// Answers a condition with 304.
    private func origin(
        _ body: String = "hello", _ fields: OriginFields = ["Cache-Control": "max-age=3600"]
    ) throws -> OriginServer {
        try OriginServer { request in
            if request.method == "POST" { return .ok("done", ["Cache-Group-Invalidation": "\"news\""]) }
            var fields = fields
            fields.set("ETag", "\"1\"")
            return request.fields["If-None-Match"] == nil ? .ok(body, fields) : .status(304, "", fields)
        }
    }

    private func request(_ url: URL, tag: String? = nil, _ change: (inout DiskURLCache.Options) -> Void = { _ in })
        -> URLRequest
    {
        var request = URLRequest(url: url)
        var options = DiskURLCache.Options(tags: Set([tag].compactMap { $0 }))
        change(&options)
        request.cacheOptions = options
        return request
    }

    @Test(arguments: ["small", String(repeating: "large", count: 500_000)])
    func aMarkedResponseIsConfirmedBeforeItIsUsedAndThenFreshAgain(body: String) async throws {
        let (origin, cache) = (try origin(body), makeCache())
        let request = request(origin.url("/a"), tag: "news")
        _ = try await cache.data(for: request)
        cache.markStale(tag: "news")
        #expect(cache.contains(request))
        let confirmed = try await cache.data(for: request)
        #expect(confirmed.report.outcome.printedText.hasPrefix("revalidated") && confirmed.data == Data(body.utf8))
        #expect(origin.requests.map { $0.fields["If-None-Match"] } == [nil, "\"1\""])
        #expect(try await cache.data(for: request).report.outcome.printedText.hasPrefix("hit"))
        #expect(origin.requests.count == 2)
    }

    @Test func theMarkOutlivesTheProcess() async throws {
        let origin = try origin()
        let request = request(origin.url("/a"), tag: "news")
        do {
            let cache = makeCache()
            _ = try await cache.data(for: request)
            cache.markStale(tag: "news")
            cache.flush()
        }
        let later = makeCache()
        #expect(try await later.data(for: request).report.outcome == .revalidated(.disk))
        later.flush()
        #expect(try await makeCache().data(for: request).report.outcome == .hit(.memory))
    }

    @Test func anotherProcessSeesTheMark() async throws {
        let (origin, directory) = (try origin(), try SharedDirectory())
        let (one, two) = (directory.open(), directory.open())
        let request = request(origin.url("/a"), tag: "news")
        _ = try await one.data(for: request)
        #expect(try await two.data(for: request).report.outcome == .hit(.disk))
        for (marking, other) in [(one, two), (two, one)] {
            directory.clock.advance(by: 1)
            marking.markStale(tag: "news")
            directory.clock.advance(by: 1)
            // A lookup looks for changes by others once a second.
            other.core.store.disk?.checkNow()
            #expect(other.contains(request))
            #expect(try await other.data(for: request).report.outcome == .revalidated(.disk))
            marking.core.store.disk?.checkNow()
            #expect(try await marking.data(for: request).report.outcome.printedText.hasPrefix("hit"))
        }
        #expect(origin.requests.count == 3)
    }

    @Test func theTimesForStaleUseCountFromTheMark() async throws {
        let origin = try origin("hello", ["Cache-Control": "max-age=10, stale-while-revalidate=5, stale-if-error=60"])
        let cache = makeCache()
        let request = request(origin.url("/a"), tag: "news")
        _ = try await cache.data(for: request)
        clock.advance(by: 8)
        cache.markStale(tag: "news")
        clock.advance(by: 4)
        #expect(
            try await cache.data(for: request).report.outcome == .staleHit(.disk, because: .staleWhileRevalidate))
        await eventually("the refresh in the background") { origin.requests.count == 2 }
        await eventually("the end of the refresh") {
            cache.cachedResponse(for: request) != nil && !cache.isRefreshing
        }
        cache.markStale(tag: "news")
        clock.advance(by: 30)
        origin.stop()
        #expect(try await cache.data(for: request).report.outcome == .staleHit(.disk, because: .staleIfError))
        cache.isOffline = true
        clock.advance(by: 300)
        #expect(try await cache.data(for: request).report.outcome == .staleHit(.memory, because: .offline))
    }

    @Test func theAppsLifetimeAndItsMinimumIntervalEndWithTheMark() async throws {
        let (origin, cache) = (try origin("hello", [:]), makeCache())
        for change: (inout DiskURLCache.Options) -> Void in [
            { $0.lifetime = .always(.days(1)) }, { $0.lifetime = .atLeast(.days(1)) },
            { $0.minimumInterval = .days(1) },
        ] {
            let request = request(origin.url("/a"), change)
            _ = try await cache.data(for: request)
            let before = try await cache.data(for: request).report.outcome
            #expect([.hit(.memory), .staleHit(.memory, because: .minimumInterval)].contains(before))
            cache.markStale(for: request)
            #expect(try await cache.data(for: request).report.outcome.printedText.hasPrefix("revalidated"))
            cache.removeAllCachedResponses()
        }
    }

    /// The request was sent before the last mark, so that its answer may be older than the reason for that.
    @Test(arguments: [DiskURLCache.Options.Storage?.none, .memoryOnly])
    func anAnswerThatWasAskedForBeforeASecondMarkDoesNotEndIt(storage: DiskURLCache.Options.Storage?) async throws {
        let cache = makeCache()
        let marks = Mutex(0)
        let origin = try OriginServer { request in
            let fields: OriginFields = ["Cache-Control": "max-age=3600", "ETag": "\"1\""]
            guard request.fields["If-None-Match"] != nil else { return .ok("hello", fields) }
            // While the origin answers.
            let count = marks.withLock { count in
                count += 1
                return count
            }
            if count == 1 { cache.markStale(tag: "news") }
            return .status(304, "", fields)
        }
        let request = request(origin.url("/a"), tag: "news") { $0.storage = storage }
        _ = try await cache.data(for: request)
        cache.markStale(tag: "news")
        for _ in 0..<2 {
            clock.advance(by: 1)
            #expect(try await cache.data(for: request).report.outcome.printedText.hasPrefix("revalidated"))
        }
        #expect(try await cache.data(for: request).report.outcome.printedText.hasPrefix("hit"))
    }

    /// An app may mark at each launch what it shows offline. Each mark in the record would bring the file nearer to
    /// being full, and then the response is removed.
    @Test func aMarkedResponseIsNotMarkedAgain() throws {
        let cache = makeCache()
        let (store, key) = try putNews(in: cache)
        cache.markStale(tag: "news")
        let number = store.lookup(key).variants().first?.metadata.sequence
        cache.markStale(tag: "news")
        #expect(number != nil && store.lookup(key).variants().first?.metadata.sequence == number)
    }

    /// No cache makes such a number, but a file may have it.
    @Test func theLargestSequenceNumberIsNoReasonToTrap() {
        var metadata = StoredEntry.test(Data(), sequence: .max).metadata
        let isMarked = metadata.markStale(at: Date())
        #expect(isMarked)
        #expect(metadata.sequence == .max)
    }

    /// Stores a response with the tag `news`.
    private func putNews(in cache: DiskURLCache) throws -> (store: TieredStore, key: RequestKey) {
        let request = request(Responses.url("/a"), tag: "news")
        cache.store(Data("hello".utf8), for: request, lifetime: 3_600)
        return (cache.core.store, try #require(cache.key(for: request)))
    }

    /// A pin that found the response before the mark, and writes it after the mark.
    @Test func aPinDoesNotUndoAMark() throws {
        let files = FaultyFileSystem()
        let cache = makeCache { $0.fileSystem = files }
        let (store, key) = try putNews(in: cache)
        cache.flush()
        let found = try #require(store.lookup(key).variants().first?.metadata)
        let (hasFound, isMarked) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isFirst = Mutex(true)
        let pin = DispatchGroup()
        files.rule = { call in
            // The mark is under way, and is about to read the record.
            guard call.operation == .open, call.isRecord, isFirst.disarm() else { return nil }
            pin.enter()
            Thread.detachNewThread {
                store.update(found, of: key) { metadata in
                    hasFound.signal()
                    isMarked.isSignalled("the mark")
                    metadata.isPinned = true
                }
                pin.leave()
            }
            hasFound.isSignalled("the pin")
            return nil
        }
        cache.markStale(tag: "news")
        // The pin finds another record than it was made for, and is made again.
        for _ in 1...2 { isMarked.signal() }
        #expect(pin.wait(timeout: .now() + 60) == .success)
        for layer in [DiskURLCache.Layer.memory, .disk] {
            if layer == .disk { cache.removeAllCachedResponses(from: .memory) }
            let stored = try #require(store.lookup(key).variants().first?.metadata)
            #expect(stored.http?.staleSince != nil && stored.isPinned)
        }
    }

    /// A mark that begins while a pin is being written waits for it, and finds its result.
    @Test func aPinThatAMarkWaitsForStays() throws {
        let cache = makeCache()
        let (store, key) = try putNews(in: cache)
        let found = try #require(store.lookup(key).variants().first?.metadata)
        let mark = DispatchGroup()
        store.update(found, of: key) { metadata in
            mark.enter()
            Thread.detachNewThread {
                cache.markStale(tag: "news")
                mark.leave()
            }
            var patience = Patience()
            while store.removals.underWay(key, found) == .nothing, !patience.isOver() {
                Thread.sleep(forTimeInterval: 0.001)
            }
            #expect(store.removals.underWay(key, found) != .nothing, "the mark has begun")
            metadata.isPinned = true
        }
        mark.wait()
        let stored = try #require(store.lookup(key).variants().first?.metadata)
        #expect(stored.http?.staleSince != nil && stored.isPinned)
    }

    /// The answer is not stored, and the marked response stays.
    @Test func anAnswerThatWasAskedForBeforeAMarkRemovesNothing() throws {
        let cache = makeCache()
        let (store, key) = try putNews(in: cache)
        let ticket = store.ticket(at: clock.now)
        cache.markStale(tag: "news")
        var late = StoredEntry.test(Data(), storedAt: clock.now, tags: ["news"]).metadata
        late.sequence = 0
        #expect(store.store(late, .memory(Data("late".utf8)), for: key, ticket: ticket) == .removedMeanwhile)
        let stored = try #require(store.lookup(key).variants().first)
        #expect(stored.metadata.http?.staleSince != nil && stored.load()?.body == Data("hello".utf8))
    }

    @Test func aResponseInMemoryOnlyIsMarkedThere() async throws {
        let (origin, cache) = (try origin(), makeCache())
        let request = request(origin.url("/a")) { $0.storage = .memoryOnly }
        _ = try await cache.data(for: request)
        cache.markStale()
        #expect(try await cache.data(for: request).report.outcome == .revalidated(.memory))
    }

    @Test func onlyWhatMeetsAllConditionsIsMarked() async throws {
        let (origin, cache) = (
            try origin("hello", ["Cache-Control": "max-age=3600", "Cache-Groups": "\"g\""]), makeCache()
        )
        let url = origin.url("/docs/a")
        var signed = request(url, tag: "news")
        signed.setValue("Bearer abc", forHTTPHeaderField: "Authorization")
        let later = clock.now.addingTimeInterval(1)
        let marks: [(String, (DiskURLCache) -> Void, Bool)] = [
            ("tag", { $0.markStale(tag: "news") }, true), ("other tag", { $0.markStale(tag: "old") }, false),
            ("group", { $0.markStale(group: "g", of: url) }, true),
            ("other group", { $0.markStale(group: "h", of: url) }, false),
            ("account", { $0.markStale(authorization: "Bearer abc") }, true),
            ("other account", { $0.markStale(authorization: "Bearer abd") }, false),
            ("host", { $0.markStale(host: "127.0.0.1") }, true), ("other host", { $0.markStale(host: "a.com") }, false),
            ("prefix", { $0.markStale(urlPrefix: origin.url("/docs").absoluteString) }, true),
            ("other prefix", { $0.markStale(urlPrefix: origin.url("/doors").absoluteString) }, false),
            ("date", { $0.markStale(olderThan: later) }, true),
            ("earlier date", { $0.markStale(olderThan: later.addingTimeInterval(-60)) }, false),
            ("request", { $0.markStale(for: signed) }, true),
            ("other request", { $0.markStale(for: URLRequest(url: origin.url("/docs"))) }, false),
            ("both", { $0.markStale(tag: "news", host: "127.0.0.1") }, true),
            ("one of two", { $0.markStale(tag: "news", host: "a.com") }, false),
            ("hosts that contradict", { $0.markStale(group: "g", of: url, host: "a.com") }, false),
            ("all", { $0.markStale() }, true),
        ]
        for (name, mark, isMarked) in marks {
            cache.removeAllCachedResponses()
            _ = try await cache.data(for: signed)
            mark(cache)
            let outcome = try await cache.data(for: signed).report.outcome
            #expect(outcome.printedText.hasPrefix("revalidated") == isMarked, "\(name): \(outcome)")
        }
    }

    @Test func anAnswerThatWasAskedForBeforeTheMarkDoesNotEndIt() async throws {
        let (asked, goesOn) = (Flag(), Flag())
        let transport = ClosureTransport { request, exchange in
            if request.value(forHTTPHeaderField: "If-None-Match") == nil {
                exchange.head(200, ["Cache-Control": "max-age=60", "ETag": "\"1\""])
                return await exchange.piece("hello")
            }
            asked.set()
            await goesOn.isSet()
            exchange.head(304, ["Cache-Control": "max-age=60", "ETag": "\"1\""])
        }
        let cache = makeCache()
        func load() async throws -> DiskURLCache.Report.Outcome {
            let stream = try await cache.load(request(Responses.url("/a"), tag: "news"), through: transport)
            _ = try await stream.pieces()
            return stream.report.outcome
        }
        _ = try await load()
        clock.advance(by: 100)
        async let early = load()
        await asked.isSet()
        cache.markStale(tag: "news")
        goesOn.set()
        #expect(try await early.printedText.hasPrefix("revalidated"))
        #expect(try await load().printedText.hasPrefix("revalidated"))
        #expect(try await load().printedText.hasPrefix("hit"))
    }

    @Test func groupsThatAnAnswerInvalidatesAreMarkedIfTheAppWantsIt() async throws {
        let origin = try origin("hello", ["Cache-Control": "max-age=3600", "Cache-Groups": "\"news\""])
        let request = request(origin.url("/a"))
        var post = URLRequest(url: origin.url("/b"))
        post.httpMethod = "POST"
        for isMarked in [true, false] {
            let cache = makeCache { $0.marksGroupsStale = isMarked }
            _ = try await cache.data(for: request)
            _ = try await cache.data(for: post)
            #expect(cache.contains(request) == isMarked)
            let outcome = try await cache.data(for: request).report.outcome
            #expect(outcome.printedText.hasPrefix("revalidated") == isMarked)
            cache.removeAllCachedResponses()
            cache.flush()
        }
    }

    @Test func theExplanationSaysThatTheAppMarkedIt() async throws {
        let (origin, cache) = (try origin(), makeCache())
        let request = request(origin.url("/a"))
        _ = try await cache.data(for: request)
        clock.advance(by: 5)
        cache.markStale(for: request)
        clock.advance(by: 5)
        #expect(cache.explanation(for: request).description.contains("Marked as stale 5 s ago"))
    }
}

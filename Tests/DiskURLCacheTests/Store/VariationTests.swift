import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Responses that answer for several spellings of their URLs (`No-Vary-Search`), in the layers of a cache.
@Suite(.fewAtATime) struct VariationTests {
    /// A cache, and an origin that answers with the fields that the test gives.
    private final class Site: Sendable {
        let cache: DiskURLCache
        let clock = ManualClock()
        let asked = Mutex<[URLRequest]>([])

        private let scratch: ScratchDirectory?

        init(
            memory: Int = 1 << 20, in scratch: ScratchDirectory? = nil,
            _ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
        ) {
            self.scratch = scratch
            var settings = DiskURLCache.Configuration(
                memoryCapacity: memory, diskCapacity: scratch == nil ? 0 : 10 << 20, directory: scratch?.url)
            settings.clock = clock.wallClock
            configure(&settings)
            cache = DiskURLCache(configuration: settings)
        }

        /// Whether the origin was asked.
        @discardableResult
        func asks(_ path: String, method: String = "GET", _ fields: HeaderFields = Site.varied, status: Int = 200)
            async throws -> Bool
        {
            let network = MemoryTransport { [asked] request, exchange in
                asked.withLock { $0.append(request) }
                exchange.head(status, fields)
                if status != 304 { exchange.piece("body of \(request.url?.query ?? "")") }
                exchange.end()
            }
            var request = VariationTests.request(path)
            request.httpMethod = method
            let count = asked.withLock { $0.count }
            let answer = try await LoadReader(request, from: cache, over: network).answer()
            #expect(answer.response.url == request.url)
            return asked.withLock { $0.count } > count
        }

        static let varied: HeaderFields = [
            "Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"a\"), key-order", "ETag": "\"1\"",
        ]
    }

    private static func request(_ path: String) -> URLRequest { Responses.request(path) }

    /// A mark for a request is for what answers it.
    @Test func aMarkForARequestFindsIt() async throws {
        let site = Site()
        #expect(try await site.asks("/a?a=1"))
        #expect(try await !site.asks("/a?a=2"))
        site.cache.markStale(for: Self.request("/a?a=3"))
        #expect(try await site.asks("/a?a=2", status: 304))
    }

    /// It is of no use to a load that has waited for it.
    @Test func a304MayEndTheEquivalence() async throws {
        let site = Site()
        try await site.asks("/p?a=1")
        site.clock.advance(by: 100)
        let exchanges = Exchanges()
        let network = exchanges.network()
        let answers = ["/p?a=2", "/p?a=3"].map { path in
            Task { [cache = site.cache] in
                try await LoadReader(Self.request(path), from: cache, over: network).answer().data
            }
        }
        let first = await exchanges.next(1)
        await site.cache.untilLoadsWait(1)
        first.head(304, ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"b\")", "ETag": "\"1\""])
        first.end()
        let second = await exchanges.next(2)
        second.head(200, ["Cache-Control": "max-age=60"])
        second.piece("own")
        second.end()
        let texts = try await [answers[0].value, answers[1].value].map { String(decoding: $0, as: UTF8.self) }
        #expect(Set(texts) == ["body of a=1", "own"])
    }

    @Test(arguments: [(true, false), (false, true), (true, true)])
    func equivalentURLsAreHits(memory: Bool, disk: Bool) async throws {
        let scratch = try ScratchDirectory()
        // The second time in another cache on the folder.
        for round in 0..<(disk ? 2 : 1) {
            let site = Site(memory: memory ? 1 << 20 : 0, in: disk ? scratch : nil)
            if round == 0 { #expect(try await site.asks("/p?a=1&b=1&c=2")) }
            for path in ["/p?a=1&b=1&c=2", "/p?b=1&c=2", "/p?c=2&a=2&b=1&", "/p?%62=1&c=2&a"] {
                #expect(try await !site.asks(path))
                #expect(site.cache.contains(Self.request(path)))
                let data = site.cache.cachedResponse(for: Self.request(path))?.data
                #expect(data == Data("body of a=1&b=1&c=2".utf8))
            }
            for path in ["/p?b=2&c=2", "/p", "/q?a=1&b=1&c=2", "/p?b=1&c=2&d"] {
                #expect(!site.cache.contains(Self.request(path)))
            }
            site.cache.flush()
        }
    }

    #if os(Linux)
        /// A cache that knows of no such responses looks for none at a miss. Each pass asks anew whether there are any.
        @Test(arguments: [true, false])
        func whatAnotherCacheStoredIsFoundAfterAPass(isStoredByOwner: Bool) async throws {
            let shared = try SharedDirectory()
            let owner = shared.open()
            let guest = shared.open()
            for cache in [owner, guest] { cache.flush() }
            let storing = isStoredByOwner ? owner : guest
            let other = isStoredByOwner ? guest : owner
            #expect(!other.contains(Self.request("/p?b=1&a=2")))
            let network = MemoryTransport { _, exchange in
                exchange.head(200, Site.varied)
                exchange.end()
            }
            _ = try await LoadReader(Self.request("/p?a=1&b=1"), from: storing, over: network).answer()
            storing.flush()
            other.look()
            other.flush()
            #expect(other.contains(Self.request("/p?b=1&a=2")))
        }
    #endif

    /// A list of the cache's own is no response: nobody is told of it.
    @Test func oneResponseIsOneEvent() async throws {
        let site = Site()
        let events = site.cache.events()
        try await site.asks("/p?a=1")
        var stored = 0
        for event in await events.elements(upTo: "the report of the load", \.isLoad) {
            if case .stored = event { stored += 1 }
        }
        #expect(stored == 1 && site.cache.statistics.stores == 1)
    }

    // MARK: Validation

    @Test func a304ConfirmsTheOneResponse() async throws {
        let site = Site()
        try await site.asks("/p?a=1")
        site.clock.advance(by: 100)
        #expect(try await site.asks("/p?a=2", status: 304))
        #expect(site.asked.withLock { $0.last?.value(forHTTPHeaderField: "If-None-Match") } == "\"1\"")
        for path in ["/p?a=1", "/p?a=2", "/p?a=3"] { #expect(try await !site.asks(path)) }
    }

    /// What a response says now counts, however it was found before.
    @Test func a304MayTakeThePromiseBack() async throws {
        let site = Site()
        try await site.asks("/p?a=1")
        site.clock.advance(by: 100)
        try await site.asks(
            "/p?a=1", ["ETag": "\"1\"", "Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"z\")"], status: 304)
        #expect(try await site.asks("/p?a=2"))
    }

    @Test func aStaleResponseIsRefreshedForAllSpellings() async throws {
        let site = Site { $0.staleWhileRevalidate = 1_000 }
        try await site.asks("/p?a=1")
        site.clock.advance(by: 100)
        let events = site.cache.events()
        try await site.asks("/p?a=2")
        _ = await events.first("the store of the refresh") { if case .stored = $0 { true } else { nil } }
        #expect(site.asked.withLock { $0.last?.url?.query } == "a=2")
        for path in ["/p?a=1", "/p?a=3"] { #expect(try await !site.asks(path)) }
    }

    // MARK: Removal

    @Test(arguments: ["/p?a=1", "/p?a=2", "/p"], ["remove", "POST", "host", "prefix", "all"])
    func aRemovalReachesItByEachSpelling(path: String, way: String) async throws {
        let site = Site(in: try ScratchDirectory())
        try await site.asks("/p?a=1")
        switch way {
        case "remove": site.cache.removeCachedResponse(for: Self.request(path))
        case "POST": try await site.asks(path, method: "POST", [:])
        case "host": site.cache.removeCachedResponses(host: "example.com")
        case "prefix": site.cache.removeCachedResponses(urlPrefix: "https://example.com/p")
        default: site.cache.removeAllCachedResponses()
        }
        for path in ["/p?a=1", "/p?a=2", "/p"] { #expect(!site.cache.contains(Self.request(path))) }
        #expect(try await site.asks("/p?a=3"))
    }

    /// RFC 9111 §4.4: an answer that was asked for before the removal is not stored after it.
    @Test(arguments: [true, false]) func aRemovalCountsForAnAnswerOnItsWay(isFirst: Bool) async throws {
        let site = Site()
        if !isFirst { try await site.asks("/p?a=1&b=1") }
        let exchanges = Exchanges()
        let reader = LoadReader(Self.request("/p?a=1"), from: site.cache, over: exchanges.network())
        let exchange = await exchanges.next(1)
        site.cache.invalidate(Responses.url("/p?a=2"))
        exchange.head(200, Site.varied)
        exchange.piece("old")
        exchange.end()
        #expect(try await reader.answer().report.notStoredReason == .removedMeanwhile)
        #expect(!site.cache.contains(Self.request("/p?a=1")))
    }

    /// Once the list is gone nobody finds what it led to: a removal that did not find it can be no wrong answer.
    @Test func whatALostListLedToIsNotFoundAgain() async throws {
        let site = Site()
        try await site.asks("/p?a=1&b=1")
        let list = try #require(site.cache.key(for: Self.request("/p"))?.variationList)
        site.cache.store.remove(list)
        site.cache.invalidate(Responses.url("/p?b=1"))
        try await site.asks("/p?a=1&b=2")
        #expect(try await !site.asks("/p?a=5&b=2"))
        #expect(try await site.asks("/p?a=1&b=1"))
    }

    // MARK: Beside other responses

    @Test func aResponseOfTheURLItselfComesFirst() async throws {
        let site = Site()
        try await site.asks("/p?a=1")
        // Reloaded under another spelling, and without the field: it is of that spelling alone.
        var request = Self.request("/p?a=2")
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let network = MemoryTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            exchange.piece("alone")
            exchange.end()
        }
        _ = try await LoadReader(request, from: site.cache, over: network).answer()
        func body(_ path: String) -> String? {
            site.cache.cachedResponse(for: Self.request(path)).map { String(decoding: $0.data, as: UTF8.self) }
        }
        #expect(body("/p?a=2") == "alone" && body("/p?a=3") == "body of a=1")
        // The next one says it again, and takes its place.
        site.clock.advance(by: 100)
        try await site.asks("/p?a=2")
        #expect(body("/p?a=2") == "body of a=2" && body("/p?a=3") == "body of a=2")
    }

    @Test func aFewValuesOfAPathAreKnown() async throws {
        let site = Site()
        for number in 0..<5 {
            try await site.asks(
                "/p?a=\(number)&n\(number)=1",
                ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"n\(number)\")"])
        }
        for number in 1..<5 { #expect(try await !site.asks("/p?a=\(number)")) }
        #expect(!site.cache.contains(Self.request("/p?a=0")))
    }

    /// Two users share no response, in whatever spelling; nor do two methods.
    @Test func theRestOfTheKeyCounts() async throws {
        let site = Site { $0.keyPolicy = .standard.includingFields("X-User").includingBody(ofMethods: "POST") }
        func key(_ path: String, user: String?, method: String = "GET") throws -> RequestKey {
            var request = Self.request(path)
            request.setValue(user, forHTTPHeaderField: "X-User")
            request.setValue(user.map { "Bearer \($0)" }, forHTTPHeaderField: "Authorization")
            request.httpMethod = method
            return try #require(site.cache.key(for: request))
        }
        let list = VariationList("params=(\"a\")")
        let variation = try #require(list.variations.first)
        let keys = try [nil, "1", "2"].map { try key("/p?a=1", user: $0).simplified(by: variation, of: list) }
        #expect(Set(keys).count == 3)
        #expect(try keys[1] == key("/p?a=7", user: "1").simplified(by: variation, of: list))
        #expect(try keys[1] != key("/p?a=1", user: "1").simplified(by: variation, of: VariationList("params=(\"a\")")))
        #expect(try key("/p?a=1", user: nil, method: "POST").variationList == nil)
    }

    /// A storage that several machines share would be asked twice at each miss.
    @Test func anAppsStorageKeepsThemForTheirOwnURLs() async throws {
        let site = Site { $0.diskStorage = RecordingStorage() }
        try await site.asks("/p?a=1")
        #expect(try await !site.asks("/p?a=1"))
        #expect(try await site.asks("/p?a=2"))
    }

    @Test func urlsThatAreKeptOffTheDiskAreNotThere() async throws {
        let scratch = try ScratchDirectory()
        let site = Site(memory: 0, in: scratch) { $0.keepsURLs = false }
        try await site.asks("/secret-path?a=1")
        #expect(try await !site.asks("/secret-path?a=2"))
        site.cache.flush()
        let files = FileManager.default.enumerator(at: scratch.url, includingPropertiesForKeys: nil)?.allObjects ?? []
        for case let file as URL in files {
            let bytes = (try? Data(contentsOf: file)) ?? Data()
            #expect(bytes.range(of: Data("secret-path".utf8)) == nil)
        }
    }

    @Test func anInspectorFindsIt() async throws {
        let scratch = try ScratchDirectory()
        let site = Site(in: scratch)
        try await site.asks("/p?a=1")
        site.cache.flush()
        let inspector = try DiskURLCache.Inspector(directory: scratch.url)
        let explanation = inspector.explanation(for: Self.request("/p?a=2"), now: site.clock.now)
        #expect(explanation.outcome == .hit(.disk))
        #expect(explanation.description.contains("differs from the stored one only in what No-Vary-Search"))
        #expect(inspector.explanation(for: Self.request("/p?c"), now: site.clock.now).outcome == .miss(.notInCache))
    }

    @Test func pinsAndWhyFindIt() async throws {
        let site = Site()
        try await site.asks("/p?a=1")
        #expect(site.cache.setPinned(true, for: Self.request("/p?a=2")))
        let words = "\(site.cache.explanation(for: Self.request("/p?a=2")))"
        #expect(words.contains("differs from the stored one only in what No-Vary-Search"))
        #expect(!"\(site.cache.explanation(for: Self.request("/p?a=1&c")))".contains("differs"))
    }
}

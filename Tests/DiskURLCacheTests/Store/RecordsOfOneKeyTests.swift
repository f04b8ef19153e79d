import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The records of one key are told apart: each variant keeps its own head, and what a response replaces is gone.
@Suite("Records of one key", .fewAtATime) struct RecordsOfOneKeyTests {
    private static let languages = ["de", "en", "fr"]

    private static func request(_ language: String) -> URLRequest {
        Responses.request("/a", fields: ["Accept-Language": language])
    }

    // MARK: Variants

    /// A response of an earlier launch has an old time, and the number after it may be that of another variant.
    @Test(arguments: [0, 8 << 20]) func aPinOfALaterLaunchChangesOneVariantAlone(memory: Int) throws {
        let directory = try SharedDirectory()
        func launch(_ work: (DiskURLCache) -> Void) {
            let cache = directory.open { $0.memoryCapacity = memory }
            work(cache)
            cache.flush()
            for language in Self.languages {
                let found = cache.cachedResponse(for: Self.request(language))
                #expect(found.map { String(decoding: $0.data, as: UTF8.self) } == "text in \(language)")
                let response = found?.response as? HTTPURLResponse
                #expect(response?.value(forHTTPHeaderField: "Content-Language") == language)
            }
            cache.close()
        }
        launch { cache in
            // In one moment, so that their numbers follow each other.
            for language in Self.languages {
                let fields = [
                    "Cache-Control": "max-age=3600", "Vary": "Accept-Language", "Content-Language": language,
                ]
                cache.storeCachedResponse(
                    Responses.cached(Responses.url("/a"), "text in \(language)", fields: fields),
                    for: Self.request(language))
            }
        }
        for language in Self.languages {
            launch { #expect($0.setPinned(true, for: Self.request(language))) }
        }
    }

    /// Two processes that change two variants at the same time may give both the same number.
    @Test func twoVariantsWithOneNumberKeepTheirHeads() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        let key = RequestKey.test("a")
        let entries = Self.languages.enumerated().map { StoredEntry.test(testBody($0), language: $1) }
        for entry in entries { store.store(entry, for: key) }
        var pinned = entries[1].metadata
        pinned.isPinned = true
        pinned.sequence = 2
        #expect(store.update(pinned, of: key, replacing: entries[1].metadata, usedAt: MonotonicTime.nanoseconds))
        func expectTheirOwn(_ found: [StoredVariant], pinned: [Bool]) {
            let own = entries.map { entry in found.first { $0.metadata.varyKey == entry.varyKey } }
            #expect(own.map { $0?.entry?.body } == entries.map(\.body))
            #expect(own.map { $0?.metadata.isPinned } == pinned)
        }
        expectTheirOwn(store.variants(of: key), pinned: [false, true, false])
        // In memory, too.
        var record = MemoryRecord(variants: entries.map { StoredVariant($0, from: .memory) }, isComplete: true)
        record.replace(entries[1].metadata, with: pinned)
        expectTheirOwn(record.variants, pinned: [false, true, false])
    }

    /// Of two that match a request the one that was stored later is the answer (RFC 9111 §4), also after a mark, a pin
    /// or a tag.
    @Test(arguments: ["memory", "disk"], ["mark", "mark of the older one", "pin"])
    func aChangeMakesNoResponseNewer(layer: String, change: String) throws {
        let directory = try SharedDirectory()
        let inMemory = DiskURLCache.Configuration(memoryCapacity: 8 << 20, diskCapacity: 0)
        let cache = layer == "memory" ? DiskURLCache(configuration: inMemory) : directory.open()
        var request = Responses.request("/a", fields: ["X": "1", "Y": "1"])
        // A server that names one field more later.
        for (body, vary) in [("old", "X"), ("new", "X, Y")] {
            directory.clock.advance(by: 10)
            let fields = ["Cache-Control": "max-age=3600", "Vary": vary]
            request.cacheOptions = .init(tags: [body])
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), body, fields: fields), for: request)
        }
        for _ in 0..<3 {
            switch change {
            case "mark": cache.markStale(for: request)
            case "pin": cache.setPinned(true, for: request)
            default: cache.markStale(tag: "old")
            }
            #expect(cache.cachedResponse(for: request)?.data == Data("new".utf8))
            if layer == "disk" { cache.forgetMemory() }
            #expect(cache.cachedResponse(for: request)?.data == Data("new".utf8))
        }
    }

    /// Variants that take more than the memory together: those that were stored last stay.
    @Test func theVariantsThatFitStayInMemory() throws {
        let cache = DiskURLCache(memoryCapacity: 1_000_000, diskCapacity: 0)
        for language in Self.languages {
            let fields = ["Cache-Control": "max-age=3600", "Vary": "Accept-Language"]
            let body = String(repeating: language, count: 200_000)
            let request = Self.request(language)
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), body, fields: fields), for: request)
            #expect(cache.cachedResponse(for: request) != nil)
        }
        #expect(Self.languages.map { cache.cachedResponse(for: Self.request($0)) != nil } == [false, true, true])
    }

    /// Bodies that are read from disk push out those that are there, too, and not what memory alone has.
    @Test func whatOnlyMemoryHasStays() throws {
        let cache = try SharedDirectory().open { $0.memoryCapacity = 1_000_000 }
        func store(_ language: String, count: Int, _ policy: URLCache.StoragePolicy) {
            let fields = ["Cache-Control": "max-age=3600", "Vary": "Accept-Language"]
            let body = String(repeating: language, count: count)
            cache.storeCachedResponse(
                Responses.cached(Responses.url("/a"), body, fields: fields, policy: policy),
                for: Self.request(language))
        }
        for language in Self.languages { store(language, count: 200_000, .allowed) }
        cache.forgetMemory()
        store("it", count: 10, .allowedInMemoryOnly)
        for language in Self.languages {
            #expect(cache.cachedResponse(for: Self.request(language))?.data.count == 400_000)
        }
        #expect(cache.cachedResponse(for: Self.request("it")) != nil)
    }

    // MARK: One response, and its older ones

    /// A record proves its key by its URL if that is the key, and by a digest if the URL is spelled otherwise.
    @Test(arguments: ["/a?utm_source=mail", "/%61", "/a#part"])
    func aResponseReplacesThatOfAnotherSpelling(spelling: String) throws {
        let directory = try SharedDirectory()
        for spellings in [[spelling, "/a"], ["/a", spelling]] {
            let cache = directory.open { $0.keyPolicy = .standard.droppingQueryItems("utm_source") }
            cache.removeAllCachedResponses()
            try #require(cache.key(for: Responses.request(spelling)) == cache.key(for: Responses.request("/a")))
            cache.put("old", spellings[0], tags: ["old"])
            directory.clock.advance(by: 10)
            cache.put("new", spellings[1], tags: ["new"])
            cache.flush()
            #expect(try directory.records.count == 1)
            cache.removeCachedResponses(tag: "new")
            cache.forgetMemory()
            for spelling in spellings { #expect(cache.found(spelling) == nil) }
            cache.close()
        }
    }

    /// What was stored with its URL is replaced by a response that is stored without it, and the other way round.
    @Test(arguments: [true, false]) func aResponseReplacesThatOfOtherSettings(keepsURLs: Bool) throws {
        let directory = try SharedDirectory()
        for (body, keepsURLs) in [("old", keepsURLs), ("new", !keepsURLs)] {
            let cache = directory.open { $0.keepsURLs = keepsURLs }
            directory.clock.advance(by: 10)
            cache.put(body)
            cache.flush()
            #expect(try directory.records.count == 1)
            #expect(cache.found() == body)
            cache.close()
        }
    }
}

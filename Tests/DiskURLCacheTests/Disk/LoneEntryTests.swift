import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The short way to an entry, by a hash of its URL and the URL in its record, gives what the long way gives, or nothing.
@Suite struct LoneEntryTests {
    private func key(_ url: String, sharingHashOf other: String? = nil, isURL: Bool = true) -> DiskKey {
        let parts = RequestKey(text: url, uri: nil, isForHead: false)
        var key = parts.diskKey
        if let other { key.uriHash = RequestKey.uriHash(other) }
        key.isURL = isURL
        return key
    }

    private let one = "http://example.org/one"
    private let two = "http://example.org/two"

    private func settled(_ fixture: DiskFixture, _ change: (inout DiskStore.Configuration) -> Void = { _ in })
        -> DiskStore
    {
        let store = fixture.open(change)
        store.flush()
        // Looks at what others did, once a second: after that the index is relied on.
        _ = store.candidates(for: .test("nobody's"))
        return store
    }

    private func lone(_ store: DiskStore, _ url: String, hashOf other: String? = nil) -> (
        entry: StoredEntry, key: DiskKey
    )? {
        // Once a second the long way looks at what others did, and until then the short way gives nothing: on a busy machine that
        // second may end between the two calls.
        for _ in 0..<5 {
            _ = store.candidates(for: .test("nobody's"))
            if let found = store.loneEntry(ofURL: url, uriHash: RequestKey.uriHash(other ?? url)) { return found }
        }
        return nil
    }

    @Test func isWhatTheLongWayGives() throws {
        let fixture = try DiskFixture()
        let store = settled(fixture)
        for (url, length) in [(one, 1_000), (two, 600_000)] {
            store.store(.test(testBody(length, length: length), url: url), for: key(url))
        }
        #expect(lone(store, one) == nil, "what is staged is for the long way")
        store.flush()
        for url in [one, two] {
            let found = try #require(lone(store, url)).entry
            #expect(found.metadata == store.candidates(for: key(url)).first?.metadata)
            #expect(found.body == store.body(key(url)))
        }
        // After a new launch too, and told by the index alone.
        store.close()
        let next = settled(fixture)
        #expect(lone(next, one)?.entry.body.count == 1_000)
        #expect(lone(next, one)?.key == key(one))
    }

    @Test func anotherURLWithTheSameHashIsNotServed() throws {
        let fixture = try DiskFixture()
        let store = settled(fixture)
        store.store(.test(testBody(1), url: one), for: key(one, sharingHashOf: two))
        store.flush()
        #expect(lone(store, two) == nil)
        #expect(lone(store, one, hashOf: two) != nil)
    }

    @Test func aKeyThatIsMoreThanItsURLIsNotServed() throws {
        let fixture = try DiskFixture()
        let store = settled(fixture)
        store.store(.test(testBody(1), url: one), for: key(one, isURL: false))
        store.flush()
        #expect(lone(store, one) == nil)
    }

    @Test func variantsAreForTheLongWay() throws {
        let fixture = try DiskFixture()
        let store = settled(fixture)
        for (number, language) in ["de", "en"].enumerated() {
            store.store(.test(testBody(number), language: language, url: one), for: key(one))
        }
        store.flush()
        #expect(lone(store, one) == nil)
    }

    @Test func whatIsTooOldIsNotServed() throws {
        let fixture = try DiskFixture()
        let store = settled(fixture) { $0.maximumStorageAge = 60 }
        store.store(.test(testBody(1), storedAt: Date() - 3_600, url: one), for: key(one))
        store.store(.test(testBody(2), url: two), for: key(two))
        store.flush()
        #expect(lone(store, one) == nil)
        #expect(lone(store, two) != nil)
    }

    @Test func damageIsNotServedAndTheLongWayClearsItUp() throws {
        let fixture = try DiskFixture()
        let store = settled(fixture)
        store.store(.test(testBody(1), url: one), for: key(one))
        store.flush()
        let path = try #require(fixture.onlyRecord(key(one)))
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[bytes.count - 1] ^= 1
        try bytes.write(to: URL(fileURLWithPath: path))
        #expect(lone(store, one) == nil)
        #expect(store.candidates(for: key(one)).isEmpty)
        store.flush()
        #expect(fixture.recordNames().isEmpty)
    }

    /// Read by the short way, an entry is the last to go.
    @Test func countsAsAUse() throws {
        let fixture = try DiskFixture()
        let store = settled(fixture) { $0.capacity = 200 << 10 }
        for number in 0..<8 {
            store.store(.test(testBody(number, length: 16_000), url: "\(one)\(number)"), for: key("\(one)\(number)"))
        }
        store.flush()
        #expect(lone(store, one + "0") != nil)
        for number in 8..<14 {
            store.store(.test(testBody(number, length: 16_000), url: "\(one)\(number)"), for: key("\(one)\(number)"))
            store.flush()
        }
        #expect(store.contains(key(one + "0")))
        #expect(!store.contains(key(one + "1")))
    }

    /// Through the cache: credentials, other spellings and other responses' URLs.
    @Test(arguments: [0, 1 << 20]) func throughTheCache(memory: Int) throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: memory, diskCapacity: 10 << 20, directory: scratch.appending("cache"))
        func text(_ request: URLRequest) -> String? {
            cache.removeMemory()
            return cache.cachedResponse(for: request).map { String(decoding: $0.data, as: UTF8.self) }
        }
        let plain = Responses.request("/a?b=c")
        let signed = Responses.request("/a?b=c", fields: ["Authorization": "Bearer secret"])
        cache.storeCachedResponse(Responses.cached(try #require(signed.url), "secret"), for: signed)
        cache.flush()
        #expect(text(plain) == nil)
        #expect(text(signed) == "secret")
        cache.storeCachedResponse(Responses.cached(try #require(plain.url), "open"), for: plain)
        cache.flush()
        #expect(text(plain) == "open")
        #expect(text(signed) == "secret")
        let other = URLRequest(url: try #require(URL(string: "HTTPS://EXAMPLE.com:443/x/../a?b=c#d")))
        #expect(text(other) == "open")
        // A response that names another URL, as after a redirect.
        let asked = Responses.request("/asked")
        cache.storeCachedResponse(Responses.cached(Responses.url("/given"), "moved"), for: asked)
        cache.flush()
        #expect(text(asked) == "moved")
        #expect(text(Responses.request("/given")) == nil)
        cache.storeCachedResponse(Responses.cached(try #require(plain.url), "newer"), for: plain)
        #expect(text(plain) == "newer")
        cache.flush()
        #expect(text(plain) == "newer")
        cache.removeCachedResponse(for: signed)
        cache.removeCachedResponse(for: plain)
        #expect(text(plain) == nil)
    }
}

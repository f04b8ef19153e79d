import Foundation
import Testing

@testable import DiskURLCache

/// What the random scripts found, as short tests.
@Suite struct ModelFindingsTests {
    /// A load that brings `no-store` removes what was stored by its number: the version before must not come back from disk.
    @Test func theVersionBeforeDoesNotComeBack() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(
            memoryCapacity: 1 << 20, diskCapacity: 16 << 20, directory: scratch.appending("cache"))
        let (url, request) = (Responses.url("/a"), Responses.request("/a"))
        cache.storeCachedResponse(Responses.cached(url, "older"), for: request)
        cache.storeCachedResponse(Responses.cached(url, "newer"), for: request)
        let key = try #require(cache.key(for: request))
        let newer = try #require(cache.store.lookup(key).variants().first)
        cache.store.remove(key, newer.metadata, by: nil)
        #expect(cache.cachedResponse(for: request) == nil)
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.cachedResponse(for: request) == nil)
    }

    /// What another cache of the directory stored a moment ago is removed, too, whoever maintains the directory.
    @Test func aRemovalSeesWhatAnotherJustStored() throws {
        let fixture = try DiskFixture()
        let maintainer = fixture.open()
        maintainer.store(.test(testBody(1)), for: .test("other"))
        maintainer.flush()
        #expect(maintainer.body(.test("a")) == nil)
        let second = fixture.open()
        second.store(.test(testBody(2)), for: .test("a"))
        second.flush()
        maintainer.remove(.test("a"))
        #expect(second.body(.test("a")) == nil)
        #expect(fixture.recordNames().count == 1)
        maintainer.close()
        second.close()
    }
}

import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A cache that is alone on its directory, as nearly every one is.
@Suite(.fewAtATime) struct LonelyCacheTests {
    private func request(_ number: Int) -> URLRequest { URLRequest(url: Responses.url("/\(number)")) }

    /// However much it stores and removes: what nobody removed stays.
    @Test func aCacheNeverEmptiesItself() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: 1 << 20, directory: scratch.appending("cache"))
        let kept = request(-1)
        cache.storeCachedResponse(Responses.cached(Responses.url("/-1"), "kept"), for: kept)
        // The file of changes has room for some thousand rows.
        for number in 0..<2_500 {
            let response = Responses.cached(Responses.url("/\(number)"), "memory")
            let inMemory = CachedURLResponse(
                response: response.response, data: response.data, userInfo: nil, storagePolicy: .allowedInMemoryOnly)
            cache.storeCachedResponse(inMemory, for: request(number))
            cache.removeCachedResponse(for: request(100_000 + number))
        }
        #expect(cache.cachedResponse(for: kept)?.data == Data("kept".utf8))
        #expect((0..<2_500).allSatisfy { cache.contains(request($0)) })
    }

    @Test func aCapacityOfZeroLeavesNoRecord() throws {
        let scratch = try ScratchDirectory()
        let directory = scratch.appending("cache")
        let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory)
        for number in 0..<10 {
            cache.storeCachedResponse(
                Responses.cached(Responses.url("/\(number)"), "body"), for: request(number))
        }
        func files() -> [String] {
            FileManager.default.enumerator(atPath: directory.path)?.allObjects as? [String] ?? []
        }
        #expect(files().contains { $0.hasPrefix("records/") })
        cache.diskCapacity = 0
        #expect(!files().contains { $0.hasPrefix("records/") || $0.hasPrefix("trash-") })
        cache.diskCapacity = 1 << 20
        cache.storeCachedResponse(Responses.cached(Responses.url("/1"), "body"), for: request(1))
        #expect(cache.contains(request(1)))
    }

    /// An app may delete the folder whenever it likes: nothing appears in it meanwhile.
    @Test func theFolderCanBeDeletedRightAfterAStore() throws {
        let scratch = try ScratchDirectory()
        for round in 0..<100 {
            let directory = scratch.appending("cache \(round)")
            let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: directory)
            for number in 0...round % 3 {
                cache.storeCachedResponse(
                    Responses.cached(Responses.url("/\(number)"), "body"), for: request(number))
            }
            #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) }
        }
    }
}

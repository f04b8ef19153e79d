import Foundation
import Testing

@testable import DiskURLCache

/// What happens while the index is still being read must not be forgotten.
@Suite struct OpeningRaceTests {
    @Test func storesAndRemovalsRightAfterOpening() throws {
        let scratch = try ScratchDirectory()
        for round in 0..<150 {
            let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: scratch.appending("c"))
            if round.isMultiple(of: 2) { cache.removeAllCachedResponses() }
            for path in ["/x/1", "/x/2", "/y"] {
                var request = Responses.request(path)
                request.cacheTreatment = .init(tags: path == "/y" ? ["other"] : ["group"])
                cache.storeCachedResponse(Responses.cached(request.url!, "\(path) \(round)"), for: request)
            }
            cache.removeCachedResponses(tag: "group")
            for _ in 0..<20 {
                let found = cache.cachedResponse(for: Responses.request("/y")).map {
                    String(decoding: $0.data, as: UTF8.self)
                }
                #expect(found == "/y \(round)")
                #expect(cache.contains(Responses.request("/y")))
                #expect(!cache.contains(Responses.request("/x/1")))
            }
        }
    }
}

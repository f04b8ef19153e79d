import DiskURLCache
import DiskURLCacheTools
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The explanation names the reason and the setting that helps. The event of each load has the reason, too.
@Sendable func whyNotCached(origin: Origin, directory: URL) async throws {
    let cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 200 << 20, directory: directory)
    var events = cache.events().makeAsyncIterator()
    let request = URLRequest(url: origin.url("/feed"))

    for _ in 1...2 { _ = try await cache.data(for: request) }
    let answer = try await cache.data(for: request)

    let explanation = cache.explanation(for: request, response: answer.response)
    expect(explanation.description.contains("whenMissing"), "the explanation names a rule: \(explanation)")
    while let event = await events.next() {
        guard case .load(let load) = event else { continue }
        expect(load.outcome != .hit(.memory), "a response without a lifetime is requested each time")
        break
    }
}

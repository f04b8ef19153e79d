import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A stored response is served for a day when the origin cannot be reached or answers with a server error.
@Sendable func offline(origin: Origin, directory: URL) async throws {
    var settings = DiskURLCache.Configuration(directory: directory)
    settings.staleIfError = .days(1)
    let cache = DiskURLCache(configuration: settings)
    let session = cache.makeSession()
    _ = try await session.data(from: origin.url("/news"))
    expect(cache.setPinned(true, for: URLRequest(url: origin.url("/news"))), "the news is evicted last")

    await origin.stop()
    let (news, _) = try await session.data(from: origin.url("/news"))
    expect(news == Data("news".utf8), "the stored news is shown while the origin is down")

    cache.isOffline = true
    let (again, _) = try await session.data(from: origin.url("/news"))
    expect(again == news, "the switch serves stored responses without a request")
}

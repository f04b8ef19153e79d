import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The path /me and all paths below it are neither looked up nor stored. /menu is cached.
@Sendable func neverCacheAnAccount(origin: Origin, directory: URL) async throws {
    var settings = DiskURLCache.Configuration(directory: directory)
    settings.rules = [
        .init(for: .path("/me", host: "127.0.0.1"), storage: .never)
    ]
    let cache = DiskURLCache(configuration: settings)
    let session = cache.makeSession()

    for path in ["/me", "/me/orders", "/me?page=1", "/%6De", "/menu"] {
        for _ in 1...2 { _ = try await session.data(from: origin.url(path)) }
    }

    let requests = await origin.log.count
    expect(requests == 9, "\(requests) requests: two for each page of the account and one for the menu were expected")
}

import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Neither looks up nor stores what lies at or below /me. /menu is cached.
@Sendable func neverCacheAnAccount(origin: Origin, directory: URL) async throws {
    let never = CacheTreatment(storage: .never)
    let me = origin.url("/me").absoluteString
    var settings = DiskURLCache.Configuration(directory: directory)
    try settings.setRules([
        CacheRule(.url(me), never), CacheRule(.url(me + "/*"), never), CacheRule(.url(me + "?*"), never),
    ])
    let cache = DiskURLCache(configuration: settings)
    let session = cache.makeSession()

    for path in ["/me", "/me/orders", "/me?page=1", "/menu"] {
        for _ in 1...2 { _ = try await session.data(from: origin.url(path)) }
    }

    let requests = await origin.log.count
    expect(requests == 7, "\(requests) requests: two for each page of the account and one for the menu were expected")
}

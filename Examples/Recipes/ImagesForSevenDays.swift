import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Images without a stated lifetime are fresh for seven days.
@Sendable func imagesForSevenDays(origin: Origin, directory: URL) async throws {
    var settings = DiskURLCache.Configuration(directory: directory)
    settings.rules = [
        DiskURLCache.Rule(.contentType("image/*"), DiskURLCache.Options(lifetime: .whenMissing(.days(7))))
    ]
    let cache = DiskURLCache(configuration: settings)
    let session = cache.makeSession()

    for _ in 1...3 { _ = try await session.data(from: origin.url("/picture.png")) }

    expect(await origin.log.count == 1, "an image is requested once")
}

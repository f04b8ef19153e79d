import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Images whose server sends no lifetime are fresh for seven days. Only images are stored, and none for longer than a
/// week.
@Sendable func imagesForSevenDays(origin: Origin, directory: URL) async throws {
    var settings = DiskURLCache.Configuration(directory: directory)
    settings.rules = [
        .init(for: .contentType("image/*"), lifetime: .whenMissing(.days(7)))
    ]
    settings.willCacheResponse = { response, _ in
        response.response.mimeType?.hasPrefix("image/") == true ? response : nil
    }
    settings.maximumTimeStored = .days(7)
    let cache = DiskURLCache(configuration: settings)
    let session = cache.makeSession()

    for _ in 1...3 { _ = try await session.data(from: origin.url("/picture.png")) }
    for _ in 1...2 { _ = try await session.data(from: origin.url("/menu")) }

    let requests = await origin.log
    expect(requests.filter { $0.contains("picture") }.count == 1, "an image is requested once: \(requests)")
    expect(requests.filter { $0.contains("menu") }.count == 2, "a menu is not stored: \(requests)")
}

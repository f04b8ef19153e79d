import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A build step fills a folder; the app answers from it at its first launch.
@Sendable func filledCache(origin: Origin, directory: URL) async throws {
    let requests = (1...3).map { URLRequest(url: origin.url("/guide/\($0)")) }
    let folder = directory.appendingPathComponent("Bundled", isDirectory: true)
    do {
        let factory = DiskURLCache(memoryCapacity: 0, diskCapacity: 100 << 20, directory: folder)
        let failed = await factory.prefetch(requests)
        expect(failed.isEmpty && requests.allSatisfy { factory.contains($0) }, "every page is in the folder")
        await factory.perform { $0.flush() }
    }
    await origin.stop()

    var settings = DiskURLCache.Configuration(directory: directory.appendingPathComponent("Cache"))
    settings.fallbackDirectories = [folder]
    let cache = DiskURLCache(configuration: settings)
    let session = cache.makeSession()
    for request in requests { _ = try await session.data(for: request) }

    expect(await origin.log.count == 3, "the app sends no request")
}

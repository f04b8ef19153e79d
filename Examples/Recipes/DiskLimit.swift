import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The capacity bounds all files of the cache. It can be lowered while the cache is used.
@Sendable func diskLimit(origin: Origin, directory: URL) async throws {
    let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 50 << 20, directory: directory)
    let session = cache.makeSession()
    for number in 1...60 { _ = try await session.data(from: origin.url("/film/\(number)")) }
    await cache.perform { $0.flush() }
    expect(cache.currentDiskUsage <= 50 << 20, "\(cache.currentDiskUsage) bytes are stored")
    expect(cache.contains(URLRequest(url: origin.url("/film/60"))), "the last film is stored")

    cache.diskCapacity = 10 << 20
    await cache.perform { $0.flush() }
    expect(cache.currentDiskUsage <= 10 << 20, "\(cache.currentDiskUsage) bytes are stored")
}

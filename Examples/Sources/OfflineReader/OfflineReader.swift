import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `swift run --package-path Examples OfflineReader`: a reader that ships with some articles, keeps others if the user
/// wants, and works without a network.
@main
enum OfflineReader {
    static func main() async throws {
        let origin = try await Origin.start(handler: answer)
        let directory = temporaryDirectory("OfflineReader")
        defer { try? FileManager.default.removeItem(at: directory) }
        let bundled = directory.appendingPathComponent("bundled", isDirectory: true)

        // 1. While the app is built: a cache is filled, and its folder becomes a resource of the app.
        let shipped = (1...3).map { URLRequest(url: origin.url("/shipped/\($0)")) }
        do {
            let factory = DiskURLCache(memoryCapacity: 0, diskCapacity: 50 << 20, directory: bundled)
            let failed = await factory.prefetch(shipped)
            factory.flush()
            expect(failed.isEmpty, "\(failed.count) articles could not be loaded")
            print("pre-filled  \(shipped.count - failed.count) articles, \(byteCount(factory.currentDiskUsage))")
        }

        // 2. On the user's device, online: one article is kept for the flight, and a lot of others are only read.
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 0, diskCapacity: 2 << 20, directory: directory.appendingPathComponent("cache"))
        settings.fallbackDirectories = [bundled]
        let cache = DiskURLCache(configuration: settings)
        URLCache.shared = cache

        var kept = URLRequest(url: origin.url("/kept"))
        kept.cacheOptions = .init(isPinned: true)
        _ = await load(kept, watching: cache)
        let read = (1...80).map { URLRequest(url: origin.url("/read/\($0)")) }
        for request in read { _ = await load(request, watching: cache) }
        cache.flush()
        print("online      1 article pinned, \(read.count) read: \(byteCount(cache.currentDiskUsage)) of 2.0 MB,")
        print("            \(grouped(cache.statistics.evictions)) evicted, least recently used first")

        // 3. On the plane.
        await origin.stop()
        cache.isOffline = true
        print("offline     the origin is down and isOffline is set\n")
        var table = TextTable(("article", .left), ("from", .left), ("bytes", .right), ("", .left))
        for (request, note, source) in [
            (shipped[0], "shipped with the app", "fallback"), (shipped[2], "shipped with the app", "fallback"),
            (kept, "pinned, the oldest in the cache", "disk"), (read[79], "read last", "disk"),
            (read[0], "read first, evicted since", "failed"),
        ] {
            let load = await load(request, watching: cache)
            expect(load.source.hasPrefix(source), "\(note): \(load.source), \(source) was expected")
            table.add(request.url?.path ?? "", load.source, grouped(load.data.count), note)
        }
        print(table.text)
    }

    @Sendable private static func answer(_ request: Origin.Request) async -> Origin.Reply {
        // 40,000 bytes, as an article with a picture.
        let text = "Article \(request.path). " + String(repeating: "Words and more words. ", count: 1_818)
        return Origin.Reply(
            fields: ["Content-Type": "text/plain", "Cache-Control": "max-age=86400"], text: text)
    }
}

import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A folder that a cache on Linux made is read the same on every platform: keys, dates, byte order, fields.
///
/// The folder was made by `DISKURLCACHE_WRITE_FIXTURES=1 swift test --filter LinuxFolderTests`, once, on Linux.
@Suite struct LinuxFolderTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fixtures/linux")
    private static let clock = ManualClock(Date(timeIntervalSince1970: 1_790_000_000))

    /// Requests and what is stored for them.
    private static let stored: [(request: URLRequest, response: CachedURLResponse)] = [
        "/list?page=2&q=%C3%A9", "/%7Euser", "/empty",
    ].enumerated().map { number, path in
        let url = Responses.url(path, host: "Example.COM:443")
        let fields = [
            "Date": "Mon, 21 Sep 2026 14:13:20 GMT", "Age": "7", "Cache-Control": "max-age=3600",
            "ETag": "\"é\(number)\"",
            "Content-Type": "text/plain; charset=utf-8",
        ]
        return (
            URLRequest(url: url),
            Responses.cached(
                url, number == 2 ? "" : "body é \(number)", fields: fields, userInfo: ["number": number, "text": "é"])
        )
    }

    private func open(_ directory: URL) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory)
        configuration.clock = Self.clock.wallClock
        return DiskURLCache(configuration: configuration)
    }

    #if os(Linux)
        @Test(.enabled(if: ProcessInfo.processInfo.environment["DISKURLCACHE_WRITE_FIXTURES"] != nil, "only on demand"))
        func write() throws {
            let scratch = try ScratchDirectory("linux")
            let cache = open(scratch.appending("cache"))
            for (request, response) in Self.stored { cache.storeCachedResponse(response, for: request) }
            cache.flush()
            try FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
            for name in ["records", "index.plist"] {
                try FileManager.default.copyItem(
                    at: scratch.appending("cache/" + name), to: Self.folder.appendingPathComponent(name))
            }
        }
    #endif

    /// With the index, and without it, by the records alone.
    @Test(arguments: [true, false]) func theFolderIsRead(_ hasIndex: Bool) throws {
        let scratch = try ScratchDirectory("linux")
        let directory = scratch.appending("cache")
        try FileManager.default.copyItem(at: Self.folder, to: directory)
        if !hasIndex { try FileManager.default.removeItem(at: directory.appendingPathComponent("index.plist")) }
        let cache = open(directory)
        cache.flush()
        for (request, response) in Self.stored {
            let found = try #require(cache.cachedResponse(for: request), "\(request)")
            #expect(found.data == response.data)
            #expect(found.isSame(as: response))
            #expect(found.userInfo?["number"] as? Int == response.userInfo?["number"] as? Int)
            #expect(found.userInfo?["text"] as? String == "é")
        }
        #expect(cache.statistics.diskHits == Self.stored.count)
    }
}

import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A hit in memory, against the floor and against Foundation's own.
enum MemoryRows {
    static let groups =
        [1 << 10, 16 << 10].map { size in
            Group("hit, \(size >> 10) KB") { report, options, scratch in
                report.add(
                    Row(
                        "memory hit, \(size >> 10) KB",
                        try hits(
                            options, scratch, size: size, diskCapacity: 64 << 20,
                            request: Content.request, headers: Content.headers),
                        targets: [3, 0.5]))
            }
        } + [Group("hit, 1 KB, bare", run: bare)]

    /// What earlier versions published: no `Vary`, no query, eight fields, no disk.
    private static func bare(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let left = ["Vary", "Strict-Transport-Security", "X-Content-Type-Options", "Access-Control-Allow-Origin"]
        report.add(
            Row(
                "memory hit, 1 KB, bare",
                try hits(
                    options, scratch, size: 1 << 10, diskCapacity: 0,
                    request: { URLRequest(url: URL(string: "https://cdn.example.com/items/item-\($0).json")!) },
                    headers: Content.headers.filter { !left.contains($0.key) }),
                note: "Eight header fields, no Vary, no query, no disk layer: for comparison only."))
    }

    private static func hits(
        _ options: Options, _ scratch: Scratch, size: Int, diskCapacity: Int,
        request: (Int) -> URLRequest, headers: [String: String]
    ) throws -> [Samples] {
        let count = 200
        let body = Content.body(size)
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: diskCapacity,
            directory: scratch.folder("memory-\(size)-\(diskCapacity)"))
        // Only as many entries as Foundation's cache holds in memory; without a disk, which would make it crash.
        let stock = URLCache(memoryCapacity: 64 << 20, diskCapacity: 0, diskPath: scratch.folder("stock").path)
        let dictionary = LockedDictionary()
        let requests = (0..<count).map(request)
        for request in requests {
            let response = Content.cached(request.url!, body, headers: headers)
            cache.storeCachedResponse(response, for: request)
            stock.storeCachedResponse(response, for: request)
            dictionary[request] = response
        }
        cache.flush()
        for found in [cache, stock].map({ $0.cachedResponse(for: requests[0]) }) where found?.data.count != size {
            throw DiskSet.MissingEntry()
        }
        return try Measure.alternately(
            rounds: options.rounds(400),
            [
                Side("DiskURLCache", batch: count) { consume(cache.cachedResponse(for: requests[$0 % count])) },
                Side("dictionary under a lock", batch: count) { consume(dictionary[requests[$0 % count]]) },
                Side("Foundation", batch: count) { consume(stock.cachedResponse(for: requests[$0 % count])) },
            ])
    }
}

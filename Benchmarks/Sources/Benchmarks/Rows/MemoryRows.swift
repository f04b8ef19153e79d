import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A hit in memory, against the floor and against Foundation's own.
enum MemoryRows {
    static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        for size in [1 << 10, 16 << 10] {
            let count = 200
            let body = Content.body(size)
            let cache = DiskURLCache(
                memoryCapacity: 64 << 20, diskCapacity: 64 << 20, directory: scratch.folder("memory-\(size)"))
            // Only as many entries as Foundation's cache holds in memory; without a disk, which would make it crash.
            let stock = URLCache(memoryCapacity: 64 << 20, diskCapacity: 0, diskPath: scratch.folder("stock").path)
            let dictionary = LockedDictionary()
            let requests = (0..<count).map(Content.request)
            for request in requests {
                let response = Content.cached(request.url!, body)
                cache.storeCachedResponse(response, for: request)
                stock.storeCachedResponse(response, for: request)
                dictionary[request] = response
            }
            cache.flush()
            let samples = try Measure.alternately(
                rounds: options.rounds(400),
                [
                    Side("DiskURLCache", batch: count) { consume(cache.cachedResponse(for: requests[$0 % count])) },
                    Side("dictionary under a lock", batch: count) { consume(dictionary[requests[$0 % count]]) },
                    Side("Foundation", batch: count) { consume(stock.cachedResponse(for: requests[$0 % count])) },
                ])
            report.add(Row("memory hit, \(size >> 10) KB", samples, targets: [1.6, 0.2]))
        }
    }
}

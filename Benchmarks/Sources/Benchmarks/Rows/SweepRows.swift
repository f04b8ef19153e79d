import DiskURLCache
import Foundation

/// Cost against body size and against entry count, for the plots.
enum SweepRows {
    static let groups = [Group("by size", run: bySize), Group("by entries", run: byEntries)]

    private static func bySize(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let sizes = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 51_200].filter { !options.isQuick || $0 <= 1_024 }
        for kilobytes in sizes {
            let part = try Scratch(in: scratch.url.path)
            let count = min(64, max(4, 65_536 / kilobytes))
            let set = try DiskSet(part, count: count, bodySize: kilobytes << 10)
            let samples = try Measure.alternately(
                rounds: options.rounds(kilobytes > 4_096 ? 20 : 100), [set.bodyOnly, set.raw])
            report.add(Row("sweep: read by size, \(kilobytes.grouped) KB", samples))
        }
    }

    private static func byEntries(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        // Deleted together at the end: see `Scratch.settle`.
        var parts: [Scratch] = []
        defer { withExtendedLifetime(parts) {} }
        if !options.isQuick { try scratch.settle() }
        for count in [100, 1_000, 10_000, 100_000, 1_000_000] where !options.isQuick || count <= options.manyEntries {
            let part = try Scratch(in: scratch.url.path)
            parts.append(part)
            let set = try DiskSet(part, count: count, bodySize: 1 << 10)
            let samples = try Measure.alternately(rounds: options.rounds(300), [set.bodyOnly, set.raw])
            report.add(Row("sweep: read by entries, \(count.grouped)", samples))
            let body = Content.body(1 << 10)
            var next = count
            let stores = try Measure.alternately(
                rounds: options.rounds(20),
                [
                    Side("store + flush of 100") { _ in
                        for number in next..<next + 100 {
                            let request = Content.request(number)
                            set.cache.storeCachedResponse(Content.cached(request.url!, body), for: request)
                        }
                        next += 100
                        set.cache.flush()
                    }
                ])
            report.add(
                Row(
                    "sweep: store by entries, \(count.grouped)",
                    Samples(name: "store", stores[0].sorted.map { $0 / 100 })))
        }
    }
}

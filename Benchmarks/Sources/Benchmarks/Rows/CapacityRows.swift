import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Stores into a full cache, so that each store evicts an entry.
enum CapacityRows {
    static let groups = [Group("store at capacity", run: run)]

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let many = options.manyEntries
        var sides: [Samples] = []
        // The index is written once a batch, so a short batch of a large cache has all of that in it. An eviction frees
        // a tenth of the capacity, so only a long one has its share of that.
        for (count, batch) in [(1_000, 200), (many, 200), (many, many / 10)] {
            let samples = try atCapacity(
                scratch, count: count, batch: batch, rounds: options.rounds(batch > 200 ? 10 : 40))
            let name = "\(count.grouped) entries, \(batch.grouped) at a time"
            report.add(Row("store at capacity, 4 KB, \(name)", samples, targets: [1.2]))
            sides.append(samples[0])
        }
        var flat = Row("store at capacity, many against few entries", sides[2])
        flat.compare(with: sides[0], target: 1.2)
        report.add(flat)
    }

    /// The capacity is that of `count` entries. A round stores a batch and waits until it is on disk; the peer makes
    /// and removes as many plain files.
    private static func atCapacity(_ scratch: Scratch, count: Int, batch: Int, rounds: Int) throws -> [Samples] {
        let body = Content.body(4 << 10)
        let directory = scratch.folder("capacity-\(count)-\(batch)")
        let cache = DiskURLCache.filled(at: directory, count: count, bodySize: body.count)
        // The capacity becomes what is in use now, so that the next store starts evicting.
        cache.diskCapacity = cache.currentDiskUsage
        var next = count
        // Enough stores for the first eviction, down to the low-water mark, so that a steady state is measured.
        for _ in 0..<max(2, count / 8 / batch) {
            store(items(&next, batch, body), in: cache)
        }
        let raw = scratch.folder("capacity-raw-\(count)-\(batch)")
        try FileManager.default.createDirectory(at: raw, withIntermediateDirectories: true)
        let record = SQLitePeer.head + body
        func path(_ number: Int) -> [CChar] { Array("\(raw.path)/\(String(format: "%064d", number))".utf8CString) }
        for number in 0..<count { try RawFiles.write(record, to: path(number)) }
        var nextRaw = count
        var ready: [(URLRequest, CachedURLResponse)] = []
        var paths: [(new: [CChar], old: [CChar])] = []
        return try Measure.alternately(
            rounds: rounds,
            [
                // Requests, responses and paths are made before the clock starts, as the app would make them.
                Side("DiskURLCache", prepare: { ready = items(&next, batch, body) }) { _ in store(ready, in: cache) },
                Side(
                    "raw create + write + close + unlink",
                    prepare: {
                        paths = (nextRaw..<nextRaw + batch).map { (path($0), path($0 - count)) }
                        nextRaw += batch
                    }
                ) { _ in
                    for (new, old) in paths {
                        try RawFiles.write(record, to: new)
                        RawFiles.remove(old)
                    }
                },
            ]
        ).map { side in Samples(name: side.name, side.sorted.map { $0 / Double(batch) }) }
    }

    private static func items(_ next: inout Int, _ batch: Int, _ body: Data) -> [(URLRequest, CachedURLResponse)] {
        defer { next += batch }
        return (next..<next + batch).map { number in
            let request = Content.request(number)
            return (request, Content.cached(request.url!, body))
        }
    }

    private static func store(_ items: [(URLRequest, CachedURLResponse)], in cache: DiskURLCache) {
        for (request, response) in items { cache.storeCachedResponse(response, for: request) }
        cache.flush()
    }
}

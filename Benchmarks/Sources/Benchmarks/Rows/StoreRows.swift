import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The time of a store: of the call, and until everything is on disk.
enum StoreRows {
    static let groups =
        [Group("as the caller sees it", run: caller), Group("burst", run: burst)]
        + [1 << 10, 4 << 10, 16 << 10, 64 << 10].map { size in
            Group("drained to disk, \(size >> 10) KB") { try drained($0, $1, $2, size: size) }
        } + [Group("flush", run: flush)]

    /// The call alone. Remaining work is done outside of the timed part.
    private static func caller(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let cache = DiskURLCache(
            memoryCapacity: 16 << 20, diskCapacity: 8 << 30, directory: scratch.folder("store-caller"))
        let size = 4 << 10
        let body = Content.body(size)
        let batch = 50
        let rounds = options.rounds(200)
        let items = (0..<batch * (rounds + 1)).map { number in
            let request = Content.request(number)
            return (request, Content.cached(request.url!, body))
        }
        let samples = try Measure.alternately(
            rounds: rounds,
            [
                Side("DiskURLCache", batch: batch, prepare: { cache.flush() }) {
                    cache.storeCachedResponse(items[$0].1, for: items[$0].0)
                },
                Side("one copy of the body", batch: batch) { _ in
                    consume(body.withUnsafeBytes { Data(bytes: $0.baseAddress!, count: $0.count) })
                },
            ])
        var row = Row("store, as the caller sees it, 4 KB", samples[0], target: 10)
        row.compare(with: samples[1], target: nil)
        report.add(row)
    }

    /// Every call of a burst, timed separately: the longest one is the pause that a user would notice.
    private static func burst(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = 20_000
        let cache = DiskURLCache(
            memoryCapacity: 16 << 20, diskCapacity: 8 << 30, directory: scratch.folder("store-burst"))
        let body = Content.body(4 << 10)
        let items = (0..<count).map { number in
            let request = Content.request(number)
            return (request, Content.cached(request.url!, body))
        }
        var times: [Double] = []
        times.reserveCapacity(count)
        for (request, response) in items {
            times.append(Measure.once { cache.storeCachedResponse(response, for: request) })
        }
        let drain = Measure.once { cache.flush() }
        let samples = Samples(name: "DiskURLCache", times)
        report.add(
            Row(
                "store in a burst of \(count.grouped), 4 KB", samples,
                note: "Drained \((drain / 1_000).short) ms after the last call."))
        report.add(Row("  its longest pause", value: samples.longest, unit: "µs", target: 10_000))
    }

    /// A batch of stores and the flush that ends it, against writing the same files.
    private static func drained(_ report: Report, _ options: Options, _ scratch: Scratch, size: Int) throws {
        let batch = 200
        let rounds = options.rounds(25)
        let body = Content.body(size)
        let cache = DiskURLCache(
            memoryCapacity: 0, diskCapacity: 16 << 30, directory: scratch.folder("drained-\(size)"))
        let responses = (0..<batch * (rounds + 1)).map { number in
            let request = Content.request(number)
            return (request, Content.cached(request.url!, body))
        }
        let raw = scratch.folder("raw-\(size)")
        try FileManager.default.createDirectory(at: raw, withIntermediateDirectories: true)
        // With names as long as the cache's, and as many bytes as its records have.
        let record = SQLitePeer.head + body
        let paths = (0..<batch * (rounds + 1)).map { number in
            Array("\(raw.path)/\(String(format: "%064d", number))".utf8CString)
        }
        let database = try SQLitePeer(path: scratch.folder("drained-\(size).sqlite").path)
        let segment = try SegmentFile(path: scratch.folder("drained-\(size).segment").path)
        // A batch is one operation here: the flush belongs to it.
        func eachOf(_ number: Int, _ body: (Int) throws -> Void) rethrows {
            for item in number * batch..<(number + 1) * batch { try body(item) }
        }
        let samples = try Measure.alternately(
            rounds: rounds,
            [
                Side("DiskURLCache") {
                    eachOf($0) { cache.storeCachedResponse(responses[$0].1, for: responses[$0].0) }
                    cache.flush()
                },
                Side("raw create + write + close") { try eachOf($0) { try RawFiles.write(record, to: paths[$0]) } },
                Side("SQLite insert, own transaction") {
                    try eachOf($0) { try database.insert(SQLitePeer.key($0), head: SQLitePeer.head, body: body) }
                },
                Side("segment file append") { try eachOf($0) { try segment.append(record, for: SQLitePeer.key($0)) } },
            ]
        ).map { side in Samples(name: side.name, side.sorted.map { $0 / Double(batch) }) }
        report.add(Row("store, drained to disk, \(size >> 10) KB", samples, targets: [1.5, 0.5]))
    }

    /// One store and the flush after it, with few and with many entries in the cache.
    private static func flush(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        for count in [1_000, options.manyEntries] {
            let cache = DiskURLCache.filled(at: scratch.folder("flush-\(count)"), count: count, bodySize: 1 << 10)
            let body = Content.body(1 << 10)
            let rounds = options.rounds(100)
            let items = (0...rounds).map { number in
                let request = Content.request(count + number)
                return (request, Content.cached(request.url!, body))
            }
            let samples = try Measure.alternately(
                rounds: rounds,
                [
                    Side("flush after one store") { number in
                        cache.storeCachedResponse(items[number].1, for: items[number].0)
                        cache.flush()
                    }
                ])
            report.add(Row("flush after one store, \(count.grouped) entries", samples[0], target: 1_000))
        }
    }
}

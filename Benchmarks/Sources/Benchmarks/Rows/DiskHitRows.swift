import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Hits on disk: memory capacity 0, so every lookup reads its record; the page cache is warm.
enum DiskHitRows {
    static let groups =
        [Group("1 KB and 4 KB", run: small)]
        + [(64 << 10, 200), (1 << 20, 24), (8 << 20, 6)].map { size, count in
            Group(size < 1 << 20 ? "\(size >> 10) KB" : "\(size >> 20) MB") {
                try large($0, $1, $2, size: size, count: count)
            }
        } + [Group("Foundation", run: foundation)]

    /// 4 KB bodies at two entry counts. The same caches are asked in turns, so that "flat" is one run's answer too.
    private static func small(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let body = Content.body(4 << 10)
        let few = 1_000
        let many = options.manyEntries
        var sets: [DiskSet] = []
        for count in [few, many] {
            sets.append(try DiskSet(scratch, count: count, bodySize: 4 << 10))
        }
        sets.append(try DiskSet(scratch, count: few, bodySize: 1 << 10))
        for set in sets {
            let name = "\(set.bodySize >> 10) KB, \(set.count.grouped) entries"
            let samples = try Measure.alternately(
                rounds: options.rounds(1_500), [set.whole, set.rawWithResponse, set.bodyOnly, set.raw])
            report.add(Row("disk hit, \(name)", [samples[0], samples[1]], targets: [1.15]))
            report.add(Row("disk hit, body only, \(name)", [samples[2], samples[3]], targets: [1.5]))
        }
        let flat = try Measure.alternately(rounds: options.rounds(1_500), [sets[1].bodyOnly, sets[0].bodyOnly])
        report.add(Row("disk hit, \(many.grouped) against \(few.grouped) entries", flat, targets: [1.1]))
        let flatRaw = try Measure.alternately(rounds: options.rounds(1_500), [sets[1].raw, sets[0].raw])
        report.add(
            Row(
                "  the same of raw reads", flatRaw,
                note: "What the file system itself adds between the two counts: colder directory entries and inodes."))

        let database = try SQLitePeer.filled(path: scratch.folder("hits.sqlite").path, count: many, body: body)
        let segment = try SegmentFile(path: scratch.folder("hits.segment").path)
        let keys = sets[1].keys
        for key in keys { try segment.append(body, for: key) }
        let peers = try Measure.alternately(
            rounds: options.rounds(1_500),
            [
                sets[1].bodyOnly,
                Side("SQLite read", batch: sets[1].bodyOnly.batch) {
                    consume(try database.body(of: keys[$0 % keys.count]))
                },
                Side("segment file read", batch: sets[1].bodyOnly.batch) {
                    consume(try segment.read(keys[$0 % keys.count]))
                },
            ])
        report.add(Row("disk hit, body only, against other stores", peers))
    }

    private static func large(
        _ report: Report, _ options: Options, _ scratch: Scratch, size: Int, count: Int
    ) throws {
        let set = try DiskSet(scratch, count: count, bodySize: size)
        let samples = try Measure.alternately(
            rounds: options.rounds(size > 1 << 20 ? 100 : 400), [set.whole, set.rawWithResponse, set.raw])
        let name = size < 1 << 20 ? "\(size >> 10) KB" : "\(size >> 20) MB"
        let isMedium = size < 1 << 20
        report.add(
            Row(
                "disk hit, \(name)", [samples[0], isMedium ? samples[1] : samples[2]],
                targets: [isMedium ? 1.15 : 1.3]))
    }

    /// Foundation's cache lists its directory at each lookup and crashes when it evicts: few entries, ample capacity,
    /// each URL stored once.
    private static func foundation(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = 100
        let stock = URLCache(memoryCapacity: 0, diskCapacity: 1 << 30, diskPath: scratch.folder("stock-disk").path)
        let body = Content.body(4 << 10)
        let requests = (0..<count).map(Content.request)
        for request in requests {
            stock.storeCachedResponse(Content.cached(request.url!, body), for: request)
        }
        let set = try DiskSet(scratch, count: count, bodySize: 4 << 10)
        let samples = try Measure.alternately(
            rounds: options.rounds(200),
            [
                Side("DiskURLCache") { read(set.cache, requests[$0 % count]) },
                Side("Foundation") { read(stock, requests[$0 % count]) },
            ])
        report.add(Row("disk hit, 4 KB, 100 entries", samples))
    }

    static func read(_ cache: URLCache, _ request: URLRequest) {
        let found = cache.cachedResponse(for: request)
        consume(found?.response)
        consume(found?.data)
    }
}

/// A filled cache, and the sides that read its records.
struct DiskSet {
    struct MissingEntry: Error {}

    let cache: DiskURLCache
    let count: Int
    let bodySize: Int
    let directory: URL
    private let requests: [URLRequest]
    private let files: [[CChar]]

    init(_ scratch: Scratch, count: Int, bodySize: Int) throws {
        directory = scratch.folder("set-\(count)-\(bodySize)")
        cache = DiskURLCache.filled(at: directory, count: count, bodySize: bodySize)
        self.count = count
        self.bodySize = bodySize
        requests = Content.sample(of: count)
        var generator = SeededGenerator(seed: 11)
        // The records themselves: whatever the layout, the raw side reads the same bytes.
        let records = RawFiles.files(under: directory).filter { path in
            var status = stat()
            return stat(path, &status) == 0 && Int(status.st_size) >= bodySize
                && Int(status.st_size) < bodySize + 16 << 10
        }
        files = Array(records.shuffled(using: &generator).prefix(requests.count))
        for request in requests.prefix(100) where cache.cachedResponse(for: request)?.data.count != bodySize {
            throw MissingEntry()
        }
        guard files.count >= min(requests.count, count) * 9 / 10 else { throw MissingEntry() }
    }

    var keys: [String] { requests.compactMap { $0.url?.absoluteString } }
    /// Samples of some 100 µs, so that the clock and an interrupt weigh little.
    private var batch: Int { bodySize <= 4 << 10 ? 20 : 1 }

    /// The response object and the body.
    var whole: Side {
        Side("DiskURLCache", batch: batch) { DiskHitRows.read(cache, requests[$0 % requests.count]) }
    }

    var bodyOnly: Side {
        Side("DiskURLCache", batch: batch) { consume(cache.cachedResponse(for: requests[$0 % requests.count])?.data) }
    }

    var raw: Side {
        Side("raw read", batch: batch) { consume(try RawFiles.read(files[$0 % files.count])) }
    }

    var rawWithResponse: Side {
        Side("raw read + HTTPURLResponse.init", batch: batch) {
            consume(try RawFiles.read(files[$0 % files.count]))
            consume(Content.httpResponse(requests[$0 % requests.count].url!))
        }
    }
}

extension Int {
    /// With separators: 100,000.
    var grouped: String {
        var digits = String(self)
        var groups: [Substring] = []
        while digits.count > 3 {
            groups.insert(digits.suffix(3), at: 0)
            digits.removeLast(3)
        }
        return ([digits[...]] + groups).joined(separator: ",")
    }
}

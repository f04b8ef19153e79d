import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Pack files beside one file an entry, SQLite and the raw calls: the nine rows of decision record 0007, in one run.
enum PackRows {
    static let groups =
        [1 << 10, 4 << 10].map { size in Group("drained, \(size >> 10) KB") { try drained($0, $1, $2, size: size) } }
        + [Group("hit", run: hits), Group("at capacity", run: capacity), Group("space", run: space)]
        + [
            Group("open, rebuild, clear", run: open), Group("memory", run: memory),
            Group("write amplification", run: amplification),
        ]

    /// A cache with its entries in packs, or in files.
    static func cache(packs: Bool, _ directory: URL, disk: Int = 64 << 30) -> DiskURLCache {
        if packs { setenv("DISKURLCACHE_PACKS", "1", 1) } else { unsetenv("DISKURLCACHE_PACKS") }
        defer { unsetenv("DISKURLCACHE_PACKS") }
        return DiskURLCache(memoryCapacity: 0, diskCapacity: disk, directory: directory)
    }

    private static func filled(packs: Bool, _ directory: URL, count: Int, size: Int) -> DiskURLCache {
        let cache = cache(packs: packs, directory)
        let body = Content.body(size)
        for number in 0..<count {
            let request = Content.request(number)
            cache.storeCachedResponse(Content.cached(request.url!, body), for: request)
        }
        cache.flush()
        return cache
    }

    private static func items(_ numbers: Range<Int>, _ body: Data) -> [(URLRequest, CachedURLResponse)] {
        numbers.map { number in
            let request = Content.request(number)
            return (request, Content.cached(request.url!, body))
        }
    }

    private static func store(_ items: ArraySlice<(URLRequest, CachedURLResponse)>, in cache: DiskURLCache) {
        for (request, response) in items { cache.storeCachedResponse(response, for: request) }
        cache.flush()
    }

    /// Row 1.
    private static func drained(_ report: Report, _ options: Options, _ scratch: Scratch, size: Int) throws {
        let batch = 200
        let rounds = options.rounds(40)
        let body = Content.body(size)
        let packs = cache(packs: true, scratch.folder("drained-packs-\(size)"))
        let files = cache(packs: false, scratch.folder("drained-files-\(size)"))
        let all = items(0..<batch * (rounds + 1), body)
        let raw = scratch.folder("drained-raw-\(size)")
        try FileManager.default.createDirectory(at: raw, withIntermediateDirectories: true)
        let record = SQLitePeer.head + body
        let paths = all.indices.map { Array("\(raw.path)/\(String(format: "%064d", $0))".utf8CString) }
        let database = try SQLitePeer(path: scratch.folder("drained-\(size).sqlite").path)
        let segment = try SegmentFile(path: scratch.folder("drained-\(size).segment").path)
        func numbers(_ round: Int) -> Range<Int> { round * batch..<(round + 1) * batch }
        let samples = try Measure.alternately(
            rounds: rounds,
            [
                Side("packs") { store(all[numbers($0)], in: packs) },
                Side("segment file append") {
                    for item in numbers($0) { try segment.append(record, for: SQLitePeer.key(item)) }
                },
                Side("SQLite insert, batched") {
                    try database.run("BEGIN")
                    for item in numbers($0) {
                        try database.insert(SQLitePeer.key(item), head: SQLitePeer.head, body: body)
                    }
                    try database.run("COMMIT")
                },
                Side("one file an entry") { store(all[numbers($0)], in: files) },
                Side("raw create + write + close") {
                    for item in numbers($0) { try RawFiles.write(record, to: paths[item]) }
                },
            ]
        ).map { side in Samples(name: side.name, side.sorted.map { $0 / Double(batch) }) }
        report.add(Row("packs: store drained, \(size >> 10) KB", samples, targets: [2, 0.6]))
    }

    /// Rows 2 and 3.
    private static func hits(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        for count in [1_000, options.isQuick ? 5_000 : 50_000] {
            let set = try DiskSet(scratch, count: count, bodySize: 4 << 10)
            let packs = filled(packs: true, scratch.folder("hit-packs-\(count)"), count: count, size: 4 << 10)
            let requests = Content.sample(of: count)
            for request in requests.prefix(100) where packs.cachedResponse(for: request)?.data.count != 4 << 10 {
                throw DiskSet.MissingEntry()
            }
            let database = try SQLitePeer.filled(
                path: scratch.folder("hit-\(count).sqlite").path, count: count, body: Content.body(4 << 10))
            let segment = try SegmentFile(path: scratch.folder("hit-\(count).segment").path)
            for key in set.keys { try segment.append(SQLitePeer.head + Content.body(4 << 10), for: key) }
            let keys = set.keys
            let samples = try Measure.alternately(
                rounds: options.rounds(1_500),
                [
                    Side("packs", batch: 20) {
                        consume(packs.cachedResponse(for: requests[$0 % requests.count])?.data)
                    },
                    set.raw, set.bodyOnly,
                    Side("SQLite read", batch: 20) { consume(try database.body(of: keys[$0 % keys.count])) },
                    Side("segment file read", batch: 20) { consume(try segment.read(keys[$0 % keys.count])) },
                ])
            report.add(Row("packs: hit, body only, 4 KB, \(count.grouped) entries", samples, targets: [0.6]))
            let whole = try Measure.alternately(
                rounds: options.rounds(1_500),
                [
                    Side("packs", batch: 20) { DiskHitRows.read(packs, requests[$0 % requests.count]) },
                    set.rawWithResponse, set.whole,
                ])
            report.add(Row("packs: hit, response used, 4 KB, \(count.grouped) entries", whole, targets: [1]))
        }
    }

    /// Row 4.
    private static func capacity(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let body = Content.body(4 << 10)
        let batch = 200
        var sides: [Samples] = []
        for count in [1_000, options.manyEntries] {
            let rounds = options.rounds(60)
            let caches = [true, false].map { isPacks in
                let cache = filled(
                    packs: isPacks, scratch.folder("capacity-\(isPacks)-\(count)"), count: count, size: body.count)
                cache.diskCapacity = cache.currentDiskUsage
                return cache
            }
            var next = [count, count]
            func ready(_ side: Int) -> [(URLRequest, CachedURLResponse)] {
                defer { next[side] += batch }
                return items(next[side]..<next[side] + batch, body)
            }
            for side in 0..<2 { for _ in 0..<max(2, count / 8 / batch) { store(ready(side)[...], in: caches[side]) } }
            let raw = scratch.folder("capacity-raw-\(count)")
            try FileManager.default.createDirectory(at: raw, withIntermediateDirectories: true)
            let record = SQLitePeer.head + body
            func path(_ number: Int) -> [CChar] { Array("\(raw.path)/\(String(format: "%064d", number))".utf8CString) }
            for number in 0..<count { try RawFiles.write(record, to: path(number)) }
            var nextRaw = count
            var paths: [(new: [CChar], old: [CChar])] = []
            var stores: [(URLRequest, CachedURLResponse)] = []
            let samples = try Measure.alternately(
                rounds: rounds,
                [
                    Side("packs", prepare: { stores = ready(0) }) { _ in store(stores[...], in: caches[0]) },
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
                    Side("one file an entry", prepare: { stores = ready(1) }) { _ in store(stores[...], in: caches[1])
                    },
                ]
            ).map { side in Samples(name: side.name, side.sorted.map { $0 / Double(batch) }) }
            guard caches[0].currentDiskUsage <= caches[0].diskCapacity else {
                throw Child.Failure(message: "above the capacity")
            }
            let du = RawFiles.readdirAndStat(scratch.folder("capacity-true-\(count)")).bytes
            report.add(
                Row(
                    "packs: store at capacity, 4 KB, \(count.grouped) entries", samples, targets: [0.6],
                    note:
                        "Mean \((mean(samples[0])).short) µs; files take \(du.grouped) of \(caches[0].diskCapacity.grouped) bytes after a flush."
                ))
            sides.append(samples[0])
        }
        var flat = Row("packs: at capacity, many against few entries", sides[1])
        flat.compare(with: sides[0], target: 1.2)
        report.add(flat)
    }

    private static func mean(_ samples: Samples) -> Double {
        samples.sorted.reduce(0, +) / Double(max(1, samples.sorted.count))
    }

    /// Row 5.
    private static func space(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let fields = Content.headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        for size in [100, 1_000, 2_000] {
            let count = 5_000
            let taken = [true, false].map { isPacks -> Double in
                let directory = scratch.folder("space-\(isPacks)-\(size)")
                _ = filled(packs: isPacks, directory, count: count, size: size)
                // The cache is closed: all is at rest. Blocks, folders included.
                let folders = ["", "/records", "/packs"].reduce(0) { sum, name in
                    var status = stat()
                    return stat(directory.path + name, &status) == 0 ? sum + Int(status.st_blocks) * 512 : sum
                }
                return Double(RawFiles.readdirAndStat(directory).bytes + folders) / Double(count)
            }
            let content = Double(size + fields)
            var row = Row(
                "packs: an entry of \(size.grouped) bytes, beside its content", value: taken[0] - content, unit: "B",
                target: 200,
                note:
                    "\(taken[0].short) B in all, index and folders included; body and the \(fields) bytes of names and values of its fields are \(content.short) B. One file an entry: \(taken[1].short) B."
            )
            row.compare(with: Samples(name: "one file an entry, beside its content", [taken[1] - content]), target: nil)
            report.add(row)
        }
    }

    /// Rows 6, 7 and 8.
    private static func open(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = options.manyEntries
        let name = "\(count.grouped) entries"
        let folders = [scratch.folder("open-packs"), scratch.folder("open-files")]
        for (folder, isPacks) in zip(folders, [true, false]) {
            _ = filled(packs: isPacks, folder, count: count, size: 1 << 10)
        }
        let requests = Content.sample(of: count)
        var opened: DiskURLCache?
        func begin(_ isPacks: Bool) { opened = cache(packs: isPacks, folders[isPacks ? 0 : 1]) }
        func end() { withExtendedLifetime(opened) { opened = nil } }
        let readdir = Side("readdir + stat of as many files") { _ in RawFiles.readdirAndStat(folders[1]) }

        let usage = try Measure.alternately(
            rounds: options.rounds(20),
            [
                Side("packs", prepare: end) { _ in
                    begin(true)
                    consume(opened?.currentDiskUsage)
                },
                readdir,
                Side("one file an entry", prepare: end) { _ in
                    begin(false)
                    consume(opened?.currentDiskUsage)
                },
            ])
        report.add(Row("packs: open to usage known, \(name)", usage, targets: [0.05]))
        let first = try Measure.alternately(
            rounds: options.rounds(30),
            [true, false].map { isPacks in
                Side(isPacks ? "packs" : "one file an entry", prepare: end) { number in
                    begin(isPacks)
                    guard opened?.cachedResponse(for: requests[number % requests.count])?.data.count == 1 << 10 else {
                        throw DiskSet.MissingEntry()
                    }
                }
            } + [readdir])
        report.add(
            Row(
                "packs: open to first hit, \(name)", first,
                note: "The index of packs is read whole before the first hit; with files the first hit needs none."))

        let rebuilt = try Measure.alternately(
            rounds: options.rounds(10),
            [true, false].map { isPacks in
                Side(
                    isPacks ? "packs" : "one file an entry",
                    prepare: {
                        end()
                        for file in ["index.plist", "index.journal"] {
                            unlink(folders[isPacks ? 0 : 1].appendingPathComponent(file).path)
                        }
                    },
                    operation: { _ in
                        begin(isPacks)
                        guard opened?.cachedResponse(for: requests[0]) != nil else { throw DiskSet.MissingEntry() }
                        consume(opened?.currentDiskUsage)
                    })
            } + [readdir])
        var rebuild = Row("packs: rebuild of a lost index, \(name)", rebuilt[0])
        rebuild.compare(with: rebuilt[2], target: 0.3)
        rebuild.compare(with: rebuilt[1], target: nil)
        report.add(rebuild)

        end()
        let times = [true, false].map { isPacks -> Double in
            begin(isPacks)
            consume(opened?.currentDiskUsage)
            _ = opened?.cachedResponse(for: requests[0])
            let time = Measure.once {
                opened?.removeAllCachedResponses()
                opened?.flush()
            }
            for request in requests where opened?.cachedResponse(for: request) != nil { return .infinity }
            end()
            return time / 1_000
        }
        var cleared = Row(
            "packs: removeAll until its files are gone, \(name)", value: times[0], unit: "ms", target: 100)
        cleared.compare(with: Samples(name: "one file an entry", [times[1]]), target: nil)
        report.add(cleared)
    }

    /// Row 9.
    private static func memory(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = options.manyEntries
        var added: [Double] = []
        for isPacks in [true, false] {
            let directory = scratch.folder("memory-\(isPacks)")
            _ = filled(packs: isPacks, directory, count: count, size: 100)
            let before = Memory.heapBytes()
            let cache = cache(packs: isPacks, directory)
            _ = cache.cachedResponse(for: Content.request(0))
            consume(cache.currentDiskUsage)
            added.append(Double(Memory.heapBytes() - before) / Double(count))
            withExtendedLifetime(cache) {}
        }
        var row = Row("packs: index in memory, \(count.grouped) entries", value: added[0], unit: "B/entry")
        row.compare(with: Samples(name: "one file an entry", [added[1]]), target: 1)
        report.add(row)
    }

    /// Bytes given to `write` by the process for each byte of a record that was stored, index files included, where a trace goes through
    /// a disk that holds a share of it.
    private static func amplification(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let length = options.isQuick ? 20_000 : 60_000
        for (name, trace) in [
            ("Zipf", TraceRows.zipf(length: length)), ("Zipf with scans", TraceRows.zipfWithScans(length: length)),
        ] {
            // Bodies up to 16 KB, so that packs take all of them.
            let trace = trace.map { TraceRows.Access(item: $0.item, bytes: max(500, $0.bytes / 4)) }
            let total = Dictionary(trace.map { ($0.item, $0.bytes + 500) }) { first, _ in first }.values.reduce(0, +)
            for share in [0.05, 0.2, 0.5] {
                let capacity = Int(Double(total) * share)
                let cache = cache(
                    packs: true, scratch.folder("amplified-\(name)-\(share)"), disk: capacity)
                let bodies = Dictionary(Set(trace.map(\.bytes)).map { ($0, Content.body($0)) }) { first, _ in first }
                let before = try written()
                var stored = 0
                var hits = 0
                for (index, access) in trace.enumerated() {
                    let request = Content.request(access.item)
                    if cache.cachedResponse(for: request) != nil {
                        hits += 1
                    } else if let body = bodies[access.bytes], let url = request.url {
                        cache.storeCachedResponse(Content.cached(url, body), for: request)
                        stored += access.bytes + 510
                    }
                    if index % 500 == 499 {
                        cache.flush()
                        guard cache.currentDiskUsage <= cache.diskCapacity else {
                            throw Child.Failure(message: "above the capacity")
                        }
                    }
                }
                report.add(
                    Row(
                        "packs: write amplification, \(name), \((share * 100).short) %",
                        value: Double(try written() - before) / Double(stored), unit: "",
                        note:
                            "Capacity \((Double(capacity) / 1_048_576).short) MB, hit ratio \((Double(hits) / Double(trace.count)).short)."
                    ))
            }
        }
    }

    private static func written() throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/io", encoding: .utf8)
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("wchar:") }),
            let value = line.split(separator: " ").last.flatMap({ Int($0) })
        else { throw Child.Failure(message: "no wchar") }
        return value
    }
}

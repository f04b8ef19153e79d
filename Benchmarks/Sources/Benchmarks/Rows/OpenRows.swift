import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Opening, first hit, usage, a lost index, clearing: with many entries.
enum OpenRows {
    static let groups = [Group("open, rebuild, clear", run: run)]

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = options.manyEntries
        let name = "\(count.grouped) entries"
        let directory = scratch.folder("open")
        let body = Content.body(1 << 10)
        let databasePath = scratch.folder("open.sqlite").path
        do {
            let cache = DiskURLCache.filled(at: directory, count: count, bodySize: body.count)
            report.add(try indexBytes(directory, count: count, cache))
            _ = try SQLitePeer.filled(path: databasePath, count: count, body: body)
        }
        let requests = Content.sample(of: count)
        let rounds = options.rounds(50)
        var opened: DiskURLCache?
        let open = { opened = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 30, directory: directory) }
        let close = { opened = nil }

        let inits = try Measure.alternately(rounds: rounds, [Side("init", prepare: close) { _ in open() }])
        report.add(Row("init, \(name)", inits[0], target: 300))

        let firstHits = try Measure.alternately(
            rounds: rounds,
            [
                Side("init + first hit", prepare: close) {
                    open()
                    guard opened?.cachedResponse(for: requests[$0 % requests.count])?.data.count == body.count else {
                        throw DiskSet.MissingEntry()
                    }
                },
                Side("SQLite open + first read") {
                    let database = try SQLitePeer(path: databasePath)
                    consume(try database.body(of: requests[$0 % requests.count].url!.absoluteString))
                },
            ])
        report.add(Row("open to first hit, \(name)", firstHits, targets: [1]))

        let usage = try Measure.alternately(
            rounds: options.rounds(15),
            [
                Side("init + currentDiskUsage", prepare: close) { _ in
                    open()
                    consume(opened?.currentDiskUsage)
                },
                Side("readdir + stat") { _ in RawFiles.readdirAndStat(directory) },
            ])
        report.add(
            Row(
                "open to usage known, \(name)", usage, targets: [0.3],
                note: "The index is read whole before usage is known: its load is in here."))
        close()

        report.add(try rebuild(options, directory, count: count))
        try removeAll(report, directory, requests, count: count)
    }

    /// The index files: those of the cache's files that have "index" in their names.
    private static func indexFiles(_ directory: URL) throws -> [[CChar]] {
        let files = RawFiles.files(under: directory).filter { path in
            let name = RawFiles.text(path).split(separator: "/").last.map(String.init) ?? ""
            return name.lowercased().contains("index")
        }
        guard !files.isEmpty else { throw Child.Failure(message: "no index in \(directory.path)") }
        return files
    }

    private static func indexBytes(_ directory: URL, count: Int, _ cache: DiskURLCache) throws -> Row {
        let bytes = try indexFiles(directory).reduce(0) { sum, path in
            var status = stat()
            return stat(path, &status) == 0 ? sum + Int(status.st_size) : sum
        }
        return Row(
            "index on disk, \(count.grouped) entries", value: Double(bytes) / Double(count), unit: "B/entry",
            target: 64)
    }

    /// Deletes the index and asks for the usage, which waits until the index is rebuilt. Lookups meanwhile are checked
    /// but not timed.
    private static func rebuild(_ options: Options, _ directory: URL, count: Int) throws -> Row {
        let request = Content.request(count / 2)
        var cache: DiskURLCache?
        let samples = try Measure.alternately(
            rounds: options.rounds(10),
            [
                Side(
                    "rebuild",
                    prepare: {
                        withExtendedLifetime(cache) { cache = nil }
                        for path in try indexFiles(directory) { RawFiles.remove(path) }
                    },
                    operation: { _ in
                        let opened = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 30, directory: directory)
                        cache = opened
                        guard opened.cachedResponse(for: request) != nil else { throw DiskSet.MissingEntry() }
                        consume(opened.currentDiskUsage)
                    }),
                Side("readdir + stat") { _ in RawFiles.readdirAndStat(directory) },
            ])
        return Row("rebuild of a lost index, \(count.grouped) entries", samples, targets: [1.5])
    }

    private static func removeAll(
        _ report: Report, _ directory: URL, _ requests: [URLRequest], count: Int
    ) throws {
        let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 30, directory: directory)
        consume(cache.currentDiskUsage)
        let time = Measure.once { cache.removeAllCachedResponses() }
        let isEmpty = requests.allSatisfy { cache.cachedResponse(for: $0) == nil }
        report.add(
            Row(
                "removeAll as the caller sees it, \(count.grouped) entries", value: time, unit: "µs", target: 1_000,
                note: isEmpty ? "Nothing was served after it." : "ENTRIES WERE SERVED AFTER IT."))
        let drained = Measure.once { cache.flush() }
        report.add(Row("  until its files are gone", value: drained / 1_000, unit: "ms"))
    }
}

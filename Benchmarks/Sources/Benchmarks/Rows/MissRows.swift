import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A lookup that finds nothing, against the cheapest way of asking the disk.
enum MissRows {
    static let groups = [Group("miss", run: run)]

    private static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = options.manyEntries
        let directory = scratch.folder("misses")
        let cache = DiskURLCache.filled(at: directory, count: count, bodySize: 1 << 10, memoryCapacity: 1 << 20)
        let absent = (0..<5_000).map { Content.request(count + $0) }
        let folder = RawFiles.files(under: directory).last.map { path in
            URL(fileURLWithPath: RawFiles.text(path)).deletingLastPathComponent().path
        }
        let paths = (0..<5_000).map {
            Array("\(folder ?? directory.path)/absent-\($0)-of-the-length-of-a-digest".utf8CString)
        }
        let samples = try Measure.alternately(
            rounds: options.rounds(1_000),
            [
                Side("DiskURLCache", batch: 100) { consume(cache.cachedResponse(for: absent[$0 % absent.count])) },
                Side("failed open", batch: 100) { RawFiles.failedOpen(paths[$0 % paths.count]) },
            ])
        report.add(Row("miss, \(count.grouped) entries", samples, targets: [0.6]))
    }
}

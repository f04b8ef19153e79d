import DiskURLCache
import Foundation

/// The space that an entry takes beside its body.
enum SpaceRows {
    static let groups = [Group("on disk", run: onDisk), Group("index in memory", run: resident)]

    private static func onDisk(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        for size in [100, 1_000, 3_000, 4_000, 10_000] {
            let count = 500
            let directory = scratch.folder("space-\(size)")
            let cache = DiskURLCache.filled(at: directory, count: count, bodySize: size)
            let lengths = RawFiles.files(under: directory).reduce(0) { sum, path in
                var status = stat()
                return stat(path, &status) == 0 ? sum + Int(status.st_size) : sum
            }
            let perEntry = Double(cache.currentDiskUsage) / Double(count)
            report.add(
                Row(
                    "disk taken by an entry of \(size.grouped) bytes", value: perEntry, unit: "B",
                    note:
                        "\((perEntry / Double(size)).short) × the body; lengths of all files together \((Double(lengths) / Double(count)).short) B an entry."
                ))
        }
    }

    /// The memory of the index: the growth of the heap when a cache is opened.
    private static func resident(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let count = options.manyEntries
        let directory = scratch.folder("resident")
        _ = DiskURLCache.filled(at: directory, count: count, bodySize: 100)
        let before = Memory.heapBytes()
        let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 30, directory: directory)
        consume(cache.currentDiskUsage)
        let added = Memory.heapBytes() - before
        withExtendedLifetime(cache) {
            report.add(
                Row(
                    "index in memory, \(count.grouped) entries", value: Double(max(0, added)) / Double(count),
                    unit: "B/entry", target: 160))
        }
    }
}

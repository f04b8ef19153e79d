import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells how many requests of an event log a cache of another size would have answered.",
        usage: "urlcache simulate [<log>] [--capacity <size> ...] [--json]",
        discussion: """
            LOG is an event log, or the directory of a cache whose program keeps one (events.jsonl). Without it the command takes the only \
            cache in the user's folder for caches. Each capacity is simulated with both orders of eviction: "by use" is the default, \
            "by size" is Configuration.evictionWeighsSize. What is evicted is decided by the code of the real cache.

            It is an estimate: a response counts as usable for as long as it is kept, unless the log says that it had expired; removals, \
            tags and pins are not known; variants of a URL count as one response.
            """)

    @Argument(help: "An event log, or a cache's directory.", completion: .file())
    var log: String?

    @Option(
        parsing: .upToNextOption,
        help: "Bytes on disk, such as 10MB 50MB; by default some from a hundredth of all responses to all of them.")
    var capacity: [Size] = []

    @Flag(help: "Print JSON.")
    var json = false

    struct Row: Encodable {
        let capacity: Int
        /// Whether the row is for `Configuration.evictionWeighsSize`.
        let evictionWeighsSize: Bool
        let hits: Int
        let hitRatio: Double
        let bytesFromCache: Int
        let byteHitRatio: Double
        /// How many responses are larger than half of the capacity, and so not stored.
        let tooLarge: Int
    }

    struct Facts: Encodable {
        let log: String
        /// The requests that asked the cache and had an answer.
        let requests: Int
        let bytes: Int
        let responses: Int
        /// The capacity at which nothing would be evicted.
        let bytesOnDisk: Int
        let rows: [Row]
    }

    func run() throws {
        let file = try eventLog()
        let simulation = DiskURLCache.Simulation(try ProgramLog.entries(in: file))
        guard simulation.requests > 0 else {
            throw Problem("The log at \(file.path) has no loads with a URL: there is nothing to simulate.")
        }
        let all = simulation.bytesOnDisk
        let sizes = capacity.isEmpty ? Self.shares.map { Int(Double(all) * $0) } : capacity.map(\.bytes)
        let rows = sizes.flatMap { size in
            [false, true].map { Self.row(simulation, size, weighsSize: $0) }
        }
        if json {
            return try printJSON(
                Facts(
                    log: file.path, requests: simulation.requests, bytes: simulation.bytes,
                    responses: simulation.responses, bytesOnDisk: all, rows: rows))
        }
        show(
            "\(simulation.requests) requests for \(byteCount(simulation.bytes)); the \(simulation.responses) responses that can be stored take \(byteCount(all)) on disk.\n"
        )
        show(Self.chart(rows))
        for row in rows where row.tooLarge > 0 && !row.evictionWeighsSize {
            let are = row.tooLarge == 1 ? "1 response is" : "\(row.tooLarge) responses are"
            show("\(byteCount(row.capacity)): \(are) larger than half of this capacity, and so not stored.")
        }
        let best = Self.row(simulation, .max, weighsSize: false)
        show(
            "\nWithout eviction: \(percent(best.hitRatio)) of the requests, \(percent(best.byteHitRatio)) of the bytes."
        )
    }

    /// The shares of all responses that are simulated by default.
    private static let shares = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1]

    private func eventLog() throws -> URL {
        guard let log else { return ProgramLog.file(in: try CacheDirectory.only.get()) }
        var isFolder: ObjCBool = false
        let isThere = FileManager.default.fileExists(atPath: log, isDirectory: &isFolder)
        let url = URL(fileURLWithPath: log)
        return isThere && isFolder.boolValue ? ProgramLog.file(in: url) : url
    }

    private static func row(_ simulation: DiskURLCache.Simulation, _ capacity: Int, weighsSize: Bool) -> Row {
        let result = simulation.run(capacity: capacity, evictionWeighsSize: weighsSize)
        return Row(
            capacity: capacity, evictionWeighsSize: weighsSize, hits: result.hits,
            hitRatio: Double(result.hits) / Double(simulation.requests), bytesFromCache: result.bytesFromCache,
            byteHitRatio: simulation.bytes == 0 ? 0 : Double(result.bytesFromCache) / Double(simulation.bytes),
            tooLarge: result.tooLarge)
    }

    /// A line for each row, with a bar for its hit ratio.
    private static func chart(_ rows: [Row]) -> Shown {
        columns(
            ["capacity", "evicts", "requests", "bytes", ""], rightAligned: [0, 2, 3],
            rows.map { row in
                let length = Int((row.hitRatio * 40).rounded())
                let bar = String(repeating: "█", count: length) + String(repeating: "·", count: 40 - length)
                return [
                    row.evictionWeighsSize ? "" : "\(byteCount(row.capacity))",
                    row.evictionWeighsSize ? "by size" : "by use", "\(percent(row.hitRatio))",
                    "\(percent(row.byteHitRatio))", row.evictionWeighsSize ? colour("\(bar)", .good) : "\(bar)",
                ]
            })
    }
}

/// `43.2 %`.
func percent(_ ratio: Double) -> String { String(format: "%.1f %%", 100 * ratio) }

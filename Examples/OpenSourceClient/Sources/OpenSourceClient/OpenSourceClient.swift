import DiskURLCache
import ExampleSupport
import Foundation
import OpenCombine
import OpenCombineFoundation

/// `swift run --package-path Examples/OpenSourceClient`: OpenCombine's `DataTaskPublisher`, and an app's view model on
/// top of it, both unchanged. Neither knows about the cache; one line in `main` puts it behind them.
@main
enum OpenSourceClient {
    static func main() async throws {
        let origin = try await Origin.start(delay: .milliseconds(40), handler: answer)
        let directory = temporaryDirectory("OpenSourceClient")
        defer { try? FileManager.default.removeItem(at: directory) }
        let cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 200 << 20, directory: directory)
        URLCache.shared = cache

        print("A list and the details of its five books, through dataTaskPublisher.tryMap.decode.flatMap.collect\n")
        var table = TextTable(("screen", .left), ("books", .right), ("time", .right), ("at the origin", .right))
        for visit in ["opened", "opened again", "memory dropped, opened again"] {
            if visit.hasPrefix("memory") {
                cache.flush()
                cache.removeAllCachedResponses(from: .memory)
            }
            let before = await origin.log.count
            let start = Date()
            let books = try await Library(origin.baseURL).books()
            let requests = await origin.log.count - before
            table.add(visit, "\(books.count)", milliseconds(Date().timeIntervalSince(start)), "\(requests)")
            expect(books.count == 5, "\(visit): \(books.count) books, 5 were expected")
            let expected = visit == "opened" ? 6 : 0
            expect(requests == expected, "\(visit): \(requests) requests at the origin, \(expected) were expected")
        }
        await origin.stop()
        print(table.text)
        let statistics = cache.statistics
        print(
            "\nHits: \(statistics.memoryHits) memory, \(statistics.diskHits) disk; misses: \(statistics.misses);",
            "\(byteCount(statistics.bytesSaved)) did not cross the network.")
        expect(statistics.memoryHits == 6 && statistics.diskHits == 6, "\(statistics)")
    }

    @Sendable private static func answer(_ request: Origin.Request) async -> Origin.Reply {
        let fields = ["Content-Type": "application/json", "Cache-Control": "max-age=60"]
        if request.path == "/books" { return Origin.Reply(fields: fields, text: "[1,2,3,4,5]") }
        let id = request.path.split(separator: "/").last.flatMap { Int($0) } ?? 0
        return Origin.Reply(fields: fields, text: #"{"id":\#(id),"title":"Volume \#(id)"}"#)
    }
}

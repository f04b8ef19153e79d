import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `swift run --package-path Examples QuickStart`: loads a few resources with plain `URLSession.shared` three times,
/// and shows where each answer came from. `QuickStart <url>…` does the same with your URLs.
@main
enum QuickStart {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let urls = arguments.compactMap { URL(string: $0) }.filter { ["http", "https"].contains($0.scheme) }
        guard urls.count == arguments.count else {
            complain("usage: QuickStart [http://… | https://…]…\nWithout URLs, an origin server inside the program.")
            exit(64)
        }
        if let directory = NewProcess.directory {
            return try NewProcess.report(await pass(over: urls, watching: install(directory)))
        }
        let directory = temporaryDirectory("QuickStart")
        defer { try? FileManager.default.removeItem(at: directory) }
        let isRight = try await urls.isEmpty ? demonstrate(directory) : tryOut(urls, directory)
        if !isRight { exit(1) }
    }

    /// The one line that an app needs; the rest of this program looks at what it does.
    static func install(_ directory: URL) -> DiskURLCache {
        let cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 200 << 20, directory: directory)
        URLCache.shared = cache
        return cache
    }

    // MARK: With the origin inside

    private static func demonstrate(_ directory: URL) async throws -> Bool {
        let origin = try await Origin.start(delay: .milliseconds(20), handler: Resources.answer)
        let cache = install(directory)
        let urls = Resources.targets.map(origin.url)
        print("Origin inside this program at \(origin.baseURL.absoluteString); it takes 20 ms for each answer.")
        print("Cache in \(directory.path)\n")

        var asked: [Int] = []
        var passes: [[Row]] = []
        passes.append(await pass(over: urls, watching: cache))
        asked.append(await origin.log.count)
        passes.append(await pass(over: urls, watching: cache))
        asked.append(await origin.log.count)
        cache.flush()
        passes.append(try NewProcess.load(urls, directory: directory))
        asked.append(await origin.log.count)
        await origin.stop()

        let notes = Resources.targets.map { Resources.notes[$0] ?? "" }
        print(table(passes, names: Resources.targets, notes: notes))
        print(
            "\nRequests at the origin: \(asked[0]) in the first pass, then \(asked[1] - asked[0]),",
            "then \(asked[2] - asked[1]).")
        let saved = hasAskedAsExpected(asked)
        return summarize(passes, cache) && saved
    }

    /// In the first pass each resource reaches the origin, the redirect with two requests. Later passes reach it for
    /// `/profile`, which says `no-cache`, and for `/balance`, which says `no-store`.
    private static func hasAskedAsExpected(_ asked: [Int]) -> Bool {
        let requests = [asked[0], asked[1] - asked[0], asked[2] - asked[1]]
        if requests == [Resources.targets.count + 1, 2, 2] { return true }
        complain("The origin got \(requests) requests; \(Resources.targets.count + 1), 2 and 2 were expected.")
        return false
    }

    // MARK: With a server of the user's own

    private static func tryOut(_ urls: [URL], _ directory: URL) async throws -> Bool {
        let cache = install(directory)
        print("Cache in \(directory.path)\n")
        var passes = [await pass(over: urls, watching: cache), await pass(over: urls, watching: cache)]
        cache.flush()
        passes.append(try NewProcess.load(urls, directory: directory))
        print(table(passes, names: urls.map(\.absoluteString), notes: []))
        for (row, again) in zip(passes[0], passes[1]) where !again.isFromCache {
            print("\n\(row.url.absoluteString) was not answered from the cache:")
            for note in row.notes { print("  \(note)") }
        }
        print("")
        return summarize(passes, cache)
    }

    // MARK: Output

    private static func table(_ passes: [[Row]], names: [String], notes: [String]) -> String {
        var table = TextTable(
            ("request", .left), ("bytes", .right), ("first load", .left), ("", .right), ("repeat", .left), ("", .right),
            ("new process", .left), ("", .right), ("", .left))
        for (index, name) in names.enumerated() {
            let rows = passes.map { $0[index] }
            let answers = rows.flatMap { [$0.source, milliseconds($0.seconds)] }
            let note = index < notes.count ? notes[index] : ""
            table.add([name, grouped(rows[0].bytes)] + answers + [note])
        }
        return table.text
    }

    /// Whether each answer from the cache had the bytes of the first load.
    private static func summarize(_ passes: [[Row]], _ cache: DiskURLCache) -> Bool {
        print("On disk: \(byteCount(cache.currentDiskUsage)).")
        let wrong = passes.dropFirst().joined().filter { row in
            row.isFromCache && !passes[0].contains { $0.url == row.url && $0.digest == row.digest }
        }
        for row in wrong { complain("\(row.url.absoluteString): the cache gave other bytes than the first load.") }
        let failed = passes[0].filter { $0.source.hasPrefix("failed") }
        return wrong.isEmpty && failed.isEmpty
    }
}

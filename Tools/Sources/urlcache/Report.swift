import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a page about the entries of a cache: one file that needs no network.")

    @OptionGroup var program: ProgramLog

    @Option(help: "The file to write.")
    var html: String

    @Option(
        help: "A file with rules of the app, in JSON, for what is fresh: see urlcache help why.",
        completion: .file(extensions: ["json"]))
    var rules: String?

    @Flag(help: "Print JSON about the file.")
    var json = false

    func run() throws {
        let inspector = try program.cache.open()
        let settled = try rules.map { path in
            var settings = DiskURLCache.Configuration(memoryCapacity: 0, diskCapacity: 0)
            settings.rules = try RulesFile.read(path)
            return try RulesFile.cache(settings)
        }
        let records = try inspector.records(by: settled, progress: Progress("Reading records:").show)
        let file = try program.file()
        if program.log != nil, !FileManager.default.fileExists(atPath: file.path) {
            throw Problem("There is no event log at \(file.path).")
        }
        let logged = LogSummary(DiskURLCache.EventLog.entries(in: file))
        let summary = Stats.summary(of: records, in: inspector)
        let now = Date()
        let intact = records.filter { $0.problem == nil }.map { RecordFacts($0, now: now) }
        // Long URLs are cut if they would make the page too large to send to somebody.
        var longestPath = 600
        var page = ""
        repeat {
            let data = ReportData(
                intact, summary: summary, log: logged, directory: try program.cache.url().path, rules: rules,
                now: now, longestPath: longestPath)
            page = try ReportPage.html(data)
            longestPath = longestPath * 2 / 3
        } while page.utf8.count > Self.wantedLength && longestPath >= 70
        try write(Data(page.utf8), toFile: html)
        try tell(of: FileFacts(file: html, entries: intact.count, bytes: page.utf8.count), json: json)
    }

    /// The length in bytes that a page with 10,000 entries should not exceed. With more entries it may be longer.
    private static let wantedLength = 1_900_000
}

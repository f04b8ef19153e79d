import ArgumentParser
import DiskURLCache
import Foundation

struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a page that shows what a cache holds: one file, no network needed to look at it.")

    @OptionGroup var cache: CacheDirectory

    @Option(help: "The file to write.")
    var html: String

    @Option(help: "The program's event log, where it is not in the cache's directory.")
    var log: String?

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(progress: Progress("Reading records:").show)
        let file =
            log.map { URL(fileURLWithPath: $0) } ?? cache.url.appendingPathComponent(DiskURLCache.EventLog.fileName)
        let now = Date()
        let data = ReportData(
            directory: cache.url.path, writtenAt: now.timeIntervalSince1970,
            summary: Stats.summary(of: records, in: inspector),
            entries: records.filter { $0.state == .intact }.map { ReportData.Entry($0) },
            loads: ReportData.loads(in: DiskURLCache.EventLog.entries(in: file)))
        try Data(try ReportPage.html(data).utf8).write(to: URL(fileURLWithPath: html))
        print("\(data.entries.count) entries in \(html).")
    }
}

/// What the page is made of; short names, since there may be many entries.
struct ReportData: Encodable {
    struct Entry: Encodable {
        /// URL, or the beginning of the file name where the URL is not kept.
        let u: String
        let isNamed: Bool
        let s: Int?
        let t: String
        let b: Int
        let d: Int
        /// Seconds since 1970.
        let stored: Int?
        let used: Int?
        let fresh: Int?
        let pin: Bool

        init(_ record: CacheInspector.Record) {
            u = record.url ?? "\(record.fileName.prefix(16))…"
            isNamed = record.url != nil
            s = record.status
            t = record.contentType ?? "unknown"
            (b, d) = (record.bodyLength, record.allocated)
            stored = record.storedAt.map { Self.seconds($0) }
            used = record.lastUsed.map { Self.seconds($0) }
            fresh = record.freshUntil.map { Self.seconds($0) }
            pin = record.isPinned
        }

        /// Lifetimes without end are cut: a page shows no more than some years.
        private static func seconds(_ date: Date) -> Int {
            Int(min(max(date.timeIntervalSince1970, 0), 1e11))
        }
    }

    /// Loads in a span of time.
    struct Loads: Encodable {
        let at: Int
        var hits: Int
        var all: Int
    }

    let directory: String
    let writtenAt: TimeInterval
    let summary: Stats.Summary
    let entries: [Entry]
    let loads: [Loads]

    /// The loads of a log in 60 equal spans.
    static func loads(in entries: [DiskURLCache.EventLog.Entry]) -> [Loads] {
        let loads = entries.filter { $0.event == "load" }
        guard let first = loads.map(\.at).min(), let last = loads.map(\.at).max() else { return [] }
        let width = max(1, (last - first) / 60)
        var spans: [Int: Loads] = [:]
        for load in loads {
            let index = Int(min(max(0, (load.at - first) / width), 60))
            var span = spans[index] ?? Loads(at: Int(first + Double(index) * width), hits: 0, all: 0)
            span.all += 1
            if ["hit", "stale", "revalidated"].contains(load.outcome) { span.hits += 1 }
            spans[index] = span
        }
        return spans.values.sorted { $0.at < $1.at }
    }
}

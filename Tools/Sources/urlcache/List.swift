import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists entries, the most recently used first.")

    enum Order: String, ExpressibleByArgument, CaseIterable {
        case used, stored, size, age, url
    }

    @OptionGroup var cache: CacheDirectory
    @OptionGroup var filter: Filter

    @Option(help: "Order: used, stored, size, age or url.")
    var sort = Order.used

    @Option(help: "The largest number of entries.")
    var limit: Int?

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let inspector = try cache.open()
        let progress = Progress("Reading records:")
        let now = Date()
        var records = try inspector.records(progress: progress.show).filter { filter.matches($0, now: now) }
        switch sort {
        case .used: break
        case .stored: records.sort { ($0.storedAt ?? .distantPast) > ($1.storedAt ?? .distantPast) }
        case .size: records.sort { $0.bytes > $1.bytes }
        case .age: records.sort { ($0.age ?? 0) > ($1.age ?? 0) }
        case .url: records.sort { ($0.url ?? "~") < ($1.url ?? "~") }
        }
        if let limit { records = Array(records.prefix(max(0, limit))) }
        if json { return try printJSON(records.map { RecordFacts($0, now: now) }) }
        let rows = records.map { record -> [Shown] in
            [
                "\(record.status.map(String.init) ?? "-")", "\(record.contentType ?? "-")",
                "\(byteCount(record.bytes))",
                "\(record.age.map(span) ?? "-")", freshness(record, now),
                "\(record.lastUsed.map { span(now.timeIntervalSince($0)) } ?? "-")",
                "\(record.isPinned ? "pinned " : "")\(name(record))",
            ]
        }
        show(
            columns(
                ["status", "type", "size", "age", "fresh", "used", "URL"], rightAligned: [2, 3, 4, 5],
                rows))
    }

    private func freshness(_ record: DiskURLCache.Inspector.Record, _ now: Date) -> Shown {
        guard let until = record.freshUntil else { return "-" }
        return until > now ? colour("\(span(until.timeIntervalSince(now)))", .good) : colour("stale", .warning)
    }

    private func name(_ record: DiskURLCache.Inspector.Record) -> String {
        if let problem = record.problem { return problem.description }
        let method = record.method.map { $0 == "GET" ? "" : $0 + " " } ?? ""
        return record.url.map { method + $0 } ?? "(URL not kept) \(record.fileName.prefix(12))…"
    }
}

/// A record for other programs.
struct RecordFacts: Encodable {
    let file: String
    let state: String
    let url: String?
    let method: String?
    let status: Int?
    let contentType: String?
    let bytes: Int
    let allocated: Int
    let storedAt: Date?
    let lastUsed: Date?
    let age: Int?
    let freshUntil: Date?
    let isFresh: Bool
    let tags: [String]
    let isPinned: Bool
    let vary: [String]

    init(_ record: DiskURLCache.Inspector.Record, now: Date) {
        file = record.fileName
        state = record.state
        url = record.url
        method = record.method
        status = record.status
        contentType = record.contentType
        bytes = record.bytes
        allocated = record.bytesOnDisk
        storedAt = record.storedAt
        lastUsed = record.lastUsed
        age = record.age.map { Int(min($0, 1e15)) }
        freshUntil = record.freshUntil
        isFresh = record.isFresh(at: now)
        tags = record.tags
        isPinned = record.isPinned
        vary = record.varyFields
    }
}

extension DiskURLCache.Inspector.Record {
    /// The state in one word.
    var state: String {
        switch problem?.code {
        case nil: "intact"
        case .damaged?: "damaged"
        case .foreign?: "foreign"
        default: "unreadable"
        }
    }
}

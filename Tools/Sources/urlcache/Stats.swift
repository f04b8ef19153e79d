import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Stats: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Counts entries by type, host and status.")

    /// What entries have in common.
    enum Key: String, ExpressibleByArgument, CaseIterable {
        case host, type, tag, path
    }

    @OptionGroup var cache: CacheDirectory

    @Option(help: "Count by host, type, tag or path (host and folder of the URL) alone, all groups.")
    var by: Key?

    @Flag(help: "Print JSON.")
    var json = false

    struct Group: Encodable {
        let name: String
        let entries: Int
        /// The length of the bodies.
        let bytes: Int
        let bytesOnDisk: Int
    }

    struct Summary: Encodable {
        var entries = 0
        var bodyBytes = 0
        var diskBytes = 0
        /// The part of `diskBytes` that folders and index take.
        var overhead = 0
        var index = ""
        var fresh = 0
        var stale = 0
        var pinned = 0
        var damaged = 0
        var unknownURLs = 0
        var types: [Group] = []
        var hosts: [Group] = []
        var statuses: [Group] = []
    }

    /// What the event log says, with the numbers of the report.
    struct Savings: Encodable {
        let loads: Int
        let hits: Int
        let revalidated: Int
        let bytesSaved: Int
        /// Nil without an answer from the network to compare with.
        let secondsSaved: Double?

        init(_ log: LogSummary) {
            loads = log.loads
            hits = log.hits
            revalidated = log.revalidated
            bytesSaved = log.bytesSaved
            secondsSaved = log.hasEstimate ? log.secondsSaved : nil
        }
    }

    /// The summary, and the savings beside its members.
    struct Facts: Encodable {
        let summary: Summary
        let log: Savings?

        private enum CodingKeys: CodingKey { case log }

        func encode(to encoder: any Encoder) throws {
            try summary.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encodeIfPresent(log, forKey: .log)
        }
    }

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(progress: Progress("Reading records:").show)
        if let by {
            let groups = Self.groups(records.filter { $0.problem == nil }, by: by)
            if json { return try printJSON(groups) }
            return show(Self.table(by.rawValue, groups))
        }
        let summary = Self.summary(of: records, in: inspector)
        let log = LogSummary(DiskURLCache.EventLog.entries(in: ProgramLog.file(in: try cache.url())))
        if json { return try printJSON(Facts(summary: summary, log: log.map { Savings($0) })) }
        show("entries    \(summary.entries): \(summary.fresh) fresh, \(summary.stale) stale, \(summary.pinned) pinned")
        show("bodies     \(byteCount(summary.bodyBytes))")
        show(
            "on disk    \(byteCount(summary.diskBytes - summary.overhead)), and \(byteCount(summary.overhead)) for folders and index"
        )
        show("index      \(summary.index)")
        if summary.damaged > 0 { show("damaged    \(summary.damaged): see urlcache verify") }
        if summary.unknownURLs > 0 {
            show("URLs       not kept for \(summary.unknownURLs) entries: their host cannot be known")
        }
        if let log, log.loads > 0 {
            let answered = percent(Double(log.hits + log.revalidated) / Double(log.loads))
            show(
                "loads      \(log.loads) in the log: \(answered) from the cache (\(log.hits) without a request, \(log.revalidated) after a 304)"
            )
            let time = log.hasEstimate ? "; about \(span(log.secondsSaved)) less waiting" : ""
            show("saved      \(byteCount(log.bytesSaved)) of bodies did not cross the network\(time)")
        }
        for (title, groups) in [
            ("type", summary.types), ("host", summary.hosts), ("status", summary.statuses),
        ] where !groups.isEmpty {
            show("")
            show(Self.table(title, groups.prefix(10)))
            if groups.count > 10 { show("… and \(groups.count - 10) more") }
        }
    }

    static func summary(of records: [DiskURLCache.Inspector.Record], in inspector: DiskURLCache.Inspector) -> Summary {
        let now = Date()
        let intact = records.filter { $0.problem == nil }
        var summary = Summary()
        summary.entries = intact.count
        summary.bodyBytes = intact.reduce(0) { $0 + $1.bytes }
        summary.overhead = inspector.overheadOnDisk
        summary.diskBytes = records.reduce(summary.overhead) { $0 + $1.bytesOnDisk }
        summary.index = inspector.indexInWords
        summary.fresh = intact.count { $0.isFresh(at: now) }
        summary.stale = intact.count - summary.fresh
        summary.pinned = intact.count { $0.isPinned }
        summary.damaged = records.count { $0.problem?.code == .damaged }
        summary.unknownURLs = intact.count { $0.url == nil }
        summary.types = groups(intact) { $0.contentType ?? "unknown" }
        summary.hosts = groups(intact.filter { $0.url != nil }) { $0.host ?? "none" }
        summary.statuses = groups(intact) { $0.status.map(String.init) ?? "not HTTP" }
        return summary
    }

    private static func table(_ title: String, _ groups: some Collection<Group>) -> Shown {
        columns(
            ["entries", "bytes", "on disk", title], rightAligned: [0, 1, 2],
            groups.map { group -> [Shown] in
                ["\(group.entries)", "\(byteCount(group.bytes))", "\(byteCount(group.bytesOnDisk))", "\(group.name)"]
            })
    }

    /// An entry with several tags is in several groups.
    private static func groups(_ records: [DiskURLCache.Inspector.Record], by key: Key) -> [Group] {
        switch key {
        case .host: groups(records) { $0.host ?? "unknown" }
        case .type: groups(records) { $0.contentType ?? "unknown" }
        case .tag: groups(records.flatMap { record in record.tags.map { (record, $0) } }, \.0, by: \.1)
        case .path: groups(records) { $0.url.flatMap { URL(string: $0) }.map(folder) ?? "unknown" }
        }
    }

    /// `example.com/images` for `https://example.com/images/a.png`.
    private static func folder(of url: URL) -> String {
        let path = url.path
        return (url.host ?? "") + (path.lastIndex(of: "/").map { path[..<$0] } ?? "")
    }

    private static func groups(
        _ records: [DiskURLCache.Inspector.Record], by name: (DiskURLCache.Inspector.Record) -> String
    ) -> [Group] {
        groups(records, { $0 }, by: name)
    }

    private static func groups<Member>(
        _ members: [Member], _ record: (Member) -> DiskURLCache.Inspector.Record, by name: (Member) -> String
    ) -> [Group] {
        Dictionary(grouping: members, by: name)
            .map { name, members in
                Group(
                    name: name, entries: members.count, bytes: members.reduce(0) { $0 + record($1).bytes },
                    bytesOnDisk: members.reduce(0) { $0 + record($1).bytesOnDisk })
            }
            .sorted { ($0.bytes, $0.entries, $1.name) > ($1.bytes, $1.entries, $0.name) }
    }
}

struct Verify: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reads and checks every record. The exit status is 1 if a record is damaged.",
        discussion: "Nothing is removed: a cache removes a damaged record when it reads the record.")

    @OptionGroup var cache: CacheDirectory

    @Flag(help: "Print JSON: the records that are not intact.")
    var json = false

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(verifyingBodies: true, progress: Progress("Verifying:").show)
        let bad = records.filter { $0.problem != nil }
        if json {
            let now = Date()
            try printJSON(bad.map { RecordFacts($0, now: now) })
            if !bad.isEmpty { throw ExitCode(1) }
            return
        }
        for record in bad { show("\(colour("\(record.state)", .bad))  records/\(record.fileName)") }
        let bytes = records.reduce(0) { $0 + $1.bytes }
        show(
            "\(records.count - bad.count) of \(records.count) records are intact, \(byteCount(bytes)) of bodies read.")
        show("The index is \(inspector.indexInWords).")
        if !bad.isEmpty { throw ExitCode(1) }
    }
}

extension DiskURLCache.Inspector {
    /// The state of the index. A program that ends before its cache has saved one leaves none, which is no damage.
    fileprivate var indexInWords: String {
        if hasValidIndex { return "valid" }
        return hasIndex
            ? "damaged, or of another version: the next opening makes it anew"
            : "not saved yet: the next opening makes it from the records"
    }
}

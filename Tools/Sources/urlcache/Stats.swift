import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Stats: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Counts entries by type, host and status.")

    @OptionGroup var cache: CacheDirectory

    @Flag(help: "Print JSON.")
    var json = false

    struct Group: Encodable {
        let name: String
        let entries: Int
        let bytes: Int
    }

    struct Summary: Encodable {
        var entries = 0
        var bodyBytes = 0
        var diskBytes = 0
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

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(progress: Progress("Reading records:").show)
        let summary = Self.summary(of: records, in: inspector)
        if json { return try printJSON(summary) }
        print("entries    \(summary.entries): \(summary.fresh) fresh, \(summary.stale) stale, \(summary.pinned) pinned")
        print("bodies     \(byteCount(summary.bodyBytes))")
        print("on disk    \(byteCount(summary.diskBytes)), folders and index included")
        print("index      \(summary.index)")
        if summary.damaged > 0 { print("damaged    \(summary.damaged): see urlcache verify") }
        if summary.unknownURLs > 0 {
            print("URLs       not kept for \(summary.unknownURLs) entries: their host cannot be known")
        }
        for (title, groups) in [
            ("type", summary.types), ("host", summary.hosts), ("status", summary.statuses),
        ] where !groups.isEmpty {
            print("")
            print(
                columns(
                    ["entries", "bytes", title], rightAligned: [0, 1],
                    groups.prefix(10).map { ["\($0.entries)", byteCount($0.bytes), printable($0.name)] }))
            if groups.count > 10 { print("… and \(groups.count - 10) more") }
        }
    }

    static func summary(of records: [DiskURLCache.Inspector.Record], in inspector: DiskURLCache.Inspector) -> Summary {
        let now = Date()
        let intact = records.filter { $0.problem == nil }
        var summary = Summary()
        summary.entries = intact.count
        summary.bodyBytes = intact.reduce(0) { $0 + $1.bytes }
        summary.diskBytes = records.reduce(inspector.overheadOnDisk) { $0 + $1.bytesOnDisk }
        summary.index = inspector.hasValidIndex ? "valid" : "missing or damaged"
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

    private static func groups(
        _ records: [DiskURLCache.Inspector.Record], by name: (DiskURLCache.Inspector.Record) -> String
    ) -> [Group] {
        Dictionary(grouping: records, by: name)
            .map { Group(name: $0, entries: $1.count, bytes: $1.reduce(0) { $0 + $1.bytes }) }
            .sorted { ($0.bytes, $0.entries, $1.name) > ($1.bytes, $1.entries, $0.name) }
    }
}

struct Verify: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reads and checks every record. The exit status is 1 if a record is damaged.",
        discussion: "Nothing is removed: a cache removes a damaged record when it reads the record.")

    @OptionGroup var cache: CacheDirectory

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(verifyingBodies: true, progress: Progress("Verifying:").show)
        let bad = records.filter { $0.problem != nil }
        for record in bad { print("\(record.state)  records/\(record.fileName)") }
        let bytes = records.reduce(0) { $0 + $1.bytes }
        print(
            "\(records.count - bad.count) of \(records.count) records are intact, \(byteCount(bytes)) of bodies read.")
        print("The index is \(inspector.hasValidIndex ? "valid" : "missing or damaged").")
        if !bad.isEmpty { throw ExitCode(1) }
    }
}

import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows one entry: its facts and header fields, or its body.",
        usage: "urlcache show [<directory>] <entry> [--body] [--output <file>] [--json]",
        discussion: """
            The entry is named by its URL, by a part of the URL, or by the beginning of its file name. Without a directory the command takes \
            the only cache in the user's folder for caches.
            """)

    @Argument(help: "The cache's directory, if it is to be named, and the entry.")
    var arguments: [String]

    @Flag(help: "Write the body to standard output, and nothing more. A terminal gets no control characters.")
    var body = false

    @Option(help: "Write the body to this file.")
    var output: String?

    @Flag(help: "Print JSON: the entry, or its variants.")
    var json = false

    /// An entry with its header fields.
    struct Facts: Encodable {
        struct Field: Encodable {
            let name: String
            let value: String
        }

        let entry: RecordFacts
        let fields: [Field]

        init(_ record: DiskURLCache.Inspector.Record, now: Date) {
            entry = RecordFacts(record, now: now)
            fields = record.fields.map { Field(name: $0.name, value: $0.value) }
        }
    }

    func validate() throws {
        guard (1...2).contains(arguments.count) else {
            throw ValidationError("Give an entry, and a directory before it if any.")
        }
        if json, body || output != nil { throw ValidationError("--json shows no body: leave out --body and --output.") }
    }

    func run() throws {
        let directory = arguments.count == 2 ? URL(fileURLWithPath: arguments[0], isDirectory: true) : nil
        let inspector = try DiskURLCache.Inspector(directory: try directory ?? CacheDirectory.only.get())
        let found = try find(arguments[arguments.count - 1], in: inspector)
        if json {
            let now = Date()
            return try printJSON(found.map { Facts($0, now: now) })
        }
        guard let record = found.first, found.count == 1 else {
            guard !body, output == nil else {
                throw Problem(
                    "\(found.count) variants are stored; name one of them by its file:\n\(Self.table(of: found))")
            }
            show(
                "\(found.count) variants of \(found.first?.url ?? ""); name one of them by its file to see more.\n"
            )
            return show(Self.table(of: found))
        }
        if body || output != nil {
            guard let data = inspector.body(of: record) else {
                throw Problem("The body is damaged, or was replaced a moment ago.")
            }
            if let output {
                try write(data, toFile: output)
            } else if isatty(STDOUT_FILENO) == 1 {
                show(Shown(lines: String(decoding: data, as: UTF8.self)))
            } else {
                try writeToOutput(data)
            }
            return
        }
        if let problem = record.problem { throw Problem("records/\(record.fileName) cannot be read: \(problem).") }
        let now = Date()
        var facts: [(String, String)] = [
            ("URL", record.url ?? "not kept by this cache"), ("method", record.method ?? "-"),
            ("status", record.status.map(String.init) ?? "not HTTP"),
            ("body", "\(record.bytes) bytes, \(byteCount(record.bytesOnDisk)) on disk"),
            ("file", "records/\(record.fileName)"),
        ]
        if let date = record.storedAt { facts.append(("stored", "\(date), \(span(now.timeIntervalSince(date))) ago")) }
        // An access time counts whole seconds; nothing is used before it is stored.
        if let date = record.lastUsed.map({ max($0, record.storedAt ?? $0) }) {
            facts.append(("last used", "\(date), \(span(now.timeIntervalSince(date))) ago"))
        }
        if let age = record.age { facts.append(("age", span(age))) }
        if let until = record.freshUntil {
            facts.append(("fresh", until > now ? "until \(until)" : "no, stale since \(until)"))
        } else {
            facts.append(("fresh", "no: the response has no lifetime"))
        }
        if !record.varyFields.isEmpty { facts.append(("selected by", record.varyFields.joined(separator: ", "))) }
        if !record.tags.isEmpty { facts.append(("tags", record.tags.joined(separator: ", "))) }
        if record.isPinned { facts.append(("pinned", "yes")) }
        let width = facts.map(\.0.count).max() ?? 0
        for (name, value) in facts {
            show("\(colour(padded("\(name)", width), .title)) \(value)")
        }
        show("")
        for field in record.fields { show("\(field.name): \(field.value)") }
    }

    /// One record, or all variants of one URL, the most recently stored first.
    private func find(_ entry: String, in inspector: DiskURLCache.Inspector) throws -> [DiskURLCache.Inspector.Record] {
        let records = try inspector.records(progress: Progress("Reading records:").show)
        if let exact = records.first(where: { $0.fileName == entry }) { return [exact] }
        var found = records.filter { $0.url == entry }
        if found.isEmpty {
            found = records.filter { $0.url?.contains(entry) == true || $0.fileName.hasPrefix(entry) }
        }
        guard let first = found.first else { throw Problem("No entry matches \"\(entry)\".") }
        guard found.count > 1, first.url == nil || found.contains(where: { $0.url != first.url }) else {
            return found.sorted { ($0.storedAt ?? .distantPast) > ($1.storedAt ?? .distantPast) }
        }
        let names = found.prefix(10).map { "  \($0.url ?? $0.fileName)" as Shown }.joined("\n")
        throw Problem("\(found.count) entries match \"\(entry)\":\n\(names)\(found.count > 10 ? "\n  …" as Shown : "")")
    }

    private static func table(of variants: [DiskURLCache.Inspector.Record]) -> Shown {
        let now = Date()
        let rows = variants.map { RecordFacts($0, now: now) }.map { record -> [Shown] in
            [
                "\(record.status.map(String.init) ?? "-")", "\(record.contentType ?? "-")",
                "\(byteCount(record.bytes))",
                "\(record.storedAt.map { span(now.timeIntervalSince($0)) + " ago" } ?? "-")",
                record.isFresh ? colour("yes", .good) : colour("no", .warning),
                "\(record.vary.isEmpty ? "-" : record.vary.joined(separator: ", "))", "\(record.file)",
            ]
        }
        return columns(
            ["status", "type", "size", "stored", "fresh", "selected by", "file"], rightAligned: [2, 3], rows)
    }
}

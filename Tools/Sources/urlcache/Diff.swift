import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compares two caches, or a cache and an earlier copy.",
        discussion: "+ is in the second only, - in the first only, ~ in both and stored again or with other variants.")

    @Argument(help: "The first cache's directory.", completion: .directory)
    var first: String

    @Argument(help: "The second cache's directory.", completion: .directory)
    var second: String

    @Flag(help: "Print JSON.")
    var json = false

    /// The records of a key in the two caches, none where it is not there.
    struct Change: Encodable {
        let url: String
        let before: [RecordFacts]
        let after: [RecordFacts]
    }

    struct Facts: Encodable {
        var added: [Change] = []
        var removed: [Change] = []
        var changed: [Change] = []
        var same = 0
    }

    func run() throws {
        let (old, new) = (try keys(in: first), try keys(in: second))
        let now = Date()
        var facts = Facts()
        let names = Set(old.keys).union(new.keys).map { ($0, name(of: old[$0] ?? new[$0] ?? [])) }
        for (key, name) in names.sorted(by: { $0.1 < $1.1 }) {
            let (before, after) = (old[key] ?? [], new[key] ?? [])
            if Set(before.map(Self.version)) == Set(after.map(Self.version)) {
                facts.same += 1
                continue
            }
            let change = Change(
                url: name, before: before.map { RecordFacts($0, now: now) },
                after: after.map { RecordFacts($0, now: now) })
            switch (before.isEmpty, after.isEmpty) {
            case (true, _): facts.added.append(change)
            case (_, true): facts.removed.append(change)
            default: facts.changed.append(change)
            }
        }
        if json { return try printJSON(facts) }
        let lines =
            facts.added.map { ($0.url, "+", Colour.good, text(of: $0.after)) }
            + facts.removed.map { ($0.url, "-", Colour.bad, text(of: $0.before)) }
            + facts.changed.map { ($0.url, "~", Colour.warning, "\(text(of: $0.before)) -> \(text(of: $0.after))") }
        for (url, mark, tone, text) in lines.sorted(by: { $0.0 < $1.0 }) {
            show("\(colour("\(mark) \(url)", tone))  \(text)")
        }
        show(
            "\(facts.added.count) added, \(facts.removed.count) removed, \(facts.changed.count) changed, \(facts.same) the same."
        )
    }

    /// The records of each key: a file's name without the last digit, which only tells the records of one key apart.
    private func keys(in directory: String) throws -> [String: [DiskURLCache.Inspector.Record]] {
        let inspector = try DiskURLCache.Inspector(directory: URL(fileURLWithPath: directory, isDirectory: true))
        let records = try inspector.records(progress: Progress("Reading records:").show)
        return Dictionary(grouping: records.filter { $0.problem == nil }) { String($0.fileName.dropLast()) }
    }

    /// The facts by which two records of a key are compared: a response that was stored or confirmed again counts as
    /// changed.
    private static func version(_ record: DiskURLCache.Inspector.Record) -> String {
        "\(record.status ?? 0) \(record.bytes) \(record.storedAt?.timeIntervalSince1970 ?? 0) \(record.varyFields)"
    }

    private func name(of records: [DiskURLCache.Inspector.Record]) -> String {
        records.first.map { $0.url ?? $0.fileName } ?? ""
    }

    private func text(of records: [RecordFacts]) -> String {
        let size = byteCount(records.reduce(0) { $0 + $1.bytes })
        let status = records.first?.status.map(String.init) ?? "-"
        return records.count == 1 ? "\(status) \(size)" : "\(records.count) variants \(size)"
    }
}

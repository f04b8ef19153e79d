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

    func run() throws {
        let (old, new) = (try keys(in: first), try keys(in: second))
        var counts: [String: Int] = [:]
        let names = Set(old.keys).union(new.keys).map { ($0, name(of: old[$0] ?? new[$0] ?? [])) }
        for (key, name) in names.sorted(by: { $0.1 < $1.1 }) {
            let line: (mark: String, facts: String)? =
                switch (old[key], new[key]) {
                case (nil, let records?): ("+", facts(of: records))
                case (let records?, nil): ("-", facts(of: records))
                case (let before?, let after?) where Set(before.map(Self.version)) != Set(after.map(Self.version)):
                    ("~", "\(facts(of: before)) -> \(facts(of: after))")
                default: nil
                }
            counts[line?.mark ?? "=", default: 0] += 1
            if let line { print("\(line.mark) \(printable(name))  \(line.facts)") }
        }
        let numbers = ["+", "-", "~", "="].map { counts[$0] ?? 0 }
        print("\(numbers[0]) added, \(numbers[1]) removed, \(numbers[2]) changed, \(numbers[3]) the same.")
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

    private func facts(of records: [DiskURLCache.Inspector.Record]) -> String {
        let size = byteCount(records.reduce(0) { $0 + $1.bytes })
        let status = records.first?.status.map(String.init) ?? "-"
        return records.count == 1 ? "\(status) \(size)" : "\(records.count) variants \(size)"
    }
}

import Foundation
import Testing

@testable import DiskURLCache

/// The public rows for HTTP caches, over real sockets: see `ConformanceRow`.
@Suite struct ConformanceTests {
    /// Each mode takes seconds, and the rows differ by what the pure rules decide: the plain form plays them from memory.
    @Test(.timeLimit(.minutes(30)), arguments: TestLength.pick(plain: [.memory], long: ConformanceClient.Mode.allCases))
    func everyRowHolds(mode: ConformanceClient.Mode) async throws {
        let results = try await Self.play(mode)
        print(ConformanceReport(mode: mode, results: results).text)
        for result in results where result.isFailure {
            Issue.record("\(result.row.id): \(result.problem ?? "")")
        }
        let no = results.filter { $0.row.kind == .check && $0.problem != nil }.map(\.row.id)
        #expect(Set(no) == ConformanceRow.answeredNo)
    }

    @Test func idsAreUnique() {
        let ids = ConformanceRow.all.map(\.id)
        #expect(Set(ids).count == ids.count)
    }

    @Test func exceptionsNameRows() {
        let ids = Set(ConformanceRow.all.map(\.id))
        #expect(ids.isSuperset(of: ConformanceRow.unreachable.keys))
        #expect(ids.isSuperset(of: ConformanceRow.notAllowed.keys))
        #expect(ids.isSuperset(of: ConformanceRow.notByDelegate.keys))
        #expect(ids.isSuperset(of: ConformanceRow.answeredNo))
    }

    /// Several rows at a time; each has a cache, a session and a clock of its own.
    private static func play(_ mode: ConformanceClient.Mode) async throws -> [ConformanceResult] {
        let origin = try ConformanceOrigin()
        let width = 8
        let rows = ConformanceRow.all.filter { ConformanceRow.unreachable[$0.id] == nil }
        return try await withThrowingTaskGroup(of: (Int, ConformanceResult).self) { group in
            var results = [ConformanceResult?](repeating: nil, count: rows.count)
            var next = 0
            while next < rows.count || !group.isEmpty {
                while next < rows.count, next - results.compactMap({ $0 }).count < width {
                    let (index, row) = (next, rows[next])
                    group.addTask {
                        let client = try ConformanceClient(mode)
                        let player = ConformancePlayer(row: row, origin: origin, client: client)
                        return (index, ConformanceResult(row: row, mode: mode, problem: await player.play()))
                    }
                    next += 1
                }
                if let (index, result) = try await group.next() { results[index] = result }
            }
            return results.compactMap { $0 }
        }
    }
}

struct ConformanceResult: Sendable {
    var row: ConformanceRow
    var mode: ConformanceClient.Mode
    /// Nil when the row holds.
    var problem: String?

    var isFailure: Bool {
        problem != nil && row.kind != .check && ConformanceRow.notAllowed[row.id] == nil
            && (mode != .memoryByDelegate || ConformanceRow.notByDelegate[row.id] == nil)
    }
}

/// What a run prints: the rows that do not hold, the answers to open questions, and the sums.
struct ConformanceReport {
    let mode: ConformanceClient.Mode
    let results: [ConformanceResult]

    var text: String {
        var lines = ["Conformance, \(mode.rawValue):"]
        for result in results where result.row.kind != .check {
            guard let problem = result.problem else { continue }
            lines.append("  \(result.row.kind) \(result.row.id): \(problem)")
        }
        let yes = results.filter { $0.row.kind == .check && $0.problem == nil }.map(\.row.id)
        let no = results.filter { $0.row.kind == .check && $0.problem != nil }.map(\.row.id)
        lines.append("  yes: " + yes.joined(separator: " "))
        lines.append("  no: " + no.joined(separator: " "))
        lines.append(
            "Conformance, \(mode.rawValue): required \(sum(.required)), optimal \(sum(.optimal)), "
                + "extra \(sum(.extra)), questions \(yes.count) yes and \(no.count) no, "
                + "not played \(ConformanceRow.unreachable.count)")
        return lines.joined(separator: "\n")
    }

    private func sum(_ kind: ConformanceRow.Kind) -> String {
        let rows = results.filter { $0.row.kind == kind }
        return "\(rows.filter { $0.problem == nil }.count)/\(rows.count)"
    }
}

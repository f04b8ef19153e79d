import DiskURLCache
import Foundation
import Testing

/// The public rows for HTTP caches, over real sockets: see `ConformanceRow`.
@Suite(.fewAtATime) struct ConformanceTests {
    /// Each mode takes seconds, and the rows differ by what the pure rules decide: the plain form plays them from
    /// memory.
    @Test(
        .loadsOnLinux,
        arguments: TestLength.pick(plain: [.memory, .shared], long: ConformanceClient.Mode.allCases))
    func everyRowHolds(mode: ConformanceClient.Mode) async throws {
        let rows =
            mode == .shared
            ? ConformanceRow.onlyShared + ConformanceRow.targeted
            : ConformanceRow.all.filter { ConformanceRow.unreachable[$0.id] == nil }
        let results = try await Self.play(rows, mode)
        print(ConformanceReport(mode: mode, results: results).text)
        for result in results where result.isFailure {
            Issue.record("\(result.row.id): \(result.problem ?? "")")
        }
        // As in HTTPConformance.md. What is expected to fail fails: a row that begins to hold is told, too.
        #expect(ConformanceReport(mode: mode, results: results).sums == Self.sums[mode])
        guard mode != .shared else { return }
        let excused = Set(ConformanceRow.refused.keys).union(ConformanceRow.notAllowed.keys)
            .union(ConformanceRow.leftOut.keys)
        let failing = results.filter { $0.row.kind != .check && $0.problem != nil }.map(\.row.id)
        #expect(Set(failing) == excused)
        let no = results.filter { $0.row.kind == .check && $0.problem != nil }.map(\.row.id)
        #expect(Set(no) == ConformanceRow.answeredNo)
    }

    private static let sums: [ConformanceClient.Mode: String] = [
        .memory: "required 133/135, optimal 70/77, extra 14/15, questions 52 yes and 39 no",
        .memoryByDelegate: "required 133/135, optimal 70/77, extra 14/15, questions 52 yes and 39 no",
        .restartedDisk: "required 133/135, optimal 70/77, extra 14/15, questions 52 yes and 39 no",
        .shared: "required 18/18, optimal 9/12, extra 0/0, questions 6 yes and 1 no",
    ]

    @Test func idsAreUnique() {
        let ids = [
            ConformanceRow.all, ConformanceRow.onlyShared, ConformanceRow.targeted, ConformanceRow.standards,
        ].joined().map(\.id)
        #expect(Set(ids).count == ids.count)
    }

    @Test func exceptionsNameRows() {
        let ids = Set(ConformanceRow.all.map(\.id))
        #expect(ids.isSuperset(of: ConformanceRow.unreachable.keys))
        #expect(ids.isSuperset(of: ConformanceRow.refused.keys))
        #expect(ids.isSuperset(of: ConformanceRow.onlyPrivate))
        #expect(ids.isSuperset(of: ConformanceRow.notAllowed.keys))
        #expect(ids.isSuperset(of: ConformanceRow.leftOut.keys))
        #expect(ids.isSuperset(of: ConformanceRow.answeredNo))
    }

    /// Several rows at a time; each has a cache, a session and a clock of its own.
    static func play(_ rows: [ConformanceRow], _ mode: ConformanceClient.Mode) async throws -> [ConformanceResult] {
        let origin = try ConformanceOrigin()
        let width = 8
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
            && ConformanceRow.refused[row.id] == nil && ConformanceRow.notShared[row.id] == nil
            && ConformanceRow.leftOut[row.id] == nil
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
        lines.append("Conformance, \(mode.rawValue): \(sums), not played \(ConformanceRow.unreachable.count)")
        return lines.joined(separator: "\n")
    }

    var sums: String {
        let questions = results.filter { $0.row.kind == .check }
        let yes = questions.filter { $0.problem == nil }.count
        return "required \(sum(.required)), optimal \(sum(.optimal)), extra \(sum(.extra)), "
            + "questions \(yes) yes and \(questions.count - yes) no"
    }

    private func sum(_ kind: ConformanceRow.Kind) -> String {
        let rows = results.filter { $0.row.kind == kind }
        return "\(rows.filter { $0.problem == nil }.count)/\(rows.count)"
    }
}

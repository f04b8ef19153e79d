import Foundation
import Testing

/// The rows against an export of the public suite (http-tests/cache-tests, commit b55b8bd): `.ci/check-conformance` makes it.
@Suite(.enabled(if: exportPath != nil, "only on demand")) struct ConformanceTranscriptionTests {
    private struct Exported: Decodable {
        struct Step: Decodable {
            var method: String
            var status: Int?
            var body: String?
            var expectedStatus: Int?
            var expectedBody: String?
            var expected: String?
            var disconnects: Bool
            var pauses: Bool
        }

        var id: String
        var kind: String
        var isSkippedByBrowsers: Bool
        var steps: [Step]
    }

    /// Rows that are not transcribed, with their reason.
    private static let notTranscribed: [String: String] = [
        "other-age-delay": "its origin answers slowly, and these rows have no time of their own to wait",
        "interim-not-cached": "an interim response is no answer here: `MatrixTests` has it",
    ]

    /// Rows of which more is asked here than there, or that take other steps to ask the same.
    private static let otherSteps: Set<String> = []

    @Test func eachRowSaysWhatThePublicOneSays() throws {
        let export = try JSONDecoder().decode(
            [Exported].self, from: Data(contentsOf: URL(fileURLWithPath: exportPath ?? "")))
        let rows = Dictionary(
            uniqueKeysWithValues: [
                ConformanceRow.all, ConformanceRow.onlyShared, ConformanceRow.targeted, ConformanceRow.redirectionCodes,
            ]
            .joined().map { ($0.id, $0) })
        let ids = Set(export.map(\.id))
        for id in rows.keys.sorted() where !ids.contains(id) { Issue.record("\(id) is no public row") }
        for exported in export {
            guard let row = rows[exported.id] else {
                if Self.notTranscribed[exported.id] == nil { Issue.record("\(exported.id) is not transcribed") }
                continue
            }
            let isShared = ConformanceRow.onlyShared.contains { $0.id == row.id }
            let kind = exported.isSkippedByBrowsers && !isShared ? "extra" : exported.kind
            // A question that browsers are not asked stays a question.
            if "\(row.kind)" != kind, !(exported.kind == "check" && row.kind == .check) {
                Issue.record("\(row.id) is \(row.kind), not \(kind)")
            }
            compare(row, exported)
        }
    }

    private func compare(_ row: ConformanceRow, _ exported: Exported) {
        guard row.steps.count == exported.steps.count else {
            Issue.record("\(row.id) has \(row.steps.count) steps, not \(exported.steps.count)")
            return
        }
        for (number, (step, other)) in zip(row.steps, exported.steps).enumerated() {
            func say(_ what: String) { Issue.record("\(row.id), step \(number + 1): \(what)") }
            if step.request.method != other.method { say("method \(step.request.method), not \(other.method)") }
            if let status = other.status, (step.reply.status ?? 200) != status {
                say("the origin says \(step.reply.status ?? 200), not \(status)")
            }
            if let body = other.body, step.reply.body != body {
                say("the origin's body is \(step.reply.body ?? "a token"), not \(body)")
            }
            if let body = other.expectedBody, case .exactly(let seen) = step.expected.body, seen != body {
                say("\(seen) is expected, not \(body)")
            }
            if let status = other.expectedStatus, case .exactly(let seen) = step.expected.status, seen != status {
                say("\(seen) is expected, not \(status)")
            }
            if step.reply.disconnects != other.disconnects { say("disconnects \(step.reply.disconnects)") }
            if step.pausesAfter != other.pauses { say("pauses \(step.pausesAfter)") }
            let expected: String? =
                switch step.expected.source {
                case .cached: "cached"
                case .notCached: "not_cached"
                case .etagValidated: "etag_validated"
                case .lastModifiedValidated: "lm_validated"
                case nil: nil
                }
            if let asked = other.expected, expected != asked { say("expects \(expected ?? "nothing"), not \(asked)") }
        }
    }
}

private let exportPath = ProcessInfo.processInfo.environment["DISKURLCACHE_CONFORMANCE_EXPORT"]

import Foundation
import Testing

/// The rows against an export of the public suite (http-tests/cache-tests, commit b55b8bd):
/// `DiskURLCacheTests/Fixtures/cache-tests.mjs` makes it.
@Suite(.enabled(if: exportPath != nil, "only on demand")) struct ConformanceTranscriptionTests {
    private struct Exported: Decodable {
        var id: String
        var kind: String
        var isSkippedByBrowsers: Bool
        var steps: [TranscribedStep]
    }

    /// Rows that are not transcribed, with their reason.
    private static let notTranscribed: [String: String] = [
        "other-age-delay": "its origin answers slowly, and these rows have no time of their own to wait",
        "interim-not-cached": "an interim response is no answer here: `MatrixTests` has it",
    ]

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
            let isShared = (ConformanceRow.onlyShared + ConformanceRow.redirectionCodes).contains { $0.id == row.id }
            let kind = exported.isSkippedByBrowsers && !isShared ? "extra" : exported.kind
            // A question that browsers are not asked stays a question.
            if "\(row.kind)" != kind, !(exported.kind == "check" && row.kind == .check) {
                Issue.record("\(row.id) is \(row.kind), not \(kind)")
            }
            compare(row, exported.steps)
        }
    }

    /// A value that the public suite makes up is any word here.
    private static func isSame(_ ours: String, _ theirs: String) -> Bool {
        var rest = Substring(ours)
        let parts = theirs.components(separatedBy: "(made up)")
        for (number, part) in parts.enumerated() {
            guard rest.hasPrefix(part) else { return false }
            rest = rest.dropFirst(part.count)
            if number < parts.count - 1 { rest = rest.drop { !" \"".contains($0) } }
        }
        return rest.isEmpty
    }

    private func compare(_ row: ConformanceRow, _ others: [TranscribedStep]) {
        guard row.steps.count == others.count else {
            Issue.record("\(row.id) has \(row.steps.count) steps, not \(others.count)")
            return
        }
        for (number, (step, other)) in zip(row.steps, others).enumerated() {
            let (ours, theirs) = (TranscribedStep(step).lines, other.lines)
            for (name, value) in theirs where !Self.isSame(ours[name] ?? "", value) {
                Issue.record("\(row.id), step \(number + 1): \(name) is \(ours[name] ?? ""), not \(value)")
            }
        }
    }
}

/// A step as the export has it.
private struct TranscribedStep: Decodable {
    struct Request: Decodable {
        var method: String
        var suffix: String
        var fields: [String]
        var body: String
    }

    struct Reply: Decodable {
        var status: Int
        var fields: [String]
        var body: String
        var interim: [Int]
        var disconnects: Bool
    }

    struct Expectation: Decodable {
        var source: String
        var status: String
        var body: String
        var fields: [String]
        var missing: [String]
        var method: String
        var requestFields: [String]
    }

    var request: Request
    var reply: Reply
    var expected: Expectation
    var pauses: Bool

    /// All that a step says, by name. The order of fields with different names says nothing.
    var lines: [String: String] {
        func sorted(_ fields: [String]) -> String { fields.sorted().joined(separator: " | ") }
        return [
            "method": request.method, "path": request.suffix, "request fields": sorted(request.fields),
            "request body": request.body, "status": "\(reply.status)", "reply fields": sorted(reply.fields),
            "reply body": reply.body, "interim": "\(reply.interim)", "disconnects": "\(reply.disconnects)",
            "expected source": expected.source, "expected status": expected.status, "expected body": expected.body,
            "expected fields": sorted(expected.fields), "missing fields": sorted(expected.missing),
            "method at the origin": expected.method, "fields at the origin": sorted(expected.requestFields),
            "pauses": "\(pauses)",
        ]
    }

    init(_ step: ConformanceStep) {
        request = Request(
            method: step.request.method, suffix: step.request.pathSuffix,
            fields: step.request.fields.map(\.transcribed),
            body: step.request.body ?? "none")
        reply = Reply(
            status: step.reply.status ?? 200, fields: step.reply.fields.map(\.transcribed),
            body: step.reply.body ?? "token", interim: step.reply.interim.map(\.status),
            disconnects: step.reply.disconnects)
        let source =
            switch step.expected.source {
            case .cached: "cached"
            case .notCached: "not_cached"
            case .etagValidated: "etag_validated"
            case .lastModifiedValidated: "lm_validated"
            case nil: "any"
            }
        let status =
            switch step.expected.status {
            case .asReplied: "as replied"
            case .any: "any"
            case .exactly(let status): "\(status)"
            }
        let body =
            switch step.expected.body {
            case .asReplied: "as replied"
            case .any: "any"
            case .exactly(let body): body
            }
        expected = Expectation(
            source: source, status: status, body: body,
            fields: step.expected.fields.map(\.transcribed)
                + step.expected.greater.map { "\($0.lowercased()): > \($1)" }
                + step.expected.presentFields.map { "\($0.lowercased()): any" },
            missing: step.expected.missingFields.map { $0.lowercased() }, method: step.expected.requestMethod ?? "any",
            requestFields: step.expected.requestFields.map(\.transcribed))
        pauses = step.pausesAfter
    }
}

extension ConformanceField {
    fileprivate var transcribed: String {
        let text =
            switch value {
            case .text(let text): text + (isChecked ? "" : " (unchecked)")
            case .date(let offset): "date \(offset)"
            case .rfc850Date(let offset): "rfc850 \(offset)"
            case .relativeURL(let path): "URL \(path)"
            }
        return "\(name.lowercased()): \(text)"
    }
}

private let exportPath = ProcessInfo.processInfo.environment["DISKURLCACHE_CONFORMANCE_EXPORT"]

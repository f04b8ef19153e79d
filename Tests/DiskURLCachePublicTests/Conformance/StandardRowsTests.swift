import DiskURLCache
import Foundation
import Testing

/// The rows of `ConformanceRow.standards`, and the file that could be offered to the public suite.
@Suite(.fewAtATime) struct StandardRowsTests {
    @Test(.loadsOnLinux, arguments: [ConformanceClient.Mode.memory, .restartedDisk])
    func everyRowOfNewStandardsHolds(mode: ConformanceClient.Mode) async throws {
        for result in try await ConformanceTests.play(ConformanceRow.standards, mode) where result.problem != nil {
            Issue.record("\(result.row.id): \(result.problem ?? "")")
        }
    }

    private static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../cache-tests-standards.mjs").standardizedFileURL

    /// After a change of a row: DISKURLCACHE_WRITE_ROWS=1 swift test --filter StandardRowsTests.
    @Test func theFileSaysWhatTheRowsSay() throws {
        let suites: [(id: String, name: String, section: String, rows: [ConformanceRow])] = [
            ("query", "The QUERY Method", "rfc10008#section-2.7", ConformanceRow.query),
            ("groups", "Cache Groups", "rfc9875", ConformanceRow.groups),
            ("digests", "Digest Fields (compared by a setting)", "rfc9530#section-3", ConformanceRow.digests),
        ]
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text =
            "// In the form of http-tests/cache-tests. Made by StandardRowsTests from Rows/StandardRows.swift.\nexport default [\n"
        for suite in suites {
            text += "{ name: \"\(suite.name)\", id: \"\(suite.id)\", description: \"\(suite.section)\", tests: [\n"
            for row in suite.rows {
                text += String(decoding: try encoder.encode(PublicRow(row)), as: UTF8.self) + ",\n"
            }
            text += "] },\n"
        }
        text += "]\n"
        if ProcessInfo.processInfo.environment["DISKURLCACHE_WRITE_ROWS"] != nil {
            try Data(text.utf8).write(to: Self.file)
        }
        #expect(try String(contentsOf: Self.file, encoding: .utf8) == text)
    }
}

/// A row as the public suite writes it.
private struct PublicRow: Encodable {
    var id: String
    var name: String
    var kind: String
    var requests: [Request]

    struct Request: Encodable {
        var requestMethod: String?
        var filename: String?
        var queryArg: String?
        var requestHeaders: [[Value]]?
        var requestBody: String?
        var responseHeaders: [[Value]]?
        var responseBody: String?
        var expectedType: String?
        var pauseAfter: Bool?
        var magicLocations: Bool?
    }

    enum Value: Encodable {
        case text(String)
        case number(Int)
        case isChecked(Bool)

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .text(let text): try container.encode(text)
            case .number(let number): try container.encode(number)
            case .isChecked(let flag): try container.encode(flag)
            }
        }
    }

    init(_ row: ConformanceRow) {
        id = row.id
        name = row.id.replacingOccurrences(of: "-", with: " ")
        kind =
            switch row.kind {
            case .optimal: "optimal"
            case .check: "check"
            default: "required"
            }
        requests = row.steps.map(Request.init)
    }
}

extension PublicRow.Request {
    init(_ step: ConformanceStep) {
        requestMethod = step.request.method == "GET" ? nil : step.request.method
        let parts = step.request.pathSuffix.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        if let path = parts.first, !path.isEmpty { filename = String(path.dropFirst()) }
        if parts.count > 1 { queryArg = String(parts[1]) }
        requestHeaders = Self.fields(step.request.fields)
        requestBody = step.request.body
        responseHeaders = Self.fields(step.reply.fields)
        responseBody = step.reply.body
        expectedType =
            switch step.expected.source {
            case .cached: "cached"
            case .notCached: "not_cached"
            case .etagValidated: "etag_validated"
            case .lastModifiedValidated: "lm_validated"
            case nil: nil
            }
        pauseAfter = step.pausesAfter ? true : nil
        let hasLocation = step.reply.fields.contains { if case .relativeURL = $0.value { true } else { false } }
        magicLocations = hasLocation ? true : nil
    }

    private static func fields(_ fields: [ConformanceField]) -> [[PublicRow.Value]]? {
        let values = fields.map { field -> [PublicRow.Value] in
            let value: PublicRow.Value =
                switch field.value {
                case .text(let text): .text(text)
                case .date(let offset), .rfc850Date(let offset): .number(offset)
                case .relativeURL(let path): .text(path)
                }
            return [.text(field.name), value] + (field.isChecked ? [] : [.isChecked(false)])
        }
        return values.isEmpty ? nil : values
    }
}

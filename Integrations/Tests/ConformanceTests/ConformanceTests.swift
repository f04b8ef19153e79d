import Foundation
import Testing

@testable import DiskURLCache

/// The public rows for HTTP caches through `CachingHTTPClient`: all that are played through `URLSession`, and those
/// that Foundation on Linux cannot be asked.
@Suite struct ConformanceTests {
    private typealias Problem = (row: ConformanceRow, words: String)

    @Test(.timeLimit(.minutes(10)), arguments: [ConformanceClient.Mode.memory, .restartedDisk])
    func everyRowHoldsButThese(mode: ConformanceClient.Mode) async throws {
        let rows = ConformanceRow.all + ConformanceRow.redirectionCodes
        let problems = try await Self.play(rows, mode)
        for (row, words) in problems { print("  \(row.kind) \(row.id): \(words)") }

        func ids(_ problems: [Problem]) -> Set<String> { Set(problems.map(\.row.id)) }
        #expect(ids(problems.filter { $0.row.kind != .check }) == Set(Self.failing.keys))
        #expect(ids(problems.filter { $0.row.kind == .check }) == ConformanceRow.answeredNo.union(Self.answeredNoHere))

        func sum(_ kind: ConformanceRow.Kind) -> String {
            let count = rows.filter { $0.kind == kind }.count
            return "\(count - problems.filter { $0.row.kind == kind }.count)/\(count)"
        }
        let sums = "required \(sum(.required)), optimal \(sum(.optimal)), check \(sum(.check)), extra \(sum(.extra))"
        print("Conformance, CachingHTTPClient, \(mode.rawValue): \(sums)")
        // As in HTTPConformance.md.
        #expect(sums == "required 139/142, optimal 74/82, check 52/92, extra 14/15")
    }

    /// The same rows by a `URLSession` over the client.
    @Test(.timeLimit(.minutes(10))) func everyRowButTheseHoldsForASession() async throws {
        let rows = ConformanceRow.all + ConformanceRow.redirectionCodes
        let problems = try await Self.play(rows, .session)
        for (row, words) in problems { print("  \(row.kind) \(row.id): \(words)") }
        let failing = Set(problems.filter { $0.row.kind != .check }.map(\.row.id))
        // A session has cache policies, so that it can ask for a reload, and fails a coding that the client does not
        // decode, as Foundation does.
        let expected = Set(Self.failing.keys).subtracting(["cc-resp-immutable-fresh"])
        #expect(failing == expected.union(["headers-store-Content-Encoding"]))
        func sum(_ kind: ConformanceRow.Kind) -> String {
            let count = rows.filter { $0.kind == kind }.count
            return "\(count - problems.filter { $0.row.kind == kind }.count)/\(count)"
        }
        // As in HTTPConformance.md.
        #expect("required \(sum(.required)), optimal \(sum(.optimal))" == "required 138/142, optimal 75/82")
    }

    /// As the public suite plays them against proxies and CDNs: a shared cache, and each kind as the suite has it.
    @Test(
        .timeLimit(.minutes(10)),
        arguments: [
            (ConformanceClient.Mode.shared, "required 155/159, optimal 85/105"),
            (.sharedFreely, "required 155/159, optimal 93/105"),
        ])
    func theRowsForSharedCachesHoldButThese(mode: ConformanceClient.Mode, expected: String) async throws {
        let rows =
            (ConformanceRow.all + ConformanceRow.redirectionCodes).filter {
                !ConformanceRow.onlyPrivate.contains($0.id)
            } + ConformanceRow.onlyShared + ConformanceRow.targeted
        let problems = try await Self.play(rows, mode)
        for (row, words) in problems { print("  \(row.kindForShared) \(row.id): \(words)") }
        let failing = Set(problems.filter { $0.row.kindForShared != .check }.map(\.row.id))
        let isCautious = mode == .shared
        #expect(failing == Set(Self.failingShared.keys).union(isCautious ? Self.notGuessed.keys.map { $0 } : []))
        func sum(_ kind: ConformanceRow.Kind) -> String {
            let ids = rows.filter { $0.kindForShared == kind }.map(\.id)
            return "\(ids.filter { !failing.contains($0) }.count)/\(ids.count)"
        }
        let sums = "required \(sum(.required)), optimal \(sum(.optimal))"
        print("Conformance, CachingHTTPClient, \(mode.rawValue): \(sums)")
        // As in HTTPConformance.md, whose table leaves out the rows for targeted fields: 10 required, 7 optimal.
        #expect(sums == expected)
        #expect(failing.isDisjoint(with: ConformanceRow.targeted.map(\.id)))
    }

    /// The rows of our own, without a setting of the client.
    @Test(.timeLimit(.minutes(10)), arguments: [ConformanceClient.Mode.memory, .restartedDisk, .shared])
    func everyRowOfNewStandardsHolds(mode: ConformanceClient.Mode) async throws {
        for (row, words) in try await Self.play(ConformanceRow.standards, mode) {
            Issue.record("\(row.id): \(words)")
        }
    }

    private static let failingShared = failing.filter { !ConformanceRow.onlyPrivate.contains($0.key) }
        .merging(ConformanceRow.notShared, uniquingKeysWith: { $1 })
        .merging(
            [
                "other-set-cookie": "what sets a cookie is not stored by a shared cache",
                "headers-store-Set-Cookie2": "it is one user's, as Set-Cookie is",
            ], uniquingKeysWith: { $1 })

    /// What `sharesCautiously` gives up.
    private static let notGuessed = Dictionary(
        uniqueKeysWithValues: [200, 203, 204, 404, 405, 410, 414, 501].map {
            ("heuristic-\($0)-cached", "no lifetime is guessed for a response that does not say public")
        })

    /// Requirements and optimisations that do not hold, and why.
    private static let failing = ConformanceRow.notAllowed.merging(ConformanceRow.refused, uniquingKeysWith: { $1 })
        .merging(
            [
                "headers-store-Transfer-Encoding":
                    "SwiftNIO refuses a transfer coding that it does not know beside a Content-Length: that is how requests are smuggled",
                "cc-resp-immutable-fresh":
                    "a client without cache policies can ask for a reload by max-age=0 only, and that asks for validation",
            ], uniquingKeysWith: { $1 }
        ).merging(ConformanceRow.leftOut, uniquingKeysWith: { $1 })

    /// Questions that Foundation on Linux cannot be asked, and that have the answer no.
    private static let answeredNoHere: Set<String> = [
        // Describes the stored bytes (§3.2).
        "304-etag-update-response-Content-Encoding"
    ]

    /// Several rows at a time; each has a cache, a client and a clock of its own.
    private static func play(_ rows: [ConformanceRow], _ mode: ConformanceClient.Mode) async throws -> [Problem] {
        let origin = try ConformanceOrigin()
        return try await withThrowingTaskGroup(of: (Int, String?).self) { group in
            var problems: [Int: String] = [:]
            for index in rows.indices {
                if index >= 8, let (played, words) = try await group.next() { problems[played] = words }
                group.addTask {
                    let client = try ConformanceClient(mode)
                    let words = await ConformancePlayer(row: rows[index], origin: origin, client: client).play()
                    await client.end()
                    return (index, words)
                }
            }
            for try await (played, words) in group { problems[played] = words }
            return problems.sorted { $0.key < $1.key }.map { (rows[$0.key], $0.value) }
        }
    }
}

extension ConformanceRow {
    /// The public suite skips some rows for browsers: those are required of, or optimal for, caches of several users.
    fileprivate var kindForShared: Kind {
        kind == .extra ? (Self.requiredOfShared.contains(id) ? .required : .optimal) : kind
    }
}

import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One URL, one behaviour: each shape of an answer, loaded in each way, by a session whose connections are kept and by
/// a new one, for the first, second and third time and from disk. Each load says the same as one without a cache, or is
/// in `MatrixException.all`.
@Suite(
    .fewAtATime, .timeLimit(.minutes(20)), .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions"))
struct MatrixTests {
    @Test func eachLoadSaysWhatOneWithoutACacheSays() async throws {
        let used = Mutex<Set<Int>>([])
        try await withThrowingTaskGroup(of: [String].self) { group in
            for way in MatrixWay.allCases {
                for isWarm in [true, false] {
                    group.addTask { try await Self.differences(way, isWarm, used) }
                }
            }
            for try await found in group {
                for difference in found.prefix(30) { Issue.record("\(difference)") }
                if found.count > 30 { Issue.record("and \(found.count - 30) more") }
            }
        }
        // An exception that nothing needs any more is one too many.
        let idle = MatrixException.all.enumerated().filter { number, exception in
            !used.withLock { $0.contains(number) }
        }
        #expect(idle.isEmpty, "nothing differs so: \(idle.map(\.element.reason))")
    }

    private static let loads = ["first", "second", "third", "from disk"]

    /// What differs in one way, each as a line of text.
    private static func differences(_ way: MatrixWay, _ isWarm: Bool, _ used: borrowing Mutex<Set<Int>>) async throws
        -> [String]
    {
        var found: [String] = []
        let origins = try MatrixOrigins()
        let scratch = try ScratchDirectory("matrix")
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: 256 << 20, directory: scratch.appending("cache"))
        let plain = MatrixSession(way, nil)
        let kept = MatrixSession(way, cache)
        if isWarm {
            // Connections that wait: a redirect is followed on them within the call that starts a load.
            for number in 0..<4 { _ = await kept.load(URLRequest(origins.main.url("/m/\(number)/warm")), way, cache) }
        }
        var cell = 10
        for round in 0..<TestLength.pick(plain: 1, long: 5) {
            for (number, shape) in MatrixShape.all.enumerated() {
                cell += 2
                let normal = origins.normal(number)
                // What all loads say, and what a shape of its own says besides.
                var expected: MatrixOutcome?
                if shape.own == nil {
                    expected = normal(await plain.load(request(shape, number, cell, origins), way, nil), cell)
                }
                let before = origins.main.requests.count
                for load in loads {
                    if load == "from disk" {
                        cache.flush()
                        cache.removeAllCachedResponses(from: .memory)
                    }
                    let session = isWarm ? kept : MatrixSession(way, cache)
                    let outcome = normal(
                        await session.load(request(shape, number, cell + 1, origins), way, cache), cell + 1)
                    let same = (expected ?? outcome).merging(shape.own?.outcome ?? [:], uniquingKeysWith: { $1 })
                    if expected == nil { expected = outcome }
                    for name in Set(same.keys).union(outcome.keys).sorted() where same[name] != outcome[name] {
                        let difference = MatrixDifference(
                            shape: shape.name, way: way, load: load, name: name, expected: same[name],
                            got: outcome[name])
                        if let exception = MatrixException.number(of: difference) {
                            used.withLock { _ = $0.insert(exception) }
                        } else {
                            found.append("\(difference), \(isWarm ? "warm" : "new"), round \(round)")
                        }
                    }
                }
                let count = origins.main.requests.count - before
                if let requests = shape.requests, count != requests {
                    found.append(
                        "\(shape.name), \(way.rawValue), \(isWarm ? "warm" : "new"): \(count) requests in place of \(requests)"
                    )
                }
            }
        }
        return found
    }

    private static func request(_ shape: MatrixShape, _ number: Int, _ cell: Int, _ origins: MatrixOrigins)
        -> URLRequest
    {
        var request = URLRequest(origins.url(shape, number, cell), shape.fields, method: shape.method)
        if shape.method == "POST" { request.httpBody = Data("sent".utf8) }
        request.timeoutInterval = Patience.ofLoads
        return request
    }
}

/// One thing that a load says otherwise than a load without a cache.
struct MatrixDifference: CustomStringConvertible {
    var shape: String
    var way: MatrixWay
    var load: String
    var name: String
    var expected: String?
    var got: String?

    /// Whether it is one of these values that the load says.
    func isGot(_ values: [String: String]) -> Bool { got != nil && values[name] == got }

    var description: String {
        "\(shape), \(way.rawValue), \(load): \(name) is \(got ?? "nothing"), not \(expected ?? "nothing")"
    }
}

/// What may differ, and why. Each is used by some load: the suite fails otherwise.
struct MatrixException: Sendable {
    var reason: String
    var holds: @Sendable (MatrixDifference) -> Bool

    init(_ reason: String, _ holds: @escaping @Sendable (MatrixDifference) -> Bool) {
        (self.reason, self.holds) = (reason, holds)
    }

    static func number(of difference: MatrixDifference) -> Int? {
        all.firstIndex { $0.holds(difference) }
    }

    static let all: [MatrixException] = [
        MatrixException("an answer from the cache has an Age (RFC 9111 §4)") {
            $0.name == "field age" && $0.expected == nil && $0.got?.hasPrefix("Age: ") == true
        },
        MatrixException("fields of one connection are not stored (RFC 9111 §3.1)") {
            ["field connection", "field transfer-encoding"].contains($0.name) && $0.got == nil && $0.load != "first"
        },
        MatrixException("a stored Set-Cookie is not replayed") {
            $0.name == "field set-cookie" && $0.got == nil && $0.load != "first"
        },
        MatrixException("what came without a Date is stored with one (RFC 9110 §6.6.1)") {
            $0.name == "field date" && $0.expected == nil && $0.load != "first"
        },
        MatrixException(
            "Foundation on Linux keeps two spellings of a name apart, in no order; the store has them as one field"
        ) {
            $0.shape == "a field twice" && $0.name == "field x-a" && $0.load != "first"
                && $0.got?.filter(\.isNumber).sorted() == ["1", "2", "3"]
        },
        MatrixException("Foundation on Linux counts the bytes of its own protocol class only") {
            $0.name == "counts" && $0.got == "0 of 0"
        },
        MatrixException("Foundation on Linux tells a delegate of 1xx as of answers") {
            ["103 before", "100 before"].contains($0.shape) && $0.name == "events"
                && $0.expected == "response \($0.shape.prefix(3)), \($0.got ?? "")"
        },
        MatrixException("Foundation on Linux tells no delegate of a redirect without a target") {
            ($0.shape.hasSuffix("to: empty") || $0.shape.hasSuffix("to: none")) && $0.name == "events"
                && $0.got == "response \($0.shape.prefix(3))" + ($0.expected == "end" ? ", end" : "")
        },
        MatrixException("a stored whole answers a range (RFC 9110 §14.2)") {
            $0.shape == "200 to a range" && $0.load != "first"
                && $0.isGot([
                    "status": "206", "body": "dy o", "type": "none, none, 4",
                    "field content-range": "Content-Range: bytes 2-5/9 ", "field content-length": "Content-Length: 4 ",
                    "events": $0.expected?.replacingOccurrences(of: "200", with: "206") ?? "",
                ])
        },
        MatrixException("credentials are not sent to another origin (RFC 9110 §15.4)") {
            $0.shape == "a redirect with credentials"
                && $0.isGot(["body": "none", "type": "none, none, 4", "field content-length": "Content-Length: 4 "])
        },
        MatrixException(
            "with a delegate Foundation on Linux sends no cookie that a redirect sets; the cache does in each way"
        ) {
            $0.shape == "a redirect with a cookie" && $0.way == .delegate
                && $0.isGot(["body": "a cookie", "type": "none, none, 8", "field content-length": "Content-Length: 8 "])
        },
        MatrixException("the URL that failed is told, not the one that led to it") {
            $0.shape == "a redirect to a failure" && $0.isGot(["error url": "here/t", "error url string": "here/t"])
        },
        MatrixException(
            "a completion handler gets a whole body or an error; a task's delegate hears of no part before an error"
        ) {
            $0.way == .taskDelegate && $0.name == "events" && $0.got == ""
                && ["early end", "chunked, cut", "length too long", "unknown coding"].contains($0.shape)
        },
    ]
}

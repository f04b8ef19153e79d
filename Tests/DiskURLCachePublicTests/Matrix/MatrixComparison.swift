import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Each shape of an answer, loaded in each way, by a session whose connections are kept and by a new one, for the
/// first, second and third time and from disk, held against a load without a cache.
struct MatrixComparison: Sendable {
    /// Makes a session of a cache.
    var makeSession: @Sendable (DiskURLCache, URLSessionConfiguration, (any URLSessionDelegate)?) throws -> URLSession
    var ways: [MatrixWay]
    var exceptions: [MatrixException]
    /// False if each shape is loaded by new sessions in one of the ways only.
    var hasNewSessionsInEachWay = true

    private static let loads = ["first", "second", "third", "from disk"]

    /// An issue for each difference that is no exception, and for each exception that nothing needs any more.
    func run() async throws {
        let used = Guarded<Set<Int>>([])
        try await withThrowingTaskGroup(of: [String].self) { group in
            for way in ways {
                for isWarm in [true, false] {
                    group.addTask { try await differences(way, isWarm, used) }
                }
            }
            for try await found in group {
                for difference in found.prefix(30) { Issue.record("\(difference)") }
                if found.count > 30 { Issue.record("and \(found.count - 30) more") }
            }
        }
        let idle = exceptions.enumerated().filter { number, exception in
            !used.withLock { $0.contains(number) }
        }
        #expect(idle.isEmpty, "nothing differs so: \(idle.map(\.element.reason))")
    }

    /// What differs in one way, each as a line of text.
    private func differences(
        _ way: MatrixWay, _ isWarm: Bool, _ used: borrowing Guarded<Set<Int>>
    ) async throws -> [String] {
        var found: [String] = []
        let place = ways.firstIndex(of: way)
        let origins = try MatrixOrigins()
        let scratch = try ScratchDirectory("matrix")
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: 256 << 20, directory: scratch.appending("cache"))
        let plain = MatrixSession.stock(way)
        let kept = try MatrixSession(way) { try makeSession(cache, $0, $1) }
        if isWarm {
            // Connections that wait: a redirect is followed on them within the call that starts a load.
            for number in 0..<4 {
                _ = await kept.load(URLRequest(url: origins.main.url("/m/\(number)/warm")), way, cache)
            }
        }
        var cell = 10
        for round in 0..<TestLength.pick(plain: 1, long: 3) {
            for (number, shape) in MatrixShape.all.enumerated() {
                cell += 2
                guard isWarm || hasNewSessionsInEachWay || number % ways.count == place else { continue }
                let normal = origins.normal(number)
                // What all loads say, and what a shape of its own says besides.
                var expected: MatrixOutcome?
                if shape.own == nil {
                    expected = normal(await plain.load(Self.request(shape, number, cell, origins), way, nil), cell)
                }
                let before = origins.main.requests.count
                for load in Self.loads {
                    if load == "from disk" {
                        cache.flush()
                        cache.removeAllCachedResponses(from: .memory)
                    }
                    let session = try isWarm ? kept : MatrixSession(way) { try makeSession(cache, $0, $1) }
                    let outcome = normal(
                        await session.load(Self.request(shape, number, cell + 1, origins), way, cache), cell + 1)
                    let same = (expected ?? outcome).merging(shape.own?.outcome ?? [:], uniquingKeysWith: { $1 })
                    if expected == nil { expected = outcome }
                    for name in Set(same.keys).union(outcome.keys).sorted() where same[name] != outcome[name] {
                        let difference = MatrixDifference(
                            shape: shape.name, way: way, load: load, name: name, expected: same[name],
                            got: outcome[name])
                        if let exception = exceptions.firstIndex(where: { $0.holds(difference) }) {
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
        var request = URLRequest(url: origins.url(shape, number, cell))
        request.httpMethod = shape.method
        request.allHTTPHeaderFields = shape.fields
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
        self.reason = reason
        self.holds = holds
    }
}

extension MatrixException {
    /// What may differ whoever sends the requests, and why.
    static let ofEveryNetwork: [MatrixException] = [
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
        MatrixException("Foundation on Linux counts the bytes of its own protocol class only") {
            $0.name == "counts" && $0.got == "0 of 0"
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
        MatrixException("the URL that failed is told, not the one that led to it") {
            $0.shape == "a redirect to a failure" && $0.isGot(["error url": "here/t", "error url string": "here/t"])
        },
    ]
}

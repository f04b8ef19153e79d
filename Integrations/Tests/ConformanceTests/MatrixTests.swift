import AsyncHTTPClient
import CachingHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import DiskURLCache

/// One URL, one behaviour: each shape of an answer by `CachingHTTPClient`, for the first, second and third time and
/// from disk. Each load says the same as one by `HTTPClient` alone, or is in `AdapterException.all`.
@Suite(.timeLimit(.minutes(10))) struct MatrixTests {
    private static let loads = ["first", "second", "third", "from disk"]

    @Test func eachLoadSaysWhatTheClientAloneSays() async throws {
        var (used, found): (Set<Int>, [String: [String]]) = ([], [:])
        try await withThrowingTaskGroup(of: (mode: String, found: [String], used: Set<Int>).self) { group in
            for decodes in [true, false] {
                for isWarm in [true, false] {
                    group.addTask { try await Self.differences(decodes: decodes, isWarm: isWarm) }
                }
            }
            for try await result in group {
                used.formUnion(result.used)
                for difference in result.found { found[difference, default: []].append(result.mode) }
            }
        }
        for (difference, modes) in found.sorted(by: { $0.key < $1.key }) {
            Issue.record("\(difference): \(modes.sorted().joined(separator: "; "))")
        }
        // An exception that nothing needs any more is one too many.
        let idle = AdapterException.all.indices.filter { !used.contains($0) }
        #expect(idle.isEmpty, "nothing differs so: \(idle.map { AdapterException.all[$0].reason })")
    }

    private static func differences(decodes: Bool, isWarm: Bool) async throws -> (
        mode: String, found: [String], used: Set<Int>
    ) {
        var (found, used): ([String], Set<Int>) = ([], [])
        let origins = try MatrixOrigins()
        let scratch = try ScratchDirectory("matrix")
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: 256 << 20, directory: scratch.appending("cache"))
        var configuration = HTTPClient.Configuration(
            redirectConfiguration: .follow(max: 20, allowCycles: false),
            decompression: decodes ? .enabled(limit: .none) : .disabled)
        configuration.httpVersion = .http1Only
        let plain = HTTPClient(configuration: configuration)
        let kept = CachingHTTPClient(cache: cache, configuration: configuration)
        var cell = 10
        for (number, shape) in MatrixShape.every.enumerated() {
            cell += 2
            let normal = origins.normal(number)
            let expected = await normal(
                outcome(request(shape, number, cell, origins), decodes) {
                    try await plain.execute($0, timeout: patience)
                },
                cell)
            let before = origins.main.requests.count
            for load in loads {
                if load == "from disk" {
                    cache.flush()
                    cache.removeAllCachedResponses(from: .memory)
                }
                let client = isWarm ? kept : CachingHTTPClient(cache: cache, configuration: configuration)
                let got = await normal(
                    outcome(request(shape, number, cell + 1, origins), decodes) {
                        try await client.execute($0, timeout: patience)
                    }, cell + 1)
                if !isWarm { try await client.shutdown() }
                for name in Set(expected.keys).union(got.keys).sorted() where expected[name] != got[name] {
                    let difference = AdapterDifference(
                        shape: shape.name, load: load, name: name, expected: expected[name], got: got[name])
                    if let exception = AdapterException.all.firstIndex(where: { $0.holds(difference) }) {
                        used.insert(exception)
                    } else {
                        found.append(difference.description)
                    }
                }
            }
            let count = origins.main.requests.count - before
            if let requests = shape.requests, count != requests {
                found.append("\(shape.name): \(count) requests in place of \(requests)")
            }
        }
        try await plain.shutdown()
        try await kept.shutdown()
        return ("\(decodes ? "decoding" : "coded"), \(isWarm ? "warm" : "new")", found, used)
    }

    private static func request(
        _ shape: MatrixShape, _ number: Int, _ cell: Int, _ origins: MatrixOrigins
    ) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: origins.url(shape, number, cell).absoluteString)
        request.method = HTTPMethod(rawValue: shape.method)
        for (name, value) in shape.fields { request.headers.add(name: name, value: value) }
        if shape.method == "POST" { request.body = .bytes(ByteBuffer(string: "sent")) }
        return request
    }

    private static func outcome(
        _ request: HTTPClientRequest, _ decodes: Bool,
        _ execute: (HTTPClientRequest) async throws -> HTTPClientResponse
    ) async -> MatrixOutcome {
        var outcome: MatrixOutcome = [:]
        do {
            let response = try await execute(request)
            outcome["status"] = "\(response.status.code)"
            outcome["url"] = response.url?.absoluteString
            outcome["hops"] = response.history.map { "\($0.responseHead.status.code) \($0.request.url)" }
                .joined(separator: ", ")
            for (name, value) in response.headers {
                outcome["field \(name.lowercased())", default: ""] += "\(name): \(value)\n"
            }
            let body = Data(buffer: try await response.body.collect(upTo: 1 << 20))
            outcome["body"] =
                body.count > 100
                ? "\(body.count) bytes, \(body.reduce(0) { $0 &* 31 &+ Int($1) })"
                : String(decoding: body, as: UTF8.self)
        } catch {
            outcome["error"] = "\(type(of: error)) \(error)"
        }
        return outcome
    }
}

private let patience = TimeAmount.seconds(120)

/// One thing that a load says otherwise than a load by the client alone.
private struct AdapterDifference: CustomStringConvertible {
    var shape: String
    var load: String
    var name: String
    var expected: String?
    var got: String?

    var description: String { "\(shape), \(load): \(name) is \(got ?? "nothing"), not \(expected ?? "nothing")" }

    /// Whether it is one of these values that the load says.
    func isGot(_ values: [String: String]) -> Bool { values[name] == got ?? "nothing" }

    /// Whether it is the redirect itself that the load says.
    func isRedirect(_ status: Int, cacheControl: String) -> Bool {
        isGot([
            "url": "here/a", "status": "\(status)", "hops": "\(status) here/a", "body": "moved",
            "field location": "Location: /t\n", "field content-length": "Content-Length: 5\n",
            "field cache-control": cacheControl,
        ])
    }
}

/// What may differ, and why. Each is used by some load: the suite fails otherwise.
private struct AdapterException: Sendable {
    var reason: String
    var holds: @Sendable (AdapterDifference) -> Bool

    init(_ reason: String, _ holds: @escaping @Sendable (AdapterDifference) -> Bool) {
        self.reason = reason
        self.holds = holds
    }

    static let all: [AdapterException] = [
        AdapterException("a body that is no part of the key is sent once: the redirect is the answer") {
            $0.shape == "POST 307" && $0.isRedirect(307, cacheControl: "nothing")
        },
        AdapterException("a 305 is not followed (RFC 9110 §15.4.6)") {
            $0.shape.hasPrefix("305 ")
                && $0.isRedirect(
                    305, cacheControl: $0.shape == "305 no-store" ? "Cache-Control: no-store\n" : "nothing")
        },
        AdapterException("an answer from the cache has an Age (RFC 9111 §4)") {
            $0.name == "field age" && $0.expected == nil
        },
        AdapterException("fields of one connection are not stored (RFC 9111 §3.1)") {
            ["field connection", "field transfer-encoding", "field trailer"].contains($0.name) && $0.got == nil
                && $0.load != "first"
        },
        AdapterException("a stored Set-Cookie is not replayed") {
            $0.name == "field set-cookie" && $0.got == nil && $0.load != "first"
        },
        AdapterException("what came without a Date is stored with one (RFC 9110 §6.6.1)") {
            $0.name == "field date" && $0.expected == nil && $0.load != "first"
        },
        AdapterException("a stored whole answers a range (RFC 9110 §14.2)") {
            $0.shape == "200 to a range" && $0.load != "first"
                && $0.isGot([
                    "status": "206", "hops": "206 here/a", "body": "dy o",
                    "field content-range": "Content-Range: bytes 2-5/9\n",
                    "field content-length": "Content-Length: 4\n",
                ])
        },
    ]
}

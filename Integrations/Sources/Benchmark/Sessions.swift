// A URLSession over AsyncHTTPClient (`cache.makeSession(client:)`) beside URLSession without a cache, and beside the
// client.
//
//     swift run -c release --package-path Integrations Benchmark sessions [ROW [SIDE]]
//
// The row is a part of its name. With a side (stock, client, over, usual) there are no turns: for a profile.

import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import Foundation
import LoopbackOrigin
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Sessions {
    let origin: Origin
    let directory: URL

    /// The loads of a round: enough for a stable median, few enough to take turns often.
    static let loads = 96

    func run() async throws {
        let stockConfiguration = URLSessionConfiguration.ephemeral
        stockConfiguration.urlCache = nil
        let client = HTTPClient()
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: 4 << 30, directory: directory.appendingPathComponent("sessions"))
        let pieces = Pieces()
        // Each kind of session without a delegate, for completion handlers, and with one.
        let stock = (
            URLSession(configuration: stockConfiguration),
            URLSession(configuration: stockConfiguration, delegate: pieces, delegateQueue: nil)
        )
        let overClient = (
            try cache.makeSession(configuration: .ephemeral, client: HTTPClient.Configuration()),
            try cache.makeSession(configuration: .ephemeral, delegate: pieces, client: HTTPClient.Configuration())
        )
        let usual = (
            cache.makeSession(configuration: .ephemeral), cache.makeSession(configuration: .ephemeral, delegate: pieces)
        )

        func by(_ sessions: (URLSession, URLSession)) -> Load {
            { path in _ = try await sessions.0.handled(origin.url(path)) }
        }
        func byDelegate(_ sessions: (URLSession, URLSession)) -> Load {
            { path in try await pieces.load(origin.url(path), in: sessions.1) }
        }
        let bare: Load = { path in
            let response = try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: .seconds(60))
            _ = try await response.body.collect(upTo: 2 << 20)
        }

        print("Median of \(Benchmark.rounds - Benchmark.warmUp) rounds in turns, µs a load; × stock URLSession\n")
        print("| | stock | HTTPClient | over HTTPClient | usual session |\n|---|---|---|---|---|")
        for (size, loads) in [("16k", Self.loads), ("1m", 12)] {
            for (name, path) in [("not stored", "/no-store"), ("stored", "/stored")] {
                for (way, load) in [("handler", by), ("delegate", byDelegate)] {
                    try await row(
                        "first load, \(way), \(size), \(name)",
                        [load(stock), bare, load(overClient), load(usual)], count: loads, path: "\(path)/\(size)")
                }
            }
        }
        for (name, path) in [("not stored", "/no-store"), ("stored", "/stored")] {
            try await row(
                "32 at once, 16k, \(name)", [by(stock), bare, by(overClient), by(usual)], count: 320, atOnce: 32,
                path: "\(path)/16k")
        }
        for sessions in [overClient, usual] { try await by(sessions)("/stored/16k/hit") }
        try await row(
            "hit in memory, 16k", [by(stock), bare, by(overClient), by(usual)], count: 200,
            path: "/stored/16k/hit", isOnePath: true)
        for sessions in [stock, overClient, usual] {
            sessions.0.invalidateAndCancel()
            sessions.1.invalidateAndCancel()
        }
        try await client.shutdown()
    }

    private func row(
        _ name: String, _ sides: [Load], count: Int, atOnce: Int = 1, path: String, isOnePath: Bool = false
    ) async throws {
        let wanted = Array(CommandLine.arguments.dropFirst(2))
        if let only = wanted.first, !name.contains(only) { return }
        let ownSide = wanted.count > 1 ? ["stock", "client", "over", "usual"].firstIndex(of: wanted[1]) : nil
        var times = [[Double]](repeating: [], count: sides.count)
        for round in 0..<Benchmark.rounds {
            for side in sides.indices.shuffled() where ownSide == nil || ownSide == side {
                let start = DispatchTime.now().uptimeNanoseconds
                let own = isOnePath ? nil : "/\(name.hashValue)/\(side)/\(round)"
                try await Benchmark.loads(count, atOnce, own, path, sides[side])
                let time = Double(DispatchTime.now().uptimeNanoseconds - start) / Double(count) / 1_000
                if round >= Benchmark.warmUp { times[side].append(time) }
            }
        }
        let medians = times.map { $0.isEmpty ? .nan : $0.sorted()[$0.count / 2] }
        let cells = medians.map { String(format: "%.0f (%.2f)", $0, $0 / medians[0]) }
        print("| \(name) | \(cells.joined(separator: " | ")) |")
    }
}

extension URLSession {
    func handled(_ url: String) async throws -> Data {
        guard let url = URL(string: url) else { throw URLError(.badURL) }
        return try await handled(URLRequest(url: url))
    }

    /// By a completion handler.
    func handled(_ request: URLRequest) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            dataTask(with: request) { data, _, error in
                continuation.resume(with: data.map { .success($0) } ?? .failure(error ?? URLError(.unknown)))
            }.resume()
        }
    }
}

/// A delegate that throws pieces away.
private final class Pieces: NSObject, URLSessionDataDelegate, Sendable {
    private let waiting = NIOLockedValueBox<[String: CheckedContinuation<Void, any Error>]>([:])

    func load(_ url: String, in session: URLSession) async throws {
        guard let url = URL(string: url) else { throw URLError(.badURL) }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            waiting.withLockedValue { $0[url.path] = continuation }
            session.dataTask(with: url).resume()
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let continuation = waiting.withLockedValue { $0.removeValue(forKey: task.originalRequest?.url?.path ?? "") }
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
}

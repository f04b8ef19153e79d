// Compares the cache with the bare client, in turns on one machine: a table for Integrations/README.md.
//
//     swift run -c release --package-path Integrations Benchmark
//
// For a profile, one row and one side: `Benchmark "hit on disk" cached`.

import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import Foundation
import LoopbackOrigin
import NIOCore
import NIOHTTP1

/// Sends a request and reads the body.
typealias Load = @Sendable (_ path: String) async throws -> Void

@main struct Benchmark {
    static let bodyLength = 16 << 10
    static let rounds = 44
    /// The first rounds warm up.
    static let warmUp = 4

    static let small = ByteBuffer(repeating: 7, count: bodyLength)
    static let large = ByteBuffer(repeating: 7, count: 1 << 20)

    static func main() async throws {
        if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "peer" {
            return try await Peer(directory: URL(fileURLWithPath: CommandLine.arguments[2])).run()
        }
        let origin = try await Origin { request, answer in
            // The size is in the path where it is not 16 KB.
            let length = request.path.contains("/1m") ? 1 << 20 : bodyLength
            let body = length == bodyLength ? small : large
            try await answer.head(
                .ok,
                [
                    "Content-Length": "\(length)",
                    "Cache-Control": request.path.hasPrefix("/no-store") ? "no-store" : "max-age=3600",
                    "Content-Type": "image/png", "ETag": "\"0123456789\"", "Vary": "Accept-Encoding",
                    "Server": "loopback", "Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT", "X-Field": "a field more",
                ])
            try await answer.piece(body)
        }
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("benchmark-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        if CommandLine.arguments.dropFirst().first == "sessions" {
            return try await Sessions(origin: origin, directory: directory).run()
        }
        let timeout = TimeAmount.seconds(60)

        let bareClient = HTTPClient()
        let bare: Load = { path in
            let response = try await bareClient.execute(HTTPClientRequest(url: origin.url(path)), timeout: timeout)
            _ = try await response.body.collect(upTo: bodyLength)
        }
        func client(memory: Int, disk: Int, _ name: String) -> CachingHTTPClient {
            CachingHTTPClient(
                cache: DiskURLCache(
                    memoryCapacity: memory, diskCapacity: disk, directory: directory.appendingPathComponent(name)))
        }
        let (onBoth, inMemory, onDisk) = (
            client(memory: 64 << 20, disk: 1 << 30, "both"), client(memory: 64 << 20, disk: 0, "memory"),
            client(memory: 0, disk: 1 << 30, "disk")
        )
        func load(_ client: CachingHTTPClient) -> Load {
            { path in
                let response = try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: timeout)
                _ = try await response.body.collect(upTo: bodyLength)
            }
        }

        print(
            "16 KB from loopback, each load: median of \(rounds - warmUp) rounds in turns, and CPU time of the process\n"
        )
        print("| | HTTPClient | CachingHTTPClient | ratio | CPU | CPU | ratio |\n|---|---|---|---|---|---|---|")
        for (name, atOnce) in [("", 1), (", 32 at once", 32)] {
            let count = atOnce == 1 ? 100 : 320
            try await row("first load" + name, bare, load(onBoth), count: count, atOnce: atOnce, "/both\(atOnce)")
            try await row(
                "first load, memory only" + name, bare, load(inMemory), count: count, atOnce: atOnce,
                "/memory\(atOnce)")
            try await row(
                "not to be stored" + name, bare, load(onBoth), count: count, atOnce: atOnce, "/no-store\(atOnce)")
        }
        for (name, client) in [("hit in memory", onBoth), ("hit on disk", onDisk)] {
            try await load(client)("/stored")
            client.cache.flush()
            try await row(name, bare, load(client), count: 200, "/stored", isOnePath: true)
        }
        for client in [onBoth, inMemory, onDisk] { try await client.shutdown() }
        try await bareClient.shutdown()
    }

    /// - Parameter isOnePath: all loads have one path. If false, each load has a new one.
    static func row(
        _ name: String, _ bare: @escaping Load, _ cached: @escaping Load, count: Int, atOnce: Int = 1,
        _ path: String, isOnePath: Bool = false
    ) async throws {
        let wanted = CommandLine.arguments.dropFirst()
        if let only = wanted.first, only != name { return }
        var times: [[Double]] = [[], []]
        var cpu: [[Double]] = [[], []]
        for round in 0..<rounds {
            for (side, load) in [bare, cached].enumerated()
            where wanted.count < 2 || (side == 1) == (wanted.last == "cached") {
                let (start, cpuStart) = (DispatchTime.now().uptimeNanoseconds, cpuTime())
                try await loads(count, atOnce, isOnePath ? nil : "/\(side)/\(round)", path, load)
                let time = Double(DispatchTime.now().uptimeNanoseconds - start) / Double(count) / 1_000
                if round >= warmUp {
                    times[side].append(time)
                    cpu[side].append((cpuTime() - cpuStart) / Double(count))
                }
            }
        }
        func cells(_ values: [[Double]]) -> String {
            let medians = values.map { $0.isEmpty ? .nan : $0.sorted()[$0.count / 2] }
            let texts =
                medians.map { String(format: "%.0f µs", $0) } + [String(format: "%.2f", medians[1] / medians[0])]
            return texts.joined(separator: " | ")
        }
        print("| \(name) | \(cells(times)) | \(cells(cpu)) |")
    }

    /// Loads a number of times, some at once.
    /// - Parameter own: is in the paths of these loads and of no others; nil if all have one path.
    static func loads(
        _ count: Int, _ atOnce: Int, _ own: String?, _ path: String, _ load: @escaping Load
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<atOnce {
                group.addTask {
                    for number in 0..<(count / atOnce) {
                        try await load(own.map { "\(path)\($0)/\(worker)/\(number)" } ?? path)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// The processor time of this process so far, in microseconds. It includes the origin's time and the time of late
    /// writes.
    static func cpuTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }
}

// What the cache costs beside the bare client, in turns on one machine: a table for Integrations/README.md.
//
//     swift run -c release --package-path Integrations Benchmark

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

    static func main() async throws {
        let body = ByteBuffer(repeating: 7, count: bodyLength)
        let origin = try await Origin { _, answer in
            try await answer.head(
                .ok,
                [
                    "Content-Length": "\(bodyLength)", "Cache-Control": "max-age=3600", "Content-Type": "image/png",
                    "ETag": "\"0123456789\"", "Vary": "Accept-Encoding", "Server": "loopback",
                    "Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT", "X-Field": "a field more",
                ])
            try await answer.piece(body)
        }
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("benchmark-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let timeout = TimeAmount.seconds(60)

        let bareClient = HTTPClient()
        let bare: Load = { path in
            let response = try await bareClient.execute(HTTPClientRequest(url: origin.url(path)), timeout: timeout)
            _ = try await response.body.collect(upTo: bodyLength)
        }
        func client(memory: Int, _ name: String) -> CachingHTTPClient {
            CachingHTTPClient(
                cache: DiskURLCache(
                    memoryCapacity: memory, diskCapacity: 1 << 30, directory: directory.appendingPathComponent(name)))
        }
        let (inMemory, onDisk) = (client(memory: 64 << 20, "memory"), client(memory: 0, "disk"))
        func load(_ client: CachingHTTPClient) -> Load {
            { path in
                let response = try await client.execute(HTTPClientRequest(url: origin.url(path)), timeout: timeout)
                _ = try await response.body.collect(upTo: bodyLength)
            }
        }

        print("16 KB from loopback, median of 40 rounds in turns\n")
        print("| | HTTPClient | CachingHTTPClient | ratio |\n|---|---|---|---|")
        // New URLs in each round.
        try await row("first load", bare, load(inMemory), count: 100)
        try await row("first load, 32 at once, each", bare, load(inMemory), count: 320, atOnce: 32)
        for client in [inMemory, onDisk] {
            try await load(client)("/stored")
            client.cache.flush()
        }
        try await row("hit in memory", bare, load(inMemory), count: 200, path: "/stored")
        try await row("hit on disk", bare, load(onDisk), count: 200, path: "/stored")
        try await inMemory.shutdown()
        try await onDisk.shutdown()
        try await bareClient.shutdown()
    }

    /// - Parameter path: the same for all; nil for another one each time.
    static func row(
        _ name: String, _ bare: @escaping Load, _ cached: @escaping Load, count: Int, atOnce: Int = 1,
        path: String? = nil
    ) async throws {
        var times: [[Double]] = [[], []]
        for round in 0..<44 {
            for (side, load) in [bare, cached].enumerated() {
                let start = DispatchTime.now().uptimeNanoseconds
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for worker in 0..<atOnce {
                        group.addTask {
                            for number in 0..<(count / atOnce) {
                                try await load(path ?? "/\(name.count)/\(side)/\(round)/\(worker)/\(number)")
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                let time = Double(DispatchTime.now().uptimeNanoseconds - start) / Double(count) / 1_000
                // The first rounds warm up.
                if round >= 4 { times[side].append(time) }
            }
        }
        let medians = times.map { $0.sorted()[$0.count / 2] }
        func text(_ microseconds: Double) -> String { String(format: "%.0f µs", microseconds) }
        let ratio = String(format: "%.2f", medians[1] / medians[0])
        print("| \(name) | \(text(medians[0])) | \(text(medians[1])) | \(ratio) |")
    }
}

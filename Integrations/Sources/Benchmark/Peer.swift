// The Swift side of the table beside caches of other languages, which `Benchmarks/Peers/run` makes. That script starts
// this program as `Benchmark peer FOLDER` and asks for loads.

import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import Foundation
import NIOCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Peer {
    /// Sends a request, with `If-None-Match` if there is an entity tag, and returns the length of the body.
    typealias Client = @Sendable (_ url: String, _ entityTag: String) async throws -> Int

    struct Failure: Error {
        var message: String
    }

    let directory: URL

    /// Each line of standard input asks for loads, one after the other, and is answered by the nanoseconds that they
    /// took. Its fields are the client, the URL up to the number, the first number, how many, how often, the length of
    /// each body, and an entity tag or nothing.
    func run() async throws {
        let bare = HTTPClient()
        let (caching, cachingOnDisk) = (
            CachingHTTPClient(cache: cache("client")), CachingHTTPClient(cache: cache("client-disk", memory: 0))
        )
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        // A session does not keep its cache.
        let (sessionCache, sessionDisk) = (cache("session"), cache("session-disk", memory: 0))
        let clients: [String: Client] = [
            "HTTPClient": { try await load($0, $1) { try await bare.execute($0, timeout: .seconds(60)) } },
            "CachingHTTPClient": { try await load($0, $1) { try await caching.execute($0, timeout: .seconds(60)) } },
            "CachingHTTPClient, disk": {
                try await load($0, $1) { try await cachingOnDisk.execute($0, timeout: .seconds(60)) }
            },
            "URLSession": load(by: URLSession(configuration: configuration)),
            "session": load(by: sessionCache.makeSession(configuration: .ephemeral)),
            "session, disk": load(by: sessionDisk.makeSession(configuration: .ephemeral)),
            "data(for:)": load(by: cache("data")),
            "data(for:), disk": load(by: cache("data-disk", memory: 0)),
        ]
        print("ready")
        fflush(nil)
        while let line = readLine() {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            let numbers = fields.dropFirst(2).prefix(4).compactMap { Int($0) }
            guard fields.count == 7, numbers.count == 4, let client = clients[fields[0]]
            else { throw Failure(message: "cannot read \(line)") }
            let (first, count, times, length) = (numbers[0], numbers[1], numbers[2], numbers[3])
            let start = DispatchTime.now().uptimeNanoseconds
            for index in 0..<count * times {
                let received = try await client("\(fields[1])\(first + index % count)", fields[6])
                guard received == length else { throw Failure(message: "\(received) bytes for \(line)") }
            }
            print(DispatchTime.now().uptimeNanoseconds - start)
            fflush(nil)
        }
        for client in [caching, cachingOnDisk] { try await client.shutdown() }
        try await bare.shutdown()
        withExtendedLifetime((sessionCache, sessionDisk)) {}
    }

    private func cache(_ name: String, memory: Int = 256 << 20) -> DiskURLCache {
        DiskURLCache(
            memoryCapacity: memory, diskCapacity: 4 << 30, directory: directory.appendingPathComponent(name))
    }

    private func load(
        _ url: String, _ entityTag: String, _ execute: (HTTPClientRequest) async throws -> HTTPClientResponse
    ) async throws -> Int {
        var request = HTTPClientRequest(url: url)
        if !entityTag.isEmpty { request.headers.add(name: "If-None-Match", value: entityTag) }
        return try await execute(request).body.collect(upTo: 1 << 20).readableBytes
    }

    private func load(by session: URLSession) -> Client {
        { try await session.handled(request($0, $1)).count }
    }

    private func load(by cache: DiskURLCache) -> Client {
        { try await cache.data(for: request($0, $1)).data.count }
    }

    private func request(_ url: String, _ entityTag: String) throws -> URLRequest {
        guard let url = URL(string: url) else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        if !entityTag.isEmpty { request.setValue(entityTag, forHTTPHeaderField: "If-None-Match") }
        return request
    }
}

import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import DiskURLCacheTesting
import Foundation
import NIOCore
import NIOHTTP1
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A `CachingHTTPClient` over a cache of its own, for one row. Time is the row's own too.
actor ConformanceClient {
    enum Mode: String, Sendable, CaseIterable {
        case memory
        /// Client and cache are opened again before each request, and there is no memory to answer from.
        case restartedDisk
        /// As `memory`, of a shared cache that looks for `CDN-Cache-Control`.
        case shared
        /// The same one without `sharesCautiously`.
        case sharedFreely
        /// As `memory`, by a `URLSession` over the client.
        case session
    }

    /// By which the cache and the origin tell the time.
    nonisolated let now: @Sendable () -> Date

    private let mode: Mode
    private let clock: ManualClock
    private let scratch: ScratchDirectory
    private var client: CachingHTTPClient
    private let session: URLSession?

    init(_ mode: Mode) throws {
        let clock = ManualClock()
        self.mode = mode
        self.clock = clock
        now = { clock.now }
        scratch = try ScratchDirectory("conformance")
        client = Self.open(mode, clock, scratch.url)
        session =
            mode == .session
            ? try client.cache.makeSession(configuration: .ephemeral.patient, client: HTTPClient.Configuration()) : nil
    }

    /// Loads, and if the step says so waits until a refresh in the background is stored.
    func load(_ request: URLRequest, refreshes: Bool) async throws -> SeenResponse {
        guard let url = request.url else { throw URLError(.badURL) }
        let events = client.cache.events()
        if let session {
            let (data, response) = try await session.data(for: request)
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            if refreshes { await events.stored() }
            return SeenResponse(response, data)
        }
        let response = try await client.execute(outgoing(request, url), timeout: .minutes(10))
        var fields: [String: String] = [:]
        for (name, value) in response.headers {
            // A response of Foundation holds one value for each name, whatever its case.
            let known = fields.keys.first { $0.lowercased() == name.lowercased() } ?? name
            fields[known] = fields[known].map { "\($0), \(value)" } ?? value
        }
        let body = try await response.body.collect(upTo: 1 << 20)
        guard
            let seen = HTTPURLResponse(
                url: url, statusCode: Int(response.status.code), httpVersion: nil, headerFields: fields)
        else { throw URLError(.badServerResponse) }
        if refreshes {
            await events.stored()
        }
        return SeenResponse(seen, Data(buffer: body))
    }

    private func outgoing(_ request: URLRequest, _ url: URL) -> HTTPClientRequest {
        var outgoing = HTTPClientRequest(url: url.absoluteString)
        outgoing.method = HTTPMethod(rawValue: request.httpMethod ?? "GET")
        for (name, value) in request.allHTTPHeaderFields ?? [:] { outgoing.headers.add(name: name, value: value) }
        // This client has no cache policies: what a browser sends for a reload says the same.
        if request.cachePolicy == .reloadRevalidatingCacheData {
            outgoing.headers.add(name: "Cache-Control", value: "max-age=0")
        }
        if let body = request.httpBody { outgoing.body = .bytes(body) }
        return outgoing
    }

    /// What happens between two steps.
    func rest(pauses: Bool) async {
        if pauses { clock.advance(by: 3) }
        guard mode == .restartedDisk else { return }
        await end()
        client = Self.open(mode, clock, scratch.url)
    }

    func end() async {
        session?.finishTasksAndInvalidate()
        try? await client.shutdown()
    }

    private static func open(_ mode: Mode, _ clock: ManualClock, _ directory: URL) -> CachingHTTPClient {
        let isOnDisk = mode == .restartedDisk
        let cache = DiskURLCache.forTesting(clock: clock.testClock) { settings in
            settings.memoryCapacity = isOnDisk ? 0 : 16 << 20
            settings.diskCapacity = isOnDisk ? 16 << 20 : 0
            settings.directory = directory.appendingPathComponent("cache")
            settings.isShared = [.shared, .sharedFreely].contains(mode)
            settings.targetedFields = ["CDN-Cache-Control"]
            settings.sharesCautiously = mode != .sharedFreely
            settings.wrongDigest = .notStored
        }
        return CachingHTTPClient(cache: cache)
    }
}

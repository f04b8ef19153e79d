import DiskURLCache
import Foundation

#if canImport(CachingHTTPClient)
    import AsyncHTTPClient
    import CachingHTTPClient
    import NIOCore
#endif
#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A cache for each way to load, so that no way finds what another has stored.
struct Caches: Sendable {
    let direct, shared, ofSession: DiskURLCache
    let session: URLSession
    #if canImport(CachingHTTPClient)
        let client, sharedClient: CachingHTTPClient
        let ways = ["session", "direct", "shared", "client", "shared-client"]
    #else
        let ways = ["session", "direct", "shared"]
    #endif

    init(directory: URL) {
        func cache(_ name: String, isShared: Bool) -> DiskURLCache {
            var settings = DiskURLCache.Configuration(
                memoryCapacity: 64 << 20, diskCapacity: 1 << 30, directory: directory.appendingPathComponent(name))
            settings.isShared = isShared
            return DiskURLCache(configuration: settings)
        }
        direct = cache("direct", isShared: false)
        shared = cache("shared", isShared: true)
        ofSession = cache("session", isShared: false)
        let plain = URLSessionConfiguration.ephemeral
        plain.httpCookieStorage = nil
        plain.httpMaximumConnectionsPerHost = 64
        session = ofSession.makeSession(configuration: plain)
        #if canImport(CachingHTTPClient)
            client = CachingHTTPClient(cache: cache("client", isShared: false))
            sharedClient = CachingHTTPClient(cache: cache("shared-client", isShared: true))
        #endif
    }

    func load(_ order: Player.Order) async throws -> Player.Loaded {
        switch order.way {
        case "session":
            let (data, response) = try await session.data(for: request(order))
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            return loaded(data, response)
        case "direct", "shared":
            let answer = try await (order.way == "shared" ? shared : direct).data(for: request(order))
            return loaded(answer.data, answer.response)
        default:
            return try await loadByClient(order)
        }
    }

    private func loaded(_ data: Data, _ response: HTTPURLResponse) -> Player.Loaded {
        .init(
            status: response.statusCode, body: data,
            fields: response.allHeaderFields.map { ("\($0.key)", "\($0.value)") })
    }

    private func request(_ order: Player.Order) throws -> URLRequest {
        guard let url = URL(string: order.url) else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        request.httpMethod = order.method
        for field in order.fields { request.setValue(field[1], forHTTPHeaderField: field[0]) }
        if sendsBody(order) { request.httpBody = Data("x".utf8) }
        return request
    }

    private func sendsBody(_ order: Player.Order) -> Bool { ["POST", "PUT", "PATCH"].contains(order.method) }

    #if canImport(CachingHTTPClient)
        private func loadByClient(_ order: Player.Order) async throws -> Player.Loaded {
            var request = HTTPClientRequest(url: order.url)
            request.method = .init(rawValue: order.method)
            for field in order.fields { request.headers.add(name: field[0], value: field[1]) }
            if sendsBody(order) { request.body = .bytes(Data("x".utf8)) }
            let client = order.way == "client" ? client : sharedClient
            let response = try await client.execute(request, timeout: .seconds(15))
            let body = try await response.body.collect(upTo: 1 << 20)
            return .init(
                status: Int(response.status.code), body: Data(body.readableBytesView),
                fields: response.headers.map { ($0.name, $0.value) })
        }
    #else
        private func loadByClient(_ order: Player.Order) async throws -> Player.Loaded {
            throw URLError(.unsupportedURL)
        }
    #endif

    /// Writes what the next player is to find.
    func end() async {
        for cache in [direct, shared, ofSession] { cache.flush() }
        #if canImport(CachingHTTPClient)
            for client in [client, sharedClient] { try? await client.shutdown() }
        #endif
    }
}

import AsyncHTTPClient
import CacheMetrics
import CachingHTTPClient
import DiskURLCache
import Hummingbird
import Logging
import Metrics

/// A server whose endpoint asks an upstream through a cache. Ends in order on SIGTERM: the server answers the requests
/// that it has, the client saves what it has stored, and the last problems are in the log.
func serve(_ settings: ServerSettings, _ logger: Logger) async throws {
    var storage = DiskURLCache.Configuration(
        memoryCapacity: 64 << 20, diskCapacity: 1 << 30, directory: settings.directory)
    storage.isShared = true
    storage.cacheStatusName = "articles"
    try settings.change(&storage)
    let client = CachingHTTPClient(cache: DiskURLCache(configuration: storage), configuration: upstreamConfiguration)
    // For swift-metrics. A backend such as swift-prometheus is bootstrapped in `main`, and answers `GET /metrics` with
    // what it has collected, after `health.update()`.
    let health = CacheMetrics(client.cache, name: "articles", logger: logger)

    let router = articles(from: settings.upstream) { request, logger in
        try await client.execute(request, timeout: .seconds(2), logger: logger)
    }
    var server = Application(
        router: router, configuration: .init(address: .hostname("127.0.0.1", port: settings.port)),
        onServerRunning: { ServerSettings.tellPort($0.localAddress?.port ?? 0) }, logger: logger)
    // They are shut down in reverse order: first the server, then the client, then the metrics.
    server.addServices(health, client)
    try await server.runService()
}

var upstreamConfiguration: HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration()
    // With the standard limit of 8, many first loads would wait for a connection.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
    return configuration
}

/// The endpoint.
func articles(
    from upstream: String, by fetch: @escaping @Sendable (HTTPClientRequest, Logger) async throws -> HTTPClientResponse
) -> Router<BasicRequestContext> {
    let router = Router()
    router.add(middleware: MetricsMiddleware())
    router.get("health") { _, _ in HTTPResponse.Status.ok }
    router.get("articles/:id") { _, context in
        let id = try context.parameters.require("id")
        guard id.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else { throw HTTPError(.notFound) }
        // Users' cookies and credentials are not passed on: they would have to be part of the key.
        let request = HTTPClientRequest(url: "\(upstream)/articles/\(id)")
        do {
            // The client's timeout is for the head only: an upstream that never ends a body would hold the request for
            // ever.
            return try await within(.seconds(2)) {
                let answer = try await fetch(request, context.logger)
                guard answer.status == .ok else { throw Failure("it answered \(answer.status.code)") }
                let body = try await answer.body.collect(upTo: 1 << 20)
                return Response(
                    status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: body))
            }
        } catch let error where !Task.isCancelled {
            context.logger.warning("The upstream failed", metadata: ["article": "\(id)", "error": "\(error)"])
            let isLate = error is TooLate || error as? HTTPClientError == .deadlineExceeded
            throw HTTPError(isLate ? .gatewayTimeout : .badGateway, message: "The upstream failed.")
        }
    }
    return router
}

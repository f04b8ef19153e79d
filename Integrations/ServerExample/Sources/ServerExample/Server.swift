import AsyncHTTPClient
import CacheMetrics
import CachingHTTPClient
import DiskURLCache
import Foundation
import Hummingbird
import Logging
import Metrics
import ServiceLifecycle

/// The server. Prints its port when it takes requests, logs to the standard error, ends in order on SIGTERM.
func serve(_ settings: ServerSettings) async throws {
    LoggingSystem.bootstrap(StreamLogHandler.standardError)
    let metrics = PrometheusText()
    MetricsSystem.bootstrap(metrics)
    let logger = Logger(label: "server")

    let router = Router()
    router.add(middleware: MetricsMiddleware())
    router.get("health") { _, _ in HTTPResponse.Status.ok }

    var configuration = HTTPClient.Configuration()
    // The standard 8 would be what the server without a cache waits for.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
    var services: [any Service] = []
    var health: CacheMetrics?
    let client: any UpstreamClient
    if let directory = settings.directory {
        var storage = DiskURLCache.Configuration(memoryCapacity: 64 << 20, diskCapacity: 1 << 30, directory: directory)
        storage.cacheStatusName = "articles"
        // A shared cache: what an answer says is for one user only is not stored.
        let caching = CachingHTTPClient(storage: storage, configuration: configuration)
        let told = CacheMetrics(caching.cache, name: "articles", logger: logger)
        services.append(HealthService(health: told))
        (client, health) = (caching, told)
    } else {
        client = HTTPClient(configuration: configuration)
    }

    let articles = Articles(upstream: settings.upstream, client: client)
    router.get("articles/:id") { _, context in
        try await articles.response(to: context.parameters.require("id"), logger: context.logger)
    }
    router.get("metrics") { [health] _, _ in
        health?.update()
        return metrics.text
    }

    let server = Application(
        router: router, configuration: .init(address: .hostname("127.0.0.1", port: settings.port)),
        onServerRunning: { channel in
            print("port \(channel.localAddress?.port ?? 0)")
            fflush(nil)
        },
        logger: logger)

    // They end in the other order: the server takes no more requests and answers those that it has, and only then the client ends.
    services = [ClientService(client: client, logger: logger)] + services + [server]
    var group = ServiceGroupConfiguration(
        services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    // Who waits for this process, and kills it in the end, mostly waits longer than this.
    group.maximumGracefulShutdownDuration = .seconds(15)
    try await ServiceGroup(configuration: group).run()
}

/// Ends the client when nobody uses it any more.
struct ClientService: Service {
    let client: any UpstreamClient
    let logger: Logger

    func run() async throws {
        // Also when the group is cancelled, since the server failed.
        try? await gracefulShutdown()
        // A CachingHTTPClient also writes what it has stored: `DiskURLCache.flush()`.
        try await client.shutdown()
        logger.info("the client has ended")
    }
}

/// Counters and log of the cache.
struct HealthService: Service {
    let health: CacheMetrics

    func run() async throws {
        await cancelWhenGracefulShutdown { [health] in await health.run() }
    }
}

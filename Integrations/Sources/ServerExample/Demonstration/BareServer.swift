import AsyncHTTPClient
import Hummingbird
import Logging

/// The same server with the plain client, for comparison by `Harness/harness.py`.
func serveBare(_ settings: ServerSettings, _ logger: Logger) async throws {
    try await HTTPClient.withHTTPClient(configuration: upstreamConfiguration) { client in
        let router = articles(from: settings.upstream) { request, logger in
            try await client.execute(request, timeout: .seconds(2), logger: logger)
        }
        let server = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: settings.port)),
            onServerRunning: { ServerSettings.tellPort($0.localAddress?.port ?? 0) }, logger: logger)
        try await server.runService()
    }
}

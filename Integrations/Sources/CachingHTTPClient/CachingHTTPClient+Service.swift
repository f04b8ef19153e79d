import ServiceLifecycle

extension CachingHTTPClient: Service {
    /// Runs until the graceful shutdown of its service group. Then new requests fail, responses that are being read can
    /// be read to their ends, the index of the cache is saved, and the client shuts down. If the task is cancelled, it
    /// does not wait for responses.
    ///
    /// A service group shuts its services down in reverse order: list the client before the server, and a
    /// `CacheMetrics` before the client.
    public func run() async throws {
        let isGraceful = (try? await gracefulShutdown()) != nil
        requests.close()
        if isGraceful { await requests.waitForEnd() }
        try await shutdown()
    }
}

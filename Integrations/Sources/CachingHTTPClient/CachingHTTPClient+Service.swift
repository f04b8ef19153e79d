import ServiceLifecycle

extension CachingHTTPClient: Service {
    /// Waits for the graceful shutdown of its service group, and then ends: new requests fail, the responses that are
    /// being read are read to their ends, the index of the cache is saved, and the client goes. A task that is
    /// cancelled waits for no response.
    ///
    /// Services end in the opposite order of their list: put the client before the server, and a `CacheMetrics` before
    /// the client.
    public func run() async throws {
        let isGraceful = (try? await gracefulShutdown()) != nil
        requests.close()
        if isGraceful { await requests.waitForEnd() }
        try await shutdown()
    }
}

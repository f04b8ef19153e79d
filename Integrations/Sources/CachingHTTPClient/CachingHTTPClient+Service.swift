import ServiceLifecycle

extension CachingHTTPClient: Service {
    /// Waits for the graceful shutdown of its service group, and then ends: new requests fail, the responses that are being read are
    /// read to their ends, what waits in the buffer is written, and the client goes. A task that is cancelled waits for no response.
    ///
    /// Services end in the opposite order of their list: put the client before the server.
    public func run() async throws {
        let isGraceful = (try? await gracefulShutdown()) != nil
        requests.close()
        if isGraceful { await requests.waitForEnd() }
        try await shutdown()
    }
}

import Foundation

extension DiskURLCache {
    /// The answer of ``data(for:fallback:session:)`` if it comes in time, else a stored one that is not too old. The
    /// request then goes on in the background, and its answer is stored.
    ///
    /// ```swift
    /// let answer = try await cache.data(for: request, within: .milliseconds(300), orNotOlderThan: .hours(1))
    /// ```
    ///
    /// An error of the network, or of the origin (5xx), counts as an answer that does not come. Without a stored answer
    /// that is young enough, this waits for the network as long as ``data(for:fallback:session:)`` does. The stored
    /// answer may be stale, also against the server's `no-cache`; ``Answer/isStale`` says so.
    /// - Parameters:
    ///   - request: the request.
    ///   - time: how long to wait for an answer before a stored one is given.
    ///   - age: how old a stored one may be, by ``Report/age``.
    ///   - session: see ``data(for:fallback:session:)``.
    /// - Throws: as ``data(for:fallback:session:)``. Cancelling the task cancels the load, unless a stored answer was
    ///   returned before.
    public func data(
        for request: URLRequest, within time: TimeSpan, orNotOlderThan age: TimeSpan, session: URLSession? = nil
    ) async throws -> Answer {
        // Foundation on Linux traps when a request without a URL is changed.
        try request.requireURL()
        let (waits, wait) = AsyncStream.makeStream(of: Never.self)
        let hasEnded = Mutex(false)
        let load = Task {
            defer {
                hasEnded.withLock { $0 = true }
                wait.finish()
            }
            return try await data(for: request, session: session)
        }
        let timeout = Timeouts.shared.after(time.seconds) { wait.finish() }
        defer { Timeouts.shared.cancel(timeout) }
        return try await withTaskCancellationHandler {
            for await _ in waits {}
            try Task.checkCancellation()
            if hasEnded.withLock({ $0 }), let answer = try? await load.value,
                !StatusCode.isServerTrouble(answer.response.statusCode)
            {
                return answer
            }
            var stored = request
            stored.cachePolicy = .returnCacheDataDontLoad
            if let answer = try? await data(for: stored, session: session),
                answer.report.age.map({ Double($0) <= age.seconds }) == true
            {
                return answer
            }
            return try await load.value
        } onCancel: {
            load.cancel()
        }
    }
}

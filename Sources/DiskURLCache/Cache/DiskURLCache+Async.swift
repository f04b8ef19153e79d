import Foundation

extension DiskURLCache {
    /// Runs calls that wait for the disk on a queue of the cache, so that they block no thread of the caller: the task
    /// is suspended meanwhile.
    ///
    /// ```swift
    /// let stored = await cache.perform { $0.cachedResponse(for: request) }
    /// await cache.perform { $0.flush() }
    /// ```
    ///
    /// There are no asynchronous overloads of the single methods: in an asynchronous function Swift would prefer them,
    /// and a plain `cache.cachedResponse(for: request)` would not compile. Cancelling the task does not undo a call.
    public func perform<Result: Sendable>(_ calls: @escaping @Sendable (DiskURLCache) -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            Self.callQueue.async { [self] in continuation.resume(returning: calls(self)) }
        }
    }

    /// The stored response for a request, as ``cachedResponse(for:)``, read on a queue of the cache. If the task is
    /// cancelled, the call ends at once: a lookup that has not begun does not begin, and the result of one that has is
    /// dropped.
    /// - Throws: `CancellationError`, and nothing else.
    public func storedResponse(for request: URLRequest) async throws -> CachedURLResponse? {
        let waiting = Mutex<CheckedContinuation<CachedURLResponse?, any Swift.Error>?>(nil)
        /// The caller is resumed by whoever comes first.
        @Sendable func take() -> CheckedContinuation<CachedURLResponse?, any Swift.Error>? {
            waiting.withLock { continuation in
                defer { continuation = nil }
                return continuation
            }
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                waiting.withLock { $0 = continuation }
                // Before now, the cancellation has found nobody to resume.
                if Task.isCancelled { take()?.resume(throwing: CancellationError()) }
                Self.callQueue.async { [self] in
                    guard waiting.withLock({ $0 != nil }) else { return }
                    let found = cachedResponse(for: request)
                    take()?.resume(returning: found)
                }
            }
        } onCancel: {
            take()?.resume(throwing: CancellationError())
        }
    }

    /// Not the loader's queue, so that a long removal does not delay lookups.
    private static let callQueue = DispatchQueue(label: "DiskURLCache.perform", attributes: .concurrent)
}

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

    /// Not the loader's queue, so that a long removal does not delay lookups.
    private static let callQueue = DispatchQueue(label: "DiskURLCache.perform", attributes: .concurrent)
}

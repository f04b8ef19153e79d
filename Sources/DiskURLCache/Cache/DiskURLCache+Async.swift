import Foundation

extension DiskURLCache {
    /// Makes calls that wait for the disk on a queue of the cache: the task is suspended, and its thread is not
    /// blocked.
    ///
    /// ```swift
    /// let stored = await cache.perform { $0.cachedResponse(for: request) }
    /// await cache.perform { $0.flush() }
    /// ```
    ///
    /// The calls have no asynchronous overloads: in an asynchronous function Swift would prefer these, and a plain
    /// `cache.cachedResponse(for: request)` would not compile there. The cancellation of the task undoes no call.
    public func perform<Result: Sendable>(_ calls: @escaping @Sendable (DiskURLCache) -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            Self.callQueue.async { [self] in continuation.resume(returning: calls(self)) }
        }
    }

    /// Apart from the loader's queue, so that a long removal delays no lookup.
    private static let callQueue = DispatchQueue(label: "DiskURLCache.perform", attributes: .concurrent)
}

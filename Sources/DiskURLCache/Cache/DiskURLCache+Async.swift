import Foundation

extension DiskURLCache {
    /// Makes calls that wait for the disk on a queue of the cache's own, and suspends the task meanwhile instead of blocking its
    /// thread.
    ///
    /// ```swift
    /// let stored = await cache.perform { $0.cachedResponse(for: request) }
    /// await cache.perform { $0.flush() }
    /// ```
    ///
    /// The calls have no asynchronous overloads: in an asynchronous function Swift prefers these, and then
    /// `cache.cachedResponse(for: request)` without `await` would not compile there. Nothing is undone when the task is cancelled.
    /// - Parameter calls: called once, on another thread, with this cache.
    /// - Returns: what the closure returned.
    public func perform<Result: Sendable>(_ calls: @escaping @Sendable (DiskURLCache) -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            Self.performing.async { continuation.resume(returning: calls(self)) }
        }
    }

    /// Apart from the loader's queue, so that a long removal holds no lookup up.
    private static let performing = DispatchQueue(label: "DiskURLCache.perform", attributes: .concurrent)
}

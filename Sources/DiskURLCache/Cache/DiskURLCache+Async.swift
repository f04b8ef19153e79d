import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// The calls that wait for the disk, under their own names, for tasks that must not wait: they run on a queue of the cache's
    /// own.
    ///
    /// ```swift
    /// let stored = await cache.async.cachedResponse(for: request)
    /// await cache.async.flush()
    /// ```
    ///
    /// They are not overloads of the plain calls: in an asynchronous function Swift prefers an asynchronous overload, and then
    /// `cache.cachedResponse(for: request)` without `await` would not compile there.
    public var async: Async { Async(cache: self) }

    /// What ``DiskURLCache/DiskURLCache/async`` gives: each call does what the one of the same name does, and suspends the task
    /// instead of blocking its thread. Nothing here fails, and nothing is undone when the task is cancelled.
    public struct Async: Sendable {
        let cache: DiskURLCache

        /// What is stored for a request, fresh or not; nil when nothing is.
        public func cachedResponse(for request: URLRequest) async -> CachedURLResponse? {
            await run { $0.cachedResponse(for: request) }
        }

        /// Returns when all that was stored or removed before the call is on disk.
        public func flush() async {
            await run { $0.flush() }
        }

        /// Removes every entry with a tag.
        public func removeCachedResponses(tag: String) async {
            await run { $0.removeCachedResponses(tag: tag) }
        }

        /// Removes every entry of a host, but not of its subdomains.
        public func removeCachedResponses(host: String) async {
            await run { $0.removeCachedResponses(host: host) }
        }

        /// See ``DiskURLCache/removeCachedResponses(authorization:)``.
        public func removeCachedResponses(authorization: String) async {
            await run { $0.removeCachedResponses(authorization: authorization) }
        }

        /// See ``DiskURLCache/removeCachedResponses(urlPrefix:)``.
        public func removeCachedResponses(urlPrefix prefix: String) async {
            await run { $0.removeCachedResponses(urlPrefix: prefix) }
        }

        /// Removes what was stored before a date.
        public func removeCachedResponses(olderThan date: Date) async {
            await run { $0.removeCachedResponses(olderThan: date) }
        }

        /// Apart from the loader's queue, so that a long removal holds no lookup up.
        private static let queue = DispatchQueue(label: "DiskURLCache.async", attributes: .concurrent)

        private func run<Result: Sendable>(_ call: @escaping @Sendable (DiskURLCache) -> Result) async -> Result {
            await withCheckedContinuation { continuation in
                Self.queue.async { [cache] in continuation.resume(returning: call(cache)) }
            }
        }
    }
}

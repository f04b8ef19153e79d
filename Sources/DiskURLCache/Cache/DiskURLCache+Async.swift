import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// The calls that wait for the disk, under a name of theirs, for tasks that must not wait: a queue of the cache runs
    /// them.
    ///
    /// ```swift
    /// let stored = await cache.async.cachedResponse(for: request)
    /// await cache.async.flush()
    /// ```
    ///
    /// They are not overloads of the plain calls: in an asynchronous function Swift prefers an asynchronous overload, and then
    /// `cache.cachedResponse(for: request)` without `await` would not compile there.
    public var async: Async { Async(cache: self) }

    /// The value of ``DiskURLCache/DiskURLCache/async``: each call does the work of the call with the same name, and suspends the task
    /// instead of blocking its thread. No call fails, and the cancellation of the task undoes none.
    public struct Async: Sendable {
        let cache: DiskURLCache

        /// The stored response for a request, fresh or not; nil without one.
        public func cachedResponse(for request: URLRequest) async -> CachedURLResponse? {
            await run { $0.cachedResponse(for: request) }
        }

        /// Returns when all stores and removals before the call are on disk.
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

        /// Removes the responses that were stored before a date.
        public func removeCachedResponses(olderThan date: Date) async {
            await run { $0.removeCachedResponses(olderThan: date) }
        }

        /// Apart from the loader's queue, so that a long removal delays no lookup.
        private static let queue = DispatchQueue(label: "DiskURLCache.async", attributes: .concurrent)

        private func run<Result: Sendable>(_ call: @escaping @Sendable (DiskURLCache) -> Result) async -> Result {
            await withCheckedContinuation { continuation in
                Self.queue.async { [cache] in continuation.resume(returning: call(cache)) }
            }
        }
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// How the system's loader uses the cache, as `URLCache` documents: on Apple platforms, in sessions that `makeSession`
// did not make.

extension DiskURLCache {
    /// Gives the stored response for a task, stale or not, since the loader judges.
    func answerSystem(_ task: URLSessionDataTask, _ completionHandler: @escaping (CachedURLResponse?) -> Void) {
        let unheeded = core.configuration.settingsOfLoader + (isOffline ? ["isOffline"] : [])
        if !unheeded.isEmpty {
            core.hub.report(once: DiskURLCache.Error(.settingsWithoutEffect, details: unheeded.joined(separator: ", ")))
        }
        guard let request = request(of: task, answeredBy: task.currentRequest?.url) else {
            return completionHandler(nil)
        }
        find(request, completionHandler)
    }

    /// An entry as the system accepts it: the object in memory that the system itself stored, or an object that the
    /// superclass knows. The entry keeps the object, so that one is made only once for each read from disk.
    func systemResponse(of entry: StoredEntry, for request: URLRequest) -> CachedURLResponse? {
        guard let url = request.url else { return nil }
        return entry.cachedURLResponse {
            let response = entry.makeSystemResponse(requestedURL: url)
            // The main thread does not wait.
            guard
                !Thread.isMainThread,
                core.configuration.platform.superclassKeeps(
                    bytes: entry.body.count, memory: core.configuration.memoryCapacity)
            else { return response }
            return superclassCopy(for: request).copy(of: response)
        }
    }
}

extension DiskURLCache.Configuration {
    /// Names of the settings of the app that only the loader of this library obeys.
    var settingsOfLoader: [String] {
        let cacheOptions = rules.map(\.cacheOptions)
        let settings: [(name: String, isMade: Bool)] = [
            ("lifetimes of rules", cacheOptions.contains { $0.lifetime != nil }),
            ("staleIfError", staleIfError != nil || cacheOptions.contains { $0.staleIfError != nil }),
            (
                "staleWhileRevalidate",
                staleWhileRevalidate != nil || cacheOptions.contains { $0.staleWhileRevalidate != nil }
            ),
            ("usesHeuristicFreshness", !usesHeuristicFreshness),
            (
                "minimumDiskLifetime",
                minimumDiskLifetime > 0 || cacheOptions.contains { $0.minimumDiskLifetime != nil }
            ),
            ("Configuration.willCacheResponse", willCacheResponse != nil), ("cacheStatusName", cacheStatusName != nil),
        ]
        return settings.filter(\.isMade).map(\.name)
    }
}

import Foundation

// How the system's loader uses the cache, as `URLCache` documents: on Apple platforms, in sessions that `makeSession`
// did not make.

extension DiskURLCache {
    /// Gives the stored response for a task, stale or not: the system's loader decides whether to use it.
    func answerSystem(_ task: URLSessionDataTask, _ completionHandler: @escaping (CachedURLResponse?) -> Void) {
        let unheeded = core.configuration.settingsOfLoader + (isOffline ? ["isOffline"] : [])
        if !unheeded.isEmpty {
            core.hub.report(
                once: DiskURLCache.Error(
                    .settingsWithoutEffect,
                    details: "Without effect, since the system's own loader uses this cache:"
                        + " \(unheeded.joined(separator: ", ")). Use data(for:) or, except on watchOS, a session of"
                        + " makeSession."))
        }
        guard let request = request(of: task, answeredBy: task.currentRequest?.url) else {
            return completionHandler(nil)
        }
        let span: Trace.Span = Trace.begin("lookup")
        find(request) { found in
            Trace.end("lookup", span, found == nil ? "miss" : "hit")
            completionHandler(found)
        }
    }

    /// An entry for the system's loader: the object that the system itself stored, or that was accepted before, or a
    /// new one, which is not kept.
    func systemResponse(of entry: StoredEntry, for request: URLRequest) -> CachedURLResponse? {
        entry.presentedResponse ?? request.url.map { entry.makeSystemResponse(requestedURL: $0) }
    }

    /// The superclass's object for a response that was read from disk, which the entry keeps; the response itself if
    /// the superclass does not give one. May wait some milliseconds: on the lookup queue only. A superclass that failed
    /// five times in a row is not asked again.
    func accepted(_ response: CachedURLResponse, for request: URLRequest, _ key: RequestKey) -> CachedURLResponse {
        let settings = core.configuration
        guard let number = response.entryNumber,
            settings.platform.superclassKeeps(bytes: response.data.count, memory: settings.memoryCapacity),
            superclassFailures.withLock({ $0 < 5 })
        else { return response }
        let copy = superclassCopy(for: request).copy(of: response)
        superclassFailures.withLock { $0 = copy == nil ? $0 + 1 : 0 }
        guard let copy else { return response }
        var fields = FieldDigests(of: RequestFacts(DiskURLCache.Request(request), key: key).fields)
        // Two variants may have one number.
        let entry = core.store.lookup(key).known?.lazy.compactMap(\.entry).first {
            Int64(truncatingIfNeeded: $0.metadata.sequence) == number && $0.answers(&fields)
        }
        return entry?.keep(copy) ?? copy
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
            ("fallback", cacheOptions.contains { $0.fallback != nil }),
            ("minimumInterval", cacheOptions.contains { $0.minimumInterval != nil }),
            ("errorLifetime", cacheOptions.contains { $0.errorLifetime != nil }),
            ("usesHeuristicFreshness", !usesHeuristicFreshness),
            (
                "minimumDiskLifetime",
                minimumDiskLifetime.seconds > 0 || cacheOptions.contains { $0.minimumDiskLifetime != nil }
            ),
            ("Configuration.willCacheResponse", willCacheResponse != nil), ("cacheStatusName", cacheStatusName != nil),
        ]
        return settings.filter(\.isMade).map(\.name)
    }
}

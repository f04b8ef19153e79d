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
        find(request) { [core] found, entry in
            Trace.end("lookup", span, found == nil ? "miss" : "hit")
            let fresh = entry.flatMap { $0.isClearlyFresh(for: request, now: core.now) ? $0 : nil }
            core.systemHits.withLock { $0.note(task, offered: fresh.map { $0.varyKey != .none }) }
            completionHandler(found)
        }
    }

    /// Before the response of a task is stored.
    func learn(from task: URLSessionDataTask, storing cached: CachedURLResponse) {
        guard (cached.response as? HTTPURLResponse)?.statusCode == 200,
            let lesson = core.systemHits.withLock({ $0.noteStore(by: task) })
        else { return }
        core.hub.report(once: lesson.problem)
        // What memory has is in the form that was refused. What is not on disk is loaded once more.
        if case .changedForm = lesson { core.store.removeMemory() }
    }

    /// An entry for the system's loader: the object that the system itself stored, or that was accepted before, or a
    /// new one, which is not kept.
    func systemResponse(of entry: StoredEntry, for request: URLRequest) -> CachedURLResponse? {
        entry.presentedResponse
            ?? request.url.map { url in
                entry.makeSystemResponse(requestedURL: url, hidesVary: core.systemHits.withLock { $0.hidesVary })
            }
    }

    /// The superclass's object for a response that was read from disk; the response itself if the superclass does not
    /// give one. The entry keeps it for the next lookups. May wait some milliseconds: on the lookup queue only.
    func accepted(_ response: CachedURLResponse, for request: URLRequest, _ key: RequestKey) -> CachedURLResponse {
        guard let number = response.entryNumber else { return response }
        let copy = copyOfSuperclass(response, for: request) ?? response
        var fields = FieldDigests(of: RequestFacts(DiskURLCache.Request(request), key: key).fields)
        // Two variants may have one number.
        let entry = core.store.lookup(key).known?.lazy.compactMap(\.entry).first {
            Int64(truncatingIfNeeded: $0.metadata.sequence) == number && $0.answers(&fields)
        }
        return entry?.keep(copy) ?? copy
    }

    /// Nil if the superclass does not give one. After it failed five times in a row, it is not asked again.
    private func copyOfSuperclass(_ response: CachedURLResponse, for request: URLRequest) -> CachedURLResponse? {
        let settings = core.configuration
        guard settings.platform.superclassKeeps(bytes: response.data.count, memory: settings.memoryCapacity),
            superclassFailures.withLock({ $0 < 5 })
        else { return nil }
        let copy = superclassCopy(for: request).copy(of: response)
        superclassFailures.withLock { $0 = copy == nil ? $0 + 1 : 0 }
        return copy
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
            ("wrongDigest", wrongDigest != .accepted),
            ("Configuration.willCacheResponse", willCacheResponse != nil), ("cacheStatusName", cacheStatusName != nil),
            // The system asks for the responses to GET alone.
            (
                "includingBody(ofMethods:)",
                ([keyPolicy] + keyPolicies.values).contains { !$0.bodyForms.isEmpty }
            ),
        ]
        return settings.filter(\.isMade).map(\.name)
    }
}

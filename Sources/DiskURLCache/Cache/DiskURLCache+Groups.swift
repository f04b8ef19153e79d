import Foundation

// Removals of many entries at once, and pins.

extension DiskURLCache {
    /// Removes the responses that meet all given conditions, from memory and disk before it returns.
    ///
    /// ```swift
    /// cache.removeCachedResponses(tag: "account-7")
    /// cache.removeCachedResponses(host: "example.com", olderThan: Date(timeIntervalSinceNow: -86_400))
    /// ```
    ///
    /// If another process uses or used the directory, and on Apple platforms always, it reads the head of every record
    /// on the caller's thread; for a prefix without a whole folder, such as `https://example.com/ima`, always those of
    /// the host. On the main thread, for a log-out say, call it by ``perform(_:)``:
    /// `await cache.perform { $0.removeCachedResponses(tag: "account-7") }`.
    ///
    /// If a condition cannot be met by any response, if there is none, or if there are two of tag, group and
    /// authorization, nothing is removed, and an event says so (``Error/Code/invalidPattern``).
    /// - Parameters:
    ///   - tag: one of the response's ``Options/tags``, such as that of an account.
    ///   - group: a group that the response named in `Cache-Groups` (RFC 9875), or in one of
    ///     ``Configuration/groupFields``. Case matters. Needs `url`.
    ///   - url: any URL of the server: a group is one of an origin (scheme, host and port).
    ///   - authorization: the `Authorization` field of the request, as it was sent, such as `Bearer abc`: of an account
    ///     that logs out.
    ///   - host: the name as in a URL, an international one in any form that Foundation gives; not its subdomains.
    ///     Upper and lower case and a trailing dot make no difference.
    ///   - prefix: scheme and host, and the path or its beginning. Different spellings of the same URL make no
    ///     difference. Responses of the host that were stored without their URL (``Configuration/keepsURLs`` was
    ///     false) are all removed, so that none is left that should be removed.
    ///   - date: only responses that were stored, or last confirmed by a 304, before.
    ///     ``removeCachedResponses(since:)`` is the other direction.
    public func removeCachedResponses(
        tag: String? = nil, group: String? = nil, of url: URL? = nil, authorization: String? = nil,
        host: String? = nil, urlPrefix prefix: String? = nil, olderThan date: Date? = nil
    ) {
        let found = criteria(
            for: nil, tag: tag, group: group, of: url, authorization: authorization, host: host, prefix, date)
        guard let found else { return }
        guard found != .everything else {
            return reportNothingRemoved("give a condition, or removeAllCachedResponses().")
        }
        core.store.remove(matching: found)
    }

    /// Marks the responses that meet all given conditions as stale, all of them without a condition: each is validated
    /// before it is used again, like one whose lifetime is over, also against ``Options/lifetime`` and
    /// ``Options/minimumInterval``. It is not removed: its `ETag` saves loading it again, `stale-while-revalidate` and
    /// `stale-if-error` count from now, and ``isOffline`` serves it.
    ///
    /// ```swift
    /// cache.markStale(tag: "news")
    /// cache.markStale(for: request)
    /// ```
    ///
    /// The mark is part of the stored response: it lasts until an answer to a later request confirms or replaces it,
    /// also in a new process. Other processes with the directory see it when they next read the response from disk;
    /// they forget what they have in memory, at the latest a second after this call. A load that is under way stores
    /// nothing. A response on disk that cannot be marked is removed: on a full disk, while another process changes it,
    /// or after some hundred validations, when its file is full. Responses in an `EntryStorage` of the app are
    /// removed, since it cannot list them; fallback directories are not changed. Takes as long as the removal with the
    /// same conditions, which see for them.
    /// - Parameters:
    ///   - request: only responses of its URL.
    ///   - tag: one of the response's ``Options/tags``.
    ///   - group: a group that the response named. Needs `url`.
    ///   - url: any URL of the group's server.
    ///   - authorization: the `Authorization` field of the request.
    ///   - host: the name of the host.
    ///   - prefix: scheme and host, and the path or its beginning.
    ///   - date: only responses that were stored, or last confirmed by a 304, before.
    public func markStale(
        for request: URLRequest? = nil, tag: String? = nil, group: String? = nil, of url: URL? = nil,
        authorization: String? = nil, host: String? = nil, urlPrefix prefix: String? = nil, olderThan date: Date? = nil
    ) {
        let found = criteria(
            for: request, tag: tag, group: group, of: url, authorization: authorization, host: host, prefix, date)
        guard let found else { return }
        core.store.markStale(matching: found, at: core.now)
    }

    /// Nil if a condition cannot be met by any response: then an event says so.
    private func criteria(
        for request: URLRequest?, tag: String?, group: String?, of url: URL?, authorization: String?, host: String?,
        _ prefix: String?, _ date: Date?
    ) -> EntryCriteria? {
        func refuse(_ details: String) -> EntryCriteria? {
            reportNothingRemoved(details)
            return nil
        }
        var criteria = EntryCriteria.everything
        var hosts: Set<String> = []
        var tags: [String] = []
        if let tag { tags.append(tag) }
        if let authorization { tags.append(core.tag(ofCredentials: authorization)) }
        if let request {
            guard let key = core.key(for: request) else { return refuse("the request has no key.") }
            criteria = EntryCriteria(uri: key.uri)
            hosts.insert(URLCanonicalizer.host(ofNormal: key.uri))
        }
        if let host {
            guard let name = URLCanonicalizer.host(host) else {
                return refuse(
                    "\(host.quotedWithoutCredentials) is not a host; give the name alone, as in \"example.com\".")
            }
            hosts.insert(name)
        }
        if let prefix {
            guard let canonical = URLCanonicalizer.prefix(prefix) else {
                return refuse(
                    "\(prefix.quotedWithoutCredentials) begins no URL of one host; write \"https://example.com/path\".")
            }
            hosts.insert(canonical.host)
            criteria.urlPrefix = canonical.text
        }
        if let group {
            guard let url, let parts = URLCanonicalizer.parts(of: url.absoluteString) else {
                return refuse("\"\(url?.withoutQuery ?? "")\" is no http or https URL with a host.")
            }
            hosts.insert(parts.host)
            tags += EntryCriteria(groups: [group], of: parts).tags
        } else if url != nil {
            return refuse("`of:` is the server of a group; give the group, or a URL prefix.")
        }
        guard tags.count < 2 else { return refuse("give one of tag, group and authorization.") }
        guard hosts.count < 2 else { return refuse("no response is of two hosts.") }
        criteria.tags = tags
        if let host = hosts.first { criteria.host = HostName(host) }
        criteria.storedBefore = date
        return criteria
    }

    /// Pins the stored responses to a request, or unpins them. Pinned responses are evicted last, as long as they take
    /// no more than ``Configuration/pinnedFraction`` of the disk capacity. Removals remove them like any other. A
    /// response that replaces a pinned one is pinned, too, unless ``Options/isPinned`` says otherwise. Reads and
    /// writes a few hundred bytes on disk, on the caller's thread.
    /// - Returns: whether a response is stored for the request; if not, nothing was pinned.
    @discardableResult
    public func setPinned(_ isPinned: Bool, for request: URLRequest) -> Bool {
        core.setPinned(isPinned, for: request)
    }

    /// Empties one layer and leaves the others unchanged. For `.disk` it deletes up to about a thousand files before it
    /// returns, as ``removeAllCachedResponses()`` does. Fallback directories are never changed: for `.fallback` nothing
    /// is removed, and an event says so (``Error/Code/invalidPattern``). `.disk` is also a storage of the app, whatever
    /// its name, which may take longer.
    public func removeAllCachedResponses(from layer: Layer) {
        switch layer {
        case .memory: core.store.emptyMemory()
        case .disk, diskLayer: core.store.removeDisk()
        case .fallback: reportNothingRemoved("fallback directories are read-only; give .memory or .disk.")
        default: reportNothingRemoved("there is no layer \(layer); give .memory or .disk.")
        }
    }

    /// Empties the memory layer when the app runs short of memory. Lookups still find responses that the app holds, for
    /// as long as it holds them. Can be called from any thread; returns at once.
    func relieveMemoryPressure() {
        if core.isBySystem { super.removeAllCachedResponses() }
        core.store.relieveMemory()
    }

    private func reportNothingRemoved(_ details: String) {
        core.hub.emit(.problem(Error(.invalidPattern, details: details)))
    }
}

extension DiskURLCache {
    /// The stored response for a request: ``cachedResponse(for:)``, ``storeCachedResponse(_:for:)-(_,URLRequest)``, and
    /// for nil ``removeCachedResponse(for:)-(URLRequest)``. Uses files on the caller's thread.
    public subscript(request: URLRequest) -> CachedURLResponse? {
        get { cachedResponse(for: request) }
        set {
            if let newValue {
                storeCachedResponse(newValue, for: request)
            } else {
                removeCachedResponse(for: request)
            }
        }
    }
}
